"""What was typed from the papers, held against their text where that lies beside the checkout.

Each line of a table must stand in the text as one run of numbers, in order, with nothing between.
"""

import os
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from lgfed_core.paths import PAPER, ROOT

V1, V2 = "lgfedavg_v1_2019", "lgfedavg_v2_2020"
TEXTS = {  # file -> (text, what identifies a run of its lines; none: every line is its own)
    "cgau_table1_frechet": ("cgau_2020", ["all"]),
    "cgau_text_cifar10": ("cgau_2020", ["all"]),
    "cgau_text_claims": ("cgau_2020", []),
    "fade_table1_office": ("fade_2021", ["method", "setting", "target_users"]),
    "fade_table2_visda": ("fade_2021", ["setting"]),
    "lgfedavg_table2_vqa": (V2, []),
    "lgfedavg_table3_rotated_mnist": (V1, []),  # two digits there, one in version 2
    "lgfedavg_table4_adult_fairness": (V2, ["method"]),
    "lgfedavg_v1_table1": (V1, []),
    "lgfedavg_v2_table1_cifar10": (V2, []),
    "lgfedavg_v2_table6_mnist": (V2, []),
    "lgfedavg_v2_table8_cifar10": (V2, []),
}
NO_NUMBERS = {"claims"}  # words: compared with the list beside the texts
IDS = {"shuffle_proportion", "classes_per_device", "finetune_fraction_C"}


def folder() -> Path | None:
    """Where the papers' texts are: beside the mirror of data sets, or beside the checkout."""
    mirror = os.environ.get("LGFED_MIRROR")
    places = [Path(mirror).parent / "papers"] if mirror else []
    places.append(ROOT.parent / "shared" / "papers")
    return next((place for place in places if place.is_dir()), None)


def numbers(text: str) -> np.ndarray:
    """All numbers of a text in order; citations, powers of ten and thousands' commas are none."""
    text = re.sub(r"\[\d+(, ?\d+)*\]|\\times 10\^\{?\d+\}?", " ", text).replace(",", "")
    return np.array([float(n) for n in re.findall(r"\d+(?:\.\d+)?", text)])


def typed(name: str, keys: list[str]) -> list[list[float]]:
    """The runs of numbers of a file; of a count of parameters 12.7e9 its leading digits, 12.7 or
    1.27, whichever the table writes."""
    rows = pd.read_csv(PAPER / f"{name}.csv").assign(all="")
    if "claim" in rows:  # "85 % longer" is typed as the ratio 1.85
        more = rows["claim"].str.contains("time")
        rows["value"] = rows["value"].where(~more, 100 * (rows["value"] - 1))
    if name == "cgau_text_cifar10":  # in percent; the text has fractions
        rows["test_acc"] /= 100
    columns = [c for c in rows.select_dtypes("number") if c not in IDS]
    for column in columns:
        large = rows[column] >= 1e8
        power = 1e10 if name.endswith(("mnist", "vqa")) else 1e9
        power = np.where(rows.get("dataset", "") == "mnist", 1e10, power)
        rows[column] = np.where(large, rows[column] / power, rows[column])
    parts = rows.groupby(keys or rows.index, sort=False, dropna=False)
    return [[v for v in part[columns].to_numpy().ravel() if not np.isnan(v)] for _, part in parts]


def stands(run: list[float], text: np.ndarray) -> bool:
    """Whether ``run`` is in ``text`` without a gap."""
    windows = np.lib.stride_tricks.sliding_window_view(text, len(run))
    return bool(np.isclose(windows, run, rtol=1e-9, atol=1e-9).all(1).any())


@pytest.mark.parametrize("name", sorted(TEXTS))
def test_a_file_says_what_the_text_prints(name):
    place, (text, keys) = folder(), TEXTS[name]
    path = place and place / f"{text}.txt"
    if path is None or not path.exists():
        pytest.skip(f"the text {text} is not at hand")
    printed = numbers(path.read_text(encoding="utf-8"))
    missing = [run for run in typed(name, keys) if not stands(run, printed)]
    assert not missing, f"{name}.csv: not in {text}: {missing}"


def test_every_file_is_compared_and_a_slip_is_seen():
    assert {path.stem for path in PAPER.glob("*.csv")} == set(TEXTS) | NO_NUMBERS
    printed = numbers("FADE-CDAN [3] 92.3 (1.2) 91.6 (0.5) 65.9(9.3), 12.7 × 10")
    assert stands([92.3, 1.2, 91.6, 0.5], printed) and stands([9.3, 12.7], printed)
    assert not stands([92.3, 1.2, 91.6, 1.2], printed) and not stands([92.3, 91.6], printed)


def test_the_claims_are_those_of_the_list_and_none_is_ours():
    place = folder()
    if place is None or not (place / "claims.csv").exists():
        pytest.skip("the list of claims is not at hand")
    ours, listed = (pd.read_csv(p / "claims.csv", index_col="id") for p in (PAPER, place))
    assert "L19" not in ours.index, "how parameters are counted is a finding, no claim"
    same = ["paper", "where", "claim"]
    pd.testing.assert_frame_equal(ours[same], listed.drop(index="L19", errors="ignore")[same])
