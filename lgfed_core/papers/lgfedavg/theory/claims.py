"""Claims L10, L11 and L20, whose evidence is made on the page of the theory.

They are judged on its samples: law of x -> draws.
"""

from lgfed_core.evidence.claims import Claim, decided

from . import best_weight, closed_form, minimax_cases

_PAGE = "lgfedavg/theory"
CLAIMS = (
    Claim(
        "L10",
        _PAGE,
        "a mixture beats both extremes",
        lambda samples: decided(best_weight.claim_l10(samples["cube"])),
        live=True,
    ),
    Claim(
        "L11",
        _PAGE,
        "the printed weight is best",
        lambda samples: decided(best_weight.claim_l11(samples.values())),
        live=True,
    ),
    Claim(
        "L20",
        _PAGE,
        "the minimax h is independent of P",
        lambda samples: decided(minimax_cases.claim_l20()),
        live=True,
    ),
)
BESIDE = (
    Claim(
        "L11, on the sphere only",
        _PAGE,
        "",
        lambda samples: decided(best_weight.claim_l11([samples["sphere"]])),
    ),
    Claim(
        "L11, with the corrected weight",
        _PAGE,
        "",
        lambda samples: decided(
            best_weight.claim_l11(samples.values(), closed_form.corrected_weight)
        ),
    ),
)
