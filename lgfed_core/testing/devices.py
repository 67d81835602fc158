"""Promises about devices: alike whatever their number, and apart from each other."""

from collections.abc import Callable
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from typing import Any
from unittest import mock

import torch
from torch import Tensor

from lgfed_core.engine import Federation, batched, looped, round_plan, rounds, visited
from lgfed_core.engine.participation import Participation
from lgfed_core.errors import LgfedError, in_a_line
from lgfed_core.methods import Batch, Local, Method
from lgfed_core.methods.privacy import Privacy

from .promise import Broken, NotTested, apart, expect, near, promise
from .stage import Listens, Stage, models

ORDER = [3, 0, 2, 1]  # the device that is now called k was ORDER[k]
BRIGHT = 100.0  # the first number of rows of which the loss breaks
BROKEN = 2  # the device that holds them


@contextmanager
def chance(change: Callable[[int], int]):
    """Change the number of the device in whatever is drawn for one."""

    def moved(drawn: Callable) -> Callable:
        return lambda seed, round, k, *more: drawn(seed, round, change(k), *more)

    def stacked(drawn: Callable) -> Callable:
        return lambda seed, round, *k: drawn(seed, round, *map(change, k or (0,)))

    def streamed(drawn: Callable) -> Callable:
        return lambda seed, purpose, round, *k: drawn(seed, purpose, round, *map(change, k))

    known = [(visited, "visits"), (looped, "coin"), (round_plan, "visits"), (round_plan, "coin")]
    places = [(*place, moved) for place in (*known, (looped, "draw"))]
    places += [(batched, "draw", stacked), (rounds, "stream", streamed)]
    with ExitStack() as patches:
        for room, name, make in places:
            patches.enter_context(mock.patch.object(room, name, make(getattr(room, name))))
        yield


def _with(fed: Federation, **rows: Any) -> Federation:
    """Other training ``rows``: x, y or groups."""
    return replace(fed, data=replace(fed.data, train=replace(fed.data.train, **rows)))


@promise(
    "a device learns from no other device's rows within a round",
    "keep no numbers between devices, and let finish(trained) treat each row, a device, by itself; "
    "an objective that reads other models says needs_peers = True",
)
def own_rows(stage: Stage) -> None:
    if stage.method.needs_peers:
        raise NotTested(f"{stage.name} reads the other devices' models (needs_peers)")
    fed = stage.federation()
    first = fed.partitions[0].train.of(0)
    other = _with(fed, x=fed.data.train.x.index_copy(0, first, -fed.data.train.x[first]))
    for kind in stage.lanes:
        ears, private = [], []
        for rows in (fed, other):
            ears.append(Listens())
            found = stage.go(stage.fresh(upload=[ears[-1]]), rows, lanes=kind)
            private.append(found.tensors["personal"][0, 1:])
        said = f"device 0 got other rows, and in {kind} lanes"
        one, two = private
        expect(near(one, two), f"{said} what others keep is {apart(one, two)} away")
        for a, b in zip(*(ear.sent[1:] for ear in ears), strict=True):
            expect(near(a, b), f"{said} what others send is {apart(a, b)} away")


@promise(
    "devices in another order, with their rows and random numbers, learn the same",
    "treat uploads alike in aggregate, weights and finish, whatever their place, and let the loss "
    "keep no count",
)
def renaming(stage: Stage) -> None:
    why = ""

    def same(a: Tensor, b: Tensor, kind: str) -> None:
        said = f"devices {ORDER} called 0 to 3 end {apart(a, b)} apart, in {kind} lanes"
        expect(near(a, b), said)

    for kind in stage.lanes:
        full = partial(stage.go, rounds=2, lanes=kind, training=stage.full)
        one = models(full())
        with chance(lambda k: k + 50):
            by_chance = not torch.allclose(one, models(full()), 1e-4)
        if not by_chance:  # numbers need not move along
            same(models(full(fed=stage.federation(ORDER))), one[ORDER], kind)
        elif kind == "batched" and stage.noisy:
            why = "in batched lanes the whole stack draws random numbers together"
            continue
        kept = list(stage.method.upload)
        blurs = stage.method.needs_peers or stage.method.batch_norm == "averaged"
        method = partial(stage.fresh, upload=kept if blurs else [*kept, Privacy(1.0, 0.1)])
        found = stage.go(method(), lanes=kind)
        one = models(found)
        with chance(lambda k: ORDER[k]):
            same(models(stage.go(method(), stage.federation(ORDER), lanes=kind)), one[ORDER], kind)
        if found.layout.size_personal and torch.allclose(one[ORDER], one, 1e-3):
            why = "private parts are the same on all devices"
    if why:
        raise NotTested(why)


