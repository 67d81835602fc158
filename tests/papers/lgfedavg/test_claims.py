"""Claims L1 to L9 on made-up rows whose verdict is known, and what figures make of such rows."""

from collections import namedtuple
from itertools import product

import numpy as np
import pandas as pd
import pytest

from lgfed_core.evidence import answers, printed, records as results, verdict
from lgfed_core.papers.lgfedavg import claims, comparisons, records
from lgfed_core.papers.lgfedavg.comparisons import BUDGETS, CLASSES, LOCAL, READINGS, SOUND
from lgfed_core.papers.lgfedavg.printed import TABLES
from toy import page, stored_row

SEEDS = (0, 1, 2, 3)
NOISE = np.array([0.02, -0.01, 0.01, -0.02])  # of each seed, in points
NOTHING = results.load(folder=printed.PAPER / "none")
PAGE = page("lgfedavg/cifar10")


At = namedtuple("At", "dataset classes method rounds metric protocol selection")


def stored(world, datasets=("mnist", "cifar10"), classes=CLASSES, seeds=SEEDS):
    """Rows of all methods; ``world``: from an `At` to its mean, or to None for no row."""
    lines = []
    metrics = ["local_test_acc", "new_test_acc", "new_test_acc_weights", "new_test_acc_outputs"]
    for dataset, number in product(datasets, classes):
        who = [("fedavg", BUDGETS[dataset][-1]), LOCAL, ("mtl", 1800)]
        who += [("lg_fedavg", budget) for budget in BUDGETS[dataset]]
        for (method, rounds), metric, reading in product(who, metrics, READINGS.values()):
            at = At(dataset, number, method, rounds, metric, *reading)
            if (mean := world(at)) is None:
                continue
            ids = dict(table=records.PRINTED[dataset][0], classes_per_device=number, method=method)
            ids |= dict(fedavg_rounds=rounds, lg_rounds=100 * (method == "lg_fedavg"))
            ids |= dict(metric=metric, protocol=at.protocol, selection=at.selection)
            sign = 1 if method == "fedavg" else -1
            own = 1e-8 * (method == "local_only") * metric.endswith("outputs")  # not just as others
            values = {seed: mean + sign * NOISE[seed % 4] + own * (seed % 2) for seed in seeds}
            lines += [stored_row(**ids, seed=seed, value=value) for seed, value in values.items()]
    return pd.DataFrame(lines)


def all_true(at):
    """A world in which every claim holds, by a wide margin."""
    if at.metric == "local_test_acc":
        return dict(fedavg=60.0, local_only=70.0, mtl=71.0, lg_fedavg=90.0 - at.classes)[at.method]
    ahead = 2 * ((at.dataset, at.method, at.rounds) == ("cifar10", "lg_fedavg", 1800))
    return dict(fedavg=58.0, local_only=20.0, mtl=20.0, lg_fedavg=58.0 + ahead)[at.method]


def all_false(at):
    """The opposite: LG-FedAvg is behind at home, ways to serve differ, local-only serves well."""
    if at.metric == "local_test_acc":
        return 60.0 + at.classes if at.method == "lg_fedavg" else 80.0
    behind = 3 * (at.metric == "new_test_acc_weights")
    return dict(fedavg=70.0, local_only=65.0, mtl=65.0, lg_fedavg=50.0 - behind)[at.method]


def read(rows, reading=SOUND):
    return comparisons.Read(records.by_seed(rows), READINGS[reading])


def told_of(rows, reading=SOUND):
    return answers.told(claims.CLAIMS, read(rows, reading))


def verdicts(rows, reading=SOUND):
    return claims.judged(read(rows, reading))["verdict"]


@pytest.mark.parametrize("reading", READINGS)
@pytest.mark.parametrize(
    ("world", "expected", "words"),
    [(all_true, verdict.CONFIRMED, "holds"), (all_false, verdict.REFUTED, "does not hold")],
)
def test_every_claim_has_its_verdict_under_every_reading(world, expected, words, reading):
    rows = stored(world)
    lines, told = claims.judged(read(rows, reading)), told_of(rows, reading)
    assert len(lines) == len(told) == 9
    assert lines["verdict"].eq(expected).all(), lines["verdict"]
    assert (lines["ran"] == lines["parts"]).all() and (lines["runs"] == 4).all()
    assert {one.words for id, one in told.items() if id != "L6"} == {words}


def test_the_table_of_readings_has_the_words_of_each():
    table = claims.by_reading("L1", "L5")
    assert list(table) == list(READINGS) and table.index.str[:2].tolist() == ["L1", "L5"]
    assert table.loc[table.index[0], SOUND] == claims.told()["L1"].words


