"""The box under a page's title: the decided first, the rest folded, nothing said without a row."""

from dataclasses import replace
from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from lgfed_core import plotting
from lgfed_core.evidence import verdict
from lgfed_core.evidence.claims import Claim, judged, tested as part
from lgfed_core.papers import commands, in_short
from lgfed_core.papers.fade.digits.run import DIGITS
from lgfed_core.papers.lgfedavg.mnist.run import MNIST
from lgfed_core.papers.lgfedavg.printed import TABLES
from lgfed_core.papers.lgfedavg.rotated.run import ROTATED


def _claims(**values: list[float]) -> SimpleNamespace:
    def claim(id: str) -> Claim:
        def parts(found: dict):
            return [part("", np.array(found[id]), verdict.greater)] if found[id] else []

        return Claim(id, "a/page", f"{id} is above zero", parts, live=id == "live")

    found = {id: values[id] for id in values}
    claims = tuple(claim(id) for id in values)
    return SimpleNamespace(CLAIMS=claims, from_stored=lambda: judged(claims, found))


@pytest.fixture
def claims():
    none, near, sure = [], [0.1, -0.2, 0.3], [5.0, 5.1, 5.2, 5.1]
    return _claims(open=near, live=none, also=near, holds=sure, fails=[-v for v in sure])


def test_decided_claims_come_first_and_the_others_are_folded(claims):
    text = in_short.Box("a/page", claims).markdown(claims.from_stored())
    assert text.index("holds is") < text.index("fails is") < text.index("open is")
    shown, folded = text.split("<summary>1 more")
    assert "also is" in shown and "judged below, live" in folded and "live is" not in shown
    assert "<dt>intervals</dt>" in folded and "<dt>differences</dt>" not in text
    assert '<span class="verdict holds">confirmed</span>' in shown
    assert "*+5.10 [+4.97, +5.23] (4)*" in shown
    assert in_short.Box("another/page", claims).markdown(claims.from_stored()).count("<span") == 0
    lines = claims.from_stored()
    lines.loc["holds", "said"] = "confirmed (on 3 < 5 settings)"  # what limits it comes last
    text = in_short.Box("a/page", claims).markdown(lines)
    assert '<span class="verdict holds">confirmed</span>' in text
    assert "*+5.10 [+4.97, +5.23] (4)* (on 3 &lt; 5 settings)" in text


@pytest.mark.parametrize(
    ("chip", "limits"),
    [
        ("inconclusive so far, 2 of 4 comparisons", "; a-b has games of 500 alone"),
        ("on stand-in data (chats, how upbeat): confirmed", ", 3 ways; one turns it"),
        ("suggested by 500 of 8,600 rounds: refuted so far, 1 of 2 comparisons, one seed", ""),
    ],
)
def test_a_chip_holds_the_verdict_alone(claims, chip, limits):
    lines = claims.from_stored()
    lines.loc["holds", "said"] = chip + limits
    text = in_short.Box("a/page", claims).markdown(lines)
    assert f">{chip}</span> holds: holds is" in text
    assert f"*+5.10 [+4.97, +5.23] (4)*{limits}" in text


def test_what_the_print_has_that_our_runs_lack_stands_beside_what_they_have(monkeypatch):
    line = dict(metric="new_test_acc", setting="2 classes", low=0.9, high=1.1, seeds=3, lost=0)
    lines = [
        line | dict(contrast="a - b", printed=printed, ours=1.0, verdict=said)
        for printed, said in (
            (-9.0, verdict.REPRODUCED),
            (3.0, verdict.REPRODUCED),
            (20.0, verdict.DIFFERS),
            (50.0, "counts"),
            (90.0, verdict.INCONCLUSIVE),
        )
    ]
    lines[3] |= dict(metric="params_communicated", verdict=verdict.DIFFERS)  # not in points
    monkeypatch.setattr(in_short.report, "contrasts", lambda spec: pd.DataFrame(lines))
    held, not_held = in_short.decided(TABLES["lgfedavg_v2_table6_mnist"])
    assert "reproduced</span> 2 classes, new test: a - b is -9.0 in print, the largest of 2" in held
    assert "differs</span> 2 classes, new test: a - b is +20.0 in print. *+1.0" in not_held
    assert held.endswith("(3), as released*")
    monkeypatch.setattr(in_short.report, "contrasts", lambda spec: pd.DataFrame(lines[-1:]))
    assert in_short.decided(TABLES["lgfedavg_v2_table6_mnist"]) == []


