"""Claims L14 and L15 on the stored runs (Liang et al., v1 section 3.3; v2 section 5.5).

They are read *as described*, at the last round, for i.i.d. and non-i.i.d. devices alike. "About" a
printed number means the book's margin: twice the printed deviation, at least 2 points of AUC and 1
of accuracy.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pandas as pd

from lgfed_core.data.adult import GROUPS
from lgfed_core.evidence import printed, verdict
from lgfed_core.evidence.claims import Claim, Comparison, paired, tested
from lgfed_core.evidence.printed import METRICS
from lgfed_core.evidence.records import select
from lgfed_core.evidence.rows import plain
from lgfed_core.papers.guards import gap
from lgfed_core.papers.live_claims import Judged

from ..printed import TABLES
from . import run as adult, settings

_HOW = ["optimiser", "adversary_steps", "adversary_width", "adversary_dropout"]
COLUMNS = ("method", "split", "loss", "lambda", "round", *_HOW)
_SWEPT = ["class_acc", "dp_sex", "eo_sex", "adv_auc", "probe_best"]
_SWEPT += ["validation_acc", "validation_probe"]
Way = tuple[str, float]  # an adversary of the sweep, and lambda


def stored_rows() -> pd.DataFrame:
    """All rows recorded by the experiment, with the columns that a table needs in any case."""
    return select(adult.NAME, columns=COLUMNS)


def by_seed(stored: pd.DataFrame, metric: str, **ids: object) -> pd.Series:
    """One number of every run at paper scale: values by seed; empty where nothing has run.

    ``metric`` may be a kind of probe without an attribute (``probe_network``): then it is the mean
    over race and sex. ids: columns and the values they must have, e.g. method="fedavg".
    """
    rows = select(stored, scale="paper", **ids)
    names = [metric] if (rows["metric"] == metric).any() else [f"{metric}_{g}" for g in GROUPS]
    values = rows[rows["metric"].isin(names)].groupby("seed")["value"].agg(["mean", "count"])
    return values.loc[values["count"] == len(names), "mean"]


def cell(stored: pd.DataFrame, metric: str, method: str, split: str, protocol: str) -> pd.Series:
    """`by_seed` for a cell of Table 4."""
    ids = dict(table=adult.TABLE, method=method, split=split, protocol=protocol)
    return by_seed(stored, metric, **ids)


def along_lambda(stored: pd.DataFrame) -> pd.DataFrame:
    """The frontier on i.i.d. devices at paper scale, means over seeds: lines (loss, lambda), a
    column per metric; lambda = 0, which belongs to both losses, is under "vanilla"."""
    rows = select(stored, table=adult.FRONTIER, scale="paper", split="iid")
    return rows.astype({"lambda": float}).pivot_table("value", ["loss", "lambda"], "metric")


def chosen(stored: pd.DataFrame) -> float | None:
    """What `run.pick` picks from stored runs; None while the frontier is not whole."""
    line = along_lambda(stored)
    line = line.xs("vanilla") if len(line) else line
    return adult.pick(line) if {0.0, *settings.Settings.frontier} <= {*line.index} else None


def swept_rows(stored: pd.DataFrame, split: str = "iid") -> pd.DataFrame:
    """The sweep at paper scale on devices of a split, as far as lambda = 0 has run beside others.

    ``adversary`` says in words how the game was optimised.
    """
    rows = select(stored, table=adult.SWEEP, scale="paper", split=split)
    rows = rows.assign(adversary_dropout=rows["adversary_dropout"].map(plain))
    rows = rows.astype({"lambda": float}).sort_values([*_HOW, "lambda"], kind="stable")
    rows["adversary"] = [
        f"{'Adam' if optimiser == 'adam' else 'SGD'}, {steps:g} adversary steps of {width:g} units"
        + (f", its dropout {dropout}" if dropout else "")
        for optimiser, steps, width, dropout in rows[_HOW].itertuples(index=False)
    ]
    lambdas = rows.groupby("adversary")["lambda"]
    return rows[(lambdas.transform("min") == 0) & (lambdas.transform("nunique") > 1)]


def sweep(stored: pd.DataFrame) -> pd.DataFrame:
    """Means over seeds of `swept_rows`: a line per adversary and lambda; and how many seeds."""
    rows = swept_rows(stored)
    table = rows.pivot_table("value", ["adversary", "lambda"], "metric", sort=False)
    seeds = rows.groupby(["adversary", "lambda"])["seed"].nunique()
    return table.reindex(columns=_SWEPT).assign(seeds=seeds)


def picked(table: pd.DataFrame) -> list[Way]:
    """The adversaries of a `sweep`, each with the lambda that validation rows pick."""
    ways = table.groupby("adversary", sort=False)
    return [(adversary, adult.pick(lines.droplevel(0))) for adversary, lines in ways]


def stronger(stored: pd.DataFrame) -> Way | None:
    """The way of the sweep that leaks less than Table 4's on validation rows; None if none does."""
    table, strength = sweep(stored), chosen(stored)
    leak = table["validation_probe"]
    best = min(picked(table), key=lambda way: leak[way], default=None)
    if best is None or strength is None:
        return best
    known = along_lambda(stored).loc[("vanilla", strength), "validation_probe"]
    return best if leak[best] < known else None


