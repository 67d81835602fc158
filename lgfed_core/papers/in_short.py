"""The box under a page's title: what came out, and what one asks of any number in this field.

Findings are the claims that the page judges, the decided ones first, as its stored runs have them.
A page whose claims are judged live fills its box in when they are (`Box.judge`).
"""

import html
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from lgfed_core.evidence import records, report, verdict
from lgfed_core.evidence.claims import Claim, said
from lgfed_core.evidence.printed import METRICS, Table, counted
from lgfed_core.evidence.steps import STEPS

from . import artefacts, commands
from .experiment import Experiment

SHOWN = 4  # findings; the others are folded
KINDS = {  # a verdict's look, in this order
    verdict.CONFIRMED: "holds",
    verdict.REFUTED: "fails",
    verdict.SUGGESTED: "open",
    verdict.STAND_IN: "aside",
    verdict.INCONCLUSIVE: "open",
    verdict.NOT_RUN: "none",
}
_VERDICT = re.compile(  # of a sentence of `claims.judged`; after it comes what limits it
    rf"({verdict.STAND_IN} \([^)]*\): |{verdict.SUGGESTED} by [^:]*: )*({'|'.join(KINDS)})"
    r"( so far, \d+ of \d+ comparisons)?(, one seed)?"
)
FEDERATED = {  # facts of LG-FedAvg's experiments on pictures
    "split": "100 devices with 2 classes each, or 3, 4, 5, 10 (i.i.d.)",
    "checkpoint": "as described: best on validation rows; as released: best on test rows",
    "tests": "local: a device's own classes; new: all classes, by averaged outputs "
    "(as released: averaged weights)",
}


CONTRASTS = "reproduced where our interval lies between half and twice what is printed"
INTERVALS = "95 %, of one comparison; verdicts are corrected for all claims judged together"


@dataclass
class Box:
    """*In short*: findings with their verdicts, then a strip of facts.

    page: as claims name it. claims: the module of the page's claims, with ``CLAIMS`` and, unless
    they are judged live, ``from_stored``. tables: of the papers, whose cells it fills. experiments:
    whose rows it shows. findings: sentences of the page's own, made from rows, before the claims.
    facts: what the rows do not say, e.g. ``split``, ``checkpoint``, ``test set``, ``start``.
    """

    page: str
    claims: Any = None
    tables: Sequence[Table] = ()
    experiments: Sequence[Experiment] = ()
    findings: Sequence[str] = ()
    facts: dict[str, str] = field(default_factory=dict)
    _place: Any = field(default=None, init=False, repr=False)

    def show(self) -> None:
        """Display it here."""
        from IPython.display import Markdown, display

        lines = self._stored()
        self._place = display(Markdown(self.markdown(lines)), display_id=True)

    def judge(self, lines: pd.DataFrame) -> None:
        """Renew what is displayed with lines of `claims.judged`, made on the page."""
        from IPython.display import Markdown

        self._place.update(Markdown(self.markdown(lines)))

    def markdown(self, lines: pd.DataFrame) -> str:
        """The box with these lines of `claims.judged`: Markdown, as JupyterLab draws it, too."""
        found = [_Finding.of(claim, lines) for claim in self._own()]
        found.sort(key=lambda one: list(KINDS).index(one.kind))
        shown = [text for table in self.tables for text in decided(table)]
        once = {text.partition("*")[2]: text for text in shown}  # two tables may print it
        items = [*self.findings, *once.values(), *(one.words for one in found)]
        parts = ['<div class="in-short">', "**In short**", _bullets(items[:SHOWN])]
        parts += [_counts(table) for table in self.tables]
        if rest := items[SHOWN:]:
            more = f"<summary>{len(rest)} more</summary>"
            parts.append(f"<details>{more}\n\n{_bullets(rest)}\n\n</details>")
        rules = {"differences": CONTRASTS} if once else {}
        rules |= {"intervals": INTERVALS} if sum(one.judged for one in found) > 1 else {}
        return "\n\n".join([*filter(None, parts), self._strip(rules), "</div>"])

    def _own(self) -> list[Claim]:
        known = self.claims.CLAIMS if self.claims else ()
        return [claim for claim in known if claim.page == self.page]

    def _stored(self) -> pd.DataFrame:
        if self.claims and hasattr(self.claims, "from_stored"):
            return self.claims.from_stored()
        return pd.DataFrame()

    def _strip(self, rules: dict[str, str]) -> str:
        own = self.facts | rules
        facts = {name: html.escape(words, quote=False) for name, words in own.items()}
        for experiment in self.experiments:
            facts |= _of_rows(experiment)
        lines = (f"<dt>{html.escape(k)}</dt><dd>{v}</dd>" for k, v in facts.items())
        return f'<dl class="facts">{"".join(lines)}</dl>'


@dataclass(frozen=True)
class _Finding:
    kind: str
    words: str
    judged: bool = False

    @classmethod
    def of(cls, claim: Claim, lines: pd.DataFrame) -> "_Finding":
        """A claim's finding; its verdict is one of `KINDS`, with what limits it after it."""
        line = lines.loc[claim.id] if claim.id in lines.index else None
        if line is None or not line["ran"]:
            words = "judged below, live" if claim.live else verdict.NOT_RUN
            return cls(
                verdict.NOT_RUN, f"{_chip(verdict.NOT_RUN, words)} {claim.id}: {claim.words}"
            )
        kind = next(kind for kind in KINDS if str(line["said"]).startswith(kind))
        at = f", weakest at {line['at']}" if line["at"] and line["parts"] > 1 else ""
        said = _VERDICT.match(line["said"])[0]
        limits = html.escape(line["said"].removeprefix(said))  # these come last
        words = f"{_chip(kind, said)} {claim.id}: {claim.words}. *{_estimate(line)}{at}*{limits}"
        return cls(kind, words, judged=True)


