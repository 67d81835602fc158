"""What is selected and claimed, by hand; impossible settings; one's own file."""

from itertools import product

import pandas as pd
import pytest

from lgfed_core import models
from lgfed_core.engine import Outcome
from lgfed_core.errors import DataError
from lgfed_core.evidence import verdict
from lgfed_core.fill.ledger import Ledger
from lgfed_core.fill.plan import Planner
from lgfed_core.papers.lgfedavg.mood import claims
from lgfed_core.papers.lgfedavg.mood.run import MOOD, federation, ids
from lgfed_core.papers.lgfedavg.mood.settings import ALPHAS, SLOWER, SOURCES
from toy import stored_row


def test_the_restart_that_is_best_on_validation_rows_is_tested():
    seeds = pd.Index([4, 4, 4, 7, 7, 7], name="seed")
    final = pd.DataFrame(
        dict(
            validation_acc=[0.1, 0.2, 0.3, 0.4, 0.5, 0.6],
            test_acc=[0.2, 0.3, 0.4, 0.1, 0.1, 0.4],
            best_validation=[0.5, 0.7, 0.7, 0.9, 0.8, 0.9],
            best_test=[0.9, 0.6, 0.8, 0.3, 0.9, 0.9],
            best_round=[1, 2, 3, 4, 5, 6],
        ),
        index=seeds,
    )
    outcome = Outcome(None, {}, pd.DataFrame(), final, 1.0, {})
    rows = MOOD.measured(MOOD.settings("paper"), "chats:0.4", outcome)
    wide = rows.pivot_table("value", ["selection", "seed"], "metric")
    assert wide.loc["best_val", "restart"].to_dict() == {4: 1, 7: 0}
    assert wide.loc["best_val", "round"].to_dict() == {4: 2, 7: 4}
    assert wide.loc["best_val", "test_acc"].to_dict() == pytest.approx({4: 60, 7: 30})
    assert wide.loc["last", "test_acc"].to_dict() == pytest.approx({4: 30, 7: 20})
    assert set(rows["alpha"]) == {0.4} and set(rows["stand_in"]) == {SOURCES["chats"]}


def test_runs_with_less_than_the_text_says_are_short():
    assert MOOD.settings("paper").recorded == "paper"
    for less in (dict(restarts=2), dict(rounds=5), dict(epochs=1)):
        assert MOOD.settings("paper", **less).recorded == "short"
    assert MOOD.settings("quick").recorded == "quick"


def test_a_fifth_of_the_layers_is_shared_from_either_side_and_the_rate_falls_by_half():
    cfg = MOOD.settings("smoke")
    fed, start = federation(cfg, "between", [3, 5])
    assert fed.seeds == [3, 3, 5, 5] and len(start.unique(dim=0)) == 4  # restarts
    net = fed.net
    assert {n.split(".")[0] for n in cfg.method(0.4, net).layers} == {"fc2", "out"}
    first = MOOD.settings("smoke", side="first").method(0.4, net)
    assert {n.split(".")[0] for n in first.layers} == {"embedding", "encoder"}
    assert not cfg.method(0.0, net).layers
    assert models.count(net, cfg.method(1.0, net).layers) == models.count(net)
    training = MOOD.settings("paper", rounds=10).training
    assert training.rate(5) == pytest.approx(training.rate(0) / 2) and training.adam


def test_ones_own_file_is_trained_on_and_a_bad_one_refused_before(tmp_path, monkeypatch):
    file = tmp_path / "moods.csv"
    fine = "person,text,label\n" + "ann,a fine day,5\nben,a bad day,1\n" * 12
    file.write_text(fine)
    own = dict(sources=("own",), file=str(file), alphas=(0.4,), rounds=1)
    rows, _ = MOOD.run(MOOD.settings("smoke", **own), [0], record=False, resume=False, workers=1)
    title = "one's own file moods.csv"
    assert set(rows["stand_in"]) == {title} and rows["value"].notna().all()
    file.write_text(fine + "ann,,3\n")
    monkeypatch.setattr("lgfed_core.papers.lgfedavg.mood.run.run", None)  # it would train
    for sources in (("own",), ("between", "own")):  # nor the source before it
        cfg = MOOD.settings("smoke", **(own | dict(sources=sources)))
        with pytest.raises(DataError, match="moods.csv, line 26: the text is empty"):
            MOOD.run(cfg, [0], record=False, resume=False, workers=1)


