"""Tables of the page on questions about pictures: parameters, curves, longer runs, the goal."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd
import torch

from lgfed_core import models
from lgfed_core.data.questions import Asked
from lgfed_core.evidence.display import mean_and_sd
from lgfed_core.evidence.printed import METHODS, cells
from lgfed_core.evidence.records import select
from lgfed_core.evidence.verdict import NOT_RUN
from lgfed_core.models.vqa import SHARED, QuestionNet
from lgfed_core.papers.differences import table

from ..communication.counts import SYSTEMS, System
from ..levels import ends
from ..printed import TABLES
from . import claims
from .run import CURVES, LONG, NAME, TABLE, ids
from .settings import Settings

WIDTHS = (50, 100, 128, 200, 256, 300, 512, 600, 1024)  # usual ones of an embedding
WORDS = 64_437  # of a vocabulary with which the network has the printed size, see `paper_size`
LAYERS = {  # of the network, in words
    "pictures": "ResNet-18",
    "words": "vectors of words",
    "questions": "LSTM, two layers",
    "picture_fc": "last layer of the picture's channel",
    "question_fc": "last layer of the question's channel",
    "fc1": "first layer behind the product",
    "fc2": "second layer behind the product",
}
GOALS = (40, 44, 48, 50)  # percent; the first is the paper's
BEST = "the device's own commonest answer to the question"
LINES = {
    "fedavg": "FedAvg",
    "lg_fedavg": "LG-FedAvg from FedAvg's model",
    "lg_scratch": "LG-FedAvg from the first weights",
}


def paper_size(words: int = WORDS) -> pd.DataFrame:
    """The network at the paper's sizes, counted without being allocated: parameters, and all that
    its state has (running statistics too), by part; the last lines are what is shared, and all.

    words: of the vocabulary, of which the text says nothing. Of `WIDTHS` of an embedding only 128,
    256 and 512 give the printed total with a whole number of words, and only where running
    statistics are counted.
    """
    with torch.device("meta"):
        net = QuestionNet(224, words, 1000)
    state = {
        name: sum(v.numel() for v in part.state_dict().values())
        for name, part in net.named_children()
    }
    own = {name: models.count(net, _of(net, [name])) for name in state}
    found = pd.DataFrame(dict(parameters=own, state=state))
    found["who keeps it"] = ["server" if name in SHARED else "device" for name in found.index]
    sums = {
        "shared": found[found["who keeps it"] == "server"].sum(numeric_only=True),
        "all": found.sum(numeric_only=True),
    }
    return pd.concat([found.rename(LAYERS), pd.DataFrame(sums).T.astype(int)]).fillna("")


def sent() -> pd.DataFrame:
    """Table 2's parameters sent, as printed and by the papers' count with the printed sizes."""
    cell = cells(TABLES[TABLE]).pivot_table("paper", "method", "metric")
    lines = {}
    for method, row in cell.iterrows():
        rounds = int(row["fedavg_rounds"]), int(row["lg_rounds"])
        count = SYSTEMS["vqa"].papers(*rounds)
        printed = row["params_communicated"]
        lines[METHODS[method]] = dict(
            rounds=" + ".join(str(n) for n in rounds if n),
            printed=f"{printed / 1e10:.2f}e10",
            counted=f"{count / 1e10:.2f}e10",
            agrees=round(count / 1e8) == round(printed / 1e8),
        )
    return pd.DataFrame(lines).T


def curves(scale: str = "paper") -> pd.DataFrame:
    """Stored accuracies by round: columns method, start, seed, round, metric, value."""
    columns = ("method", "start", "round")
    return select(NAME, columns=columns, own=True, table=CURVES, scale=scale)


def by_line(curves: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Local test of each line that ran, in percent: index round of the line, a column per seed.

    curves: of `curves` or `Questions.progress`.
    """
    if curves.empty:
        return {}
    found = {line: _of_line(curves, line, "local_test_acc") for line in LINES}
    return {
        line: mine.pivot_table("value", "round", "seed")
        for line, mine in found.items()
        if len(mine)
    }


