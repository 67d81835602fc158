"""The rule as book/_static/judge.js states it, held against `evidence` on all stored verdicts."""

import re

import numpy as np
import pytest

from lgfed_core.evidence import comparison, moderated, records, verdict
from lgfed_core.papers import judge, overview
from lgfed_core.papers.cgau.cifar10 import claims as cifar10
from lgfed_core.paths import ROOT

SCRIPTS = [ROOT / "book" / "_static" / name for name in ("judge.js", "filters.js")]
VISIBLE = """() => [...document.querySelectorAll('.judged tbody tr')]
  .filter(row => row.getClientRects().length).map(row => row.innerText)"""
PLAIN = dict(margin=1, confidence=0.95, most=100)
MOVED = [
    dict(margin=0.5, confidence=0.95, most=100),
    dict(margin=3, confidence=0.8, most=100),
    dict(margin=1.25, confidence=0.995, most=3),
]

pytestmark = pytest.mark.timeout(120)


@pytest.fixture(scope="module")
def found():
    return judge.data()


@pytest.fixture(scope="module")
def page(browser, found):
    page = browser.new_page()
    scripts = "".join(f"<script>{path.read_text()}</script>" for path in SCRIPTS)
    page.set_content(f"{scripts}{overview.filters()}{judge.page(found)}")
    return page


def judged(page, knobs: dict) -> dict[str, list[str]]:
    data = "JSON.parse(document.getElementById('judge-data').textContent)"
    return page.evaluate(f"knobs => lgfed.judged({data}, knobs)", knobs)


@pytest.mark.drawn
def test_by_the_books_rule_the_browser_says_what_the_book_says(page, found):
    said = judged(page, PLAIN)
    for part, lines in found.items():
        assert len(lines) > 20
        assert said[part] == [line["verdict"] for line in lines]


@pytest.mark.drawn
@pytest.mark.parametrize("knobs", MOVED, ids=str)
def test_by_another_rule_numbers_and_contrasts_lie_where_their_intervals_do(page, found, knobs):
    said, cells = judged(page, knobs), found["cells"]
    ours = [_cell(cell, **knobs) for cell in cells]
    assert [words.partition(" (")[0] for words in said["cells"]] == ours
    priors = _priors(found, knobs["most"])
    assert said["contrasts"] == [
        k["verdict"]
        if "fixed" in k
        else _contrast(k, [cells[i] for i in k["of"]], priors[k["family"]], **knobs)
        for k in found["contrasts"]
    ]
    assert ours != [cell["verdict"].partition(" (")[0] for cell in cells]  # something has moved
    alpha = 1 - knobs["confidence"]
    kinds = {(True, False): "confirmed", (False, True): "refuted", (False, False): "inconclusive"}
    assert said["claims"] == [
        c["verdict"] if "fixed" in c else kinds[tuple(p < alpha for p in at(c, knobs["most"]))]
        for c in found["claims"]
    ]


def at(claim: dict, most: int) -> list[float]:
    """The p-values of a claim had we stopped at ``most`` seeds."""
    return dict(zip(judge.SEEDS, claim["first"], strict=False)).get(most, claim["p"])


def test_claims_had_we_stopped_earlier_are_those_of_their_pages_from_the_first_seeds(found):
    before = records.load("cgau.cifar10")
    with records.stopped_at(3) as cut:
        assert set(records.select("cgau.cifar10")["seed"]) == {0, 1, 2}
        lines = cifar10.from_stored()
    assert cut.dropped and records.load("cgau.cifar10").equals(before)
    said = {line["words"].partition(":")[0]: line for line in found["claims"]}
    for name in ("C4", "C6"):
        assert at(said[name], 3) == list(lines.loc[name, ["p", "p_against"]])
        assert at(said[name], 2)[0] > 0.05 > at(said[name], 9)[0], "two seeds did not decide"


def _print(cell: dict) -> tuple[float, int]:
    """Squared standard error and degrees of freedom of a printed mean."""
    _, sd, runs = cell["print"]
    if sd is None or runs is None or runs < 2:
        return 0.0, 1
    return sd**2 / (runs - 1), runs - 1


def _where(low: float, high: float, inside: tuple[float, float]) -> str:
    if inside[0] <= low and high <= inside[1]:
        return verdict.REPRODUCED
    return verdict.DIFFERS if high < inside[0] or low > inside[1] else verdict.INCONCLUSIVE


def _cell(cell: dict, margin: float, confidence: float, most: int) -> str:
    if "fixed" in cell:
        return cell["fixed"].partition(" (")[0]
    values, (printed, sd, runs) = np.array(cell["values"][:most]), cell["print"]

    def said(deviation: float | None) -> str:
        print_of = cell | {"print": [printed, deviation, runs]}
        within = margin * comparison.margin_of(deviation or np.nan, cell["least"])
        error, df = _print(print_of)
        scatter = values.var(ddof=1) / len(values)
        ends = comparison.welch(
            values.mean() - printed, error, df, scatter, len(values) - 1, confidence
        )
        return _where(*ends, (-within, within))

    found = verdict.INCONCLUSIVE
    if len(values) > 1 and not comparison.by_chance(values.std(ddof=1), len(values)):
        readings = {said(sd), said(sd and sd / cell.get("pooled", 1) ** 0.5)}
        found = readings.pop() if len(readings) == 1 else verdict.INCONCLUSIVE
    within = margin * comparison.margin_of(sd or np.nan, cell["least"])
    vague = sd is not None and runs > 1
    vague = vague and comparison.least_reach(sd, runs, 10, confidence) > within
    return verdict.UNREACHABLE if found == verdict.INCONCLUSIVE and vague else found


