"""Nodes in one process: the engine's numbers, what crosses the wire, and nodes that go wrong."""

import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest
import torch

pytest.importorskip("flwr", reason="needs the extra 'flower'")

from flwr.app import Array, ArrayRecord, Message, MetricRecord

from lgfed_core.engine import LocalTraining, Participation, rounds, run
from lgfed_core.engine.optimiser import AdamTraining
from lgfed_core.errors import DataError, LgfedError, SettingsError
from lgfed_core.flower import client, server, wire, write_nodes
from lgfed_core.flower.client import Seat
from lgfed_core.flower.nodes import Node
from lgfed_core.methods import (
    FADE,
    MTL,
    ClientRowsAveraged,
    ClientRowsKept,
    FedAvg,
    FedNova,
    LGFedAvg,
)
from lgfed_core.methods.privacy import Privacy
from lgfed_core.models import make
from lgfed_core.models.cgau import GatedMLP
from lgfed_core.models.layout import joined
from lgfed_core.partition import ClientIndices
from lgfed_core.seeds import Purpose, stream
from near import RUN, near, planned
from toy import ABOVE, SGD, grouped, toy_federation

KEPT = LocalTraining(lr=0.1, batch_size=4, momentum=0.9, keep_momentum=True, decay=0.1)

few = partial(toy_federation, devices=4)


def gated():
    return toy_federation(devices=4, net=make(partial(GatedMLP, 8, 4, 3), 0))


CASES = {
    "FedAvg": (few, FedAvg(), SGD),
    "some of them": (partial(few, fraction=0.5), FedAvg(weighted=False), SGD),
    "LG-FedAvg": (few, LGFedAvg(layers=ABOVE), KEPT),
    "FedNova": (partial(few, fraction=0.5), FedNova(), SGD),
    "CGAU": (gated, ClientRowsKept(), AdamTraining(lr=0.01, batch_size=4)),
    "FADE": (grouped, FADE(rounds=3, power=2.0, opt_out=0.3), SGD),
    "normalised": (partial(grouped, normalised=True), FADE(batch_norm="averaged"), SGD),
    "private": (few, FedAvg(upload=[Privacy(clip=0.1, noise=0.5)]), SGD),
}


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    monkeypatch.setattr(server, "POLL", 0.0)


@pytest.mark.parametrize("case", CASES)
def test_nodes_end_where_the_engine_ends(case, tmp_path, monkeypatch):
    build, method, training = CASES[case]
    federation = build()
    there, _ = near(tmp_path, federation, method, training=training)
    monkeypatch.setattr(client, "secret", lambda: np.random.default_rng(5))
    monkeypatch.setattr(rounds, "stream", _with_noise_of_5)
    found = there.run()
    due = run(federation, method, training, rounds=3, workers=1)
    torch.testing.assert_close(found, due.tensors["shared"][0], rtol=0, atol=1e-6)
    assert not torch.allclose(found, there.plan.first(), atol=1e-3)
    for k in {k for t in range(3) for k in there.plan.chosen(t)}:  # who has taken part
        own = Node(tmp_path / f"node-{k}").personal(RUN)
        torch.testing.assert_close(own, due.tensors["personal"][0, k], rtol=0, atol=1e-6)


def _with_noise_of_5(seed: int, purpose: Purpose, *more: int) -> np.random.Generator:
    return np.random.default_rng(5) if purpose is Purpose.PRIVACY else stream(seed, purpose, *more)


def test_noise_on_a_node_follows_from_nothing_that_the_server_knows(tmp_path):
    federation = few()
    write_nodes(tmp_path, federation.data, federation.partitions[0])

    def sent(noise: float, run: int) -> torch.Tensor:
        plan = planned(federation, FedAvg(upload=[Privacy(clip=0.1, noise=noise)]))
        start = wire.arrays(plan.layout, plan.first())
        seat = Seat(plan, Node(tmp_path / "node-0"), run)
        return wire.vector(plan.layout, seat.train(start, 0))

    drawn_anew = (sent(0.5, 1) - sent(0.5, 2)).std()  # that of one seed would be equal
    assert drawn_anew > 0.3 * 0.1 * 0.5
    assert torch.equal(sent(0.0, 3), sent(0.0, 4))


