"""Claims L1 to L9 of LG-FedAvg's paper, put to the stored runs at paper scale.

A claim is a list of comparisons, paired over seeds, all of which must hold: "at every number of
classes" means each of the five. While some have not been run it can only be refuted.

LG-FedAvg stands for the two budgets of the paper's headline rows. The margin of a match is the
book's where the paper names none. A model fails on new devices when it is more than `FAILS` points
behind FedAvg. The sound reading is *as described*, chosen on validation rows.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from .. import published, verdict
from ..verdict import Evidence
from .lgfedavg_rows import by_seed

CLASSES = (2, 3, 4, 5, 10)  # per device; 10 is i.i.d.
BUDGETS = {"mnist": (400, 800), "cifar10": (1200, 1800)}  # FedAvg rounds of the headline rows
FULL = {dataset: ("fedavg", budgets[-1]) for dataset, budgets in BUDGETS.items()}
LOCAL = ("local_only", 0)
WORDS = {"mnist": "MNIST", "cifar10": "CIFAR-10"}
FAILS = 10.0  # points of new test accuracy
WITHIN = 0.5  # points, which the paper names for L7 and L9
READINGS = {
    "as described, best on validation": ("as_described", "best_val"),
    "as described, last round": ("as_described", "last"),
    "as released, best on test": ("as_released", "best_test"),
    "as released, last round": ("as_released", "last"),
}
SOUND = "as described, best on validation"


@dataclass(frozen=True)
class Part:
    """One comparison that a claim needs: its name, the runs that were paired, what they say."""

    name: str
    runs: int
    evidence: Evidence


@dataclass(frozen=True)
class Read:
    """Stored numbers (of `by_seed`) read one way: reading is (protocol, selection)."""

    numbers: dict[tuple, pd.Series]
    reading: tuple[str, str]

    def local(self, dataset: str, classes: int, who: tuple[str, int]) -> pd.Series:
        """Local test accuracy by seed; who: (method, FedAvg rounds)."""
        return self._get(dataset, classes, who, "local_test_acc", self.reading)

    def new(
        self, dataset: str, classes: int, who: tuple[str, int], way: str = "", last: bool = False
    ) -> pd.Series:
        """New test accuracy by seed, of averaged weights or outputs; the protocol's by default."""
        metric = f"new_test_acc_{way}" if way else "new_test_acc"
        reading = (self.reading[0], "last") if last else self.reading
        return self._get(dataset, classes, who, metric, reading)

    def _get(self, *key) -> pd.Series:
        return self.numbers.get(key, pd.Series(dtype=float))


def paired(name: str, a: pd.Series, b: pd.Series, test: Callable[..., Evidence], **how) -> Part:
    """Compare a with b over the seeds that both have."""
    a, b = a.align(b, join="inner")
    return Part(name, len(a), test(a.to_numpy(), b.to_numpy(), **how))


def lg(rounds: int) -> tuple[str, int]:
    """LG-FedAvg from so many rounds of FedAvg."""
    return "lg_fedavg", rounds


def ahead(read: Read, of: tuple[str, int], splits: Iterable[int] = CLASSES) -> list[Part]:
    """L1, L2, L3: CIFAR-10, local test, LG-FedAvg minus another, at each number of classes."""
    return [
        paired(f"{classes} classes, {budget}+100", read.local("cifar10", classes, lg(budget)),
               read.local("cifar10", classes, of), verdict.greater)
        for classes in splits
        for budget in BUDGETS["cifar10"]
    ]  # fmt: skip


def on_new(read: Read, budget: int, test: Callable[..., Evidence], **how) -> list[Part]:
    """L4, L5: CIFAR-10, new test, two classes, LG-FedAvg minus FedAvg after 1800 rounds."""
    mine, theirs = (read.new("cifar10", 2, who) for who in (lg(budget), FULL["cifar10"]))
    return [paired(f"2 classes, {budget}+100", mine, theirs, test, **how)]


def margin_of_match() -> float:
    """The book's margin for FedAvg's cell of Table 1 on new devices, in points."""
    printed = published.cells(published.find("lgfedavg_v2_table1_cifar10"))
    fedavg = printed[(printed["method"] == "fedavg") & (printed["metric"] == "new_test_acc")]
    return max(2 * float(fedavg["paper_sd"].item()), 1.0)


def local_fails(read: Read, ways: Iterable[str] = ("weights", "outputs")) -> list[Part]:
    """L6: FedAvg minus local only on new devices, however its models are averaged."""
    return [
        paired(f"{WORDS[dataset]}, {classes} classes, averaged {way}",
               read.new(dataset, classes, FULL[dataset]),
               read.new(dataset, classes, LOCAL, way), verdict.greater, by=FAILS)
        for way in ways
        for dataset in BUDGETS
        for classes in CLASSES
    ]  # fmt: skip


