"""Federated averaging (McMahan et al., 2017, Algorithm 1): everything is shared."""

from dataclasses import dataclass

from .interface import Method


@dataclass(frozen=True, kw_only=True)
class FedAvg(Method):
    """All parameters are averaged; the defaults of `Method` say the rest."""
