"""Verdicts by setting, and answers that stand or fall."""

import pytest

from lgfed_core.evidence import answers, verdict
from lgfed_core.evidence.claims import Claim, Comparison

YES, NO = verdict.t_test(2, 0.1, 2, 0.58), verdict.t_test(-2, 0.1, 2, 0.58)
UNSURE, NEAR = verdict.t_test(0.1, 5, 2, 0.58), verdict.t_test(0.01, 0.1, 2, 0.58)
RAN = {"yes": YES, "no": NO, "unsure": UNSURE, "near": NEAR}


def told(words: str, **more) -> answers.Told:
    """A claim whose comparisons are of `RAN`; "-" has not run."""
    parts = [
        Comparison(f"{i} {word}", 0, verdict.NO_EVIDENCE)
        if word == "-"
        else Comparison(f"{i}", 3, RAN[word])
        for i, word in enumerate(words.split())
    ]
    said = {k: more.pop(k) for k in ("stand_in", "short") if k in more}
    claim = Claim("X1", "page", "words", lambda _: parts, **more)
    return answers.told([claim], None, **said)["X1"]


@pytest.mark.parametrize(
    ("words", "said"),
    {
        "yes yes": "holds",
        "yes unsure": "holds where settled (1 of 2 comparisons, the rest open)",
        "yes no unsure": "holds in part (1 of 3 comparisons)",
        "no unsure": "does not hold",
        "unsure -": "open",
        "": "open",
    }.items(),
)
def test_every_verdict(words, said):
    assert told(words).words == said
    assert told(words).verdict == next(v for v in answers.VERDICTS[::-1] if said.startswith(v))


def test_holm_is_over_the_comparisons_of_the_claim():
    weak = verdict.t_test(1, 1, 10, 0.5)  # p = 0.037
    assert 0.025 < weak.p < 0.05
    alone = answers.settings([Comparison("a", 3, weak)])
    both = answers.settings([Comparison("a", 3, weak), Comparison("b", 3, weak)])
    assert list(alone["outcome"]) == [answers.AS_CLAIMED]
    assert list(both["outcome"]) == [answers.UNTOLD] * 2
    assert both["p"][0] == pytest.approx(2 * weak.p)


def test_comparisons_that_are_not_named_count_as_open_and_data_sets_stand_apart():
    claim = Claim("X1", "page", "words", lambda _: [], where="audio")
    assert answers.key(claim) == "X1, audio"
    one = told("yes", total=3)
    assert one.counts == (1, 0, 2)
    assert one.words == "holds where settled (1 of 3 comparisons, the rest open)"
    assert one.lines["p"][0] == pytest.approx(min(1, 3 * YES.p))


def test_level_is_within_a_margin_that_the_claim_names():
    assert list(told("near").lines["outcome"]) == ["open"]
    assert list(told("near", level=1.0).lines["outcome"]) == ["level"]
    assert told("near", level=1.0).verdict == answers.FAILS
    assert told("yes near", level=1.0).verdict == answers.IN_PART


@pytest.mark.parametrize(
    ("words", "said"), {"yes yes": "holds", "yes no": "does not hold", "yes unsure": "open"}.items()
)
def test_conditions_of_one_sentence_hold_together_or_not_at_all(words, said):
    assert told(words, together=True).words == said


def test_tags_are_of_what_has_run():
    assert told("yes", stand_in="easy-VQA").tags == ("stand-in data (easy-VQA)",)
    assert told("yes", short={"X1": "500 rounds"}).tags == ("shortened runs (500 rounds)",)
    assert told("-", stand_in="easy-VQA").tags == ()


@pytest.mark.parametrize(
    ("words", "answer", "guard", "stands"),
    [
        ("yes yes", "**Yes.** So.", lambda t: t.tally(2), True),
        ("yes yes", "**No.** So.", lambda t: t.tally(2), False),
        ("yes yes", "Certainly.", lambda t: True, False),
        ("yes yes", "**Yes.** So.", lambda t: t.tally(1), False),
        ("yes yes", "**Yes.** So.", lambda t: t.between(1, 3), True),
        ("yes yes", "**Yes.** So.", lambda t: t.between(1, 3, at="elsewhere"), False),
        ("yes yes", "**Yes.** So.", lambda t: t.nothing["there"], None),
        ("yes yes", "**Yes.** So.", lambda t: t.lines.loc["nowhere"], False),
        ("yes -", "**Yes in 1 of 2 comparisons.** So.", lambda t: t.tally(1, 0, 1), False),
        ("yes -", "**Yes in 1 of 2 comparisons.** So.", lambda t: t.tally(1, 0, 1, ran=1), True),
        ("yes - -", "**Yes in 1 of 3 comparisons.** So.", lambda t: True, False),
        ("yes - -", "**Mostly open: yes in 1 of 3 comparisons.** So.", lambda t: True, True),
        ("yes -", "**Mostly open: yes in 1 of 2 comparisons.** So.", lambda t: True, False),
    ],
)
def test_an_answer_stands_by_its_first_word_and_its_guard(words, answer, guard, stands):
    assert not told("yes", answer="**Yes.** So.").stands(), "without a guard nothing does"
    one = told(words, answer=answer, guard=guard)
    if stands is None:  # a slip in the guard itself is heard
        with pytest.raises(AttributeError):
            one.stands()
    else:
        assert one.stands() is stands


def test_variances_are_shared_within_a_family_alone():
    some = [verdict.greater(v) for v in ([1.0, 2.0, 4.0], [0.1, 0.2, 0.6], [5.0, 9.0, 2.0])]
    parts = [Comparison(f"{i}", 3, one) for i, one in enumerate(some)]
    claims = {f: Claim("X1", "page", "words", lambda _: parts, family=f) for f in ("", "all")}
    found = {f: answers.told([claim], None)["X1"].lines for f, claim in claims.items()}
    assert list(found[""]["low"]) == [one.low for one in some]
    assert list(found["all"]["low"]) != [one.low for one in some]