def _values(
    stored: pd.DataFrame, metric: str, hides: bool, split: str, way: Way | None
) -> pd.Series:
    """By seed, with an adversary or (not ``hides``) without: of Table 4, or of a ``way``."""
    if way is None:
        method = "lg_fedavg_adv" if hides else "lg_fedavg"
        return cell(stored, metric, method, split, "as_described")
    adversary, strength = way
    ids = {"adversary": adversary, "lambda": strength if hides else 0.0}
    return by_seed(swept_rows(stored, split), metric, **ids)


def _is_random(stored: pd.DataFrame, judge: str, split: str, way: Way | None) -> Comparison:
    """With an adversary, the AUC of a ``judge`` is about 50, which is chance."""
    area, words = _values(stored, judge, True, split, way), f"{_devices(split)}, {METRICS[judge]}"
    return tested(words, area, verdict.equivalent, 50.0, _margin("adv_auc", split))


def _margin(metric: str, split: str) -> float:
    """How far from a printed number of the row with an adversary still counts as about it."""
    return printed.margin(TABLES[adult.TABLE], metric, method="lg_fedavg_adv", split=split)


def _printed_cost(split: str) -> float:
    """Points of accuracy that the adversary costs in Table 4."""
    found = select(printed.cells(TABLES[adult.TABLE]), metric="class_acc", split=split)
    paper = found.set_index("method")["paper"]
    return round(paper["lg_fedavg"] - paper["lg_fedavg_adv"], 1)


def _devices(split: str) -> str:
    """ "i.i.d. devices"."""
    return f"{printed.row_name({'split': split})} devices"


def l14(stored: pd.DataFrame, way: Way | None = None) -> list[Comparison]:
    """L14: the adversary's AUC is about 50, at a cost of about 4 points of accuracy.

    The adversary is one that is trained to convergence, a network probe. The cost counts against
    LG-FedAvg without adversary.
    """
    parts = []
    for split in settings.SPLITS:
        both = [_values(stored, "class_acc", hides, split, way) for hides in (True, False)]
        least, words = -adult.COST - _margin("class_acc", split), f"{_devices(split)}, accuracy"
        parts.append(_is_random(stored, "probe_network", split, way))
        parts.append(paired(words, *both, verdict.greater, by=least))
    return parts


def l15(stored: pd.DataFrame, way: Way | None = None) -> list[Comparison]:
    """L15: classifiers fitted afterwards are close to random, too: logistic and network probes."""
    return [
        _is_random(stored, kind, split, way)
        for split in settings.SPLITS
        for kind in ("probe_logistic", "probe_network")
    ]


