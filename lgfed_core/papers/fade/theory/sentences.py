"""What the page on the theory takes home, from what it has computed; beside each what would make it
false."""

from collections.abc import Iterator

import pandas as pd

from lgfed_core.papers.in_words import Pair, sentence

from .attack import START, Attack
from .claims import OWN
from .closed_form import EPSILONS, SMALL


def of(verdicts: pd.Series, gaps: pd.Series, ratio: float) -> str:
    """Three paragraphs in Markdown on F4, F5 and F15.

    verdicts: of the claims and those beside them, by id; gaps: of F4, the printed minimum less what
    descent finds, nats; ratio: of F5, the largest to α₁ε.
    """
    return "\n\n".join([_minimum(verdicts, gaps), _order(verdicts, ratio), _collapse(verdicts)])


def stolen(found: Attack, careful: Attack) -> str:
    """What a thief gets, with steps of either length, as a sentence: distances at the end less
    `START`, by seed."""
    # False if an interval moved to the other side of zero, or came to hold it.
    head = f"**What is stolen**: the distance at the end less {START:.2f}, that of the start"
    words = ("further away", "nearer", "not shown to be nearer or further away")
    return sentence(head, _ends(found, careful), words)


def _ends(found: Attack, careful: Attack) -> Iterator[Pair]:
    for attack, steps in ((found, "long steps"), (careful, "small steps")):
        table = attack.table()
        last = table[table["round"] == table["round"].max()]
        for (noise, absent), mine in last.groupby(["noise", "absent"]):
            blurred, away = f"noise {noise:g}" * (noise > 0), f"absent {100 * absent:g} %"
            who = ", ".join(filter(None, [blurred, away * (absent > 0)])) or "open"
            end = mine.set_index("seed")["distance"]
            yield f"{who}, {steps}", end, 0 * end + START


def _minimum(verdicts: pd.Series, gaps: pd.Series) -> str:
    # False if descent found the printed value, or went below the corrected one. That equality of
    # the laws is needed and enough is proved above: the excess is a sum of two divergences.
    return (
        f"**F4 {verdicts['F4']}** as printed, by up to {gaps.max():.4f} nats; "
        f"{verdicts['F4, with the sign corrected']} with the sign corrected. That $p_1=p_2$ "
        "suffices is right, and it is necessary, too."
    )


def _order(verdicts: pd.Series, ratio: float) -> str:
    # False, of the discrepancy, if the ratio stayed below the proof's constant of 1 as α₁ or ε
    # falls: matched groups have a minimum of the order of α₁ log α₁, whatever ε is; of the excess,
    # if it passed α₁ε tanh(ε/2), which is proved above.
    return (
        f"**F5 {verdicts['F5']}** for the discrepancy: at ε = {min(EPSILONS):g} and "
        f"α₁ = {min(SMALL):g}, the smallest tried, it is {ratio:,.0f} times α₁ε, and the ratio "
        f"grows without bound as either falls; {verdicts['F5, for the excess']} for the excess, "
        "which is at most α₁ε tanh(ε/2)."
    )


def _collapse(verdicts: pd.Series) -> str:
    # False if a collapsed table had as little excess as the right one with the classes given; or,
    # for predicted classes, if it had more: a function of z tells a D that sees z nothing.
    return (
        f"**F15 {verdicts['F15']}** on this case when the classes are given, and "
        f"{verdicts['F15, labels 70 % right']} for labels that are 70 % right; "
        f"{verdicts[OWN]} for classes that are predicted from the representation itself, which is "
        "what the paper has for users without labels (sections 4.4 and 5.2)."
    )
