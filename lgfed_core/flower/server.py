"""The server: rounds that no node can stop by dying, coming late, or sending nonsense."""

import logging
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
from flwr.app import ConfigRecord, Context, Message, RecordDict
from flwr.serverapp import Grid, ServerApp
from safetensors.torch import save_file
from torch import Tensor

from lgfed_core.engine.divergence import wrong
from lgfed_core.errors import LgfedError
from lgfed_core.files import replacing

from . import wire
from .plan import HISTORY, SHARED, TESTED, WIRE, Plan

log = logging.getLogger("flwr")  # what `flwr log` shows
POLL = 0.5  # seconds between two looks for replies
MOST = 2**40  # what a node may number: clients, rows


def server_app(plan_of: Callable[[Mapping[str, Any]], Plan]) -> ServerApp:
    """The ServerApp of the plan that ``plan_of`` makes of a run's configuration.

    Three settings are the server's own: ``out``, a folder for what `Server` leaves; ``timeout``,
    the seconds that nodes have to answer; ``test``, whether they test their models at the end.
    """
    app = ServerApp()

    @app.main()
    def main(grid: Grid, context: Context) -> None:
        config = context.run_config
        out = Path(str(config["out"])).expanduser()
        server = Server(plan_of(config), grid, out, float(config["timeout"]))
        server.run()
        if config["test"]:
            server.test()

    return app


