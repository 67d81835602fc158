"""Claims F4, F5 and F15, whose evidence is made on the page of the theory. It needs no data."""

import pandas as pd

from lgfed_core.evidence import claims, verdict
from lgfed_core.evidence.answers import Told
from lgfed_core.evidence.claims import Claim, decided
from lgfed_core.papers import live

from . import closed_form, user_collapse
from .user_collapse import CONDITIONS, claim_f15

_PAGE = "fade/theory"
_AT = f"ε = {min(closed_form.EPSILONS):g} and α₁ = {min(closed_form.SMALL):g}"
CLAIMS = (
    Claim(
        "F4",
        _PAGE,
        "the minimum, as printed",
        lambda _: decided(closed_form.claim_f4()),
        live=True,
        question="Is the discrepancy of the groups least where they match, at the printed value?",
        answer="**No.** It is least where they match, but the printed value has a sign wrong, "
        "which puts it off by up to 2.8 nats. With the sign corrected it agrees to the last digit.",
        guard=lambda told: told.between(2.7, 2.8) and _confirmed("F4, with the sign corrected"),
        unit="nats between the printed minimum and the computed one",
    ),
    Claim(
        "F5",
        _PAGE,
        f"the discrepancy is O(α₁ε); its ratio to α₁ε at {_AT}",
        lambda _: decided(closed_form.claim_f5()),
        live=True,
        question="With a rare group, is the discrepancy of the order of its share times the error?",
        answer="**No.** Divided by share times error the discrepancy grows without bound. The "
        "theorem is true of what the discrepancy exceeds its minimum by.",
        guard=lambda told: told.between(1000, 3000) and _confirmed("F5, for the excess"),
        unit="discrepancy over share times error",
    ),
    Claim(
        "F15",
        _PAGE,
        "given true classes, conditioning on them prevents collapse",
        lambda _: decided(user_collapse.claim_f15()),
        live=True,
        question="Can groups that match still be collapsed within each user, and does "
        "conditioning on classes prevent it?",
        answer="**Yes.** Given the true classes, it does. Given the classifier's own predictions, "
        "as the paper's CDAN has them, it does not: there collapse costs the adversary nothing.",
        guard=lambda told: (
            told.between(0.45, 0.6) and _own().loc[OWN, "verdict"] == verdict.REFUTED
        ),
        unit="nats that a collapse costs",
    ),
)
OWN = "F15, own predictions (CDAN)"
BESIDE = (
    Claim(
        "F4, with the sign corrected",
        _PAGE,
        "",
        lambda _: decided(closed_form.claim_f4(closed_form.minimum)),
    ),
    Claim("F5, for the excess", _PAGE, "", lambda _: decided(closed_form.claim_f5("excess"))),
    Claim("F15, labels 70 % right", _PAGE, "", lambda _: decided(claim_f15(CONDITIONS[2]))),
    Claim(OWN, _PAGE, "", lambda _: decided(claim_f15(CONDITIONS[1]))),
)


def judged() -> pd.DataFrame:
    """Lines of `evidence.claims.judged`: the claims as the paper makes them, then those beside."""
    return _with_own(pd.concat([claims.judged(some, None) for some in (CLAIMS, BESIDE)]))


def from_stored() -> pd.DataFrame:
    """F4, F5 and F15 as the page has judged them last."""
    return _with_own(live.stored(CLAIMS))


def told() -> dict[str, Told]:
    """The same with their answers."""
    return live.told(CLAIMS)


def _own() -> pd.DataFrame:
    return claims.judged(BESIDE, None)


def _confirmed(beside: str) -> bool:
    return _own().loc[beside, "verdict"] == verdict.CONFIRMED


def _with_own(lines: pd.DataFrame) -> pd.DataFrame:
    """F15's verdict with that for own predictions after it: users without labels have no others
    (sections 4.4 and 5.2)."""
    own = _own().loc[OWN, "verdict"]
    # False if D sees another thing in the paper's CDAN than z and the classes predicted from it.
    words = f" (with the classifier's own predictions, as the paper's CDAN has them: {own})"
    return lines.assign(said=lines["said"].where(lines.index != "F15", lines["said"] + words))
