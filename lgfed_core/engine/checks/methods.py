"""What a method answers, read by the engine: refused by name where it cannot be meant."""

import math
from collections.abc import Collection, Sequence
from inspect import signature
from numbers import Real

import numpy as np
from torch import nn

from lgfed_core.errors import SettingsError
from lgfed_core.methods import Method, Step

GIVEN = {  # what the engine hands to each answer
    "shared": "net",
    "steps": "net",
    "loss": "local, batch",
    "weights": "rows",
    "aggregate": "uploads, weights",
    "server_update": "before, average",
    "server_step": "before, average, memory",
    "finish": "trained",
    "merge": "arrived",
    "relabel": "round",
}


def one_each(method: Method | Sequence[Method], runs: int, net: nn.Module) -> list[Method]:
    """The method of each run, which differ in nothing that the tensors or the lanes depend on."""
    methods = [method] * runs if isinstance(method, Method) else list(method)
    if len(methods) != runs:
        raise SettingsError(f"{len(methods)} methods for {runs} runs; give one, or one for each")
    for one in methods:
        refuse_signatures(one)
        refuse_treatments(one)
    first, names = methods[0], frozenset(dict(net.named_parameters()))

    def moved(m: Method) -> list[tuple]:
        return [
            (names if s.params is None else frozenset(s.params), s.when is None, tuple(s.part))
            for s in steps(m, net)
        ]

    if unknown := frozenset().union(*(params for params, *_ in moved(first))) - names:
        raise SettingsError(
            f"a step of {type(first).__name__} moves {sorted(unknown)}; {type(net).__name__} has "
            f"no parameter of that name, but {sorted(names)}"
        )
    for r, other in enumerate(methods):
        alike = {
            "class": type(other) is type(first),
            "shared": shared(other, net) == shared(first, net),
            "batch_norm": other.batch_norm == first.batch_norm,
            "server_memory": other.server_memory == first.server_memory,
            "steps": moved(other) == moved(first),
        }
        if not all(alike.values()):
            what = ", ".join(name for name, same in alike.items() if not same)
            raise SettingsError(
                f"the methods of runs 0 and {r} differ in {what}: {first} and {other}; runs that "
                "train together differ in numbers alone"
            )
    return methods


def refuse_signatures(method: Method) -> None:
    """Raise SettingsError for an answer that cannot be called with what the engine hands to it, and
    for a memory that is no number of vectors."""
    many = method.server_memory
    if type(many) is not int or many < 0:
        raise SettingsError(
            f"{type(method).__name__} has server_memory {many!r:.80}; it is how many vectors the "
            "server keeps, a whole number from 0"
        )
    for name, given in GIVEN.items():
        answer = getattr(method, name)
        if answer is not None and not _takes(answer, len(given.split(", "))):
            raise SettingsError(
                f"{type(method).__name__}.{name} is {_shown(name, answer)}, which cannot be called "
                f"as {name}({given}); define it as `def {name}(self, {given})`"
            )


def _shown(name: str, answer: object) -> str:
    """ "aggregate(uploads)", or what stands there in its place."""
    try:
        return f"{name}{signature(answer)}" if callable(answer) else f"{answer!r:.80}"
    except ValueError:
        return f"{answer!r:.80}"


def _takes(function: object, arguments: int) -> bool:
    """Whether it is a function that can be called with so many ``arguments``, in order."""
    if not callable(function):
        return False
    try:
        signature(function).bind(*range(arguments))
    except TypeError:
        return False
    except ValueError:  # built in, without a signature to read
        return True
    return True


def shared(method: Method, net: nn.Module) -> frozenset[str]:
    """The names that ``method`` shares. Raises SettingsError unless it gives such."""
    found = method.shared(net)
    if _names(found):
        return frozenset(found)
    raise SettingsError(
        f"{type(method).__name__}.shared gives {found!r:.80}; it has to give the names of "
        "parameters, as frozenset({'head.weight'}), or frozenset() for none"
    )


def steps(method: Method, net: nn.Module) -> Sequence[Step]:
    """The steps of ``method``. Raises SettingsError for what no device can take."""
    name, found = f"{type(method).__name__}.steps", method.steps(net)
    listed = isinstance(found, list | tuple) and not isinstance(found, Step)
    if not listed or not found or not all(isinstance(step, Step) for step in found):
        raise SettingsError(
            f"{name} gives {found!r:.80}; it has to give a list of Steps, at least one, as "
            "[Step(self.loss)]"
        )
    for step in found:
        pull = step.pull
        fits = {
            "loss": (_takes(step.loss, 2), "a function of local and batch"),
            "params": (step.params is None or _names(step.params), "a set of names, or None"),
            "when": (step.when is None or _decides(step.when), "a function of a chance, or None"),
            "pull": (isinstance(pull, Real) and 0 <= pull < math.inf, "a number from 0"),
            "part": (_within(step.part), "two numbers from 0 to 1, the first one less"),
        }
        for part, (fit, what) in fits.items():
            if not fit:
                raise SettingsError(
                    f"{name} gives a Step with {part} {getattr(step, part)!r:.80}; it is {what}"
                )
    return found


def _within(part: object) -> bool:
    """Whether it is a stretch of the way from 0 to 1."""
    if not isinstance(part, list | tuple) or len(part) != 2:
        return False
    return all(isinstance(at, Real) for at in part) and 0 <= part[0] < part[1] <= 1


def _decides(when: object) -> bool:
    """Whether it says yes or no to a chance."""
    return callable(when) and _takes(when, 1) and isinstance(when(0.5), bool | np.bool_)


def _names(found: object) -> bool:
    """Whether ``found`` is a set or a list of texts, which can be read again."""
    if isinstance(found, str | bytes) or not isinstance(found, Collection):
        return False
    return all(isinstance(name, str) for name in found)


def refuse_treatments(method: Method) -> None:
    """Raise SettingsError unless ``upload`` lists things that can treat an upload."""
    name, listed = type(method).__name__, method.upload
    if not isinstance(listed, list | tuple):
        raise SettingsError(
            f"{name} has upload {listed!r:.80}; list what is done to uploads, as "
            "[Privacy(clip=1.0, noise=0.5)]"
        )
    for one in listed:
        if isinstance(one, type) or not _takes(getattr(one, "treat", None), 3):
            raise SettingsError(
                f"{name} lists {one!r:.80} in upload; it has to be an object with "
                "treat(before, upload, rng), as Privacy(clip=1.0, noise=0.5) is"
            )
