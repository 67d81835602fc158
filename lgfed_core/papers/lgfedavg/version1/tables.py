"""Tables of the page on version 1: the live run, version 1 against 2, and what "new test" is."""

from itertools import product

import numpy as np
import pandas as pd

from lgfed_core import partition
from lgfed_core.data import Dataset
from lgfed_core.evidence import verdict
from lgfed_core.evidence.claims import said
from lgfed_core.evidence.display import mean_and_sd
from lgfed_core.evidence.printed import METHODS, METRICS, cells
from lgfed_core.evidence.records import select

from ..comparisons import LOCAL, READINGS, SOUND, WORDS as TITLES, lg
from ..printed import TABLES
from ..records import PRINTED
from ..stored import by_seed
from .run import BESIDE, PRINTED_ROUNDS, TABLE

PARTS = {  # part of a run -> its words
    "fedavg": "FedAvg",
    "local": METHODS["local_only"],
    "lg_v1": "LG-FedAvg, version 1",
    "lg_v2": "LG-FedAvg, version 2",
}
TESTS = ("local_test_acc", "new_test_acc")
WAYS = {"outputs": "averaged outputs", "weights": "averaged weights"}


def part_of(rows: pd.DataFrame) -> pd.Series:
    """Which of `PARTS` each result row belongs to: MNIST's version 2 has a table of its own."""
    second = (rows["table"] == BESIDE) | (rows["dataset"] == "cifar10")
    lg_fedavg = second.map({True: "lg_v2", False: "lg_v1"})
    alone = rows["method"].map({"fedavg": "fedavg", "local_only": "local"})
    return alone.fillna(lg_fedavg)


def live(rows: pd.DataFrame, cfg) -> pd.DataFrame:
    """What a run of `version1.run` came to, chosen on validation rows: a line per part.

    rows: of `Experiment.run`. Accuracies in percent, parameters in millions, means over seeds. A
    single model is not averaged, so FedAvg's new test stands in both columns.
    """
    chosen = rows[rows["selection"] == "best_val"]
    means = chosen.assign(part=part_of(chosen)).pivot_table("value", "part", "metric")
    ways = [f"new_test_acc_{way}" for way in WAYS]
    means = means.reindex(
        columns=["local_test_acc", *ways, "new_test_acc", "fedavg_rounds", "params_communicated"]
    )
    for way in ways:
        means[way] = means[way].fillna(means["new_test_acc"])
    ran = means["fedavg_rounds"].round().astype(int).astype(str)
    ran += [f" + {cfg.further}" if part.startswith("lg") else "" for part in means.index]
    shown = {
        "rounds": ran.where(means.index != "local", "none"),
        METRICS["local_test_acc"]: means["local_test_acc"],
        **{f"new test, {words}": means[f"new_test_acc_{way}"] for way, words in WAYS.items()},
        "parameters sent, millions": means["params_communicated"] / 1e6,
    }
    order = [part for part in PARTS if part in means.index]
    return pd.DataFrame(shown).reindex(order).rename(PARTS).rename_axis(None)


def strangers(images: Dataset, devices: int, seed: int) -> np.ndarray:
    """The share of each device's test rows, in percent, whose class it has no training row of: [K].

    Version 1 deals the shard numbers of the label-sorted training set to the test set as well.
    """
    split = partition.label_shards(images.train.y, images.test.y, devices, 2, seed)
    shares = []
    for k in range(devices):
        held, asked = images.train.y[split.train.of(k)], images.test.y[split.test.of(k)]  # [n], [t]
        shares.append(100 * (asked[:, None] != held.unique()).all(1).float().mean().item())
    return np.array(shares)


def contrasts(stored: pd.DataFrame) -> pd.DataFrame:
    """What section 3.1 says of Table 1, per data set: the paper's contrast and ours at paper scale.

    stored: rows of `records.load`. Accuracies in points, parameters in percent of FedAvg's, chosen
    on validation rows and paired over seeds: "mean [95 % interval] (seeds)" or "not yet run".
    """
    printed, lines = cells(TABLES[TABLE]), {}
    for data, title in TITLES.items():
        paper = printed[printed["dataset"] == data].set_index(["method", "metric"])["paper"]
        for metric, other in product(TESTS, ("fedavg", "local_only")):
            words = f"LG-FedAvg - {METHODS[other]}, {METRICS[metric]}"
            ours = _paired(stored, TABLE, data, metric, other)
            gap = paper["lg_fedavg", metric] - paper[other, metric]
            lines[title, words] = {"paper": f"{gap:+.2f}", "ours": _said(ours["a"] - ours["b"])}
        sent = "params_communicated"
        ours = _paired(stored, TABLE, data, sent, "fedavg")
        share = 100 * paper["lg_fedavg", sent] / paper["fedavg", sent]
        lines[title, "parameters sent, % of FedAvg's"] = {
            "paper": f"{share:.0f}",
            "ours": _said(100 * ours["a"] / ours["b"], ""),
        }
    return pd.DataFrame(lines).T


