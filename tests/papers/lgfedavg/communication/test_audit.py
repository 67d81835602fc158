"""The papers' statements about their counts: which hold, by numbers worked out by hand."""

import pandas as pd
import pytest

from lgfed_core.papers.lgfedavg.communication import audit
from lgfed_core.papers.lgfedavg.communication.counts import budgets, recompute_tables


@pytest.fixture(scope="module")
def table():
    return recompute_tables()


def test_one_explanation_fits_each_of_the_two_rows():
    said = audit.explanations()
    fits = said[said["matches"]]
    assert fits["value"].tolist() == [28_049_967_000, 11_987_074_000]
    assert fits["row"].is_unique and set(fits["row"]) == set(said["row"])


def test_the_transfer_is_excluded_wherever_the_digits_tell(table):
    moved = audit.transfer(budgets(table)).set_index("row")
    telling = moved.loc[moved["verdict"] != "cannot tell", "verdict"]
    assert telling.to_dict() == {
        "MNIST: local only": "not included",
        "MNIST: LG-FedAvg, 400 + 50 rounds": "neither",
        "CIFAR-10: local only": "not included",
        "CIFAR-10: LG-FedAvg, 1200 + 60 rounds": "not included",
        "VQA: LG-FedAvg, 32 + 17 rounds": "not included",
    }
    alone = moved[moved["table"] == "lgfedavg_v1_table1"].loc["CIFAR-10: local only"]
    assert alone["with_transfer"] == 100 * 64_102


def test_a_transfer_that_is_included_is_seen():
    row = dict(table="x", dataset="cifar10", row="LG-FedAvg, 1200 + 60 rounds", method="lg_fedavg")
    row |= dict(reported=8.49e9, digit=1e7, computed=8_480_419_200)
    assert audit.transfer(pd.DataFrame([row]))["verdict"].tolist() == ["included"]


def test_deviations_of_version_1():
    found = audit.spreads().set_index("row")
    assert found["matches"].tolist() == [True, False, True, False]
    cifar = found.loc["CIFAR-10: LG-FedAvg, 1200 + 60 rounds"]
    assert cifar["computed"] == pytest.approx(64_102 * 110 * 244.5)
    assert cifar["lg_std"] == pytest.approx((1.745e9 - 64_102 * 110 * 244.5) / (2_872 * 110))
    assert found.loc[found["matches"], "lg_std"].isna().all()


def test_ratios_of_the_headline_pairs(table):
    found = audit.ratios(budgets(table))
    mnist = found.loc["v2, MNIST"]
    assert mnist["printed"] == pytest.approx(100 * 2.9 / 5.6)
    assert mnist["formula"] == pytest.approx(100 * 28_961_702 / 55_723_888)
    once, fedavg = 63_322_600 + 53_324_800, 10_131_616_000 + 63_322_600
    assert mnist["deployed"] == pytest.approx(100 * (5_265_764_000 + once) / fedavg)
    assert mnist["rounds"] == 50
    assert found.loc["v1 and v2, VQA", "rounds"] == pytest.approx(100 * 32 / 47)


def test_counts_are_told_in_the_digits_printed(table):
    assert audit.billions(12_692_196_000, 1e8) == "12.7"
    assert audit.billions(55_723_888_000, 1e9) == "56"
    assert audit.billions(0, 1e8) == "0"
    rows = budgets(table)
    told = audit.readable(rows[rows["table"] == "lgfedavg_v1_table1"]).iloc[-1]
    assert told.tolist() == ["CIFAR-10: LG-FedAvg, 1200 + 60 rounds", "8.48", "8.4804", 1]
