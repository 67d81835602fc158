"""What every method promises, whoever wrote it: found by walking the subclasses of `Method`.

A new method is tested without a line here, unless it asks for a setting that no other has. All
train one network that has every part that any of them asks for (`Everything`).

Renaming clients: random streams belong to a client's number. So two things hold: a client that
moves to another number *with its rows and its streams* learns the same, in whatever order the
server adds; and where nothing is random (full batches, no noise, no lots) the streams need not
move. One exception: what an objective draws from PyTorch's generator (`Pretext`) is drawn in
batched lanes for the whole stack, so that there it belongs to a place, and not to a client.
"""

import warnings
from dataclasses import MISSING, fields, replace
from functools import partial
from importlib import import_module
from pkgutil import iter_modules

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from lgfed_core import methods
from lgfed_core.data import Dataset, Split
from lgfed_core.engine import (
    Federation,
    LocalTraining,
    Participation,
    batched,
    given,
    looped,
    rounds as rounds_of,
    run,
)
from lgfed_core.errors import LgfedError
from lgfed_core.methods import Method
from lgfed_core.methods.privacy import Privacy
from lgfed_core.models.gated_unit import CGAU
from lgfed_core.models.layout import joined
from lgfed_core.partition import ClientIndices, Partition

FOUR = 4  # inputs (a picture of 2 x 2), classes, attributes, answers of a pretext task
SIZES = (2, 5, 3, 4)  # rows of the clients
NEAR = dict(rtol=1e-4, atol=1e-5)
LANES = ("looped", "batched")
FULL, SMALL = (LocalTraining(lr=0.1, batch_size=n, momentum=0.5) for n in (8, 3))


class Everything(nn.Module):
    """A gated unit with client rows, heads, and all who look at h: each part that a method names.

    tanh and no ReLU, so that every parameter moves.
    """

    layers = ("local", "head", "classifier")
    clients, outputs = 1, FOUR

    def __init__(self):
        super().__init__()
        self.local = CGAU(FOUR, 6, 1)
        self.head, self.classifier = nn.Linear(6, 5), nn.Linear(5, FOUR)
        self.own, self.adversary, self.discriminator = (nn.Linear(6, FOUR) for _ in range(3))

    def forward(self, x, own=False, watch=None, features=False):
        h = self.local(x, x.new_ones(*x.shape[:-1], 1))  # [b, 6]
        outputs = self.own(h) if own else self.classifier(self.head(h).tanh())
        if features:
            return torch.cat([outputs, F.pad(h, (0, 250))], -1)  # as wide as SHOT's
        if watch is None:
            return outputs
        seen = watch(h)
        return outputs, self.own(seen) + self.adversary(seen) + self.discriminator(seen)


def starting(net: nn.Module, *parts: str) -> frozenset[str]:
    return frozenset(n for n, _ in net.named_parameters() if n.split(".")[0] in parts)


def everything(seed: int = 0) -> Everything:
    """No parameter is zero, or like another."""
    net, rng = Everything(), torch.Generator().manual_seed(seed)
    for p in net.parameters():
        p.data = 0.5 * torch.randn(p.shape, generator=rng)
    return net


NET = everything()
ASKED = {  # settings without a default
    "layers": starting(NET, "head", "classifier"),
    "auxiliary": starting(NET, "own"),
    "task": "rotation",
}
MORE = {  # settings that go another way through the same class
    "FADE": [dict(opt_out=0.5, power=2.0)],
    "FairLGFedAvg": [dict(lambda_local=0.3, lambda_global=0.7, play="reversal")],
    "ClientBaseline": [dict(cap=4, per=2)],
    "FedAvg": [dict(weighted=False)],
}


def classes(root: type = Method) -> list[type]:
    """Every method of the room, in the order of its modules."""
    for found in iter_modules(methods.__path__):
        import_module(f"{methods.__name__}.{found.name}")
    below = [c for child in root.__subclasses__() for c in (child, *classes(child))]
    return [c for c in dict.fromkeys(below) if c.__module__.startswith(f"{methods.__name__}.")]


def made(kind: type, **settings) -> Method:
    due = [f.name for f in fields(kind) if f.default is MISSING and f.default_factory is MISSING]
    unknown = [name for name in due if name not in ASKED]
    assert not unknown, f"{kind.__name__} asks for {unknown}: say in ASKED what it gets here"
    return kind(**{name: ASKED[name] for name in due} | settings)


CASES = {
    kind.__name__ + "".join(f", {n}={v}" for n, v in settings.items()): (kind, settings)
    for kind in classes()
    for settings in ({}, *MORE.get(kind.__name__, ()))
}
every = pytest.mark.parametrize("case", CASES)
both = pytest.mark.parametrize("lanes", LANES)


