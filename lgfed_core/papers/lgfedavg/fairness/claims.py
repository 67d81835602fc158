"""What the stored runs on Adult say: tables of leakage and fairness, the choice of lambda, claims.

Claims L14 and L15 (Liang et al., v1 section 3.3; v2 section 5.5) are read *as described*, at the
last round, for i.i.d. and non-i.i.d. devices alike. "About" a printed number means the book's
margin: twice the printed deviation, at least 2 points of AUC and 1 of accuracy.
"""

from collections.abc import Callable
from dataclasses import replace

import pandas as pd

from lgfed_core.evidence import answers, claims, printed, verdict
from lgfed_core.evidence.answers import Told
from lgfed_core.evidence.claims import Claim, Part, paired, tested
from lgfed_core.evidence.printed import METRICS

from ..printed import TABLES
from . import run as adult
from .stored import (
    Tried,
    by_seed as by_seed,
    cell as cell,
    chosen as chosen,
    frontier as frontier,
    leakage as leakage,
    stored_rows as stored_rows,
    sweep as sweep,
    sweep_points as sweep_points,
    sweep_table as sweep_table,
    tried as tried,
)

RANDOM = 50.0


def margin(metric: str, split: str) -> float:
    """How far from a printed number of the row with an adversary still counts as about it."""
    return printed.margin(TABLES[adult.TABLE], metric, method="lg_fedavg_adv", split=split)


def devices(split: str) -> str:
    """ "i.i.d. devices"."""
    return f"{printed.row_name({'split': split})} devices"


def stronger(stored: pd.DataFrame) -> Tried | None:
    """The way of the sweep that leaks less than Table 4's on validation rows; None if none does."""
    line, best = (
        frontier(stored),
        min(sweep(stored), key=lambda t: t.validation_probe, default=None),
    )
    strength = chosen(stored)
    if best is None or strength is None:
        return best
    known = line.loc[("vanilla", strength), ("validation_probe", "mean")]
    return best if best.validation_probe < known else None


def _values(
    stored: pd.DataFrame, metric: str, hides: bool, split: str, protocol: str, way: Tried | None
) -> pd.Series:
    """By seed, with an adversary or (not ``hides``) without: of Table 4, or of a ``way``."""
    if way is None:
        method = "lg_fedavg_adv" if hides else "lg_fedavg"
        return cell(stored, metric, method, split, protocol)
    found = way.values(stored, metric, None if hides else 0.0)
    return found if split == "iid" else found.iloc[:0]


def l14(
    stored: pd.DataFrame,
    judge: str = "probe_network",
    protocol: str = "as_described",
    way: Tried | None = None,
) -> list[Part]:
    """L14: the adversary's AUC is about 50, at a cost of about 4 points of accuracy.

    The adversary is ``judge``: by default one that is trained to convergence, a network probe;
    "adv_auc" is the one that took part. The cost counts against LG-FedAvg without adversary.
    """
    parts = []
    for split in adult.SPLITS:
        where = split, protocol, way
        area = _values(stored, judge, True, *where)
        within, least = margin("adv_auc", split), -adult.COST - margin("class_acc", split)
        words = f"{devices(split)}, {METRICS[judge]}"
        parts.append(tested(words, area, verdict.equivalent, RANDOM, within))
        both = [_values(stored, "class_acc", hides, *where) for hides in (True, False)]
        parts.append(paired(f"{devices(split)}, accuracy", *both, verdict.greater, by=least))
    return parts


def l15(
    stored: pd.DataFrame, protocol: str = "as_described", way: Tried | None = None
) -> list[Part]:
    """L15: classifiers fitted afterwards are close to random, too: logistic and network probes."""
    return [
        tested(
            f"{devices(split)}, {METRICS[kind]}",
            _values(stored, kind, True, split, protocol, way),
            verdict.equivalent,
            RANDOM,
            margin("adv_auc", split),
        )
        for split in adult.SPLITS
        for kind in ("probe_logistic", "probe_network")
    ]


def fair_chance(claim: Callable[..., list[Part]]) -> Callable[[pd.DataFrame], list[Part]]:
    """``claim`` where the method leaks least on validation rows; unswept, nothing refutes it."""

    def parts(stored: pd.DataFrame) -> list[Part]:
        found = claim(stored, way=stronger(stored))
        if sweep(stored):
            return found
        return [replace(part, evidence=replace(part.evidence, p_against=1.0)) for part in found]

    return parts


_PAGE = "lgfedavg/fairness"
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
            and _strongest() == ("adam", 100)
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
            and _strongest() == ("adam", 100)
            and told.between(
                17.5, 22, at=[f"i.i.d. devices, {n} probe" for n in ("logistic", "network")]
            )
            and (_unhidden("probe_logistic"), _unhidden("probe_network")) == (69, 70)
        ),
        unit="AUC above 50, which is chance",
    ),
)
OWN = Claim(
    "L14 as released, by its own adversary",
    _PAGE,
    "",
    lambda rows: l14(rows, "adv_auc", "as_released"),
)
BESIDE = (  # how the protocols and judges compare
    Claim(
        "L14 by the adversary that took part",
        _PAGE,
        "",
        fair_chance(lambda rows, way: l14(rows, "adv_auc", way=way)),
    ),
    Claim("L14 at Table 4's lambda, SGD", _PAGE, "", l14),
    Claim("L15 at Table 4's lambda, SGD", _PAGE, "", l15),
    OWN,
    Claim(
        "L14 as released, converged adversary",
        _PAGE,
        "",
        lambda rows: l14(rows, protocol="as_released"),
    ),
    Claim("L15 as released", _PAGE, "", lambda rows: l15(rows, "as_released")),
)


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


def _unhidden(judge: str) -> int:
    """The AUC of ``judge`` where the claims are read, but for training without an adversary."""
    stored = stored_rows()
    return round(_values(stored, judge, False, "iid", "as_described", stronger(stored)).mean())


def _strongest() -> tuple[str, float]:
    """Optimiser and lambda where the claims are read."""
    way = stronger(stored_rows())
    return ("sgd", float("nan")) if way is None else (way.optimiser, way.strength)


def _judged(stored: pd.DataFrame, beside: pd.DataFrame) -> pd.DataFrame:
    """L14 and L15; their verdicts say of how many settings, which the page lists (`stored.tried`),
    and L14's what stands `beside` it."""
    many = sum(len(lambdas) for _, lambdas in tried(stored))
    effort = f" (best on validation rows of {many} settings tried)"
    limits = dict.fromkeys(("L14", "L15"), effort if many else "")
    own = beside.loc[OWN.id]
    if own["ran"]:
        limits["L14"] = f" (by its own, as released: {own['verdict']})" + limits["L14"]
    return claims.judged(CLAIMS, stored, limits=limits)


def paired_gain(way: Tried, stored: pd.DataFrame, metric: str) -> verdict.Evidence:
    """What a ``way`` of the sweep adds to a metric over the same without an adversary."""
    both = way.values(stored, metric), way.values(stored, metric, 0.0)
    return paired("", *both, verdict.greater).evidence
