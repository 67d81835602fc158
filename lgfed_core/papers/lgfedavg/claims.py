"""Claims L1 to L9 of LG-FedAvg's paper: which comparisons each needs, and the verdicts.

All comparisons of a claim must hold: "at every number of classes" means each of the five.
"""

import pandas as pd

from lgfed_core.evidence import answers, verdict
from lgfed_core.evidence.claims import Claim
from lgfed_core.evidence.printed import margin
from lgfed_core.evidence.records import select
from lgfed_core.papers.live_claims import Judged

from . import comparisons, layers as cuts
from .comparisons import FAILS, FULL, LOCAL, READINGS, SOUND, WITHIN, Read, ahead, lg
from .printed import TABLES
from .records import at_hand, by_seed

_MARGIN = margin(TABLES["lgfedavg_v2_table1_cifar10"], "new_test_acc", method="fedavg")
_OWN, _NEW = "CIFAR-10, own classes", "CIFAR-10, new devices"  # whose variances are shared
_POINTS = "points of accuracy, above 0: LG-FedAvg is ahead"
_FEDAVG, _LEVEL = ("cifar10", FULL["cifar10"]), ("new_test_acc", verdict.equivalent)
_DIFFER = ("2 classes", "3 classes", "4 classes", "5 classes")
_SPLITS = (*_DIFFER, "i.i.d.")
CLAIMS = (
    Claim(
        "L1",
        "lgfedavg/cifar10",
        "CIFAR-10, local test: LG-FedAvg beats FedAvg, at 2 to 10 classes",
        lambda read: ahead(read, *_FEDAVG),
        question="Does LG-FedAvg beat FedAvg on a device's own classes?",
        answer="**In part.** On CIFAR-10 it is 15 to 35 points ahead with 2 to 5 classes per "
        "device, and 1 to 3 behind with all ten. With two, fine-tuning FedAvg's model comes within "
        "0.2 points. With all ten, choosing rounds on test data as the released code does makes "
        "LG-FedAvg and FedAvg level; the paper has LG-FedAvg 1 to 2 ahead.",
        guard=lambda told: (
            told.between(14.5, 35.5, at=_DIFFER)
            and told.between(-3.5, -0.5, at="i.i.d.")
            and told.lines["printed"][8:].round().tolist() == [1, 2]
            and all(abs(_as_released(10, budget)) < 1 for budget in (1200, 1800))
            and 0.05 < _sharing_adds(0) < 0.25
        ),
        unit=_POINTS,
        family=_OWN,
    ),
    Claim(
        "L2",
        "lgfedavg/cifar10",
        "CIFAR-10, local test: LG-FedAvg beats local only, at 2 to 10 classes",
        lambda read: ahead(read, "cifar10", LOCAL),
        question="Does LG-FedAvg beat training alone on a device's own classes?",
        answer="**Yes.** It is 5 to 33 points ahead on CIFAR-10, most where all devices hold all "
        "classes.",
        guard=lambda told: (
            told.tally(10)
            and told.between(5, 7, at="2 classes")
            and told.between(10.5, 16.5, at=_DIFFER[1:])
            and told.between(31, 33.5, at="i.i.d.")
        ),
        unit=_POINTS,
        family=_OWN,
    ),
    Claim(
        "L3",
        "lgfedavg/cifar10",
        "CIFAR-10, local test: LG-FedAvg beats MTL",
        lambda read: ahead(read, "cifar10", ("mtl", 1800), splits=[2]),
        question="Does LG-FedAvg beat multi-task learning on a device's own classes?",
        answer="**Yes.** It is about 5 points ahead on CIFAR-10 with two classes per device. But "
        "at the code's strength (the paper names none) multi-task learning pulls so weakly that it "
        "is training alone.",
        guard=lambda told: told.tally(2) and told.between(4.5, 5.5),
        unit=_POINTS,
        family=_OWN,
    ),
    Claim(
        "L4",
        "lgfedavg/cifar10",
        "CIFAR-10, new test: LG-FedAvg 1200+100 matches FedAvg 1800, by its cell's margin",
        lambda read: ahead(read, *_FEDAVG, *_LEVEL, splits=[2], budgets=[1200], margin=_MARGIN),
        question="Do 1200 rounds of FedAvg and then 100 of LG-FedAvg serve new devices as well as "
        "1800 of FedAvg?",
        answer="**Yes.** With two classes per device on CIFAR-10 they are at most 0.9 points "
        "behind (95 % interval), with the released code 1.3; we allow 3. By the paper's own "
        "numbers they send 67 % of the parameters, not around half.",
        guard=lambda told: (
            told.tally(1)
            and told.lines[["low", "high", "margin"]].round(1).to_numpy().tolist()
            == [[-0.9, 1.6, 3.0]]
            and round(_as_released(2, 1200, "new_test_acc"), 1) == -1.3
            and _sent() == 67
        ),
        unit=_POINTS,
        family=_NEW,
    ),
    Claim(
        "L5",
        "lgfedavg/cifar10",
        "CIFAR-10, new test: LG-FedAvg 1800+100 beats FedAvg 1800",
        lambda read: ahead(read, *_FEDAVG, "new_test_acc", splits=[2], budgets=[1800]),
        question="After 1800 rounds of FedAvg, do 100 more of LG-FedAvg serve new devices better?",
        answer="**Yes.** With two classes per device on CIFAR-10 they add about 3 points. After "
        "1200 rounds, fine-tuning without sharing does as well: both average a hundred devices' "
        "models, FedAvg has one.",
        guard=lambda told: (
            told.tally(1) and told.between(2, 4) and abs(_sharing_adds(0, cuts.OUTPUTS)) < 0.3
        ),
        unit=_POINTS,
        family=_NEW,
    ),
    Claim(
        "L6",
        "lgfedavg/cifar10",
        f"new test: local only is more than {FAILS:g} points behind FedAvg",
        comparisons.local_fails,
        question="Do models trained alone fail on new devices?",
        answer="**In part.** With averaged weights, as in the paper's numbers, they are 8 to "
        "65 points behind FedAvg. With averaged outputs, MNIST models of three classes or more are "
        "only 6 to 9 behind, CIFAR-10 models 8 to 29. (We call more than 10 a failure.)",
        guard=lambda told: (
            told.tally(9, 2, 9)
            and told.between(7.5, 65, at="averaged weights")
            and told.between(6, 9, at=[f"MNIST, {n}, averaged outputs" for n in _SPLITS[1:]])
            and told.between(8, 29, at=[f"CIFAR-10, {n}, averaged outputs" for n in _SPLITS])
        ),
        unit="points of accuracy that models trained alone are behind FedAvg",
    ),
    Claim(
        "L7",
        "lgfedavg/mnist",
        f"MNIST: local test at or above FedAvg, new test within {WITHIN:g}",
        comparisons.keeps_both,
        question="Does LG-FedAvg keep FedAvg's accuracy on MNIST, on own classes and on new "
        "devices?",
        answer="**Yes in 18 of 20 comparisons.** On own classes it is 0 to 1 point ahead, on new "
        "devices level, within 0.2 points. It gains most with two classes.",
        guard=lambda told: (
            told.tally(18, 0, 2)
            and told.between(-0.05, 1, at="own classes")
            and told.between(-0.25, 0.25, at="new devices")
            and told.between(0.5, 1.0, at=[f"2 classes, {n} + 100 rounds, own" for n in (400, 800)])
        ),
        unit=_POINTS,
    ),
    Claim(
        "L8",
        "lgfedavg/cifar10",
        "CIFAR-10: the advantage on local test grows as classes fall",
        comparisons.grows_with_variance,
        question="Does the advantage over FedAvg on own classes grow as devices hold fewer?",
        answer="**Yes.** On CIFAR-10 it grows from a loss of 1 to 3 points with all classes to a "
        "gain of 35 with two. Nearly half of that comes between ten classes and five.",
        guard=lambda told: told.tally(2) and all(_leads(budget) for budget in (1200, 1800)),
        unit="points of accuracy a step",
    ),
    Claim(
        "L9",
        "lgfedavg/cifar10",
        f"new test: averaged weights and averaged outputs within {WITHIN:g}",
        comparisons.same_served,
        question="For LG-FedAvg, are averaged weights and averaged outputs equally good for new "
        "devices?",
        answer="**Yes in 13 of 20 comparisons.** On MNIST the two agree to 0.01 points. On "
        "CIFAR-10 they are up to 0.2 apart in our runs, but only three of ten are shown to be "
        "within the paper's half point.",
        guard=lambda told: (
            told.tally(13, 0, 7)
            and list(told.lines["outcome"]).index(answers.UNTOLD) == 11  # all ten of MNIST hold
            and told.between(-0.015, 0.015, at="MNIST")
            and told.between(-0.245, 0.245, at="CIFAR-10")
        ),
        unit="points of accuracy, averaged weights above averaged outputs",
    ),
)


