"""A plan in lines for people."""

from itertools import islice

import pandas as pd

from lgfed_core.evidence.steps import STEPS

from .plan import Bundle, Planner

HOUR = 3600


def length(seconds: float) -> str:
    """A time as people say it: "40 s", "12 min", "1 h 50 min"."""
    if seconds < 90:
        return f"{max(0, seconds):.0f} s"
    hours, minutes = divmod(round(seconds / 60), 60)
    return " ".join([f"{hours} h"] * (hours > 0) + [f"{minutes} min"] * (minutes > 0))


def said(plan: Planner, most: int = 25) -> str:
    """What would run, why, how long it takes and what it would decide; the first ``most`` of it."""
    lines, spent, bundles = [], 0.0, plan.bundles()
    for bundle in islice(bundles, most):
        spent += bundle.seconds
        lines.append(_bundle(bundle, spent))
    rest = list(bundles)
    if rest:
        more = length(sum(bundle.seconds for bundle in rest))
        lines.append(f"and {len(rest)} more, {more}")
    if not lines:
        lines.append("nothing is left that could decide anything")
    return "\n".join([*lines, "", full(plan)])


def full(plan: Planner) -> str:
    """What a full board takes, at each step of seeds."""
    lines = []
    for step in STEPS:
        runs, seconds = plan.full(step)
        lines.append(f"every cell and claim at {step} seeds: {runs} runs, {length(seconds)}")
    return "\n".join(lines)


def table(plan: Planner, most: int = 10) -> pd.DataFrame:
    """The same for a page: experiment, what, seeds, hours, verdicts, first purpose."""
    return pd.DataFrame(
        {
            "runs": "; ".join(
                dict.fromkeys(" ".join(str(t).split(" seed")[0].split()) for t in b.tasks)
            ),
            "to seeds": b.step,
            "hours": b.seconds / HOUR,
            "verdicts": b.decided,
            "for": b.why[0],
        }
        for b in islice(plan.bundles(), most)
    )


def _bundle(bundle: Bundle, spent: float) -> str:
    what = bundle.why[0] + (f" (and {len(bundle.why) - 1} more)" if len(bundle.why) > 1 else "")
    aim = f"to {bundle.step} seeds" if bundle.step > 1 else "a first look"
    tasks = "".join(f"\n    {task}: {length(task.seconds)}" for task in bundle.tasks)
    price = f"{length(bundle.seconds)}, {length(spent)} in all"
    return f"{price}: {aim}, about {bundle.decided:.1f} verdicts; {what}{tasks}"