def made(values: dict[float, float], source="chats") -> pd.DataFrame:
    """Test accuracies by alpha, a little more for each seed; 0.6 is best on validation rows."""
    rows = []
    for (alpha, level), seed in product(values.items(), range(3)):
        judged = 90 if alpha == 0.6 else 50 + level / 10
        tested, line = level + 0.1 * seed * (alpha + 1), ids(source, alpha) | dict(seed=seed)
        rows += [stored_row(**line, metric="test_acc", value=tested)]
        rows += [stored_row(**line, metric="validation_acc", value=judged)]
    return pd.DataFrame(rows)


HUMP = dict(zip(ALPHAS, (50, 55, 99, 60, 58, 52), strict=True))  # 0.4 is best on test rows alone


def test_the_claim_is_judged_at_the_share_chosen_on_validation_rows():
    assert claims.chosen(made(HUMP), "chats")["alpha"].tolist() == [0.6] * 3
    line = claims.judged(made(HUMP)).loc["L18"]
    assert line["said"] == f"{verdict.STAND_IN} ({SOURCES['chats']}): {verdict.CONFIRMED}"
    assert line["estimate"] == pytest.approx(60 - 50 + 0.1 * 0.6)
    assert (line["at"], line["runs"], line["ran"]) == ("local only", 3, 2)
    assert {dict(of.ids)["alpha"] for of in line["of"]} == {"0", "0.2", "0.4", "0.6", "0.8", "1"}
    worse = claims.judged(made(HUMP | {0.6: 51})).loc["L18"]
    assert worse["said"].endswith(verdict.REFUTED)
    assert claims.judged(made(HUMP, "apart")).loc["L18", "said"].endswith(verdict.NOT_RUN)
    some = {alpha: HUMP[alpha] for alpha in (0.0, 0.6, 1.0)}
    assert claims.judged(made(some)).loc["L18", "said"].endswith(verdict.NOT_RUN)


def test_the_same_texts_split_again_and_again_are_no_new_texts():
    chats, apart = (claims.between_beats_extremes(made(HUMP, s), s) for s in ("chats", "apart"))
    for one, other in zip(chats, apart, strict=True):
        assert one.evidence.estimate == other.evidence.estimate
        assert one.evidence.low < other.evidence.low


def test_every_source_and_share_is_a_piece_that_can_be_run_alone():
    pieces = MOOD.pieces("as_described")
    usual, slower = pieces[: len(SOURCES) * len(ALPHAS)], pieces[-len(ALPHAS) :]
    assert len(pieces) == len(usual) + len(slower)
    cfg = MOOD.settings("paper", **MOOD.joined([p for p in usual if p.name.startswith("chats")]))
    assert (cfg.sources, cfg.alphas, cfg.lr) == (("chats",), ALPHAS, 0.005)
    assert [p.name for p in MOOD.plan(cfg, [0], "cpu")] == [p.name for p in pieces[:6]]
    other = MOOD.settings("paper", **MOOD.joined(slower))
    assert (other.sources, other.alphas, other.lr) == (("chats",), ALPHAS, SLOWER)
    assert {dict(p.cell)["lr"] for p in slower} == {SLOWER}
    both = [p for p in pieces if p.name == "chats:0.4"]  # of two rates: a plan never joins them
    tasks = Planner([], Ledger(both, "cpu: A")).tasks((piece, 0) for piece in both)
    assert sorted(task.settings.lr for task in tasks) == [SLOWER, 0.005]


def test_runs_on_files_of_ones_own_are_recorded_and_each_has_its_checkpoints():
    one, other = (
        MOOD.settings("quick", sources=("own",), file=name) for name in ("a.csv", "b.csv")
    )
    assert {"sources", "file"} <= MOOD.chooses
    assert MOOD.folder(one, [0]) != MOOD.folder(other, [0])
