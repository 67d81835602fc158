"""A compared table for people: HTML for notebooks and phones, columns of text for a terminal."""

import html
import math
import re
from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd

from . import verdict
from .printed import METHODS, METRICS
from .rows import PROTOCOLS
from .seed_steps import marked

_CHOSEN = {"best_test": "best on test", "best_val": "best on validation", "last": "last round"}
_MARKS = {verdict.REPRODUCED: "✓", verdict.DIFFERS: "✗", verdict.INCONCLUSIVE: "?"}
_LARGE = 1e5
_KEEP_TOGETHER = "&nbsp;±&nbsp;"
_WORDS = METRICS | METHODS | {"p_against": "p against it"}
_WORDS |= {"delta_eo": "ΔEO", "validation_delta_eo": "ΔEO, validation"}
_CELL = re.compile(r"(<t[hd][^>]*>)([^<>]+)(?=</t[hd]>)")


class Page(str):
    """HTML that a notebook shows as such."""

    def _repr_html_(self) -> str:
        return str(self)


def display(table: pd.DataFrame) -> Page:
    """A compact table for notebooks: per metric, a line per row, a column per protocol.

    A cell reads "98.16 ± 0.03 (10)", with a word beside the seeds where these are no step at which
    verdicts fall, or "(formula)" for a number that needs no run; below it stand
    "-0.04 ✓ reproduced", of how many others of its setting one would say the same in its place, and
    the last round's mean. A cell opens and says where its runs come from and, where ``table`` has a
    column ``command``, what makes them again.
    """
    blocks, protocols = [], _protocols(table)
    for metric, lines in _wide(table):
        named = "".join(f'<th data-protocol="{p}">{words}</th>' for p, words in protocols.items())
        head = f"<th></th><th>paper</th>{named}"
        body = []
        for row, paper, ours in lines:
            said = "".join(_td(p, ours[p]) for p in protocols)
            name = f'<th style="text-align:left;font-weight:normal">{html.escape(row)}</th>'
            body.append(f"<tr>{name}<td>{paper}</td>{said}</tr>".replace(" ± ", _KEEP_TOGETHER))
        caption = f"<caption>{html.escape(METRICS.get(metric, metric))}</caption>"
        blocks.append(
            '<div style="overflow-x:auto"><table class="lgfed" style="font-size:.85em">'
            f"{caption}<thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table></div>"
        )
    return Page("\n".join(blocks))


def _td(protocol: str, cell: "_Cell") -> str:
    """A cell; book/_static/filters.js shows and hides it by protocol and verdict."""
    said, lines = html.escape(cell.verdict), [*map(html.escape, cell)]
    text = "<br>".join(lines)
    if cell.origin:
        text = opened(cell[0], cell.origin, cell.commands) + "<br>".join(lines[1:])
    return f'<td data-protocol="{protocol}" data-verdict="{said}">{text}</td>'


def opened(words: str, origin: str, commands: Sequence[str] = (), *, markdown: bool = False) -> str:
    """HTML that opens: ``words``, and below them where runs come from and what makes them again.

    markdown: for a place where Markdown is read: outside of its backticks ``--`` becomes a dash.
    """
    code = "<br>`{}`" if markdown else "<br><code>{}</code>"
    again = "".join(code.format(c if markdown else html.escape(c)) for c in commands)
    more = f"<small>{html.escape(origin)}{again}</small>"
    return f"<details class='origin'><summary>{html.escape(words)}</summary>{more}</details>"


def folded(title: str, table: str, names: str = "") -> Page:
    """A long table below its title, which opens it; table: HTML, names: classes for scripts."""
    head = f"<summary>{html.escape(title)}</summary>"
    return Page(f'<details class="{f"folded {names}".strip()}">{head}{table}</details>')


def text(table: pd.DataFrame) -> str:
    """The same for a terminal."""
    out, protocols = [], _protocols(table)
    for metric, lines in _wide(table):
        rows = [[METRICS.get(metric, metric), "paper", *protocols.values()]]
        for row, paper, ours in lines:
            rows.append([row, paper, *("  ".join(ours[p]) for p in protocols)])
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        for row in rows:
            out.append("  ".join(map(str.ljust, row, widths)).rstrip())
        out.append("")
    return "\n".join(out)


