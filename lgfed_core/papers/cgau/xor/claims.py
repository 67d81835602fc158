"""Claim C8, whose evidence is made on the page of XOR: of networks by kind (`roles.claim`)."""

import pandas as pd

from lgfed_core.evidence.claims import Claim, Part, weakest
from lgfed_core.papers import live

from .roles import claim, halves

CLAIMS = (
    Claim(
        "C8",
        "cgau/xor",
        "one unit solves it, each part for one client (the weaker share of starts, less one half)",
        lambda found: [_weaker(found)],
        live=True,
    ),
)


def _weaker(found: dict[str, pd.DataFrame]) -> Part:
    """C8 with the name and the number of starts of the half that its estimate is of."""
    part = weakest(list(halves(found).values()))
    return Part(part.name, part.runs, claim(found)["C8"])


def from_stored() -> pd.DataFrame:
    """C8 as the page has judged it last."""
    return live.stored(CLAIMS)