@pytest.mark.parametrize("case", ["FedAvg", "LG-FedAvg", "CGAU", "FADE"])
def test_nothing_but_shared_parameters_and_counts_crosses_the_wire(case, tmp_path):
    build, method, training = CASES[case]
    federation = build()
    there, grid = near(tmp_path, federation, method, training=training, rounds=2)
    there.run()
    there.test()
    sizes = {n: 4 * p.numel() for n, p in federation.net.named_parameters()}
    shared = {n: sizes[n] for n in method.shared(federation.net)}
    told = {"train": {"round", "chosen"}, "evaluate": set()}
    said = {"train": {"client", "rows"}, "evaluate": {"client", "rows", "right"}}
    for message in grid.seen:
        kind, answer = message.metadata.message_type, message.metadata.reply_to_message_id
        records = {name: dict(record) for name, record in message.content.items()}
        arrays = records.pop("arrays", {})
        if not (answer and kind == "evaluate"):
            assert {n: a.numpy().nbytes for n, a in arrays.items()} == shared
            assert all(a.numpy().dtype == "float32" for a in arrays.values())
        assert (
            records.pop("metrics" if answer else "config").keys()
            == (said if answer else told)[kind]
        )
        assert not records
    lines = pd.read_csv(tmp_path / "out" / "wire.csv")
    heads = 128  # bytes before the numbers of an array, in numpy's own format
    arrays = lines[(lines.record == "arrays") & (lines.way == "from")]
    assert arrays.groupby("key").bytes.unique().map(list).to_dict() == {
        n: [size + heads] for n, size in shared.items()
    }
    tested = pd.read_csv(tmp_path / "out" / "tested.csv")
    assert tested.rows.tolist() == federation.partitions[0].test.size.tolist()


@pytest.mark.parametrize("client", [[1, 2], 2.5, "two"])
def test_a_node_that_says_nonsense_of_its_tests_is_left_out(client, tmp_path, caplog):
    there, grid = near(tmp_path, few(), rounds=1)
    there.run()

    def lying(said: Message) -> Message:
        content = {name: dict(record) for name, record in said.content.items()}
        told = content["metrics"] | {"client": client}
        if client == "two":
            del told["client"]
        said.content["metrics"] = MetricRecord(told)
        return said

    grid.spoil = {2: lying}
    there.test()
    assert pd.read_csv(tmp_path / "out" / "tested.csv").client.tolist() == [0, 1, 3]
    assert "what node 102 says of its test rows is left out" in caplog.text


def nan(said: Message) -> Message:
    said.content["arrays"] = ArrayRecord(
        {n: Array(a.numpy() * float("nan")) for n, a in said.content["arrays"].items()}
    )
    return said


def saying(record: str, key: str, value) -> Callable[[Message], Message]:
    """A reply with another entry; value: of what is there, or None for none."""

    def spoilt(said: Message) -> Message:
        there = said.content[record]
        if value is None:
            del there[key]
        else:
            there[key] = value(there[key]) if callable(value) else value
        return said

    return spoilt


GARBAGE = Array("float32", (6,), "numpy.ndarray", b"garbage")


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (saying("arrays", "below.bias", GARBAGE), "cannot be averaged"),
        (saying("metrics", "client", 7), r"nobody has asked it for|not connected"),
        (nan, "cannot be averaged: below.weight is not finite"),
        (
            saying("arrays", "above.weight", lambda there: Array(there.numpy().T)),
            r"cannot be averaged: above.weight is torch.float32 \[6, 3\]",
        ),
        *[
            (saying("metrics", "rows", rows), f"cannot be averaged: rows is {words}")
            for rows, words in (
                (0, "0, no whole number from 1"),
                (0.4, "0.4"),
                ([4, 4], r"\[4, 4\]"),
                (2**62, "4611686018427387904"),
            )
        ],
        (saying("arrays", "above.bias", None), r"cannot be averaged: arrays \['above.weight'"),
        (lambda said: None, "no answer in 0.2 s"),
    ],
)
def test_a_client_that_goes_wrong_is_named_and_the_others_go_on(spoil, words, tmp_path, caplog):
    federation = toy_federation(devices=3)
    there, grid = near(tmp_path, federation, rounds=1)
    grid.spoil = {1: spoil}
    found = there.run()
    history = pd.read_csv(tmp_path / "out" / "history.csv").set_index("client").what
    assert history[[0, 2]].tolist() == ["trained", "trained"]
    assert re.search(words, history[1])
    assert "round 1 goes on without client 1" in caplog.text
    sent = {
        m.content["metrics"]["client"]: m.content["arrays"].to_torch_state_dict()
        for m in grid.seen
        if m.metadata.reply_to_message_id and m.content["metrics"]["client"] != 1
    }
    size = federation.partitions[0].train.size
    weights = {k: float(size[k] / (size[0] + size[2])) for k in (0, 2)}
    due = {n: sum(weights[k] * sent[k][n] for k in (0, 2)) for n in sent[0]}
    for name, value in there.layout.views(found, found[:0]).items():
        torch.testing.assert_close(value, due[name], rtol=0, atol=1e-6)


