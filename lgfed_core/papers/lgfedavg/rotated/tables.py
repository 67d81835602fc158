"""Tables of the page on the newcomer: the live run, what each choice changes, what can be had."""

import numpy as np
import pandas as pd
from pandas.io.formats.style import Styler

from lgfed_core.evidence.printed import METHODS, cells, margin
from lgfed_core.evidence.records import select
from lgfed_core.evidence.verdict import NOT_RUN

from ..printed import TABLES
from .claims import SIDES, WORDS
from .run import CHOICES, CURVES, NAME, TABLE
from .settings import LINES, SPLITS, VARIED, named

USUAL = "as assumed"
ASKED = {  # setting -> what the text leaves open, or what one would try today
    USUAL: USUAL,
    "angle": "which way, how far",
    "overlap": "its pictures are nobody else's",
    "weighted": "weights 1/m",
    "always": "drawn as all others",
    "shared_layers": "layers shared",
    "shared_side": "first layers shared",
    "own_first": "own layers learn first, rounds",
    "mu": "FedProx's mu",
    "newcomers": "several newcomers",
    "upright": "remedy, upright pictures kept",
    "frozen": "remedy, last layers frozen",
    "lr": "remedy, a smaller step",
}


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
        choice=rows["choice"].astype(object).fillna("").replace("", USUAL),
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
    are means over the seeds that both have, at least as many as the last column says. NaN where a
    choice has not run, or cannot matter; a choice of which that is so of all lines is left out.
    """
    out, seeds = {}, {}
    for line in (line for line in LINES if line in found.index.get_level_values("line")):
        for side, said in SIDES.items():
            usual, change = _paired(found, line, f"{split}_{side}")
            seeds[words(line), said] = change.notna().sum(axis=1).replace(0, np.nan)
            out[words(line), said] = change.mean(axis=1)
            out[words(line), said].loc[USUAL] = usual.mean()
            seeds[words(line), said].loc[USUAL] = usual.count()
    table = pd.DataFrame(out)
    if len(table.columns):
        table["seeds", ""] = pd.DataFrame(seeds).min(axis=1)
    order = list(dict.fromkeys(found.index.get_level_values("choice")))
    table = table.reindex([USUAL, *(c for c in order if c != USUAL)])
    return table[table.notna().any(axis=1) | (table.index == USUAL)].rename(asked)


def _paired(found: pd.DataFrame, line: str, column: str) -> tuple[pd.Series, pd.DataFrame]:
    """A line's accuracy as assumed, by seed, and what each choice changes: [choices, seeds]."""
    values = found.xs(line, level="line")[column].unstack("seed")  # [choices, seeds]
    values = values.reindex([USUAL, *values.index.difference([USUAL])])
    return values.loc[USUAL].dropna(), values - values.loc[USUAL]


def upright(table: pd.DataFrame) -> Styler:
    """`differences` for people: accuracies in the first line, then changes with their sign."""
    shown = table.style.format("{:+.1f}", na_rep="–").format(
        "{:.1f}", subset=([USUAL], slice(None))
    )
    return shown.format("{:.0f}", subset=["seeds"], na_rep="–") if len(table.columns) else shown


def unrun(found: pd.DataFrame, split: str) -> str:
    """Which values of `settings.VARIED` have run with no line in this split, in words."""
    columns = [f"{split}_{side}" for side in SIDES]
    ran = set(found[columns].dropna(how="all").index.get_level_values("choice"))
    left: dict[str, list[str]] = {}
    for name, value in ((name, value) for name, values in VARIED.items() for value in values):
        if f"{name}={value}" not in ran:
            left.setdefault(ASKED[name], []).extend(asked(f"{name}={value}").split(": ")[-1:])
    said = [
        name if name in values else f"{name} {', '.join(values)}" for name, values in left.items()
    ]
    return f"{WORDS[split]}, not run: {'; '.join(said) or 'nothing'}"


def nearest(found: pd.DataFrame) -> pd.DataFrame:
    """Each printed number, ours as assumed, and the choice that comes nearest to it.

    found: of `all_choices`. A choice stands for ours as assumed and what it changes, of the seeds
    that both have (`differences`). Columns paper, margin, as assumed, nearest, with (the choice),
    within the margin, and how many readings have run, the one assumed among them. Chosen on the
    print itself: it says what can be had, and judges nothing.
    """
    spec, out = TABLES[TABLE], {}
    ran = set(found.index.get_level_values("line"))
    for cell in cells(spec).itertuples():
        line = _line(cell.method, cell.finetune_fraction_C)
        split, _, side = cell.metric.partition("_")
        name = f"{WORDS[split]}, {SIDES[side]}: {words(line)}"
        where = dict(method=cell.method, finetune_fraction_C=cell.finetune_fraction_C)
        allowed = margin(spec, cell.metric, **where)
        said = dict(paper=cell.paper, margin=allowed, usual=np.nan, nearest=np.nan)
        said |= dict(choice=NOT_RUN, reached="", readings=0)
        usual, change = _paired(found, line, cell.metric) if line in ran else ((), None)
        if len(usual):
            ours = usual.mean() + change.mean(axis=1).dropna()
            best = (ours - cell.paper).abs().idxmin()
            said |= dict(usual=usual.mean(), nearest=ours[best], choice=asked(best))
            said |= dict(reached="yes" if abs(ours[best] - cell.paper) <= allowed else "no")
            said |= dict(readings=len(ours))
        out[name] = said
    names = dict(usual=USUAL, choice="with", reached="within the margin")
    return pd.DataFrame(out).T.rename(columns=names)


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
