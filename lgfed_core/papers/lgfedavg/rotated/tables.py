"""Tables of the page on the newcomer: the live run, what each choice changes, what can be had."""

import numpy as np
import pandas as pd

from lgfed_core.evidence.printed import METHODS, cells, margin
from lgfed_core.evidence.records import select
from lgfed_core.evidence.verdict import NOT_RUN

from ..printed import TABLES
from .claims import WORDS
from .run import CHOICES, CURVES, NAME, TABLE
from .settings import LINES, SPLITS, named

USUAL = "as assumed"
ASKED = {  # setting -> what the text leaves open, or what one would try today
    USUAL: USUAL,
    "angle": "which way, how far",
    "overlap": "its pictures are nobody else's",
    "weighted": "weights 1/m",
    "always": "drawn as all others",
    "shared_layers": "layers shared",
    "shared_side": "first layers shared",
    "mu": "FedProx's mu",
    "newcomers": "several newcomers",
    "upright": "remedy: upright pictures kept",
    "frozen": "remedy: last layers frozen",
    "lr": "remedy: a smaller step",
}
SIDES = {"normal": "old devices", "rotated": "newcomer"}


def words(line: str) -> str:
    """A line as people call it: "LG-FedAvg, C = 0.1"."""
    method, fraction = named(line)
    return f"{METHODS[method]}, C = {fraction:g}"


def live(rows: pd.DataFrame) -> pd.DataFrame:
    """A line per method and C, old devices and newcomer before and after, in percent.

    rows: of `Experiment.run`, one split. "averaged" is one model of the old devices' parameters.
    """
    rows = rows[rows["table"] == TABLE]
    names = [_line(*ids) for ids in zip(rows["method"], rows["finetune_fraction_C"], strict=True)]
    metric = rows["metric"].str.partition("_")[2]
    wide = rows.assign(line=names, metric=metric).pivot_table("value", "line", "metric")
    shown = {
        ("old devices", "before"): wide["normal_before"],
        ("old devices", "after"): wide["normal"],
        ("old devices", "averaged"): wide["normal_averaged"],
        ("newcomer", "before"): wide["rotated_before"],
        ("newcomer", "after"): wide["rotated"],
    }
    return pd.DataFrame(shown).loc[list(dict.fromkeys(names))].rename(words).rename_axis(None)


def curves(scale: str = "paper") -> pd.DataFrame:
    """Stored accuracies by round: columns of `Rotated.progress`, and classes_per_device."""
    columns = ("classes_per_device", "method", "finetune_fraction_C", "round")
    return select(NAME, columns=columns, table=CURVES, scale=scale)


def all_choices() -> pd.DataFrame:
    """Stored numbers of Table 3's four columns under every choice, at paper scale.

    Index (choice, line, seed), columns as the table's; the choice as assumed is `USUAL`, others
    read "angle=45". NaN where one has not run.
    """
    columns = ("method", "finetune_fraction_C", "choice")
    rows = select(NAME, columns=columns, table=(TABLE, CHOICES), scale="paper", selection="last")
    printed = [f"{split}_{side}" for split in SPLITS.values() for side in SIDES]
    rows = rows.assign(
        line=[_line(*ids) for ids in zip(rows["method"], rows["finetune_fraction_C"], strict=True)],
        choice=rows["choice"].fillna("").replace("", USUAL),
    )
    averaged = select(rows, metric=[f"{s}_normal_averaged" for s in SPLITS.values()])
    averaged = averaged[(averaged["choice"] == USUAL) & (averaged["method"] == "lg_fedavg")]
    averaged = averaged.assign(
        metric=averaged["metric"].str.removesuffix("_averaged"), choice="normal: one averaged model"
    )
    rows = pd.concat([select(rows, metric=printed), averaged])
    found = rows.pivot_table("value", ["choice", "line", "seed"], "metric", sort=False)
    return found.reindex(columns=printed)


