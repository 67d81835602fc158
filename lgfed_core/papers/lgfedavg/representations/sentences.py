"""What the page on representations says in words, from rows; beside each what would make it
false."""

from collections.abc import Iterator

import pandas as pd

from lgfed_core.evidence.verdict import NOT_RUN
from lgfed_core.papers.in_words import KINDS, Pair, bullets, kind, less, sentence

from .settings import LABELS, WAYS, WITHOUT
from .tables import TESTS, WORDS, cell, every, gaps, words


def of(values: pd.DataFrame, rows: pd.DataFrame) -> str:
    """Sentences in Markdown; values: of `weights.chosen`, rows: of `tables.stored`."""
    tests = (_help(values, metric) for metric in TESTS)
    more = (_pooled(values), _trained(values), _hidden(rows), _heavier(rows))
    return bullets([*short(values), *tests, *more])


def short(values: pd.DataFrame) -> list[str]:
    """Which ways are ahead where labels are fewest, and where all rows have one."""
    return [_ahead(values, n) for n in (LABELS[0], LABELS[-1])]


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


def still(late: pd.DataFrame, by: float = 1.0) -> str:
    """Which lines moved by more than ``by`` points in the last quarter, in Markdown; late: of
    `tables.late`."""
    moved = late.stack(list(range(late.columns.nlevels))).dropna() if late.size else pd.Series()
    far = moved[moved.abs() > by]
    # False if a line that is named had moved by less, or one that is not by more.
    named = (f"{n}, {way}, {test} {gain:+.1f}" for (way, n, test), gain in far.items())
    head = f"**Not levelled**: {len(far)} of {len(moved)} lines moved by more than {by:g} point"
    return f"{head}{': ' * bool(len(far))}{'; '.join(named)}." if len(moved) else ""


def _ahead(values: pd.DataFrame, n: int) -> str:
    found, lines = gaps(values).loc[n], []
    for metric, test in TESTS.items():
        one = found.xs(metric, level="metric")
        ahead = [WORDS[way] for way in one.index[one["low"] > 0]]
        ran = one["seeds"].max() > 1
        lines.append(f"{test}: {(', '.join(ahead) or 'none') if ran else NOT_RUN}")
    # False if an interval moved to the other side of zero, or came to hold it.
    head = f"**With {words(n)} a device, ahead of LG-FedAvg that learns from g alone**"
    many = int((found["seeds"] > 1).sum())
    looks = f" ({many} comparisons, not corrected for)" * bool(many)
    return f"{head}{looks}: {'; '.join(lines)}."


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


def _hidden(rows: pd.DataFrame) -> str:
    # False if an interval moved to the other side of zero, or came to hold it. Less is what the
    # adversary is there for; its own area says what it reads, not what is there to be read.
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
    head = (
        "**Slant that a fresh probe reads**, against an adversary less g alone, in points of area"
    )
    return sentence(f"{head}{ends}", pairs, digits=1)


def _trained(values: pd.DataFrame) -> str:
    # False if an interval moved to the other side of zero, or came to hold it.
    pairs = []
    for n in LABELS:
        for way in ("plain", "fedavg"):
            mine = cell(values, n, way)
            if {"probe_digit", "probe_digit_before"} <= {*mine}:
                name = f"{words(n)}, {WORDS[way]}"
                pairs.append((name, mine["probe_digit"], mine["probe_digit_before"]))
    head = "**Digit from h, trained less untrained**, in points"
    return sentence(head, pairs, digits=1)


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
