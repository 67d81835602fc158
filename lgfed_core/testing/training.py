"""Promises about how a device trains."""

import copy
import tempfile
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import torch
import torch.nn.functional as F
from torch import Tensor

from lgfed_core.engine import Outcome, Participation, loop
from lgfed_core.engine.checks.losses import device
from lgfed_core.engine.phase import gradients
from lgfed_core.engine.sheltered import moving
from lgfed_core.errors import LgfedError, in_a_line
from lgfed_core.methods import Batch, Method, Step
from lgfed_core.models.layout import values
from lgfed_core.seeds import visits

from .network import FOUR
from .promise import NEAR, Broken, NotTested, apart, expect, near, promise
from .stage import SEED, Stage, models

ROUNDS, STOPPED = 4, 2  # of a run, and how many it has had where it is stopped
ROUNDED = 1e-3  # of how far models have moved


@promise(
    "a round on the network works, and its numbers are finite",
    "let an answer give what it has to give, where that is said; else give net=, inputs= and "
    "classes= that fit the method: the parts that it names, the rows that the network takes",
)
def trains(stage: Stage) -> None:
    expect(not stage.fault, stage.fault)
    expect(not stage.lost, stage.lost)


@promise(
    "rows of weight 0 do not count",
    "use batch.mean(...) of one number a row, which weighs rows, and no .mean(), .sum() or .max() "
    "over them",
)
def padding(stage: Stage) -> None:
    split = stage.federation().data.train.take(torch.arange(3))
    method, net = stage.fresh(), copy.deepcopy(stage.net).eval()  # no noise

    def gradient(step: Step, batch: Batch) -> list[Tensor]:
        moves = moving(net, step.params)
        local = device(net, method, moves)
        with torch.enable_grad(), torch.random.fork_rng(devices=[]):
            torch.manual_seed(SEED)
            return list(gradients(step.loss(local, batch), [local.params[n] for n in moves]))

    def batch(*, padded: bool) -> Batch:
        x, y, groups = split.x.clone(), split.y, split.groups  # a loss may write on it
        if not padded:
            return Batch(x, y, torch.full((3,), 1 / 3).to(x), groups)
        more = min(stage.classes, FOUR)  # rows like none of the others, with any label
        x = torch.cat([x, (10 - x[:1]).expand(more, *x.shape[1:])])
        y = torch.cat([y, torch.arange(more)])
        weight = torch.tensor([1 / 3] * 3 + [0.0] * more).to(x)
        groups = None if groups is None else torch.cat([groups, 1 - groups[:1].expand(more, -1)])
        return Batch(x, y, weight, groups)

    for step in method.steps(net):
        plain, padded = (gradient(step, batch(padded=one)) for one in (False, True))
        for a, b in zip(plain, padded, strict=True):
            seen = f"with such rows more the gradient is off by {apart(a, b)}"
            expect(near(a, b, 1e-4, 1e-4), seen)


@promise(
    "devices one by one (looped lanes), or all at once (batched lanes), learn the same",
    "let the loss be a function of `local` and `batch` alone, in PyTorch: no count of its calls, "
    "no `if` on tensors, no .item()",
)
def lanes(stage: Stage) -> None:
    try:
        batched = stage.go(rounds=2, lanes="batched")
    except LgfedError as error:
        raise Broken(in_a_line(error)) from error
    if stage.noisy:
        raise NotTested(f"{stage.name} or its network draws random numbers, by kind of lanes")
    one, other = models(stage.go(rounds=2)), models(batched)
    moved = float((one - stage.start).abs().max())  # large steps round more
    same = near(one, other, atol=max(NEAR[1], ROUNDED * moved))
    expect(same, f"after two rounds they are {apart(one, other)} apart")


def _why_not_plain(stage: Stage) -> str:
    """What keeps a method from being plain SGD on one device; nothing where it is meant to be."""
    method, kind = stage.fresh(), type(stage.method)
    steps = method.steps(stage.net)
    one = steps[0]
    if kind.loss is not Method.loss or getattr(one.loss, "__func__", None) is not Method.loss:
        return "its loss is not the plain cross-entropy"
    if len(steps) > 1 or one != Step(one.loss):
        return "it takes more than a plain step on each batch"
    if kind.server_update is not Method.server_update or method.server_memory or method.merge:
        return "its server moves in another way than to the average"
    if method.upload or method.finish or method.relabel:
        return "it treats uploads, what devices keep, or labels"
    if stage.noisy or stage.normalises:
        return "the network draws random numbers, or normalises batches"
    return ""


