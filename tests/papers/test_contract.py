"""What every experiment promises, whoever wrote it: held against all of them at smoke scale.

Each runs once as a user would have it: told what will run, killed in the middle, run again. Shorter
runs of the same cells, with other lanes, workers and seeds, are held against that one.
"""

import socket
import time
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np
import pandas as pd
import pytest
import torch

from lgfed_core import data
from lgfed_core.engine import Outcome, loop
from lgfed_core.errors import ResultsError, SettingsError
from lgfed_core.evidence import records as results, report
from lgfed_core.evidence.rows import identifying, plain
from lgfed_core.models.adult import AdultNet
from lgfed_core.papers import experiment as base, experiments
from lgfed_core.papers.cgau.cifar10 import run as cgau_cifar10, time as cgau_time
from lgfed_core.papers.fade.digits import domains
from lgfed_core.papers.fade.objects import domains as objects
from lgfed_core.papers.lgfedavg.fairness import released_users
from lgfed_core.papers.parts import Part, following, said
from lgfed_core.papers.printed import TABLES
from lgfed_core.papers.settings import Checked
from toy import noisy_digits, ten_classes

CPU, SECONDS = torch.device("cpu"), 90  # a smoke run takes some ten of them on two slow cores
MADE = ["value", "seconds", "device", "torch", "commit"]  # columns that do not name a record


@dataclass(frozen=True)
class Case:
    """An experiment, and how to have it without noise and on data that are at hand."""

    name: str
    few: dict = field(default_factory=dict)  # settings that pick some of the cells
    quiet: dict = field(default_factory=dict)  # lanes of different kinds draw their dropout anew
    protocol: str = "as_described"
    stand_in: str = ""
    timed: bool = False  # its numbers are times
    known: bool = True  # what stands in for its data is said here

    def __str__(self):
        return f"{self.name}-{self.protocol}"


QUIET, ONE = dict(dropout=0.0), dict(methods=("cgau_kept",))
DIGITS = "UCI digits, 8 against the rest"
DRAWN_NOTHING = ("plain", "supervised", "autoencoder", "adversarial", "fedavg")  # no puzzles
CASES = [
    Case("lgfedavg.mnist", dict(starts=(800,), alone=())),
    Case("lgfedavg.cifar10", dict(starts=(), alone=()), dict(starts=(1800,), alone=())),
    Case("lgfedavg.scratch", {}),
    Case("lgfedavg.version1", dict(alone=())),
    Case("lgfedavg.layers", dict(last=(1,), first=()), dict(last=(3, 1), first=(1,))),
    Case("lgfedavg.rotated", dict(lines=("lg_fedavg_0.1",), vary=())),
    Case("lgfedavg.vqa", dict(lines=("lg_fedavg",)), stand_in="easy-VQA, a small network"),
    Case("lgfedavg.mood", dict(alphas=(0.4,)), stand_in="made-up texts, rho 0.2"),
    Case("lgfedavg.representations", dict(ways=("autoencoder",)), dict(ways=DRAWN_NOTHING)),
    Case("lgfedavg.fairness", dict(methods=("lg_fedavg",), frontier_splits=()), QUIET),
    Case("lgfedavg.fairness", dict(methods=("fedavg",)), protocol="as_released"),
    Case("cgau.audio", ONE, QUIET | dict(features="digits"), stand_in=DIGITS),
    Case("cgau.cifar10", ONE, QUIET, stand_in="made up"),
    Case("cgau.new_clients", ONE, QUIET, stand_in="made up"),
    Case("cgau.time", dict(methods=("baseline",)), timed=True),
    Case("fade.income", dict(parts=("figure",)), QUIET),
    Case("fade.impairment", {}, stand_in="made-up homes"),
    Case("fade.digits", dict(opt_outs=(), statistics=(), central=False), stand_in="made up"),
    Case("fade.objects", dict(central_methods=()), QUIET, stand_in="made up"),
    Case("everywhere", dict(tasks=("adult",), methods=("fine_tuned", "lg_fedavg_adv"))),
]  # fmt: skip
OTHERS = set(experiments.PLACES) - {case.name for case in CASES}
CASES += [Case(name, known=False) for name in experiments.PLACES if name in OTHERS]


def test_an_unknown_name_lists_them():
    assert {case.name for case in CASES} == set(experiments.PLACES)
    with pytest.raises(SettingsError, match="lgfedavg.mnist, lgfedavg.cifar10"):
        experiments.find("lgfedavg.mnits")


