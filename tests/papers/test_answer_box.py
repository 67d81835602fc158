"""What stands under a page's answers: the fold of facts, and a word on what no longer holds."""

from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from lgfed_core import plotting
from lgfed_core.evidence import verdict
from lgfed_core.evidence.answers import told as answers_of
from lgfed_core.evidence.claims import Claim, judged, tested as part
from lgfed_core.papers import answer_box, commands
from lgfed_core.papers.fade.digits.run import DIGITS
from lgfed_core.papers.lgfedavg.mnist import MNIST
from lgfed_core.papers.lgfedavg.printed import TABLES
from lgfed_core.papers.lgfedavg.rotated.run import ROTATED


def _page(values: dict[str, list[float]], answers: dict[str, str]) -> SimpleNamespace:
    """A module of claims, each "above zero", with what it says of ``values``."""

    def claim(id: str) -> Claim:
        def parts(found: dict):
            return [part("", np.array(found[id]), verdict.greater)] if found[id] else []

        words = dict(question=f"Is {id} above zero?", answer=answers[id])
        return Claim(id, "a/page", f"{id} is above zero", parts, guard=lambda _: True, **words)

    claims = tuple(claim(id) for id in values)
    return SimpleNamespace(
        CLAIMS=claims,
        from_stored=lambda: judged(claims, values),
        told=lambda: answers_of(claims, values, stand_in={"up": "other chats"}),
    )


SURE = [5.0, 5.1, 5.2, 5.1]


def test_the_fold_has_each_verdict_by_both_rules():
    page = _page(
        {"up": SURE, "near": [0.1, -0.2, 0.3], "none": []},
        {"up": "**Yes.**", "near": "**Open.**", "none": "**Open.**"},
    )
    text = answer_box.Box("a/page", page).html()
    assert text.startswith('<details class="in-short"><summary>')
    assert "<dt>up</dt><dd>holds; stand-in data (other chats). <small>One joint test" in text
    assert "fixed before the runs: confirmed (p = " in text
    assert "<dt>near</dt><dd>open. <small>" in text
    assert "fixed before the runs: inconclusive" in text
    assert "<summary>1 comparison<" in text and "<b>+5.10</b>" in text and text.count("<table") == 2
    assert "<dt>none</dt><dd>open. <small>One joint test, as fixed before the runs: not yet" in text
    assert "<dt>" not in answer_box.Box("another/page", page).html()


def test_an_answer_that_the_runs_no_longer_bear_out_is_struck_through_and_replaced():
    page = _page({"L<1": [-v for v in SURE]}, {"L<1": "**Yes.** It is."})
    text = answer_box.Box("a/page", page).html()
    assert "text-decoration: line-through" in text and "#answer-L<1)" in text
    assert "<strong>The runs have moved</strong>" in text and "now: does not hold." in text
    assert "Is L&lt;1 above zero?" in text
    right = _page({"L": SURE}, {"L": "**Yes.** It is."})
    assert "moved" not in answer_box.Box("a/page", right).html()


def test_the_strip_has_the_facts_and_how_to_run_what_has_not_run(monkeypatch):
    table = TABLES["lgfedavg_table3_rotated_mnist"]
    box = answer_box.Box("a/page", None, [table], [ROTATED], facts={"split": "by <class>"})
    rows = pd.DataFrame({"seed": [0, 1, 1], "protocol": "as_described", "seconds": [1800.0] * 3})
    rows["device"] = "cpu: some"
    monkeypatch.setattr(
        answer_box.records, "select", lambda *_, scale, **__: rows.iloc[: 9 * (scale == "paper")]
    )
    text = box.html()
    assert "<dt>split</dt><dd>by &lt;class&gt;</dd>" in text
    assert "seeds 0–1 as described; cpu; 1.0 h in all" in text
    monkeypatch.setattr(type(ROTATED), "together", True)  # a row has its whole stack's time
    assert "seeds 0–1 as described; cpu; 0.5 h in all" in box.html()
    monkeypatch.setattr(answer_box.records, "select", lambda *_, **__: rows.iloc[:0])
    assert "not yet run at full length: <code>python -m lgfed_core run lgfedavg.rotated" in (
        box.html()
    )


def test_the_strip_names_the_commands_of_the_rows_that_there_are(monkeypatch):
    cell = dict(table="lgfedavg_v2_table6_mnist", classes_per_device=2, scale="paper")
    line = cell | dict(method="fedavg", fedavg_rounds=800, lg_rounds=0, protocol="as_released")
    alone = line | dict(classes_per_device=5, method="local_only", fedavg_rounds=0)
    rows = pd.DataFrame([line | dict(seed=0), line | dict(seed=1), alone | dict(seed=0)])
    one, other = commands.of_rows(MNIST, rows)
    assert one.endswith("as_released --seeds 0-1 --set classes=2 alone= fedavg=True starts=")
    assert other.endswith("as_released --seeds 0 --set classes=5 alone=local fedavg=False starts=")
    game = dict(table="fade_figure2", direction="mnist-usps", protocol="as_described", seed=0)
    game |= dict(loss="squared")
    short = pd.DataFrame([game | dict(scale="short", rounds=500)])
    (again,) = commands.of_rows(DIGITS, short)
    assert "--seeds 0 --set directions=mnist-usps" in again and again.endswith(" rounds=500")
    assert commands.of_rows(DIGITS, short.assign(rounds=float("nan"))) == []
    alone = short.assign(loss="central", rounds=2000)
    (central,) = commands.of_rows(DIGITS, alone)  # games have no rows of that length
    assert central.endswith("losses= opt_outs= statistics= central=True rounds=2000")
    assert answer_box._again([]) == "" and "covered by" not in answer_box._again([one])
    assert "<summary>covered by 2 commands</summary>Each with the most seeds" in answer_box._again(
        [one, other]
    )


def test_a_figure_is_described_by_what_it_says():
    figure, (left, right) = plt.subplots(1, 2)
    left.plot([1, 2], label="ours")
    left.set(title="MNIST", xlabel="rounds", ylabel="accuracy")
    right.plot([1, 2], label="the paper's")
    right.legend()
    left.legend()
    said = plotting.described(figure)
    plt.close(figure)
    assert said == "Figure. MNIST: accuracy against rounds. Shown: ours, the paper's."
