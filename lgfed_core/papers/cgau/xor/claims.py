"""Claim C8, whose evidence is made on the page of XOR: of networks by kind (`roles.claim`)."""

import pandas as pd

from lgfed_core.evidence.answers import Told
from lgfed_core.evidence.claims import Claim
from lgfed_core.papers import live_claims

from .roles import claim

CLAIMS = (
    Claim(
        "C8",
        "cgau/xor",
        "one unit solves it, each part for one client (the weaker share of starts, less one half)",
        lambda found: [claim(found)],
        live=True,
        question="Can one gated unit learn XOR, with modulation for one client and expression for "
        "the other?",
        answer="**Open.** One unit learns XOR from most of 200 starts. Each part then serves one "
        "client in 1 to 75 % of them, depending on what counts as solved without the other. XOR "
        "itself needs no client: a unit without one learns it from about half of 200 starts.",
        guard=lambda told: (
            told.tally(0, 0, 1) and told.between(-0.49, -0.44) and told.lines["high"].max() > 0.2
        ),
        unit="share of starts minus one half",
    ),
)


def from_stored() -> pd.DataFrame:
    """C8 as the page has judged it last."""
    return live_claims.stored(CLAIMS)


def told() -> dict[str, Told]:
    """The same with its answer."""
    return live_claims.told(CLAIMS)
