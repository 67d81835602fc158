"""L12, L13, curves and choices from made-up rows, by hand."""

import pandas as pd
import pytest

from lgfed_core.evidence import records as results, verdict
from lgfed_core.evidence.rows import plain
from lgfed_core.papers.lgfedavg.rotated import claims
from lgfed_core.papers.lgfedavg.rotated.run import CURVES, ROTATED, ids
from lgfed_core.papers.lgfedavg.rotated.settings import SPLITS, VARIED
from toy import page, stored_row

PAGE = page("lgfedavg/rotated")

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

    def value(line, side, level, seed):
        return level + 0.1 * seed * (len(side) % 3) + 1e-8 * (seed % 2) * (ord(line[-1]) + level)

    return pd.DataFrame(
        stored_row(**ids(line, choice), classes_per_device=classes, seed=seed, selection="last")
        | dict(metric=f"{SPLITS[classes]}_{side}", value=value(line, side, level, seed))
        for line, values in lines.items()
        for classes in splits
        for side, level in zip(SIDES, values, strict=True)
        for seed in seeds
    )


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """Records rows where the claims look for them."""
    monkeypatch.setattr(results, "RESULTS", tmp_path)
    return lambda *rows: results.record(ROTATED.name, pd.concat(rows), tmp_path)


def test_claims_name_lines_that_can_be_run():
    pieces = ROTATED.pieces("as_described")  # what a choice changes is no part of a claim
    known = [dict(p.cell) for p in pieces if dict(p.cell)["table"] == ROTATED.table]
    known = {frozenset((name, plain(value)) for name, value in cell.items()) for cell in known}
    wanted = {frozenset(line.ids) for n in claims.judged(made(HELD))["of"] for line in n}
    assert wanted == known and len(wanted) == 10


def test_choices_are_paired_with_what_is_assumed_by_seed(kept):
    assert PAGE.choices().empty and PAGE.curves().empty  # before anything has run
    kept(made(HELD), made({"fedavg_0": (32, 32, 98, 80, 15)}, "angle=-90", seeds=(1, 7)))
    found = PAGE.choices()
    assert [*found.index.unique("choice")] == ["rotated the other way"] and len(found) == 2
    for split in claims.WORDS.values():  # of the one seed that both have
        turned = found.loc[split, "rotated the other way", "FedAvg, C = 0"]
        assert turned.tolist() == pytest.approx([2, -12, 1])


def test_every_choice_is_named_in_words(kept):
    names = [f"{name}={value}" for name, values in VARIED.items() for value in values]
    kept(made(HELD), *(made({"fedavg_0": HELD["fedavg_0"]}, name) for name in names))
    found = {*PAGE.choices().index.unique("choice")}
    assert len(found) == len(names) and not any("=" in words for words in found)
    assert {"rotated by, degrees: 45", "FedProx's mu: 0.1", "weights 1/m"} <= found


def test_curves_of_old_devices_begin_before_the_newcomer_came(kept):
    ends = made({"fedavg_0": (30, 30, 98, 92, 15)}, seeds=(0,), splits=(10,))
    kept(ends, ends.iloc[:1].assign(table=CURVES, round=25, metric="normal"))
    found = PAGE.curves()
    assert found["round"].tolist() == [0, 25] and found["value"].iloc[0] == pytest.approx(98)


@pytest.mark.parametrize(
    ("id", "line", "values", "at"),
    [
        ("L12", "lg_fedavg_0", (90, 96, 98, 93, 15), "LG-FedAvg keeps"),
        ("L13", "lg_fedavg_0.1", (95.5, 80, 98, 93, 15), "old devices"),
    ],
)
def test_claims_are_confirmed_and_refuted_by_hand(id, line, values, at):
    lines = claims.judged(made(HELD))
    assert lines["said"].to_dict() == dict.fromkeys(("L12", "L13"), verdict.CONFIRMED)
    worse = claims.judged(made(HELD | {line: values})).loc[id]
    assert worse["said"] == verdict.REFUTED and at in worse["at"]
    half = claims.judged(made(HELD, splits=(10,)))
    assert half.loc["L12", "said"] == "confirmed so far, 2 of 4 comparisons"
