"""Table 2's numbers from curves, claims from made-up rows, and what the stand-in's devices hold."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import torch

from lgfed_core.engine import Outcome
from lgfed_core.evidence import records as results, verdict
from lgfed_core.papers.lgfedavg.vqa import claims, figures, tables
from lgfed_core.papers.lgfedavg.vqa.run import CURVES, QUESTIONS, RATES, TABLE, at_goal, ids, system
from lgfed_core.papers.lgfedavg.vqa.settings import LINES, Settings, asked_of
from toy import stored_row

SMOKE = QUESTIONS.settings("smoke")


def history(values, every=1) -> pd.DataFrame:
    rounds = range(every, every * len(values) + 1, every)
    one = dict(seed=0, round=list(rounds), validation_acc=values)
    return pd.DataFrame(one | dict(local_test_acc=[v + 0.01 for v in values]))


def test_the_goal_is_where_validation_rows_first_have_it():
    cfg, own = QUESTIONS.settings("smoke", goal=0.5), system(SMOKE)
    found = at_goal(cfg, "fedavg", history([0.3, 0.5, 0.4, 0.6]))
    assert found["fedavg_rounds"] == 2 and found["lg_rounds"] == 0 and found["goal_reached"]
    assert found["local_test_acc"] == pytest.approx(51)
    assert found["params_communicated"] == 2 * own.total * (own.m + own.K)
    found = at_goal(cfg, "lg_fedavg", history([0.3, 0.4]))
    assert (found["fedavg_rounds"], found["lg_rounds"]) == (cfg.start, 2)
    assert not found["goal_reached"]
    sent = (2 * own.shared + cfg.start * own.total) * (own.m + own.K)
    assert found["params_communicated"] == sent and (own.m, own.K) == (2, 4)


def test_the_print_follows_from_the_papers_sizes():
    sent = tables.sent()
    assert sent["agrees"].all() and sent["counted"].tolist() == ["13.97e10", "9.99e10"]
    counted = tables.paper_size()
    assert counted.loc["shared", "parameters"] == 5_149_200
    assert counted.loc["all", "state"] == 54_042_572
    left = 54_042_572 - 5_149_200 - int(counted.loc["ResNet-18", "state"])
    whole = [e for e in tables.WIDTHS if (left - _lstm(e)) % e == 0]
    assert whole == [128, 256, 512] and (left - _lstm(512)) // 512 == tables.WORDS
    assert claims.printed_share() == pytest.approx(71.5, abs=0.05)


def _lstm(width: int) -> int:
    """Parameters of two layers of 512 units on words of ``width`` numbers."""
    return 4 * 512 * (width + 512 + 2) + 4 * 512 * (1024 + 2)


def made(fed: tuple, lg: tuple, seeds=(0, 1, 2)) -> pd.DataFrame:
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
    for line in claims.judged(made((80, 50, True), (10, 55, True)))["of"]:
        assert line and all(any(set(of.ids) <= cell for cell in known) for of in line)


def test_devices_hold_every_question_once_and_differ():
    cfg = QUESTIONS.settings("smoke", alpha=0.3)
    asked = asked_of(cfg)
    split = cfg.split(asked, 0)
    held = torch.cat([rows.of(k) for k in range(4) for rows in (split.train, split.validation)])
    assert held.sort().values.tolist() == list(range(len(asked.data.train)))
    both = tables.floors(cfg, asked, [0, 1])
    floors = both.loc[0]
    assert floors["the device's own commonest answer"] > floors["the commonest answer of all"]
    assert floors[tables.BEST] == floors.max() and floors.between(0, 100).all()
    assert "cannot be had" in tables.blind(both, 0.99) and "can be had" in tables.blind(both, 0.01)
    assert floors.tolist() == tables.floors(cfg, asked, [0]).loc[0].tolist()  # of a seed alone


def test_up_to_a_higher_goal_another_part_is_sent():
    def way(line, values, seed):
        common = ids(line) | dict(seed=seed, metric="validation_acc")
        return [common | dict(round=r, value=v) for r, v in enumerate(values, 1)]

    lines = [*way("fedavg", (30, 41, 45, 47), 0), *way("lg_fedavg", (39, 43, 49), 0)]
    lines += [*way("fedavg", (40, 41, 42, 42), 1), *way("lg_fedavg", (39, 39, 39), 1)]
    own = system(SMOKE)
    there = 2 * own.total  # sent by FedAvg before LG-FedAvg takes over
    found = tables.by_goal(pd.DataFrame(lines), SMOKE, own)
    row = found.loc["40 %"]
    assert row[["FedAvg there, seeds", "LG-FedAvg there, seeds"]].tolist() == ["2 of 2", "1 of 2"]
    share = 100 * (there + 2 * own.shared) / there  # after 2 + 2 rounds, and 2
    assert row["sent, % of FedAvg's"] == f"{share:.0f}"
    never = found.loc["48 %"]  # FedAvg's four rounds in all
    assert never["sent, % of FedAvg's"] == f"{100 * (there + 3 * own.shared) / (2 * there):.0f}"
    assert never["FedAvg there, seeds"] == "0 of 2" and never["LG-FedAvg there, seeds"] == "1 of 2"
    assert found.loc["50 %", "sent, % of FedAvg's"] == verdict.NOT_RUN


def test_curves_are_drawn_from_where_they_begin(tmp_path, monkeypatch):
    cfg, own = SMOKE, system(SMOKE)
    ways = {line: history([0.1, 0.2]) for line in ("fedavg", *LINES)}
    figure = figures.ways(QUESTIONS.progress(cfg, ways), cfg, own, floor=15)
    drawn = {line.get_label(): line for line in figure.axes[0].lines}
    assert drawn["LG-FedAvg from FedAvg's model"].get_xdata().tolist() == [3, 4]
    assert drawn["FedAvg"].get_ydata().tolist() == pytest.approx([11, 21])
    lines = {line.get_label(): line for line in figure.axes[1].lines}
    end = {name: line.get_xdata()[-1] for name, line in lines.items() if name in drawn}
    full = own.papers(2, 0) * 4 / 1e6
    assert end["FedAvg"] == pytest.approx(full)
    assert end["LG-FedAvg from FedAvg's model"] > full > end["LG-FedAvg from the first weights"]
    monkeypatch.setattr(results, "RESULTS", tmp_path)
    empty = claims.stored()
    assert tables.late(tables.curves()).empty
    assert (tables.beside_print(empty)["ours"] == verdict.NOT_RUN).all()
    figures.ways(tables.curves(), cfg, own)
    figures.to_goal(empty)
    figures.to_goal(made((80, 50, True), (10, 55, True)))
    plt.close("all")


def test_the_last_quarter_of_each_line_is_its_own():
    ways = {line: history([0.1, 0.2, 0.3, 0.5], every=2) for line in ("fedavg", "lg_scratch")}
    more = history([0.1, 0.2, 0.3, 0.4], every=2).assign(seed=1)
    ways["fedavg"] = pd.concat([ways["fedavg"], more])
    late = tables.late(QUESTIONS.progress(SMOKE, ways))
    assert late.index.tolist() == ["FedAvg", "LG-FedAvg from the first weights"]
    assert late["less the one before, points"].tolist() == ["+15.0 ± 7.1 (2)", "+20.0 (1)"]
    assert late.loc["FedAvg", ["rounds", "last quarter, %"]].tolist() == [8, "46.0"]


def test_millions_stand_beside_print_and_rounds_that_are_none_do_not():
    table = tables.beside_print(made((80, 50, True), (10, 55, True)))
    assert ("FedAvg", "LG rounds") not in table.index
    assert table.loc[("LG-FedAvg", "FedAvg rounds"), "ours"] == "32 (3)"
    sent = table.loc[("FedAvg", "parameters sent, millions")]
    own = system(SMOKE).papers(81, 0) / 1e6
    assert sent["paper"] == "139,700" and sent["ours"].startswith(f"{own:.4g} ± ")


def test_a_seed_that_does_not_get_to_the_goal_is_in_no_mean_of_those_that_do():
    rows = made((80, 50, True), (10, 55, True))
    late = (rows["seed"] == 2) & (rows["method"] == "fedavg")
    rows.loc[late & (rows["metric"] == "fedavg_rounds"), "value"] = 100.0
    rows.loc[late & (rows["metric"] == "goal_reached"), "value"] = 0.0
    assert claims.bound(rows) == ", at most: 1 of FedAvg's seeds count with all of their rounds"
    assert claims.judged(rows).loc["L16", "at"] == "parameters saved at least, % of FedAvg's"
    assert ("LG-FedAvg", "parameters sent, % of FedAvg's, at most") in tables.beside_print(
        rows
    ).index
    assert claims.bound(made((80, 50, True), (10, 55, True))) == ""
    assert tables.beside_print(rows).loc[("FedAvg", "FedAvg rounds"), "ours"] == "80.5 ± 0.707 (2)"
    left, right = figures.to_goal(rows).axes
    marks = [[line.get_marker(), len(line.get_xdata())] for line in left.lines]
    assert marks[:2] == [[marks[0][0], 2], [">", 1]]
    assert ["<", 1] in [[line.get_marker(), len(line.get_xdata())] for line in right.lines]
    plt.close("all")


def test_rows_of_the_papers_table_are_accepted(tmp_path):
    results.record(QUESTIONS.name, made((80, 50, True), (10, 55, True)), tmp_path)
    stored = results.load(QUESTIONS.name, tmp_path)
    assert set(stored["table"]) == {TABLE, CURVES}


def test_rows_are_shown_with_their_question_and_answer():
    asked = asked_of(SMOKE)
    axes = figures.rows(asked, range(4)).axes
    for n, ax in enumerate(axes):
        said = " ".join(ax.get_title().split())
        x, y = asked.data.train.x[n], int(asked.data.train.y[n])
        assert said == f"{asked.question(x)} {asked.answers[y]}"
        assert np.array_equal(ax.images[0].get_array(), asked.picture(x))
    plt.close("all")


def test_each_method_is_compared_at_the_rate_that_validation_rows_choose():
    def at(lr, lg, fed, seeds=(0, 1, 2)):
        """Rows after 20 rounds more: (validation, test) of both lines at another rate."""
        for line, (judged, tested), n in (("lg_fedavg", lg, 20), ("fedavg", fed, 52)):
            for metric, value in (("validation_acc", judged), ("local_test_acc", tested)):
                usual = lr == Settings.lr
                more = dict(table=CURVES) if usual else dict(table=RATES, lr=lr)
                ids_ = ids(line) | more | dict(stand_in="toy", selection="last", round=n)
                for seed in seeds:
                    yield stored_row(**ids_, seed=seed, metric=metric, value=value + seed / 10)

    usual = [*at(0.05, (40, 50), (42, 55), range(5))]
    alone = claims.judged(pd.DataFrame(usual)).loc["L17"]
    assert alone["runs"] == 5 and "(at the one rate tried, 0.05)" in alone["said"]
    worse = [*usual, *at(0.02, (39, 90), (41, 10))]  # test rows choose nothing
    line = claims.judged(pd.DataFrame(worse)).loc["L17"]
    assert line["estimate"] == pytest.approx(-5) and line["runs"] == 5
    assert "tried: rates 0.02, 0.05; validation rows choose 0.05 for LG-FedAvg" in line["said"]
    better = [*usual, *at(0.02, (41, 60), (41, 10))]
    line = claims.judged(pd.DataFrame(better)).loc["L17"]
    assert line["estimate"] == pytest.approx(60 - 55) and line["runs"] == 3
    assert "choose 0.02 for LG-FedAvg, 0.05 for FedAvg" in line["said"]


def test_rows_of_another_rate_say_so_and_are_no_others():
    cfg = QUESTIONS.settings("smoke", lr=0.02)
    outcome = Outcome(None, {}, history([0.1, 0.2]), pd.DataFrame(index=[0]), 1.0, {})
    rows = QUESTIONS.measured(cfg, "fedavg", outcome)
    assert set(rows["table"]) == {RATES} and set(rows["lr"]) == {0.02} and len(rows) == 4
    assert set(QUESTIONS.measured(SMOKE, "fedavg", outcome)["table"]) == {TABLE, CURVES}
    assert QUESTIONS.folder(cfg, [0]) != QUESTIONS.folder(SMOKE, [0])


def test_a_shorter_run_leaves_a_longer_one_in_its_place(tmp_path, monkeypatch):
    outcome = Outcome(None, {}, history([0.1, 0.2]), pd.DataFrame(index=[0]), 1.0, {})
    run = dict(protocol="as_described", scale="paper", seconds=1.0)
    run |= dict(device="cpu: none", torch="2", commit="abc")
    for times, part in ((9, "fedavg"), (3, "fedavg"), (3, "lg_scratch")):
        cfg = QUESTIONS.settings(long=times)
        rows = QUESTIONS.measured(cfg, part, outcome).assign(**run)
        results.record(QUESTIONS.name, rows, tmp_path)
    assert set(results.load(QUESTIONS.name, tmp_path)["long"]) == {3, 9}
    monkeypatch.setattr(results, "RESULTS", tmp_path)
    kept = tables.longer().groupby("method")["long"].unique().map(list)
    assert kept.to_dict() == {"fedavg": [9], "lg_fedavg": [3]}  # of each line its longest


def test_claims_are_judged_by_hand():
    lines = claims.judged(made((80, 50, True), (10, 55, True)))
    assert lines["verdict"].tolist() == [verdict.CONFIRMED] * 2
    assert lines["said"].str.startswith(f"{verdict.STAND_IN} (toy)").all()
    share = claims.shares(made((80, 50, True), (10, 55, True), seeds=(0,)))[0]
    own = system(SMOKE)
    assert share == pytest.approx(100 * (32 + 10 * own.shared / own.total) / 80)
    line = lines.loc["L16"]
    shares = claims.shares(made((80, 50, True), (10, 55, True)))
    assert line["at"] == "parameters saved, % of FedAvg's"
    assert line["estimate"] == pytest.approx(100 - np.exp(np.log(shares).mean()))  # geometric
    assert 0 < line["low"] < line["estimate"] < line["high"] < 100
    lines = claims.judged(made((34, 50, True), (10, 45, True)))
    assert lines["verdict"].tolist() == [verdict.REFUTED] * 2
    beside = claims.judged(made((80, 50, True), (10, 55, True)), claims.BESIDE)
    assert beside["words"].tolist() == ["LG-FedAvg is ahead of FedAvg"]
    never = claims.judged(made((80, 50, True), (68, 55, False)))
    assert never.loc["L16", "verdict"] == verdict.REFUTED
    assert (claims.judged(claims.stored().iloc[:0])["said"] == verdict.NOT_RUN).all()
