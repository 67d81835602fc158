"""An experiment of one's own: slips in its class are named."""

from dataclasses import dataclass, make_dataclass
from typing import ClassVar, Optional

import pandas as pd
import pytest

from lgfed_core.errors import ResultsError, SettingsError
from lgfed_core.evidence.rows import PROTOCOLS
from lgfed_core.papers import experiments
from lgfed_core.papers.experiment import Experiment
from lgfed_core.papers.parts import percent
from lgfed_core.papers.settings import FROM_0, Checked


@dataclass(frozen=True)
class Settings(Checked):
    pulls: tuple[float, ...] = (0.0, 1.0)
    rounds: int = 3
    goal: float | None = None

    RANGES: ClassVar = dict(pulls=FROM_0)


class Own(Experiment):
    name, table = "own", "own_pulls"
    Settings, scales = Settings, {"smoke": dict(rounds=1), "quick": {}}
    chooses = frozenset({"pulls"})


def having(kind: type) -> type:
    """Settings with a field of this type."""
    return make_dataclass("Has", [("rates", kind, None)], bases=(Settings,), frozen=True)


class Plain(Settings):
    rates: int = 3


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (dict(name="own pulls"), "Changed is called 'own pulls'; .* use letters and digits"),
        (dict(name="../own"), "letters and digits"),
        (dict(scales={"smoke": dict(round=1)}), "own has no setting round, which scale smoke or"),
        (dict(released=dict(round=1), protocols=PROTOCOLS), "no setting round, which scale smoke"),
        (
            dict(chooses={"pull"}),
            "own has no setting pull, which `chooses` has; there are: .*pulls",
        ),
        (dict(protocols=("described",)), "protocols is .* it has some of"),
        (dict(released={}), "protocol 'as_released' is none of as_described"),
        (dict(Settings=dict), "Changed.Settings is dict; it must be over `Checked`"),
        (dict(Settings=having(list)), r"Has.rates is declared as <class 'list'>; a setting is int"),
        (dict(Settings=having(tuple)), r"Has.rates is declared as <class 'tuple'>"),
        (dict(Settings=having(int | str)), r"Has.rates is declared as int \| str"),
        (dict(Settings=having(Optional[int])), "Has.rates is declared as typing.Optional"),  # noqa: UP045
        (dict(Settings=Plain), "Changed.Settings has rates, which is no field; put @dataclass"),
    ],
    ids=str,
)
def test_a_slip_in_its_class_is_named(changed, said):
    own = type("Changed", (Own,), changed)()
    with pytest.raises(SettingsError, match=said):
        own.settings("smoke", "as_released" if "released" in changed else "as_described")


def test_what_it_lacks_is_named():
    with pytest.raises(SettingsError, match="Bald has no name, table, Settings, scales"):
        type("Bald", (Experiment,), {})().settings("smoke")


@pytest.mark.parametrize("name", experiments.PLACES)
def test_every_experiment_of_the_book_says_why_it_has_one_protocol(name):
    one = experiments.find(name)
    assert bool(one.Settings.UNRELEASED) == (one.protocols == PROTOCOLS[:1])


def test_shares_are_told_in_percent_and_what_is_none_is_asked_about():
    wide = pd.DataFrame({"seed": [0], "new_test_acc": [0.5], "round": [7], "odds_gap": [-0.25]})
    told = percent(wide, ["seed"]).set_index("metric")["value"]
    assert told.to_dict() == {"new_test_acc": 50, "round": 7, "odds_gap": -25}
    with pytest.raises(
        ResultsError, match=r"minutes is 3, and a share is at most 1: name it among"
    ):
        percent(wide.assign(minutes=3), ["seed"])
