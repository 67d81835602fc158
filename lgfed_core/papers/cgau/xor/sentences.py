"""What the page on XOR says of its networks, in sentences; found: `run.accuracies`."""

import pandas as pd

from lgfed_core.evidence.claims import said
from lgfed_core.evidence.verdict import NOT_RUN, SUGGESTED, Evidence
from lgfed_core.models.gated_unit import SWITCHES
from lgfed_core.papers.in_words import kind

from .roles import INTACT, clearest, counts, ways
from .run import SCALES, solves
from .shares import difference


def take_home(found: dict[str, pd.DataFrame]) -> str:
    """Four Markdown lines of what came out; found: `accuracies` by kind of network."""
    solved = {kind: int(solves(a).sum()) for kind, a in found.items()}
    starts = {kind: len(a) for kind, a in found.items()}
    # False if fewer than half of the starts solved it: then C8 fails, and this says the share.
    enough = (
        f"- **One unit with its client** solves it from {solved['cgau']} of "
        f"{starts['cgau']} starts."
    )
    parts = f"- {one_each(found['cgau'])}"
    # False if no start without a client solved it: one is proof that it can.
    without = (
        f"- **One gated unit without any client** solves it from {solved['gated']} of "
        f"{starts['gated']} starts"
    )
    without += ": it can." if solved["gated"] else "."
    # False if two units without gates or clients solved it from another number of starts.
    plain = f"- **Two tanh units** solve it from {solved['mlp']} of {starts['mlp']} starts."
    return "\n".join([enough, parts, without, plain])


def one_each(found: pd.DataFrame) -> str:
    """In how many of the starts that solve it each part carries one client, at each threshold, as a
    sentence; found: of `accuracies`."""
    of_each = counts(found)
    many = of_each.reindex(["one each"], fill_value=0).loc["one each"].tolist()
    solved = int(of_each.iloc[:, 0].sum())
    if not solved:
        return "**Each part carries one client** in none: no start solves it."
    most = {n > solved / 2 for n in many}
    # False if the counts came to lie all above one half, or all below: then it says so.
    word = "whether most do depends on that"
    if len(most) == 1:
        word = "most do, by each of these" if most == {True} else "most do not, by any of these"
    each, at = (", ".join(texts[:-1]) + f" or {texts[-1]}" for texts in (
        [str(n) for n in many], [f"{100 * intact:.0f}" for intact in INTACT]))  # fmt: skip
    return (
        f"**Each part carries one client** in {each} of the {solved} starts that solve it, where a "
        f"client counts as right from {at} % of its points on: {word}."
    )


def drawn(found: pd.DataFrame) -> str:
    """Which start `clearest` is, of how many, and what is left of its four halves: a line; found:
    of `accuracies`."""
    seed, words = clearest(found), ways(found)
    solved = int(solves(found).sum())
    alike = int((words == words.loc[seed]).all(axis=1).sum())
    left = (
        f"{who} without {part} {100 * found.loc[seed, (who, part)]:.0f} %"
        for part in SWITCHES
        for who in ("up", "down")
    )
    return (
        f"CGAU from start {seed}, the clearest of {solved} that solve it, {alike} of which have "
        f"its roles; right are: {', '.join(left)}"
    )


def what_the_client_is_worth(found: dict[str, pd.DataFrame]) -> str:
    """Whether one gated unit solves it from more starts with its client than without, as a
    sentence; found: `accuracies` by kind of network, each start's weights drawn alike."""
    more = difference(*(solves(found[net]) for net in ("cgau", "gated")))
    of_100 = Evidence(*(100 * n for n in (more.estimate, more.low, more.high)))
    # False if the interval moved to the other side of zero, or came to hold it.
    way = kind(more, ("makes", "does not make", "is not shown to make"))
    return (
        f"**Knowing the client {way} the solution easier to find**: of 100 starts one gated unit "
        "solves it from so many more with its client than without: "
        f"{said(of_100, len(found['cgau']), digits=0)}."
    )


def kept(lines: pd.DataFrame) -> str:
    """What the scoreboard has of C8, as a sentence; lines: of `claims.from_stored`."""
    if "C8" not in lines.index or not lines.loc["C8", "ran"]:
        return f"**C8 on the scoreboard**: {NOT_RUN}."
    line = lines.loc["C8"]
    scale = "quick" if line["said"].startswith(SUGGESTED) else "paper"
    starts, solved = SCALES[scale]["seeds"], int(line["runs"])
    # False if another number of starts solved it, or the weaker share came to lie elsewhere.
    many = f"one unit solves it from {solved} of {starts} starts, " if solved < starts else ""
    return (
        f"**C8 on the scoreboard, stored at {scale} scale**: {many}the weaker share of starts, "
        f"less one half, is {said(line, solved)}: {line['verdict']}."
    )