def late(curves: pd.DataFrame) -> pd.DataFrame:
    """Local test of each line in the last quarter of its rounds, and how far that is from the
    quarter before: mean over seeds ± deviation (seeds), in points. curves: of `by_line`."""
    found = {}
    for line, wide in by_line(curves).items():
        last, before = ends(wide)
        moved = last - before
        found[LINES[line]] = {
            "rounds": int(wide.index[-1]),
            "last quarter, %": f"{last.mean():.1f}",
            "less the one before, points": mean_and_sd(moved, sign="+"),
        }
    return pd.DataFrame(found).T


def longer(scale: str = "paper") -> pd.DataFrame:
    """The recorded rows of longer runs, of each line and rate the longest: method, start, lr,
    long, round, seed, metric, value."""
    columns = ("method", "start", "round", "lr", "long")
    found = select(NAME, columns=columns, table=LONG, scale=scale)
    found = found.astype(dict(lr=float, round=float, long=int))
    longest = found.groupby(["method", "start", "lr"])["long"].transform("max")
    return found[found["long"] == longest]


def by_rate(rows: pd.DataFrame, start: int) -> dict[float, dict[str, pd.DataFrame]]:
    """`by_line` of each learning rate, by round in all; rows: of `longer`.

    start: rounds of FedAvg before LG-FedAvg goes on from its model.
    """
    found = {lr: by_line(mine) for lr, mine in rows.groupby("lr")}
    for lines in found.values():
        if "lg_fedavg" in lines:
            lines["lg_fedavg"].index += start
    return found


def late_by_rate(rows: pd.DataFrame) -> pd.DataFrame:
    """`late` of each learning rate, a line per line; rows: of `longer`."""
    found = {f"rate {lr:g}": late(mine) for lr, mine in rows.groupby("lr")}
    return pd.concat(found) if found else pd.DataFrame()


def ahead(rows: pd.DataFrame) -> str:
    """How far LG-FedAvg is ahead of FedAvg, in points of local test, after the rounds both have.

    rows: of `longer`. Both have the same learning rate, and are compared over the seeds that both
    have run so far.
    """
    pairs = []
    for lr, lines in by_rate(rows, Settings.start).items():
        for line, words in (("lg_fedavg", "FedAvg's model"), ("lg_scratch", "the first weights")):
            if line in lines and "fedavg" in lines:
                mine, fed = lines[line], lines["fedavg"]
                if both := sorted({*mine.index} & {*fed.index}):
                    name = f"from {words}, rate {lr:g}, round {int(both[-1])}"
                    pairs.append((name, mine.loc[both[-1]], fed.loc[both[-1]]))
    return table(
        "LG-FedAvg minus FedAvg after the last common round, points on own classes",
        pairs,
        1,
        fewest=2,
    )


def beside_print(rows: pd.DataFrame) -> pd.DataFrame:
    """Ours at the goal beside Table 2; rows: of `claims.stored`. "mean ± deviation (seeds)".

    Of the seeds that get there; rounds that a method has none of take no line.
    """
    printed = cells(TABLES[TABLE]).set_index(["method", "metric"])["paper"]
    names = {
        "local_test_acc": ("local test, %", 1),
        "fedavg_rounds": ("FedAvg rounds", 1),
        "lg_rounds": ("LG rounds", 1),
        "params_communicated": ("parameters sent, millions", 1e6),
    }
    out = {}
    for method in ("fedavg", "lg_fedavg"):
        for metric, (words, unit) in names.items():
            if paper := printed[method, metric] / unit:
                ours = claims.there(rows, method, metric) / unit
                out[METHODS[method], words] = dict(paper=f"{paper:,.6g}", ours=_mean(ours))
    share = claims.shares(rows).dropna()
    most = ", at most" if claims.bound(rows) else ""
    out["LG-FedAvg", f"parameters sent, % of FedAvg's{most}"] = dict(
        paper=f"{claims.printed_share():.1f}", ours=_mean(share)
    )
    return pd.DataFrame(out).T


