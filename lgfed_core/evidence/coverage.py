"""Whether the rule keeps what it promises: its intervals hold the mean, its verdicts are true.

Intervals by Student's t stand beside those whose variance a family shares.

On stored rows, of comparisons with ten seeds or more a few are drawn, and their interval is asked
whether it holds the mean of all others. That mean has an error of its own, so intervals are widened
from 1/n to 1/n + 1/m of a run's variance, m seeds being left out; for normal runs this is exact.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from lgfed_core.paths import RESULTS

from . import records
from .moderated import CAP, FEWEST, fit
from .rows import identifying
from .verdict import ALPHA, ROUNDING, holm

NOMINAL = 0.95
STUDENT, CAPPED, TWO, FREE = RULES = (
    "Student's t",
    "moderated, d0 at most df",
    "moderated, d0 at most 2",
    "moderated, not capped",
)
SIZES = (2, 3, 5)  # seeds drawn
_WHAT = ("method", "loss")  # what is compared, while all else is the same
_NO_LIMIT = 1e6


def families() -> dict[str, NDArray]:
    """Stored differences of two methods, or two losses, [comparisons, seeds] by family: file,
    table, measure, protocol, selection and stand-in; each cut to the seeds that all have.

    Only runs at paper scale with ten seeds or more, no curves, and no differences that never vary;
    families of at least `moderated.FEWEST`.
    """
    found: dict[str, list[NDArray]] = {}
    for name in sorted(path.stem for path in RESULTS.glob("*.csv")):
        rows = records.select(name, scale="paper", round="")
        for column in _WHAT:
            for family, values in _differences(rows, column):
                found.setdefault(f"{name}, {family}", []).append(values)
    out = {}
    for family, some in found.items():
        if len(some) >= FEWEST:
            seeds = min(len(one) for one in some)
            out[family] = np.array([one[:seeds] for one in some])
    return out


def _differences(rows: pd.DataFrame, what: str, least: int = 10) -> Iterator[tuple[str, NDArray]]:
    if rows.empty or what not in rows or rows["seed"].nunique() < least:
        return
    kind = [c for c in ("table", "stand_in", "metric", "protocol", "selection") if c in rows]
    kind += ["method"] if what == "loss" and "method" in rows else []
    same = [c for c in identifying(rows) if c not in (what, *kind)]
    keys = [*kind, *same]
    words = rows[[*keys, what]].astype(object).fillna("").astype(str)
    rows = words.assign(seed=rows["seed"].astype(int), value=rows["value"].astype(float))
    many = rows.groupby([*keys, what])["seed"].transform("nunique")
    rows = rows[(many >= least) & (rows[what] != "")]
    for key, group in rows.groupby(keys):
        wide = group.groupby(["seed", what])["value"].first().unstack(what)
        for a, b in combinations(wide.columns, 2):
            values = (wide[a] - wide[b]).dropna().to_numpy(float)
            if len(values) >= least and values.std() > ROUNDING:
                yield ", ".join(filter(None, key[: len(kind)])), values


def stored(found: Mapping[str, NDArray], draws: int = 80) -> pd.DataFrame:
    """Lines by seeds drawn and rule: ``coverage``, ``width`` (median, in widths of Student's t),
    ``told`` (share whose interval of the mean leaves out zero) and ``wrong`` (share told with the
    sign that the seeds left out contradict), of comparisons times ``draws``."""
    rng, looks = np.random.default_rng(0), []
    for n in SIZES:
        for values in found.values():
            for _ in range(draws):
                order = rng.permutation(values.shape[1])  # one choice of seeds for a family
                some, rest = values[:, order[:n]], values[:, order[n:]]
                looks.append(look(some, rest.mean(1), rest.shape[1]))
    return table(looks)


def deviation(runs: NDArray, rule: str) -> tuple[NDArray, NDArray]:
    """Deviation of a run [k] and its degrees of freedom [k], of runs [k, n]."""
    df = runs.shape[1] - 1
    sd, dfs = runs.std(1, ddof=1), np.full(len(runs), float(df))
    most = {STUDENT: 0.0, CAPPED: CAP * df, TWO: 2.0, FREE: _NO_LIMIT}[rule]
    prior = fit(sd, dfs) if most else None
    if prior is None:
        return sd, dfs
    both, more = prior.moderate(sd, dfs, most / df)
    return np.where(sd > ROUNDING, both, sd), np.where(sd > ROUNDING, more, dfs)


def look(runs: NDArray, truth: NDArray, others: float = np.inf) -> dict[tuple, NDArray]:
    """By seeds and rule, of each comparison [k, 4]: covered, width, told, wrong; ``truth`` [k] is a
    mean of so many ``others``."""
    n, mean, out, usual = runs.shape[1], runs.mean(1), {}, np.nan
    for rule in RULES:
        sd, df = deviation(runs, rule)
        reach = stats.t.ppf((1 + NOMINAL) / 2, df) * sd
        usual = reach if rule == STUDENT else usual
        covered = np.abs(mean - truth) <= reach * np.sqrt(1 / n + 1 / others)
        told = np.abs(mean) > reach / np.sqrt(n)
        width = np.divide(reach, usual, out=np.ones(len(runs)), where=np.asarray(usual) > 0)
        out[n, rule] = np.column_stack([covered, width, told, told & (mean * truth < 0)])
    return out


def table(looks: Iterable[Mapping[tuple, NDArray]]) -> pd.DataFrame:
    """Means of all looks, and the median of their widths."""
    found: dict[tuple, list[NDArray]] = {}
    for look in looks:
        for key, lines in look.items():
            found.setdefault(key, []).append(lines)
    whole = {key: np.concatenate(lines) for key, lines in found.items()}  # [k, 4]
    lines = pd.DataFrame({key: x.mean(0) for key, x in whole.items()}).T
    if whole:
        lines = lines.set_axis(["coverage", "width", "told", "wrong"], axis=1)
        lines = lines.assign(width=[np.median(x[:, 1]) for x in whole.values()])
    return lines.rename_axis(["seeds", "rule"]) if whole else lines


def told_without_cause(comparisons: int, steps: Sequence[int], draws: int) -> float:
    """Share of claims told as claimed or otherwise, in some comparison, where there is no
    difference at all: simulated normal runs of one family, judged as by `answers` after each of the
    ``steps`` of seeds until they are told."""
    rng, wrong = np.random.default_rng(0), 0
    for _ in range(draws):
        runs = rng.normal(size=(comparisons, steps[-1]))
        told = np.zeros(comparisons, bool)
        for n in steps:
            some = runs[:, :n]
            sd, df = deviation(some, CAPPED)
            p = stats.t.sf(some.mean(1) / sd * np.sqrt(n), df)
            told |= (holm(p) < ALPHA) | (holm(1 - p) < ALPHA)
        wrong += bool(told.any())
    return wrong / draws
