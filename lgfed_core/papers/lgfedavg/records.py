"""Result rows and curves of LG-FedAvg's experiments: made of outcomes, and read again by seed."""

from collections.abc import Callable

import pandas as pd

from lgfed_core import models
from lgfed_core.engine import Outcome, Participation
from lgfed_core.evidence.records import select
from lgfed_core.evidence.report import SELECTION
from lgfed_core.evidence.rows import DIVERGED as ENDED, plain
from lgfed_core.papers.parts import percent

from .communication import System

PRINTED = {  # data set -> tables whose rows its experiment fills
    "mnist": ("lgfedavg_v2_table6_mnist", "lgfedavg_mtl_mnist"),
    "cifar10": ("lgfedavg_v2_table8_cifar10", "lgfedavg_v2_table1_cifar10", "lgfedavg_mtl_cifar10"),
}
IDS = ("classes_per_device", "method", "fedavg_rounds", "lg_rounds")
DIVERGED = "devices_diverged"  # how many devices' models ended beyond the finite numbers
_RUN = ["protocol", *IDS[:3], "seed"]  # what tells one run of a table from another
_LOST = {DIVERGED: "devices", ENDED: "in round"}
NEW = ("weights", "outputs", "probabilities")  # what is averaged to serve a new device


def rows(cfg, part: str, outcome: Outcome, table: str) -> pd.DataFrame:
    """The tidy result rows of one part, for each of its seeds (columns: `evidence.rows`).

    cfg: the experiment's settings; part: "fedavg", "local", "mtl", or "lg_" and the FedAvg rounds
    before it.

    The headline selection fills the paper's own column names, in percent; as released, New Test
    is the averaged weights, of LG-FedAvg at the round where the local test accuracy peaks.
    Parameters communicated are counted by the paper's convention, for the rounds that ran.
    """
    method, fed_rounds, lg_rounds = named(cfg, part)
    here, done = system(cfg), [cfg.ran(n) for n in (fed_rounds, lg_rounds)]
    # MTL's participants send their models and receive the mean of the others'
    count = here.deployed if method == "mtl" else here.papers  # which is 0 without rounds
    sent = {"params_communicated": float(count(*done))}

    def more(selection: str, final: pd.DataFrame) -> dict:
        last = selection == "last" and f"last_{DIVERGED}" in final
        return sent | ({DIVERGED: final[f"last_{DIVERGED}"]} if last else {})

    ids = zip(IDS, (cfg.classes, method, fed_rounds, lg_rounds), strict=True)
    return tidy(cfg, part, outcome, more).assign(table=table, **dict(ids))


def tidy(
    cfg, part: str, outcome: Outcome, more: Callable[[str, pd.DataFrame], dict]
) -> pd.DataFrame:
    """Columns seed, selection, metric, value: tests in percent, and ``more(selection, final)``."""
    kind, found = global_model if part == "fedavg" else personal_models, []
    for selection, tests in kind(cfg, outcome.history, outcome.final).items():
        wide = (100 * tests).assign(**more(selection, outcome.final)).reset_index()
        found.append(wide.melt("seed", var_name="metric").assign(selection=selection))
    return pd.concat(found, ignore_index=True)


def named(cfg, part: str) -> tuple[str, int, int]:
    """Method, FedAvg rounds and LG rounds, as the paper's tables name a row."""
    if part.startswith("lg_"):
        return "lg_fedavg", int(part.removeprefix("lg_")), cfg.lg_rounds
    return {
        "fedavg": ("fedavg", max(cfg.budgets), 0),
        "local": ("local_only", 0, 0),
        "mtl": ("mtl", cfg.mtl_rounds, 0),
    }[part]


