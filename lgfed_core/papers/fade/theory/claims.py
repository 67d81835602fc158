"""Claims F4, F5 and F15, whose evidence is made on the page of the theory. It needs no data."""

from lgfed_core.evidence import answers
from lgfed_core.evidence.answers import AS_CLAIMED
from lgfed_core.evidence.claims import Claim, decided
from lgfed_core.papers.live_claims import live

from . import closed_form
from .user_collapse import GUESSED, TRUE, claim_f15

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
        answer="**No.** One term has the wrong sign: where α₁ + α₂ is above 1 the paper's value is "
        "up to 2.8 nats too high, below 1 up to 0.7 too low. With the sign corrected it is right, "
        "and only matched groups reach it.",
        guard=lambda told: (
            told.tally(0, 1)
            and told.between(2.7, 2.85)
            and -0.74 < closed_form.too_high(*closed_form.PAIRS[0]) < -0.7
            and _beside(BESIDE[0]) == AS_CLAIMED
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
        answer="**No.** Its ratio to α₁ε grows without bound as α₁ or ε falls. But its excess over "
        "the minimum, which is what the encoder can change, is that small.",
        guard=lambda told: (
            told.tally(0, 1) and told.between(1850, 2050) and _beside(BESIDE[1]) == AS_CLAIMED
        ),
        unit="largest ratio of the discrepancy to α₁ε (the proof says at most 1)",
    ),
    Claim(
        "F15",
        _PAGE,
        "conditioning on estimated classes prevents collapse",
        lambda _: decided(claim_f15()),
        live=True,
        question="Does conditioning on estimated classes keep users from collapsing?",
        answer="**No.** Given the classifier's own predictions, collapsed codes are as good as "
        "right ones at the game's optimum. True classes would make them 0.52 nats worse, but "
        "target users lack these. Training may still find the right codes.",
        guard=lambda told: (
            told.tally(0, 1)
            and told.between(-1e-9, 1e-9)
            and _beside(BESIDE[3]) == AS_CLAIMED
            and round(claim_f15(TRUE).estimate, 2) == 0.52
        ),
        unit="nats that collapsed codes are above the least excess",
    ),
)
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
    Claim("F15, labels 70 % right", _PAGE, "", lambda _: decided(claim_f15(GUESSED))),
    Claim("F15, true classes", _PAGE, "", lambda _: decided(claim_f15(TRUE))),
)


def _beside(claim: Claim) -> str:
    """How one of `BESIDE` comes out, which is computed here."""
    (one,) = answers.told([claim], None).values()
    return str(one.lines["outcome"].iloc[0])


PAGE = live(CLAIMS)
from_stored, told = PAGE.from_stored, PAGE.told
