"""What the stored runs on Adult say: tables of leakage and fairness, the choice of lambda, claims.

Claims L14 and L15 (Liang et al., v1 section 3.3; v2 section 5.5) are read *as described*, at the
last round, for i.i.d. and non-i.i.d. devices alike. "About" a printed number means the book's
margin: twice the printed deviation, at least 2 points of AUC and 1 of accuracy.
"""

import pandas as pd

from lgfed_core.data.adult import GROUPS
from lgfed_core.evidence import claims, printed, records, verdict
from lgfed_core.evidence.claims import Claim, Part, paired, tested
from lgfed_core.evidence.printed import METHODS, METRICS
from lgfed_core.evidence.records import select

from ..printed import TABLES
from . import run as adult

RANDOM = 50.0
_IDS = ("method", "split", "loss", "lambda", "round")
_LEAKS = ("adv_auc", "probe_logistic", "probe_trees", "probe_network", "probe_best")


def stored_rows() -> pd.DataFrame:
    """All rows recorded by the experiment, with the columns that a table needs in any case."""
    return select(adult.NAME, columns=_IDS)


def by_seed(stored: pd.DataFrame, metric: str, scale: str = "paper", **ids: object) -> pd.Series:
    """One number of every run: values by seed; empty where nothing has run.

    ``metric`` may be a kind of probe without an attribute (``probe_network``): then it is the mean
    over race and sex. ids: columns and the values they must have, e.g. method="fedavg".
    """
    rows = select(stored, scale=scale, **ids)
    names = [metric] if (rows["metric"] == metric).any() else [f"{metric}_{g}" for g in GROUPS]
    values = rows[rows["metric"].isin(names)].groupby("seed")["value"].agg(["mean", "count"])
    return values.loc[values["count"] == len(names), "mean"]


def cell(stored: pd.DataFrame, metric: str, method: str, split: str, protocol: str) -> pd.Series:
    """`by_seed` for a cell of Table 4."""
    ids = dict(table=adult.TABLE, method=method, split=split, protocol=protocol)
    return by_seed(stored, metric, **ids)


def leakage(stored: pd.DataFrame, metrics: tuple[str, ...] = _LEAKS) -> pd.DataFrame:
    """Means at paper scale: a line per protocol, split and method, a column per metric."""
    lines = {}
    for protocol in records.PROTOCOLS:
        for split in adult.SPLITS:
            for method in adult.METHODS:
                found = {m: cell(stored, m, method, split, protocol).mean() for m in metrics}
                words = printed.row_name({"split": split})
                lines[protocol.replace("_", " "), words, METHODS[method]] = found
    table = pd.DataFrame(lines).T.rename_axis(["protocol", "devices", "method"])
    return table.dropna(how="all").rename(columns=METRICS)


def frontier(stored: pd.DataFrame, split: str = "iid", scale: str = "paper") -> pd.DataFrame:
    """Along lambda, over seeds: lines (loss, lambda), columns (metric, mean | std).

    Metrics: class_acc, class_auc, adv_auc, probe_best and by attribute, validation_acc and
    validation_probe. lambda = 0 belongs to both losses.
    """
    rows = select(stored, table=adult.FRONTIER, scale=scale, split=split)
    if rows.empty:
        return pd.DataFrame()
    zero = rows[(rows["lambda"].astype(float) == 0) & (rows["loss"] == "vanilla")]
    rows = pd.concat([rows, zero.assign(loss="squared")])
    rows = rows.assign(**{"lambda": rows["lambda"].astype(float)})
    values = rows.groupby(["loss", "lambda", "metric"])["value"].agg(["mean", "std"])
    table = values.unstack("metric").swaplevel(axis=1).sort_index(axis=1)
    return table.sort_index(ascending=[False, True])


def chosen(stored: pd.DataFrame, loss: str = "vanilla", split: str = "iid") -> float | None:
    """What `run.pick` picks from stored runs; None while the frontier is not whole."""
    table, wanted = frontier(stored, split), {0.0, *adult.Settings().frontier}
    if table.empty or not wanted <= set(table.loc[loss].index):
        return None
    line = table.loc[loss].xs("mean", axis=1, level=1)
    return adult.pick(line)


def margin(metric: str, split: str) -> float:
    """How far from a printed number of the row with an adversary still counts as about it."""
    return printed.margin(TABLES[adult.TABLE], metric, method="lg_fedavg_adv", split=split)