def fair_chance(claim: Callable[..., list[Comparison]], stored: pd.DataFrame) -> list[Comparison]:
    """``claim`` where the method leaks least on validation rows; unswept, nothing refutes it."""
    found = claim(stored, way=stronger(stored))
    if len(sweep(stored)):
        return found
    return [replace(part, evidence=replace(part.evidence, p_against=1.0)) for part in found]


_PAGE, _STRONGEST = "lgfedavg/fairness", ("Adam, 5 adversary steps of 32 units", 100)
CLAIMS = (
    Claim(
        "L14",
        _PAGE,
        "a converged adversary is at 50, for 4 points",
        partial(fair_chance, l14),
        question="Does a local adversary hide a protected attribute, at a small cost of accuracy?",
        answer="**No.** A network trained afterwards still reads both; sex even better than "
        "without the adversary, by 3 to 4 points of AUC, as is shown on i.i.d. devices. At its "
        "strongest it costs 3 points of accuracy; the paper's texts say about 4, its table 1 to 2.",
        guard=lambda told: (
            told.tally(2, 2)
            and stronger(stored_rows()) == _STRONGEST
            and told.between(20.5, 21.5, at="network probe")
            and told.between(-3.5, -2.5, at="accuracy")
            and _read("probe_network") == {"sex": (79, 80), "race": (62, 63)}
            and _read("probe_network", False) == {"sex": (76, 76), "race": (62, 65)}
            and _reads_sex_better()
            and sorted(_printed_cost(split) for split in settings.SPLITS) == [1.0, 2.2]
        ),
        unit="AUC above 50 (mean of race and sex), and points of accuracy that the adversary adds",
        together=True,
    ),
    Claim(
        "L15",
        _PAGE,
        "probes are close to random",
        partial(fair_chance, l15),
        question="Are probes fitted to the representations afterwards close to chance?",
        answer="**No.** Logistic and network probes read sex at an AUC of 74 to 80 (without the "
        "adversary 74 to 76), and race at 61 to 63 (62 to 65).",
        guard=lambda told: (
            told.tally(0, 4)
            and stronger(stored_rows()) == _STRONGEST
            and told.between(17.5, 21.5)
            and _read("probe_logistic") == {"sex": (74, 75), "race": (61, 61)}
            and _read("probe_network") == {"sex": (79, 80), "race": (62, 63)}
            and _read("probe_logistic", False) == {"sex": (74, 75), "race": (63, 64)}
            and _read("probe_network", False) == {"sex": (76, 76), "race": (62, 65)}
        ),
        unit="AUC above 50, which is chance; mean of race and sex",
    ),
)

PAGE = Judged(CLAIMS, stored_rows)
judged, from_stored, told = PAGE.judged, PAGE.from_stored, PAGE.told


def _read(judge: str, hides: bool = True) -> dict[str, tuple[int, int]]:
    """Least and most AUC of ``judge`` for each attribute, over the splits, where the claims are
    read: with the adversary, or trained in the same way without it."""
    stored = stored_rows()
    way, found = stronger(stored), {}
    for name in ("sex", "race"):
        of = [_values(stored, f"{judge}_{name}", hides, split, way) for split in settings.SPLITS]
        means = [round(values.mean()) for values in of]
        found[name] = (min(means), max(means))
    return found


def _reads_sex_better() -> bool:
    """Whether a network probe reads sex 3 to 4 points better with the adversary, as is shown on
    i.i.d. devices, and race at most 2 points worse, as is not shown."""
    stored = stored_rows()
    way = stronger(stored)

    def adds(name: str, split: str) -> verdict.Evidence:
        what = f"probe_network_{name}"
        return gap(*(_values(stored, what, hides, split, way) for hides in (True, False)))

    sex, race = ([adds(name, split) for split in settings.SPLITS] for name in ("sex", "race"))
    return (
        all(3 < one.estimate < 4 for one in sex)
        and sex[0].low > 0
        and all(-2 < one.estimate < 0 < one.high for one in race)
    )
