"""Settings of methods: of their types, and none that Python would ignore."""

from dataclasses import dataclass

import pytest

from lgfed_core import methods as m
from lgfed_core.errors import SettingsError
from lgfed_core.methods.dann import DANN
from lgfed_core.methods.privacy import Privacy
from lgfed_core.methods.schedules import Annealing
from lgfed_core.methods.shot import SHOT


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: m.FedProx(mu="0.1"), "mu is '0.1'; it must be a number"),
        (lambda: m.FedProx(mu=[0.1]), r"mu is \[0.1\]; it must be a number"),
        (lambda: m.FedProx(mu=None), "mu is None; it must be a number"),
        (lambda: m.FedProx(mu=True), "mu is True; it must be a number"),
        (lambda: m.FedAvg(weighted="no"), "weighted is 'no'; it must be True or False"),
        (lambda: m.FADE(rounds="5"), "rounds is '5'; it must be a whole number"),
        (lambda: m.FADE(rounds=0), "rounds is 0; it must be at least 1"),
        (lambda: m.FADE(start=float("nan")), "start is nan; it must be a whole number"),
        (lambda: m.FADE(strength="1"), "strength is '1'; it must be a number or None"),
        (lambda: m.FADE(strength=float("nan")), "strength is nan"),
        (lambda: m.FADE(power=None), "power is None"),
        (lambda: m.FADE(power=float("nan")), "power is nan"),
        (lambda: SHOT(every=2.5), "every is 2.5; it must be a whole number"),
        (lambda: DANN(smoothing=2), "smoothing is 2; it must lie in"),
        (lambda: m.FADE(power=float("inf")), "power is inf"),
        (lambda: m.FADE(power=0.5), "power is 0.5"),
        (lambda: m.FedProx(mu=-1.0), "mu is -1"),
        (lambda: m.QFFL(q=None), "q is None"),
        (lambda: m.QFFL(q=-1.0), "q is -1"),
        (lambda: m.QFFL(beta=2), "beta is 2"),
        (lambda: m.MTL(scale="1"), "scale is '1'"),
        (lambda: m.MTL(scale=float("nan")), "scale is nan"),
        (lambda: m.LGFedAvg(layers=None), "layers is None; give a set of names"),
        (lambda: m.LGFedAvg(layers="above.weight"), "layers is 'above.weight'"),
        (lambda: m.FedRep(layers=frozenset("a"), head=1.0), "head"),
        (lambda: m.PFedMe(inner=0), "inner"),
        (lambda: m.PFedMe(beta=0.0), "beta"),
        (lambda: m.FedAvgM(beta=1.0), "beta"),
        (lambda: m.FedAdam(tau=0.0), "tau"),
        (lambda: m.Ditto(pull=-1.0), "pull"),
        (lambda: Privacy("1", 1), "clip is '1'; it must be a finite number"),
        (lambda: Privacy(1, None), "noise is None; it must be a finite number"),
        (lambda: Privacy(0.0, 1.0), "clip is 0.0"),
        (lambda: Privacy(1.0, -1.0), "noise -1.0"),
        (lambda: m.FedBN(batch_norm="averaged"), "batch_norm is 'averaged'"),
        (lambda: m.FairLGFedAvg(play="chess"), "play 'chess' is none of"),
        (lambda: m.FairLGFedAvg(lambda_global=-0.03), "at least 0, and finite"),
        (lambda: Annealing("5"), "steps is '5'"),
        (lambda: Annealing(0), "steps is 0; it must be at least 1"),
    ],
)
def test_a_setting_of_another_type_is_refused(make, said):
    with pytest.raises(SettingsError, match=said):
        make()


def test_numbers_may_be_whole_and_strength_none():
    assert m.FedProx(mu=1).mu == 1 and m.FADE(strength=None).strength is None
    assert m.FADE(strength=2).strength == 2


class Plain(m.FedAvg):
    weighted = False


class Hidden(m.FedAvg):
    upload = (Privacy(1e-3, 5.0),)


@dataclass(frozen=True, kw_only=True)
class Undeclared(m.FedProx):
    mu = 5.0


class Undecorated(m.FedProx):
    mu: float = 5.0


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (Plain, "Plain sets weighted = False, which would be ignored: write `weighted: bool = "),
        (Hidden, r"Hidden sets upload = \(Privacy.*Hidden\(upload=...\)"),
        (Undeclared, "Undeclared sets mu = 5.0, which would be ignored"),
        (Undecorated, "Undecorated sets mu = 5.0, which would be ignored"),
    ],
)
def test_a_setting_that_python_would_ignore_is_refused(kind, said):
    with pytest.raises(SettingsError, match=said):
        kind()


@dataclass(frozen=True, kw_only=True)
class Declared(m.FedProx):
    mu: float = 5.0
    more: "Unknown" = None  # noqa: F821


def test_a_setting_with_a_type_is_taken():
    assert Declared().mu == 5.0 and Declared(mu=1.0).mu == 1.0
