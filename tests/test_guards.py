"""Answers and findings hang on rows: each guard stands today, and falls when a row turns."""

import ast
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from lgfed_core.evidence import records
from lgfed_core.evidence.answers import AGAINST, AS_CLAIMED, LEVEL, UNTOLD, Told
from lgfed_core.papers import front, guards, questions
from lgfed_core.papers.board import STORED
from lgfed_core.paths import ROOT
from toy import NOTEBOOKS, cells

TOLD = {name: one for page in STORED for name, one in page.told().items()} | front.own_told()
_TURNED = {AS_CLAIMED: AGAINST, AGAINST: AS_CLAIMED, LEVEL: AGAINST, UNTOLD: UNTOLD}


def turned(told: Told, place: int) -> Told:
    """With one comparison turned around: its sign, and what it says for or against the claim."""
    lines = told.lines.copy()
    line = lines.loc[place]
    change = {n: -line[n] for n in ("estimate", "low", "high")}
    change |= {"p": line["p_against"], "p_against": line["p"], "outcome": _TURNED[line["outcome"]]}
    lines.loc[place, list(change)] = list(change.values())
    return replace(told, lines=lines)


def removed(told: Told, place: int) -> Told:
    """With one comparison that has not run."""
    lines = told.lines.copy()
    lines.loc[place, ["runs"]] = 0
    lines.loc[place, ["estimate", "low", "high"]] = np.nan
    lines.loc[place, ["outcome"]] = UNTOLD
    return replace(told, lines=lines)


@pytest.mark.parametrize("name", TOLD)
def test_every_answer_stands_on_the_stored_rows(name):
    told = TOLD[name]
    assert told.claim.question.endswith("?") and told.claim.answer
    assert told.stands(), f"{told.words} {told.counts}:\n{told.lines.to_string()}"


@pytest.mark.parametrize("name", TOLD)
def test_a_guard_falls_when_a_sign_turns_or_a_setting_is_gone(name):
    told = TOLD[name]
    for place in told.lines.index[told.lines["runs"] > 0]:
        line = told.lines.loc[place]
        assert not removed(told, place).stands(), f"{line['name']} removed"
        if line["outcome"] != UNTOLD:
            assert not turned(told, place).stands(), f"{line['name']} turned"


def findings_of(path) -> list[tuple[str, str]]:
    """(finding, guard) of a notebook: the source of each cell tagged so, in order."""
    found = []
    for (text, tags), (guard, next_tags) in pairwise([*cells(path), ("", [])]):
        if "finding" in tags:
            assert "guard" in next_tags, f"no guard: {text[:60]}"
            found.append((text, guard))
    return found


FOUND = [
    pytest.param(path, finding, guard, id=f"{path.parent.name}/{path.stem}-{n}")
    for path in NOTEBOOKS
    for n, (finding, guard) in enumerate(findings_of(path))
]


def asked(guard: str) -> bool:
    """Run a guard's cell, which stands on its own, and say whether all of it holds."""
    tree, names = ast.parse(guard), {}
    last = tree.body.pop()
    assert isinstance(last, ast.Expr), "a guard's cell ends with the call of guard"
    exec(compile(tree, "guard", "exec"), names)
    return eval(compile(ast.Expression(last.value), "guard", "eval"), names)


@pytest.mark.parametrize("path, finding, guard", FOUND)
def test_every_finding_stands_on_the_stored_rows(path, finding, guard):
    assert asked(guard), finding


@pytest.mark.parametrize("path, finding, guard", FOUND)
@pytest.mark.parametrize("how", ["turned", "removed"])
def test_a_finding_falls_with_its_rows(path, finding, guard, how, monkeypatch):
    """Rows of which all values have the other sign, or of which none is left."""
    load = records.load

    def mutated(*args, **how_else):
        rows = load(*args, **how_else)
        return rows.assign(value=-rows["value"]) if how == "turned" else rows.iloc[:0]

    monkeypatch.setattr(records, "load", mutated)
    monkeypatch.setattr(guards, "display", None, raising=False)
    assert not asked(guard), finding


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_page_has_the_answers_as_they_are_written(path):
    page = path.relative_to(ROOT / "book").with_suffix("").as_posix()
    mine = [one for one in TOLD.values() if one.claim.page == page]
    assert not questions.renew(path, mine, write=False), "renew it: report --front"
    text = path.read_text(encoding="utf-8")
    assert not mine or questions.BEGIN in text, "the page does not have its answers"
