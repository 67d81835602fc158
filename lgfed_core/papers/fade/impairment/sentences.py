"""What the page on impairment says in words, from rows; beside each what would make it false."""

from collections.abc import Iterator

import pandas as pd

from lgfed_core.evidence.verdict import Evidence
from lgfed_core.papers.in_words import NESTED, bullets, less, seeds

from . import claims
from .figures import WHO
from .settings import Settings

Change = tuple[Evidence, int]  # of a game less none, and of how many seeds


def of(found: pd.DataFrame) -> str:
    """Sentences in Markdown, on the users that train and on those left out; found: of
    `claims.stored`."""
    lines = [_rule(), _rates(found), _alone(found)]
    for who, words in WHO.items():
        for metric, name in (("delta_eo", "Delta EO"), ("f1", "F1 in %")):
            # False if an interval moved to the other side of zero, or came to hold it.
            head = f"**{name} of {words}, with the game less without**"
            said = list(_against_none(found, f"{who}_{metric}"))
            lines.append("\n".join([f"{head}:", *said]) if said else f"{head}: not yet run.")
    return bullets(lines)


def finding(found: pd.DataFrame) -> str:
    """What the game does to delta EO at the text's rate, by set; "" before the first run."""
    lr, items = Settings.lrs[0], []
    for name, mine in found[found["lr"] == lr].groupby("stand_in"):
        table = claims.wide(mine, name, lr, "train_delta_eo")
        if claims.blind(found, name, lr):
            items.append(f"on {name} no positive window is found")
        elif "none" in table:
            alone = table["none"].groupby("per_round").mean()
            said = (f"; {loss} {_span(g, 3)}" for loss, g in _gains(table).items())
            start = f"on {name}, {alone.min():.3f} to {alone.max():.3f} without the game"
            items.append(f"{start}, by users a round{''.join(said) or '; with it: not yet run'}")
    # False if an interval moved to the other side of zero, or came to hold it.
    head = (
        f"**Delta EO at the text's rate of {lr:g}**, and whether a game with either loss moves it"
    )
    lines = [f"{head}, on users trained with:", *(f"{NESTED}- {item}." for item in items)]
    return "\n".join(lines) if items else ""


def _rule() -> str:
    # False if `claims.debiasing` asked for something else; its bounds are read, not typed.
    return (
        f"**When F13 holds**: where delta EO without the game is above {claims.UNFAIR:g} from "
        f"{claims.MANY} users a round on, the squared loss lowers it for every number of users a "
        "round, and the vanilla loss, in the middle of these numbers, gains less than "
        f"{100 * claims.SHARE:g} % of what the squared one gains. All learning rates at which a "
        "positive window is found must agree, and what one of them has not run is not judged. The "
        "paper says that the vanilla loss fails in most cases; from which share on a loss fails is "
        "ours."
    )


def _rates(found: pd.DataFrame) -> str:
    said = []
    for name, f1 in claims.by_rate(found).items():
        each = ", ".join(f"{lr:g}: {value:.1f}" for lr, value in f1.items()) or "not yet run"
        said.append(f"{name}, {each} ({claims.chosen(found)[name]:g} fits better)")
    # False if the text's rate did as well as the other, or better.
    head = "**F1 score of users trained with, without the game, by learning rate**"
    return f"{head}: {'; '.join(said) or 'not yet run'}."


def _alone(found: pd.DataFrame) -> str:
    """Delta EO without the game, which the paper has above `claims.UNFAIR`, at every rate."""
    items = []
    for (name, lr), values in claims.alone(found).iterrows():
        each = ", ".join(f"{m:g} a round {value:.3f}" for m, value in values.dropna().items())
        # False if a positive window is found at that rate: delta EO then says something.
        said = "; F1 is 0, no positive window is found" * claims.blind(found, name, lr)
        text = " (the text's)" * (lr == Settings.lrs[0])
        items.append(f"{NESTED}- {name}, rate {lr:g}{text}: {each}{said}.")
    # False if the paper has another bound, or from another number of users on (section 6.2).
    head = (
        "**Delta EO of users trained with, without the game**, "
        f"by the paper above {claims.UNFAIR:g} from {claims.MANY} users a round on"
    )
    return "\n".join([f"{head}:", *items]) if items else f"{head}: not yet run."


def _against_none(found: pd.DataFrame, metric: str) -> Iterator[str]:
    """For a set and a rate, what the game changes with either loss: an item each."""
    digits = 3 if metric.endswith("delta_eo") else 1
    for name, rates in claims.seeing(found).items():
        for lr in rates:
            changes = _gains(claims.wide(found, name, lr, metric)).items()
            each = "; ".join(f"{loss} {_span(gains, digits)}" for loss, gains in changes)
            if each:
                yield f"{NESTED}- {name}, rate {lr:g}: {each}."


def _gains(table: pd.DataFrame) -> dict[str, list[Change]]:
    """By loss, for each number of users a round with several seeds: a game less none."""
    out: dict[str, list[Change]] = {}
    for loss in table.columns.drop("none") if "none" in table else ():
        for _, own in table.groupby("per_round"):
            change = less(*(own[x].droplevel("per_round") for x in (loss, "none")))
            if change[1] > 1:
                out.setdefault(str(loss), []).append(change)
    return out


def _span(changes: list[Change], digits: int) -> str:
    """In how many numbers of users a round an interval is not zero, and all that they hold."""
    gains = [gain for gain, _ in changes]
    lower, higher = (sum(g.high < 0 for g in gains), sum(g.low > 0 for g in gains))
    sizes = [g.estimate for g in gains]
    low, high = min(g.low for g in gains), max(g.high for g in gains)
    ends = [f"{v + 0.0:+.{digits}f}" for v in (min(sizes), max(sizes), low, high)]
    return (
        f"lower in {lower} and higher in {higher} of {len(gains)} numbers of users a round "
        f"({ends[0]} to {ends[1]}, intervals within [{ends[2]}, {ends[3]}], "
        f"{seeds(min(runs for _, runs in changes))})"
    )
