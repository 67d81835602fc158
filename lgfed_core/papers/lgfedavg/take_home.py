"""Sentences to take home from the pages on pictures, written from rows; beside each what would make
it false. An interval that holds zero is called neither a gain nor a loss."""

from functools import partial

import numpy as np
import pandas as pd

from lgfed_core.evidence.claims import said
from lgfed_core.evidence.printed import row_name
from lgfed_core.papers.in_words import kind, less, sentence

from .layers import tables as cuts
from .layers.run import TITLES, chosen
from .records import IDS
from .stored import at_paper_scale, by_seed

_READINGS = {  # where nothing is chosen on test rows: as released, the start is
    "as described, chosen on validation rows": ("as_described", "best_val"),
    "as described, last round": ("as_described", "last"),
}


def selection(stored: pd.DataFrame, starts: tuple[int, ...] = (400, 800), full: int = 800) -> str:
    """Whether LG-FedAvg is ahead at home where no test row chooses, at two classes.

    stored: rows of `records.load`; starts: FedAvg rounds before LG-FedAvg.
    """
    values, lines, shown = by_seed(stored), [], []
    for start in starts:
        for words, reading in _READINGS.items():
            cell = partial(_cell, values, "mnist", metric="local_test_acc", reading=reading)
            gain, runs = less(cell(("lg_fedavg", start)), cell(("fedavg", full)))
            if runs > 1:
                shown.append(gain.low > 0)
                lines.append(f"{start}+100, {words}: {said(gain, runs)}")
    if not lines:
        return "not yet run"
    # False if one of these intervals held zero and the sentence still said "in all".
    many = "in all" if all(shown) else f"in {sum(shown)} of {len(shown)}"
    return (
        f"**The advantage over FedAvg at home is shown without choosing on test rows {many} "
        f"readings** (points, 95 % interval, seeds): {'; '.join(lines)}."
    )


def sharing(stored: pd.DataFrame, **only: object) -> str:
    """What sharing adds at home to devices that go on from the same FedAvg model, by setting.

    stored: rows of ``lgfedavg.layers``; only: of `layers.tables.settings` those with these values,
    e.g. ``data="mnist"``. Best on validation rows as described, the last round as released.
    """
    lines = []
    for where in (s for s in cuts.settings(stored) if only.items() <= s.items()):
        data, (selection, words) = where["data"], cuts.read_by(where)
        values = cuts.cell(stored, selection=selection, **where)
        gap = cuts.against(values, chosen(data), ("last", 0)).loc["local_test_acc"]
        if np.isnan(gap["low"]):
            continue
        # False if the interval moved to the other side of zero, or came to hold it.
        way = kind(gap, ("helps", "costs", "is not shown to matter"))
        words = f"on {TITLES[data]}, {words}"
        words += ", as released, last round" * (selection == "last")
        found = said(gap.rename({"difference": "estimate"}), int(gap["seeds"]))
        lines.append(f"{words}, it {way}: {found}")
    return (
        "**What sharing adds at home**, against devices that go on from the same FedAvg model with "
        f"nothing shared (points): {'; '.join(lines) or 'not yet run'}."
    )


def dial(stored: pd.DataFrame, data: str, few: int, many: int) -> str:
    """What more FedAvg rounds before LG-FedAvg change, on both tests, at two classes.

    stored: rows of `records.load`; few, many: FedAvg rounds of the two headline budgets.
    """
    values, pairs = by_seed(stored), []
    for words, metric in _TESTS.items():
        for reading, how in _SOUND.items():
            cell = partial(_cell, values, data, metric=metric, reading=reading)
            ends = cell(("lg_fedavg", many)), cell(("lg_fedavg", few))
            pairs.append((f"{words}, {how}", *ends))
    # False if the interval moved to the other side of zero, or came to hold it.
    head = f"**What a later start changes**, {many}+100 rounds less {few}+100, in points"
    return sentence(head, pairs, fewest=2)


