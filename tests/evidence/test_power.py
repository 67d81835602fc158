"""What a verdict is worth: on cells and contrasts whose answer is known by hand."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from lgfed_core.evidence import comparison, power, records, report, scoreboard, verdict
from lgfed_core.evidence.printed import DONE, Table, accuracy, cells, row_name
from lgfed_core.papers.printed import TABLES
from toy import page, stored_row

SPEC = Table(
    "made_up",
    "fade",
    "Made up",
    ids=("task", "method"),
    metrics=(accuracy("acc", "std"),),
    runs=10,
    headline=DONE,
    protocols=("as_described",),
    experiments=("made",),
    contrasts=(("ours", "theirs"), ("ours", "third")),
)
PRINTED = """task,method,acc,std
one,ours,90.0,0.3
one,theirs,80.0,0.3
one,third,89.9,0.3
two,ours,70.0,0.3
two,theirs,75.0,0.3
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "made_up.csv").write_text(PRINTED)
    return tmp_path


def stored(folder, **means):
    """Rows of five seeds: ``one_ours=90`` and so on, with deviations that pair."""
    lines = []
    for name, mean in means.items():
        ids = dict(zip(("task", "method"), name.split("_"), strict=True), metric="acc")
        for seed, shift in enumerate((-0.4, -0.2, 0.0, 0.2, 0.4)):
            more = dict(table="made_up", selection="last", seed=seed, value=mean + shift)
            lines.append(stored_row(**ids, **more))
    (folder / "results").mkdir(exist_ok=True)
    records.record("made", pd.DataFrame(lines), folder / "results")
    return dict(folder=folder / "results", paper=folder)


def test_contrasts_are_judged_between_half_and_double_of_the_print(folder):
    where = stored(folder, one_ours=88.0, one_theirs=81.0, two_ours=76.0, two_theirs=75.0)
    found = report.contrasts(SPEC, **where).set_index(["setting", "contrast"])
    assert len(found) == 3
    near = found.loc["one", "ours - theirs"]
    assert (near["printed"], near["ours"]) == pytest.approx((10, 7))
    assert near["low"] == pytest.approx(7) == near["high"], "seeds pair, and the noise cancels"
    assert near["verdict"] == verdict.REPRODUCED
    assert found.loc["one", "ours - third"]["verdict"] == power.NO_CONTRAST, "0.1 +- 0.3"
    assert found.loc["two", "ours - theirs"]["verdict"] == verdict.DIFFERS, "the other sign"
    few = report.contrasts(SPEC, **stored(folder, one_ours=84.0)).set_index("setting")
    assert few.loc["one"].iloc[0]["verdict"] == verdict.DIFFERS, "3 of 10 is less than half"
    shown = page("scoreboard")
    board = shown.contrasts([SPEC], **where)
    assert board.iloc[0][["printed", "reproduced", "differs"]].tolist() == [3, 0, 2]
    assert board.iloc[0][power.NO_CONTRAST] == 1
    lines = shown.markdown(board, "contrasts").splitlines()
    assert lines[-1] == "| the print leaves it open | 1 |"


def test_a_contrast_is_of_the_seeds_that_both_have(folder):
    """Two others, of one side, would move the mean and be paired with nothing."""
    where = stored(folder, one_ours=90.0, one_theirs=80.0)
    path = where["folder"] / "made.csv"
    rows = records.load("made", where["folder"])
    ours, seed = rows["method"] == "ours", rows["seed"].astype(int)
    rows.loc[~ours, "value"] -= 0.1 * seed[~ours]
    gone = (ours & (seed == 1)) | (~ours & (seed > 2))
    ended = rows[gone & ours].assign(metric="diverged", value=7.0)

    def found(some):
        path.unlink()
        records.record("made", some, where["folder"])
        contrast = report.contrasts(SPEC, **where).set_index("contrast").loc["ours - theirs"]
        board = page("scoreboard").contrasts([SPEC], **where).iloc[0]
        cell = report.table(SPEC, **where).set_index("row").loc["ours, one"]
        return contrast.iloc[0] if contrast.ndim > 1 else contrast, board, cell

    line, board, cell = found(rows[~gone])
    assert (line["seeds"], line["lost"], line["ours"]) == (2, 0, pytest.approx(10.1))
    counts = ["reproduced", f"of these {scoreboard.EARLY}"]
    assert board[counts].tolist() == [1, 1] and cell["lost"] == 0
    line, board, cell = found(pd.concat([rows[~gone], ended]))
    assert (line["seeds"], line["lost"]) == (2, 1) and (cell["seeds"], cell["lost"]) == (4, 1)
    assert board[counts].tolist() == [1, 0], "three have run"
    assert "(4 of 5, others diverged)" in report.display(report.table(SPEC, **where))
    alone = rows[(ours & (seed == 0)) | (~ours & (seed < 2))]
    line, *_ = found(alone)
    assert (line["seeds"], line["verdict"]) == (1, verdict.INCONCLUSIVE)
    apart = rows[(ours & (seed < 2)) | (~ours & (seed > 2))]
    line, *_ = found(apart)
    assert line["seeds"] == 2 and line["low"] < line["ours"] < line["high"], "Welch's"


