"""Claims L14 and L15 on the stored runs (Liang et al., v1 section 3.3; v2 section 5.5).

They are read *as described*, at the last round, for i.i.d. and non-i.i.d. devices alike. "About" a
printed number means the book's margin: twice the printed deviation, at least 2 points of AUC and 1
of accuracy.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pandas as pd

from lgfed_core.evidence import answers, claims, printed, verdict
from lgfed_core.evidence.answers import Told
from lgfed_core.evidence.claims import Claim, Part, paired, tested
from lgfed_core.evidence.printed import METRICS

from ..printed import TABLES
from . import run as adult, settings
from .tables import by_seed, cell, chosen, frontier, picked, stored_rows, sweep, swept_rows, tried

RANDOM = 50.0
Way = tuple[str, float]  # an adversary of the sweep, and lambda


def stronger(stored: pd.DataFrame) -> Way | None:
    """The way of the sweep that leaks less than Table 4's on validation rows; None if none does."""
    table, strength = sweep(stored), chosen(stored)
    leak = table["validation_probe"]
    best = min(picked(table), key=lambda way: leak[way], default=None)
    if best is None or strength is None:
        return best
    known = frontier(stored).loc[("vanilla", strength), ("validation_probe", "mean")]
    return best if leak[best] < known else None


def _values(
    stored: pd.DataFrame, metric: str, hides: bool, split: str, protocol: str, way: Way | None
) -> pd.Series:
    """By seed, with an adversary or (not ``hides``) without: of Table 4, or of a ``way``."""
    if way is None:
        method = "lg_fedavg_adv" if hides else "lg_fedavg"
        return cell(stored, metric, method, split, protocol)
    adversary, strength = way
    ids = {"adversary": adversary, "lambda": strength if hides else 0.0, "split": split}
    return by_seed(swept_rows(stored), metric, **ids)


def _is_random(stored: pd.DataFrame, judge: str, split: str, *how) -> Part:
    """With an adversary, the AUC of a ``judge`` is about 50."""
    area, words = _values(stored, judge, True, split, *how), f"{_devices(split)}, {METRICS[judge]}"
    return tested(words, area, verdict.equivalent, RANDOM, _margin("adv_auc", split))


def _margin(metric: str, split: str) -> float:
    """How far from a printed number of the row with an adversary still counts as about it."""
    return printed.margin(TABLES[adult.TABLE], metric, method="lg_fedavg_adv", split=split)


def _devices(split: str) -> str:
    """ "i.i.d. devices"."""
    return f"{printed.row_name({'split': split})} devices"


def l14(
    stored: pd.DataFrame,
    judge: str = "probe_network",
    protocol: str = "as_described",
    way: Way | None = None,
) -> list[Part]:
    """L14: the adversary's AUC is about 50, at a cost of about 4 points of accuracy.

    The adversary is ``judge``: by default one that is trained to convergence, a network probe;
    "adv_auc" is the one that took part. The cost counts against LG-FedAvg without adversary.
    """
    parts = []
    for split in settings.SPLITS:
        how = split, protocol, way
        both = [_values(stored, "class_acc", hides, *how) for hides in (True, False)]
        least, words = -adult.COST - _margin("class_acc", split), f"{_devices(split)}, accuracy"
        parts.append(_is_random(stored, judge, *how))
        parts.append(paired(words, *both, verdict.greater, by=least))
    return parts


def l15(stored: pd.DataFrame, protocol: str = "as_described", way: Way | None = None) -> list[Part]:
    """L15: classifiers fitted afterwards are close to random, too: logistic and network probes."""
    return [
        _is_random(stored, kind, split, protocol, way)
        for split in settings.SPLITS
        for kind in ("probe_logistic", "probe_network")
    ]


def fair_chance(claim: Callable[..., list[Part]]) -> Callable[[pd.DataFrame], list[Part]]:
    """``claim`` where the method leaks least on validation rows; unswept, nothing refutes it."""

    def parts(stored: pd.DataFrame) -> list[Part]:
        found = claim(stored, way=stronger(stored))
        if len(sweep(stored)):
            return found
        return [replace(part, evidence=replace(part.evidence, p_against=1.0)) for part in found]

    return parts


