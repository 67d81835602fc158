"""A node: trains by the engine's own lane on the rows in its folder, sends what is shared."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from torch import Tensor

from lgfed_core.engine import Federation
from lgfed_core.engine.divergence import wrong
from lgfed_core.engine.looped import Looped
from lgfed_core.engine.phase import Phase
from lgfed_core.engine.prepare import prepare
from lgfed_core.engine.rounds import treat
from lgfed_core.engine.trackers import Tracker
from lgfed_core.errors import SettingsError
from lgfed_core.models.layout import joined
from lgfed_core.partition import ClientIndices, Partition

from . import wire
from .nodes import Node
from .plan import Plan

WIRED = ("shared", "uploads")  # tensors of a phase that are no secret of a node


def client_app(plan_of: Callable[[Mapping[str, Any]], Plan]) -> ClientApp:
    """The ClientApp of the plan that ``plan_of`` makes of a run's configuration.

    A node is told its ``folder`` by node-config. It says who it is in every reply; one that is not
    among the chosen of a round says no more.
    """
    app = ClientApp()

    @app.train()
    def train(message: Message, context: Context) -> Message:
        node, told = _node(context), message.content["config"]
        says = {"client": node.client}
        if node.client not in told["chosen"]:
            return _reply(message, {"metrics": MetricRecord(says)})
        seat = Seat(plan_of(context.run_config), node, context.run_id)
        sent = seat.train(message.content["arrays"], told["round"])
        says["rows"] = len(node.data.train)
        return _reply(message, {"arrays": sent, "metrics": MetricRecord(says)})

    @app.evaluate()
    def evaluate(message: Message, context: Context) -> Message:
        node = _node(context)
        seat = Seat(plan_of(context.run_config), node, context.run_id)
        right = seat.right(message.content["arrays"])
        says = {"client": node.client, "right": right, "rows": len(node.data.test)}
        return _reply(message, {"metrics": MetricRecord(says)})

    return app


class Seat:
    """A client's place in a federation: one lane of the engine, at the client's own number."""

    def __init__(self, plan: Plan, node: Node, run: int):
        if not node.client < plan.clients:
            raise SettingsError(
                f"{node.folder} is client {node.client}, but this run has {plan.clients}, "
                "numbered from 0; raise clients in its configuration"
            )
        self.plan, self.node, self.run = plan, node, run
        lists = [torch.arange(len(split.y)) for split in (node.data.train, node.data.test)]
        train, test = (ClientIndices.from_lists([rows]) for rows in lists)
        alone = Partition(node.data.name, train, None, test)
        federation = Federation(node.data, [alone], plan.net, [plan.seed])
        start = joined(plan.net)[None]  # [1, P]
        one = prepare(federation, plan.method, plan.training, start, Tracker(), forked=False)
        self.own = {n: t for n, t in one.tensors.items() if n not in WIRED}
        node.recall(run, self.own)
        self.phase = _seated(one, node.client)
        self.engine = Looped(self.phase)

    def train(self, received: ArrayRecord, round: int) -> ArrayRecord:
        """Train in ``round``, from 0, from what was received; what goes back.

        What the node keeps for itself is on disk before anything is sent. Where training leaves the
        finite numbers, or goes too far, it stays as it was before the round, and sends what the
        server will refuse, naming the client.
        """
        job, t = (0, self.node.client), self.phase.tensors
        t["shared"][0] = wire.vector(self.plan.layout, received)
        self.engine.train([job], round, self.plan.training.rate(round))
        treat(self.phase, [job], round, secret)
        lost = wrong(t["uploads"][:1], t["shared"], self.plan.participation.farthest)
        if all(part.isfinite().all() for part in self.own.values()):
            if not lost:
                self.node.keep(self.run, self.own)
        else:  # what it shares may be finite all the same
            t["uploads"][0] = torch.nan
        return wire.arrays(self.plan.layout, t["uploads"][0])

    def right(self, received: ArrayRecord) -> int:
        """How many of the node's test rows its model gets right: the shared part and its own."""
        job = (0, self.node.client)
        self.phase.tensors["shared"][0] = wire.vector(self.plan.layout, received)
        return int(self.engine.correct("shared", "personal", "test", [job])[job])


def secret() -> np.random.Generator:
    """Random numbers of this node alone: the server knows the run's seed, and could take noise that
    follows from it away."""
    return np.random.default_rng()  # seeded by the operating system


def _seated(alone: Phase, k: int) -> Phase:
    """A phase of one device as that of device ``k``, whose random numbers it then draws.

    Nothing is copied: devices 0 to k are views of the one.
    """

    def wide(t: Tensor) -> Tensor:
        return t.expand(t.shape[0], k + 1, *t.shape[2:])

    def of_all(rows: ClientIndices) -> ClientIndices:
        return ClientIndices(rows.index.expand(k + 1, -1), rows.size.expand(k + 1))

    tensors = {n: t if n in WIRED else wide(t) for n, t in alone.tensors.items()}
    rows = {name: (split, [*map(of_all, each)]) for name, (split, each) in alone.rows.items()}
    return replace(alone, tensors=tensors, rows=rows)


def _node(context: Context) -> Node:
    folder = context.node_config.get("folder")
    if not folder:
        raise SettingsError(
            "this node was started without a folder; say --node-config 'folder=\"/data/node-0\"'"
        )
    return Node(Path(str(folder)).expanduser())


def _reply(message: Message, records: dict) -> Message:
    return Message(RecordDict(records), reply_to=message)
