"""What stands under a page's answers: what has moved, and, folded, what one asks of any number.

The answers themselves are the page's first cell (`questions`). Folded are its tables' counts, data,
seeds, devices, time, commands, and each claim's comparisons and verdicts: by setting, and by the
joint rule that was fixed before the runs.
"""

import html
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from lgfed_core.evidence import records, report, verdict
from lgfed_core.evidence.answers import Told, key
from lgfed_core.evidence.printed import Table, counted

from . import commands, differences, questions
from .experiment import Experiment

FEDERATED = {  # facts of LG-FedAvg's experiments on pictures
    "split": "100 devices with 2 classes each, or 3, 4, 5, 10 (i.i.d.)",
    "checkpoint": "as described: best on validation rows; as released: best on test rows",
    "tests": "local: a device's own classes; new: all classes, by averaged outputs "
    "(as released: averaged weights)",
}


@dataclass
class Box:
    """The facts of a page, folded, after a word on answers that no longer hold.

    page: as claims name it. claims: the module of the page's claims, with ``told`` and
    ``from_stored``. tables: of the papers, whose cells it fills. experiments: whose rows it shows.
    facts: what the rows do not say, e.g. ``split``, ``checkpoint``, ``test set``, ``start``.
    """

    page: str
    claims: Any = None
    tables: Sequence[Table] = ()
    experiments: Sequence[Experiment] = ()
    facts: dict[str, str] = field(default_factory=dict)

    def show(self) -> None:
        """Display it here."""
        from IPython.display import HTML, display

        display(HTML(self.html()))

    def html(self) -> str:
        """The fold, and before it what strikes through the answers that runs no longer bear out."""
        every = self.claims.told().values() if self.claims else ()
        told = [one for one in every if one.claim.page == self.page]
        facts = {name: html.escape(words, quote=False) for name, words in self.facts.items()}
        facts |= {table.title: words for table in self.tables if (words := _counts(table))}
        for experiment in self.experiments:
            facts |= _of_rows(experiment)
        facts |= self._verdicts(told)
        lines = "".join(f"<dt>{html.escape(k)}</dt><dd>{v}</dd>" for k, v in facts.items())
        fold = "<summary>Data, seeds, time, commands, verdicts</summary>"
        moved = "".join(_moved(one) for one in told if not one.stands())
        return f'{moved}<details class="in-short">{fold}<dl class="facts">{lines}</dl></details>'

    def _verdicts(self, told: Sequence[Told]) -> dict[str, str]:
        """Of each claim the verdict by setting, beside it the strict one, and its comparisons."""
        strict = self.claims.from_stored() if told else pd.DataFrame()
        return {
            key(one.claim): f"{html.escape('; '.join([one.words, *one.tags]))}. "
            f"<small>{html.escape(strictly(strict, one.claim.id))}</small>{comparisons(one)}"
            for one in told
        }


def strictly(lines: pd.DataFrame, id: str) -> str:
    """The verdict by the rule fixed before the runs, in words; lines: of `claims.judged`."""
    if id not in lines.index or not lines.loc[id, "ran"]:
        return f"One joint test, as fixed before the runs: {verdict.NOT_RUN}."
    line = lines.loc[id]
    p = f"p = {line['p']:.2g} for it, {line['p_against']:.2g} against"
    p = "exact" if verdict.without_chance(line) else p
    return f"One joint test, as fixed before the runs: {line['said']} ({p})."


def comparisons(one: Told) -> str:
    """Every comparison of a claim that has run, folded: the numbers that its forest plot draws."""
    ran = [line for line in one.lines.itertuples() if line.runs]
    if not ran:
        return ""
    unit = f" ({one.claim.unit})" if one.claim.unit else ""
    title = f"{len(ran)} comparison{'s' * (len(ran) > 1)}{unit}"
    return differences.lines(title, ((line.name, line, line.runs) for line in ran))


def _moved(one: Told) -> str:
    """Strikes an answer through, and says why."""
    place = questions.place(one)
    return (
        f"<style>p:has(#{place}) {{ text-decoration: line-through; }}</style>"
        f"<p><strong>The runs have moved</strong> since the answer to "
        f"\u201c{html.escape(one.claim.question)}\u201d was written; now: {one.words}.</p>"
    )


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
    return f"{len(cells)} {what}: {many}"


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