def stored() -> Read:
    """The recorded numbers in the sound reading."""
    return Read(by_seed(at_hand()), READINGS[SOUND])


PAGE = Judged(CLAIMS, stored, stand_in=lambda found: "")
judged, from_stored, told = PAGE.judged, PAGE.from_stored, PAGE.told


def by_reading(*ids: str) -> pd.DataFrame:
    """The verdicts on the claims named under every reading: where rounds are chosen, and by which
    protocol."""
    numbers = by_seed(at_hand())
    found = {name: answers.told(CLAIMS, Read(numbers, key)) for name, key in READINGS.items()}
    words = {reading: {id: some[id].words for id in ids} for reading, some in found.items()}
    names = {claim.id: f"{claim.id}: {claim.question}" for claim in CLAIMS}
    return pd.DataFrame(words).rename(index=names)


def _sent() -> int:
    """What LG-FedAvg sends in 1200 + 100 rounds, in percent of FedAvg's, by the printed numbers."""
    paper = comparisons.printed("cifar10", 2)
    sent = [paper[who, "params_communicated"] for who in (lg(1200), FULL["cifar10"])]
    return round(100 * sent[0] / sent[1])


def _leads(budget: int) -> bool:
    """Whether the lead over FedAvg after so many rounds is about 35 points with two classes, -1 to
    -3 with ten, and nearly half of the way between them at five."""
    lines = answers.told(CLAIMS[:1], stored())["L1"].lines
    lead = lines["estimate"][lines["name"].str.contains(f"{budget} +", regex=False)].to_numpy()
    two, five, ten = lead[[0, -2, -1]]
    return bool(34 < two < 35.5 and -3.5 < ten < -0.5 and 0.44 < (five - ten) / (two - ten) < 0.5)


def _sharing_adds(rival: int, metric: str = "local_test_acc") -> float:
    """How far the paper's cut is ahead of sharing ``rival`` layers (0: fine-tuning), in points:
    CIFAR-10, two classes per device."""
    wide = cuts.by_cut(cuts.cell(select("lgfedavg.layers"), "cifar10"), metric)
    return (wide["first", 2] - wide["last", rival]).mean()


def _as_released(classes: int, budget: int, metric: str = "local_test_acc") -> float:
    """How far LG-FedAvg is ahead of FedAvg on CIFAR-10 as released, best on test, in points."""
    read = Read(by_seed(at_hand()), READINGS["as released, best on test"])
    ours, fedavg = (
        read.get("cifar10", classes, who, metric) for who in (lg(budget), FULL["cifar10"])
    )
    return (ours - fedavg).mean()
