"""Tables of the page on the newcomer: the live run, curves, and what choices change.

A choice is a value of a setting that the text leaves open, or one that is ours (`beyond`).
"""

import numpy as np
import pandas as pd
from pandas.io.formats.style import Styler

from lgfed_core.evidence.printed import cells, margin
from lgfed_core.evidence.records import select
from lgfed_core.evidence.verdict import NOT_RUN

from ..printed import TABLES
from .claims import SIDES, WORDS
from .run import CHOICES, CURVES, NAME, TABLE
from .settings import LINES, SPLITS, VARIED, line_of, matters, words

USUAL = "as assumed"
REMEDY = "remedy: "
ONE_MODEL = "normal: one averaged model"  # the other meaning of "normal", from the same runs
ASKED = {  # setting, or setting and value -> what is other
    "angle=-90": "turned the other way",
    "overlap": "its pictures are nobody else's",
    "weighted": "weights 1/m",
    "always": "drawn as all others",
    "shared_layers": "layers shared",
    "shared_side": "first layers shared",
    "own_first": "own layers learn first, rounds",
    "mu": "FedProx's mu",
    "angle": "turned by, degrees",
    "newcomers": "newcomers",
    "upright": REMEDY + "upright pictures kept",
    "frozen": REMEDY + "last layers frozen",
    "lr": REMEDY + "a tenth of the step",
}
BEYOND = {"angle", "newcomers", "upright", "frozen", "lr"}  # no reading of the text


def live(rows: pd.DataFrame) -> pd.DataFrame:
    """A line per method and C, old devices and newcomer before and after, in percent.

    rows: of `Experiment.run`, one split. "averaged" is one model of the old devices' parameters.
    """
    rows = rows[rows["table"] == TABLE]
    names = [line_of(*ids) for ids in zip(rows["method"], rows["finetune_fraction_C"], strict=True)]
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
    """Stored accuracies by round, `from_start`: columns of `Rotated.progress`, and
    classes_per_device."""
    columns = ("classes_per_device", "method", "finetune_fraction_C", "round")
    stored = select(NAME, columns=columns, table=(TABLE, CURVES), scale=scale)
    return from_start(select(stored, table=CURVES), stored)


def from_start(curves: pd.DataFrame, rows: pd.DataFrame) -> pd.DataFrame:
    """Curves with a round 0 for the old devices, before the newcomer came: what is forgotten is the
    first step. rows: of the same runs, of `Experiment.run` or stored."""
    before = [f"{split}_normal_before" for split in SPLITS.values()]
    start = select(rows, table=TABLE, metric=before).assign(round=0, metric="normal")
    return pd.concat([start[start.columns.intersection(curves.columns)], curves], ignore_index=True)


def beyond(choice: str) -> bool:
    """Whether a choice is ours: another angle, several newcomers, a remedy."""
    return choice.partition("=")[0] in BEYOND and choice != "angle=-90"


def asked(choice: str) -> str:
    """A choice in words: "mu=0.1" -> "FedProx's mu: 0.1"."""
    setting, _, value = choice.partition("=")
    if choice in ASKED or setting not in ASKED:
        return ASKED.get(choice, choice)
    said = ASKED[setting]
    return said if value in ("False", "first") or said.startswith(REMEDY) else f"{said}: {value}"


def by_choice() -> pd.DataFrame:
    """Stored numbers of Table 3's four columns under every choice, at paper scale.

    Index (choice, line, seed), columns as the table's; the choice as assumed is `USUAL`, others
    read "angle=45". NaN where one has not run.
    """
    columns = ("method", "finetune_fraction_C", "choice")
    rows = select(NAME, columns=columns, table=(TABLE, CHOICES), scale="paper", selection="last")
    printed = [f"{split}_{side}" for split in SPLITS.values() for side in SIDES]
    ids = zip(rows["method"], rows["finetune_fraction_C"], strict=True)
    rows = rows.assign(
        line=[line_of(*one) for one in ids],
        choice=rows["choice"].astype(object).fillna("").replace("", USUAL),
    )
    averaged = select(rows, metric=[f"{s}_normal_averaged" for s in SPLITS.values()])
    averaged = averaged[(averaged["choice"] == USUAL) & (averaged["method"] == "lg_fedavg")]
    metric = averaged["metric"].str.removesuffix("_averaged")
    rows = pd.concat(
        [select(rows, metric=printed), averaged.assign(metric=metric, choice=ONE_MODEL)]
    )
    found = rows.pivot_table("value", ["choice", "line", "seed"], "metric", sort=False)
    return found.reindex(columns=printed)


