"""Differences over paired seeds as tables that fold: the numbers behind what a page says."""

import html
from collections.abc import Iterable

import pandas as pd

from lgfed_core.evidence.claims import paired
from lgfed_core.evidence.display import Page, places
from lgfed_core.evidence.verdict import NOT_RUN, Evidence, greater, without_chance

Pair = tuple[str, pd.Series, pd.Series]  # a name, and two numbers by seed
_HEAD = "<th>comparison</th><th>difference</th><th>95 % interval</th><th>seeds</th>"
_CORRECTED = (
    "<p><small>Intervals share variances and are not corrected for the number of comparisons; "
    "outcomes are (Holm).</small></p>"
)


def table(title: str, pairs: Iterable[Pair], digits: int = 2, fewest: int = 1) -> str:
    """The first number of each pair less the second, a line each, in a fold under ``title``.

    Bold where the interval, by Student's t and uncorrected, leaves out zero. fewest: seeds that a
    comparison needs to be listed.
    """
    found = [paired(*pair, greater) for pair in pairs]
    ran = ((part.name, part.evidence, part.runs) for part in found if part.runs >= fewest)
    return lines(title, ran, digits)


def lines(title: str, found: Iterable[tuple[str, Evidence, int]], digits: int = 2) -> str:
    """`table` of differences that have been worked out: name, what they are, of how many seeds;
    with their ``outcome`` where all have one, as lines of `answers.settings` do."""
    some = list(found)
    rows = "".join(_row(*one, digits) for one in some)
    title = html.escape(title, quote=False)
    if not rows:
        return f"<p>{title}: {NOT_RUN}.</p>"
    told = all(hasattr(gain, "outcome") for _, gain, _ in some)
    head = f"<tr>{_HEAD}{'<th>outcome</th>' * told}</tr>"
    inside = f'<table class="lgfed"><thead>{head}</thead><tbody>{rows}</tbody></table>'
    inside += _CORRECTED * told
    return f'<details class="differences"><summary>{title}</summary>{inside}</details>'


def tables(several: Iterable[str]) -> Page:
    """Several of `table`, one below the other, for a notebook to show."""
    return Page("".join(several))


def _row(name: str, gain: Evidence, runs: int, digits: int) -> str:
    ends = gain.estimate, gain.low, gain.high
    digits = places(digits, ends)
    value, low, high = (f"{x + 0.0:+.{digits}f}" for x in ends)
    interval = f"{low} to {high}" if runs > 1 else ""
    told = runs > 1 and (gain.low > 0 or gain.high < 0)
    value = f"<b>{value}</b>" if told else value
    name, many = html.escape(name, quote=False), str(runs)
    if without_chance(gain):
        interval, many = "exact", ""
    said = f"<td>{gain.outcome}</td>" if hasattr(gain, "outcome") else ""
    return f"<tr><td>{name}</td><td>{value}</td><td>{interval}</td><td>{many}</td>{said}</tr>"
