"""Claim C8, whose evidence is made on the page of XOR: of networks by kind, as for `run.claim`."""

import pandas as pd

from lgfed_core.evidence.claims import Claim, Part
from lgfed_core.papers import live

from .run import claim

CLAIMS = (
    Claim(
        "C8",
        "cgau/xor",
        "one unit solves it, each part for one client",
        lambda found: [Part("", len(found["cgau"]), claim(found)["C8"])],
        live=True,
    ),
)


def from_stored() -> pd.DataFrame:
    """C8 as the page has judged it last."""
    return live.stored(CLAIMS)
