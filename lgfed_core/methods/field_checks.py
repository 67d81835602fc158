"""A method's settings are refused by name where they are of another type, or would be ignored."""

from dataclasses import MISSING, fields
from functools import lru_cache
from numbers import Integral, Real
from types import NoneType, UnionType
from typing import Any, get_args, get_type_hints

from lgfed_core import require
from lgfed_core.errors import SettingsError

KINDS: dict[type, tuple[tuple[type, ...], str]] = {
    bool: ((bool,), "True or False"),
    int: ((Integral,), "a whole number"),
    float: ((Real,), "a number"),
    str: ((str,), "a text"),
}


def refuse_types(method: Any) -> None:
    """Raise SettingsError for a field of ``method``, a dataclass, that is not as it is declared.

    Fields declared as bool, int, float, str, or one of these or None; others pass.
    """
    cls: type = type(method)
    for name, kinds in _declared(cls).items():
        value = getattr(method, name)
        if not any(_is(value, kind) for kind in kinds):
            words = " or ".join("None" if kind is NoneType else KINDS[kind][1] for kind in kinds)
            raise SettingsError(f"{name} is {value!r}; it must be {words}")


def refuse_outside(method: Any) -> None:
    """Raise SettingsError for a setting below what ``LEAST`` of its class says, none of its
    ``CHOICES``, or outside of (0, 1] for ``SHARES``, of [0, 1) for ``BELOW_ONE``; those of the
    class's bases hold as well."""
    for cls in type(method).__mro__[::-1]:
        for name, least in vars(cls).get("LEAST", {}).items():
            require.at_least(least, **{name: getattr(method, name)})
        for name, choices in vars(cls).get("CHOICES", {}).items():
            require.one_of(name, getattr(method, name), choices)
        shares, below = (vars(cls).get(which, ()) for which in ("SHARES", "BELOW_ONE"))
        require.share(**{name: getattr(method, name) for name in shares})
        require.below_one(**{name: getattr(method, name) for name in below})


def refuse_ignored(method: Any) -> None:
    """Raise SettingsError for a setting that a class writes as ``weighted = False``.

    Python's dataclasses take a field for one only with a type, and put the old default over it.
    """
    for field in fields(method):
        written = getattr(type(method), field.name, field.default)
        if field.default is not MISSING and written is not field.default:
            name, typed = type(method).__name__, field.type
            kind = typed if isinstance(typed, str) else getattr(typed, "__name__", "Any")
            raise SettingsError(
                f"{name} sets {field.name} = {written!r:.80}, which would be ignored: write "
                f"`{field.name}: {kind} = ...` in a class under @dataclass(frozen=True, "
                f"kw_only=True), or {name}({field.name}=...)"
            )


def needed(kind: type) -> list[str]:
    """The settings of a method's class, or of another dataclass, that have no default, in order."""
    return [
        f.name
        for f in fields(kind)
        if f.init and f.default is MISSING and f.default_factory is MISSING
    ]


def _is(value: object, kind: type) -> bool:
    if kind is NoneType or (isinstance(value, bool) and kind is not bool):
        return kind is type(value)
    return isinstance(value, KINDS[kind][0])


@lru_cache
def _declared(cls: type) -> dict[str, tuple[type, ...]]:
    """The types that each field may have, of fields of the plain ones."""
    try:
        hints = get_type_hints(cls)
    except NameError:  # a type that is imported for checkers alone
        return {}
    found = {field.name: hints[field.name] for field in fields(cls)}
    options = {n: get_args(h) if isinstance(h, UnionType) else (h,) for n, h in found.items()}
    known = {*KINDS, NoneType}
    return {n: kinds for n, kinds in options.items() if {*kinds} <= known and kinds != (NoneType,)}
