"""What the page on impairment says in words, from rows; beside each what would make it false."""

from collections.abc import Iterator

import pandas as pd

from lgfed_core.papers.in_words import NESTED, bullets, less

from . import claims
from .figures import WHO
from .settings import Settings


def of(found: pd.DataFrame) -> str:
    """Sentences in Markdown, on the users that train and on those left out; found: of
    `claims.stored`."""
    lines = [_rule(), _rates(found), _alone(found)]
    for who, words in WHO.items():
        for metric, name in (("delta_eo", "Delta EO"), ("f1", "F1")):
            # False if an interval moved to the other side of zero, or came to hold it.
            head = f"**{name} of {words}, with the game less without**"
            said = list(_against_none(found, f"{who}_{metric}"))
            lines.append(f"{head}: {'; '.join(said) or 'not yet run'}.")
    return bullets(lines)


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
        said.append(f"{name}, {each} ({claims.chosen(found)[name]:g} is shown)")
    # False if the text's rate did as well as the other: nothing below is of the worse one.
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
    """For a set and a loss, in how many of its numbers of users a round an interval is not zero."""
    for name, mine in claims.wide(found, metric).groupby("stand_in"):
        for loss in mine.columns.drop("none") if "none" in mine else ():
            gains = [
                gain
                for _, own in mine.droplevel("stand_in").groupby("per_round")
                for gain, runs in [less(*(own[x].droplevel("per_round") for x in (loss, "none")))]
                if runs > 1
            ]
            if gains:
                lower, higher = (sum(g.high < 0 for g in gains), sum(g.low > 0 for g in gains))
                least, most = (f([g.estimate for g in gains]) for f in (min, max))
                yield (
                    f"{name}, {loss}, lower in {lower} and higher in {higher} of {len(gains)} "
                    f"numbers of users a round ({least:+.3f} to {most:+.3f})"
                )