def test_a_reproduced_cell_names_the_rivals_that_would_be_too(folder):
    means = dict(one_ours=90.0, one_theirs=80.0, one_third=90.1, two_ours=70.0, two_theirs=70.0)
    table = report.table(SPEC, **stored(folder, **means)).set_index("row")["rivals"]
    assert table["ours, one"] == "1 of 2: third" == table["third, one"].replace("ours", "third")
    assert table["theirs, one"] == "0 of 2: "
    assert table["ours, two"] == "1 of 1: theirs" and table["theirs, two"] == "", "not reproduced"
    where = dict(folder=folder / "results", paper=folder)
    names = ["printed", "reproduced", scoreboard.DIFFERENT, scoreboard.TOLD]
    for specs, due in (([SPEC], [5, 4, 4, 1]), ([SPEC, replace(SPEC)], [10, 8, 4, 1])):
        counts = scoreboard.scoreboard(specs, **where).iloc[0]
        assert counts[names].tolist() == due, "what is printed twice beside the same runs is one"
    assert "1 of 2 other rows would match too" in report.display(report.table(SPEC, **where))


def test_cells_of_few_vague_runs_are_out_of_reach_before_anything_runs(tmp_path):
    assert power.reachable(0.3, 3, 1.0) and not power.reachable(0.45, 3, 1.0)
    for sd, said in ((0.0, verdict.INCONCLUSIVE), (0.69, verdict.REPRODUCED)):
        ours = 50 + sd * np.tile([-1.0, 1.0], 5) * np.sqrt(0.9)  # ten runs that hit 50.0 +- 0.4
        assert comparison.compare(50.0, 0.4, 3, ours, 1.0).verdict == said
    assert power.reachable(0.4, 3, 1.0), "some spread of ours lends degrees of freedom"
    assert power.reachable(7.0, 10, 1.0), "of ten runs the margin is the wider"
    assert power.reachable(np.nan, 3, 1.0) and power.reachable(2.0, None, 1.0)
    office = TABLES["fade_table1_office"]
    vague = cells(office).query("paper_sd > 2 and paper_sd < 4").iloc[0]
    for far, expected in ((0.0, verdict.UNREACHABLE), (40.0, verdict.DIFFERS)):
        ours = vague["paper"] + far + np.array([-0.1, 0.0, 0.1])
        found, why = power.judged(office, vague, ours, 1.0)  # what differs does so in any case
        assert (found.verdict, why) == (expected, "")
    office = report.table(office, folder=tmp_path)
    said = office[office["paper_sd"].notna() & (office["protocol"] == "as_described")]
    assert len(said) == 54 and (said["verdict"] == verdict.UNREACHABLE).sum() == 35


@pytest.mark.parametrize(
    "ours, said",
    [
        ([89.4, 90.0, 90.6], "underpowered, 5 seeds would do"),
        ([90.2, 90.8], "underpowered, 10 seeds would do"),
        ([91.01, 91.0, 90.99], "truly between"),
        ([90.0], "one seed"),
        ([90.0, 90.1, 89.9], ""),
    ],
)
def test_inconclusive_says_which_it_is(ours, said):
    found = comparison.compare(90.0, None, None, ours, 1.0)
    sd = float(np.std(ours, ddof=1)) if len(ours) > 1 else np.nan
    assert power.why(found, sd, len(ours), np.nan, None) == said


def test_pooled_deviations_are_read_at_both_ends(folder):
    means = dict(one_ours=90.0, one_theirs=80.0, one_third=90.1)
    where = stored(folder, **means)
    (folder / "made_up.csv").write_text(PRINTED.replace("0.3", "20.0"))
    found = report.contrasts(SPEC, **where).set_index("contrast")["verdict"]
    assert set(found) == {power.NO_CONTRAST}
    pooled = replace(SPEC, pooled=100)  # over runs and 100 devices: 2.0 by the other reading
    found = report.contrasts(pooled, **where).set_index("contrast")["verdict"]
    assert found["ours - theirs"].iloc[0] == verdict.INCONCLUSIVE, "one reading says so"
    assert found["ours - third"] == power.NO_CONTRAST, "both do"
    assert found["ours - theirs"].iloc[1] == verdict.NOT_RUN