def keeps_both(read: Read) -> list[Part]:
    """L7: MNIST, local test at or above FedAvg and new test within half a point of it."""
    parts = []
    for classes in CLASSES:
        for budget in BUDGETS["mnist"]:
            name, who = f"{classes} classes, {budget}+100", (lg(budget), FULL["mnist"])
            local, new = ([get("mnist", classes, w) for w in who] for get in (read.local, read.new))
            parts.append(paired(f"{name}, local test", *local, verdict.greater))
            parts.append(paired(f"{name}, new test", *new, verdict.equivalent, margin=WITHIN))
    return parts


def grows_with_variance(read: Read) -> list[Part]:
    """L8: CIFAR-10, the advantage over FedAvg, one slope per seed over the five splits, in points
    from one split to the next."""
    parts = []
    for budget in BUDGETS["cifar10"]:
        gaps = [
            read.local("cifar10", classes, lg(budget))
            - read.local("cifar10", classes, FULL["cifar10"])
            for classes in reversed(CLASSES)
        ]
        whole = pd.concat(gaps, axis=1, join="inner").dropna()  # [seeds, splits]
        slope = verdict.rising(np.arange(len(CLASSES)), whole.to_numpy(float))
        parts.append(Part(f"{budget}+100", len(whole), slope))
    return parts


def same_served(read: Read, alone: bool = False) -> list[Part]:
    """L9: averaged weights against averaged outputs of the same models, LG-FedAvg's or those
    trained alone; as released in the last round, as the best round's outputs are not averaged."""
    last = read.reading[0] == "as_released"
    return [
        paired(f"{WORDS[dataset]}, {classes} classes" + (f", {who[1]}+100" if who[1] else ""),
               *(read.new(dataset, classes, who, way, last) for way in ("weights", "outputs")),
               verdict.equivalent, margin=WITHIN)
        for dataset, budgets in BUDGETS.items()
        for classes in CLASSES
        for who in ([LOCAL] if alone else map(lg, budgets))
    ]  # fmt: skip


Test = Callable[[Read], list[Part]]
CLAIMS: dict[str, tuple[str, Test]] = {
    "L1": ("CIFAR-10, local test: LG-FedAvg beats FedAvg, at 2 to 10 classes",
           lambda read: ahead(read, FULL["cifar10"])),
    "L2": ("CIFAR-10, local test: LG-FedAvg beats local only, at 2 to 10 classes",
           lambda read: ahead(read, LOCAL)),
    "L3": ("CIFAR-10, local test: LG-FedAvg beats MTL",
           lambda read: ahead(read, ("mtl", 1800), [2])),
    "L4": ("CIFAR-10, new test: LG-FedAvg 1200+100 matches FedAvg 1800",
           lambda read: on_new(read, 1200, verdict.equivalent, margin=margin_of_match())),
    "L5": ("CIFAR-10, new test: LG-FedAvg 1800+100 beats FedAvg 1800",
           lambda read: on_new(read, 1800, verdict.greater)),
    "L6": (f"new test: local only is more than {FAILS:g} points behind FedAvg", local_fails),
    "L7": (f"MNIST: local test at or above FedAvg, new test within {WITHIN:g}", keeps_both),
    "L8": ("CIFAR-10: the advantage on local test grows as classes fall", grows_with_variance),
    "L9": (f"new test: averaged weights and averaged outputs within {WITHIN:g}", same_served),
}  # fmt: skip
BESIDE: dict[str, tuple[str, Test]] = {
    "L6, weights": ("L6 for averaged weights", lambda read: local_fails(read, ["weights"])),
    "L6, outputs": ("L6 for averaged outputs", lambda read: local_fails(read, ["outputs"])),
    "L9, local only": ("L9 for models trained alone", lambda read: same_served(read, alone=True)),
}


def joint(parts: list[Part]) -> Evidence:
    """That all parts hold, with the estimate of the weakest that was run."""
    if not any(part.runs for part in parts):
        return Evidence(np.nan, np.nan, np.nan, 1.0, 1.0)
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


def _said(line) -> str:
    """Estimate, interval, runs, verdict; and what is missing where something is."""
    if not line.ran:
        return line.verdict
    interval = "" if np.isnan(line.low) else f" [{line.low:+.2f}, {line.high:+.2f}]"
    said = f"{line.estimate:+.2f}{interval} ({line.runs}) {line.verdict}"
    if line.ran == line.parts or line.verdict == verdict.REFUTED:
        return said
    return f"{said}: {line.ran} of {line.parts} run, {line.so_far} so far"
