"""A plan in lines for people."""

from itertools import islice

from lgfed_core.evidence.seed_steps import STEPS

from .plan import Bundle, Planner

MOST = 25  # bundles that are said in full


def length(seconds: float) -> str:
    """A time as people say it: "40 s", "12 min", "1 h 50 min"."""
    if seconds < 90:
        return f"{max(0, seconds):.0f} s"
    hours, minutes = divmod(round(seconds / 60), 60)
    return " ".join([f"{hours} h"] * (hours > 0) + [f"{minutes} min"] * (minutes > 0))


def said(plan: Planner) -> str:
    """What would run, why, how long it takes and what it would decide; the first `MOST` of it."""
    lines, spent, bundles = [], 0.0, plan.bundles()
    for bundle in islice(bundles, MOST):
        spent += bundle.seconds
        lines.append(_bundle(bundle, spent))
    if rest := list(bundles):
        lines.append(f"and {len(rest)} more, {length(sum(bundle.seconds for bundle in rest))}")
    lines = lines or ["nothing is left that could decide anything"]
    return "\n".join([*lines, "", full(plan), *beside(plan)])


def beside(plan: Planner) -> list[str]:
    """What has not run and decides nothing, by experiment: pages show it, and `fill` leaves it."""
    asked = {piece for goal in plan.goals for piece in goal.pieces}
    starts = {(p.experiment, name) for p in plan.ledger.pieces for name in p.after}
    found: dict[str, list[float]] = {}
    for piece in plan.ledger.pieces:
        start = (piece.experiment, piece.name) in starts
        if piece not in asked and not start and not plan.ledger.seeds(piece):
            found.setdefault(piece.experiment, []).append(plan.ledger.seconds(piece))
    return [
        f"beside these, what decides no verdict: {name}, {len(times)} run{'s' * (len(times) > 1)}, "
        f"{length(sum(times))}"
        for name, times in found.items()
    ]


def full(plan: Planner) -> str:
    """What a full board takes, at each step of seeds."""
    steps = ((step, *plan.full(step)) for step in STEPS)
    return "\n".join(
        f"every cell and claim at {n} seeds: {k} runs, {length(s)}" for n, k, s in steps
    )


def _bundle(bundle: Bundle, spent: float) -> str:
    what, others = bundle.why[0], len(bundle.why) - 1
    what += f" (and {others} more)" * (others > 0)
    aim = f"to {bundle.step} seeds" if bundle.step > 1 else "a first look"
    tasks = "".join(f"\n    {task}: {length(task.seconds)}" for task in bundle.tasks)
    price = f"{length(bundle.seconds)}, {length(spent)} in all"
    return f"{price}: {aim}, about {bundle.decided:.1f} verdicts; {what}{tasks}"
