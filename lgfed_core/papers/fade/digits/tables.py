"""What the page of FADE on digits shows in tables, from rows of `claims.stored`."""

import pandas as pd

from lgfed_core.evidence.records import select
from lgfed_core.evidence.rows import plain

from .settings import CENTRAL, TABLE

# Transfer-Learning-Library (Tsinghua), its table "Digits accuracy", DANN on a LeNet: 20 epochs of
# 2,500 batches of 128 rows of each domain, from scratch, batch normalisation over both domains'
# rows together, the best epoch on the target's test rows. Its loss is the task's and the mean of
# both domains' adversarial ones, each at its full rate: 0.01 from MNIST, 0.1 from USPS.
LIBRARY = {"mnist-usps": 91.7, "usps-mnist": 95.2}
NO_PROTECTION = 1000.0  # an epsilon above it promises nothing


def central(found: pd.DataFrame) -> pd.DataFrame:
    """DANN with both domains in one place: a line per direction, length and kind of statistics.

    Columns: ours and sd (target accuracy, percent), seeds, library, difference; federated, the
    vanilla game of the same length with groups equally often there (NaN where it has not run).
    """
    rows, by = select(found, table=TABLE, metric="target_acc"), ["direction", "rounds"]
    rows = rows.assign(statistics=rows["statistics"].map(plain).replace("", "frozen"))
    mine = select(rows, loss=CENTRAL).groupby([*by, "statistics"])["value"]
    lines = mine.agg(ours="mean", sd="std", seeds="size")
    lines["library"] = lines.index.get_level_values("direction").map(LIBRARY)
    lines["difference"] = lines["ours"] - lines["library"]
    game = select(rows, loss="vanilla", probability=0.5).groupby(by)["value"].mean()
    return lines.join(game.rename("federated"), on=by)


def epsilon(value: float) -> str:
    """ "24.4"; "none" above `NO_PROTECTION`, where it promises nothing."""
    return f"{value:,.1f}" if value <= NO_PROTECTION else "none"