def floors(cfg: Settings, asked: Asked, seeds: Iterable[int]) -> pd.DataFrame:
    """Mean local test accuracy, in percent, of four answerers who see no picture, by seed.

    One says the commonest answer of all training questions; one, on each device, the commonest
    there; one the commonest to this very question, of all; and one that of the device's own.
    """
    train, test = asked.data.train, asked.data.test
    pixels = 3 * asked.side**2
    told = [[tuple(row) for row in part.x[:, pixels:].tolist()] for part in (train, test)]
    common, known = int(train.y.bincount().argmax()), _commonest(told[0], train.y.tolist())
    lines = {}
    for seed in seeds:
        split, right = cfg.split(asked, seed), defaultdict(list)
        for k in range(len(split)):
            mine, asks = split.train.of(k), split.test.of(k)
            y, words = test.y[asks], [told[1][i] for i in asks.tolist()]
            own = _commonest([told[0][i] for i in mine.tolist()], train.y[mine].tolist())
            at_home = int(train.y[mine].bincount().argmax())
            answers = {
                "the commonest answer of all": [common] * len(y),
                "the device's own commonest answer": [at_home] * len(y),
                "the commonest answer to the question": [known.get(w, common) for w in words],
                BEST: [own.get(w, known.get(w, common)) for w in words],
            }
            for name, said in answers.items():
                right[name].append(float((torch.tensor(said) == y).float().mean()))
        lines[seed] = {name: 100 * np.mean(values) for name, values in right.items()}
    return pd.DataFrame(lines).T.rename_axis("seed")


def _commonest(questions: Sequence[tuple], answers: Sequence[int]) -> dict[tuple, int]:
    """To each question its commonest answer."""
    found: dict[tuple, Counter] = defaultdict(Counter)
    for words, y in zip(questions, answers, strict=True):
        found[words][y] += 1
    return {words: counts.most_common(1)[0][0] for words, counts in found.items()}


def blind(found: pd.DataFrame, goal: float) -> str:
    """Whether the goal can be had without a picture, in Markdown; found: of `floors`."""
    mean = found.mean()
    # False if the best answerer without a picture fell to the other side of the goal.
    there = mean.max() >= 100 * goal
    return (
        f"**The goal of {100 * goal:g} % {'can' if there else 'cannot'} be had without looking at "
        f"a picture**: {mean.idxmax()} is right in {mean.max():.1f} %. "
        f"So reaching the goal {'does not show' if there else 'shows'} that a method looks."
    )


def by_goal(curves: pd.DataFrame, cfg: Settings, own: System) -> pd.DataFrame:
    """What LG-FedAvg has sent up to each of `GOALS`, in percent of what FedAvg has.

    curves: of `curves`; own: what a round sends. A line per goal: how many seeds get there
    with either line, and of those with LG-FedAvg the geometric mean of the percent, with the least
    and the most. Where FedAvg does not get there, all of its rounds are counted, and the percent is
    at most that.
    """
    lines = {}
    for goal in GOALS:
        fed, lg = (_reached(curves, line, goal) for line in ("fedavg", "lg_fedavg"))
        both = pd.DataFrame(dict(fed=fed, lg=lg))
        there = both.dropna(subset="lg")
        sent = own.papers(1, 0) * there["fed"].fillna(cfg.rounds)
        share = 100 * (own.papers(cfg.start, 0) + own.papers(0, 1) * there["lg"]) / sent
        mean = f"{np.exp(np.log(share).mean()):.0f}" if len(share) else NOT_RUN
        lines[f"{goal} %"] = {
            "FedAvg there, seeds": f"{both['fed'].notna().sum()} of {len(both)}",
            "LG-FedAvg there, seeds": f"{len(there)} of {len(both)}",
            "sent, % of FedAvg's": mean,
            "from, to": f"{share.min():.0f}, {share.max():.0f}" if len(share) else "",
        }
    return pd.DataFrame(lines).T


def _of_line(curves: pd.DataFrame, line: str, metric: str) -> pd.DataFrame:
    where = {name: ids(line)[name] for name in ("method", "start")}
    return select(curves, metric=metric, **where)


def _reached(curves: pd.DataFrame, line: str, goal: float) -> pd.Series:
    """By seed, the first round (of the line) with the goal on validation rows; NaN where none."""
    mine = _of_line(curves, line, "validation_acc")
    rounds = mine["round"].astype(float).where(mine["value"] >= goal)
    return rounds.groupby(mine["seed"]).min()


def _of(net, parts) -> list[str]:
    return [name for name, _ in net.named_parameters() if name.split(".")[0] in parts]


def _mean(values: pd.Series) -> str:
    if values.empty:
        return NOT_RUN
    spread = f" ± {values.std():.3g}" if values.nunique() > 1 else ""
    return f"{values.mean():.4g}{spread} ({len(values)})"
