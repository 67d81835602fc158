"""A method of the user's on the user's rows, beside all methods that fit."""

import pandas as pd
import pytest

from lgfed_core.__main__ import main
from lgfed_core.errors import SettingsError
from lgfed_core.methods import FedAvg
from lgfed_core.papers.everywhere.compare import compare
from lgfed_core.papers.everywhere.compare.experiment import Others
from lgfed_core.papers.everywhere.compare.own_data import OWN, read

DATA = """
import torch

from lgfed_core import data, partition


def half(rows, seed):
    draw = torch.Generator().manual_seed(seed)
    y = torch.arange(rows) % 2
    return data.Split(torch.randn(rows, 1, 2, 3, generator=draw) + y[:, None, None, None], y)


def walks():
    train, test = half(60, 0), half(30, 1)
    held = partition.by_device(torch.arange(60) // 15, torch.arange(30) % 4)
    return data.Dataset("walks", train, test, 2), lambda seed: held


def lonely():
    rows, _ = walks()
    return rows, lambda seed: partition.by_device(torch.arange(60) // 15, torch.zeros(30).long())


def other():
    rows, _ = walks()
    return rows, lambda seed: partition.by_device(torch.arange(99) // 15, torch.arange(30) % 4)


def alone():
    return walks()[0]


def wrong():
    raise ValueError("no file")


few = 3
"""
HOW = dict(scale="smoke", seeds=(0,), workers=1, contract=False)


@pytest.fixture
def mine(tmp_path):
    path = tmp_path / "walks.py"
    path.write_text(DATA)
    return path


def test_all_methods_that_fit_run_beside_yours_on_your_rows(mine, tmp_path):
    lines = compare(FedAvg, data=f"{mine}:walks", out=tmp_path / "a", **HOW)
    assert set(lines["task"]) == {OWN} and not lines.attrs["left_out"]
    others = set(lines["other"])
    assert "FedAvg" in others and "pFedMe" in others and "FADE's game" not in others  # no groups
    same = lines[lines["other"] == "FedAvg"].set_index("measure")["estimate"]
    assert same["local_test_acc"] == 0  # on the same rows, with the same first weights
    report = (tmp_path / "a" / "report.md").read_text()
    assert "## your data" in report and (tmp_path / "a" / "code" / "walks.py").exists()
    first = pd.read_csv(tmp_path / "a" / "rows.csv")
    compare(FedAvg, data=f"{mine}:walks", out=tmp_path / "a", **HOW)
    assert pd.read_csv(tmp_path / "a" / "rows.csv").equals(first)  # only read, seconds and all


def test_rows_become_vectors_and_a_fifth_of_each_device_validates(mine):
    task = read(f"{mine}:walks")
    assert task.inputs == 6 and task.partition(0).validation.size.tolist() == [3] * 4


def test_data_of_another_text_is_another_run(mine, tmp_path):
    before = Others(tmp_path, read(f"{mine}:walks")).fingerprint
    mine.write_text(DATA.replace("randn", "rand"))
    assert Others(tmp_path, read(f"{mine}:walks")).fingerprint != before


@pytest.mark.parametrize(
    ("name", "said"),
    {
        "few": "data is 3; give a function",
        "wrong": "the data cannot be made: .*no file",
        "alone": "alone gives Dataset, NoneType; give a function",
        "lonely": "device 1 has 0 test rows and needs 1; leave it out",
        "other": "deal.0.: device 4 holds row",
        "missing": "has nothing called 'missing'",
    }.items(),
)
def test_what_is_no_data_is_refused_by_name(mine, name, said):
    with pytest.raises(SettingsError, match=said):
        read(f"{mine}:{name}")


def test_on_the_command_line_tasks_and_data_exclude_each_other(mine, tmp_path, capsys):
    typed = f"compare lgfed_core:FedAvg --data {mine}:walks --tasks mnist --scale smoke".split()
    assert main([*typed, "--out", str(tmp_path / "b")]) == 1
    assert "tasks are of our own data" in capsys.readouterr().err
