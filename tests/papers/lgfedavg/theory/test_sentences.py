"""What the page on the theory takes home, from made-up tables."""

import pandas as pd

from lgfed_core.papers.lgfedavg.theory import claims, sentences

WRONG = {"caption": "local", "printed": "global", "measured": "local"}


def test_the_worse_model_is_named_where_a_formula_or_caption_calls_it_better():
    rows = [dict(sigma=1.5, rho=0.1) | WRONG, dict(sigma=1.5, rho=0.06) | WRONG]
    said = sentences.captions(pd.DataFrame(rows))
    assert "formula in 2 of 2 (σ = 1.5 and ρ = 0.1, σ = 1.5 and ρ = 0.06)" in said
    assert "captions in 0 of 2;" in said and "ties: 0." in said
    rows[1]["measured"] = "tie"
    assert "formula in 1 of 1 (σ = 1.5 and ρ = 0.1)" in sentences.captions(pd.DataFrame(rows))


def test_the_paragraphs_have_the_verdicts_and_the_largest_distance():
    ids = ("L10", "L11", "L20", "L11, with the corrected weight")
    verdicts = pd.Series(dict(zip(ids, ("open", "refuted", "kept", "right"), strict=True)))
    columns = ["inputs", "sigma", "rho", "printed", "measured", "se", "z"]
    lines = [("cube", 1.5, 0.1, 0.2, 0.5, 0.01, 1.0), ("sphere", 1.5, 0.1, 0.5, 0.5, 0.01, -2.5)]
    weights = pd.DataFrame(lines, columns=columns)
    said = sentences.of(verdicts, weights, pd.Series([-1.0, 30.0]), 0.169).split("\n\n")
    assert said[0].startswith("**L10 open.**") and "-1 to 30 % less" in said[0]
    assert "up to 0.30 (cube $x$" in said[1] and "by 30 standard errors" in said[1]
    assert "corrected one is right: |z| at most 2.50 in 2 settings" in said[1]
    assert said[2].startswith("**L20 kept**") and "0.1690 nats" in said[2]


def test_estimates_have_units_and_l20_its_limit():
    lines = claims.from_stored()
    assert lines.loc["L20", "said"] == "refuted" + claims.LIMITS["L20"]
    assert not lines.loc[["L10", "L11"], "said"].str.contains("as stated").any()
    for id, unit in (("L10", "squared error"), ("L11", "weight, of 0 to 1"), ("L20", "nats")):
        assert unit in lines.loc[id, "words"]
