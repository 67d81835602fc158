"""Claims L10, L11 and L20, whose evidence is made on the page of the theory.

They are judged on its samples: law of x -> draws.
"""

from collections.abc import Callable

from lgfed_core.evidence.claims import SURE, Claim, Comparison
from lgfed_core.evidence.verdict import Evidence
from lgfed_core.papers.live_claims import live

from . import best_weight, closed_form, minimax


def _claim(id: str, words: str, evidence: Callable[[dict], Evidence], **told) -> Claim:
    def parts(samples: dict) -> list[Comparison]:
        found = evidence(samples)
        exact = found.low == found.high
        return [Comparison("", SURE if exact else len(samples["cube"]), found)]

    return Claim(id, "lgfedavg/theory", words, parts, live=True, **told)


def _off_in_2a() -> float:
    """How far the printed weight is from the corrected one in the paper's Figure 2a."""
    problem = closed_form.Problem(rho=0.1, sigma=1.5)
    return closed_form.corrected(problem).best_weight - closed_form.printed(problem).best_weight


CLAIMS = (
    _claim(
        "L10",
        "a mixture beats both extremes, by this much squared error where it is least sure",
        lambda x: best_weight.claim_l10(x["cube"]),
        question="Is a mixture of a local and a global linear model as good as the better of the "
        "two?",
        answer="**Yes.** With the corrected weight it is better than both at every level of noise "
        "that we tried, if only just where one of them is nearly right. That weight needs the true "
        "noise and spread of devices.",
        guard=lambda told: told.between(1e-6, 1e-2),
        unit="squared error, above 0: the mixture is better",
    ),
    _claim(
        "L11",
        "the printed weight, of 0 to 1, is best, and the measured one this far from it at most",
        lambda x: best_weight.claim_l11(x.values()),
        question="Is the paper's weight of the mixture the best one?",
        answer="**No.** It is 0.44 off in the paper's own Figure 2a, on a scale from 0 to 1, and "
        "up to 0.63 for inputs as its theory assumes. With the trace that equation (26) drops it "
        "is within 0.01 of the simulated best weight.",
        guard=lambda told: told.between(0.625, 0.64) and round(_off_in_2a(), 2) == 0.44,
        unit="distance of the best weight from the printed one",
    ),
    _claim(
        "L20",
        "the minimax h is independent of P, of which it says so many nats where X = Y = P",
        lambda x: minimax.claim_l20(),
        question="Played to the end against an adversary, is a representation independent of the "
        "protected attribute?",
        answer="**No.** The proposition assumes that a lower bound is reached; often it cannot be. "
        "If label and attribute are the same, every solution reveals a quarter of the attribute's "
        "entropy (0.17 of 0.69 nats, at λ = 1).",
        guard=lambda told: told.between(0.16, 0.18),
        unit="nats that the representation tells about the attribute",
    ),
)

PAGE = live(CLAIMS)
from_stored, told = PAGE.from_stored, PAGE.told