@pytest.mark.parametrize("rows", [NOTHING, stored(all_true).assign(scale="quick")])
def test_without_rows_at_paper_scale_nothing_is_said(rows):
    assert verdicts(rows).eq(verdict.NOT_RUN).all()
    assert {one.words for one in told_of(rows).values()} == {"open"}


def test_every_number_of_classes_is_a_comparison_and_a_trend_needs_all():
    some = claims.judged(read(stored(all_true, classes=(2, 10))))
    assert some.loc["L1", ["ran", "parts", "at_runs"]].tolist() == [4, 10, 4]
    assert some.loc["L1", "at"] == "i.i.d., 1200 + 100 rounds"
    assert some.loc["L1", "estimate"] == pytest.approx(20 - 2 * NOISE.mean())  # 80 - 60
    assert some.loc["L1", "said"] == "confirmed so far, 4 of 10 comparisons"
    assert some.loc["L8", "verdict"] == verdict.NOT_RUN
    assert verdicts(stored(all_false, classes=(2,)))["L1"] == verdict.REFUTED


def test_l6_tells_the_two_averages_apart():
    served = "local_only", "new_test_acc_outputs"
    rows = stored(lambda at: 57.0 if (at.method, at.metric) == served else all_true(at))
    assert verdicts(rows)["L6"] == verdict.REFUTED
    lines = told_of(rows)["L6"].lines
    apart = lines.groupby(lines["name"].str.contains("weights"))["outcome"].unique()
    assert apart[True].tolist() == ["as claimed"] and apart[False].tolist() == ["against"]


def test_l9_as_released_reads_the_last_round():
    none = "new_test_acc_outputs", "best_test"  # the released evaluation has none there
    rows = stored(lambda at: None if (at.metric, at.selection) == none else all_true(at))
    assert verdicts(rows, "as released, best on test")["L9"] == verdict.CONFIRMED


def test_l8_needs_a_rising_advantage():
    flat = "lg_fedavg", "local_test_acc"
    world = stored(lambda at: 65.0 if (at.method, at.metric) == flat else all_true(at), ["cifar10"])
    found = verdicts(world)
    assert found["L8"] == verdict.INCONCLUSIVE and found["L1"] == verdict.CONFIRMED


GAPS = {
    ("as_described", "last"): 10,
    ("as_described", "best_val"): 12,
    ("as_released", "last"): 13,
    ("as_released", "best_test"): 16,
}


def by_reading(at):
    return 50.0 + (GAPS[at.protocol, at.selection] if at.method == "lg_fedavg" else 0)


def test_the_parts_of_a_gap_sum_to_the_papers():
    gaps = PAGE.decomposition(stored(by_reading))
    assert set(gaps["budget"]) == {400, 800, 1200, 1800}
    for (dataset, test, budget), parts in gaps.groupby(["dataset", "test", "budget"]):
        assert parts["part"].tolist() == list(PAGE.PARTS)
        assert parts["value"].sum() == pytest.approx(parts["paper"].iloc[0])
        assert parts["value"].tolist()[:3] == pytest.approx([10, 3, 3])
        assert parts["end"].tolist()[:-1] == pytest.approx(parts["start"].tolist()[1:])
        assert parts["validated"].eq(12).all()
        cells = printed.cells(TABLES[records.PRINTED[dataset][0]])
        cells = results.select(cells, classes_per_device=2, metric=test)
        paper = cells.set_index(["method", "fedavg_rounds"])["paper"]
        fedavg = paper["fedavg"].item()
        assert parts["paper"].iloc[0] == pytest.approx(paper["lg_fedavg", budget] - fedavg)


def test_the_parts_of_a_gap_are_of_the_seeds_that_every_reading_has():
    other = stored(lambda at: 90.0 if at.protocol == "as_described" else None, seeds=(7,))
    rows = pd.concat([stored(by_reading), other])
    same = PAGE.decomposition(stored(by_reading))
    pd.testing.assert_frame_equal(PAGE.decomposition(rows), same)
    assert PAGE.decomposition(rows[rows["protocol"] == "as_described"]).empty


def test_accuracies_by_classes():
    table = comparisons.accuracies(stored(all_true, classes=(2, 5)))
    mine = table[table["method"] == "lg_fedavg"]
    assert mine["classes"].tolist() == list(CLASSES)
    assert mine["seeds"].tolist() == [4, 0, 0, 4, 0]
    lead = mine["mean"].to_numpy() - table.loc[table["method"] == "fedavg", "mean"].to_numpy()
    assert lead[[0, 3]] == pytest.approx([28, 25])
    assert mine["paper"].iloc[[0, -1]].tolist() == pytest.approx([91.77, 69.89])  # Table 8
    assert len(comparisons.accuracies(NOTHING)) == 3 * len(CLASSES)
    assert PAGE.decomposition(NOTHING).empty