def global_model(cfg, history: pd.DataFrame, final: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Both selections of FedAvg, by seed; as released one accuracy stands in both columns."""
    tests = ["local_test_acc", "new_test_acc"]
    both = ["new_test_acc", "new_test_acc"] if cfg.released else tests
    at_end = history[history["round"] == cfg.rounds(max(cfg.budgets))].set_index("seed")
    last = at_end.reindex(final.index, columns=tests)[both]
    best = final[[f"best_{test}" for test in both]]
    found = {"last": last, SELECTION[cfg.protocol]: best}
    return {selection: numbers.set_axis(tests, axis=1) for selection, numbers in found.items()}


def personal_models(cfg, history: pd.DataFrame, final: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Both selections of personal models, by seed; new devices are served as the protocol says."""
    tests = ["local_test_acc", *(f"new_test_acc_{way}" for way in NEW)]
    found = {}
    for when, selection in (("last", "last"), ("best", SELECTION[cfg.protocol])):
        names = {f"{when}_{test}": test for test in tests if f"{when}_{test}" in final}
        found[selection] = final[[*names]].rename(columns=names)
    if "averaged_local_test_acc" in history:  # LG-FedAvg as released: the peak round's average
        peaks = history.loc[history.groupby("seed")["averaged_local_test_acc"].idxmax()]
        names = {"averaged_local_test_acc": tests[0], "averaged_new_test_acc": tests[1]}
        found["best_test"] = peaks.set_index("seed")[[*names]].rename(columns=names)
    served = "new_test_acc_weights" if cfg.released else "new_test_acc_outputs"
    return {name: some.assign(new_test_acc=some[served]) for name, some in found.items()}


def by_round(histories: dict[str, pd.DataFrame], ids: Callable[[str], dict]) -> pd.DataFrame:
    """Curves to draw: seed, round, metric, value in percent, and the ``ids`` of each part."""
    lines = [
        percent(history, ["seed", "round"]).assign(**ids(part))
        for part, history in histories.items()
        if len(history)
    ]
    return pd.concat(lines, ignore_index=True) if lines else pd.DataFrame()


def system(cfg) -> System:
    """The network and federation of an experiment's settings."""
    net, m = models.make(cfg.net, 0), Participation(cfg.fraction).cohort(cfg.devices)
    return System(models.count(net, cfg.shared(net)), models.count(net), m, cfg.devices)


def left_the_numbers(stored: pd.DataFrame, dataset: str) -> pd.DataFrame:
    """Runs whose devices left the finite numbers: protocol, classes, method, FedAvg rounds, seed,
    devices, and the round in which the run ended for it (else NaN).

    Such devices break every average of the last round's models: a hundred averaged probabilities,
    where each device has one vote, are then at chance although devices do well at home. By that
    sign older runs are known, whose rows do not say how many devices it were (NaN).
    """
    rows = at_paper_scale(stored, dataset, selection="last")
    wide = rows.pivot_table("value", _RUN, "metric")
    signs = {"local_test_acc", "new_test_acc_probabilities", DIVERGED, ENDED}
    wide = wide.reindex(columns=[*wide, *(signs - {*wide})])
    chance = (wide["new_test_acc_probabilities"] - 10.0).abs() < 0.05  # ten classes
    silent = chance & (wide["local_test_acc"] > 20.0) & wide[DIVERGED].isna() & wide[ENDED].isna()
    found = wide[silent | (wide[DIVERGED] > 0) | wide[ENDED].notna()]
    return found.rename(columns=_LOST).reset_index()[[*_RUN, *_LOST.values()]]


def unbroken(stored: pd.DataFrame, dataset: str) -> pd.DataFrame:
    """``stored`` without what runs of `left_the_numbers` have of their last round."""
    lost = left_the_numbers(stored, dataset)[_RUN].map(plain)
    if lost.empty:
        return stored
    gone = stored[_RUN].map(plain).apply(tuple, axis=1).isin([*lost.apply(tuple, axis=1)])
    return stored[~((stored["selection"] == "last") & gone)]


def at_hand() -> pd.DataFrame:
    """All rows of version 2's two experiments, and of version 1's."""
    return select(("lgfedavg.mnist", "lgfedavg.cifar10", "lgfedavg.version1"))


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
    """New test of last-round models by what is averaged, at paper scale: (way, mean | std).

    stored: rows of `records.load`; those that are not `unbroken` are left out.
    """
    rows = at_paper_scale(stored, dataset, selection="last", classes_per_device=classes)
    ways = {f"new_test_acc_{way}": way for way in NEW}
    values = select(unbroken(rows, dataset), metric=ways)
    values = values.groupby(["protocol", *IDS[1:], "metric"])["value"].agg(["mean", "std"])
    return values.unstack().swaplevel(axis=1).rename(columns=ways).sort_index(axis=1)