def _estimate(line: pd.Series) -> str:
    """In words, to the two significant digits of its larger end at least; what has no chance in it
    is exact."""
    ends = line[["estimate", "low", "high"]].astype(float)
    size = ends.abs().max()
    digits = max(2, 1 - math.floor(math.log10(size))) if size > 0 else 2
    if line["low"] == line["high"]:
        return f"{line['estimate']:+.{digits}f}, exact"
    return said(line, int(line["at_runs"]), digits=digits)


def _chip(kind: str, words: str) -> str:
    return f'<span class="verdict {KINDS[kind]}">{html.escape(words)}</span>'


def _bullets(items: Iterable[str]) -> str:
    return "\n".join(f"- {item}" for item in items)


def decided(spec: Table) -> list[str]:
    """Of the printed differences in points the largest that our runs have reproduced, and the
    largest that they have not, each of how many, from the first step of seeds on: verdict, printed,
    ours, as HTML in Markdown."""
    found, out = report.contrasts(spec), []
    if len(found):
        found = found[
            found["metric"].isin(spec.accuracies) & (found["seeds"] + found["lost"] >= STEPS[0])
        ]
    for name, look in ((verdict.REPRODUCED, "holds"), (verdict.DIFFERS, "fails")):
        mine = found[found["verdict"] == name]
        if mine.empty:
            continue
        line = mine.loc[mine["printed"].abs().idxmax()]
        where = METRICS.get(line["metric"], line["metric"])
        many = f", the largest of {len(mine)}" if len(mine) > 1 else ""
        out.append(
            f'<span class="verdict {look}">{name}</span> '
            f"{', '.join(filter(None, [line['setting'], where]))}: "
            f"{line['contrast']} is {line['printed']:+.1f} in print{many}. "
            f"*{said(line.rename({'ours': 'estimate'}), int(line['seeds']), digits=1)}, "
            f"{spec.headline[0].replace('_', ' ')}*{_aside(spec, line)}"
        )
    return out


def _aside(spec: Table, line: pd.Series) -> str:
    """What an erratum says of such a contrast, in brackets; else ""."""
    released = spec.headline[0] == "as_released"
    said = artefacts.beside(spec.name, line["metric"], line["contrast"], released)
    return f" ({'; '.join(said)})" if said else ""


def _counts(spec: Table) -> str:
    """How many measured numbers of a printed table have which verdict, at its headline reading."""
    protocol, selection = spec.headline
    cells = report.table(spec, protocol=protocol)
    cells = cells[cells["selection"].eq(selection) & ~counted(spec, cells)]
    if cells.empty:
        return ""
    kinds = cells["verdict"].str.replace(r" \(.*", "", regex=True).value_counts()
    many = ", ".join(f"{n} {kind}" for kind, n in kinds.items())
    what = f"measured numbers, {protocol.replace('_', ' ')}"
    return f"{spec.title}: {len(cells)} {what}: {many}."


def _of_rows(experiment: Experiment) -> dict[str, str]:
    """Seeds, device and time of an experiment's rows at paper scale, those of fewer rounds apart,
    and the commands that make them again."""
    rows, short = (records.select(experiment.name, scale=scale) for scale in ("paper", "short"))
    if rows.empty:
        command = f"python -m lgfed_core run {experiment.name} --scale paper"
        return {experiment.name: f"not yet run at full length: <code>{command}</code>"}
    seeds = ", ".join(
        f"{_range(group['seed'])} {str(name).replace('_', ' ')}"
        for name, group in rows.groupby("protocol")
    )
    devices = ", ".join(sorted({str(name).split(":")[0] for name in rows["device"]}))
    several = "s" if rows["seed"].nunique() > 1 else ""
    text = f"seed{several} {seeds}; {devices}; {_hours(experiment, rows):,.1f} h in all"
    if len(short):
        text += f", and {_hours(experiment, short):,.1f} h of shortened runs"
    both = pd.concat([rows, short])
    found = experiment.remade(both)
    found = commands.of_rows(experiment, both) if found is None else found
    return {experiment.name: text + _again(found)}


def _hours(experiment: Experiment, rows: pd.DataFrame) -> float:
    own = [] if experiment.together else ["seed"]  # seeds in one stack have its time, all of them
    return rows.drop_duplicates([*own, "protocol", "seconds"])["seconds"].sum() / 3600


def _again(found: Sequence[str]) -> str:
    lines = [f"<code>{html.escape(command)}</code>" for command in found]
    if len(lines) < 2:
        return "".join(f"; {line}" for line in lines)
    made = f"<summary>covered by {len(lines)} commands</summary>"
    most = "Each with the most seeds that one of its cells has:"
    return f"<details>{made}{'<br>'.join([most, *lines])}</details>"


def _range(seeds: pd.Series) -> str:
    some = sorted(set(map(int, seeds)))
    whole = some == list(range(some[0], some[-1] + 1))
    return f"{some[0]}–{some[-1]}" if whole and len(some) > 1 else ", ".join(map(str, some))