class Server:
    """Rounds of ``plan`` over the nodes that ``grid`` reaches. After each of them ``out`` has

    shared.safetensors  the shared parameters by name
    history.csv         a line per client of the round: "trained", or what was wrong
    wire.csv            a line per key of each message, either way, with its bytes

    and after `test` also tested.csv, how many test rows each client's model gets right.
    """

    def __init__(self, plan: Plan, grid: Grid, out: Path, timeout: float):
        self.plan, self.grid, self.out, self.timeout = plan, grid, out, timeout
        self.layout, self.shared = plan.layout, plan.first()
        self.memory = self.shared.new_zeros(plan.method.server_memory, len(self.shared))
        self.client: dict[int, int] = {}  # of each node, as it has said itself
        self.history: list[dict] = []
        self.wire: list[dict] = []
        out.mkdir(parents=True, exist_ok=True)

    def run(self) -> Tensor:
        """All rounds; the shared vector [P_s] at the end. Raises LgfedError if no node comes."""
        for t in range(self.plan.rounds):
            self._gather(1 if t else self.plan.clients)
            self.round(t)
            named = self.layout.views(self.shared, self.shared.new_zeros(self.layout.size_personal))
            with replacing(self.out / SHARED, locked=True) as path:
                save_file({n: named[n].contiguous() for n in self.layout.shared}, path)
            self._write(WIRE, self.wire)
            self._write(HISTORY, self.history)  # the last: who waits for a round looks here
        return self.shared

    def round(self, t: int) -> None:
        """Round ``t``, from 0: ask the chosen, and those who have not said yet who they are.

        A client without an update that can be averaged is named, and the others go on.
        """
        chosen = self.plan.chosen(t)
        nodes = [n for n in self.grid.get_node_ids() if self.client.get(n, chosen[0]) in chosen]
        replies = self._ask("train", nodes, {"round": t, "chosen": chosen}, t + 1)
        updates: dict[int, tuple[Tensor, int]] = {}  # by client
        wrong: dict[int, str] = {}  # by node
        for node in nodes:
            found = self._update(node, replies.get(node))
            if isinstance(found, str):
                wrong[node] = found
            elif found and self.client[node] not in chosen:
                wrong[node] = "sends what nobody has asked it for"
            elif found and self.client[node] in updates:
                wrong[node] = "answers for a client that another node has answered for"
            elif found:
                updates[self.client[node]] = found
        if updates:
            merged, memory = self.plan.merged(t, self.shared, updates, self.memory)
            if merged.isfinite().all():
                self.shared, self.memory = merged, memory
            else:
                wrong |= dict.fromkeys(self.client, "the average with it is not finite")
                updates = {}
        for k in chosen:
            what = "trained" if k in updates else self._why(k, wrong)
            self.history.append({"round": t + 1, "client": k, "what": what})
            if k not in updates:
                log.warning("round %d goes on without client %d: %s", t + 1, k, what)

    def test(self) -> None:
        """Ask each node how many of its own test rows its model gets right."""
        replies = self._ask("evaluate", list(self.client), {}, self.plan.rounds + 1)
        names = ("client", "right", "rows")
        lines = []
        for node, reply in replies.items():
            try:
                if not reply.has_error():
                    says = reply.content["metrics"]
                    lines.append({name: _whole(says, name, 0) for name in names})
            except Exception as error:  # whatever a node may send
                log.warning("what node %d says of its test rows is left out: %s", node, error)
        self._write(WIRE, self.wire)
        self._write(TESTED, sorted(lines, key=lambda line: line["client"]))

    def _gather(self, least: int) -> None:
        """Wait until ``least`` nodes are there, or the time is over."""
        end = time.monotonic() + self.timeout
        while (there := len(list(self.grid.get_node_ids()))) < least and time.monotonic() < end:
            time.sleep(POLL)
        if not there:
            raise LgfedError(
                f"no node came in {self.timeout:g} s; start them by flower-supernode, or raise "
                "timeout in the run's configuration"
            )

    def _ask(self, kind: str, nodes: Iterable[int], told: dict, group: int) -> dict[int, Message]:
        """Send everybody the shared parameters; the replies, by node, that come in time.

        It ends early when all have answered, or all of the clients that were ``chosen``.
        """
        messages, how = [], dict(ttl=self.timeout, group_id=str(group))
        for node in nodes:
            arrays = wire.arrays(self.layout, self.shared)
            content = RecordDict({"arrays": arrays, "config": ConfigRecord(told)})
            messages.append(Message(content, node, kind, **how))
            self.wire += wire.ledger(messages[-1], "to", node)
        numbers = self.grid.push_messages(messages)  # none for a message that could not be sent
        asked = {number: node for number, node in zip(numbers, nodes, strict=False) if number}
        replies: dict[int, Message] = {}
        end, waiting = time.monotonic() + self.timeout, set(told.get("chosen", nodes))
        while asked and waiting and time.monotonic() < end:
            time.sleep(POLL)
            for reply in self.grid.pull_messages(list(asked)):
                node = asked.pop(reply.metadata.reply_to_message_id)
                replies[node] = reply
                self.wire += wire.ledger(reply, "from", node)
                if not reply.has_error():
                    client = reply.content.get("metrics", {}).get("client")
                    waiting = {k for k in waiting if k != client}
        return replies

    def _update(self, node: int, reply: Message | None) -> tuple[Tensor, int] | str | None:
        """A vector [P_s] and its number of rows; None of a node that rests; or what is wrong."""
        if reply is None:
            return f"no answer in {self.timeout:g} s"
        if reply.has_error():
            return f"error: {reply.error.reason}".replace("error: Error:", "error:")
        try:
            says = reply.content["metrics"]
            self.client[node] = _whole(says, "client", 0)
            if "arrays" not in reply.content:
                return None
            rows = _whole(says, "rows", 1)
            found = wire.vector(self.layout, reply.content["arrays"])
            farthest = self.plan.participation.farthest
            if too_far := wrong(found[None], self.shared[None], farthest):
                raise ValueError(f"it is {too_far[0]}")
            return found, rows
        except Exception as error:  # whatever a node may send
            return f"what it sent cannot be averaged: {error}"

    def _why(self, client: int, wrong: Mapping[int, str]) -> str:
        """What kept ``client`` from the round; of nodes that never said who they are, all words."""
        own = [what for node, what in wrong.items() if self.client.get(node) == client]
        strangers = [f"{what} (node {n})" for n, what in wrong.items() if n not in self.client]
        return "; ".join(own or strangers) or "not connected"

    def _write(self, name: str, lines: list[dict]) -> None:
        with replacing(self.out / name, locked=True) as path:
            pd.DataFrame(lines).to_csv(path, index=False)


def _whole(says: Mapping[str, Any], name: str, least: int) -> int:
    """What a node says of ``name``. Raises ValueError unless it is a whole number, ``least`` up."""
    if type(value := says.get(name)) is not int or not least <= value <= MOST:
        raise ValueError(f"{name} is {value!r:.50}, no whole number from {least}")
    return value