def versions(stored: pd.DataFrame) -> pd.DataFrame:
    """Version 1's method minus version 2's from the same FedAvg models, MNIST at paper scale.

    Points, paired over seeds: "mean [95 % interval] (seeds)" or "not yet run"; a column for the
    choice on validation rows and one for the last round.
    """
    tests = {METRICS[TESTS[0]]: TESTS[0]}
    tests |= {f"new test, {words}": f"new_test_acc_{way}" for way, words in WAYS.items()}
    lines = {}
    for when, selection in (("best on validation", "best_val"), ("last round", "last")):
        for words, metric in tests.items():
            pair = _paired(stored, TABLE, "mnist", metric, "lg_fedavg", BESIDE, selection)
            lines.setdefault(when, {})[words] = _said(pair["a"] - pair["b"])
    return pd.DataFrame(lines)


def two_meanings(stored: pd.DataFrame) -> pd.DataFrame:
    """New test as versions 1 and 2 print it, beside three ways of averaging in our own runs.

    stored: rows of `records.load`. Ours are as described, at paper scale and chosen on validation
    rows: the runs of version 1's table, and those of version 2's with two classes per device.
    """
    numbers, lines = by_seed(stored), {}
    for data, title in TITLES.items():
        for key in (LOCAL, lg(PRINTED_ROUNDS[data])):
            line = {
                ("printed", "version 1"): _printed(TABLE, data, key[0]),
                ("printed", "version 2"): _printed(PRINTED[data][0], data, *key),
            }
            ours = {1: {}, 2: {}}  # version -> its runs, by way to average
            for way, words in (WAYS | {"probabilities": "averaged probabilities"}).items():
                metric = f"new_test_acc_{way}"
                ours[1][words] = values_of(stored, TABLE, data, metric, key[0])
                which = data, 2, key, metric, READINGS[SOUND]
                ours[2][words] = numbers.get(which, pd.Series(dtype=float))
            for version, found in ours.items():
                for words, values in found.items():
                    line[f"our runs of version {version}", words] = mean_and_sd(values, 2)
            lines[title, METHODS[key[0]]] = line
    return pd.DataFrame(lines).T.reindex(columns=list(line))


def _printed(table: str, data: str, method: str, rounds: int | None = None) -> str:
    """A paper's new test, "mean ± sd"; with two classes per device where a table has several."""
    spec = TABLES[table]
    ids = {"method": method, "dataset": data, "classes_per_device": 2, "fedavg_rounds": rounds}
    ids = {c: v for c, v in ids.items() if c in spec.ids and v is not None}
    cell = select(cells(spec), metric=TESTS[1], **ids).iloc[0]
    return f"{cell['paper']:.2f} ± {cell['paper_sd']:.2f}"


def values_of(stored, table, data, metric, method, selection="best_val") -> pd.Series:
    """One number of every seed at paper scale, index seed; empty while nothing has run."""
    where = dict(scale="paper", protocol="as_described", selection=selection)
    stored = select(stored, table=table, dataset=data, metric=metric, method=method, **where)
    return stored.set_index("seed")["value"].astype(float).sort_index()


def _paired(stored, table, data, metric, other, beside="", selection="best_val") -> pd.DataFrame:
    """LG-FedAvg (a) and another (b), of table ``beside`` if it is given, for their common seeds."""
    a = values_of(stored, table, data, metric, "lg_fedavg", selection)
    b = values_of(stored, beside or table, data, metric, other, selection)
    return pd.concat({"a": a, "b": b}, axis=1, join="inner")


def _said(differences: pd.Series, sign: str = "+") -> str:
    return said(verdict.greater(differences), len(differences), sign)