def l14(
    stored: pd.DataFrame, judge: str = "probe_network", protocol: str = "as_described"
) -> list[Part]:
    """L14: the adversary's AUC is about 50, at a cost of about 4 points of accuracy.

    The adversary is ``judge``: by default one that is trained to convergence, a network probe;
    "adv_auc" is the one that took part. The cost counts against LG-FedAvg without adversary.
    """
    parts = []
    for split in adult.SPLITS:
        area = cell(stored, judge, "lg_fedavg_adv", split, protocol)
        within, least = margin("adv_auc", split), -adult.COST - margin("class_acc", split)
        parts.append(tested(f"{split}, {judge}", area, verdict.equivalent, RANDOM, within))
        both = [
            cell(stored, "class_acc", m, split, protocol) for m in ("lg_fedavg_adv", "lg_fedavg")
        ]
        parts.append(paired(f"{split}, accuracy", *both, verdict.greater, by=least))
    return parts


def l15(stored: pd.DataFrame, protocol: str = "as_described") -> list[Part]:
    """L15: classifiers fitted afterwards are close to random, too: logistic and network probes."""
    return [
        tested(
            f"{split}, {kind}",
            cell(stored, kind, "lg_fedavg_adv", split, protocol),
            verdict.equivalent,
            RANDOM,
            margin("adv_auc", split),
        )
        for split in adult.SPLITS
        for kind in ("probe_logistic", "probe_network")
    ]


_PAGE = "lgfedavg/fairness"
CLAIMS = (
    Claim("L14", _PAGE, "a converged adversary is at 50, for 4 points", l14),
    Claim("L15", _PAGE, "probes are close to random", l15),
)
BESIDE = (  # how the protocols and judges compare
    Claim("L14 by the adversary that took part", _PAGE, "", lambda rows: l14(rows, "adv_auc")),
    Claim(
        "L14 as released, by its own adversary",
        _PAGE,
        "",
        lambda rows: l14(rows, "adv_auc", "as_released"),
    ),
    Claim(
        "L14 as released, converged adversary",
        _PAGE,
        "",
        lambda rows: l14(rows, protocol="as_released"),
    ),
    Claim("L15 as released", _PAGE, "", lambda rows: l15(rows, "as_released")),
)


def judged(stored: pd.DataFrame) -> pd.DataFrame:
    """L14 and L15 with Holm's correction, and what stands `BESIDE` them."""
    lines = [claims.judged(some, stored) for some in (CLAIMS, BESIDE)]
    return claims.named(pd.concat(lines))


def from_stored() -> pd.DataFrame:
    """L14 and L15 on the recorded runs."""
    return claims.judged(CLAIMS, stored_rows())


def take_home(stored: pd.DataFrame, label: float) -> str:
    """Three sentences with the stored runs' numbers, in Markdown; says so where runs are missing.

    label: what the true label alone leaks, mean over race and sex, in percent.
    """

    def at(metric: str, method: str, protocol: str, split: str = "iid") -> float:
        return cell(stored, metric, method, split, protocol).mean()

    adv, plain_lg = "lg_fedavg_adv", "lg_fedavg"
    said, best = (at(m, adv, "as_released") for m in ("adv_auc", "probe_best"))
    off, none = at("adv_auc", plain_lg, "as_released"), at("probe_best", plain_lg, "as_released")
    line = frontier(stored)
    numbers = (said, best, off, none)
    if line.empty or any(map(pd.isna, numbers)):
        return "**Not yet run**: the three sentences to take home appear with the stored runs."
    means = line.loc["vanilla"].xs("mean", axis=1, level=1)
    weak, strong = means.iloc[0], means.iloc[-1]  # lambda = 0, and the largest
    price = weak["class_acc"] - strong["class_acc"]
    least, least_at = means["probe_best"].min(), means["probe_best"].idxmin()
    return f"""Three things to take home (i.i.d. devices, means over seeds):

- **The published 50 % says nothing about the representation.** As released, the adversary's AUC
  is {said:.1f} with the adversarial term and {off:.1f} without it, because the adversary is marched
  off; fresh probes still find race and sex at {best:.1f} and {none:.1f}.
- **With the two players kept apart, a local model learns to mislead its own adversary, not to
  forget.** As lambda goes from 0 to {means.index[-1]:g}, the adversary of the game
  {_goes(weak["adv_auc"], strong["adv_auc"])}, for {price:.1f} points of accuracy, while the best
  fresh probe {_goes(weak["probe_best"], strong["probe_best"])}; the least any lambda leaves is
  {least:.1f}, at {least_at:g}. So ask a fresh judge.
- **Chance cannot be reached by a representation that still tells incomes well**, as income itself
  tells about sex and race: the true label alone has an AUC of {label:.1f}."""


def _goes(before: float, after: float) -> str:
    way = "falls" if after < before else "rises"
    return f"{way} from {before:.1f} to {after:.1f}"