def test_a_node_that_leaves_comes_back_with_what_it_has_kept(tmp_path):
    federation, method = toy_federation(devices=3), LGFedAvg(layers=ABOVE)
    there, grid = near(tmp_path, federation, method)
    there.round(0)
    before = Node(tmp_path / "node-1").personal(RUN)
    folder = grid.there.pop(101)
    there.round(1)
    grid.there[555] = folder  # a node that starts anew has a new number
    there.round(2)
    gone = [h for h in there.history if h["what"] == "not connected"]
    assert [(h["round"], h["client"]) for h in gone] == [(2, 1)]
    alone = run(federation, method, SGD, 1, workers=1).tensors["personal"][0, 1]
    torch.testing.assert_close(before, alone)
    after = Node(tmp_path / "node-1").personal(RUN)
    start = there.layout.split(joined(federation.net))[1]
    assert 0 < (after - before).norm() < (after - start).norm()


def test_who_comes_late_or_answers_late_is_named_and_taken_once_it_is_in_time(tmp_path):
    held: list[Message] = []
    there, grid = near(tmp_path, toy_federation(devices=3))
    absent = grid.there.pop(102)
    there.round(0)
    grid.there[102], grid.spoil = absent, {1: held.append}
    there.round(1)
    grid.spoil, (late,) = {}, held
    grid.waiting[late.metadata.reply_to_message_id] = late  # a round after it was asked for
    before, passed = there.shared, len(grid.seen)
    there.round(2)
    words = {(h["round"], h["client"]): h["what"] for h in there.history}
    assert (words.pop((1, 2)), words.pop((2, 1))) == ("not connected", "no answer in 0.2 s")
    assert set(words.values()) == {"trained"}
    replies = [m.content for m in grid.seen[passed:] if m.metadata.reply_to_message_id]
    updates = {
        r["metrics"]["client"]: (wire.vector(there.layout, r["arrays"]), r["metrics"]["rows"])
        for r in replies
    }
    merged, _ = there.plan.merged(2, before, updates, there.memory)
    assert updates.keys() == {0, 1, 2} and there.shared.equal(merged)


def bright(by: float):
    """Three devices, of which the rows of client 2 are so many times as large."""
    federation = toy_federation(devices=3)
    federation.data.train.x[federation.partitions[0].train.of(2)] *= by
    return federation


def test_a_node_whose_training_explodes_stays_as_it_was(tmp_path):
    there, _ = near(tmp_path, bright(1e38), training=replace(SGD, epochs=3), rounds=1)
    assert there.run().isfinite().all()
    assert ["not finite" in h["what"] for h in there.history] == [False, False, True]
    assert not (tmp_path / "node-2" / f"run-{RUN}.safetensors").exists()


def test_a_node_whose_own_part_explodes_is_named_though_what_it_shares_is_finite(tmp_path):
    class Bursts(LGFedAvg):
        def loss(self, local, batch):
            steep = torch.inf if local.round == 1 else 0.0
            own = torch.where(batch.x.abs().amax() > 50, steep, 0.0)  # client 2 alone has such rows
            return super().loss(local, batch) + own * local.params["below.weight"][0, 0]

    one_step = replace(SGD, batch_size=100)  # after which its own part is not finite
    there, _ = near(tmp_path, bright(100), Bursts(layers=ABOVE), training=one_step)
    there.round(0)
    kept = Node(tmp_path / "node-2").personal(RUN)
    there.round(1)
    assert "not finite" in there.history[-1]["what"] and there.history[-1]["client"] == 2
    assert torch.equal(Node(tmp_path / "node-2").personal(RUN), kept)


