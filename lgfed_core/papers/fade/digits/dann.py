"""What DANN gives on these digits: both domains in one place, beside a library's own numbers.

A federated run can be measured against it only where it has been run for long enough.
"""

import pandas as pd

from lgfed_core.evidence.records import select
from lgfed_core.evidence.rows import plain

from . import run as digits

# Transfer-Learning-Library (Tsinghua), its table "Digits accuracy", DANN on a LeNet: 20 epochs of
# 2,500 batches of 128 rows of each domain, from scratch, batch normalisation over both domains'
# rows together, the best epoch on the target's test rows. Its loss is the task's and the mean of
# both domains' adversarial ones, each at its full rate.
LIBRARY = {"mnist-usps": 91.7, "usps-mnist": 95.2}
LIBRARY_RATE = {"mnist-usps": 0.01, "usps-mnist": 0.1}
OUR_RATE = digits.Settings.lr / 2  # of the task, which one of two devices has: `Parts.central`


def central(found: pd.DataFrame) -> pd.DataFrame:
    """A line per direction, length and kind of statistics, of rows of `claims.stored`, any length.

    Columns: ours and sd (target accuracy, percent), seeds, library, difference; federated, the
    vanilla game of the same length with groups equally often there (NaN where it has not run).
    """
    rows = select(found, table=digits.TABLE, metric="target_acc")
    mine, lines = select(rows, loss="central"), {}
    games = select(rows, loss="vanilla", probability=0.5)
    mine = mine.assign(statistics=mine["statistics"].map(plain).replace("", "frozen"))
    for (direction, rounds, way), group in mine.groupby(["direction", "rounds", "statistics"]):
        value = group["value"]
        game = select(games, direction=direction, rounds=rounds)["value"]
        lines[direction, int(rounds), way] = {
            "ours": value.mean(),
            "sd": value.std(),
            "seeds": len(value),
            "library": LIBRARY[direction],
            "difference": value.mean() - LIBRARY[direction],
            "federated": game.mean(),
        }
    names = ["direction", "rounds", "statistics"]
    return pd.DataFrame(lines).T.rename_axis(names) if lines else pd.DataFrame()