def test_rivals_of_a_pooled_cell_are_judged_as_it_is(folder):
    where = stored(folder, one_ours=90.0, one_theirs=91.5, one_third=90.1)
    (folder / "made_up.csv").write_text(PRINTED.replace("0.3", "2.0"))
    said = [
        report.table(spec, **where).set_index("row").loc["ours, one", "rivals"]
        for spec in (SPEC, replace(SPEC, pooled=100))
    ]
    assert said == ["2 of 2: theirs, third", "1 of 2: third"]


def test_a_printed_fall_is_judged_as_a_printed_rise():
    for sign in (1, -1):
        ends = sorted((sign * 1.5, sign * 2.5))
        judged = [power._judged(2.0 * sign, ends, sorted((sign * a, sign * b)), 3)
                  for a, b in ((1.1, 3.9), (0.5, 0.9), (0.5, 1.5))]  # fmt: skip
        assert judged == [verdict.REPRODUCED, verdict.DIFFERS, verdict.INCONCLUSIVE]
    equal = [power._judged(2.0, (1.5, 2.5), (2.0, 2.0), runs) for runs in (2, 3)]
    assert equal == [verdict.INCONCLUSIVE, verdict.REPRODUCED]


@pytest.mark.parametrize(
    ("print_", "off", "sd", "many"),
    [
        ((0.9, 3), (-0.4, 0.0, 0.4), 0.4, {(0.9, 3): 0, (np.nan, None): 5}),  # by its variance
        ((np.nan, None), (1.5, 2.0, 2.5), 0.5, {(np.nan, None): 5}),  # they would show a difference
        ((np.nan, None), (-1.5, -2.0, -2.5), 0.5, {(np.nan, None): 5}),
    ],
)
def test_seeds_that_would_do(print_, off, sd, many):
    found = comparison.compare(90.0, *print_, 90 + np.array(off), 1.0)
    assert found.verdict == verdict.INCONCLUSIVE
    assert {own: power.enough(found, sd, 3, *own) for own in many} == many


def test_runs_are_paired_by_seed_and_those_of_other_seeds_compared_by_welch():
    a, b = pd.Series([1.0, 5.0, 9.0], [0, 1, 2]), pd.Series([8.0, 4.0, 0.0], [2, 1, 0])
    found = power._ours(a, b)
    assert (found.estimate, found.low, found.high) == pytest.approx((1, 1, 1))
    b = pd.Series([8.0, 4.0, 0.5], [3, 4, 5])
    expected = stats.ttest_ind(a, b, equal_var=False).confidence_interval(0.95)
    found = power._ours(a, b)
    ends = found.estimate, found.low, found.high
    assert ends == pytest.approx((a.mean() - b.mean(), expected.low, expected.high))
    assert power._ours(a, b[:2]).estimate == pytest.approx(5 - 6)


@pytest.mark.parametrize("which", ["ours", "theirs"])
def test_a_contrast_on_stand_in_data_of_either_says_so(folder, which):
    means, made = {"ours": 88.0, "theirs": 81.0}, {which: "clips"}
    runs = {
        ("one", name, "acc", *DONE): (pd.Series([m - 0.1, m, m + 0.1]), made.get(name, ""))
        for name, m in means.items()
    }
    found = power.contrasts(SPEC, runs, *DONE, folder=folder).iloc[0]
    assert found["verdict"] == f"{verdict.STAND_IN} (clips)"


def test_contrasts_of_one_table_share_their_variance():
    spec = TABLES["lgfedavg_v2_table8_cifar10"]
    found = report.contrasts(spec)
    mine = found[found["seeds"].between(3, 5) & (found["metric"] == "local_test_acc")]
    runs = report.runs_of(spec, records.load(spec.experiments), "paper")
    place = ("local_test_acc", *spec.headline)
    named = {
        row_name(dict(zip(spec.ids, key, strict=False))): values
        for key, (values, _) in runs.items()
        if key[-3:] == place
    }
    widths = []
    for line in mine.to_dict("records"):
        alone = power._ours(*named[line["row"]].align(named[line["less"]], "inner"))
        assert line["ours"] == pytest.approx(alone.estimate)
        widths.append((line["high"] - line["low"]) / (alone.high - alone.low))
    assert np.median(widths) < 0.9 and len(widths) > 5
