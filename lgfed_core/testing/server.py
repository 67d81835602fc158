"""Promises about what leaves a device, and what the server makes of it."""

from itertools import product

import numpy as np
import torch
from torch import Tensor

from lgfed_core.engine import Participation
from lgfed_core.engine.rounds import participants
from lgfed_core.methods import Arrived, Method

from .promise import NotTested, apart, expect, near, promise
from .stage import Listens, Stage

# a server that never moves
STAY = dict(server_memory=0, merge=None, server_update=lambda before, average: before.clone())
LEAK = 0.001  # of the private numbers, found again among those sent, beside those by chance,
FEW, MORE = 8, 3  # and so many more by chance, where they are not few
STEPS = torch.tensor([*range(-8, 0), *range(1, 9)])  # to numbers that no device could know,
STEP = 2.0**-18  # of the largest: first weights are on a grid, and stay on it


@promise(
    "what `shared` names leaves a device, and nothing else; only the server moves it",
    "let `upload` pass on what the shared parameters became, and nothing that the loss has put "
    "aside; let no method write on `net`",
)
def leaves(stage: Stage) -> None:
    due = frozenset(stage.fresh().shared(stage.net))
    for kind in stage.lanes:
        ear = Listens()
        method = stage.fresh(**STAY, upload=[*stage.method.upload, ear])
        found = stage.go(method, rounds=2, lanes=kind)
        shared, personal = found.tensors["shared"][0], found.tensors["personal"][0]
        start = found.layout.split(stage.start)
        here = {n: p.numel() for n, p in stage.net.named_parameters()}
        expect(torch.equal(shared, start[0]), "what is shared has moved, and no server moved it")
        expect(set(found.layout.shared) & here.keys() == due, f"sent is {found.layout.shared}")
        size = found.layout.size_shared
        expect(len(ear.sent) == 2 * len(stage.sizes), f"{len(ear.sent)} uploads in two rounds")
        expect(all(len(sent) == size for sent in ear.sent), "uploads of another size")
        all_sent = [(sent, sent.unique(), _pairs(sent)) for sent in ear.sent]
        owned = [_numbers(own) for own in (personal, start[1])]
        for (sent, known, near_by), (mine, pairs, others) in product(all_sent, owned):
            many, together = _among(mine, known), _among(pairs, near_by)
            chance = _among(others, known) / len(STEPS)
            most = LEAK * len(mine) + chance + 4 * chance**0.5 + MORE * (len(mine) >= FEW)
            few = many <= most and together <= LEAK * len(pairs)
            expect(few, f"{many} private numbers among those sent, in {kind} lanes")
            expect(not due or not torch.equal(sent, start[0]), "a device sends what it received")


