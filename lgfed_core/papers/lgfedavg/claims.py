"""Claims L1 to L9 of LG-FedAvg's paper: which comparisons each needs, and the verdicts.

All comparisons of a claim must hold: "at every number of classes" means each of the five. While
some have not been run a claim can be refuted, but not confirmed; what was run is judged apart.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np
import pandas as pd

from lgfed_core.evidence import verdict
from lgfed_core.evidence.verdict import Evidence

from .comparisons import (
    FAILS,
    FULL,
    LOCAL,
    READINGS,
    SOUND,
    WITHIN,
    Part,
    Read,
    ahead,
    grows_with_variance,
    keeps_both,
    local_fails,
    margin_of_match,
    on_new,
    same_served,
)
from .records import by_seed

Test = Callable[[Read], list[Part]]
CLAIMS: dict[str, tuple[str, Test]] = {
    "L1": (
        "CIFAR-10, local test: LG-FedAvg beats FedAvg, at 2 to 10 classes",
        lambda read: ahead(read, FULL["cifar10"]),
    ),
    "L2": (
        "CIFAR-10, local test: LG-FedAvg beats local only, at 2 to 10 classes",
        lambda read: ahead(read, LOCAL),
    ),
    "L3": (
        "CIFAR-10, local test: LG-FedAvg beats MTL",
        lambda read: ahead(read, ("mtl", 1800), [2]),
    ),
    "L4": (
        "CIFAR-10, new test: LG-FedAvg 1200+100 matches FedAvg 1800, by its cell's margin",
        lambda read: on_new(read, 1200, verdict.equivalent, margin=margin_of_match()),
    ),
    "L5": (
        "CIFAR-10, new test: LG-FedAvg 1800+100 beats FedAvg 1800",
        lambda read: on_new(read, 1800, verdict.greater),
    ),
    "L6": (f"new test: local only is more than {FAILS:g} points behind FedAvg", local_fails),
    "L7": (f"MNIST: local test at or above FedAvg, new test within {WITHIN:g}", keeps_both),
    "L8": ("CIFAR-10: the advantage on local test grows as classes fall", grows_with_variance),
    "L9": (f"new test: averaged weights and averaged outputs within {WITHIN:g}", same_served),
}
BESIDE: dict[str, tuple[str, Test]] = {
    "L4, closer": (
        "CIFAR-10, new test: LG-FedAvg 1200+100 within 1 point of FedAvg 1800",
        lambda read: on_new(read, 1200, verdict.equivalent, margin=1.0),
    ),
    "L6, weights": (
        "the same, averaged weights alone",
        lambda read: local_fails(read, ["weights"]),
    ),
    "L6, outputs": (
        "the same, averaged outputs alone",
        lambda read: local_fails(read, ["outputs"]),
    ),
    "L9, local only": (
        "the same, models trained alone",
        lambda read: same_served(read, alone=True),
    ),
}


def joint(parts: list[Part]) -> Evidence:
    """That all parts hold, with the estimate of the weakest that was run."""
    if not any(part.runs for part in parts):
        return verdict.NO_EVIDENCE
    whole = verdict.every([part.evidence for part in parts])
    return replace(weakest(parts).evidence, p=whole.p, p_against=whole.p_against)


def weakest(parts: list[Part]) -> Part:
    """The part, of those that were run, with the weakest evidence for the claim."""
    ran = (part for part in parts if part.runs)
    return max(ran, key=lambda part: (part.evidence.p, -part.evidence.estimate))


def judged(stored: pd.DataFrame, claims: dict[str, tuple[str, Test]] | None = None) -> pd.DataFrame:
    """Every claim under every reading: one line each, indexed by (claim, reading).

    stored: rows of `results.load`. Columns: words; estimate, low, high of the weakest comparison
    in points, and its name ``at``; p, p_against and verdict, by Holm over the claims given (by
    default L1 to L9); how many were ``ran`` of how many ``parts``, on how many runs at least; and
    so_far, the verdict on the comparisons that were run.
    """
    out, chosen, numbers = [], CLAIMS if claims is None else claims, by_seed(stored)
    for reading, key in READINGS.items():
        read = Read(numbers, key)
        parts = {claim: test(read) for claim, (_, test) in chosen.items()}
        lines = verdict.judge({claim: joint(found) for claim, found in parts.items()})
        ran = {claim: [part for part in found if part.runs] for claim, found in parts.items()}
        lines["so_far"] = verdict.judge({c: joint(found) for c, found in ran.items()})["verdict"]
        lines["at"] = [weakest(found).name if found else "" for found in ran.values()]
        lines["ran"] = [len(found) for found in ran.values()]
        lines["parts"] = [len(found) for found in parts.values()]
        lines["runs"] = [min((part.runs for part in found), default=0) for found in ran.values()]
        lines["words"] = [words for words, _ in chosen.values()]
        lines.loc[lines["ran"] == 0, ["verdict", "so_far"]] = verdict.NOT_RUN
        out.append(lines.assign(reading=reading))
    return pd.concat(out).set_index("reading", append=True)


def shown(lines: pd.DataFrame, claims: Iterable[str] | None = None) -> pd.DataFrame:
    """`judged` for people: a line per claim, a column per reading, what was compared."""
    lines = lines.assign(said=[_said(line) for line in lines.itertuples()])
    wide = lines["said"].unstack("reading")[list(READINGS)]
    order = [c for c in dict.fromkeys(lines.index.get_level_values(0)) if not claims or c in claims]
    words = lines.xs(SOUND, level="reading")["words"]
    return wide.reindex(order).rename(index=lambda claim: f"{claim.split(',')[0]}: {words[claim]}")


def details(stored: pd.DataFrame, claims: Iterable[str], reading: str = SOUND) -> pd.DataFrame:
    """Every comparison that was run for the claims named, under one reading, uncorrected.

    Columns: claim, at (the comparison), runs, estimate, low, high, p, p_against.
    """
    read, columns = Read(by_seed(stored), READINGS[reading]), ["claim", "at", "runs"]
    lines = [
        {"claim": claim, "at": part.name, "runs": part.runs, **vars(part.evidence)}
        for claim in claims
        for part in (CLAIMS | BESIDE)[claim][1](read)
        if part.runs
    ]
    return pd.DataFrame(lines, columns=[*columns, "estimate", "low", "high", "p", "p_against"])


def settled(line) -> bool:
    """Whether a line of `judged` is refuted, or has run all comparisons, each more than once."""
    return line.verdict == verdict.REFUTED or (line.ran == line.parts and line.runs > 1)


def _said(line) -> str:
    """Estimate, interval, runs and where, verdict; and what is missing where something is."""
    if not line.ran:
        return line.verdict
    estimate, low, high = (round(v, 2) + 0.0 for v in (line.estimate, line.low, line.high))
    interval = "" if np.isnan(low) else f" [{low:+.2f}, {high:+.2f}]"
    said = f"{estimate:+.2f}{interval} ({line.runs}; {line.at}) {line.verdict}"
    if settled(line):
        return said
    return f"{said}: {line.ran} of {line.parts} run, {line.so_far} so far"
