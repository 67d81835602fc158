"""Every method on every task: what is shared and sent, who holds what, what is chosen and said."""

import pandas as pd
import pytest
import torch

from lgfed_core.data import Dataset, Split
from lgfed_core.evidence.answers import AS_CLAIMED, LEVEL
from lgfed_core.methods import FedAvg
from lgfed_core.models import count
from lgfed_core.models.cgau import client_rows
from lgfed_core.papers.everywhere import claims, tasks
from lgfed_core.papers.everywhere.methods import ENTRIES, METHODS, Entry
from lgfed_core.papers.everywhere.net import base, head
from lgfed_core.papers.everywhere.run import EVERYWHERE, TABLE
from lgfed_core.papers.everywhere.settings import RATES

SMALL = dict(tasks=("digits",), lrs=(0.1,), rounds=4, batch_size=10, probed=(40, 40))


def split(n: int, seed: int) -> Split:
    """Rows of two classes and two groups; the first number is the class, the second the group."""
    y, group = torch.arange(n) % 2, torch.arange(n) // 2 % 2
    noise = 0.1 * torch.randn(n, 4, generator=torch.Generator().manual_seed(seed))
    x = noise + torch.stack([2.0 * y - 1, 2.0 * group - 1, 0 * y, 0 * y], 1)
    return Split(x, y, group[:, None])


def toy(rows: int = 0) -> tasks.Task:
    made = Dataset("toy", split(160, 0), split(80, 1), 2)
    return tasks.Task(made, lambda *them: tasks._domains(*them, devices=2))


@pytest.fixture
def on_toy(monkeypatch):
    monkeypatch.setattr(tasks, "load", lambda name, rows: toy())


@pytest.fixture
def measured(on_toy):
    def measure(**changes) -> pd.DataFrame:
        cfg = EVERYWHERE.settings("paper", **(SMALL | changes))
        rows, _ = EVERYWHERE.run(cfg, [0], record=False, resume=False, workers=1)
        rows = rows[rows["table"] == TABLE]
        return rows.pivot_table("value", "method", "metric")

    return measure


def test_devices_of_two_domains_hold_one_each_and_every_row_once():
    task = toy()
    dealt = task.deal(task.data.train, task.data.test, 3)
    for rows, there in ((dealt.train, task.data.train), (dealt.test, task.data.test)):
        held = [rows.of(k) for k in range(len(rows))]
        assert [set(there.groups[own, 0].tolist()) for own in held] == [{0}, {0}, {1}, {1}]
        assert torch.cat(held).sort().values.tolist() == list(range(len(there)))


def test_methods_begin_alike_and_share_what_they_should():
    cfg, task = EVERYWHERE.settings("paper"), toy()
    nets = {m: cfg.net(m, task, 5) for m in METHODS}
    shares = {m: cfg.method(m, nets[m]).shared(nets[m]) for m in METHODS}
    first = dict(nets["fedavg"].named_parameters())
    for method in ("fade", "lg_fedavg_adv", "lg_fedavg", "fine_tuned"):
        mine = dict(nets[method].named_parameters())
        assert all(torch.equal(mine[name], value) for name, value in first.items())
    everything = {m: frozenset(dict(net.named_parameters())) for m, net in nets.items()}
    rows = client_rows(nets["cgau"])
    assert len(rows) == 4 and shares["cgau"] == everything["cgau"] - rows
    assert shares["lg_cgau"] == {n for n in everything["cgau"] if n.startswith("head.")} - rows
    assert shares["lg_fedavg"] == shares["lg_fedavg_adv"] == head(nets["fedavg"])
    assert shares["fade"] == everything["fade"] > everything["fedavg"]
    assert not shares["mtl"] | shares["local_only"] | shares["fine_tuned"]
    for method in ("ditto", "apfl", "pfedme"):  # one of two models
        assert count(nets[method], shares[method]) == count(nets["fedavg"])
    net = nets["fedper"]
    for method in ("fedper", "fedrep", "body"):
        assert cfg.method(method, net).shared(net) == base(net) == everything["fedper"] - head(net)


def test_what_is_sent_is_counted_by_hand(measured):
    methods = ("fedavg", "local_only", "fine_tuned", "mtl", "lg_fedavg")
    sent = measured(methods=methods, first=0.5)["megabytes"]
    net = EVERYWHERE.settings("paper").net("fedavg", toy(), 0)
    both_ways = 2 * 2 * 4 / 1e6  # two of four devices, up and down, four bytes a number
    assert sent["fedavg"] == sent["mtl"] == pytest.approx(4 * both_ways * count(net))
    assert sent["lg_fedavg"] == pytest.approx(4 * both_ways * count(net, head(net)))
    assert sent["fine_tuned"] == sent["fedavg"] / 2 and sent["local_only"] == 0


