"""Result files: what goes in, what is refused, that nothing is lost or worked out twice."""

import multiprocessing
import os

import pandas as pd
import pytest

from lgfed_core import files
from lgfed_core.errors import ResultsError
from lgfed_core.evidence import printed, records as results
from lgfed_core.evidence.printed import Metric, Table
from lgfed_core.evidence.rows import plain
from toy import stored_row


def tidy(seeds=(0,), **changes) -> pd.DataFrame:
    row = dict(table="lgfedavg_v2_table6_mnist", classes_per_device=2, method="fedavg", value=98.2)
    row |= dict(protocol="as_released", selection="last", metric="new_test_acc", commit="0123abcd")
    return pd.DataFrame([stored_row(**row | {"seed": seed} | changes) for seed in seeds])


def test_what_is_recorded_is_loaded(tmp_path):
    path = results.record("lgfedavg.mnist", tidy(seeds=[1, 0]), tmp_path)
    assert path == tmp_path / "lgfedavg.mnist.csv"
    found = results.load("lgfedavg.mnist", tmp_path)
    order = "table classes_per_device method protocol selection seed metric value scale device"
    order = [*order.split(), "torch", "commit", "seconds"]
    assert found.columns.tolist() == order
    how = dict(check_dtype=False, check_column_type=False)
    pd.testing.assert_frame_equal(found, tidy(seeds=[0, 1])[order], **how)
    assert found["seed"].dtype == int
    assert found["classes_per_device"].dtype == int


def test_the_same_cell_again_replaces_its_row(tmp_path):
    results.record("a", tidy(seeds=range(3)), tmp_path)
    results.record("a", tidy(seeds=[1], value=97.0, commit="ffff", device="cuda: x"), tmp_path)
    found = results.load("a", tmp_path)
    assert found["value"].tolist() == [98.2, 97.0, 98.2]
    assert found["commit"].tolist() == ["0123abcd", "ffff", "0123abcd"]


def test_a_shorter_or_longer_run_leaves_no_look_of_the_one_before(tmp_path):
    def curve(rounds, value, **more):
        return pd.concat([tidy(table="curves", round=r, value=value, **more) for r in rounds])

    results.record("a", curve((5, 10, 15, 20), 50.0), tmp_path)
    results.record("a", curve((5, 10), 60.0, seeds=[1]), tmp_path)
    results.record("a", curve((10, 20, 30), 70.0), tmp_path)
    found = results.load("a", tmp_path)
    seen = found.groupby("seed")["round"].agg(lambda rounds: rounds.astype(int).tolist())
    assert seen.to_dict() == {0: [10, 20, 30], 1: [5, 10]}
    assert set(found.loc[found["seed"] == 0, "value"]) == {70.0}


def test_a_run_that_diverges_leaves_no_number_and_one_that_ends_no_note(tmp_path):
    both = pd.concat([tidy(seeds=[0, 1]), tidy(seeds=[0, 1], metric="local_test_acc", value=90.0)])
    way = tidy(table="curves", seeds=[0, 1], round=5)
    beside = tidy(table="beside", seeds=[0, 1]).assign(round="")
    lost = tidy(seeds=[1], metric="diverged", value=3.0)
    results.record("a", pd.concat([both.assign(round=""), way, beside]), tmp_path)
    results.record("a", lost, tmp_path)
    found = results.load("a", tmp_path)
    assert found.loc[found["table"] == "curves", "seed"].tolist() == [0]
    assert found.loc[found["table"] == "beside", "seed"].tolist() == [0]
    found = found[~found["table"].isin(["curves", "beside"])]
    assert found.loc[found["seed"] == 1, "metric"].tolist() == ["diverged"] and len(found) == 3
    results.record("a", both, tmp_path)
    assert "diverged" not in set(results.load("a", tmp_path)["metric"])


@pytest.mark.parametrize(
    "other",
    [
        *({"table": "another"}, {"classes_per_device": 3}, {"method": "local_only"}),
        *({"protocol": "as_described"}, {"selection": "best_test"}, {"seed": 7}),
        *({"metric": "local_test_acc"}, {"scale": "quick"}),
    ],
)
def test_any_other_column_makes_another_row(tmp_path, other):
    results.record("a", tidy(), tmp_path)
    results.record("a", tidy(**other), tmp_path)
    assert len(results.load("a", tmp_path)) == 2


def test_order_and_digits_do_not_depend_on_the_way_in(tmp_path):
    big = tidy(metric="params_communicated", value=28_961_758_000.0)
    parts = [tidy(seeds=[10, 2], value=98.19000244140625), tidy(seeds=[1], value=97.5), big]
    first = results.record("a", pd.concat(parts), tmp_path / "one").read_bytes()
    for part in reversed(parts):
        last = results.record("a", part.iloc[::-1], tmp_path / "two").read_bytes()
    assert first == last
    assert b",98.19," in first  # seven digits, without the noise of 32 bits
    assert b",28961758000," in first
    assert results.load("a", tmp_path / "one")["seed"].tolist() == [0, 1, 2, 10]


