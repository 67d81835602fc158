"""Numbers with a huge printed deviation are judged on who collapsed, and on the others."""

from dataclasses import replace

import numpy as np
import pytest

from lgfed_core.evidence import collapse, comparison, verdict
from lgfed_core.evidence.printed import cells
from lgfed_core.papers.printed import TABLES

PRINTED = collapse.Groups(runs=10, collapsed=2, guess=10.0, mean=60.0, sd=2.0)
CELLS = [(spec, cell) for spec in TABLES.values() for cell in cells(spec).to_dict("records")]
RULED = [(spec, cell, g) for spec, cell in CELLS if (g := collapse.groups_of(spec, cell))]


@pytest.mark.parametrize("fell", range(4))
def test_runs_that_make_a_print_are_found_again(fell):
    runs = np.r_[np.full(fell, 10.0), np.linspace(58, 62, 10 - fell)]
    found = collapse.groups(runs.mean(), runs.std(), 10, guess=10.0)
    assert (found.collapsed, found.mean) == (fell, pytest.approx(60))
    assert found.sd == pytest.approx(runs[fell:].std())
    assert found.fell(runs).sum() == fell


def test_the_others_of_a_print_have_a_variance_of_their_own():
    """Table 3's 32.01 +- 6.24 has room for no run of ten at 10, which alone would give 7.34."""
    found = collapse.groups(32.01, 6.24, 10, guess=10.0)
    assert (found.collapsed, found.mean) == (0, pytest.approx(32.01))
    assert found.sd == pytest.approx(6.24)
    for spec, cell, found in RULED:
        left = found.runs / found.others * cell["paper_sd"] ** 2
        left -= found.collapsed / found.runs * (found.mean - found.guess) ** 2
        assert left > -0.1, (spec.name, cell["row"])


@pytest.mark.parametrize(
    ("ours", "said"),
    [
        ([12, 59, 60, 61, 60], verdict.REPRODUCED),  # 1 of 5 against 2 of 10
        ([59, 60, 61, 60, 58], verdict.INCONCLUSIVE),  # none: more than a tenth from two tenths
        ([11, 9, 10, 12, 60, 61, 59, 10, 10, 10], verdict.INCONCLUSIVE),  # 7 of 10, p = 0.07
        ([11, 9, 10, 12, 60, 61, 10, 10, 10, 10], verdict.DIFFERS),  # 8 of 10, p = 0.02
        ([12, 79, 80, 81, 80], verdict.DIFFERS),  # the others lie elsewhere
        ([60], verdict.INCONCLUSIVE),
        ([10, 10], verdict.INCONCLUSIVE),  # of the others nothing is known
        ([], verdict.NOT_RUN),
    ],
)
def test_share_and_others_decide_together(ours, said):
    assert collapse.compare(PRINTED, ours)[0].verdict == said


def test_words_count_those_that_did_not_collapse():
    found, words = collapse.compare(PRINTED, [12, 59, 61])
    print_ = "the paper's mean and deviation fit 8 of 10 runs around 60.00"
    assert words == f"of the 2 of 3 runs that did not collapse (60.00); {print_}"
    _, none = collapse.compare(PRINTED, [12])
    assert none.startswith("of the 0 of 1 runs that did not collapse;")
    assert (found.difference, found.margin) == (pytest.approx(0), collapse.WIDE)
    scattered = replace(PRINTED, sd=4.0)
    assert collapse.compare(scattered, [12, 59, 61])[0].margin == collapse.WIDE, "and not 2 x 4"


def test_a_print_of_one_other_or_of_scattered_others_is_out_of_reach():
    for print_ in (collapse.Groups(3, 2, 10.0, 60.0, 0.0), collapse.Groups(3, 1, 10.0, 60.0, 17.0)):
        assert not print_.reachable
        assert collapse.compare(print_, [60, 60, 60])[0].verdict == verdict.UNREACHABLE
    one = collapse.Groups(3, 2, 10.0, 60.0, 0.0)
    ours = [10, 10, 10, 10, 59.9, 60.1, 60]  # as in print, of which a single run tells the mean
    assert collapse.compare(one, ours)[0].verdict == verdict.UNREACHABLE
    assert collapse.compare(one, [75, 75.1, 75.2])[0].verdict == verdict.DIFFERS


def test_the_rule_holds_for_ten_cells_and_no_others():
    assert len(RULED) == 10
    rows = [cell["row"] for spec, cell, _ in RULED if spec.name == "lgfedavg_v2_table6_mnist"]
    assert sorted(rows) == [f"{n} classes, local only" for n in (2, 3, 4)]
    for spec, cell, found in RULED:  # a mean that is no better than guessing is no mixture with it
        assert collapse.groups_of(spec, cell | {"paper": found.guess}) is None
    office = {found.guess for spec, _, found in RULED if spec.name == "fade_table1_office"}
    assert office == {100 / 31, 100 / 65}


def test_a_share_of_collapsed_runs_at_the_edge_is_near():
    """4 of 10 is as near to 3 of 10 as one printed run goes; 0.4 - 0.3 is a rounding more."""
    printed = collapse.Groups(runs=10, collapsed=3, guess=10.0, mean=80.0, sd=1.0)
    ours = [10] * 4 + [79.9, 80.1, 80.0, 79.8, 80.2, 80.0]
    assert collapse.compare(printed, ours)[0].verdict == verdict.REPRODUCED


def test_the_others_mean_has_as_many_runs_as_there_are_others():
    found = collapse.compare(PRINTED, [10, 59, 60, 61])[0]
    due = comparison.compare(60.0, 2.0, 8, [59, 60, 61], collapse.WIDE)
    assert (found.low, found.high) == pytest.approx((due.low, due.high))
