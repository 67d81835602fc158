"""What every method promises, whoever wrote it: found by walking the subclasses of `Method`.

A new method is tested without a line here, unless it asks for a setting or a network that no other
has (`ASKED`, `NETS`). All others train one network that has every part that any of them asks for
(`testing.Everything`). What is promised, and how it is tried, is in `lgfed_core.testing`.
"""

from functools import lru_cache
from importlib import import_module
from pkgutil import iter_modules

import pytest
import torch

from lgfed_core import Method, Participation, methods
from lgfed_core.methods.field_checks import needed
from lgfed_core.models.controlled import Controlled
from lgfed_core.models.layout import joined, parts
from lgfed_core.models.twins import Mixture, Twins
from lgfed_core.testing import NotTested, everything, promises

NET = everything()


class Normal(torch.nn.Sequential):
    """With batch normalisation."""

    def __init__(self):
        super().__init__(torch.nn.Linear(4, 6), torch.nn.BatchNorm1d(6), torch.nn.Linear(6, 4))


ASKED = {  # settings without a default
    "layers": parts(NET, "head", "classifier"),
    "auxiliary": parts(NET, "own"),
    "task": "rotation",
}
MORE = {  # settings that go another way through the same class
    "FADE": [dict(opt_out=0.5, power=2.0)],
    "FairLGFedAvg": [dict(lambda_local=0.3, lambda_global=0.7, play="reversal")],
    "ClientBaseline": [dict(cap=4, per=2)],
    "FedAvg": [dict(weighted=False)],
}
NETS: dict[str, object] = {  # class -> what makes a network, where Everything will not do
    "Ditto": lambda: Twins(everything()),
    "PFedMe": lambda: Twins(everything()),
    "APFL": lambda: Mixture(everything()),
    "FedBN": lambda: Normal(),
    "Scaffold": lambda: Controlled(everything()),
}
PLAIN = {"FedAvg", "LGFedAvg", "LocalOnly", "FedPer"}  # must be tested against plain SGD
UNTESTED = {  # class -> promises that cannot be tried with it, beside plain SGD
    "Pretext": {"lanes", "renaming"},  # in batched lanes a stack draws its answers together
    "MTL": {"own_rows", "server"},  # devices see each other's models, and there is no server
    "ReleasedMTL": {"own_rows", "server"},
    "LocalOnly": {"server"},
    "FedBABU": {"renaming"},  # devices have nothing of their own
    "FedNova": {"equal_uploads"},  # it reads what was there before, too
    "FedBN": {"few_rows"},  # batch normalisation takes no batch of one row
}


def classes(root: type = Method) -> list[type]:
    """Every method of the room, in the order of its modules."""
    for found in iter_modules(methods.__path__):
        import_module(f"{methods.__name__}.{found.name}")
    below = [c for child in root.__subclasses__() for c in (child, *classes(child))]
    return [c for c in dict.fromkeys(below) if c.__module__.startswith(f"{methods.__name__}.")]


def made(kind: type, **settings) -> Method:
    due = needed(kind)
    unknown = [name for name in due if name not in ASKED]
    assert not unknown, f"{kind.__name__} asks for {unknown}: say in ASKED what it gets here"
    return kind(**{name: ASKED[name] for name in due} | settings)


CASES = {
    kind.__name__ + "".join(f", {n}={v}" for n, v in settings.items()): (kind, settings)
    for kind in classes()
    for settings in ({}, *MORE.get(kind.__name__, ()))
}
NAMES = [str(promise) for promise in promises(methods.FedAvg())]


@lru_cache
def promised(case: str) -> dict:
    kind, settings = CASES[case]
    return {str(p): p for p in promises(made(kind, **settings), NETS.get(kind.__name__))}


def test_every_method_is_here():
    names = {kind.__name__ for kind in classes()}
    assert {"FedAvg", "LGFedAvgV1", "ReleasedMTL", "Pretext", "CDANSHOT", "QFFL"} <= names


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("case", CASES)
def test_every_method_keeps_its_promises(case, name):
    kind = case.split(",")[0]
    due = UNTESTED.get(kind, set())
    try:
        promised(case)[name]()
    except NotTested as why:
        fine = name in due or (name == "plain_sgd" and kind not in PLAIN)
        assert fine, f"it cannot be tested, as {why}; if that is meant, say so in UNTESTED"
    else:
        assert name not in due, "UNTESTED says that it cannot be tested, but it can"


def test_clients_without_rows_alone_move_nothing():
    stage = promised("FedAvg")["trains"].stage
    there = Participation(0.5, torch.tensor([[0.5, 0.0, 0.0, 0.5]]))
    for lanes in ("looped", "batched"):
        found = stage.go(fed=stage.federation(sizes=(0, 1, 4, 0), who=there), lanes=lanes)
        assert torch.equal(found.tensors["shared"][0], joined(NET)) and found.diverged == {}
