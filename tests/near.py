"""Nodes in this process: a grid that hands each message to the ClientApp at once, and keeps it."""

from collections.abc import Callable
from pathlib import Path

import torch
from flwr.app import Context, Error, Message, RecordDict
from flwr.supercore.task_identity import TaskIdentity

from lgfed_core.data import Dataset, Split
from lgfed_core.engine import Federation
from lgfed_core.flower import Plan, write_nodes
from lgfed_core.flower.client import client_app
from lgfed_core.flower.server import Server
from lgfed_core.methods import FedAvg, Method
from lgfed_core.partition import ClientIndices, Partition
from toy import SGD

RUN = 7


class Near:
    """What `flwr` calls a grid. ``spoil``: what becomes of replies, by client; None is lost."""

    def __init__(self, plan: Plan, folders: list[Path]):
        TaskIdentity.task_id, TaskIdentity.run_id, TaskIdentity.node_id = 1, RUN, 1
        self.app = client_app(lambda config: plan)
        self.there = {100 + k: folder for k, folder in enumerate(folders)}  # by node
        self.spoil: dict[int, Callable[[Message], Message | None]] = {}
        self.seen: list[Message] = []  # all that crossed the wire
        self.waiting: dict[str, Message] = {}

    def get_node_ids(self):
        return list(self.there)

    def push_messages(self, messages):
        return [self._push(message) for message in messages]

    def _push(self, message: Message) -> str:
        number, node = str(len(self.seen)), message.metadata.dst_node_id
        message.metadata.__dict__["_message_id"] = number
        self.seen.append(message)
        folder = {"folder": str(self.there[node])}
        context = Context(RUN, node, folder, RecordDict(), {})
        try:
            reply = self.app(message, context)
        except Exception as error:  # as a SuperNode does
            reply = Message(Error(2, f"{type(error).__name__}: {error}"), reply_to=message)
        reply = self.spoil.get(node - 100, lambda said: said)(reply)
        if reply is not None:
            self.seen.append(reply)
            self.waiting[number] = reply
        return number

    def pull_messages(self, ids):
        return [self.waiting.pop(number) for number in ids if number in self.waiting]


def planned(federation, method: Method, training=SGD, rounds: int = 3) -> Plan:
    """As the engine would train ``federation``."""
    who = federation.clients, federation.seeds[0], federation.participation
    return Plan(federation.net, method, training, rounds, *who)


def near(
    folder: Path, federation, method: Method | None = None, timeout: float = 0.2, **how
) -> tuple[Server, Near]:
    """A server over one node for each device of ``federation``, in ``folder``; how: of `planned`.

    method: FedAvg if None.
    """
    plan = planned(federation, method or FedAvg(), **how)
    grid = Near(plan, write_nodes(folder, federation.data, federation.partitions[0]))
    return Server(plan, grid, folder / "out", timeout), grid


def two(net, seed: int, groups: int = 2) -> Federation:
    """Two devices with 20 and 25 rows of 64 numbers, as digits have them, in so many groups."""
    rng = torch.Generator().manual_seed(1)
    x, y = torch.randn(60, 64, generator=rng), torch.arange(60) % 10
    split = Split(x, y, torch.randint(groups, (60, 1), generator=rng))
    rows, test = [range(20), range(20, 45)], [range(45, 50), range(50, 60)]
    part = Partition("two", ClientIndices.from_lists(rows), None, ClientIndices.from_lists(test))
    return Federation(Dataset("made up", split, split, 10), [part], net, [seed])