def differences(found: pd.DataFrame, split: str) -> pd.DataFrame:
    """What each choice changes, in points: a line per choice, a column per line and side.

    found: of `all_choices`. The first line has the accuracies as assumed, in percent; differences
    are means over the seeds that both have. NaN where a choice has not run, or cannot matter; a
    choice of which that is so of all lines is left out.
    """
    lines = [line for line in LINES if line in found.index.get_level_values("line")]
    out: dict[tuple, dict] = {}
    for line in lines:
        mine = found.xs(line, level="line")
        for side, said in SIDES.items():
            column = mine[f"{split}_{side}"].unstack("seed")  # [choices, seeds]
            usual = column.loc[USUAL] if USUAL in column.index else np.nan
            change = (column - usual).mean(axis=1)
            change[USUAL] = np.nanmean(usual) if np.isfinite(usual).any() else np.nan
            out[words(line), said] = change.to_dict()
    table = pd.DataFrame(out)
    order = list(dict.fromkeys(found.index.get_level_values("choice")))
    table = table.reindex([USUAL, *(c for c in order if c != USUAL)])
    return table[table.notna().any(axis=1) | (table.index == USUAL)].rename(asked)


def nearest(found: pd.DataFrame) -> pd.DataFrame:
    """Each printed number, ours as assumed, and the choice that comes nearest to it.

    found: of `all_choices`. Columns paper, as assumed, nearest, with (the choice), margin, reached:
    whether any choice lies within the book's margin. Chosen on the print itself: it says what can
    be had, and judges nothing.
    """
    spec, out = TABLES[TABLE], {}
    means = found.groupby(level=["choice", "line"], sort=False).mean().unstack("choice")
    for cell in cells(spec).itertuples():
        line = _line(cell.method, cell.finetune_fraction_C)
        ours = means.loc[line, cell.metric].dropna() if line in means.index else pd.Series()
        split, _, side = cell.metric.partition("_")
        name = f"{WORDS[split]}, {SIDES[side]}: {words(line)}"
        where = dict(method=cell.method, finetune_fraction_C=cell.finetune_fraction_C)
        allowed = margin(spec, cell.metric, **where)
        said = dict(paper=cell.paper, usual=np.nan, nearest=np.nan, choice=NOT_RUN, reached="")
        if len(ours):
            best = (ours - cell.paper).abs().idxmin()
            said |= dict(usual=ours.get(USUAL, np.nan), nearest=ours[best], choice=asked(best))
            said |= dict(reached="yes" if abs(ours[best] - cell.paper) <= allowed else "no")
        out[name] = said | dict(margin=allowed)
    table = pd.DataFrame(out).T[["paper", "margin", "usual", "nearest", "choice", "reached"]]
    return table.rename(columns=dict(usual=USUAL, choice="with", reached="within the margin"))


def answer(rows: pd.DataFrame) -> str:
    """What became of the old devices and the newcomer, in a line per split and method.

    rows: of `claims.stored`. Says what has not run.
    """
    said = []
    for classes, split in SPLITS.items():
        mine = select(rows, classes_per_device=classes)
        if mine.empty:
            said.append(f"{WORDS[split]}: {NOT_RUN}")
            continue
        found, seeds = live(mine), mine["seed"].nunique()
        said.append(f"{WORDS[split]}, {seeds} seed{'s' * (seeds > 1)}, in percent:")
        for name, line in found.iterrows():
            normal, rotated = line["old devices"], line["newcomer"]
            said.append(
                f"  {name}: old devices {normal['before']:.1f} -> {normal['after']:.1f}, "
                f"newcomer {rotated['before']:.1f} -> {rotated['after']:.1f}"
            )
    return "\n".join(said)


def asked(choice: str) -> str:
    """A choice in words: "angle=45" -> "which way, how far: 45"."""
    setting, _, value = choice.partition("=")
    said = ASKED.get(setting, setting)
    return said if value in ("", "False", "first") else f"{said}: {value}"


def _line(method: str, fraction: float) -> str:
    return f"{method}_{float(fraction):g}"