@pytest.fixture(scope="module", autouse=True)
def at_hand():
    """Made-up data where the paper's own cannot be had offline; the others are read once.

    No experiment asks the network for anything.
    """
    made = ten_classes()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket.socket, "connect", _refused)
        patch.setattr(cgau_cifar10, "_load", lambda *args: made)
        patch.setattr(cgau_time, "_random", lambda rows: made)
        patch.setattr(data, "load", lru_cache(data.load))
        patch.setattr(released_users, "AdultNet", _quiet)  # its dropout is no setting
        patch.setattr(domains, "_mnist", lambda: noisy_digits("mnist", 120, 60))
        patch.setattr(domains, "_second", lambda: (noisy_digits("usps", 120, 60, 1), "made up"))
        domains.digits.cache_clear()
        patch.setattr(objects, "_features", lambda *place: made)
        objects.load.cache_clear()
        yield
    domains.digits.cache_clear()
    objects.load.cache_clear()


def _refused(self, address):
    raise AssertionError(f"the network was asked for: {address}")


def _quiet(head_layers: int, *dropout: float) -> AdultNet:
    return AdultNet(head_layers, 0.0, 0.0)


class Killed(Exception):
    """Stands for a kill in the middle of a run."""


@dataclass(frozen=True)
class Ran:
    """One smoke run, and what was said about it before."""

    case: Case
    experiment: base.Experiment
    cfg: object
    short: object  # the same settings with fewer cells
    plan: list[Part]
    killed: bool
    names: list[str]
    rows: pd.DataFrame
    seconds: float

    @property
    def released(self) -> bool:
        return self.case.protocol == "as_released"

    def again(self, seeds=(0,), resume=False, **engine) -> tuple[list, pd.DataFrame]:
        """(part, outcome) of each part, and the records, of fewer cells."""
        parts = list(self.experiment.stages(self.short, list(seeds), resume=resume, **engine))
        records = [self.experiment.records(self.short, *part) for part in parts]
        return parts, pd.concat(records, ignore_index=True)