@promise(
    "rows without a label (-1) are refused by name, or have no label for the method either",
    "count rows with batch.y >= 0 alone in what reads labels, or leave out unlabelled = True, so "
    "that they are refused",
)
def labels(stage: Stage) -> None:
    fed = stage.federation()
    train = fed.partitions[0].train
    bare = torch.cat([train.of(1), train.of(2)[:1]])

    def called(label: int) -> Federation:
        return _with(fed, y=fed.data.train.y.index_fill(0, bare, label))

    if not stage.method.unlabelled:
        try:
            stage.go(fed=called(-1))
        except LgfedError as error:
            expect("label" in str(error), f"the error {in_a_line(error)!r}, which names no label")
            return
        raise Broken("a run on them, as if they had one")
    found = []
    for kind in stage.lanes:
        ends = stage.go(fed=called(-1), lanes=kind)
        expect(not ends.diverged and models(ends).isfinite().all(), f"NaN in {kind} lanes")
        found.append(models(ends))
    zero, one = (models(stage.go(fed=called(label))) for label in (0, 1))
    counts = near(found[0], zero, 1e-6, 1e-7) and not near(zero, one, 1e-6, 1e-7)
    expect(not counts, "they train as rows of class 0")


@promise(
    "groups that are missing are refused by name, or not needed",
    "read them by batch.attributes(kinds), which says so, or raise SettingsError in the loss",
)
def groups(stage: Stage) -> None:
    try:
        stage.go(fed=_with(stage.federation(), groups=None))
    except LgfedError as error:
        named = any(word in str(error) for word in ("no groups", "needs groups", "attributes"))
        cause = "'NoneType' object" in str(error) or "None" in str(error).split()
        expect(named and not cause, f"the error {in_a_line(error)!r}, which names no groups")


@promise(
    "a device with one row works, and one with none moves nothing",
    "divide by what may be 0 only after .clamp(min=...), and take no deviation over rows",
    finite=False,
)
def few_rows(stage: Stage) -> None:
    if stage.normalises:
        raise NotTested("batch normalisation takes no batch of one row")
    for kind in stage.lanes:
        found = stage.go(fed=stage.federation(sizes=(0, 1, 4, 0)), lanes=kind)
        fine = models(found).isfinite().all() and not found.diverged
        expect(fine, f"{kind} lanes, devices of 0, 1, 4 and 0 rows: {'; '.join(stage.said)}")
        start = found.layout.split(stage.start)[1]
        still = (found.tensors["personal"][0, [0, 3]] == start).all()
        expect(still, f"private parameters of a device without rows have moved, in {kind} lanes")


def _breaks(stage: Stage) -> Method:
    """The method, of which the losses of bright rows are NaN."""
    method = stage.fresh()
    steps = method.steps

    def loss(local: Local, batch: Batch, of) -> Tensor:
        bright = (batch.x.flatten(1)[:, 0] > BRIGHT / 2).any()
        return of(local, batch) * torch.where(bright, float("nan"), 1.0)

    def broken(net) -> list:
        return [step._replace(loss=partial(loss, of=step.loss)) for step in steps(net)]

    object.__setattr__(method, "steps", broken)
    return method


def _bright(stage: Stage, who: Participation | None = None) -> Federation:
    fed = stage.federation(who=who)
    x = fed.data.train.x.clone()
    x.flatten(1)[fed.partitions[0].train.of(BROKEN), 0] = BRIGHT
    return _with(fed, x=x)


@promise(
    "a device that sends NaN is named, and never averaged",
    "let what is not finite pass through `upload` as it is, so that the engine sees it, and "
    "multiply by no mask in the place of torch.where",
)
def not_finite(stage: Stage) -> None:
    rest = [k for k in range(4) if k != BROKEN]
    for kind in stage.lanes:
        ends = stage.go(_breaks(stage), _bright(stage), lanes=kind)
        said, others = list(stage.said), models(ends)[rest]
        expect(others.isfinite().all(), f"NaN on other devices, in {kind} lanes")
        if not (ends.layout.size_shared or stage.method.needs_peers):  # its own affair
            expect(any("no longer finite" in one for one in said), "no warning")
            continue
        named = any(f"round 1: what client {BROKEN} sent is" in one for one in said)
        expect(
            named and bool(ends.diverged), f"a loss of NaN on device {BROKEN}, and no word of it"
        )
        begun = torch.equal(others, stage.start.expand_as(others))
        expect(begun, "a run that goes on after it")
        out = stage.go(_breaks(stage), _bright(stage, Participation(keep_out=True)), lanes=kind)
        told = f"what client {BROKEN} sent"
        kept = any(told in one and "is kept out" in one for one in stage.said)
        fine = not out.diverged and models(out).isfinite().all()
        expect(kept and fine, f"device {BROKEN} is not kept out where it should be")
        if stage.method.needs_peers or (kind == "batched" and stage.noisy):
            continue  # it was there before; a smaller stack draws other numbers
        there = Participation(0.75, torch.tensor([[1 / 3 * (k != BROKEN) for k in range(4)]]))
        without = stage.go(_breaks(stage), _bright(stage, there), lanes=kind)
        expect(not stage.said, "; ".join(stage.said))
        a, b = models(out), models(without)
        expect(near(a, b, 1e-5, 1e-6), f"device {BROKEN} kept out, others are {apart(a, b)} away")
