"""What intervals of shared variances promise, measured."""

import numpy as np
import pandas as pd
import pytest

from lgfed_core.evidence import coverage
from lgfed_core.evidence.coverage import CAPPED, FREE, STUDENT


@pytest.fixture(scope="module")
def found():
    return coverage.simulated(draws=300)


def test_students_t_covers_what_it_says_where_runs_are_normal(found):
    assert found.xs(STUDENT, level="rule")["coverage"].between(0.94, 0.96).all()


def test_the_capped_rule_covers_93_of_95_and_is_narrower(found):
    capped = found.xs(CAPPED, level="rule")
    assert (capped["coverage"] > 0.93).all()
    assert (capped["width"] < 0.9).all()
    assert capped.loc[3, "width"] < 0.75


def test_without_a_cap_too_much_is_promised(found):
    free, capped = (found.xs(rule, level="rule")["coverage"] for rule in (FREE, CAPPED))
    assert (free < capped).all()


def test_a_wrong_sign_is_rare(found):
    assert (found["wrong"] < 0.025).all()


@pytest.mark.parametrize("spread", (0.0, 1.0))
def test_the_capped_rule_also_stands_families_that_are_alike_or_very_unlike(spread):
    capped = coverage.simulated(spread=spread, draws=200).xs(CAPPED, level="rule")
    assert (capped["coverage"] > 0.92).all()


def test_a_mean_of_others_has_an_error_that_is_allowed_for():
    runs = np.random.default_rng(0).normal(size=(200, 12))
    found = coverage.stored({"some": runs}, draws=40)
    assert found.xs(STUDENT, level="rule")["coverage"].between(0.92, 0.98).all()


def test_the_next_seed_falls_where_those_before_it_say():
    runs = np.random.default_rng(1).normal(size=(2000, 10))
    found = coverage.foretold({"some": runs}, (2, 3, 9))
    assert found[STUDENT].between(0.935, 0.965).all()
    assert (found["comparisons"] == 2000).all()


def test_families_are_paired_differences_of_methods(tmp_path):
    rng, rows = np.random.default_rng(2), []
    for setting in ("a", "b", "c"):
        for method in ("ours", "theirs"):
            rows += [
                {"table": "t", "setting": setting, "method": method, "seed": seed,
                 "value": rng.normal(), "metric": "acc", "protocol": "as_described",
                 "selection": "last"}
                for seed in range(10)
            ]  # fmt: skip
    rows = pd.DataFrame(rows)
    few = list(coverage._differences(rows, "method", 11))
    some = list(coverage._differences(rows, "method", 10))
    assert not few
    assert [name for name, _ in some] == ["t, acc, as_described, last"] * 3
    one = rows[rows["setting"] == "a"].pivot(index="seed", columns="method", values="value")
    np.testing.assert_allclose(some[0][1], one["ours"] - one["theirs"])
