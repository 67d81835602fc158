"""Claims L16 and L17 of LG-FedAvg's paper, on the stored runs of `run`, paired over seeds.

L16: at the goal LG-FedAvg has sent less than FedAvg, by at least half of the printed saving, a
contrast's bound. L17: the text's 20 rounds go on from FedAvg's model, as Table 2's do: had FedAvg
come to 40.22 % within its first 20, it would not have needed 47 to 40 %. From the first weights is
the other reading, and stands beside it.
"""

from dataclasses import replace

import numpy as np
import pandas as pd

from lgfed_core.evidence import claims
from lgfed_core.evidence.claims import Claim, Line, Part, exact, paired
from lgfed_core.evidence.printed import cells
from lgfed_core.evidence.records import select, stand_in
from lgfed_core.evidence.rows import plain
from lgfed_core.evidence.verdict import greater

from ..printed import TABLES
from .run import CURVES, NAME, TABLE, ids
from .settings import Settings

PAGE = "lgfedavg/vqa"
_IDS = ("method", "start", "round", "stand_in")


def stored(scale: str = "paper") -> pd.DataFrame:
    """The recorded rows at one scale, on VQA itself as soon as there are some."""
    return select(NAME, columns=_IDS, own=True, scale=scale, selection="last")


def printed_share() -> float:
    """What LG-FedAvg sends in Table 2, in percent of FedAvg's."""
    table = cells(TABLES[TABLE]).set_index(["method", "metric"])["paper"]
    sent = "params_communicated"
    return 100 * table["lg_fedavg", sent] / table["fedavg", sent]


def at_goal(rows: pd.DataFrame, line: str, metric: str) -> pd.Series:
    """One number of Table 2's line by seed; rows: of `stored`."""
    return _by_seed(select(rows, metric=metric, **ids(line)), line)


def after(rows: pd.DataFrame, line: str, rounds: int) -> pd.Series:
    """Local test accuracy of a line by seed, ``rounds`` after its own first."""
    where = ids(line) | dict(table=CURVES, metric="local_test_acc", round=rounds)
    return _by_seed(select(rows, **where), line)


def shares(rows: pd.DataFrame) -> pd.Series:
    """Parameters that LG-FedAvg has sent at the goal, in percent of FedAvg's, by seed.

    NaN for a seed of which LG-FedAvg did not get there; where FedAvg did not, it is at most that.
    """
    lg, fed = (at_goal(rows, line, "params_communicated") for line in ("lg_fedavg", "fedavg"))
    reached = at_goal(rows, "lg_fedavg", "goal_reached").astype(float)
    return 100 * (lg / fed).where(reached == 1)


def cheaper(rows: pd.DataFrame) -> list[Part]:
    """L16: LG-FedAvg gets to the goal with every seed, and has sent less by then.

    Of the second the estimate and its interval are percent of what FedAvg sent, as in print: the
    geometric mean, as the test is on logarithms of ratios.
    """
    reached = at_goal(rows, "lg_fedavg", "goal_reached")
    share = shares(rows).dropna()
    of = tuple(Line(NAME, _line(line)) for line in ("fedavg", "lg_fedavg"))
    name, most = "parameters sent, % of FedAvg's", (100 + printed_share()) / 2
    saved = greater(-np.log(share.to_numpy() / 100), by=-np.log(most / 100))
    ends = {
        name: 100 * np.exp(-value)
        for name, value in dict(estimate=saved.estimate, low=saved.high, high=saved.low).items()
    }
    there = exact("the goal is reached", float(reached.mean()), bool((reached == 1).all()))
    return [
        there if len(reached) else Part(there.name, 0, there.evidence),
        Part(name, len(share), replace(saved, **ends), of),
    ]


def ahead(rows: pd.DataFrame, scratch: bool = False) -> list[Part]:
    """L17: LG-FedAvg minus FedAvg after ``figure`` rounds, from the same model or (beside) the
    same first weights."""
    rounds, begin = Settings.figure, 0 if scratch else Settings.start
    mine = after(rows, "lg_scratch" if scratch else "lg_fedavg", rounds)
    fed = after(rows, "fedavg", begin + rounds)
    return [paired(f"rounds {begin + 1} to {begin + rounds}", mine, fed, greater)]


CLAIMS = (
    Claim("L16", PAGE, "LG-FedAvg reaches the goal with fewer parameters sent", cheaper),
    Claim("L17", PAGE, "20 rounds on, LG-FedAvg is ahead of FedAvg", ahead),
)
BESIDE = (
    Claim(
        "20 rounds from the first weights",
        PAGE,
        "LG-FedAvg is ahead of FedAvg",
        lambda rows: ahead(rows, True),
    ),
)


def judged(rows: pd.DataFrame, which: tuple[Claim, ...] = CLAIMS) -> pd.DataFrame:
    """Lines of `evidence.claims.judged`; rows: of `stored`."""
    return claims.judged(which, rows, stand_in(rows))


def from_stored() -> pd.DataFrame:
    """L16 and L17 on the recorded runs."""
    return judged(stored())


def _by_seed(rows: pd.DataFrame, line: str) -> pd.Series:
    found = rows.set_index("seed")["value"].astype(float).sort_index()
    return found.rename(Line(NAME, _line(line)))


def _line(line: str) -> tuple[tuple[str, str], ...]:
    return tuple((name, plain(ids(line)[name])) for name in ("method", "start"))