def federation(order=range(4), sizes=SIZES, who: Participation | None = None) -> Federation:
    """Client k has the rows of client ``order[k]``; what is no client's comes first (row 0)."""
    rng = torch.Generator().manual_seed(1)
    total = 1 + sum(sizes)

    def rows(n: int) -> Split:
        y = torch.arange(n) % FOUR
        x = torch.randn(n, FOUR, generator=rng) + 1.5 * torch.eye(FOUR)[y]
        return Split(x, y, torch.randint(2, (n, FOUR), generator=rng))

    held = (1 + torch.arange(sum(sizes))).split(list(sizes))
    tests = ClientIndices.from_lists(torch.arange(20).tensor_split(len(sizes)))
    train = ClientIndices.from_lists([held[k] for k in order])
    data = Dataset("four", rows(total), rows(20), FOUR)
    part = Partition("four", train, None, tests)
    return Federation(data, [part], NET, [3], participation=who or Participation())


def go(method: Method, fed: Federation | None = None, rounds=1, lanes="looped", training=SMALL):
    return run(fed or federation(), method, training, rounds, lanes=lanes, workers=1)


def models(outcome) -> torch.Tensor:
    t = outcome.tensors
    return outcome.layout.join(t["shared"][:, None], t["personal"])[0]  # [K, P]


def chance(change, monkeypatch) -> None:
    """Change the number of the client in whatever is drawn for one."""
    for room in (looped, given):
        visits, coin = room.visits, room.coin
        monkeypatch.setattr(
            room, "visits", lambda s, t, k, *more, f=visits: f(s, t, change(k), *more)
        )
        monkeypatch.setattr(room, "coin", lambda s, t, k, f=coin: f(s, t, change(k)))
    for room in (looped, batched):
        monkeypatch.setattr(
            room, "draw", lambda s, t, *k, f=room.draw: f(s, t, *(change(one) for one in k or (0,)))
        )
    stream = rounds_of.stream
    monkeypatch.setattr(
        rounds_of, "stream", lambda s, p, t, *k: stream(s, p, t, *(change(one) for one in k))
    )


ORDER = [3, 0, 2, 1]  # the client that is now called k was ORDER[k]


def test_every_method_is_here():
    names = {kind.__name__ for kind in classes()}
    assert {"FedAvg", "LGFedAvgV1", "ReleasedMTL", "Pretext", "CDANSHOT", "QFFL"} <= names
    public = {n for n in vars(methods) if isinstance(c := getattr(methods, n), type) and c in names}
    assert public <= names


@both
@every
def test_renaming_clients_changes_their_order_and_nothing_else(case, lanes, monkeypatch):
    kind, settings = CASES[case]
    method = made(kind, **settings)
    full = partial(go, method, rounds=2, lanes=lanes, training=FULL)
    one = models(full())
    with monkeypatch.context() as patch:
        chance(lambda k: k + 50, patch)
        noisy = not torch.allclose(one, models(full()), 1e-4)
    if not noisy:
        torch.testing.assert_close(models(full(federation(ORDER))), one[ORDER], **NEAR)
    if noisy and lanes == "batched" and "opt_out" not in settings:
        assert kind.__name__ == "Pretext"  # the exception: a stack draws together
        return
    method = replace(method, upload=[] if method.needs_peers else [Privacy(1.0, 0.1)])
    found = go(method, lanes=lanes)
    one = models(found)
    chance(lambda k: ORDER[k], monkeypatch)
    other = models(go(method, federation(ORDER), lanes=lanes))
    torch.testing.assert_close(other, one[ORDER], **NEAR)
    if found.layout.size_personal:
        assert not torch.allclose(one[ORDER], one, 1e-3)  # there was something to move


@every
def test_weights_sum_to_one_and_go_with_their_clients(case):
    kind, settings = CASES[case]
    method, rng = made(kind, **settings), np.random.default_rng(0)
    for m in (1, 2, 4, 100):
        for most in (2, 1_000, 10**9):
            rows = torch.from_numpy(rng.integers(1, most, m))
            weights = method.weights(rows)
            if weights is None:  # 1/m everywhere
                continue
            assert weights.shape == (m,) and (weights >= 0).all()
            assert weights.double().sum().item() == pytest.approx(1, abs=1e-5)
            order = torch.from_numpy(rng.permutation(m))
            torch.testing.assert_close(method.weights(rows[order]), weights[order])
    uploads = torch.randn(1, 3)
    same = method.aggregate(uploads.expand(4, -1), method.weights(torch.tensor(SIZES)))
    torch.testing.assert_close(same, uploads[0])  # what all send is the average


@both
@every
def test_no_rounds_and_no_steps_change_nothing(case, lanes):
    kind, settings = CASES[case]
    method = made(kind, **settings)
    for rounds, training in ((0, SMALL), (1, replace(SMALL, lr=0.0))):
        found = go(method, rounds=rounds, lanes=lanes, training=training)
        start = found.layout.split(joined(NET))
        assert (found.tensors["personal"][0] == start[1]).all()  # to the bit
        torch.testing.assert_close(found.tensors["shared"][0], start[0])  # an average rounds
        assert rounds or torch.equal(found.tensors["shared"][0], start[0])
    with pytest.raises(LgfedError, match="epochs 0"):
        replace(SMALL, epochs=0)


class Listens:
    """Writes down what devices send."""

    def __init__(self):
        self.sent = []

    def privatise(self, before, upload, rng):
        self.sent.append(upload.clone())
        return upload


