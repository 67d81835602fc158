"""Flower as a contender: its simulation, with as many Ray actors as there are processes.

A ServerApp sends each chosen device a message and lets Flower's FedAvg average what comes back; a
ClientApp trains as the plain loop does, on rows that each actor maps once. Needs flwr[simulation].
"""

import time

import torch
from flwr.app import ArrayRecord, ConfigRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg
from flwr.simulation import run_simulation
from torch import Tensor

from lgfed_core.errors import LgfedError

from .apart import read

client = ClientApp()


@client.train()
def fit(message: Message, context: Context) -> Message:
    """Train the device that the message names from the arrays that it brings."""
    told = message.content["config"]
    given = read(told["path"])
    given.net.load_state_dict(message.content["arrays"].to_torch_state_dict())
    says = MetricRecord({"num-examples": given.train(given.net, told["device"], told["round"])})
    arrays = ArrayRecord(given.net.state_dict())
    return Message(RecordDict({"arrays": arrays, "metrics": says}), reply_to=message)


def play(path: str, workers: int, orders) -> None:
    """A round for each order, by Flower."""
    given, server, strategy = read(path), ServerApp(), FedAvg()
    arrays = ArrayRecord(given.net.state_dict())

    def parameters() -> Tensor:
        return torch.cat([part.flatten() for part in arrays.to_torch_state_dict().values()])

    @server.main()
    def main(grid: Grid, context: Context) -> None:
        nonlocal arrays
        while len(nodes := sorted(grid.get_node_ids())) < len(given.rows):
            time.sleep(0.1)  # they come while this begins
        for number in orders(parameters):
            messages = []
            for k in given.chosen(number):
                told = ConfigRecord({"path": path, "device": k, "round": number})
                content = RecordDict({"arrays": arrays, "config": told})
                messages.append(Message(content, nodes[k], "train"))
            replies = list(grid.send_and_receive(messages))
            if wrong := [reply.error.reason for reply in replies if reply.has_error()]:
                raise LgfedError(wrong[0])
            arrays, _ = strategy.aggregate_train(number, replies)

    run_simulation(
        server,
        client,
        num_supernodes=len(given.rows),
        backend_config={
            "init_args": {"num_cpus": workers},
            "client_resources": {"num_cpus": 1, "num_gpus": 0.0},
        },
    )
