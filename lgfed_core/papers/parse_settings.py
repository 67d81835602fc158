"""What is typed after ``--set``, as values of the types that the settings have.

`commands.chosen` writes what this reads.
"""

from collections.abc import Iterable
from dataclasses import fields
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints

from lgfed_core.errors import SettingsError


def changes(settings: type, pairs: Iterable[str]) -> dict[str, Any]:
    """["classes=5", "starts=400,800"] -> {"classes": 5, "starts": (400, 800)}.

    Raises SettingsError for a name that ``settings`` lacks, or a text that is no value for it.
    """
    kinds = get_type_hints(settings)
    names = [f.name for f in fields(settings)]
    names = [n for n in names if n not in ("scale", "protocol")]  # these are options of their own
    found: dict[str, Any] = {}
    for pair in pairs:
        name, _, text = pair.partition("=")
        if name not in names:
            raise SettingsError(f"no setting is called {name!r}; there are: {', '.join(names)}")
        if name in found:
            raise SettingsError(f"{name} is set twice; the second time by {pair!r}")
        try:
            found[name] = _value(kinds[name], text)
        except (ValueError, KeyError):
            kind = kinds[name] if get_args(kinds[name]) else kinds[name].__name__
            raise SettingsError(
                f"{pair!r}: {text!r} is no value for {name}, which is {kind}"
            ) from None
    return found


def _value(kind, text: str):
    """``text`` as a value of ``kind``, e.g. float | None or tuple[int, ...] (joined by commas)."""
    kinds = get_args(kind) if isinstance(kind, UnionType) else (kind,)
    if NoneType in kinds and text.lower() == "none":
        return None
    (kind,) = (k for k in kinds if k is not NoneType)
    if kind is bool:
        return {"true": True, "false": False}[text.lower()]
    if get_origin(kind) is not tuple:
        return kind(text)
    parts, kinds = [part for part in text.split(",") if part], get_args(kind)
    kinds = kinds[:1] * len(parts) if kinds[-1] is Ellipsis else kinds
    return tuple(kind(part) for kind, part in zip(kinds, parts, strict=True))
