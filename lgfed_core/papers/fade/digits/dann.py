"""What DANN gives on these digits: both domains in one place, beside a library's own numbers.

A federated run can be measured against it only where it has been run for long enough.
"""

import pandas as pd

from lgfed_core.evidence.claims import said
from lgfed_core.evidence.records import select
from lgfed_core.evidence.rows import plain
from lgfed_core.papers.in_words import kind, less, seeds

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


def sentences(found: pd.DataFrame) -> str:
    """What the longest runs of `central` say, in Markdown; rows as for `central`."""
    table, lines = central(found), []
    rows = select(found, table=digits.TABLE, metric="target_acc")
    ours = table[table.index.get_level_values("statistics") == "frozen"] if len(table) else table
    for direction in [d for d in LIBRARY if len(ours) and d in ours.index]:
        mine = ours.loc[direction].droplevel("statistics")
        short, most = mine.index.min(), mine.index.max()
        at = [select(rows, loss="central", direction=direction, rounds=n) for n in (short, most)]
        first, last = (select(a, statistics="").set_index("seed")["value"] for a in at)
        line = mine.loc[most]
        # False if the stored means were others; a distance is said here, and not called one.
        lines.append(
            f"- **{direction}**: DANN is at {line['ours']:.1f} % after as many batches as {most:,} "
            f"federated rounds have ({seeds(int(line['seeds']))}), {line['difference']:+.1f} "
            f"points from the library's {line['library']:.1f}."
        )
        if most > short:
            # False if the paired interval of this gain held zero where it is called a gain.
            gain, runs = less(last, first)
            more = kind(gain, ("that is still a gain", "that is a loss", "no gain is shown"))
            more = more if runs > 1 else "one seed, which shows neither a gain nor a loss"
            lines[-1] += f" Over {short:,} rounds it is {said(gain, runs)} points: {more}."
        there = LIBRARY_RATE[direction]
        # False if our rate, or the average of two devices that halves it, were others.
        lines[-1] += (
            f" The library learns the task at {there:g}, {there / OUR_RATE:g} times our rate."
        )
    return "\n".join(lines) or "not yet run"
