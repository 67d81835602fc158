"""What the settings of all experiments have in common: each value is checked as it is set, and
what the class of an experiment says of itself before anything is made of it.

A field's type says what it takes: whole numbers from 1, finite numbers from 0, texts, or tuples of
these, each value once and at least one. A page's own class says beside its fields what differs:
``RANGES`` of numbers, ``CHOICES`` of texts, tuples that may be ``EMPTY``. Names mean the same on
all pages, so most ranges are here.
"""

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, fields
from functools import lru_cache
from numbers import Integral, Real
from types import NoneType, UnionType
from typing import Any, ClassVar, get_args, get_origin, get_type_hints

from lgfed_core import require
from lgfed_core.errors import SettingsError
from lgfed_core.evidence.rows import PROTOCOLS, SCALES


@dataclass(frozen=True)
class Range:
    """Numbers from ``low`` to ``high``; ``above``, ``below``: the end itself is none of them."""

    low: float
    high: float = math.inf
    above: bool = False
    below: bool = False

    def __contains__(self, value: float) -> bool:
        low = value > self.low if self.above else value >= self.low
        return low and (value < self.high if self.below else value <= self.high)

    def __str__(self):
        low = f"{'above' if self.above else 'at least'} {self.low:,}"
        high = f"{'below' if self.below else 'at most'} {self.high:,}"
        return low + (f" and {high}" if math.isfinite(self.high) else "")


COUNT = Range(1, 10**6)
FROM_0 = Range(0, 10**6)
POSITIVE = Range(0, above=True)
SHARE = Range(0, 1)
PART = Range(0, 1, above=True)  # more than nothing, up to all
REST = Range(0, 1, below=True)  # something is left
INSIDE = Range(0, 1, above=True, below=True)
COMMON = dict(
    lr=POSITIVE, momentum=REST, dropout=REST, validation=INSIDE, fraction=PART, cohort=PART
)
COMMON |= dict(beta=PART, shrink=PART, goal=SHARE, classes=Range(1, 10))
# What becomes tensors, or one part of a run each: no more than a machine has room for.
COMMON |= dict.fromkeys(("seeds", "target_users"), Range(1, 1_000))
COMMON |= dict.fromkeys(("epochs", "fedavg_epochs", "released_epochs"), Range(1, 1_000))
COMMON |= dict.fromkeys(("units", "hidden", "width", "mlp", "adversary_width"), Range(1, 10_000))
COMMON |= dict.fromkeys(("batch_size", "looks", "points", "restarts", "sweeps"), Range(1, 10_000))
COMMON |= dict.fromkeys(("devices", "clients", "participants"), Range(1, 100_000))


@dataclass(frozen=True)
class Checked:
    """Settings of an experiment, refused by name and range where they cannot be meant.

    Raises SettingsError for a value of another type, out of range, given twice, or for none at all.
    """

    protocol: str = "as_described"
    scale: str = "paper"

    RANGES: ClassVar[dict[str, Range]] = COMMON
    CHOICES: ClassVar[dict[str, Iterable]] = dict(protocol=PROTOCOLS, scale=SCALES)
    EMPTY: ClassVar[frozenset[str]] = frozenset()  # tuples that may be
    SHORTER: ClassVar[tuple[str, ...]] = ()  # settings of which less makes a run "short"
    UNRELEASED: ClassVar[str] = ""  # why there is no protocol as_released

    def __post_init__(self):
        cls, kinds = type(self), _kinds(type(self))
        ranges, choices = _declared(cls, "RANGES"), _declared(cls, "CHOICES")
        for name, kind in kinds.items():
            value = getattr(self, name)
            if value is None and kind.optional:
                continue
            parts = _parts(name, value, kind, name in cls.EMPTY)
            wrong = [part for part, one in parts if not _is(part, one)]
            if wrong:
                raise SettingsError(f"{name} is {value!r}; it must be {kind}")
            for part, one in parts:
                _within(name, value, part, ranges.get(name, USUAL.get(one)))
            if name in choices and kind.many:
                known = tuple(choices[name])
                if unknown := [part for part in value if part not in known]:
                    told = ", ".join(map(str, known))
                    raise SettingsError(f"{name} has {unknown}; there are {told}")
            elif name in choices:
                require.one_of(name, value, choices[name])
        if self.UNRELEASED and self.protocol != "as_described":
            raise SettingsError(f"{self.UNRELEASED}; run as_described")

    def fits(self) -> None:
        """Raise SettingsError for values that are well each alone, and do not go together."""

    @property
    def released(self) -> bool:
        return self.protocol == "as_released"

    @property
    def recorded(self) -> str:
        """The scale of its rows: "short" of a run at paper scale with less than that has."""
        less = any(getattr(self, name) < getattr(type(self), name) for name in self.SHORTER)
        return "short" if self.scale == "paper" and less else self.scale


USUAL = {int: COUNT, float: Range(0)}
WORDS = {int: "a whole number", float: "a finite number", str: "a text", bool: "True or False"}


