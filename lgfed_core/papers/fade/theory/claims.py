"""Claims F4, F5 and F15, whose evidence is made on the page of the theory. It needs no data."""

import pandas as pd

from lgfed_core.evidence.claims import Claim, decided
from lgfed_core.papers import live

from . import closed_form, user_collapse
from .user_collapse import CONDITIONS, claim_f15

_PAGE = "fade/theory"
CLAIMS = (
    Claim(
        "F4", _PAGE, "the minimum, as printed", lambda _: decided(closed_form.claim_f4()), live=True
    ),
    Claim(
        "F5",
        _PAGE,
        "the discrepancy is O(α₁ε)",
        lambda _: decided(closed_form.claim_f5()),
        live=True,
    ),
    Claim(
        "F15",
        _PAGE,
        "classes prevent collapse",
        lambda _: decided(user_collapse.claim_f15()),
        live=True,
    ),
)
BESIDE = (
    Claim(
        "F4, with the sign corrected",
        _PAGE,
        "",
        lambda _: decided(closed_form.claim_f4(closed_form.minimum)),
    ),
    Claim("F5, for the excess", _PAGE, "", lambda _: decided(closed_form.claim_f5("excess"))),
    Claim("F15, labels 70 % right", _PAGE, "", lambda _: decided(claim_f15(CONDITIONS[2]))),
    Claim("F15, own predictions (CDAN)", _PAGE, "", lambda _: decided(claim_f15(CONDITIONS[1]))),
)


def from_stored() -> pd.DataFrame:
    """F4, F5 and F15 as the page has judged them last."""
    return live.stored(CLAIMS)
