"""Settings that must hold: each function raises a SettingsError that names what does not."""

import math
from collections.abc import Iterable
from numbers import Integral, Real

from .errors import SettingsError

YEAR = 8760  # hours


def one_of(name: str, value: object, choices: Iterable[object]) -> None:
    """Raise a SettingsError that lists the ``choices`` unless ``value`` is one of them."""
    choices = tuple(choices)
    if value not in choices:
        raise SettingsError(f"{name} {value!r} is none of {', '.join(map(str, choices))}")


def at_least(least: float, /, **settings: float | None) -> None:
    """Raise a SettingsError for settings below ``least`` or infinite; None passes."""
    wrong = [
        f"{name} is {value!r}"
        for name, value in settings.items()
        if value is not None and not (isinstance(value, Real) and least <= value < math.inf)
    ]
    if wrong:
        raise SettingsError(f"{', '.join(wrong)}; it must be at least {least}, and finite")


def share(**settings: object) -> None:
    """Raise a SettingsError for settings that are no share: above 0, and at most 1."""
    for name, value in settings.items():
        if not isinstance(value, Real) or not 0 < value <= 1:
            raise SettingsError(f"{name} is {value!r}; it must lie in (0, 1]")


def below_one(**settings: float) -> None:
    """Raise a SettingsError for settings that do not lie from 0 to below 1."""
    for name, value in settings.items():
        if not 0 <= value < 1:
            raise SettingsError(f"{name} is {value}; it must lie in [0, 1)")


def at_most(most: int, /, **settings: float | None) -> None:
    """Raise a SettingsError for settings above ``most``, too many for a machine; None passes."""
    wrong = {name: value for name, value in settings.items() if value is not None and value > most}
    if said := ", ".join(f"{name} is {value:,}" for name, value in wrong.items()):
        raise SettingsError(f"{said}; it must be at most {most:,}")


def long_enough(hours: float) -> None:
    """Raise a SettingsError for what is no length of time."""
    if not 0 < hours <= YEAR:
        raise SettingsError(f"hours is {hours}; it says how long to work, e.g. 2.5, up to {YEAR:,}")


def numbers(**settings: object) -> None:
    """Raise a SettingsError for the settings that are no finite numbers."""
    for name, value in settings.items():
        if not isinstance(value, Real) or isinstance(value, bool) or not math.isfinite(value):
            raise SettingsError(f"{name} is {value!r}; it must be a finite number")


def whole(**settings: object) -> None:
    """Raise a SettingsError for the settings that are no whole number from 0."""
    for name, value in settings.items():
        if not isinstance(value, Integral) or isinstance(value, bool) or value < 0:
            raise SettingsError(f"{name} is {value!r}; it must be a whole number from 0")


def instance(name: str, value: object, kind: type) -> None:
    """Raise a SettingsError unless ``value`` is a ``kind``, say a method and not its class."""
    if not isinstance(value, kind):
        raise SettingsError(f"{name} is {value!r}; it must be made by {kind.__name__}(...)")
