"""The method, and the network, that a user gives: made, or refused by name; its contract
(`lgfed_core.testing`), checked before it trains for minutes."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, fields
from functools import partial
from pathlib import Path
from typing import Any

from torch import nn

from lgfed_core import models
from lgfed_core.errors import ContractError, SettingsError, in_a_line
from lgfed_core.methods import FADE, FairLGFedAvg, FedPer, Method
from lgfed_core.methods.field_checks import needed
from lgfed_core.papers import command_checks
from lgfed_core.testing import contract

from .. import tasks
from ..methods import ENTRIES
from ..net import SmallNet, base, head
from ..settings import Settings
from . import source


@dataclass(frozen=True)
class Given:
    """A method as it was given, the network that it wants, and its settings."""

    what: Any
    network: Any = None
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self):
        if isinstance(self.what, type) and not issubclass(self.what, Method):
            raise SettingsError(
                f"{self.what.__name__} is no Method; derive it from lgfed_core.FedAvg, or from "
                "another method of lgfed_core.methods"
            )
        if not callable(self.what) and not isinstance(self.what, Method):
            raise SettingsError(f"{self.what!r:.80} is no Method, and no class or function of one")
        if self.network is not None and not callable(self.network):
            raise SettingsError(f"net is {self.network!r:.80}; give a function (inputs, classes)")
        if self.settings and isinstance(self.what, Method):
            raise SettingsError(f"{self.name} has its settings; to change some, give its class")
        for kind in source.classes(self.what):
            typed = [
                n for n, t in vars(kind).get("__annotations__", {}).items() if "Class" not in f"{t}"
            ]
            if typed and "__dataclass_params__" not in vars(kind):
                raise SettingsError(
                    f"{kind.__name__} has the setting {typed[0]} and is no dataclass; write "
                    "@dataclasses.dataclass(frozen=True, kw_only=True) above the class"
                )

    @property
    def name(self) -> str:
        """As the report calls it, with the settings that are not the usual ones."""
        what, own = self.what, dict(self.settings)
        if isinstance(what, Method):
            each = ((f, getattr(what, f.name)) for f in fields(what))
            own = {f.name: value for f, value in each if value != f.default}
        found = what if hasattr(what, "__name__") else type(what)
        said = ", ".join(f"{n}={v}" for n, v in own.items() if isinstance(v, source.CONSTANTS))
        return f"{found.__name__}({said})" if said else found.__name__

    def net(self, task: tasks.Task, seed: int) -> nn.Module:
        """The network for a task, with the weights of ``seed``."""
        parts = ENTRIES[self.kin].parts if self.kin else {}
        make = partial(SmallNet, **parts) if self.network is None else self.network
        try:
            return models.make(partial(make, task.inputs, task.data.classes), seed)
        except (TypeError, ValueError, RuntimeError) as error:
            raise SettingsError(
                f"the network for {task.inputs} inputs and {task.data.classes} classes cannot be "
                f"made: {in_a_line(error)}"
            ) from error

    @property
    def kin(self) -> str:
        """Which of our adversarial methods it derives from: then it needs groups, and by default
        gets the network of that one; "" for none."""
        kind = self.what if isinstance(self.what, type) else type(self.what)
        if issubclass(kind, FairLGFedAvg):
            return "lg_fedavg_adv"
        return "fade" if issubclass(kind, FADE) else ""

    def method(self, net: nn.Module) -> Method:
        """The method, for a network."""
        if isinstance(self.what, Method):
            return self.what
        try:
            found = (
                self.what(**self._fields(net))
                if source.is_method(self.what)
                else self.what(net, **self._set)
            )
        except (TypeError, ValueError) as error:
            raise SettingsError(f"{self.name} cannot be made: {in_a_line(error)}") from error
        if not isinstance(found, Method):
            raise SettingsError(f"{self.name} gives a {type(found).__name__}, which is no Method")
        return found

    @property
    def _set(self) -> dict[str, Any]:
        """The settings that were given; texts, as typed, become what a field or argument takes."""
        typed_ones = [f"{n}={v}" for n, v in self.settings.items() if isinstance(v, str)]
        return dict(self.settings) | command_checks.changes(self.what, typed_ones)

    def _fields(self, net: nn.Module) -> dict[str, Any]:
        """The settings of its class."""
        found = self._set
        due = set(needed(self.what))
        if "layers" in due - found.keys() and isinstance(net, SmallNet):
            found["layers"] = base(net) if issubclass(self.what, FedPer) else head(net)
        if missing := sorted(due - found.keys()):
            raise SettingsError(
                f"{self.name} needs {', '.join(missing)}; say it by --set {missing[0]}=VALUE, or "
                "give a function that takes the network and makes the method"
            )
        return found

    @property
    def hint(self) -> str:
        """What is said besides where it does not train."""
        return "" if self.network else f". {NET}"

    def fingerprint(self) -> str:
        """Of the settings and of your code: a checkpoint of other ones is not continued."""
        return source.fingerprint(self.name, self.settings, (self.what, self.network))

    def files(self) -> list[Path]:
        """Your files behind method and network."""
        return source.files((self.what, self.network))


UNCHECKED = "The contract was not checked"
UNLESS = "To train it all the same, add --skip-contract"
NET = "If it needs a network of its own, give --net FILE.py:FUNCTION"


def checked(
    given: Given,
    cfg: Settings,
    load: Callable[[str, Settings], tasks.Task] | None = None,
    skip: Collection[str] = (),
) -> str:
    """What the report says of the contract, tried with made-up rows on the method's own network.

    load: from the name of a task to its rows, by default those of ours. The network is that for the
    first task of ``cfg`` on which the method trains. Where there is none, nothing is checked, and
    the comparison itself says why. Raises ContractError with a line for each broken promise, but
    for those in ``skip``.
    """
    if differs := source.differs(given.what):
        print(differs)
    print(f"the contract of {given.name}, {len(contract.ALL)} promises: some seconds")
    why = ""
    for name in cfg.tasks:
        try:
            task = load(name, cfg) if load else tasks.load(name, cfg.rows)
            groups = task.data.train.groups
            columns = 1 if groups is None else groups.shape[1]
            net = given.net(task, 0)
            how = dict(inputs=task.inputs, classes=task.data.classes, groups=columns)
            due = contract.promises(given.method, net, **how)
            fault = due[0].stage.fault
        except Exception as error:  # whatever the user's code may raise
            fault = in_a_line(error)
        if not fault:
            try:
                said = f"{contract.tried(due, skip)}."
            except ContractError as error:
                names = [line.partition(":")[0] for line in error.broken]
                unless = f"{UNLESS} {' '.join(names)} (in Python skip_contract={names})"
                raise ContractError(f"{error}\n{unless}", error.broken) from error
            own = _shared(given.method(net), net)
            print(said, own)
            return " ".join(filter(None, [differs, said, own]))
        why = why or f": it does not train on rows like those of {name} ({fault.splitlines()[0]})"
    print(said := f"{UNCHECKED}{why}{given.hint}.")
    return said


def _shared(method: Method, net: nn.Module) -> str:
    """How much of a network devices share, in a sentence: a slip in a name is seen there."""
    sent, total = models.count(net, method.shared(net)), models.count(net)
    return f"Devices share {sent:,} of {total:,} parameters."
