"""Claims F4, F5 and F15, whose evidence is made on the page of the theory. It needs no data."""

from lgfed_core.evidence import answers
from lgfed_core.evidence.answers import AGAINST, AS_CLAIMED
from lgfed_core.evidence.claims import Claim, decided
from lgfed_core.papers.live_claims import live

from . import closed_form, user_collapse
from .user_collapse import CONDITIONS, claim_f15

_PAGE = "fade/theory"
_AT = f"ε = {min(closed_form.EPSILONS):g} and α₁ = {min(closed_form.SMALL):g}"
CLAIMS: tuple[Claim, ...] = (
    Claim(
        "F4",
        _PAGE,
        "the minimum, as printed",
        lambda _: decided(closed_form.claim_f4()),
        live=True,
        question="Is the least discrepancy between two groups the value that Theorem 4.1 gives?",
        answer="**No.** One term has the wrong sign, and the paper's value is up to 2.8 nats too "
        "high. With the sign corrected it is right, and only matched groups reach it.",
        guard=lambda told: (
            told.tally(0, 1) and told.between(2.7, 2.85) and _beside(BESIDE[0]) == AS_CLAIMED
        ),
        unit="nats that the printed minimum is above the one that descent finds",
    ),
    Claim(
        "F5",
        _PAGE,
        f"the discrepancy is O(α₁ε); its ratio to α₁ε at {_AT}",
        lambda _: decided(closed_form.claim_f5()),
        live=True,
        question="Does a rare group make the discrepancy as small as α₁ε (Theorem 4.2)?",
        answer="**No.** It can be about 2,000 times as large, and without bound as α₁ or ε falls. "
        "But its excess over the minimum, which is what the encoder can change, is that small.",
        guard=lambda told: (
            told.tally(0, 1) and told.between(1850, 2050) and _beside(BESIDE[1]) == AS_CLAIMED
        ),
        unit="largest ratio of the discrepancy to α₁ε (the proof says at most 1)",
    ),
    Claim(
        "F15",
        _PAGE,
        "given true classes, conditioning on them prevents collapse",
        lambda _: decided(user_collapse.claim_f15()),
        live=True,
        question="Does conditioning on users' true classes keep them from collapsing?",
        answer="**Yes.** With true classes collapsed codes are half a nat worse than the right "
        "ones. But the paper's CDAN uses the classifier's own predictions, and there nothing "
        "prevents collapse.",
        guard=lambda told: (
            told.tally(1) and told.between(0.45, 0.55) and _beside(BESIDE[3]) == AGAINST
        ),
        unit="nats that collapsed codes are above the least excess",
    ),
)
OWN = "F15, own predictions (CDAN)"
BESIDE: tuple[Claim, ...] = (
    Claim(
        "F4, with the sign corrected",
        _PAGE,
        "",
        lambda _: decided(closed_form.claim_f4(closed_form.minimum)),
    ),
    Claim(
        "F5, for the excess", _PAGE, "", lambda _: decided(closed_form.claim_f5(closed_form.excess))
    ),
    Claim("F15, labels 70 % right", _PAGE, "", lambda _: decided(claim_f15(CONDITIONS[2]))),
    Claim(OWN, _PAGE, "", lambda _: decided(claim_f15(CONDITIONS[1]))),
)


def _beside(claim: Claim) -> str:
    """How one of `BESIDE` comes out, which is computed here."""
    (one,) = answers.told([claim], None).values()
    return str(one.lines["outcome"].iloc[0])


PAGE = live(CLAIMS)
from_stored, told = PAGE.from_stored, PAGE.told
