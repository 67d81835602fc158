"""What is typed of a run, a fill or a report, looked at before anything heavy is imported.

Each check raises the error that whoever uses the word would raise seconds later. `changes` reads
what is typed after ``--set``, which `commands.chosen` writes.
"""

from collections.abc import Callable, Iterable
from dataclasses import fields
from inspect import Parameter, signature
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints

from lgfed_core import require
from lgfed_core.errors import ResultsError, SettingsError
from lgfed_core.evidence.vocabulary import DEVICES, LANES, PAPERS, PROTOCOLS

from . import experiments

SCALES = ("smoke", "quick", "paper")  # of every experiment


def run(experiment: str, scale: str, protocol: str, device: str, lanes: str) -> None:
    """Raise SettingsError for a word that no run knows."""
    experiments.known(experiment)
    require.one_of("scale", scale, SCALES)
    require.one_of("protocol", protocol, (*PROTOCOLS, "both"))
    require.one_of("device", device, DEVICES)
    require.one_of("lanes", lanes, LANES)


def fill(hours: float, device: str, only: str = "") -> None:
    """Raise SettingsError for a word that no fill knows, or no length of time."""
    require.long_enough(hours)
    require.one_of("device", device, DEVICES)
    if only:
        experiments.known(only)


def place(text: str) -> tuple[str, str]:
    """("mine.py", "MyMethod") of "mine.py:MyMethod", or a module and a name.

    Raises SettingsError for other texts, and for a file that does not exist.
    """
    where, _, name = text.rpartition(":")
    if not where or not name:
        raise SettingsError(f"{text!r} names no method; give FILE.py:CLASS, as mine.py:MyMethod")
    if where.endswith(".py") and not Path(where).expanduser().is_file():
        raise SettingsError(f"there is no file {where}; give FILE.py:CLASS, as mine.py:MyMethod")
    return where, name


def compare(places: Iterable[str | None], scale: str, device: str, hours: float | None) -> None:
    """Raise SettingsError for a word that no comparison knows, and for a place that is none."""
    for text in filter(None, places):
        place(text)
    require.one_of("scale", scale, SCALES)
    require.one_of("device", device, DEVICES)
    if hours is not None:
        require.long_enough(hours)


def paper(name: str | None) -> None:
    """Raise ResultsError unless None or the name of a paper."""
    if name not in (None, *PAPERS):
        raise ResultsError(f"no paper is called {name!r}; there are: {', '.join(PAPERS)}")


def changes(settings: type | Callable, pairs: Iterable[str]) -> dict[str, Any]:
    """["classes=5", "starts=400,800"] -> {"classes": 5, "starts": (400, 800)}.

    settings: a dataclass; or a function, of which all but the first parameter can be set.

    Raises SettingsError for a name that ``settings`` lacks, or a text that is no value for it.
    """
    kinds, found = _kinds(settings), dict[str, Any]()
    for pair in pairs:
        name, _, text = pair.partition("=")
        if name not in kinds:
            there = ", ".join(kinds) or "none"
            raise SettingsError(f"no setting is called {name!r}; there are: {there}")
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


def _kinds(settings: type | Callable) -> dict[str, Any]:
    """The type of each setting; of an argument without one, that of its default."""
    if isinstance(settings, type):
        kinds, own = get_type_hints(settings), [f.name for f in fields(settings)]
        return {n: kinds[n] for n in own if n not in ("scale", "protocol")}  # options of their own
    _, *rest = signature(settings, eval_str=True).parameters.values()
    return {
        p.name: (str if p.default in (None, Parameter.empty) else type(p.default))
        if p.annotation is Parameter.empty
        else p.annotation
        for p in rest
    }


def _value(kind, text: str):
    """``text`` as a value of ``kind``, e.g. float | None or tuple[int, ...] (joined by commas)."""
    kinds = get_args(kind) if isinstance(kind, UnionType) else (kind,)
    if NoneType in kinds and text.lower() == "none":
        return None
    (kind,) = (k for k in kinds if k is not NoneType)
    if kind is bool:
        return {"true": True, "false": False}[text.lower()]
    parts, kinds = [part for part in text.split(",") if part], get_args(kind)
    if get_origin(kind) in (frozenset, set, list):
        return get_origin(kind)(kinds[0](part) for part in parts)
    if get_origin(kind) is not tuple:
        return kind(text)
    kinds = kinds[:1] * len(parts) if kinds[-1] is Ellipsis else kinds
    return tuple(kind(part) for kind, part in zip(kinds, parts, strict=True))
