"""The contract of a method, checked before it trains for minutes: `lgfed_core.testing`."""

from collections.abc import Callable

from lgfed_core.testing import contract

from .. import tasks
from ..settings import Settings
from .given import Given

UNCHECKED = "The contract was not checked"


def checked(given: Given, cfg: Settings, say: Callable[[str], None] = print) -> str:
    """What the report says of the contract, tried with made-up rows on the method's own network.

    The network is that for the first task of ``cfg`` on which the method trains. Where there is
    none, nothing is checked, and the comparison itself says why. Raises ContractError with a line
    for each promise that is broken.
    """
    say(f"the contract of {given.name}, {len(contract.ALL)} promises: about ten seconds")
    why = ""
    for name in cfg.tasks:
        try:
            task = tasks.load(name, cfg.rows)
            groups = task.data.train.groups
            columns = 1 if groups is None else groups.shape[1]
            net = given.net(task, 0)
            how = dict(inputs=task.inputs, classes=task.data.classes, groups=columns)
            due = contract.promises(given.method, net, **how)
            fault = due[0].stage.fault
        except Exception as error:  # whatever the user's code may raise
            fault = str(error) or type(error).__name__
        if not fault:
            said = f"{contract.tried(due)}."
            say(said)
            return said
        why = why or f": it does not train on rows like those of {name} ({fault.splitlines()[0]})"
    say(said := f"{UNCHECKED}{why}.")
    return said