@pytest.mark.parametrize(
    ("metric", "protocol", "told"),
    [
        ("adv_auc", "as_released", True),
        ("adv_auc", "as_described", False),
        ("class_acc", "as_released", False),
    ],
)
def test_beside_a_difference_stands_the_artefact_that_is_behind_it(
    metric, protocol, told, monkeypatch
):
    line = dict(metric=metric, setting="i.i.d.", contrast="a - b", printed=-15.0, ours=-15.0)
    line |= dict(low=-16.0, high=-14.0, seeds=3, lost=0, verdict=verdict.REPRODUCED)
    monkeypatch.setattr(in_short.report, "contrasts", lambda spec: pd.DataFrame([line]))
    spec = replace(TABLES["lgfedavg_table4_adult_fairness"], headline=(protocol, "last"))
    (said,) = in_short.decided(spec)
    assert said.endswith("(an artefact: as released, the push of its adversary cancels, so that an "
                         "AUC of 50 % shows nothing)") == told  # fmt: skip


@pytest.mark.parametrize(("other", "told"), [("FedProx", True), ("FedAvg", False)])
def test_an_erratum_stands_beside_differences_with_the_row_that_it_names(other, told, monkeypatch):
    spec = TABLES["lgfedavg_table3_rotated_mnist"]
    line = dict(metric=min(spec.accuracies), setting="i.i.d.", contrast=f"LG-FedAvg - {other}")
    line |= dict(printed=2.8, ours=-0.9, low=-1.2, high=-0.5, seeds=3, lost=0)
    lines = pd.DataFrame([line | dict(verdict=verdict.DIFFERS)])
    monkeypatch.setattr(in_short.report, "contrasts", lambda spec: lines)
    (said,) = in_short.decided(spec)
    assert said.endswith("as described* (FedProx's μ is not printed)") == told


@pytest.mark.parametrize(
    ("ends", "words"),
    [
        ((0.000301, 0.00024, 0.00036), "+0.00030 [+0.00024, +0.00036] (4)"),
        ((0.003, -1.2, 1.3), "+0.00 [-1.20, +1.30] (4)"),
        ((0.0, 0.0, 0.0), "+0.00, exact"),
        ((1942.07, 1942.07, 1942.07), "+1942.07, exact"),
        ((12.3, np.nan, np.nan), "+12.30 (4)"),
    ],
)
def test_an_estimate_has_the_digits_that_it_needs_and_no_runs_where_it_has_no_chance(ends, words):
    line = pd.Series(dict(zip(("estimate", "low", "high"), ends, strict=True)) | {"at_runs": 4})
    assert in_short._estimate(line) == words


def test_a_live_claim_gets_its_verdict_where_it_is_judged(claims):
    some = (claims.CLAIMS[1],)
    lines = judged(some, {"live": [5.0, 5.1, 5.2, 5.1]})
    text = in_short.Box("a/page", SimpleNamespace(CLAIMS=some)).markdown(lines)
    assert "confirmed" in text and "judged below" not in text
    before = in_short.Box("a/page", SimpleNamespace(CLAIMS=some)).markdown(pd.DataFrame())
    assert "judged below, live" in before


def test_the_strip_has_the_facts_and_how_to_run_what_has_not_run(monkeypatch):
    table = TABLES["lgfedavg_table3_rotated_mnist"]
    box = in_short.Box("a/page", None, [table], [ROTATED], facts={"split": "by <class>"})
    rows = pd.DataFrame({"seed": [0, 1, 1], "protocol": "as_described", "seconds": [1800.0] * 3})
    rows["device"] = "cpu: some"
    monkeypatch.setattr(
        in_short.records, "select", lambda *_, scale, **__: rows.iloc[: 9 * (scale == "paper")]
    )
    text = box.markdown(pd.DataFrame())
    assert "<dt>split</dt><dd>by &lt;class&gt;</dd>" in text
    assert "seeds 0–1 as described; cpu; 1.0 h in all" in text
    monkeypatch.setattr(type(ROTATED), "together", True)  # a row has its whole stack's time
    assert "seeds 0–1 as described; cpu; 0.5 h in all" in box.markdown(pd.DataFrame())
    monkeypatch.setattr(in_short.records, "select", lambda *_, **__: rows.iloc[:0])
    assert "not yet run at full length: <code>python -m lgfed_core run lgfedavg.rotated" in (
        box.markdown(pd.DataFrame())
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
    assert in_short._again([]) == "" and "covered by" not in in_short._again([one])
    assert "<summary>covered by 2 commands</summary>Each with the most seeds" in in_short._again(
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
