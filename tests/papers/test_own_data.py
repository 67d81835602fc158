"""A method of the user's on the user's rows, beside all methods that fit."""

from dataclasses import replace

import pandas as pd
import pytest
import torch

from lgfed_core.__main__ import main
from lgfed_core.errors import SettingsError
from lgfed_core.methods import FedAvg
from lgfed_core.papers.everywhere import claims
from lgfed_core.papers.everywhere.compare import compare, source
from lgfed_core.papers.everywhere.compare.experiment import Others
from lgfed_core.papers.everywhere.compare.own_data import OWN, read
from lgfed_core.partition import by_device

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


def grouped(many=2):
    def part(rows, seed):
        found = half(rows, seed)
        group = torch.arange(rows).div(2, rounding_mode="floor") % many
        return data.Split(found.x, found.y, group[:, None])

    held = partition.by_device(torch.arange(60) // 30, torch.arange(30) // 15)
    return data.Dataset("walks", part(60, 0), part(30, 1), 2), lambda seed: held


def apart():
    rows, _ = grouped()
    held = partition.by_device(rows.train.groups[:, 0], rows.test.groups[:, 0])
    return rows, lambda seed: held


def three():
    return grouped(3)


def unheard():
    rows, _ = grouped()
    test = torch.arange(30)[torch.arange(30) % 4 < 3]  # no row of class 1 of group 1
    tests = [test[::2], test[1::2]]
    held = partition.ClientIndices.from_lists
    found = partition.Partition("mine", held([range(30), range(30, 60)]), None, held(tests))
    return rows, lambda seed: found


def sometimes():
    rows, deal = walks()
    return rows, lambda seed: deal(seed) if seed == 0 else {}["nobody"]


def wrong():
    raise ValueError("no file")


few = 3
"""
HOW = dict(scale="smoke", seeds=(0,), workers=1, skip_contract=True)


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


def test_adversaries_play_where_your_rows_have_groups(mine, tmp_path):
    lines = compare(FedAvg, data=f"{mine}:grouped", out=tmp_path / "a", **HOW)
    assert not lines.attrs["left_out"]
    assert {"FADE's game", "LG-FedAvg with adversary"} <= set(lines["other"])
    assert {"leak_auc", "odds_gap"} <= set(lines["measure"])


def test_a_private_adversary_needs_a_device_with_both_groups(mine):
    cells = [
        Others(mine.parent, read(f"{mine}:{name}")).settings("paper").cells
        for name in ("grouped", "apart")
    ]
    assert [any(":lg_fedavg_adv:" in name for name in one) for one in cells] == [True, False]
    assert all(any(":fade:" in name for name in one) for one in cells)


def test_rows_become_vectors_and_a_fifth_of_each_device_validates(mine):
    task = read(f"{mine}:walks")
    assert task.inputs == 6 and task.partition(0).validation.size.tolist() == [3] * 4


def test_data_of_another_text_is_another_run(mine):
    before = read(f"{mine}:walks").fingerprint
    mine.write_text(DATA.replace("randn", "rand"))
    assert read(f"{mine}:walks").fingerprint != before


def test_other_rows_by_the_same_code_are_another_run(mine):
    rows, deal = source.load(f"{mine}:walks")()

    def fingerprint(shift, held):
        train = replace(rows.train, x=rows.train.x + shift)
        return read(lambda: (replace(rows, train=train), lambda seed: held)).fingerprint

    other = by_device(torch.arange(60) % 4, torch.arange(30) % 4)
    found = [fingerprint(*one) for one in ((0, deal(0)), (1, deal(0)), (0, other), (0, deal(0)))]
    assert len(set(found)) == 3 and found[0] == found[3]


def test_a_method_without_its_whole_sweep_is_left_out(mine, tmp_path):
    others = Others(tmp_path, read(f"{mine}:walks"))
    cfg = others.settings("smoke", lrs=(0.01, 0.05), methods=("fedavg",))
    found = others.measure(cfg, [0], workers=1)
    first = found[found["lr"] == 0.01]  # as where the time was up
    assert len(claims.chosen(found, 2)) == 1 and claims.chosen(first, 2).empty


@pytest.mark.parametrize(
    ("name", "said"),
    {
        "few": "data is 3; give a function",
        "wrong": "the data cannot be made: .*no file",
        "alone": "alone gives Dataset, NoneType; give a function",
        "lonely": "device 1 has 0 test rows and needs 1; leave it out",
        "other": "deal.0.: device 4 holds row",
        "missing": "has nothing called 'missing'",
        "three": r"groups of train rows are \[60, 1\], \[0, 1, 2\]; give both parts",
        "unheard": "no test row of class 1 is of group 1",
    }.items(),
)
def test_what_is_no_data_is_refused_by_name(mine, name, said):
    with pytest.raises(SettingsError, match=said):
        read(f"{mine}:{name}")


def test_time_that_lasts_for_no_sweep_is_said(mine, tmp_path):
    how = HOW | dict(out=tmp_path / "a", rates=(0.01, 0.05), hours=1e-6)
    with pytest.raises(SettingsError, match="no other method .* the time was up.* more --hours"):
        compare(FedAvg, data=f"{mine}:walks", **how)


def test_what_is_dealt_is_tried_with_all_seeds(mine):
    assert read(f"{mine}:sometimes").mixed is False
    with pytest.raises(SettingsError, match="deal.1.: KeyError.*nobody"):
        read(f"{mine}:sometimes", (0, 1))


def test_on_the_command_line_tasks_and_data_exclude_each_other(mine, tmp_path, capsys):
    typed = f"compare lgfed_core:FedAvg --data {mine}:walks --tasks mnist --scale smoke".split()
    assert main([*typed, "--out", str(tmp_path / "b")]) == 1
    assert "tasks are of our own data" in capsys.readouterr().err
