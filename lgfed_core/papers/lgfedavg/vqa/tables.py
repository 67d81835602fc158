"""Tables of the page on questions about pictures: parameters, the live run, the answer."""

import pandas as pd
import torch

from lgfed_core import models
from lgfed_core.evidence import verdict
from lgfed_core.evidence.display import mean_and_sd
from lgfed_core.evidence.printed import METHODS, cells
from lgfed_core.evidence.records import select
from lgfed_core.models.vqa import SHARED, QuestionNet

from ..communication.counts import SYSTEMS, System
from ..levels import ends
from ..printed import TABLES
from . import claims
from .run import CURVES, NAME, TABLE, ids

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
    table = pd.DataFrame(dict(parameters=own, state=state))
    table["who keeps it"] = ["server" if name in SHARED else "device" for name in table.index]
    sums = {
        "shared": table[table["who keeps it"] == "server"].sum(numeric_only=True),
        "all": table.sum(numeric_only=True),
    }
    return pd.concat([table.rename(LAYERS), pd.DataFrame(sums).T.astype(int)]).fillna("")


def sent() -> pd.DataFrame:
    """Table 2's parameters sent, as printed and by the papers' count with the printed sizes."""
    table = cells(TABLES[TABLE]).pivot_table("paper", "method", "metric")
    lines = {}
    for method, row in table.iterrows():
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


def live(rows: pd.DataFrame) -> pd.DataFrame:
    """A run at the goal: a line per method, means over seeds; rows: of `Experiment.run`."""
    mine = select(rows, table=TABLE)
    means = mine.pivot_table("value", "method", "metric").reindex(["fedavg", "lg_fedavg"])
    share = means["params_communicated"] / means.loc["fedavg", "params_communicated"]
    shown = {
        "local test at the goal, %": means["local_test_acc"],
        "FedAvg rounds": means["fedavg_rounds"],
        "LG rounds": means["lg_rounds"],
        "parameters sent, millions": means["params_communicated"] / 1e6,
        "of FedAvg's, %": 100 * share,
        "seeds at the goal, %": 100 * means["goal_reached"],
    }
    return pd.DataFrame(shown).rename(METHODS).rename_axis(None)


def curves(scale: str = "paper") -> pd.DataFrame:
    """Stored accuracies by round: columns method, start, seed, round, metric, value."""
    columns = ("method", "start", "round")
    return select(NAME, columns=columns, own=True, table=CURVES, scale=scale)


def by_line(curves: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Local test of each line that ran, in percent: index round of the line, a column per seed.

    curves: of `curves` or `Questions.progress`.
    """
    out = {}
    for line in LINES:
        own = {name: ids(line)[name] for name in ("method", "start")}
        mine = curves[curves["metric"] == "local_test_acc"] if len(curves) else curves
        for name, value in own.items():
            mine = mine[mine[name] == value]
        if len(mine):
            out[line] = mine.pivot_table("value", "round", "seed")
    return out


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


def by_seed(rows: pd.DataFrame) -> pd.DataFrame:
    """Of each seed the rounds until the goal, and what LG-FedAvg has sent by then, in percent of
    what FedAvg sent; a dash where it is not reached. rows: of `claims.stored`."""
    share = claims.shares(rows)
    lines = {"sent, % of FedAvg's": share.map("{:.1f}".format).where(share.notna(), "–")}
    for line in ("fedavg", "lg_fedavg"):
        rounds = claims.until_goal(rows, line)
        there = claims.at_goal(rows, line, "goal_reached") == 1
        lines[f"{METHODS[line]}, rounds"] = rounds.map("{:.0f}".format).where(there, "–")
    return pd.DataFrame(lines).rename(index="seed {}".format).rename_axis(None)


def sizes(own: System) -> pd.DataFrame:
    """The paper's network and the one that was trained: parameters, and the shared ones."""
    both = {"the paper's": SYSTEMS["vqa"], "trained here": own}
    return pd.DataFrame(
        {
            name: {
                "parameters": f"{s.total:,}",
                "shared": f"{s.shared:,}",
                "shared, %": f"{100 * s.shared / s.total:.2f}",
            }
            for name, s in both.items()
        }
    ).T


def _of(net, parts) -> list[str]:
    return [name for name, _ in net.named_parameters() if name.split(".")[0] in parts]


def _mean(values: pd.Series) -> str:
    if values.empty:
        return verdict.NOT_RUN
    spread = f" ± {values.std():.3g}" if values.nunique() > 1 else ""
    return f"{values.mean():.4g}{spread} ({len(values)})"
