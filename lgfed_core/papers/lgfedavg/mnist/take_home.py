"""Two sentences to take home from the page on MNIST, written from rows; beside each what would make
it false."""

import numpy as np
import pandas as pd

from lgfed_core.evidence.claims import said
from lgfed_core.evidence.verdict import greater

from ..layers import tables as cuts
from ..layers.run import TITLES, chosen
from ..records import by_seed

_READINGS = {  # where nothing is chosen on test rows
    "as described, chosen on validation rows": ("as_described", "best_val"),
    "as described, last round": ("as_described", "last"),
    "as released, last round": ("as_released", "last"),
}


def selection(stored: pd.DataFrame, starts: tuple[int, ...] = (400, 800), full: int = 800) -> str:
    """Whether LG-FedAvg is ahead at home where no test row chooses, at two classes.

    stored: rows of `records.load`; starts: FedAvg rounds before LG-FedAvg.
    """
    values, lines, shown = by_seed(stored), [], []
    for start in starts:
        for words, reading in _READINGS.items():
            pair = [
                values.get(("mnist", 2, who, "local_test_acc", reading), pd.Series(dtype=float))
                for who in (("lg_fedavg", start), ("fedavg", full))
            ]
            ours, others = pair[0].align(pair[1], join="inner")
            if len(ours) > 1:
                gain = greater(ours, others)
                shown.append(gain.low > 0)
                lines.append(f"{start}+100, {words}: {said(gain, len(ours))}")
    if not lines:
        return "not yet run"
    # False if one of these intervals held zero and the sentence still said "in all".
    many = "in all" if all(shown) else f"in {sum(shown)} of {len(shown)}"
    return (
        f"**The advantage over FedAvg at home is shown without choosing on test rows {many} "
        f"readings** (points, 95 % interval, seeds): {'; '.join(lines)}."
    )


def sharing(stored: pd.DataFrame) -> str:
    """What sharing adds at home to devices that go on from the same FedAvg model, by setting.

    stored: rows of ``lgfedavg.layers``. Nothing is chosen on test rows: best on validation rows as
    described, the last round as released.
    """
    lines = []
    for where in cuts.settings(stored):
        data, released = where["data"], where["protocol"] == "as_released"
        values = cuts.cell(stored, selection="last" if released else "best_val", **where)
        gap = cuts.against(values, chosen(data), ("last", 0)).loc["local_test_acc"]
        if np.isnan(gap["low"]):
            continue
        # False if the interval moved to the other side of zero, or came to hold it.
        kind = (
            "helps" if gap["low"] > 0 else "costs" if gap["high"] < 0 else "is not shown to matter"
        )
        split = "i.i.d." if where["classes"] == 10 else f"{where['classes']} classes"
        words = f"on {TITLES[data]}, {split}, {where['start']}+100" + ", as released" * released
        found = said(gap.rename({"difference": "estimate"}), int(gap["seeds"]))
        lines.append(f"{words}, it {kind}: {found}")
    return (
        "**What sharing adds at home**, against devices that go on from the same FedAvg model with "
        f"nothing shared (points): {'; '.join(lines) or 'not yet run'}."
    )
