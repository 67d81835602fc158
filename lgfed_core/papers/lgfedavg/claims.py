"""Claims L1 to L9 of LG-FedAvg's paper: which comparisons each needs, and the verdicts.

All comparisons of a claim must hold: "at every number of classes" means each of the five.
"""

from collections.abc import Iterable

import pandas as pd

from lgfed_core.evidence import claims, verdict
from lgfed_core.evidence.claims import Claim

from .comparisons import (
    FAILS,
    FULL,
    LOCAL,
    READINGS,
    SOUND,
    WITHIN,
    Read,
    ahead,
    grows_with_variance,
    keeps_both,
    lg,
    local_fails,
    margin_of_match,
    on_new,
    printed,
    same_served,
)
from .stored import at_hand, by_seed

CLAIMS = (
    Claim(
        "L1",
        "lgfedavg/cifar10",
        "CIFAR-10, local test: LG-FedAvg beats FedAvg, at 2 to 10 classes",
        lambda read: ahead(read, FULL["cifar10"]),
    ),
    Claim(
        "L2",
        "lgfedavg/cifar10",
        "CIFAR-10, local test: LG-FedAvg beats local only, at 2 to 10 classes",
        lambda read: ahead(read, LOCAL),
    ),
    Claim(
        "L3",
        "lgfedavg/cifar10",
        "CIFAR-10, local test: LG-FedAvg beats MTL",
        lambda read: ahead(read, ("mtl", 1800), [2]),
    ),
    Claim(
        "L4",
        "lgfedavg/cifar10",
        "CIFAR-10, new test: LG-FedAvg 1200+100 matches FedAvg 1800, by its cell's margin",
        lambda read: on_new(read, 1200, verdict.equivalent, margin=margin_of_match()),
    ),
    Claim(
        "L5",
        "lgfedavg/cifar10",
        "CIFAR-10, new test: LG-FedAvg 1800+100 beats FedAvg 1800",
        lambda read: on_new(read, 1800, verdict.greater),
    ),
    Claim(
        "L6",
        "lgfedavg/cifar10",
        f"new test: local only is more than {FAILS:g} points behind FedAvg",
        local_fails,
    ),
    Claim(
        "L7",
        "lgfedavg/mnist",
        f"MNIST: local test at or above FedAvg, new test within {WITHIN:g}",
        keeps_both,
    ),
    Claim(
        "L8",
        "lgfedavg/cifar10",
        "CIFAR-10: the advantage on local test grows as classes fall",
        grows_with_variance,
    ),
    Claim(
        "L9",
        "lgfedavg/cifar10",
        f"new test: averaged weights and averaged outputs within {WITHIN:g}",
        same_served,
    ),
)
BESIDE = (
    Claim(
        "L4, closer",
        "lgfedavg/cifar10",
        "CIFAR-10, new test: LG-FedAvg 1200+100 within 1 point of FedAvg 1800",
        lambda read: on_new(read, 1200, verdict.equivalent, margin=1.0),
    ),
    Claim(
        "L6, weights",
        "lgfedavg/cifar10",
        "the same, averaged weights alone",
        lambda read: local_fails(read, ["weights"]),
    ),
    Claim(
        "L6, outputs",
        "lgfedavg/cifar10",
        "the same, averaged outputs alone",
        lambda read: local_fails(read, ["outputs"]),
    ),
    Claim(
        "L9, local only",
        "lgfedavg/cifar10",
        "the same, models trained alone",
        lambda read: same_served(read, alone=True),
    ),
)


def judged(stored: pd.DataFrame, asked: Iterable[Claim] = CLAIMS) -> pd.DataFrame:
    """Every claim under every reading: the lines of `evidence.claims.judged`, by (claim, reading).

    stored: rows of `records.load`. Estimates are in points.
    """
    numbers, asked = by_seed(stored), tuple(asked)
    lines = [
        claims.judged(asked, Read(numbers, key)).assign(reading=reading)
        for reading, key in READINGS.items()
    ]
    return pd.concat(lines).set_index("reading", append=True)


def from_stored() -> pd.DataFrame:
    """L1 to L9 under the sound reading, of the recorded runs, with what limits a verdict."""
    read = Read(by_seed(at_hand()), READINGS[SOUND])
    return claims.judged(CLAIMS, read, limits=_limits(read))


def _limits(read: Read) -> dict[str, str]:
    """What the words of L4 and L6 leave out."""
    paper = printed("cifar10", 2)
    sent = [paper[who, "params_communicated"] for who in (lg(1200), FULL["cifar10"])]
    alone = [part for part in local_fails(read, ["weights"]) if part.runs > 1]
    beyond = sum(part.evidence.low > FAILS for part in alone)
    return {
        "L4": f" (of accuracy alone: it sends {100 * sent[0] / sent[1]:.0f} %, not half)",
        "L6": f" (fail: {FAILS:g} points behind FedAvg, our bound, however they are averaged; by "
        f"averaged weights, as printed, they are in {beyond} of {len(alone)} comparisons)",
    }


def shown(lines: pd.DataFrame, asked: Iterable[str] | None = None) -> pd.DataFrame:
    """`judged` for people: a line per claim, a column per reading, what was compared."""
    lines = lines.assign(shown=[_shown(line) for line in lines.itertuples()])
    wide = lines["shown"].unstack("reading")[list(READINGS)]
    order = [c for c in dict.fromkeys(lines.index.get_level_values(0)) if not asked or c in asked]
    words = lines.xs(SOUND, level="reading")["words"]
    return wide.reindex(order).rename(index=lambda claim: f"{claim.split(',')[0]}: {words[claim]}")


def details(stored: pd.DataFrame, asked: Iterable[str], reading: str = SOUND) -> pd.DataFrame:
    """Every comparison that was run for the claims named, under one reading, uncorrected.

    Columns: claim, at (the comparison), runs, estimate, low, high, p, p_against.
    """
    read, columns = Read(by_seed(stored), READINGS[reading]), ["claim", "at", "runs"]
    named = {claim.id: claim for claim in (*CLAIMS, *BESIDE)}
    lines = [
        {"claim": id, "at": part.name, "runs": part.runs, **vars(part.evidence)}
        for id in asked
        for part in named[id].comparisons(read)
        if part.runs
    ]
    return pd.DataFrame(lines, columns=[*columns, "estimate", "low", "high", "p", "p_against"])


def _shown(line) -> str:
    """Estimate, interval, runs and where, and the verdict."""
    if not line.ran:
        return line.verdict
    return f"{claims.said(line)} ({line.at_runs}; {line.at}) {line.said}"
