"""Tables of differences: paired seeds, one sign, bold where the interval leaves out zero."""

import pandas as pd

from lgfed_core.evidence import answers
from lgfed_core.evidence.claims import Comparison
from lgfed_core.evidence.display import places
from lgfed_core.evidence.verdict import exact, greater
from lgfed_core.papers.differences import lines, table, tables

A = pd.Series({0: 5.0, 1: 5.2, 2: 5.1, 3: 50.0, 9: 100.0})
ZERO = pd.Series({0: 0.0, 1: 0.0, 2: 0.0, 3: float("nan")})


def test_seeds_are_paired_and_what_is_told_is_bold():
    wild = pd.Series({0: -1.0, 1: 1.0, 2: 0.1})
    text = table("a < b", [("up", A, ZERO), ("down", -A, ZERO), ("level", wild, ZERO)])
    assert "<summary>a &lt; b</summary>" in text
    assert "<td>up</td><td><b>+5.10</b></td><td>+4.85 to +5.35</td><td>3</td>" in text
    assert "<td>down</td><td><b>-5.10</b></td>" in text
    assert "<td>level</td><td>+0.03</td><td>" in text


def test_one_seed_has_no_interval_and_shows_nothing():
    text = table("t", [("one", A.iloc[:1], ZERO)], digits=1)
    assert "<td>one</td><td>+5.0</td><td></td><td>1</td>" in text and "<b>" not in text


def test_what_has_not_run_is_left_out_or_said():
    none = pd.Series(dtype=float)
    assert table("t", [("x", none, ZERO)]) == "<p>t: not yet run.</p>"
    text = table("t", [("x", none, ZERO), ("y", A, ZERO)])
    assert "<td>x</td>" not in text and "<td>y</td>" in text


def test_small_numbers_keep_digits_and_what_has_no_chance_says_so():
    small = greater([0.00029, 0.00030, 0.00031])
    found = lines("t", [("small", small, 3), ("proof", exact(2.7726, False), 2)])
    assert "<td><b>+0.00030</b></td><td>+0.00028 to +0.00032</td><td>3</td>" in found
    assert "<td>proof</td><td><b>+2.77</b></td><td>exact</td><td></td>" in found
    assert places(2, [float("inf"), float("nan"), 0.001]) == 4 and places(2, [float("inf")]) == 2
    nothing = lines("t", [("zero", greater([0.0, 0.0]), 2), ("one", greater([0.004, -0.5]), 2)])
    assert "<td>zero</td><td>+0.00</td><td>+0.00 to +0.00</td><td>2</td>" in nothing
    assert "<td>one</td><td>-0.25</td>" in nothing


def test_comparisons_of_a_claim_say_their_outcome_beside_an_interval_that_is_not_corrected():
    some = answers.settings([Comparison("up", 3, greater([5.0, 5.1, 5.2]))])
    found = lines("t", ((line.name, line, line.runs) for line in some.itertuples()))
    assert "<th>outcome</th>" in found and "<td>as claimed</td></tr>" in found
    assert "not corrected" in found and "outcome" not in table("t", [("up", A, ZERO)])


def test_a_notebook_shows_them_as_html():
    several = tables([table("a", []), table("b", [("x", A, ZERO)])])
    assert several._repr_html_() == several and several.count("<table") == 1
