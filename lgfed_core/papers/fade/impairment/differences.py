"""What the game changes on impairment, by users a round, in tables."""

from collections.abc import Iterator

import pandas as pd

from lgfed_core.evidence.display import Page
from lgfed_core.papers.differences import Pair, table, tables

from . import claims
from .figures import WHO


def of(found: pd.DataFrame) -> Page:
    """On the users that train and on those left out; found: of `claims.stored`."""
    return tables(
        table(
            f"What the game changes in {name} of {words}",
            _against_none(found, f"{who}_{metric}"),
            digits=3 if metric == "delta_eo" else 1,
            fewest=2,
        )
        for who, words in WHO.items()
        for metric, name in (("delta_eo", "ΔEO (0 is fair)"), ("f1", "F1, %"))
    )


def _against_none(found: pd.DataFrame, metric: str) -> Iterator[Pair]:
    for name, rates in claims.seeing(found).items():
        for lr in rates:
            mine = claims.wide(found, name, lr, metric)
            for loss in mine.columns.drop("none") if "none" in mine else ():
                for m, own in mine.groupby("per_round"):
                    both = (own[column].droplevel("per_round") for column in (loss, "none"))
                    yield f"{name}, rate {lr:g}, {m:g} a round, {loss} loss", *both