@pytest.fixture(scope="module", params=CASES, ids=str)
def ran(request, tmp_path_factory):
    case = request.param
    experiment = experiments.find(case.name)
    cfg, short = (
        experiment.settings("smoke", case.protocol, **(case.quiet | few)) for few in ({}, case.few)
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(base, "RUNS", tmp_path_factory.mktemp("runs"))
        patch.setattr(loop, "SAVE_SECONDS", 0.0)
        patch.setattr(loop, "SAVE_SHARE", np.inf)
        began, plan = time.perf_counter(), experiment.plan(cfg, [0], "cpu")
        assert not any(part.complete for part in plan)
        killed, rounds = False, []
        real = loop.round_of

        def some(*args):
            rounds.append(args)
            if len(rounds) == 4:
                raise Killed
            return real(*args)

        if any(part.saved for part in plan):
            patch.setattr(loop, "round_of", some)
            with pytest.raises(Killed):
                list(experiment.stages(cfg, [0], workers=1))
            killed = True
            patch.setattr(loop, "round_of", real)
        names, rows = [], []
        for name, outcome in experiment.stages(cfg, [0], workers=1):
            names.append(name)
            rows.append(experiment.records(cfg, name, outcome))
        seconds = time.perf_counter() - began
        rows = pd.concat(rows, ignore_index=True)
        yield Ran(case, experiment, cfg, short, plan, killed, names, rows, seconds)


@pytest.fixture(scope="module")
def looped(ran) -> pd.DataFrame | None:
    """One seed in looped lanes; None where an experiment has none."""
    if ran.experiment.usual_lanes == "auto":
        return ran.rows
    return None if ran.released else ran.again(lanes="looped", workers=1)[1]


@pytest.fixture(scope="module")
def two(ran) -> tuple[list, pd.DataFrame]:
    """Two seeds, with two workers where there can be any."""
    has = ran.experiment.usual_lanes == "auto" or not ran.released
    lanes = {} if ran.case.timed else dict(lanes="looped")
    return ran.again([0, 1], **(lanes | dict(workers=2) if has else {}))


def keyed(rows: pd.DataFrame, seed: int = 0) -> pd.Series:
    """Values by all columns that name a record."""
    rows = rows[rows["seed"] == seed]
    names = rows[sorted(set(rows) - {*MADE})].map(plain).to_dict("records")
    keys = [" ".join(f"{k}={v}" for k, v in name.items() if v) for name in names]
    return rows["value"].set_axis(keys).sort_index()


def test_the_plan_is_what_runs_and_it_runs_in_seconds(ran):
    assert [part.name for part in ran.plan] == ran.names
    assert all(part.seeds == (0,) for part in ran.plan)
    trained = [part for part in ran.plan if part.rounds]
    assert trained and all(part.name in said(ran.plan) for part in ran.plan)
    assert ran.seconds < SECONDS


def test_what_was_killed_continues_and_what_is_complete_is_read(ran, monkeypatch):
    plan = ran.experiment.plan(ran.short, [0], "cpu")
    assert all(part.complete for part in plan if part.saved)
    if not ran.killed:
        assert not any(part.saved for part in plan)
        return
    assert "complete" in said(plan)
    monkeypatch.setattr(loop, "round_of", None)  # any round would now fail
    assert_found(ran.again(resume=True, workers=1)[1], ran.rows)


def assert_found(some: pd.DataFrame, all_of_them: pd.DataFrame, within: float = 0.0):
    """Every record of ``some`` is in the other, with the same value, or one ``within`` that."""
    some, whole = keyed(some), keyed(all_of_them)
    assert len(some) and set(some.index) <= set(whole.index)
    there = whole.reindex(some.index)
    if within:
        assert some.to_numpy() == pytest.approx(there.to_numpy(), rel=1e-3, abs=within)
    else:
        assert some.equals(there)


def test_lanes_of_both_kinds_agree_or_one_is_refused(ran, monkeypatch):
    if ran.experiment.usual_lanes == "auto" and not ran.case.timed:
        assert_found(ran.again(lanes="batched")[1], ran.rows, within=0.01)
    elif not ran.case.timed and not ran.released:
        assert_found(ran.again(lanes="looped", workers=1)[1], ran.rows, within=0.01)
    else:
        forbid_training(ran, monkeypatch)
        with pytest.raises(SettingsError, match="lanes"):
            ran.experiment.stages(ran.cfg, [0], lanes="looped")


def test_a_seed_and_a_worker_alone_are_as_among_two(ran, looped, two, monkeypatch):
    _, rows = two
    assert set(rows["seed"]) == {0, 1}
    if ran.case.timed:
        assert set(keyed(rows).index) <= set(keyed(ran.rows).index)
    elif looped is not None:
        assert_found(rows, looped)
    else:
        assert_found(rows, ran.rows, within=0.01)
    if looped is None:
        forbid_training(ran, monkeypatch)
        with pytest.raises(SettingsError, match="workers is 2"):
            ran.experiment.stages(ran.cfg, [0], workers=2)


def test_the_device_that_was_asked_for_is_used(ran, monkeypatch):
    class Reached(Exception):
        pass

    def tell(of, *args, **more):
        raise Reached(of.device if hasattr(of, "device") else of.x.device)

    monkeypatch.setattr(loop, "prepare", tell)
    monkeypatch.setattr(released_users.Lanes, "batches", tell)
    with pytest.raises(Reached, match="^meta$"):
        list(ran.experiment.stages(ran.cfg, [0], torch.device("meta"), resume=False))
    with pytest.raises(Reached, match="^cpu$"):
        list(ran.experiment.stages(ran.cfg, [0], "cpu", resume=False))


def forbid_training(ran, monkeypatch):
    monkeypatch.setattr(type(ran.experiment), "train", None)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (dict(device="cuda"), "device cuda: PyTorch sees no GPU here"),
        (dict(device="tpu"), "device 'tpu' is none of auto, cpu, cuda"),
        (dict(lanes="both"), "lanes"),
        (dict(workers=0), "workers is 0"),
        (dict(seeds=[]), r"seeds are \[\]"),
        (dict(seeds=[0, 0]), r"seeds are \[0, 0\]"),
        (dict(seeds=[-1]), r"seeds are \[-1\]"),
        (dict(cfg="smoke"), "takes settings of its own"),
    ],
    ids=str,
)
def test_what_cannot_run_is_refused_by_name_before_any_data(ran, asked, said, monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    forbid_training(ran, monkeypatch)
    for call in (ran.experiment.run, ran.experiment.plan):
        with pytest.raises(SettingsError, match=said):
            call(**(dict(cfg=ran.cfg, seeds=[0]) | asked))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_unknown_settings_are_refused_by_name(case):
    experiment = experiments.find(case.name)
    for change in (dict(colour="red"), dict(scale="huge"), dict(protocol="guess")):
        with pytest.raises(SettingsError, match="|".join(map(str, change.values())) + "|colour"):
            experiment.settings(**(dict(scale="smoke") | change))


def test_records_are_accepted_say_on_which_data_and_fill_the_printed_tables(ran, tmp_path):
    results.record(ran.experiment.name, ran.rows, tmp_path)
    stored = results.load(ran.experiment.name, tmp_path)
    assert len(stored) == len(ran.rows)
    assert set(stored["scale"]) == {"smoke"} and set(stored["protocol"]) == {ran.case.protocol}
    assert not ran.case.known or set(stored.get("stand_in", [""])) == {ran.case.stand_in}
    for spec in TABLES.values() if ran.case.known and not ran.case.stand_in else ():
        if ran.experiment.name in spec.experiments and ran.case.protocol in spec.protocols:
            cells = report.table(spec, "smoke", ran.case.protocol, rows=stored)
            assert set(cells.loc[cells["seeds"] > 0, "verdict"]) == {"smoke scale, not judged"}


def test_a_seed_that_diverged_says_so_and_leaves_the_others_alone(ran, two, tmp_path):
    for name, outcome in two[0]:
        whole = ran.experiment.records(ran.short, name, outcome)
        if set(whole["seed"]) != {0, 1}:  # a repetition each
            continue
        final = outcome.final.copy()
        final.loc[0] = np.nan
        lost = replace(outcome, diverged={0: 3})
        for found in (lost, replace(lost, final=final)):
            rows = ran.experiment.records(ran.short, name, found)
            assert keyed(rows, 1).equals(keyed(whole, 1))
            lost = rows[rows["seed"] == 0]
            assert set(lost["metric"]) == {base.DIVERGED} and set(lost["value"]) == {3}
            assert set(lost["selection"]) <= set(whole["selection"])
            ids = identifying(whole)
            there = whole[whole["table"] == whole["table"].iloc[0]]
            named = (f[[*ids, "selection"]].map(plain).to_numpy() for f in (lost, there))
            lost_ids, ids_there = (set(map(tuple, names)) for names in named)
            assert lost_ids == ids_there
            results.record(ran.experiment.name, rows, tmp_path)
        everybody = replace(outcome, diverged={0: 3, 1: 1})
        ended = replace(everybody, final=outcome.final * np.nan, history=outcome.history.iloc[:0])
        for found in (everybody, ended):
            both = ran.experiment.records(ran.short, name, found)
            assert set(both["metric"]) == {base.DIVERGED} and set(both["seed"]) == {0, 1}
            assert keyed(both)[keyed(rows[rows["seed"] == 0]).index].eq(3).all()


def test_a_number_that_is_not_finite_takes_no_neighbour_down(ran, two, tmp_path, monkeypatch):
    name, outcome = two[0][-1]
    whole = ran.experiment.records(ran.short, name, outcome)
    if set(whole["seed"]) != {0, 1}:
        return
    real = type(ran.experiment).measured

    def broken(*args):
        rows = real(*args).reset_index(drop=True)
        rows.loc[rows.index[rows["seed"] == 1][-1], "value"] = np.inf
        return rows

    monkeypatch.setattr(type(ran.experiment), "measured", broken)
    rows = ran.experiment.records(ran.short, name, outcome)
    assert keyed(rows).equals(keyed(whole))
    assert set(rows.loc[rows["seed"] == 1, "metric"]) == {base.DIVERGED}
    assert rows["value"].ge(1)[rows["metric"] == base.DIVERGED].all()
    results.record(ran.experiment.name, rows, tmp_path)


def test_a_number_that_is_missing_though_nothing_diverged_is_refused():
    class Forgetful(base.Experiment):
        name = "own"

        def measured(self, cfg, part, outcome):
            ids = dict(table="own", selection="last", metric=["loss", "accuracy"])
            return pd.DataFrame(ids | dict(seed=0, value=[0.5, np.nan]))

    cfg = Checked(scale="smoke")
    fine = pd.DataFrame({"loss": [0.5]}, index=pd.Index([0], name="seed"))
    history = pd.DataFrame({"round": [1], "seed": [0], "loss": [0.7]})
    out = Outcome(None, {}, history, fine, 0.0, {})
    with pytest.raises(ResultsError, match="own, part 'all': .* NaN as accuracy of seed 0"):
        Forgetful().records(cfg, "all", out)
    overflow = history.assign(loss=np.inf)
    for lost in (replace(out, diverged={0: 1}), replace(out, history=overflow)):
        told = "seed 0 has no number as accuracy, and counts as diverged"
        with nullcontext() if lost.diverged else pytest.warns(RuntimeWarning, match=told):
            rows = Forgetful().records(cfg, "all", lost)
        assert rows["metric"].tolist() == [base.DIVERGED] and rows["value"].tolist() == [1]


def test_what_starts_from_a_diverged_model_has_diverged():
    after = Outcome(None, {}, pd.DataFrame(), pd.DataFrame(), 0.0, {})
    before = replace(after, diverged={0: 5})
    assert following(before, after, 4).diverged == {}
    assert following(before, after, 5).diverged == {0: 1}
    assert following(before, replace(after, diverged={0: 2, 1: 3})).diverged == {0: 2, 1: 3}