def differences(found: pd.DataFrame, split: str, ours: bool = False) -> pd.DataFrame:
    """What choices change, in points: a line per choice and line of Table 3 that have run.

    found: of `by_choice`. ours: of the choices that are `beyond` the text; False: of all others.
    Index (choice, line), columns old devices, newcomer, and the seeds that both have, over which
    differences are means. The first lines have the accuracies as assumed, in percent.
    """
    out = {}
    for line in LINES if len(found) else ():
        if line in found.index.get_level_values("line"):
            sides = [_by_seed(found, line, f"{split}_{side}") for side in SIDES]
            both = sides[0].notna() & sides[0].loc[USUAL].notna()  # [choices, seeds]
            seeds = both.sum(axis=1)
            for choice in seeds.index[seeds > 0]:
                usual = 0 if choice == USUAL else 1  # what is taken off
                means = [(s.loc[choice] - usual * s.loc[USUAL]).mean() for s in sides]
                out[choice, words(line)] = [*means, seeds[choice]]
    order = [USUAL, *(f"{name}={value}" for name in VARIED for value in VARIED[name]), ONE_MODEL]
    kept = [key for key in out if key[0] == USUAL or beyond(key[0]) == ours]
    kept = sorted(kept, key=lambda key: order.index(key[0]))
    named = pd.MultiIndex.from_tuples([(asked(c), line) for c, line in kept], names=[None, None])
    return pd.DataFrame([out[key] for key in kept], named, [*SIDES.values(), "seeds"])


def _by_seed(found: pd.DataFrame, line: str, column: str) -> pd.DataFrame:
    """A line's accuracies [choices, seeds], as assumed first; NaN where one has not run."""
    values = found.xs(line, level="line")[column].unstack("seed")
    return values.reindex([USUAL, *values.index.difference([USUAL])])


def signed(table: pd.DataFrame) -> Styler:
    """`differences` for people: accuracies in the first lines, then changes with their sign."""
    sides = [*SIDES.values()]
    shown = table.style.format("{:+.1f}", subset=sides, na_rep="–").format("{:.0f}", subset="seeds")
    first = table.index.get_level_values(0) == USUAL
    return shown.format("{:.1f}", subset=(table.index[first], sides), na_rep="–")


def unrun(found: pd.DataFrame, ours: bool = False) -> str:
    """Which values of `settings.VARIED` have not run, by split and line: a list in Markdown.

    ours: as in `differences`.
    """
    said = []
    every = [(name, f"{name}={value}") for name, values in VARIED.items() for value in values]
    every = [(name, choice) for name, choice in every if beyond(choice) == ours]
    for split in SPLITS.values():
        columns = [f"{split}_{side}" for side in SIDES]
        ran = set(found[columns].dropna(how="all").index.droplevel("seed"))
        left: dict[str, list[str]] = {}  # what is lacking -> the lines that lack just that
        for line in LINES:
            asks = [choice for name, choice in every if matters(name, line)]
            lacks = [asked(choice) for choice in asks if (choice, line) not in ran]
            some = len(lacks) < len(asks)
            left.setdefault("; ".join(lacks) if some else "all", []).append(words(line))
        left.pop("", None)
        said += [f"{WORDS[split]}, {' and '.join(who)}: {what}." for what, who in left.items()]
    return "*Not run:*\n" + "\n".join(f"- {words}" for words in said) if said else "All have run."


def remedies(found: pd.DataFrame, line: str = "fedavg_0") -> pd.DataFrame:
    """What each remedy gives back of what old devices lose, and costs the newcomer: a line per
    split and remedy, the best first; means, as few seeds have run.

    found: of `by_choice`; line: of Table 3.
    """
    out = []
    for split in SPLITS.values():
        table = differences(found, split, ours=True)
        mine = table[table.index.get_level_values(1) == words(line)].droplevel(1)
        mine = mine[mine.index.str.startswith(REMEDY)].sort_values("old devices", ascending=False)
        mine.index = [f"{WORDS[split]}, {name.removeprefix(REMEDY)}" for name in mine.index]
        out.append(mine[["old devices", "newcomer", "seeds"]])
    return pd.concat(out)


def nearest(found: pd.DataFrame) -> pd.DataFrame:
    """Each printed number, ours as assumed, and the reading that comes nearest to it.

    found: of `by_choice`. Of each reading the mean over the seeds that have run it; what is
    `beyond` the text is none. Columns paper, margin, as assumed, nearest, with (the choice), seeds
    (of that one), within the margin, and how many readings have run, the one assumed among them.
    Chosen on the print itself: it says what can be had, and judges nothing.
    """
    spec, out = TABLES[TABLE], {}
    found = found[[not beyond(c) for c in found.index.get_level_values("choice")]]
    ran = set(found.index.get_level_values("line"))
    for cell in cells(spec).itertuples():
        line = line_of(cell.method, cell.finetune_fraction_C)
        split, _, side = cell.metric.partition("_")
        name = f"{WORDS[split]}, {SIDES[side]}: {words(line)}"
        where = dict(method=cell.method, finetune_fraction_C=cell.finetune_fraction_C)
        allowed = margin(spec, cell.metric, **where)
        said = dict(paper=cell.paper, margin=allowed, usual=np.nan, nearest=np.nan)
        said |= dict(choice=NOT_RUN, seeds=0, reached="", readings=0)
        values = _by_seed(found, line, cell.metric) if line in ran else pd.DataFrame()
        ours = values.mean(axis=1).dropna()
        if len(ours):
            best = (ours - cell.paper).abs().idxmin()
            said |= dict(usual=ours.get(USUAL, np.nan), nearest=ours[best], choice=asked(best))
            said |= dict(reached="yes" if abs(ours[best] - cell.paper) <= allowed else "no")
            said |= dict(seeds=values.loc[best].count(), readings=len(ours))
        out[name] = said
    names = dict(usual=USUAL, choice="with", reached="within the margin")
    return pd.DataFrame(out).T.rename(columns=names)