def test_a_node_that_goes_too_far_is_named_as_the_engine_names_it(tmp_path):
    """It is out of the average, and keeps what it had, as with `Participation(keep_out=True)`."""
    who = Participation(keep_out=True, farthest=50.0)
    federation, method = replace(bright(1e4), participation=who), LGFedAvg(layers=ABOVE)
    there, _ = near(tmp_path, federation, method)
    there.round(0)
    assert "from what it received, farther than 50" in there.history[2]["what"]
    assert [h["what"] for h in there.history[:2]] == ["trained"] * 2
    assert not (tmp_path / "node-2" / f"run-{RUN}.safetensors").exists()
    with pytest.warns(RuntimeWarning, match="client 2 sent is .* farther than 50; it is kept out"):
        due = run(federation, method, SGD, 1, workers=1)
    torch.testing.assert_close(there.shared, due.tensors["shared"][0], rtol=0, atol=1e-6)


def test_two_nodes_with_one_folder_count_once(tmp_path):
    federation = toy_federation(devices=2)
    there, _ = near(tmp_path, federation, rounds=1)
    once = there.run()
    again, grid = near(tmp_path / "b", federation, rounds=1)
    grid.there[200] = grid.there[101]
    torch.testing.assert_close(again.run(), once)


def test_what_cannot_be_done_is_refused_in_words(tmp_path):
    federation, thirds = toy_federation(devices=2), torch.full((1, 3), 1 / 3)
    with pytest.raises(SettingsError, match="MTL needs the other clients' models"):
        planned(federation, MTL())
    with pytest.raises(SettingsError, match="ClientRowsAveraged needs each client's weight"):
        planned(gated(), ClientRowsAveraged())
    for words, wrong in (
        ("rounds is 2.5", dict(rounds=2.5)),
        ("clients is 1.5", dict(clients=1.5)),
        ("rounds is 1,000,000,000; it must be at most 1,000,000", dict(rounds=10**9)),
        ("clients is 1,000,000,000; it must be at most 1,000,000", dict(clients=10**9)),
        ("seed is 0.5", dict(seed=0.5)),
        (r"availability is \[1, 3\]", dict(participation=Participation(availability=thirds))),
        ("nowhere", dict(method=LGFedAvg(layers={"nowhere.weight"}))),
    ):
        with pytest.raises(SettingsError, match=words):
            replace(planned(federation, FedAvg()), **wrong)
    held = ClientIndices.from_lists([[0, 1], []])
    bare = replace(federation.partitions[0], train=held, validation=None)
    with pytest.raises(SettingsError, match=r"devices \[1\] of toy have no training rows"):
        write_nodes(tmp_path / "none", federation.data, bare)
    assert not (tmp_path / "none").exists()
    (tmp_path / "rows.safetensors").write_bytes(b"nonsense")
    with pytest.raises(DataError, match="holds no rows of a node"):
        Node(tmp_path)
    there, grid = near(tmp_path, federation)
    one = there.plan = replace(there.plan, clients=1)
    grid.app = client.client_app(lambda config: one)
    there.run()
    assert {h["client"] for h in there.history} == {0}
    with pytest.raises(SettingsError, match="node-1 is client 1, but this run has 1, numbered"):
        Seat(one, Node(tmp_path / "node-1"), RUN)
    grid.there[100] = ""
    there.round(0)
    errors = [said.error.reason for said in grid.seen if said.has_error()]
    assert ["this node was started without a folder" in error for error in errors] == [True]
    grid.there = {}
    there.timeout = 0.0
    with pytest.raises(LgfedError, match="no node came in"):
        there.run()


def test_what_a_node_has_kept_is_whole_and_of_this_run_or_refused_by_name(tmp_path):
    kept, own = tmp_path / "node-0" / f"run-{RUN}.safetensors", {"personal": torch.ones(1, 1, 3)}
    there, _ = near(tmp_path, toy_federation(devices=1), LGFedAvg(layers=ABOVE), rounds=1)
    node = Node(kept.parent)
    with pytest.raises(SettingsError, match=f"has taken no part in run {RUN}"):
        node.personal(RUN)
    node.recall(RUN, own)
    there.run()
    whole = kept.read_bytes()
    with pytest.raises(DataError, match=r"has personal \[.*which run 7 does not keep; delete it"):
        node.recall(RUN, own)
    kept.write_bytes(whole[:-1])
    with pytest.raises(DataError, match=r"run-7.safetensors is damaged .*delete it"):
        node.personal(RUN)
    assert own["personal"].eq(1).all()
    there.round(0)
    assert "DataError" in there.history[-1]["what"]
    kept.write_bytes(whole)
    assert node.personal(RUN).isfinite().all()
