"""L12, L13, curves and choices from made-up rows, by hand."""

import pandas as pd
import pytest

from lgfed_core.evidence import claims as evidence, records as results, verdict
from lgfed_core.evidence.rows import plain
from lgfed_core.papers.lgfedavg.rotated import claims
from lgfed_core.papers.lgfedavg.rotated.run import CURVES, ROTATED, ids
from lgfed_core.papers.lgfedavg.rotated.settings import SPLITS, VARIED
from toy import stored_row

SIDES = ("normal", "normal_averaged", "normal_before", "rotated", "rotated_before")
HELD = {  # line -> values of `SIDES`
    "fedavg_0": (30, 30, 98, 92, 15),
    "lg_fedavg_0": (96, 96, 98, 93, 15),
    "fedavg_0.1": (97, 97, 98, 89, 15),
    "fedprox_0.1": (95, 95, 98, 87, 15),
    "lg_fedavg_0.1": (97.5, 80, 98, 93, 15),
}


def made(lines: dict[str, tuple], choice: str = "", seeds=(0, 1, 2), splits=(10, 2)):
    """Rows of each line and seed, 0.1 more for each seed."""
    return pd.DataFrame(
        stored_row(
            **ids(line, choice),
            classes_per_device=classes,
            seed=seed,
            selection="last",
            metric=f"{SPLITS[classes]}_{side}",
            value=value
            + 0.1 * seed * (len(side) % 3)
            + 1e-8 * (seed % 2) * (ord(line[-1]) + value),
        )
        for line, values in lines.items()
        for classes in splits
        for side, value in zip(SIDES, values, strict=True)
        for seed in seeds
    )


def judged(rows):
    return evidence.judged(claims.CLAIMS, rows)


def test_claims_name_lines_that_can_be_run():
    known = {
        tuple((k, plain(v)) for k, v in piece.cell): piece
        for piece in ROTATED.pieces("as_described")
        if dict(piece.cell)["table"] == ROTATED.table
    }  # what a choice changes is no part of a claim
    wanted = {frozenset(line.ids) for n in judged(made(HELD))["of"] for line in n}
    assert wanted == {frozenset(key) for key in known} and len(wanted) == 10


def test_choices_are_paired_with_what_is_assumed_by_seed(tmp_path, monkeypatch):
    monkeypatch.setattr(results, "RESULTS", tmp_path)
    other = made({"fedavg_0": (32, 32, 98, 80, 15)}, "angle=-90", seeds=(1, 7))
    results.record(ROTATED.name, pd.concat([made(HELD), other]), tmp_path)
    found = claims.choices()
    assert [*found.index.unique("choice")] == ["turned the other way"] and len(found) == 2
    for split in claims.WORDS.values():  # of the one seed that both have
        turned = found.loc[split, "turned the other way", "FedAvg, C = 0"]
        assert turned.tolist() == pytest.approx([2, -12, 1])


def test_every_choice_is_named_in_words(tmp_path, monkeypatch):
    monkeypatch.setattr(results, "RESULTS", tmp_path)
    names = [f"{name}={value}" for name, values in VARIED.items() for value in values]
    rows = [made(HELD), *(made({"fedavg_0": HELD["fedavg_0"]}, name) for name in names)]
    results.record(ROTATED.name, pd.concat(rows), tmp_path)
    found = {*claims.choices().index.unique("choice")}
    assert len(found) == len(names) and not any("=" in words for words in found)
    assert {"turned by, degrees: 45", "FedProx's mu: 0.1", "weights 1/m"} <= found


def test_before_anything_has_run_there_are_no_choices_and_no_curves(tmp_path, monkeypatch):
    monkeypatch.setattr(results, "RESULTS", tmp_path)
    assert claims.choices().empty and claims.curves().empty


def test_curves_of_old_devices_begin_before_the_newcomer_came(tmp_path, monkeypatch):
    monkeypatch.setattr(results, "RESULTS", tmp_path)
    ends = made({"fedavg_0": (30, 30, 98, 92, 15)}, seeds=(0,), splits=(10,))
    way = ends.iloc[:1].assign(table=CURVES, round=25, metric="normal")
    results.record(ROTATED.name, pd.concat([ends, way]), tmp_path)
    found = claims.curves()
    assert found["round"].tolist() == [0, 25] and found["value"].iloc[0] == pytest.approx(98)


def test_claims_are_confirmed_and_refuted_by_hand():
    lines = judged(made(HELD))
    assert lines["said"].to_dict() == dict.fromkeys(("L12", "L13"), verdict.CONFIRMED)
    forgets = HELD | {"lg_fedavg_0": (90, 96, 98, 93, 15)}
    lines = judged(made(forgets))
    assert (
        lines.loc["L12", "said"] == verdict.REFUTED and "LG-FedAvg keeps" in lines.loc["L12", "at"]
    )
    lost = HELD | {"lg_fedavg_0.1": (95.5, 80, 98, 93, 15)}
    lines = judged(made(lost))
    assert lines.loc["L13", "said"] == verdict.REFUTED and "old devices" in lines.loc["L13", "at"]
    half = judged(made(HELD, splits=(10,)))
    assert half.loc["L12", "said"] == "confirmed so far, 2 of 4 comparisons"
    nothing = claims.stored().iloc[:0]
    assert (judged(nothing)["said"] == verdict.NOT_RUN).all()