@promise(
    "one device with all rows is plain SGD",
    "look at aggregate and weights: the average of a single upload is that upload",
)
def plain_sgd(stage: Stage) -> None:
    if why := _why_not_plain(stage):
        raise NotTested(why)
    cfg, fed = stage.small, stage.federation(sizes=[sum(stage.sizes)])
    rows = fed.partitions[0].train.of(0)
    net = copy.deepcopy(stage.net).train()
    for t in range(2):
        free = [p for p in net.parameters() if p.requires_grad]
        sgd = torch.optim.SGD(free, cfg.lr, cfg.momentum)
        order = torch.from_numpy(visits(SEED, t, 0, len(rows), 1))[0]
        for at in rows[order].split(cfg.batch_size):
            sgd.zero_grad()
            F.cross_entropy(net(fed.data.train.x[at]), fed.data.train.y[at]).backward()
            sgd.step()
    plain = torch.cat([value.detach().flatten() for _, value in values(net)])
    found = models(stage.go(fed=fed, rounds=2))[0]
    expect(near(found, plain), f"after two rounds it is {apart(found, plain)} from it")


class _Stopped(BaseException):
    """As if somebody had stopped the run."""


@promise(
    "a run that is stopped goes on to the same bits",
    "keep nothing in the method, its class or its module: what a round needs of earlier ones is a "
    "parameter, or in the server's memory (`server_memory`), so that the checkpoint has it",
)
def resumes(stage: Stage) -> None:
    fed = stage.federation(who=Participation(0.5))
    training = stage.lasting
    one_round = loop.round_of

    def go(kind: str, saved: Path | None = None) -> Outcome:
        return stage.go(None, fed, ROUNDS, kind, training, saved=saved)

    for kind in stage.lanes:
        whole = go(kind)
        begun: list[tuple] = []

        def stops(*now, begun=begun):
            begun.append(now)
            if len(begun) > STOPPED:
                raise _Stopped
            return one_round(*now)

        often: Any = dict(SAVE_SECONDS=0.0, SAVE_SHARE=1e9)
        with tempfile.TemporaryDirectory() as folder:
            saved = Path(folder) / "run.safetensors"
            with suppress(_Stopped), mock.patch.multiple(loop, round_of=stops, **often):
                go(kind, saved)
            again = go(kind, saved)
        for name, tensor in whole.tensors.items():
            other, far = again.tensors[name], apart(tensor, again.tensors[name])
            same = tensor.numpy().tobytes() == other.numpy().tobytes()
            at = f"{kind} lanes, stopped after round {STOPPED} of {ROUNDS}"
            expect(same, f"{at}: {name} is {far} from that of a whole run")


@promise(
    "parameters without a gradient (requires_grad=False) stay as they are",
    "let losses that write leave them alone",
)
def frozen(stage: Stage) -> None:
    net = copy.deepcopy(stage.net)
    for p in list(net.parameters())[::2]:
        p.requires_grad_(False)
    fed = replace(stage.federation(), net=net)
    hard = replace(stage.lasting, epochs=2, weight_decay=0.1)
    for kind in stage.lanes:
        found = stage.go(fed=fed, rounds=2, lanes=kind, training=hard)
        t = found.tensors
        now = found.layout.views(t["shared"][:, None], t["personal"])  # [1, K or 1, ...]
        for name, p in net.named_parameters():
            same = p.requires_grad or bool((now[name] == p).all())
            expect(same, f"{name} has moved by {apart(now[name], p)} in {kind} lanes")


@promise(
    "no rounds, and a learning rate of 0, change nothing",
    "let server_update(before, average) and finish(trained) give what they got where nothing was "
    "learnt",
)
def nothing(stage: Stage) -> None:
    for kind in stage.lanes:
        for rounds, lr in ((0, stage.small.lr), (1, 0.0)):
            training = replace(stage.small, lr=lr)
            found = stage.go(stage.fresh(upload=()), None, rounds, kind, training)
            shared, private = found.layout.split(stage.start)
            t, many = found.tensors, "a round at rate 0" if rounds else "no round"
            said = f"after {many}, in {kind} lanes"
            if stage.normalises:  # its statistics go by the rows
                continue
            own, close = t["personal"][0], near if rounds else torch.equal  # an average rounds
            still = torch.equal(own, private.expand_as(own))
            expect(still, f"{said}, private parameters have moved")
            expect(close(t["shared"][0], shared), f"{said}, shared parameters have moved")
