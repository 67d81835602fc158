"""What the page on representations says in words, from rows; beside each what would make it
false."""

from collections.abc import Iterator

import pandas as pd

from lgfed_core.evidence.verdict import NOT_RUN
from lgfed_core.papers.in_words import KINDS, Pair, bullets, kind, less, mean, sentence

from .settings import LABELS, WAYS, WITHOUT
from .tables import TESTS, WORDS, cell, every, gaps, words


def of(values: pd.DataFrame, rows: pd.DataFrame) -> str:
    """Sentences in Markdown; values: of `tables.chosen`, rows: of `tables.stored`."""
    tests = (_help(values, metric) for metric in TESTS)
    return bullets([_few(values), *tests, _pooled(values), _hidden(values), _heavier(rows)])


def lost(rows: pd.DataFrame) -> str:
    """How many runs of each weight and way diverged, in Markdown; rows: of `tables.stored`."""
    head, found = "**Runs that diverged**", every(rows)
    if found.empty:
        return f"{head}: {NOT_RUN}."
    runs = found["validation_acc"].groupby(level=["weight", "way"]).agg(["size", "count"])
    runs = runs[runs["count"] < runs["size"]]
    lines = []
    for weight in runs.index.unique("weight"):
        mine = runs.loc[weight].reindex(WAYS).dropna().astype(int)
        ways = (f"{WORDS[n]} {size - kept} of {size}" for n, size, kept in mine.itertuples())
        lines.append(f"at weight {weight:g} {', '.join(ways)}")
    # False if a run that is counted as lost here had ended with finite numbers.
    return f"{head}, with whatever labels: {'; '.join(lines) or 'none'}."


def _few(values: pd.DataFrame) -> str:
    fewest, found = words(LABELS[0]), gaps(values).loc[LABELS[0]]
    lines = []
    for metric, test in TESTS.items():
        one = found.xs(metric, level="metric")
        ahead = [WORDS[way] for way in one.index[one["low"] > 0]]
        ran = one["seeds"].max() > 1
        lines.append(f"{test}: {(', '.join(ahead) or 'none') if ran else NOT_RUN}")
    # False if an interval moved to the other side of zero, or came to hold it. No correction is
    # made for how many ways are looked at.
    return f"**With {fewest} a device, clearly ahead of g alone**: {'; '.join(lines)}."


def _help(values: pd.DataFrame, metric: str) -> str:
    helps = (way for way in WAYS if way not in WITHOUT)
    pairs = [
        (f"{words(n)}, {WORDS[way]}", *_both(values, n, way, "plain", metric))
        for way in helps
        for n in LABELS
    ]
    found = [less(*both) for _, *both in pairs]
    ran = sum(runs > 0 for _, runs in found)
    clear = [
        one
        for one, (gain, runs) in zip(pairs, found, strict=True)
        if runs > 1 and kind(gain) != KINDS[2]
    ]
    # False if an interval moved to the other side of zero, or came to hold it. No correction is
    # made for how many ways are looked at.
    head = f"**{TESTS[metric].capitalize()}: what a loss beside the task's changes**, in points"
    if not ran:
        return f"{head}: {NOT_RUN}."
    head += f", is shown in {len(clear)} of {ran} comparisons with g alone"
    return sentence(head, clear, digits=1) if clear else f"{head}."


def _pooled(values: pd.DataFrame) -> str:
    # False if an interval moved to the other side of zero, or came to hold it.
    pairs = [
        (f"{words(n)}, {TESTS[metric]}", *_both(values, n, "fedavg", "plain", metric))
        for metric in TESTS
        for n in LABELS
    ]
    return sentence("**FedAvg, which shares f too**, less g alone, in points", pairs, digits=1)


def _hidden(values: pd.DataFrame) -> str:
    # False if an interval moved to the other side of zero, or came to hold it. Less is what the
    # adversary is there for; its own area says what it reads, not what is there to be read.
    pairs, own = [], []
    for n in LABELS:
        pairs.append((words(n), *_both(values, n, "adversarial", "plain", "probe_slant")))
        area = cell(values, n, "adversarial").get("auxiliary", pd.Series(dtype=float))
        own.append(f"{words(n)} {mean(area)}")
    head = (
        "**Slant that a fresh probe reads**, against an adversary less g alone, in points of area"
    )
    return sentence(f"{head} (the adversary's own area: {', '.join(own)})", pairs, digits=1)


def _heavier(rows: pd.DataFrame) -> str:
    # False if the autoencoder explained as much of the pixels at weight one as at the largest.
    found = every(rows)
    weights = list(found.index.unique("weight")) if len(found) else []
    head = "**What weight does to the autoencoder's own task**, the largest less one, in percent"
    return sentence(f"{head} of the pixels' variance", _weights(found, weights), digits=1)


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
