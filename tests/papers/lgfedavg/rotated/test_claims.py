"""L12, L13 and the page's tables from made-up rows, by hand."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import torch

from lgfed_core.evidence import claims as evidence, records as results, verdict
from lgfed_core.evidence.rows import plain
from lgfed_core.papers.lgfedavg.rotated import claims, figures, tables
from lgfed_core.papers.lgfedavg.rotated.run import CURVES, ROTATED, ids
from lgfed_core.papers.lgfedavg.rotated.settings import SPLITS, words
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


def test_choices_are_paired_and_the_nearest_is_found(tmp_path, monkeypatch):
    monkeypatch.setattr(results, "RESULTS", tmp_path)
    rows = [made(HELD)]
    rows.append(made({"fedavg_0": (32, 32, 98, 80, 15)}, "angle=-90", seeds=(1,)))
    results.record(ROTATED.name, pd.concat(rows), tmp_path)
    found = tables.by_choice()
    changed = tables.differences(found, "iid")
    alone = changed.xs("FedAvg, C = 0", level=1)
    assert alone.loc[tables.USUAL].tolist() == pytest.approx([30, 92.1, 3])
    turned = alone.loc["turned the other way"]
    assert turned.tolist() == pytest.approx([2, -12, 1])  # of the one seed that both have
    averaged = changed.xs(tables.ONE_MODEL)
    assert averaged.loc["LG-FedAvg, C = 0.1", "old devices"] < -17 and len(averaged) == 2
    assert [*changed.loc[tables.USUAL].index] == [words(line) for line in HELD]
    said = tables.unrun(found).splitlines()
    assert "- i.i.d., FedAvg, C = 0: its pictures are nobody else's." in said  # the other way ran
    assert said[2].startswith("- i.i.d., LG-FedAvg, C = 0 and FedAvg, C = 0.1 and FedProx,")
    shown = tables.signed(changed).to_html()
    assert "+2.0" in shown and ">30.0<" in shown
    noniid = [f"noniid_{side}" for side in claims.SIDES]
    without = tables.differences(found.assign(**dict.fromkeys(noniid, np.nan)), "noniid")
    assert len(without) == 0  # what has run nowhere there has no line
    nearest = tables.nearest(found)
    cell = nearest.loc["i.i.d., old devices: FedAvg, C = 0"]  # printed: 32.01, ours 30 and 32
    assert cell["nearest"] == pytest.approx(32) and cell["readings"] == 2
    assert cell["with"] == "turned the other way" and cell["within the margin"] == "yes"
    assert cell["seeds"] == 1 and cell[tables.USUAL] == pytest.approx(30)
    kept = nearest.loc["non-i.i.d., newcomer: FedAvg, C = 0.1"]  # printed: 89.62, margin 1.1
    assert kept["with"] == tables.USUAL and kept["within the margin"] == "yes"


def test_where_some_lines_have_run_the_others_are_said_not_to(tmp_path, monkeypatch):
    monkeypatch.setattr(results, "RESULTS", tmp_path)
    rows = made(HELD)
    results.record(ROTATED.name, rows[rows["finetune_fraction_C"].astype(float) == 0], tmp_path)
    found = tables.by_choice()
    nearest = tables.nearest(found)
    ran = nearest["with"] != verdict.NOT_RUN
    assert ran.any() and ran.tolist() == ["C = 0.1" not in name for name in nearest.index]
    assert len(tables.differences(found, "iid")) == 2 + 1  # and one averaged model
    assert set(claims.details(claims.stored())["runs"]) == {0, 3}


def test_before_anything_has_run_the_page_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(results, "RESULTS", tmp_path)
    found = tables.by_choice()
    assert len(found) == 0 and tables.differences(found, "noniid").size == 0
    assert (tables.nearest(found)["with"] == verdict.NOT_RUN).all()
    assert (claims.details(claims.stored())["estimate"] == verdict.NOT_RUN).all()
    figure = figures.both_sides({"i.i.d.": tables.curves()})
    assert all("not yet run" in ax.get_title() for ax in figure.axes)
    plt.close("all")


def test_curves_of_old_devices_begin_before_the_newcomer_came():
    ends = made({"fedavg_0": (30, 30, 98, 92, 15)}, seeds=(0,), splits=(10,))
    way = ends.iloc[:1].assign(table=CURVES, round=25, metric="normal")
    found = tables.from_start(way, ends)
    assert found["round"].tolist() == [0, 25] and found["value"].iloc[0] == pytest.approx(98)
    assert tables.from_start(way.iloc[:0], ends.iloc[:0]).empty


def test_curves_of_a_run_are_drawn_by_method_and_fraction():
    history = pd.DataFrame(
        dict(seed=s, round=r, normal=0.5 + s, normal_averaged=0.1, rotated=0.2)
        for s in (0, 1)
        for r in (1, 2)
    )
    cfg = ROTATED.settings("smoke")
    curves = ROTATED.progress(cfg, {"before": history, "fedavg_0": history})
    figure = figures.both_sides({"i.i.d.": curves})
    drawn = [line for line in figure.axes[0].lines if line.get_label() == "FedAvg, C = 0"]
    assert [line.get_ydata().tolist() for line in drawn] == [[100, 100]]  # the mean of 50 and 150
    assert len(figure.axes[0].lines) == 3
    plt.close("all")


def test_pictures_stand_upright_in_the_first_row_and_turned_below():
    x = torch.zeros(2, 28, 28)
    x[0, 2:6, 14], x[1, 14, 2:6] = 1, 1  # above the middle, and left of it
    axes = figures.turned(x.view(2, 784), (90.0, 180.0)).axes
    assert [ax.get_ylabel() for ax in axes[::2]] == ["upright", "90°", "180°"]
    shown = [np.asarray(ax.images[0].get_array()) for ax in axes]
    assert np.array_equal(shown[0], x[0])
    across = [[float((p * i).sum() / p.sum()) for i in np.indices((28, 28))] for p in shown]
    assert across[2] == pytest.approx([14, 4], abs=2)  # counter-clockwise: from above to the left
    assert across[4] == pytest.approx([23, 13], abs=2)
    assert across[5] == pytest.approx([13, 23], abs=2)
    plt.close("all")


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


def test_remedies_are_no_reading_of_the_text(tmp_path, monkeypatch):
    monkeypatch.setattr(results, "RESULTS", tmp_path)
    rows = [made(HELD)]
    for choice, value in (("upright=1.0", 32), ("frozen=3", 31), ("angle=45", 32.01)):
        rows.append(made({"fedavg_0": (value, 32, 98, 80, 15)}, choice, splits=(10,)))
    results.record(ROTATED.name, pd.concat(rows), tmp_path)
    found = tables.by_choice()
    nearest = tables.nearest(found).loc["i.i.d., old devices: FedAvg, C = 0"]
    assert nearest["with"] == tables.USUAL and nearest["readings"] == 1
    assert "turned by" not in str(tables.differences(found, "iid").index)
    ours = tables.differences(found, "iid", ours=True)
    assert [*ours.index.unique(0)] == [
        tables.USUAL, "turned by, degrees: 45", "remedy: upright pictures kept",
        "remedy: last layers frozen",
    ]  # fmt: skip
    left = tables.unrun(found, ours=True)
    assert "- i.i.d., FedAvg, C = 0: turned by, degrees: 180; newcomers: 3; remedy: a ten" in left
    assert "- non-i.i.d., FedAvg, C = 0 and LG-FedAvg, C = 0 and" in left
    back = tables.remedies(found)
    assert back["old devices"].to_dict() == pytest.approx(
        {"i.i.d., upright pictures kept": 2.0, "i.i.d., last layers frozen": 1.0}
    )