@dataclass(frozen=True)
class Kind:
    """What a field takes: values of ``kinds``, ``many`` of the first or one of each."""

    kinds: tuple[type, ...]
    many: bool = False
    optional: bool = False

    def __str__(self):
        words = " and ".join(WORDS[kind] for kind in self.kinds)
        said = f"a tuple, each of it {words}" if self.many else words
        said = f"a tuple of {said}" if len(self.kinds) > 1 else said
        return said + (" or None" if self.optional else "")


@lru_cache
def _kinds(cls: type) -> dict[str, Kind]:
    """Of each field by its type, e.g. ``tuple[float, ...]`` or ``int | None``."""
    hints, found = get_type_hints(cls), {}
    for name in (field.name for field in fields(cls)):
        options = get_args(hints[name]) if isinstance(hints[name], UnionType) else (hints[name],)
        one, *others = [option for option in options if option is not NoneType]
        inner = get_args(one) if get_origin(one) is tuple else (one,)
        many = inner[-1:] == (Ellipsis,)
        inner = inner[:1] if many else inner
        if others or not inner or not {*inner} <= WORDS.keys():
            raise SettingsError(
                f"{cls.__name__}.{name} is declared as {hints[name]}; a setting is int, float, "
                "str or bool, tuple[int, ...] or of others of these, or one of all that or None"
            )
        found[name] = Kind(inner, many, NoneType in options)
    return found


@lru_cache
def _declared(cls: type, what: str) -> dict[str, Any]:
    """``what`` of a class over that of those it comes from."""
    found: dict[str, Any] = {}
    for parent in reversed(cls.__mro__):
        found |= vars(parent).get(what, {})
    return found


def _parts(name: str, value: object, kind: Kind, empty: bool) -> list[tuple[Any, type]]:
    """The values in ``value``, each with the type that it must have."""
    if not kind.many and len(kind.kinds) == 1:
        return [(value, kind.kinds[0])]
    if not isinstance(value, tuple):
        raise SettingsError(f"{name} is {value!r}; it must be {kind}")
    if not kind.many:
        if len(value) != len(kind.kinds):
            raise SettingsError(f"{name} is {value!r}; it must be {kind}")
        return list(zip(value, kind.kinds, strict=True))
    if not (value or empty):
        raise SettingsError(f"{name} is empty; give at least one value")
    if twice := [part for n, part in enumerate(value) if part in value[:n]]:
        raise SettingsError(f"{name} has {twice[0]!r} twice; give each once")
    return [(part, kind.kinds[0]) for part in value]


def _is(value: object, kind: type) -> bool:
    if kind is int:
        return isinstance(value, Integral) and not isinstance(value, bool)
    if kind is float:
        return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)
    return isinstance(value, kind)


def _within(name: str, value: object, part: Any, allowed: Range | None) -> None:
    if allowed and not isinstance(part, str | bool) and part not in allowed:
        has = f"{name} has {part}; each" if isinstance(value, tuple) else f"{name} is {part}; it"
        raise SettingsError(f"{has} must be {allowed}")


NEEDED = ("name", "table", "Settings", "scales")


def refuse_slips(own: Any) -> None:
    """Raise SettingsError for an attribute of an experiment that is missing, or cannot be meant."""
    cls = type(own).__name__
    if missing := [name for name in NEEDED if not hasattr(own, name)]:
        raise SettingsError(f"{cls} has no {', '.join(missing)}; an experiment has all of {NEEDED}")
    if not re.fullmatch(r"\w+(\.\w+)*", own.name):
        raise SettingsError(
            f"{cls} is called {own.name!r}; its rows and checkpoints lie in files of that name: "
            "use letters and digits, as in 'lgfedavg.mnist'"
        )
    if not issubclass(own.Settings, Checked):
        raise SettingsError(f"{cls}.Settings is {own.Settings.__name__}; it must be over `Checked`")
    hints, there = get_type_hints(own.Settings), {field.name for field in fields(own.Settings)}
    lost = [n for n, kind in hints.items() if ClassVar not in (kind, get_origin(kind))]
    if lost := [name for name in lost if name not in there]:
        raise SettingsError(
            f"{cls}.Settings has {', '.join(lost)}, which is no field; put @dataclass(frozen=True) "
            "over it"
        )
    refuse_unknown(own, own.chooses, ", which `chooses` has")
    if not own.protocols or not {*own.protocols} <= {*PROTOCOLS}:
        raise SettingsError(f"{cls}.protocols is {own.protocols}; it has some of {PROTOCOLS}")


def refuse_unknown(own: Any, names: Iterable[str], why: str = "") -> None:
    """Raise SettingsError for names that are none of an experiment's settings."""
    there = [field.name for field in fields(own.Settings)]
    if unknown := sorted({*names} - {*there}):
        raise SettingsError(
            f"{own.name} has no setting {', '.join(unknown)}{why}; there are: {', '.join(there)}"
        )