def still(kind: type) -> type:
    """The same method with a server that never moves."""
    return type("Still", (kind,), {"server_update": lambda self, before, average: before.clone()})


@both
@every
def test_the_server_alone_moves_what_is_shared_and_sees_nothing_else(case, lanes):
    kind, settings = CASES[case]
    ear = Listens()
    method = made(still(kind), **settings, upload=[ear])
    found = go(method, rounds=2, lanes=lanes)
    shared, personal = found.tensors["shared"][0], found.tensors["personal"][0]
    start = found.layout.split(joined(NET))
    assert torch.equal(shared, start[0])  # though everybody has trained, twice
    names, here = method.shared(NET), dict(NET.named_parameters())
    assert frozenset(found.layout.shared) == names
    assert len(ear.sent) == 2 * len(SIZES)
    assert all(len(sent) == sum(here[n].numel() for n in names) for sent in ear.sent)
    kept = [set(v.flatten().tolist()) for v in (personal, start[1])]
    for sent in ear.sent:
        assert not set(sent.tolist()) & (kept[0] | kept[1])  # not one personal number
        assert not names or not torch.equal(sent, start[0])  # it has learnt something
    assert not found.layout.size_personal or not torch.equal(personal[0], start[1])


@every
def test_a_weighted_average_of_who_is_there_moves_the_server(case):
    kind, settings = CASES[case]
    ear = Listens()
    method = made(kind, **settings, upload=[ear])
    there = Participation(0.75, torch.tensor([[0.0, 0.4, 0.3, 0.3]]))  # all but the first
    found = go(method, federation(who=there))
    before = found.layout.split(joined(NET))[0]
    weights = method.weights(torch.tensor(SIZES[1:]))
    weights = torch.full((3,), 1 / 3) if weights is None else weights
    average = sum(w * sent for w, sent in zip(weights.tolist(), ear.sent, strict=True))
    torch.testing.assert_close(
        found.tensors["shared"][0], method.server_update(before, average), rtol=1e-4, atol=1e-6
    )


def breaking(kind: type) -> type:
    """The same method, of which the losses of the client with bright rows are NaN."""

    def steps(self, net):
        def loss(local, batch, of):
            value = of(local, batch)
            return value * torch.where((batch.x[:, 0] > 50).any(), float("nan"), 1.0)

        return [s._replace(loss=partial(loss, of=s.loss)) for s in super(found, self).steps(net)]

    found = type("Breaking", (kind,), {"steps": steps})
    return found


def with_bright(fed: Federation, client: int = 2) -> Federation:
    fed.data.train.x[fed.partitions[0].train.of(client), 0] = 100.0
    return fed


@both
@every
def test_a_client_that_breaks_is_named_and_never_averaged(case, lanes):
    kind, settings = CASES[case]
    method = made(breaking(kind), **settings)
    sends = bool(method.shared(NET)) or method.needs_peers
    with pytest.warns(RuntimeWarning) as said:
        ends = go(method, with_bright(federation()), lanes=lanes)
    others = models(ends)[[0, 1, 3]]
    assert others.isfinite().all()
    if not sends:  # its numbers are its own affair
        assert "no longer finite" in str(said[0].message)
        return
    assert ends.diverged == {3: 1} and "round 1: what client 2 sent is" in str(said[0].message)
    assert torch.equal(others, joined(NET).expand_as(others))  # as the run began

    with pytest.warns(RuntimeWarning, match="what client 2 sent .* is kept out"):
        out = go(method, with_bright(federation(who=Participation(keep_out=True))), lanes=lanes)
    assert out.diverged == {} and models(out).isfinite().all()
    if method.needs_peers or (lanes == "batched" and kind.__name__ == "Pretext"):
        return  # it was there before; a smaller stack draws other answers
    there = Participation(0.75, torch.tensor([[1 / 3, 1 / 3, 0.0, 1 / 3]]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        without = go(method, with_bright(federation(who=there)), lanes=lanes)
    torch.testing.assert_close(models(out), models(without))


@both
@every
def test_a_client_with_one_row_or_none_works(case, lanes):
    kind, settings = CASES[case]
    found = go(made(kind, **settings), federation(sizes=(0, 1, 4, 0)), lanes=lanes)
    assert models(found).isfinite().all() and found.diverged == {}
    start = found.layout.split(joined(NET))[1]
    assert (found.tensors["personal"][0, [0, 3]] == start).all()  # nothing to learn from


def test_clients_without_rows_alone_move_nothing_and_are_refused_where_nobody_has_any():
    method = methods.FedAvg()
    there = Participation(0.5, torch.tensor([[0.5, 0.0, 0.0, 0.5]]))
    for lanes in LANES:
        found = go(method, federation(sizes=(0, 1, 4, 0), who=there), lanes=lanes)
        assert torch.equal(found.tensors["shared"][0], joined(NET)) and found.diverged == {}
        with pytest.raises(LgfedError, match="no device of run 0 has a training row"):
            go(method, federation(sizes=(0, 0, 0, 0)), lanes=lanes)