def test_tables_with_other_identifying_columns_share_a_file(tmp_path):
    results.record("a", tidy(), tmp_path)
    other = tidy(table="fade_table1_office", task="A->D").drop(columns="classes_per_device")
    results.record("a", other, tmp_path)
    found = results.load("a", tmp_path).set_index("table")
    assert found.loc["fade_table1_office", "task"] == "A->D"
    assert found.loc["lgfedavg_v2_table6_mnist", "classes_per_device"] == 2
    assert pd.isna(found.loc["fade_table1_office", "classes_per_device"])
    results.record("a", other.assign(value=1.0), tmp_path)  # blanks are part of the key
    assert len(results.load("a", tmp_path)) == 2


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"value": float("nan")}, "value is nan"),
        ({"value": float("inf")}, "value is inf"),
        ({"value": "good"}, "value is 'good'"),
        ({"value": 950.0}, "value is 950.0 in row 2; it must be from 0 to 100 percent"),
        ({"value": -0.1, "metric": "adv_auc_race"}, "from 0 to 100 percent"),
        ({"scale": "huge"}, "scale is 'huge'"),
        ({"protocol": "mine"}, "protocol is 'mine'"),
        ({"selection": "best"}, "selection is 'best'"),
        ({"selection": "best_test", "protocol": "as_described"}, "only as_released"),
        ({"seed": 0.5}, "seed is 0.5"),
        ({"seed": -1}, "seed is -1"),
        ({"seed": "one"}, "seed is 'one'"),
        ({"seed": True}, "seed is True"),
        ({"seconds": -1.0}, "seconds is -1.0"),
        ({"seconds": float("inf")}, "seconds is inf"),
        ({"seed": 2**70}, "seed is 1180591620717411303424"),
        ({"metric": ""}, "metric is ''"),
        ({"table": None}, "table is None"),
    ],
)
def test_malformed_rows_are_refused_and_change_nothing(tmp_path, changes, said):
    path = results.record("a", tidy(), tmp_path)
    before = path.read_bytes()
    bad = pd.concat([tidy(seeds=[5]).astype(object), tidy(seeds=[6]).assign(**changes)])
    with pytest.raises(ResultsError, match=said) as error:
        results.record("a", bad, tmp_path)
    assert "row 2" in str(error.value)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["a.csv"]


@pytest.mark.parametrize("column", ["table", "seed", "value", "commit", "seconds"])
def test_a_missing_column_is_named(tmp_path, column):
    with pytest.raises(ResultsError, match=f"no column {column}"):
        results.record("a", tidy().drop(columns=column), tmp_path)
    assert not list(tmp_path.iterdir())


