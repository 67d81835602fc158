"""Table 2's numbers from curves, claims from made-up rows, and what the stand-in's devices hold."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
import torch

from lgfed_core.engine import Outcome
from lgfed_core.evidence import records as results, verdict
from lgfed_core.models.vqa import QuestionNet
from lgfed_core.papers.lgfedavg.records import system
from lgfed_core.papers.lgfedavg.vqa import claims
from lgfed_core.papers.lgfedavg.vqa.run import CURVES, QUESTIONS, RATES, TABLE, at_goal, ids
from lgfed_core.papers.lgfedavg.vqa.settings import LINES, Settings, asked_of
from toy import page, stored_row

SMOKE = QUESTIONS.settings("smoke")


def history(values, every=1) -> pd.DataFrame:
    rounds = range(every, every * len(values) + 1, every)
    one = dict(seed=0, round=list(rounds), validation_acc=values)
    return pd.DataFrame(one | dict(local_test_acc=[v + 0.01 for v in values]))


TWO_LOOKS = Outcome(None, {}, history([0.1, 0.2]), pd.DataFrame(index=[0]), 1.0, {})


def test_the_goal_is_where_validation_rows_first_have_it():
    cfg, own = QUESTIONS.settings("smoke", goal=0.5), system(SMOKE)
    found = at_goal(cfg, "fedavg", history([0.3, 0.5, 0.4, 0.6])).loc[0]
    assert found["fedavg_rounds"] == 2 and found["lg_rounds"] == 0 and found["goal_reached"]
    assert found["local_test_acc"] == pytest.approx(51)
    assert found["params_communicated"] == 2 * own.total * (own.m + own.K)
    found = at_goal(cfg, "lg_fedavg", history([0.3, 0.4])).loc[0]
    assert (found["fedavg_rounds"], found["lg_rounds"]) == (cfg.start, 2)
    assert not found["goal_reached"]
    sent = (2 * own.shared + cfg.start * own.total) * (own.m + own.K)
    assert found["params_communicated"] == sent and (own.m, own.K) == (2, 4)


def test_the_printed_sizes_follow_from_a_usual_embedding():
    """Of usual widths only 128, 256 and 512 give the printed total with a whole number of words,
    and only where running statistics are counted."""
    with torch.device("meta"):
        net = QuestionNet(224, 64_437, 1000)
    state = sum(values.numel() for values in net.state_dict().values())
    left = state - 5_149_200 - sum(v.numel() for v in net.pictures.state_dict().values())
    widths = (50, 100, 128, 200, 256, 300, 512, 600, 1024)
    lstm = {e: 4 * 512 * (e + 512 + 2) + 4 * 512 * (1024 + 2) for e in widths}  # of two layers
    assert [e for e in widths if (left - lstm[e]) % e == 0] == [128, 256, 512]
    assert claims.printed_saving() == pytest.approx(28.5, abs=0.05)


def made(fed=(80, 50, True), lg=(10, 55, True), seeds=(0, 1, 2)) -> pd.DataFrame:
    """Rows of both lines; fed, lg: (rounds to the goal, local test 20 rounds on, reached)."""
    own, out = system(SMOKE), []
    for line, (rounds, then, reached) in (("fedavg", fed), ("lg_fedavg", lg)):
        for seed in seeds:
            n = rounds + seed
            pair = (n, 0) if line == "fedavg" else (32, n)
            ends = dict(fedavg_rounds=pair[0], lg_rounds=pair[1], goal_reached=float(reached))
            ends |= dict(params_communicated=own.papers(*pair), local_test_acc=40.0)
            at = 52 if line == "fedavg" else 20
            way = dict(table=CURVES, metric="local_test_acc", round=at, value=then + 0.1 * seed**2)
            common = dict(stand_in="toy", selection="last", seed=seed)
            lines = [dict(metric=m, value=v, round="") for m, v in ends.items()]
            out += [stored_row(**(ids(line) | common | one)) for one in (*lines, way)]
    return pd.DataFrame(out)


def test_claims_name_lines_that_can_be_run():
    known = [set(piece.cell) for piece in QUESTIONS.pieces("as_described")]
    for line in claims.judged(made())["of"]:
        assert line and all(any(set(of.ids) <= cell for cell in known) for of in line)


def test_who_sees_no_picture_answers_as_is_commonest_on_the_device():
    cfg = QUESTIONS.settings("smoke", alpha=0.3)
    asked = asked_of(cfg)
    both, alone = (page("lgfedavg/vqa").floor(cfg, asked, seeds) for seeds in ([0, 1], [0]))
    answer = asked.data.test.y == asked.data.train.y.bincount().argmax()  # one for all
    assert 100 * answer.float().mean() < both[0] < 100
    assert both[0] == alone[0]  # a seed has what it has alone


def test_lines_begin_where_they_go_on_from():
    by_line = page("lgfedavg/vqa").by_line
    ways = {line: history([0.1, 0.2]) for line in ("fedavg", *LINES)}
    found = by_line(QUESTIONS.progress(SMOKE, ways), SMOKE.start)
    assert [*found] == [*claims.LINES]
    assert {line: [*wide.index] for line, wide in found.items()} == {
        "fedavg": [1, 2], "lg_fedavg": [3, 4], "lg_scratch": [1, 2],
    }  # fmt: skip
    assert found["fedavg"][0].tolist() == pytest.approx([11, 21])
    assert by_line(pd.DataFrame(), SMOKE.start) == {}


def test_each_method_is_compared_at_the_rate_that_validation_rows_choose():
    def at(lr, lg, fed, seeds=(0, 1, 2)):
        """Rows after 20 rounds more: (validation, test) of both lines at another rate."""
        more = dict(table=CURVES) if lr == Settings.lr else dict(table=RATES, lr=lr)
        more |= dict(stand_in="toy", selection="last")
        for (line, pair, n), seed in product((("lg_fedavg", lg, 20), ("fedavg", fed, 52)), seeds):
            row = stored_row(**(ids(line) | more), round=n, seed=seed)
            for metric, value in zip(("validation_acc", "local_test_acc"), pair, strict=True):
                yield row | dict(metric=metric, value=value + seed / 10)

    usual = [*at(0.05, (40, 50), (42, 55), range(5))]
    alone = claims.judged(pd.DataFrame(usual)).loc["L17"]
    assert alone["runs"] == 5
    worse = [*usual, *at(0.02, (39, 90), (41, 10))]  # test rows choose nothing
    line = claims.judged(pd.DataFrame(worse)).loc["L17"]
    assert line["estimate"] == pytest.approx(-5) and line["runs"] == 5
    better = [*usual, *at(0.02, (41, 60), (41, 10))]
    line = claims.judged(pd.DataFrame(better)).loc["L17"]
    assert line["estimate"] == pytest.approx(60 - 55) and line["runs"] == 3
    # one that loses on the seeds that ran it takes none from the others
    drawn = [*usual, *at(0.02, (41, 60), (41, 10), range(5)), *at(0.1, (30, 0), (30, 0), (0,))]
    line = claims.judged(pd.DataFrame(drawn)).loc["L17"]
    assert line["estimate"] == pytest.approx(60 - 55) and line["runs"] == 5


def test_a_rate_of_few_seeds_does_not_decide_between_the_others():
    """On seeds 0 and 1 the usual rate is better, on all five 0.02; 0.1 has run on 0 and 1 alone."""

    def tried(lr, values):
        way = dict(table=CURVES) if lr == Settings.lr else dict(table=RATES, lr=lr)
        way |= dict(stand_in="toy", selection="last", round=52, metric="validation_acc")
        ways = enumerate(values)
        return [stored_row(**(ids("fedavg") | way), seed=s, value=float(v)) for s, v in ways]

    whole = [*tried(0.05, [50, 50, 40, 40, 40]), *tried(0.02, [45, 45, 45, 45, 45])]
    assert claims.chosen_rate(pd.DataFrame([*whole, *tried(0.1, [30, 30])]), "fedavg", 52) == 0.02
    assert claims.chosen_rate(pd.DataFrame([*whole, *tried(0.1, [60, 60])]), "fedavg", 52) == 0.1
    other = [row | ids("lg_fedavg") for row in tried(0.1, [60, 60])]  # has run for another line
    assert claims.chosen_rate(pd.DataFrame([*whole, *other]), "fedavg", 52) == 0.02


def test_rows_of_another_rate_say_so_and_are_no_others():
    cfg = QUESTIONS.settings("smoke", lr=0.02)
    rows = QUESTIONS.measured(cfg, "fedavg", TWO_LOOKS)
    assert set(rows["table"]) == {RATES} and set(rows["lr"]) == {0.02} and len(rows) == 4
    assert set(QUESTIONS.measured(SMOKE, "fedavg", TWO_LOOKS)["table"]) == {TABLE, CURVES}
    assert QUESTIONS.folder(cfg, [0]) != QUESTIONS.folder(SMOKE, [0])


def test_a_shorter_run_leaves_a_longer_one_in_its_place(tmp_path, monkeypatch):
    run = dict(protocol="as_described", scale="paper", seconds=1.0)
    run |= dict(device="cpu: none", torch="2", commit="abc")
    for times, part in ((9, "fedavg"), (3, "fedavg"), (3, "lg_scratch")):
        cfg = QUESTIONS.settings(long=times)
        rows = QUESTIONS.measured(cfg, part, TWO_LOOKS).assign(**run)
        results.record(QUESTIONS.name, rows, tmp_path)
    assert set(results.load(QUESTIONS.name, tmp_path)["long"]) == {3, 9}
    monkeypatch.setattr(results, "RESULTS", tmp_path)
    kept = claims.longer().groupby("method")["long"].unique().map(list)
    assert kept.to_dict() == {"fedavg": [9], "lg_fedavg": [3]}  # of each line its longest


def test_claims_are_judged_by_hand():
    lines, shares, own = claims.judged(made()), claims.shares(made()), system(SMOKE)
    assert lines["verdict"].tolist() == [verdict.CONFIRMED] * 2
    assert lines["said"].str.startswith(f"{verdict.STAND_IN} (toy)").all()
    assert shares[0] == pytest.approx(100 * (32 + 10 * own.shared / own.total) / 80)
    line = lines.loc["L16"]
    assert line["at"] == "parameters saved, % of FedAvg's"
    assert line["estimate"] == pytest.approx(100 - np.exp(np.log(shares).mean()))  # geometric
    assert 0 < line["low"] < line["estimate"] < line["high"] < 100
    lines = claims.judged(made((34, 50, True), (10, 45, True)))
    assert lines["verdict"].tolist() == [verdict.REFUTED] * 2
    rows = made()
    late = (rows["seed"] == 2) & (rows["method"] == "fedavg")
    rows.loc[late & (rows["metric"] == "goal_reached"), "value"] = 0.0
    assert claims.judged(rows).loc["L16", "at"] == "parameters saved at least, % of FedAvg's"
    never = claims.judged(made((80, 50, True), (68, 55, False)))
    assert never.loc["L16", "verdict"] == verdict.REFUTED
