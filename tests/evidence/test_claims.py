"""A claim from its comparisons: what is missing, Holm's correction, and the words for both."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from lgfed_core.errors import ResultsError
from lgfed_core.evidence import claims, verdict
from lgfed_core.evidence.claims import Claim, Comparison, judged, said
from lgfed_core.evidence.verdict import NO_EVIDENCE, Evidence, greater, rising

GOOD = Evidence(2.0, 1.0, 3.0, 1e-6, 1.0)
BAD = Evidence(-2.0, -3.0, -1.0, 1.0, 1e-6)
WEAK = Evidence(0.5, -0.1, 1.1, 0.2, 0.8)


def line(parts, total=0, **how):
    """The line of one claim with these (runs, evidence), and of one beside it that is certain."""
    some = [Comparison(f"part {n}", *part) for n, part in enumerate(parts)]
    claim = Claim("X1", "a page", "words", lambda found: some, total)
    sure = Claim("X2", "a page", "", lambda found: [Comparison("all", 9, GOOD)])
    return judged([claim, sure], None, **how).loc["X1"]


@pytest.mark.parametrize(
    ("parts", "total", "words"),
    [
        ([(3, GOOD)] * 2, 0, "confirmed"),
        ([(3, GOOD), (3, WEAK)], 0, "inconclusive"),
        ([(3, GOOD), (3, BAD)], 0, "refuted"),
        ([(3, GOOD)] * 2, 10, "confirmed so far, 2 of 10 comparisons"),
        ([(3, GOOD), (0, NO_EVIDENCE)], 0, "confirmed so far, 1 of 2 comparisons"),
        ([(3, BAD), (0, NO_EVIDENCE)], 0, "refuted"),
        ([(1, WEAK)], 0, "inconclusive so far, 1 of 1 comparisons, one seed"),
        ([(0, NO_EVIDENCE)] * 10, 0, "not yet run"),
    ],
)
def test_the_sentence_says_what_is_missing(parts, total, words):
    assert line(parts, total)["said"] == words


def test_a_claim_is_as_good_as_its_weakest_comparison_that_has_run():
    found = line([(5, GOOD), (3, WEAK), (0, NO_EVIDENCE)])
    assert found[["estimate", "low", "high"]].tolist() == [0.5, -0.1, 1.1]
    assert found[["at", "ran", "parts", "runs"]].tolist() == ["part 1", 2, 3, 3]
    assert found[["verdict", "so_far"]].tolist() == ["inconclusive", "inconclusive"]
    assert found["p"] == 1.0  # the missing one decides
    less = replace(GOOD, estimate=1.5)
    for parts in ([(3, GOOD), (3, less)], [(3, less), (3, GOOD)]):
        assert line(parts)["estimate"] == 1.5, "of equals the smaller"


def test_one_run_does_not_stand_before_what_refutes_a_claim():
    alone = Evidence(28.2, np.nan, np.nan)  # of one seed: p is 1, whatever it says
    found = line([(1, alone), (3, GOOD), (3, BAD)])
    assert (found["at"], found["estimate"]) == ("part 2", BAD.estimate)
    assert found["verdict"] == "refuted"
    assert line([(1, alone), (3, GOOD)])["at"] == "part 0"


def test_analyses_that_differ_decide_nothing_and_those_that_agree_do():
    def one(*tests):
        return claims.agreed([Comparison("a over b", 3 + n, t) for n, t in enumerate(tests)])

    turned = one(GOOD, BAD)
    assert (turned.name, turned.runs) == ("a over b", 3)
    assert turned.evidence == Evidence(-2.0, -3.0, 3.0, 1.0, 1.0)  # the weaker one's estimate
    assert one(BAD, GOOD).evidence == Evidence(-2.0, -3.0, 3.0, 1.0, 1.0)
    assert one(GOOD, WEAK).evidence.p == 0.2 and one(GOOD, GOOD).evidence == GOOD
    assert one(BAD, BAD).evidence.p_against == 1e-6
    assert np.isnan(one(GOOD, Evidence(1.0, np.nan, np.nan)).evidence.low)  # a single run


def test_holm_is_over_the_claims_that_are_judged_together():
    p = [0.03, 0.04]
    some = [
        Claim(f"X{n}", "", "", lambda found, p=p: [Comparison("", 5, Evidence(1, 0, 2, p, 1.0))])
        for n, p in enumerate(p)
    ]
    assert judged(some[:1], None)["said"].tolist() == ["confirmed"]
    both = judged(some, None)
    assert both["p"].tolist() == pytest.approx([0.06, 0.06])
    assert both["said"].tolist() == ["inconclusive"] * 2


def test_runs_without_a_number_are_none():
    assert claims.tested("x", [1.0, np.nan, 2.0], greater).runs == 2
    lines = [[1.0, 2.0], [np.nan, 2.0]]
    assert claims.tested("x", np.array(lines), lambda y: rising([0.0, 1.0], y)).runs == 1
    assert claims.tested("x", [], greater).runs == 0


def test_only_seeds_of_both_are_paired_and_none_that_is_there_twice():
    a = pd.Series([1.0, 2.0, np.nan, 4.0], [0, 1, 2, 3])
    b = pd.Series([0.5, np.nan, 0.5, 0.5], [0, 1, 2, 4])
    part = claims.paired("a over b", a, b, greater)
    assert (part.runs, part.evidence.estimate) == (1, 0.5)
    with pytest.raises(ResultsError, match="a over b: seed 1 has several values"):
        claims.paired("a over b", pd.Series([1.0, 2.0, 5.0], [0, 1, 1]), a, greater)


def test_a_claim_that_names_no_comparison_is_left_out():
    nothing = judged([Claim("X1", "", "", lambda found: [])], None)
    assert nothing.empty
    assert [*claims.named(nothing)] == ["estimate", "low", "high", "p", "p_against", "verdict"]


def test_stand_ins_are_said():
    for stand_in in ("clips", {"X1": "clips"}):
        words = line([(3, GOOD)], stand_in=stand_in)["said"]
        assert words == "on stand-in data (clips): confirmed"
    assert line([(3, GOOD)], stand_in={"X2": "clips"})["said"] == "confirmed"


@pytest.mark.parametrize(
    ("found", "how", "words"),
    [
        (Evidence(1.234, 0.5, 2), {}, "+1.23 [+0.50, +2.00]"),
        (Evidence(-0.001, -1, 1), {"runs": 3}, "+0.00 [-1.00, +1.00] (3)"),
        (Evidence(1.0, np.nan, np.nan), {"runs": 1}, "+1.00 (1)"),
        (NO_EVIDENCE, {"runs": 0}, "not yet run"),
        (pd.Series({"estimate": 1, "low": 0, "high": 2}), {}, "+1.00 [+0.00, +2.00]"),
    ],
)
def test_an_estimate_in_words(found, how, words):
    assert said(found, **how) == words


def test_a_comparison_without_chance_does_not_count_as_few_runs():
    found = line([(claims.SURE, verdict.exact(1.0, True)), (5, GOOD)])
    assert (found["runs"], found["said"]) == (5, "confirmed")
    alone = line([(claims.exact("", 1.0, True).runs, verdict.exact(1.0, True))])
    assert alone["said"] == "confirmed"


def test_short_runs_only_suggest():
    some = [Comparison("", 3, GOOD)], [Comparison("", 0, NO_EVIDENCE)]
    asked = [Claim(f"X{n}", "", "", lambda f, parts=parts: parts) for n, parts in enumerate(some)]
    lines = judged(asked, None)
    told = claims.only_suggested(lines, "5 rounds")
    assert told["verdict"].tolist() == ["suggested", "not yet run"]
