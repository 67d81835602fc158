"""Words that follow intervals."""

import pandas as pd
import pytest

from lgfed_core.papers.in_words import bullets, sentence

NOTHING = pd.Series([0.0, 0.0, 0.0])


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ((1.0, 1.1, 1.2), "a, more: +1.10 [+0.85, +1.35] (3)"),  # t(0.975, 2) = 4.303
        ((-1.0, -1.1, -1.2), "a, less: -1.10 [-1.35, -0.85] (3)"),
        ((-1.0, 1.0, 2.0), "a, not shown to be more or less: +0.67 [-3.13, +4.46] (3)"),
        ((5.0,), "a, one seed alone: +5.00 (1)"),
        ((float("nan"), 5.0), "a, one seed alone: +5.00 (1)"),
        ((), "not yet run"),
    ],
)
def test_the_word_follows_the_interval_and_one_seed_shows_nothing(values, said):
    pair = ("a", pd.Series(values, dtype=float), NOTHING)
    assert sentence("**A**", [pair]) == f"**A**: {said}."


def test_a_sentence_joins_its_pairs_and_leaves_out_what_has_too_few_seeds():
    some, one = pd.Series([1.0, 2.0, 3.0]), pd.Series([9.0])
    said = sentence("**A**", [("a", some, NOTHING), ("b", one, NOTHING)], fewest=2)
    assert said.startswith("**A**: a, not shown") and ";" not in said
    wide = sentence("**A**", [("a", some, NOTHING)], ("up", "down", "open"), shared=0.5, digits=1)
    assert wide == "**A**: a, open: +2.0 [-1.9, +5.9] (3)."  # 4.303 (1/3 + 1/2)^(1/2)
    assert bullets([said, "", wide]).count("\n") == 1


def test_many_pairs_are_a_list_by_word():
    up, down, wide = (pd.Series(v) for v in ([1.0, 1.1, 1.2], [-1.0, -1.1, -1.2], [-1.0, 1.0, 2.0]))
    pairs = [("a", up, NOTHING), ("b", down, NOTHING), ("c", wide, NOTHING), ("d", up, NOTHING)]
    said = sentence("**A**", [*pairs, ("e", pd.Series([5.0]), NOTHING)])
    assert said.split("\n") == [
        "**A**:",
        "   - **more**: a +1.10 [+0.85, +1.35] (3); d +1.10 [+0.85, +1.35] (3).",
        "   - **less**: b -1.10 [-1.35, -0.85] (3).",
        "   - **not shown to be more or less**: c +0.67 [-3.13, +4.46] (3).",
        "   - **one seed alone**: e +5.00 (1).",
    ]