def _priors(found: dict, most: int) -> dict[str, moderated.Prior | None]:
    """What each family of contrasts knows of its variance, of the first ``most`` seeds."""
    sds: dict[str, list[tuple[float, int]]] = {}
    for k in found["contrasts"]:
        ours = _paired([found["cells"][i] for i in k["of"]], most)
        if len(ours) > 1:
            sds.setdefault(k["family"], []).append((ours.std(ddof=1), len(ours) - 1))
    families = {k["family"] for k in found["contrasts"]}
    return {f: moderated.fit(*zip(*sds[f], strict=True)) if f in sds else None for f in families}


def _paired(pair: list[dict], most: int) -> np.ndarray:
    x, y = (dict(zip(c["seeds"][:most], c["values"], strict=False)) for c in pair)
    return np.array([x[seed] - y[seed] for seed in x if seed in y])


def _contrast(k: dict, pair: list[dict], prior, **knobs) -> str:
    share = pair[0].get("pooled", 1) ** 0.5
    own = [c | {"print": [c["print"][0], c["print"][1] and c["print"][1] / share, c["print"][2]]}
           for c in pair]  # fmt: skip
    wide, narrow = (_of(k, cells, prior, **knobs) for cells in (pair, own))
    return wide if wide == narrow else verdict.INCONCLUSIVE


def _of(k: dict, pair: list[dict], prior, margin: float, confidence: float, most: int) -> str:
    shift = pair[0]["print"][0] - pair[1]["print"][0]
    (a, df_a), (b, df_b) = map(_print, pair)
    low, high = comparison.welch(shift, a, df_a, b, df_b, confidence)
    if not (a or b) or None in pair[0]["print"] + pair[1]["print"]:
        low, high = shift - k["floor"], shift + k["floor"]
    if low <= 0 <= high:
        return judge.NO_CONTRAST
    x, y = (dict(zip(c["seeds"][:most], c["values"], strict=False)) for c in pair)
    ours = _paired(pair, most)
    if len(ours) == 1 or min(len(x), len(y)) < 2:
        return verdict.INCONCLUSIVE
    if len(ours):
        n = len(ours)
        if comparison.by_chance(ours.std(ddof=1), n):
            return verdict.INCONCLUSIVE
        sd, df = ours.std(ddof=1), n - 1
        if prior and sd > 1e-9:
            sd, df = prior.moderate(sd, df)
        ends = comparison.welch(ours.mean(), 0.0, 1, sd**2 / n, df, confidence)
    else:
        x, y = np.array([*x.values()]), np.array([*y.values()])
        parts = [p for v in (x, y) for p in (v.var(ddof=1) / len(v), len(v) - 1)]
        ends = comparison.welch(x.mean() - y.mean(), *parts, confidence)
    return _where(*ends, tuple(sorted((shift / (1 + margin), shift * (1 + margin)))))


@pytest.mark.drawn
def test_controls_have_names_and_move_the_counts_and_the_marked_lines(page, found):
    there = re.findall(r'data-counts="[^"]+">(\d+)<', judge.page(found))
    assert page.locator("[data-counts]").all_inner_texts() == there
    assert sum(map(int, there)) == sum(map(len, found.values()))
    page.get_by_label("Margin, times the book's").fill("0.25")
    said = judged(page, PLAIN | dict(margin=0.25))
    rows = page.locator("tr[data-cell] td:last-child").all_inner_texts()
    assert [row.partition("; by")[0] for row in rows] == said["cells"]
    at = "numbers, as described"
    own = [i for i, cell in enumerate(found["cells"]) if cell["protocol"] == "as_described"]
    many = sum(said["cells"][i] == verdict.REPRODUCED for i in own)
    assert page.locator(f"[data-counts='{at}: reproduced']").inner_text() == str(many)
    assert page.locator("tr.changed").count() > 10
    page.get_by_role("button", name="The book's rule").click()
    page.wait_for_function("!document.querySelector('tr.changed')", timeout=10_000)


@pytest.mark.drawn
def test_filters_show_the_lines_of_a_paper_a_verdict_and_a_protocol(page, found):
    page.get_by_label("Verdict").select_option("holds")
    page.get_by_label("Protocol of numbers").select_option("as_released")
    page.get_by_label("Paper").select_option("lgfedavg")
    wanted = [
        line["words"]
        for part in found.values()
        for line in part
        if line["paper"] == "lgfedavg"
        and line["verdict"] in (verdict.REPRODUCED, verdict.CONFIRMED)
        and line.get("protocol") != "as_described"
    ]
    shown = page.evaluate(VISIBLE)
    assert len(shown) == len(wanted) > 5
    assert all(any(row.startswith(words) for words in wanted) for row in shown)
    page.get_by_role("button", name="Show all").click()
    whole = f"all {sum(map(len, found.values()))} lines"
    page.get_by_text(whole).wait_for(timeout=10_000)  # the form is empty only after its event


def test_without_a_script_every_line_stands_there_with_its_verdict_and_is_counted(found):
    text = judge.page(found)
    for part, name in (("cells", "cell"), ("contrasts", "contrast"), ("claims", "claim")):
        assert text.count(f"<tr data-{name}=") == len(found[part])
    many = sum(cell["verdict"] == verdict.REPRODUCED for cell in found["cells"])
    counts = [
        int(text.partition(f'data-counts="numbers, {p}: reproduced">')[2].partition("<")[0])
        for p in ("as described", "as released")
    ]
    assert sum(counts) == many > 0
