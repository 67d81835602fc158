"""Version 1 against its rivals and against version 2, in tables."""

from collections.abc import Iterator

import pandas as pd

from lgfed_core.evidence.claims import said
from lgfed_core.evidence.display import Page
from lgfed_core.evidence.printed import METHODS, cells
from lgfed_core.evidence.verdict import greater
from lgfed_core.papers.differences import Pair, table, tables

from ..comparisons import LOCAL, READINGS, SOUND
from ..printed import TABLES
from ..records import PRINTED
from ..stored import by_seed
from .run import BESIDE, TABLE
from .tables import ALL_WAYS, TESTS, TITLES, WAYS, printed_new_test, values_of

_SENT = "params_communicated"


def of(stored: pd.DataFrame) -> Page:
    """Both tests, the share sent and the own head; stored: rows of `records.load`."""
    words = ("Own classes, points of accuracy", "New devices, points of accuracy")
    tests = [table(head, _pairs(stored, test)) for test, head in zip(TESTS, words, strict=True)]
    head = "What the own head is worth: version 1 ahead of version 2 on MNIST, points of accuracy"
    return tables([*tests, table(head, _own_head(stored))])


def shares(stored: pd.DataFrame) -> pd.DataFrame:
    """Parameters that LG-FedAvg sends, in percent of FedAvg's: printed and ours, by data set."""
    printed, lines = cells(TABLES[TABLE]), {}
    for data, title in TITLES.items():
        mine = printed[(printed["dataset"] == data) & (printed["metric"] == _SENT)]
        paper = mine.set_index("method")["paper"]
        sent = [values_of(stored, TABLE, data, _SENT, m) for m in ("lg_fedavg", "fedavg")]
        ours = (100 * sent[0] / sent[1]).dropna()
        lines[title] = {
            "printed, %": 100 * paper["lg_fedavg"] / paper["fedavg"],
            "ours, %": said(greater(ours), len(ours), "", digits=1),
        }
    return pd.DataFrame(lines).T


def meanings(stored: pd.DataFrame) -> pd.DataFrame:
    """New test of models trained alone, by way to average, beside what each version prints.

    stored: rows of `records.load`. A mean within a printed deviation is followed by that version.
    """
    numbers, out = by_seed(stored), {}
    for data, title in TITLES.items():
        for whose, ours in _runs(stored, numbers, data, LOCAL):
            if all(len(values) > 1 for values in ours.values()):
                out[title, whose] = {ALL_WAYS[way]: _fits(data, v) for way, v in ours.items()}
        for version, table_ in _versions(data):
            paper = printed_new_test(table_, data, *LOCAL)
            out[title, f"{version} prints"] = {
                "": f"{paper['paper']:.2f} ± {paper['paper_sd']:.2f}"
            }
    return pd.DataFrame(out).T.fillna("")


def _pairs(stored: pd.DataFrame, test: str) -> Iterator[Pair]:
    for data, title in TITLES.items():
        mine = values_of(stored, TABLE, data, test, "lg_fedavg")
        for other in ("fedavg", "local_only"):
            theirs = values_of(stored, TABLE, data, test, other)
            yield f"{title}, LG-FedAvg against {METHODS[other]}", mine, theirs


def _own_head(stored: pd.DataFrame) -> Iterator[Pair]:
    tests = {"local test": TESTS[0]}
    tests |= {f"new test, {words}": f"new_test_acc_{way}" for way, words in WAYS.items()}
    for words, metric in tests.items():
        both = (values_of(stored, t, "mnist", metric, "lg_fedavg") for t in (TABLE, BESIDE))
        yield words, *both


def _runs(stored, numbers, data: str, key: tuple) -> Iterator[tuple[str, dict[str, pd.Series]]]:
    """Whose runs, and their new test by seed and way of averaging, of the ways that have run."""
    first = {w: values_of(stored, TABLE, data, f"new_test_acc_{w}", key[0]) for w in ALL_WAYS}
    at = {w: (data, 2, key, f"new_test_acc_{w}", READINGS[SOUND]) for w in ALL_WAYS}
    second = {w: numbers.get(k, pd.Series(dtype=float)) for w, k in at.items()}
    for version, found in (("version 1", first), ("version 2", second)):
        ran = {w: v for w, v in found.items() if len(v)}
        many = max((len(v) for v in ran.values()), default=0)
        yield f"our runs of {version}, {many} seeds", ran


def _versions(data: str) -> tuple[tuple[str, str], tuple[str, str]]:
    return ("version 1", TABLE), ("version 2", PRINTED[data][0])


def _fits(data: str, values: pd.Series) -> str:
    """ "84.60, as version 1 prints": where the mean is within a printed deviation."""
    mean, fits = values.mean(), []
    for version, name in _versions(data):
        paper = printed_new_test(name, data, *LOCAL)
        fits += [version] * int(abs(mean - paper["paper"]) <= paper["paper_sd"])
    return f"{mean:.2f}" + f", as {' and '.join(fits)} prints" * bool(fits)