def test_who_is_served_how_well_and_who_can_be_told(measured, monkeypatch):
    found = measured(methods=("fedavg",), rounds=10).loc["fedavg"]
    assert found["local_test_acc"] == found["worst_acc"] == found["new_test_acc"] == 100
    assert found["odds_gap"] == 0 and found["leak_auc"] > 99  # the group is an input
    made = lambda *args: torch.tensor([[0.2, 0.4, 0.6, 1.0]])  # noqa: E731
    monkeypatch.setattr("lgfed_core.papers.everywhere.measures.accuracies", made)
    found = measured(methods=("fedavg",)).loc["fedavg"]
    wanted = dict(local_test_acc=55, worst_acc=20, decile_acc=26)  # 20 + 0.3 of the way to 40
    assert {name: pytest.approx(found[name]) for name in wanted} == wanted


def test_a_method_of_two_phases_has_fedavgs_way_before_its_own(on_toy):
    cfg = EVERYWHERE.settings("paper", **SMALL, methods=("fedavg", "fine_tuned"), looks=4)
    _, histories = EVERYWHERE.run(cfg, [0], record=False, resume=False, workers=1)
    one, two = (histories[f"digits:{m}:0.1"].set_index("round") for m in cfg.methods)
    assert list(two.index) == [1, 2, 3, 4] and one.loc[:3].equals(two.loc[:3])
    assert cfg.recorded == "short"


def lines(seeds=3, **values) -> pd.DataFrame:
    """Rows of the incomes: method=(local test, validation, learning rate) of seed 0."""
    found = []
    for method, (local, validation, lr) in values.items():
        for seed in range(seeds):
            metrics = dict(local_test_acc=local + 0.1 * seed, validation_acc=validation)
            metrics |= dict(decile_acc=1.0, new_test_acc=2.0, megabytes=3.0)
            ids = dict(table=TABLE, task="adult", method=method.rstrip("_"), lr=lr, seed=seed)
            found += [ids | dict(metric=m, value=v, seconds=1.0) for m, v in metrics.items()]
    return pd.DataFrame(found)


def test_a_learning_rate_is_chosen_on_validation_rows_and_not_where_it_diverged():
    rows = lines(fedavg=(90.0, 70.0, 0.05), fedavg_=(80.0, 75.0, 0.2))
    chosen = claims.of(claims.chosen(rows), "adult", "fedavg")
    assert set(chosen["lr"]) == {0.2} and set(chosen["rates"]) == {2} and len(chosen) == 3
    part = pd.concat([rows, lines(mtl=(99.0, 99.0, 0.05))])  # a sweep that has just begun
    assert claims.of(claims.chosen(part), "adult", "mtl").empty
    lost = (rows["lr"] == 0.2) & (rows["seed"] == 1)
    ended = rows[lost].iloc[:1].assign(metric="diverged", value=2.0)
    chosen = claims.of(claims.chosen(pd.concat([rows[~lost], ended])), "adult", "fedavg")
    assert set(chosen["lr"]) == {0.05} and len(chosen) == 3


def test_a_new_method_is_one_line(on_toy, monkeypatch):
    monkeypatch.setitem(ENTRIES, "median", Entry("median", lambda cfg, net: FedAvg()))
    monkeypatch.setitem(METHODS, "median", ENTRIES["median"].words)  # as the line itself makes it
    cfg = EVERYWHERE.settings("paper", **(SMALL | dict(methods=("median",))))
    rows, _ = EVERYWHERE.run(cfg, [0], record=False, resume=False, workers=1)
    values = claims.chosen(rows)
    assert "median" in values.index.get_level_values("method")


def test_a_task_without_groups_has_no_game_and_a_device_of_one_group_none_at_home():
    cells = EVERYWHERE.settings("paper").cells.values()
    games = {(t, m) for t, m, _ in cells if m in ("fade", "lg_fedavg_adv")}
    assert games == {(t, "fade") for t in ("adult", "digits", "office31")} | {
        ("adult", "lg_fedavg_adv")
    }
    assert len(cells) == len(RATES) * (5 * 20 + 4)


def test_successors_are_set_beside_lg_fedavg_task_by_task():
    rows = lines(lg_fedavg=(80.0, 70.0, 0.05), fedper=(90.0, 70.0, 0.05), ditto=(80.0, 70.0, 0.05))
    swings = rows["seed"].map({0: 0.01, 1: -0.02, 2: 0.01})
    rows["value"] += swings.where(rows["method"] != "lg_fedavg", 0.0)
    (told,) = claims.ahead_of(claims.chosen(rows), "lg_fedavg", claims.SUCCESSORS)
    found = told.lines.set_index("name")
    assert told.claim.question == "incomes: accuracy on devices' own rows"
    assert found.loc["FedPer", ["estimate", "outcome"]].tolist() == [
        pytest.approx(10.0),
        AS_CLAIMED,
    ]
    assert found.loc["Ditto", "outcome"] == LEVEL  # to the run
    assert list(found.index) == ["FedPer", "Ditto"]  # who has not run has no line