def readable(table: str) -> str:
    """pandas' HTML of a table in words: no names of the code, and no more digits than are read."""

    def said(cell: re.Match) -> str:
        text = cell[2].strip()
        if re.fullmatch(r"-?\d+\.\d{5,}", text):
            return f"{cell[1]}{float(text):.4g}"
        name = re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)+", text)
        return cell[1] + (_WORDS.get(text) or (text.replace("_", " ") if name else cell[2]))

    return _CELL.sub(said, table)


class _Cell(list[str]):
    """What a cell says, line by line; ``origin`` and ``commands`` are of its runs."""

    origin = verdict = ""
    commands: Sequence[str] = ()


def _wide(table: pd.DataFrame):
    """(metric, [(row, paper, {protocol: [ours, difference and verdict, last round]})])."""
    for metric, block in table.groupby("metric", sort=False):
        lines = []
        for row, cells in block.groupby("row", sort=False):
            ours = {p: _said(group) for p, group in cells.groupby("protocol")}
            first = cells.iloc[0]
            lines.append((row, spread(first["paper"], first["paper_sd"]), ours))
        yield metric, lines


def _said(cells: pd.DataFrame) -> _Cell:
    """Ours of one protocol: its selection first, then the last round, as it comes in `table`."""
    first, cell = cells.iloc[0], _Cell()
    cell.origin, cell.verdict = str(first.get("origin", "")), str(first["verdict"])
    cell.commands = list(filter(None, [str(first.get("command", ""))]))
    last = [f"last round {number(c.ours)}" for c in cells.iloc[1:].itertuples() if c.seeds]
    if np.isnan(first["ours"]):
        cell += [cell.verdict, *last]
        return cell
    seeds = int(first["seeds"])
    many = marked(seeds, int(first.get("lost", 0))) if first["scale"] == "paper" else f"{seeds}"
    value = f"{spread(first['ours'], first['ours_sd'])} ({many if seeds else 'formula'})"
    shift = number(first["difference"], "+")
    said = " ".join(filter(None, [shift, _MARKS.get(first["verdict"]), first["verdict"]]))
    said += f" ({first['why']})" if first.get("why") else ""
    alike = str(first.get("rivals", "")).partition(":")[0]
    alike = [] if alike[:1] in ("", "0") else [f"{alike} other rows would match too"]
    cell += [value, said, *alike, *last]
    return cell


def spread(mean: float, sd: float) -> str:
    """ "98.20 ± 0.03"; without a deviation (NaN) the mean alone."""
    if np.isnan(sd) or (sd == 0 and abs(mean) >= _LARGE):  # parameters sent
        return number(mean)
    return f"{number(mean)} ± {number(sd)}"


def mean_and_sd(
    values: pd.Series, digits: int = 1, *, seeds: bool = True, missing: str = verdict.NOT_RUN
) -> str:
    """ "97.3 ± 0.2 (3)" of one number by seed: mean, deviation, how many seeds there are.

    One seed has no deviation; ``missing`` is what is said of none.
    """
    values = values.dropna()
    if values.empty:
        return missing
    sd = f" ± {values.std():.{digits}f}" if len(values) > 1 else ""
    return f"{values.mean():.{digits}f}{sd}" + (f" ({len(values)})" if seeds else "")


def number(value: float, sign: str = "") -> str:
    """98.20, or 5.6e10 for the large ones; a dash where there is none."""
    if np.isnan(value):
        return "–"
    if abs(value) < _LARGE:
        return f"{round(value, 2) + 0.0:{sign}.2f}"  # no minus before 0.00
    digits, _, power = f"{value:{sign}.3e}".partition("e")
    return f"{digits.rstrip('0').rstrip('.')}e{int(power)}"


def places(digits: int, values: Iterable[float]) -> int:
    """Decimals to write numbers with: ``digits``, or more where the largest would have no figure
    that counts before its last; two where all would read as 0."""
    most = max((abs(v) for v in values if math.isfinite(v)), default=0.0)
    if not most:
        return digits
    first = -math.floor(math.log10(most))  # the decimal of its first figure
    return first + 1 if most < 0.5 * 10.0**-digits else max(digits, first)


def _protocols(table: pd.DataFrame) -> dict[str, str]:
    """The protocols that ``table`` has, with the words above their column."""
    first = table.drop_duplicates("protocol").set_index("protocol")["selection"]
    return {p: f"{p.replace('_', ' ')}, {_CHOSEN[first[p]]}" for p in PROTOCOLS[::-1] if p in first}