def flattered(stored: pd.DataFrame, data: str, few: int, full: int) -> str:
    """How much choosing the round on test rows adds to each method, as released, at two classes."""
    values, pairs = by_seed(stored), []
    rows = {"LG-FedAvg": ("lg_fedavg", few), "FedAvg": ("fedavg", full)}
    for words, metric in _TESTS.items():
        for name, who in (rows | {"devices alone": ("local_only", 0)}).items():
            ends = (
                _cell(values, data, who, metric, ("as_released", how))
                for how in ("best_test", "last")
            )
            pairs.append((f"{name}, {words}", *ends))
    # False if the interval moved to the other side of zero, or came to hold it.
    head = "**What choosing on test rows adds**, as released, the chosen round less the last, in"
    return sentence(f"{head} points", pairs, fewest=2)


def served(stored: pd.DataFrame, data: str, few: int) -> str:
    """What averaging outputs gives new devices over averaging weights, last round, two classes."""
    values, pairs = by_seed(stored), []
    for name, who in {"devices alone": ("local_only", 0), "LG-FedAvg": ("lg_fedavg", few)}.items():
        for protocol in ("as_described", "as_released"):
            ends = (
                _cell(values, data, who, f"new_test_acc_{way}", (protocol, "last"))
                for way in ("outputs", "weights")
            )
            pairs.append((f"{name}, {protocol.replace('_', ' ')}", *ends))
    # False if the interval moved to the other side of zero, or came to hold it.
    head = "**How new devices are served**: averaged outputs less averaged weights, last round, in"
    return sentence(f"{head} points", pairs, fewest=2)


def alone(stored: pd.DataFrame, data: str, few: int, full: int) -> str:
    """Devices that send nothing, at home, less each method that sends, at two classes."""
    values, lines = by_seed(stored), []
    reading = ("as_described", "best_val")
    cell = partial(_cell, values, data, metric="local_test_acc", reading=reading)
    for name, who in {"FedAvg": ("fedavg", full), "LG-FedAvg": ("lg_fedavg", few)}.items():
        gain, runs = less(cell(("local_only", 0)), cell(who))
        if runs > 1:
            # False if the interval moved to the other side of zero, or came to hold it.
            lines.append(f"{kind(gain)} right than {name}, {said(gain, runs)}")
    return f"{TITLES[data]}: {'; '.join(lines) or 'not yet run'}"


def drowned(stored: pd.DataFrame, data: str) -> str:
    """The runs whose best models are at chance by averaged outputs, which one model can drown, and
    not by averaged probabilities, of which each has one vote; "" where there are none."""
    ids, ways = IDS[:3], ["new_test_acc_outputs", "new_test_acc_probabilities"]
    rows = at_paper_scale(stored, data)
    rows = rows[rows["selection"] != "last"]
    wide = rows.pivot_table("value", ["protocol", *ids, "seed"], "metric").reindex(columns=ways)
    # False if a run that is named had outputs off chance (10 %, ten classes), or votes at it.
    found = wide[(wide[ways[0]] - 10.0).abs().lt(0.05) & wide[ways[1]].gt(20.0)].reset_index()
    lines = [
        f"{line['protocol'].replace('_', ' ')}, {row_name({id: line[id] for id in ids})}, seed "
        f"{line['seed']} ({line[ways[0]]:.1f} %; by averaged probabilities {line[ways[1]]:.1f} %)"
        for line in found.to_dict("records")
    ]
    head = "**One model drowns the others** in the averaged outputs of the best models"
    return f"{head}: {'; '.join(lines)}." if lines else ""


_TESTS = {"at home": "local_test_acc", "on new devices": "new_test_acc"}
_SOUND = {  # what is read is not chosen on test rows; as released, the start is
    ("as_described", "best_val"): "as described",
    ("as_released", "last"): "as released, last round",
}


def _cell(values: dict, data: str, who: tuple, metric: str, reading: tuple) -> pd.Series:
    """Values by seed at two classes per device; empty where none has run."""
    return values.get((data, 2, who, metric, reading), pd.Series(dtype=float))
