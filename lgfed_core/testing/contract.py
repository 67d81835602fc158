"""The contract: all promises of a method, as a list or at once."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import torch
from torch import nn

from lgfed_core import require
from lgfed_core.errors import ContractError, SettingsError
from lgfed_core.methods import Method
from lgfed_core.methods.field_checks import needed

from . import devices, server, training
from .network import FOUR, everything
from .promise import NotTested, Promise
from .stage import Stage

ALL = (
    *(training.trains, training.padding, training.lanes, training.plain_sgd),
    *(training.resumes, training.frozen, training.nothing),
    *(server.leaves, server.weights, server.equal_uploads, server.server),
    *(devices.own_rows, devices.renaming, devices.labels, devices.groups),
    *(devices.few_rows, devices.not_finite),
)
JITTER = 0.02  # of first parameters, so that none is zero, or like another


@dataclass(frozen=True)
class Checked:
    """What came of a check: the names ``kept``, and why others are not ``tested``."""

    name: str
    kept: list[str] = field(default_factory=list)
    untested: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        many = len(self.kept)
        said = f"{self.name} keeps {many} promise{'s' * (many != 1)} of the contract"
        not_tested = [f"{name} ({why})" for name, why in self.untested.items()]
        return f"{said}; not tested: {', '.join(not_tested)}" if not_tested else said


def promises(
    method: object,
    net: object = None,
    *,
    inputs: int | Sequence[int] = FOUR,
    classes: int = FOUR,
    groups: int = FOUR,
) -> list[Promise]:
    """All promises of ``method``, each to be called: for ``pytest.mark.parametrize``.

    method: a `Method`, its class, or a function from a network to one. A class whose field
    ``layers`` is not set gets the later half of the network's parameters. net: a network, or what
    makes one, of (inputs, classes) or of nothing; by default `Everything`. inputs: the shape
    of one row, or its length. groups: columns of 0 or 1 beside each row; 0 for none.

    Raises SettingsError for what is no method or no network.
    """
    require.whole(classes=classes, groups=groups)
    shape = (int(inputs),) if isinstance(inputs, int) else tuple(inputs)
    if not shape or not all(isinstance(n, int) and n > 0 for n in shape) or classes < 2:
        raise SettingsError(
            f"inputs is {inputs!r}, classes {classes}; rows need numbers, 2 classes"
        )
    found = _net(net, shape, classes)
    stage = Stage(_method(method, found), found, shape, classes, groups)
    return [make(stage) for make in ALL]


def check_method(
    method: object, net: object = None, *, skip: Collection[str] = (), **rows
) -> Checked:
    """Try all `promises` of ``method``, but those that ``skip`` names; seconds for a small network.

    rows: inputs, classes and groups, as for `promises`.

    Returns what is kept, and what could not be tested and why. Raises ContractError with a line for
    each promise that is broken: what was promised, what was seen, what to do. Raises SettingsError
    as `promises` does, and for an unknown name in ``skip``.
    """
    return tried(promises(method, net, **rows), skip)


def tried(due: Sequence[Promise], skip: Collection[str] = ()) -> Checked:
    """`check_method` of some promises of one method."""
    for name in skip:
        require.one_of("a name in skip", name, [one.name for one in due])
    found, broken = Checked(due[0].stage.name), []
    for one in due:
        if one.name in skip:
            found.untested[one.name] = "skipped"
            continue
        try:
            one()
        except NotTested as why:
            found.untested[one.name] = str(why)
        except ContractError as error:
            broken += error.broken
        else:
            found.kept.append(one.name)
    if broken:
        head = f"{found.name} breaks {len(broken)} of {len(due)} promises of the contract"
        raise ContractError("\n- ".join([f"{head}:", *broken]), broken)
    return found


def _net(net: object, shape: tuple[int, ...], classes: int) -> nn.Module:
    """A network of the check's own, in which no parameter is zero or like another."""
    if net is None and (shape, classes) != ((FOUR,), FOUR):
        raise SettingsError(
            f"the usual network takes {FOUR} inputs and has {FOUR} classes; give net="
        )
    if net is None:
        return everything()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        found = copy.deepcopy(net) if isinstance(net, nn.Module) else _made(net, shape, classes)
        with torch.no_grad():
            for p in found.parameters():
                p.add_(torch.randn_like(p), alpha=JITTER)
    return found


def _made(net: object, shape: tuple[int, ...], classes: int) -> nn.Module:
    if not callable(net):
        raise SettingsError(f"net is {net!r:.80}; give a network, or a function that makes one")
    asked = inspect.signature(net).parameters.values()
    places = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    due = sum(p.default is p.empty and p.kind in places for p in asked)
    found = net(*(prod(shape), classes)[:due])
    if not isinstance(found, nn.Module):
        raise SettingsError(f"net makes {found!r:.80}; it has to make a network, an nn.Module")
    return found


def _method(method: object, net: nn.Module) -> Method:
    """The method that was given, or the one that a class or a function of the network makes."""
    if isinstance(method, type) and issubclass(method, Method):
        names, due = [name for name, _ in net.named_parameters()], needed(method)
        given: dict[str, Any] = dict(layers=frozenset(names[len(names) // 2 :]))
        if due not in ([], ["layers"]):
            asked = ", ".join(f"{name}=..." for name in due)
            raise SettingsError(
                f"{method.__name__} needs {', '.join(due)}: give {method.__name__}({asked})"
            )
        return method(**given) if due else method()
    found = method
    if callable(method) and not isinstance(method, Method | type):
        found = method(net)
    if not isinstance(found, Method):
        raise SettingsError(f"{found!r:.80} is no Method, and no class or function that gives one")
    return found
