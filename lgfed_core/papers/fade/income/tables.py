"""The tables of the page on incomes, from rows, under names that people read."""

from collections.abc import Iterable

import pandas as pd

from lgfed_core.evidence.records import select

from . import claims, run as income
from .figures import mean_and_reach
from .settings import in_words, users

NAMES = {  # percent, but for delta EO
    "acc": "accuracy",
    "delta_eo": "ΔEO",
    "validation_acc": "accuracy, validation rows",
    "validation_delta_eo": "ΔEO, validation rows",
    "adv_auc": "AUC of D",
    "probe_best": "AUC of the best probe",
    "probe_logistic": "AUC, logistic probe",
    "probe_trees": "AUC, trees",
    "probe_network": "AUC, network",
    "acc_female": "accuracy, women",
    "acc_male": "accuracy, men",
    "user_worst": "worst user",
    "user_decile": "lowest tenth of users",
    "user_gap": "gap between best and worst user",
    "parity": "gap in positive decisions",
}
TRIED = ("validation_acc", "validation_delta_eo", "acc", "delta_eo", "probe_best")
BESIDE = ("acc", "delta_eo", "parity", "user_worst")
TOGETHER = "in one place"


def of(found: pd.DataFrame, metrics: Iterable[str]) -> pd.DataFrame:
    """Measures of the figure's runs as "mean ± reach" of a 95 % interval, a line per loss and
    number of male users; empty before the first run."""
    tables = {NAMES[m]: claims.wide(found, m) for m in metrics}
    return named(pd.DataFrame({name: _text(t) for name, t in tables.items() if len(t)}))


def _text(table: pd.DataFrame) -> pd.Series:
    mean, reach = mean_and_reach(table)
    return mean.map("{:.1f}".format) + " ± " + reach.map("{:.1f}".format)


def over_males(found: pd.DataFrame, metrics: Iterable[str]) -> pd.DataFrame:
    """Means over all numbers of male users, a line per measure, a column per loss."""
    means = {NAMES[m]: claims.wide(found, m).mean().groupby("loss").mean() for m in metrics}
    return pd.DataFrame(means).T.rename(columns=in_words)


def tried(found: pd.DataFrame) -> pd.DataFrame:
    """A line for each tuning that has run, also where all seeds were lost: how many seeds stayed
    finite, means over these (NaN of none), and which tunings validation rows choose."""
    whole, lost = (claims.tried(found, m).count() for m in ("acc", "diverged"))
    seeds = pd.concat([whole, lost], axis=1, keys=["whole", "lost"]).fillna(0).astype(int)
    means = {NAMES[m]: claims.tried(found, m).mean() for m in TRIED}
    table = pd.DataFrame({"seeds": seeds["whole"]} | means).sort_index()
    ran = seeds.sum(axis=1).reindex(table.index)
    table["seeds"] = [f"{n:g} of {all_}" for n, all_ in zip(table["seeds"], ran, strict=True)]
    best = {tuple(choice) for choice in claims.chosen(found)}
    table["chosen"] = ["yes" if line in best else "" for line in table.index]
    lines = [(in_words(loss), f"{m:g}", how.replace("_", ", ")) for loss, m, how in table.index]
    names = ["loss", "male users", "top, rate, own steps"]
    return table.set_axis(pd.MultiIndex.from_tuples(lines, names=names))


def practice(found: pd.DataFrame) -> pd.DataFrame:
    """Means of what is tried without a game, and beside it with one. All rows in one place know no
    users but a woman and a man: the worst of two is left blank beside the worst of many."""
    lines = {}
    for name, mine in select(found, table=income.CENTRAL).groupby("method"):
        lines[TOGETHER, name] = mine[mine["metric"] != "user_worst"]
    for (q, males), mine in select(found, table=income.QFFL_TABLE).groupby(["q", "males"]):
        lines[_users(males), f"q-FFL, q = {q:g}"] = mine
    for (loss, males), mine in select(found, table=income.TABLE).groupby(["loss", "males"]):
        lines[_users(males), in_words(loss)] = mine
    means = {key: mine.groupby("metric")["value"].mean() for key, mine in lines.items()}
    return pd.DataFrame(means).T.reindex(columns=[*BESIDE]).rename(columns=NAMES)


def _users(males: float) -> str:
    return f"{users(males)}, one female"


def named(table: pd.DataFrame) -> pd.DataFrame:
    """``table`` by (loss, males), with whole numbers of male users and columns in words."""
    if len(table):
        lines = [(in_words(loss), f"{males:g}") for loss, males in table.index]
        table = table.set_axis(pd.MultiIndex.from_tuples(lines, names=["loss", "male users"]))
    return table.rename(columns=NAMES).rename_axis(columns=None)


def digits(table: pd.DataFrame) -> dict[str, str]:
    """For a ``Styler``: three digits of a delta EO, one of a percentage."""
    numbers = [c for c in table if c not in ("seeds", "chosen")]
    return {c: "{:.3f}" if c.startswith(NAMES["delta_eo"]) else "{:.1f}" for c in numbers}