_PAGE, _STRONGEST = "lgfedavg/fairness", ("Adam, 5 adversary steps of 32 units", 100)
CLAIMS = (
    Claim(
        "L14",
        _PAGE,
        "a converged adversary is at 50, for 4 points",
        fair_chance(l14),
        question="Does a local adversary hide a protected attribute, at a small cost of accuracy?",
        answer="**In part.** The adversary that hides most on validation rows (Adam, λ = 100) "
        "costs 3 points against LG-FedAvg without one, with i.i.d. devices. It does not hide: a "
        "network trained afterwards reads race and sex at an AUC of 71, without the game at 70. "
        "Chance is 50.",
        guard=lambda told: (
            told.tally(1, 1, 2, ran=2)
            and stronger(stored_rows()) == _STRONGEST
            and told.between(20, 23, at="i.i.d. devices, network probe")
            and told.between(-3.5, -2.5, at="i.i.d. devices, accuracy")
            and _unhidden("probe_network") == 70
        ),
        unit="AUC above 50, and points of accuracy that the adversary adds",
    ),
    Claim(
        "L15",
        _PAGE,
        "probes are close to random",
        fair_chance(l15),
        question="Are probes fitted to the representations afterwards close to chance?",
        answer="**No.** After the same adversary a logistic or a network probe reads the attribute "
        "at an AUC of 68 to 71. Without the game it is 69 to 70.",
        guard=lambda told: (
            told.tally(0, 2, 2, ran=2)
            and stronger(stored_rows()) == _STRONGEST
            and told.between(
                17.5, 22, at=[f"i.i.d. devices, {n} probe" for n in ("logistic", "network")]
            )
            and (_unhidden("probe_logistic"), _unhidden("probe_network")) == (69, 70)
        ),
        unit="AUC above 50, which is chance",
    ),
)
OWN = "L14 as released, by its own adversary"
_BESIDE = {  # how the protocols and judges compare
    "L14 by the adversary that took part": fair_chance(partial(l14, judge="adv_auc")),
    "L14 at Table 4's lambda, SGD": l14,
    "L15 at Table 4's lambda, SGD": l15,
    OWN: partial(l14, judge="adv_auc", protocol="as_released"),
    "L14 as released, converged adversary": partial(l14, protocol="as_released"),
    "L15 as released": partial(l15, protocol="as_released"),
}
BESIDE = [Claim(name, _PAGE, "", parts) for name, parts in _BESIDE.items()]


def judged(stored: pd.DataFrame) -> pd.DataFrame:
    """L14 and L15 with Holm's correction, and what stands `BESIDE` them."""
    beside = claims.judged(BESIDE, stored)
    return claims.named(pd.concat([_judged(stored, beside), beside]))


def from_stored() -> pd.DataFrame:
    """L14 and L15 on the recorded runs."""
    stored = stored_rows()
    return _judged(stored, claims.judged(BESIDE, stored))


def told() -> dict[str, Told]:
    """The same by setting, with their answers."""
    return answers.told(CLAIMS, stored_rows())


def _judged(stored: pd.DataFrame, beside: pd.DataFrame) -> pd.DataFrame:
    """L14 and L15; their verdicts say of how many settings, and L14's what stands `beside` it."""
    many = tried(stored)
    effort = f" (best on validation rows of {many} settings tried)" if many else ""
    own = beside.loc[OWN]
    released = f" (by its own, as released: {own['verdict']})" if own["ran"] else ""
    return claims.judged(CLAIMS, stored, limits={"L14": released + effort, "L15": effort})


def _unhidden(judge: str) -> int:
    """The AUC of ``judge`` where the claims are read, but for training without an adversary."""
    stored = stored_rows()
    return round(_values(stored, judge, False, "iid", "as_described", stronger(stored)).mean())