def _numbers(own: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Private numbers [..., P]: each but zeros, `_pairs`, and others that are as likely to be found
    by chance [16, numbers]."""
    mine = own[(own != 0) & own.isfinite()].unique()
    step = STEP * 2 ** mine.abs().max().log2().ceil() if len(mine) else 0
    return mine, _pairs(own), mine + step * STEPS.unsqueeze(1)


def _among(values: Tensor, others: Tensor) -> int:
    """How many of ``values`` are among ``others`` [P], which ascend; `torch.isin` sorts both."""
    if not len(others):
        return 0
    at = torch.searchsorted(others, values).clamp(max=len(others) - 1)
    return int((others[at] == values).sum())


def _pairs(values: Tensor) -> Tensor:
    """Each of ``values`` [..., P] with its neighbour, as whole numbers, but for zeros: single ones
    are found again by chance, these hardly ever."""
    bits = values.float().contiguous().view(torch.int32).long()
    pairs = (bits[..., :-1] << 32) | (bits[..., 1:] & 0xFFFFFFFF)
    return pairs[(values[..., :-1] != 0) & (values[..., 1:] != 0)].unique()


@promise(
    "weights are at least 0, sum to one, and go with their devices",
    "let weights(rows) give rows / rows.sum(), or a tensor [m] as that, or None",
    trains=False,
)
def weights(stage: Stage) -> None:
    method, rng = stage.fresh(), np.random.default_rng(0)
    for m in (1, 2, 4, 100):
        for most in (2, 1_000, 10**9):
            rows = torch.from_numpy(rng.integers(1, most, m))
            found = method.weights(rows)
            if found is None:  # 1/m everywhere
                continue
            expect(isinstance(found, Tensor), f"a {type(found).__name__}, and no tensor")
            expect(found.shape == (m,), f"shape {list(found.shape)} for {m} devices")
            expect((found >= 0).all(), f"a weight of {float(found.min()):.3g}")
            total = found.double().sum().item()
            expect(abs(total - 1) < 1e-5, f"a sum of {total:.4g} over {m} devices")
            order = torch.from_numpy(rng.permutation(m))
            again = method.weights(rows[order])
            same = isinstance(again, Tensor) and near(again, found[order], 1e-5, 1e-6)
            expect(same, "other weights where the same devices come in another order")


@promise(
    "where all devices send the same, that is the average",
    "let aggregate(uploads, weights) be an average, a median or the like; steps of the server "
    "belong into server_update, noise into `upload`",
    trains=False,
)
def equal_uploads(stage: Stage) -> None:
    if stage.method.merge:
        raise NotTested(f"the server of {stage.name} merges in a way of its own")
    shared = stage.fresh().shared(stage.net)
    sizes = {n: p.numel() for n, p in stage.net.named_parameters()}
    rng = torch.Generator().manual_seed(0)
    upload = torch.randn(1, sum(sizes[n] for n in shared if n in sizes) or 3, generator=rng)
    rows, method = torch.tensor(stage.sizes), stage.fresh()
    found = method.aggregate(upload.repeat(len(rows), 1), method.weights(rows))
    expect(near(found, upload[0], 1e-4, 1e-6), f"an average {apart(found, upload[0])} from it")


@promise(
    "the server moves by what arrives in a round, and by nothing else",
    "let aggregate, server_update and merge be functions of what they are given: nothing random, "
    "and nothing kept in the method",
)
def server(stage: Stage) -> None:
    ear = Listens()
    there = Participation(0.75, torch.tensor([[0.0, 0.4, 0.3, 0.3]]))  # all but the first
    method = stage.fresh(upload=[*stage.method.upload, ear])
    found = stage.go(method, stage.federation(who=there))
    if not found.layout.size_shared:
        raise NotTested(f"{stage.name} shares no parameter")
    now, before = found.tensors["shared"][0], found.layout.split(stage.start)[0]
    for seed in range(3):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)  # what it draws of its own, if anything, differs
            after = _moved(stage, before.clone(), [one.clone() for one in ear.sent])
        seen = f"after a round of three it is {apart(now, after)} from what their uploads give"
        expect(near(now, after, 1e-4, 1e-6), seen)


def _moved(stage: Stage, before: Tensor, sent: list[Tensor]) -> Tensor:
    """The server's vector [P_s] after a first round of all devices but the first."""
    method, rows = stage.fresh(), torch.tensor(stage.sizes[1:])
    memory = before.new_zeros(method.server_memory, len(before))
    if method.merge:
        training, devices = stage.small, len(stage.sizes)
        who = participants(method, training, rows, devices, training.lr, before)
        uploads = torch.stack(sent)
        return method.merge(Arrived(before=before, uploads=uploads, memory=memory, **who))[0]
    given = method.weights(rows)
    average = method.aggregate(torch.stack(sent), given)
    if type(method).aggregate is Method.aggregate:
        each = [1 / len(sent)] * len(sent) if given is None else given.tolist()
        average = torch.stack([w * one for w, one in zip(each, sent, strict=True)]).sum(0)
    return method.server_step(before, average, memory)[0]
