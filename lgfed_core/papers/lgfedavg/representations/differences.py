"""What each way to learn a representation changes, in tables."""

from collections.abc import Iterator

import pandas as pd

from lgfed_core.evidence.display import Page
from lgfed_core.papers.differences import Pair, table, tables

from .settings import LABELS, WAYS, WITHOUT
from .tables import TESTS, WORDS, cell, every, words


def of(values: pd.DataFrame, rows: pd.DataFrame) -> Page:
    """values: of `weights.chosen`, rows: of `tables.stored`."""
    tests = (_help(values, metric) for metric in TESTS)
    more = (_pooled(values), _trained(values), _hidden(rows), _heavier(rows))
    return tables([*tests, *more])


def lost(rows: pd.DataFrame) -> pd.DataFrame:
    """Runs that diverged, "1 of 9", by weight and way; rows: of `tables.stored`."""
    found = every(rows)
    if found.empty:
        return pd.DataFrame()
    runs = found["validation_acc"].groupby(level=["weight", "way"]).agg(["size", "count"])
    runs = runs[runs["count"] < runs["size"]]
    many = (runs["size"] - runs["count"]).astype(str) + " of " + runs["size"].astype(str)
    return (
        many.unstack("way")
        .reindex(columns=[w for w in WAYS if w in many.index.unique("way")])
        .rename(columns=WORDS)
        .fillna("")
    )


def _help(values: pd.DataFrame, metric: str) -> str:
    helps = (way for way in WAYS if way not in WITHOUT)
    pairs = [
        (f"{words(n)}, {WORDS[way]}", *_both(values, n, way, "plain", metric))
        for way in helps
        for n in LABELS
    ]
    return table(
        f"{TESTS[metric].capitalize()}: what a loss beside the task's adds, points", pairs, 1
    )


def _pooled(values: pd.DataFrame) -> str:
    pairs = [
        (f"{words(n)}, {TESTS[metric]}", *_both(values, n, "fedavg", "plain", metric))
        for metric in TESTS
        for n in LABELS
    ]
    return table("FedAvg, which shares f too, ahead of g alone, points", pairs, digits=1)


def _hidden(rows: pd.DataFrame) -> str:
    found = every(rows)
    pairs, own = [], []
    for n in LABELS:
        with_one, plain = (cell(found, n, way) for way in ("adversarial", "plain"))
        if {"probe_slant", "auxiliary"} <= {*with_one.dropna(axis=1, how="all")}:
            base = plain["probe_slant"].droplevel("weight")
            slant = with_one["probe_slant"].unstack("weight")
            pairs += [(f"{words(n)} at weight {w:g}", slant[w], base) for w in slant]
            own += with_one["auxiliary"].groupby(level="weight").mean().tolist()
    ends = f" (the adversary's own area: {min(own):.0f} to {max(own):.0f})" if own else ""
    head = "Slant that a fresh probe reads: against an adversary above g alone, points of area"
    return table(f"{head}{ends}", pairs, digits=1)


def _trained(values: pd.DataFrame) -> str:
    pairs = []
    for n in LABELS:
        for way in ("plain", "fedavg"):
            mine = cell(values, n, way)
            if {"probe_digit", "probe_digit_before"} <= {*mine}:
                name = f"{words(n)}, {WORDS[way]}"
                pairs.append((name, mine["probe_digit"], mine["probe_digit_before"]))
    head = "Digit from h: trained ahead of untrained, points"
    return table(head, pairs, digits=1)


def _heavier(rows: pd.DataFrame) -> str:
    found = every(rows)
    weights = list(found.index.unique("weight")) if len(found) else []
    head = "The autoencoder's own task: the largest weight above one, % of the pixels' variance"
    return table(head, _weights(found, weights), digits=1)


def _weights(found: pd.DataFrame, weights: list) -> Iterator[Pair]:
    for n in LABELS if weights else ():
        mine = cell(found, n, "autoencoder")
        if "auxiliary" in mine:
            wide = mine["auxiliary"].unstack("weight")
            if 1 in wide and max(weights) in wide:
                yield words(n), wide[max(weights)], wide[1]


def _both(values: pd.DataFrame, n: int, way: str, than: str, metric: str) -> list[pd.Series]:
    empty = pd.Series(dtype=float)
    return [cell(values, n, w).get(metric, empty) for w in (way, than)]
