"""Settings of LG-FedAvg's experiments: the papers' values, and what is refused before any data."""

import pandas as pd
import pytest

from lgfed_core import models
from lgfed_core.errors import SettingsError
from lgfed_core.papers import experiments
from lgfed_core.papers.lgfedavg import layers as cuts
from lgfed_core.papers.lgfedavg.cifar10 import CIFAR10
from lgfed_core.papers.lgfedavg.fairness.run import FAIRNESS
from lgfed_core.papers.lgfedavg.mnist import MNIST
from lgfed_core.papers.lgfedavg.version1.run import VERSION1
from lgfed_core.papers.lgfedavg.vqa.run import QUESTIONS
from lgfed_core.papers.lgfedavg.vqa.settings import TEXT
from lgfed_core.paths import PAPER

VQA = dict(data="vqa_v1", network="paper", lines=(), questions=None) | TEXT  # the paper's own
PICKED = "strength is picked on the frontier"


@pytest.mark.parametrize(
    ("name", "changes", "said"),
    [
        ("mnist", dict(starts=(450,)), "starts"),
        ("mnist", dict(classes=11), "classes"),
        ("mnist", dict(validation=0.0), "validation is 0.0; as_described chooses on"),
        ("mnist", dict(validation=0.1, protocol="as_released"), "0.1; as_released chooses on"),
        ("layers", dict(budget=450), "budget is 450"),
        ("layers", dict(last=(6,)), r"last \(6,\)"),
        ("layers", dict(first=(0,)), "first"),
        ("fairness", dict(scale="paper", frontier=()), PICKED),
        ("fairness", dict(scale="paper", frontier=(10.0,)), PICKED),
        ("mood", dict(sources=("own",)), "own.*name your file"),
        ("mood", dict(shrink=0.0), "shrink is 0.0"),
        ("mood", dict(words=30, tokens=20), "tokens is 20"),
        ("mood", dict(each=5), "each is 5"),
        ("mood", dict(scale="paper", restarts=10), "restarts is 10; at paper scale"),
        ("vqa", dict(start=4), "start is 4; it must be below rounds, 4"),
        ("vqa", dict(data="vqa_v1", closed=True), "closed is True, which is easy-VQA's alone: VQA"),
        ("vqa", VQA, r"side is 224, .* of 369,861 rows take 207.4 GiB, and 16 is the most; lower"),
        ("vqa", VQA | dict(questions=(20_000, 9_000)), r"questions is \(20000, 9000\): .* 16.3"),
        ("vqa", dict(side=224, closed=True, questions=None), "of 48,248 rows take 27.1 GiB"),
        ("vqa", dict(network="paper"), "network is 'paper', lines has lg_fedavg: running statis"),
        ("vqa", dict(figure=5), "has no setting figure"),
    ],
)
def test_what_cannot_be_is_refused_by_name_before_any_data_are_read(name, changes, said):
    with pytest.raises(SettingsError, match=said):
        experiments.find(f"lgfedavg.{name}").settings(**(dict(scale="smoke") | changes))


def test_what_just_goes_together_is_taken():
    assert FAIRNESS.settings("paper", frontier=(), strength=0.3)
    assert FAIRNESS.settings("paper", frontier=(*FAIRNESS.Settings.frontier, 30.0))
    assert QUESTIONS.settings("smoke", **(VQA | dict(questions=(20_000, 8_000))))
    assert QUESTIONS.settings("smoke", **(VQA | dict(side=62)))
    assert QUESTIONS.settings("smoke", side=224, questions=None)
    assert QUESTIONS.settings("smoke", data="vqa_v1", questions=None)


@pytest.mark.parametrize(
    ("name", "split", "values"),
    [
        ("mnist", {}, dict(devices=100, fraction=0.1, batch_size=10, lr=0.05, lg_rounds=100)),
        ("version1", {}, dict(batch_size=10, lr=0.05, goal=0.975, lg_rounds=50, further=50)),
        ("version1", dict(data="cifar10"), dict(batch_size=50, lr=0.1, goal=0.57, lg_rounds=60)),
        ("rotated", {}, dict(devices=100, train_rows=3000, test_rows=500, rounds=500, angle=90)),
        ("rotated", {}, dict(goal=0.98, cohort=0.1)),
        ("vqa", {}, dict(figure=20)),
    ],
)
def test_paper_settings_are_the_papers(name, split, values):
    cfg = experiments.find(f"lgfedavg.{name}").settings("paper", **split)
    assert {name: getattr(cfg, name) for name in values} == values


def test_budgets_are_those_of_the_table_and_quick_scale_is_the_same_method_on_less():
    cfg, printed = MNIST.settings(), pd.read_csv(PAPER / f"{MNIST.table}.csv")
    assert set(printed["fedavg_rounds"]) == {0, *cfg.budgets}
    assert set(printed["lg_rounds"]) == {0, cfg.lg_rounds}
    quick, paper = (CIFAR10.settings(scale) for scale in ("quick", "paper"))
    assert quick.rounds(1800) == 54 and paper.rounds(1800) == 1800
    same = ("lr", "decay", "shared_layers", "shared_side", "validation", "mtl_scale", "softmax")
    assert all(getattr(quick, name) == getattr(paper, name) for name in same)
    for scale in QUESTIONS.scales:
        folder = QUESTIONS.folder(QUESTIONS.settings(scale), [0])
        assert folder.name == f"{scale}-easy_vqa-seed0"  # as ever


@pytest.mark.parametrize(("data", "shared"), [("mnist", 34_186), ("cifar10", 2_872)])
def test_version_1_shares_two_layers_and_has_quick_goals_of_its_own(data, shared):
    paper, quick = (VERSION1.settings(scale, data=data) for scale in ("paper", "quick"))
    assert models.count(paper.net(), paper.shared(paper.net())) == shared
    assert quick.goal < paper.goal and paper.further == paper.lg_rounds > quick.further >= 10
    assert VERSION1.settings("quick", data=data, goal=0.5).goal == 0.5


@pytest.mark.parametrize(("data", "cut"), [("mnist", ("last", 3)), ("cifar10", ("first", 2))])
def test_cuts_go_on_from_the_papers_setting_and_have_its_cut_once(data, cut):
    cfg, own = cuts.LAYERS.settings(data=data), cuts.TASKS[data][0].settings()
    assert cfg.base == own and cfg.start in own.budgets
    assert len(cfg.cuts) == len(set(cfg.cuts)) == 10
    assert cuts.chosen(data) == cut and cfg.cuts.count(cut) == 1
