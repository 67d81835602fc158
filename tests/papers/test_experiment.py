"""An experiment of one's own: it runs as described, and slips in its class are named."""

from dataclasses import dataclass
from typing import ClassVar, Optional

import pandas as pd
import pytest

from lgfed_core.engine import run
from lgfed_core.errors import SettingsError
from lgfed_core.evidence import records
from lgfed_core.evidence.rows import PROTOCOLS
from lgfed_core.methods import FedProx
from lgfed_core.papers import experiment, experiments
from lgfed_core.papers.experiment import Experiment
from lgfed_core.papers.parts import Part
from lgfed_core.papers.settings import FROM_0, Checked
from toy import SGD, toy_federation


@dataclass(frozen=True)
class Settings(Checked):
    pulls: tuple[float, ...] = (0.0, 1.0)
    rounds: int = 3
    goal: float | None = None

    RANGES: ClassVar = dict(pulls=FROM_0)


class Own(Experiment):
    """FedProx with each pull."""

    name, table = "own", "own_pulls"
    Settings, scales = Settings, {"smoke": dict(rounds=1), "quick": {}}
    chooses = frozenset({"pulls"})

    def parts(self, cfg, seeds, device):
        for pull in cfg.pulls:
            yield Part(f"pull_{pull:g}", cfg.rounds)

    def train(self, cfg, seeds, device, folder, **engine):
        for part, pull in zip(self.parts(cfg, seeds, device), cfg.pulls, strict=True):
            fed = toy_federation(seeds)
            yield part.name, run(fed, FedProx(mu=pull), SGD, cfg.rounds, workers=1, lanes="looped")

    def measured(self, cfg, part, outcome):
        sent = outcome.tensors["shared"].norm(dim=1).tolist()
        ids = dict(table=self.table, selection="last", metric="norm", pull=part[5:])
        return pd.DataFrame(dict(seed=outcome.final.index, value=sent)).assign(**ids)


def test_it_runs_as_described_alone_and_its_rows_are_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(experiment, "RUNS", tmp_path / "runs")
    monkeypatch.setattr(records, "RESULTS", tmp_path)
    own = Own()
    rows, _ = own.run(own.settings("smoke", pulls=(0.5,)), [0, 1], record=False)
    records.record(own.name, rows, tmp_path)
    kept = records.load(own.name, tmp_path)
    assert len(kept) == 2 and set(kept["protocol"]) == {"as_described"} == {*own.protocols}
    with pytest.raises(SettingsError, match="protocol 'as_released' is none of as_described"):
        own.settings("smoke", "as_released")


@dataclass(frozen=True)
class Lists(Settings):
    rates: list = ()


@dataclass(frozen=True)
class Bare(Settings):
    rates: tuple = ()


@dataclass(frozen=True)
class Either(Settings):
    rates: int | str = 3


@dataclass(frozen=True)
class Old(Settings):
    rates: Optional[int] = None  # noqa: UP045


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
        (dict(Settings=dict), "Changed.Settings is dict; it must be over `Checked`"),
        (dict(Settings=Lists), r"Lists.rates is declared as <class 'list'>; a setting is int"),
        (dict(Settings=Bare), r"Bare.rates is declared as <class 'tuple'>"),
        (dict(Settings=Either), r"Either.rates is declared as int \| str"),
        (dict(Settings=Old), "Old.rates is declared as typing.Optional"),
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


@pytest.mark.parametrize("name", experiments.ALL)
def test_every_experiment_of_the_book_says_why_it_has_one_protocol(name):
    one = experiments.ALL[name]
    assert bool(one.Settings.UNRELEASED) == (one.protocols == PROTOCOLS[:1])
