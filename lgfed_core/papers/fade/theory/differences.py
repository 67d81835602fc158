"""What a thief gets: the distance to the stolen law at the end against the start, in a table."""

from collections.abc import Iterator

from lgfed_core.evidence.display import Page
from lgfed_core.papers.differences import Pair, table, tables

from .attack import START, Attack


def stolen(found: Attack, careful: Attack) -> Page:
    """With steps of either length, by seed."""
    head = f"Fréchet distance at the end against {START:.2f} at the start; lower is more stolen"
    return tables([table(head, _ends(found, careful))])


def _ends(found: Attack, careful: Attack) -> Iterator[Pair]:
    for attack, steps in ((found, "long steps"), (careful, "small steps")):
        every = attack.table()
        last = every[every["round"] == every["round"].max()]
        for (noise, absent), mine in last.groupby(["noise", "absent"]):
            blurred, away = f"noise {noise:g}" * (noise > 0), f"absent {100 * absent:g} %"
            who = ", ".join(filter(None, [blurred, away * (absent > 0)])) or "open"
            end = mine.set_index("seed")["distance"]
            yield f"{who}, {steps}", end, 0 * end + START
