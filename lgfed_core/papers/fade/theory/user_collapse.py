"""Groups that match while the users within them have lost their classes, on four symbols.

Hong et al. 2021 (FADE), sections 4.3 and 4.4, claim F15. The smallest case: a source user with
classes 0 and 1 in equal parts, whose labels fix its codes, z = class; and two target users without
labels, of which user t has class t alone. The encoder is a table q(z|t) [t, z], z in {0, 1}. All
users are always present, a = 1, so the target group has weight m = 2 and the source 1.

What the discriminator sees beside z decides (`CONDITIONS`). The encoder minimises `gap`, the excess
of the discrepancy over its least value, of what is seen in the target and in the source. On `line`
the marginals match, which is all that a D of z alone sees; a class that the classifier reads off z,
as CDAN's, tells it nothing new. Of labels that are right with probability r it compares
v = r u + (1 - r)(1 - u) with 0: for r > 1/2 the gap is least at the right codes alone, u = 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from lgfed_core.errors import SettingsError
from lgfed_core.evidence.verdict import Evidence, exact
from lgfed_core.metrics import information as measures

from . import closed_form as theory_fade

SOURCE = np.eye(2)  # q(z|class) of the source
WEIGHTS = (2.0, 1.0)  # m users of the target, one of the source


@dataclass(frozen=True)
class Condition:
    """What D sees beside z: ``labels`` right with probability r, or the predictions from z."""

    name: str
    labels: float | None = None
    predictions: bool = False

    def classes(self, group: str) -> NDArray | None:
        """p(c|t, z) [t, z, c] in group "target" or "source"; None where D sees z alone."""
        if self.predictions:
            return np.tile(np.eye(2), (2, 1, 1))  # c = z: the classifier that the source teaches
        if self.labels is None:
            return None
        r = 1.0 if group == "source" else self.labels  # the source knows its own
        if not 0 <= r <= 1:
            raise SettingsError(f"labels right with probability {r}; it lies in [0, 1]")
        return np.repeat(np.array([[r, 1 - r], [1 - r, r]])[:, None], 2, axis=1)


CONDITIONS = NOTHING, OWN, GUESSED, TRUE = (
    Condition("nothing"),
    Condition("own predictions (CDAN)", predictions=True),
    Condition("labels, 70 % right", labels=0.7),
    Condition("the users' own classes", labels=1.0),
)


def line(u: float) -> NDArray:
    """Target codes with marginals that match: a share u of each user's codes is the other class."""
    return np.array([[1 - u, u], [u, 1 - u]])


def accuracy(target: NDArray) -> float:
    """How often the source's classifier, class = z, is right in the target."""
    return float(np.trace(target) / 2)


def information(target: NDArray) -> float:
    """I(z; t) in nats: what codes say of classes in the target. log 2 at most; 0 is collapse."""
    return measures.information(target / 2)


def seen(q: NDArray, condition: Condition, group: str) -> NDArray:
    """The law of what D sees of a group with codes q [t, z]: of z [2], or of (z, c) [4]."""
    classes = condition.classes(group)
    if classes is None:
        return q.mean(0)
    return np.einsum("tz,tzc->zc", q / 2, classes).ravel()


def gap(target: NDArray, condition: Condition) -> float:
    """By how much the best D beats one that sees nothing: m KL(p^1|m) + KL(p2|m), section 4.3."""
    seen_of = [seen(q, condition, g) for q, g in ((target, "target"), (SOURCE, "source"))]
    return theory_fade.excess(*seen_of, *WEIGHTS)


def least_gap(condition: Condition) -> tuple[float, NDArray]:
    """The least gap and a table that has it.

    The gap is convex in q and the problem unchanged when both classes are renamed, so that one of
    the best tables is unchanged, too: on `line`, and among the collapsed ones its middle.
    """
    found = minimize_scalar(
        lambda u: gap(line(u), condition), bounds=(0, 1), method="bounded", options={"xatol": 1e-12}
    )
    best = min((0.0, 1.0, float(found.x)), key=lambda u: gap(line(u), condition))
    return gap(line(best), condition), line(best)


def claim_f15(condition: Condition = OWN) -> Evidence:
    """F15: matched groups can be collapsed, and seeing ``condition`` beside z prevents it.

    Exact, on the constructed case: the collapsed codes have no gap where D sees z alone, and under
    ``condition`` more than the best codes have, which tell the classes. The estimate is how much
    more, in nats; without chance, the p-values are 0 or 1.
    """
    exists = gap(line(0.5), NOTHING) < 1e-12 and information(line(0.5)) < 1e-12
    best, codes = least_gap(condition)
    excluded = gap(line(0.5), condition) - best
    holds = exists and excluded > 1e-6 and accuracy(codes) > 1 - 1e-6
    return exact(excluded, holds)
