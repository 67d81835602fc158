"""Claim C8, whose evidence is made on the page of XOR: of networks by kind, as for `run.claim`."""

from lgfed_core.evidence.claims import Claim, decided

from .run import claim

CLAIMS = (
    Claim(
        "C8",
        "cgau/xor",
        "one unit solves it, each part for one client",
        lambda found: decided(claim(found)["C8"]),
        live=True,
    ),
)
