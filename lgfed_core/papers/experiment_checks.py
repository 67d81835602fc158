"""What the class of an experiment says of itself: slips are named before anything is made of it."""

import re
from collections.abc import Iterable
from dataclasses import fields
from typing import ClassVar, Protocol, get_origin, get_type_hints

from lgfed_core.errors import SettingsError
from lgfed_core.evidence.rows import PROTOCOLS

from .settings import Checked

NEEDED = ("name", "table", "Settings", "scales")


class Declared(Protocol):
    """What an experiment says of itself, as far as it is looked at here."""

    name: ClassVar[str]
    Settings: ClassVar[type[Checked]]
    chooses: ClassVar[frozenset[str]]
    protocols: ClassVar[tuple[str, ...]]


def check(own: Declared) -> None:
    """Raise SettingsError for an attribute that is missing, or that cannot be meant."""
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
    hints, there = get_type_hints(own.Settings), _names(own)
    lost = [n for n, kind in hints.items() if ClassVar not in (kind, get_origin(kind))]
    if lost := [name for name in lost if name not in there]:
        raise SettingsError(
            f"{cls}.Settings has {', '.join(lost)}, which is no field; put @dataclass(frozen=True) "
            "over it"
        )
    known(own, own.chooses, ", which `chooses` has")
    if not own.protocols or not {*own.protocols} <= {*PROTOCOLS}:
        raise SettingsError(f"{cls}.protocols is {own.protocols}; it has some of {PROTOCOLS}")


def known(own: Declared, names: Iterable[str], why: str = "") -> None:
    """Raise SettingsError for names that are none of the experiment's settings."""
    there = _names(own)
    if unknown := sorted({*names} - {*there}):
        raise SettingsError(
            f"{own.name} has no setting {', '.join(unknown)}{why}; there are: {', '.join(there)}"
        )


def _names(own: Declared) -> list[str]:
    return [field.name for field in fields(own.Settings)]
