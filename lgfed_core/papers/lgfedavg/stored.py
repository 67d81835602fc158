"""Stored rows of LG-FedAvg's experiments, read: by seed, without runs that left the numbers."""

import pandas as pd

from lgfed_core.evidence.records import select
from lgfed_core.evidence.rows import DIVERGED as ENDED, plain

from .records import DIVERGED, IDS, NEW, PRINTED

_LOST = {DIVERGED: "devices", ENDED: "in round"}
EXPERIMENTS = ("lgfedavg.mnist", "lgfedavg.cifar10", "lgfedavg.version1")


def left_the_numbers(stored: pd.DataFrame, dataset: str) -> pd.DataFrame:
    """Runs whose devices left the finite numbers: protocol, classes, method, FedAvg rounds, seed,
    devices, and the round in which the run ended for it (else NaN).

    Such devices break every average of the last round's models: a hundred averaged probabilities,
    where each device has one vote, are then at chance although devices do well at home. By that
    sign older runs are known, whose rows do not say how many devices it were (NaN).
    """
    ids = ["protocol", *IDS[:3], "seed"]
    rows = at_paper_scale(stored, dataset, selection="last")
    wide = rows.pivot_table("value", ids, "metric")
    signs = {"local_test_acc", "new_test_acc_probabilities", DIVERGED, ENDED}
    wide = wide.reindex(columns=[*wide, *(signs - {*wide})])
    chance = (wide["new_test_acc_probabilities"] - 10.0).abs() < 0.05  # ten classes
    silent = chance & (wide["local_test_acc"] > 20.0) & wide[DIVERGED].isna() & wide[ENDED].isna()
    found = wide[silent | (wide[DIVERGED] > 0) | wide[ENDED].notna()]
    return found.rename(columns=_LOST).reset_index()[[*ids, *_LOST.values()]]


def _of(stored: pd.DataFrame, lost: pd.DataFrame) -> pd.Series:
    """Which rows of ``stored`` are those of runs in ``lost``, of which there are some."""
    lost = lost.drop(columns=list(_LOST.values()))
    keys = [tuple(map(plain, line)) for line in lost.to_numpy()]
    return stored[list(lost)].map(plain).apply(tuple, axis=1).isin(keys)


def unbroken(stored: pd.DataFrame, dataset: str) -> pd.DataFrame:
    """``stored`` without what runs of `left_the_numbers` have of their last round."""
    lost = left_the_numbers(stored, dataset)
    last = stored["selection"] == "last"
    return stored[~(last & _of(stored, lost))] if len(lost) else stored


def at_hand() -> pd.DataFrame:
    """All rows of version 2's two experiments, and of version 1's."""
    return select(EXPERIMENTS)


def at_paper_scale(stored: pd.DataFrame, dataset: str, **where: object) -> pd.DataFrame:
    """The paper-scale rows of one data set; stored: rows of `records.load`, of any experiment."""
    return select(stored, columns=IDS, table=PRINTED[dataset], scale="paper", **where)


def by_seed(stored: pd.DataFrame) -> dict[tuple, pd.Series]:
    """Every number of both experiments at paper scale: key -> values in percent by seed.

    stored: rows of `records.load`; those that are not `unbroken` are left out. A key is (data set,
    classes, (method, FedAvg rounds), metric, (protocol, selection)), e.g. ("mnist", 2,
    ("lg_fedavg", 400), "new_test_acc", ...).
    """
    columns = [*IDS[:3], "metric", "protocol", "selection"]
    out = {}
    for dataset in PRINTED:
        rows = unbroken(at_paper_scale(stored, dataset), dataset)[[*columns, "seed", "value"]]
        rows = rows.sort_values("seed", kind="stable")
        seeds, values = rows["seed"].to_numpy(), rows["value"].to_numpy(float)
        for key, at in rows.groupby(columns).indices.items() if len(rows) else ():
            classes, method, rounds, metric, *reading = map(plain, key)
            where = dataset, int(classes), (method, int(rounds)), metric, tuple(reading)
            out[where] = pd.Series(values[at], pd.Index(seeds[at], name="seed"), name="value")
    return out


def ways_to_serve(stored: pd.DataFrame, classes: int, dataset: str = "mnist") -> pd.DataFrame:
    """New test of last-round models by averaged weights, outputs and probabilities, paper scale.

    stored: rows of `records.load`; those that are not `unbroken` are left out. Columns (way, mean |
    sd over seeds); a way that was not computed when the rows were made has none.
    """
    ids = ["protocol", *IDS[1:]]
    rows = at_paper_scale(stored, dataset, selection="last", classes_per_device=classes)
    rows = unbroken(rows, dataset)
    out = {}
    for way in NEW:
        values = rows[rows["metric"] == f"new_test_acc_{way}"].groupby(ids, sort=False)["value"]
        if values.ngroups or way != "probabilities":
            out |= {(way, "mean"): values.mean(), (way, "sd"): values.std()}
    return pd.DataFrame(out)
