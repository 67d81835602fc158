"""Claims of the fairness page, on rows made up so that the answer is known."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from lgfed_core.evidence import claims as evidence, verdict
from lgfed_core.papers.lgfedavg.fairness import claims, run as adult, settings

KINDS = ("probe_logistic", "probe_trees", "probe_network", "probe_best")
ADAM = "Adam, 5 adversary steps of 32 units"


def rows_of(metrics: dict[str, float], seeds=5, **ids) -> list[dict]:
    """Rows as stored, with a little noise."""
    rng = np.random.default_rng(0)
    common = dict(scale="paper", selection="last", split="iid", protocol="as_described") | ids
    return [
        dict(seed=seed, metric=metric, value=value + 0.1 * rng.standard_normal()) | common
        for seed in range(seeds)
        for metric, value in metrics.items()
    ]


def made_up(leak=50.0, cost=3.0, swept=None) -> pd.DataFrame:
    """LG-FedAvg with adversary leaks ``leak`` and costs ``cost`` points.

    swept: what the sweep leaks at lambda 30, for 2 points; None: there was none.
    """
    rows = []
    for protocol in ("as_described", "as_released"):
        for split in settings.SPLITS:
            for method in settings.METHODS:
                hides = method == "lg_fedavg_adv"
                left = leak if hides else 72.0
                metrics = {"class_acc": 84 - cost * hides, "adv_auc": 50.0 if hides else 65.0}
                metrics |= {f"{kind}_race": left - 2 for kind in KINDS}
                metrics |= {f"{kind}_sex": left + 2 for kind in KINDS} | {"probe_best": left}
                cell = dict(table=adult.TABLE, method=method, split=split, protocol=protocol)
                rows += rows_of(metrics, **cell)
    accuracy = {0.0: 84.0, 0.1: 83.8, 0.3: 83.5, 1.0: 81.0, 3.0: 76.0, 10.0: 75.0}
    for loss in settings.POWERS:
        for x, acc in accuracy.items():
            if x or loss == "vanilla":
                metrics = {"class_acc": acc, "validation_acc": acc, "probe_best": 72 - 4 * x}
                metrics |= {"validation_probe": 70 - 2 * x}
                rows += rows_of(metrics, table=adult.FRONTIER, loss=loss, **{"lambda": x})
    how = {"optimiser": "adam", "adversary_steps": 5, "adversary_width": 32}
    for x, left, acc in [(0.0, 72.0, 84.0), (30.0, swept, 82.0)] if swept else []:
        metrics = {"class_acc": acc, "validation_acc": acc, "adv_auc": left}
        metrics |= dict.fromkeys([*KINDS, "validation_probe"], left)
        rows += rows_of(metrics, table=adult.SWEEP, **how, **{"lambda": x})
    return pd.DataFrame(rows).reindex(columns=list(dict.fromkeys([*rows[0], *claims.COLUMNS])))


def test_a_claim_stands_or_falls_with_the_probes():
    good = claims.judged(made_up())["verdict"]
    assert good.iloc[:2].str.startswith(verdict.CONFIRMED).all()
    bad = claims.judged(made_up(leak=70.0, swept=72.0))["verdict"]
    assert bad.iloc[:2].str.startswith(verdict.REFUTED).all()
    dear = claims.judged(made_up(cost=12.0, swept=72.0))["verdict"]
    assert dear.iloc[0].startswith(verdict.REFUTED), "the price counts"
    assert dear.iloc[1].startswith(verdict.CONFIRMED)


def test_nothing_is_refuted_without_a_sweep_or_where_the_sweep_does_better():
    unswept = claims.judged(made_up(leak=70.0))["verdict"]
    assert unswept.iloc[:2].str.startswith(verdict.INCONCLUSIVE).all()
    alone = evidence.judged([replace(claims.CLAIMS[0], comparisons=claims.l14)], made_up(leak=70.0))
    assert alone["verdict"].iloc[0] == verdict.REFUTED, "that way alone is"
    better = claims.judged(made_up(leak=70.0, swept=50.0))["said"].iloc[0]
    assert better.startswith("confirmed so far, 2 of 4 comparisons")
    half = claims.judged(made_up(leak=70.0, swept=60.0))["verdict"].iloc[0]
    assert half.startswith(verdict.REFUTED), "its best, and still beyond the margin"


def test_the_way_of_the_sweep_that_leaks_least_is_read():
    rows = made_up(swept=50.0)
    assert claims.stronger(rows) == (ADAM, 30) and claims.stronger(made_up(swept=71.0)) is None
    table = claims.sweep(rows)
    assert claims.picked(table) == [(ADAM, 30)] and (table["seeds"] == 5).all()
    assert table.loc[(ADAM, 30.0), "class_acc"] == pytest.approx(82, abs=0.2)
    parts = {part.name: part.evidence.estimate for part in claims.CLAIMS[0].comparisons(rows)}
    assert parts["i.i.d. devices, accuracy"] == pytest.approx(-2, abs=0.2)
    for other in (5.0, 30.0):
        without = rows.assign(**{"lambda": rows["lambda"].replace(0.0, other)})
        assert claims.sweep(without).empty, "nothing to count the cost against"


def test_lambda_is_chosen_on_validation_rows_within_the_cost():
    rows = made_up()
    assert claims.chosen(rows) == 1.0
    assert claims.chosen(rows[rows["lambda"] != 10.0]) is None, "the frontier is not whole"
    assert claims.chosen(rows.iloc[:0]) is None, "nor is it before anything has run"
    rows.loc[rows["metric"].isin(["class_acc", "probe_best"]), "value"] = 0.0
    assert claims.chosen(rows) == 1.0, "test rows have no say"


def test_the_lambda_of_the_stored_rows_is_the_one_that_is_chosen():
    stored = claims.stored_rows()
    used = claims.cell(stored, "strength", "lg_fedavg_adv", "iid", "as_described")
    assert set(used) == {claims.chosen(stored)}


def test_kinds_of_probes_are_means_over_race_and_sex():
    rows = made_up(leak=60.0)
    found = claims.cell(rows, "probe_trees", "lg_fedavg_adv", "iid", "as_described")
    assert len(found) == 5 and found.mean() == pytest.approx(60, abs=0.2)


def test_comparisons_are_named_in_words():
    for claim in claims.CLAIMS:
        names = [part.name for part in claim.comparisons(made_up(swept=60.0))]
        assert not any("_" in name or "iid" in name for name in names), names
        assert "i.i.d. devices, network probe" in names