def test_rows_that_cannot_be_told_apart_and_names_of_no_file_are_refused(tmp_path):
    results.record("a", pd.concat([tidy(mu=mu) for mu in (1e-5, 0.1)]), tmp_path)
    assert results.load("a", tmp_path)["mu"].tolist() == [1e-5, 0.1], "small ones are numbers"
    with pytest.raises(ResultsError, match="identified by classes_per_device"):
        results.record("a", tidy(mu=0.1).drop(columns="classes_per_device"), tmp_path)
    with pytest.raises(ResultsError, match=r"repeats an earlier one: .*seed 0"):
        results.record("a", tidy(seeds=[0, 0]), tmp_path)
    for name in ("../a", "a/b", "", ".a", "a b"):
        with pytest.raises(ResultsError, match="cannot name an experiment"):
            results.record(name, tidy(), tmp_path)


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = results.record("a", tidy(), tmp_path)
    before = path.read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(ResultsError, match="No space.*it is as it was"):
        results.record("a", tidy(seeds=[1]), tmp_path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["a.csv"]


def _record_seeds(folder, seeds):
    for seed in seeds:
        results.record("a", tidy(seeds=[seed]), folder)


@pytest.mark.slow
@pytest.mark.skipif(files.fcntl is None, reason="no file locks on this system")
@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
def test_processes_that_write_at_once_lose_no_rows(tmp_path):
    fork = multiprocessing.get_context("fork")
    jobs = [
        fork.Process(target=_record_seeds, args=(tmp_path, range(10 * k, 10 * k + 8)))
        for k in range(4)
    ]
    for job in jobs:
        job.start()
    for job in jobs:
        job.join()
    seeds = sorted(results.load("a", tmp_path)["seed"])
    assert seeds == [10 * k + n for k in range(4) for n in range(8)]
    assert os.listdir(tmp_path) == ["a.csv"]


def test_loading_all_and_none(tmp_path):
    assert results.load(folder=tmp_path).empty
    results.record("a.b", tidy(), tmp_path)
    results.record("c", tidy(table="other", task="x"), tmp_path)
    assert set(results.load(folder=tmp_path)["table"]) == {"lgfedavg_v2_table6_mnist", "other"}
    with pytest.raises(ResultsError, match=r"no results of 'd' .* there are: a\.b, c"):
        results.load("d", tmp_path)


def test_later_seeds_can_be_left_out_for_a_while(tmp_path):
    results.record("a", tidy(seeds=range(5)), tmp_path)
    with pytest.raises(InterruptedError), results.first_seeds(3):
        assert results.load("a", tmp_path)["seed"].tolist() == [0, 1, 2]
        raise InterruptedError
    assert len(results.select("a", folder=tmp_path)) == 5


@pytest.mark.parametrize("damage", ["", "<<<<<<< HEAD\n", "table,seed\nx,1\n"])
def test_a_damaged_file_is_named_and_not_written_over(tmp_path, damage):
    path = tmp_path / "a.csv"
    path.write_text(damage)
    with pytest.raises(ResultsError, match=r"a\.csv"):
        results.load("a", tmp_path)
    with pytest.raises(ResultsError, match=r"a\.csv"):
        results.record("a", tidy(), tmp_path)
    assert path.read_text() == damage


@pytest.mark.parametrize(
    ("value", "text"),
    [
        *((2, "2"), (2.0, "2"), ("2.0", "2"), (0.2, "0.2"), ("0.20", "0.2"), (None, "")),
        *((float("nan"), ""), ("A->D", "A->D"), (" x ", "x"), (True, "True")),
        *((1e-5, "1e-05"), ("1e-05", "1e-05"), ("1.0e-05", "1e-05")),
    ],
)
def test_cells_that_mean_the_same_read_the_same(value, text):
    assert plain(value) == text


def test_selected_rows_have_the_values_asked_for(tmp_path):
    results.record("a", tidy(seeds=range(3)), tmp_path)
    results.record("a", tidy(classes_per_device=3, stand_in="digits"), tmp_path)
    results.record("b", tidy(table="other", task="x"), tmp_path)
    some = results.select("a", folder=tmp_path, classes_per_device="2.0", seed=(0, 2))
    assert some["seed"].tolist() == [0, 2]
    rows = results.select(folder=tmp_path, metric=["new_test_acc"])
    assert len(rows) == 5
    assert results.select(rows, task="x")["table"].tolist() == ["other"]
    assert len(results.select(rows, stand_in="")) == 4
    assert len(results.select(rows, task="")) == 4, "a blank cell"
    assert len(results.select(rows, unheard_of="")) == 5, "no such column is blank"
    assert results.select(rows, unheard_of=1).empty


def test_own_data_go_before_stand_ins_where_there_are_some(tmp_path):
    results.record("a", tidy(seeds=[0, 1], stand_in="digits"), tmp_path)
    results.record("a", tidy(seeds=[2], stand_in="clips"), tmp_path)
    assert len(results.select("a", folder=tmp_path, own=True)) == 3
    results.record("a", tidy(seeds=[0], stand_in=""), tmp_path)
    own = results.select("a", folder=tmp_path, own=True)
    assert len(own) == 1 and results.stand_in(own) == ""
    assert results.stand_in(results.select("a", folder=tmp_path)) == "clips, digits"
    blank = pd.DataFrame({"stand_in": ["digits", None, ""], "value": range(3)})
    assert results.select(blank, own=True)["value"].tolist() == [1, 2]


def test_nothing_recorded_is_nothing_selected(tmp_path):
    none = results.select("a", folder=tmp_path, columns=("method",), own=True, scale="paper")
    assert none.empty and "method" in none and none["value"].dtype == float


def test_a_place_that_takes_no_row_is_named_before_anything_runs(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(ResultsError, match=r"no row can be written to .*file.results: Not a dir"):
        results.writable(tmp_path / "file" / "results")
    results.writable(tmp_path / "new" / "results")
    assert not list((tmp_path / "new" / "results").iterdir())


def test_a_file_of_printed_numbers_is_read_again_when_it_changes(tmp_path, monkeypatch):
    reads, read = [], pd.read_csv
    monkeypatch.setattr(pd, "read_csv", lambda *a, **k: reads.append(1) or read(*a, **k))
    table, path = Table("one", "fade", "", ("method",), (Metric("acc"),)), tmp_path / "one.csv"
    for number in (50.0, 61.25):
        path.write_text(f"method,acc\nfedavg,{number}\n")
        for _ in range(3):
            found = printed.cells(table, tmp_path)
            assert found["paper"].tolist() == [number]
            found["paper"] = 0.0  # a caller's own copy
    assert len(reads) == 2
