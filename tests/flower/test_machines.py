"""One federation over real processes: its numbers, every byte of it, and a node that dies."""

import os
import re
import socket
import subprocess
import threading

import pytest
import torch

pytest.importorskip("flwr", reason="needs the extra 'flower'")

from flwr.common.config import parse_config_args
from safetensors.torch import load_file

from lgfed_core.engine import LocalTraining, run
from lgfed_core.errors import LgfedError, SettingsError
from lgfed_core.flower import loopback, write_nodes
from lgfed_core.flower.app import digits
from lgfed_core.flower.loopback import toml
from lgfed_core.flower.nodes import Node
from lgfed_core.models.layout import joined
from near import two

CONFIG = {"method": "LG-FedAvg", "rounds": 3, "epochs": 1, "batch-size": 5, "lr": 0.1, "seed": 2}
CONFIG |= {"clients": 2, "fraction": 1.0}


class Ear:
    """Listens to all that passes between SuperNodes and a SuperLink on ``port``."""

    def __init__(self, port: int):
        self.to, self.heard = port, bytearray()
        self.door = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self.door.getsockname()[1]}"
        threading.Thread(target=self._open, daemon=True).start()

    def _open(self) -> None:
        while True:
            try:
                inside, _ = self.door.accept()
                outside = socket.create_connection(("127.0.0.1", self.to))
            except OSError:
                return
            for a, b in ((inside, outside), (outside, inside)):
                threading.Thread(target=self._pass, args=(a, b), daemon=True).start()

    def _pass(self, source: socket.socket, target: socket.socket) -> None:
        try:
            while some := source.recv(65536):
                self.heard += some
                target.sendall(some)
        except OSError:
            pass
        for end in (source, target):
            end.close()


def said(tensor: torch.Tensor) -> bytes:
    """The bytes of a tensor's first 16 numbers, as any format would have them."""
    return tensor.contiguous().numpy().tobytes()[: 16 * tensor.element_size()]


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_real_processes_end_where_the_engine_ends_and_one_may_die(tmp_path):
    federation = two(digits.plan(CONFIG).net, CONFIG["seed"], groups=2**40)
    folders = write_nodes(tmp_path / "nödes of two", federation.data, federation.partitions[0])
    out, states = tmp_path / "a b 😀", {}

    with loopback.Loopback([]) as machines:
        ear = Ear(machines.port)
        machines.folders = folders
        for k in range(2):
            machines.start(k, ear.address)
        settings = CONFIG | {"timeout": 120.0, "test": False}
        number = machines.run(loopback.DIGITS, settings, out)
        machines.wait(out, 2)
        machines.kill(1, word=True)
        states["two"] = load_file(out / "shared.safetensors")
        own = [Node(folder).personal(number) for folder in folders]
        history = machines.wait(out, 3).set_index(["round", "client"]).what
        mark = machines._mark
    ear.door.close()
    assert loopback._marked(mark) == []

    plan = digits.plan(CONFIG)
    training = LocalTraining(0.1, 5)
    due = run(federation, plan.method, training, 2, workers=1)
    shared = due.layout.views(due.tensors["shared"][0], due.tensors["personal"][0, 0])
    for name, value in states["two"].items():
        torch.testing.assert_close(value, shared[name], rtol=0, atol=1e-6)
    torch.testing.assert_close(own[1], due.tensors["personal"][0, 1], rtol=0, atol=1e-6)

    assert (history.drop((3, 1)) == "trained").all()
    assert re.search("no answer|Unavailable|not connected", history[3, 1])
    after = load_file(out / "shared.safetensors")
    assert all(v.isfinite().all() and not v.equal(states["two"][n]) for n, v in after.items())

    assert said(states["two"]["2.weight"]) in ear.heard  # the ear hears what crosses the wire
    for k, folder in enumerate(folders):
        rows = Node(folder).data.train
        first = plan.layout.split(joined(plan.net))
        for secret in (own[k], first[1], rows.x, rows.y, rows.groups):
            assert said(secret) not in ear.heard
        assert str(folder).encode() not in ear.heard


PLACES = ["/a b ü/x", "/it's here", '/two "quotes"', "/日本 😀", "C:\\a\\new b"]


@pytest.mark.parametrize("place", PLACES)
def test_a_path_of_any_letters_is_one_value_to_flower(place):
    said = f"n=3 out={toml('out', place)} test={toml('test', True)}"
    assert parse_config_args([said]) == {"n": 3, "out": place, "test": True}


def test_a_path_that_flower_cannot_take_is_refused():
    for place in ('/it\'s "here"', "/two\nlines", "C:\\it's"):
        with pytest.raises(SettingsError, match="out is .*Flower takes no text"):
            toml("out", place)


def test_a_federation_that_does_not_start_says_so_and_leaves_nobody(monkeypatch):
    monkeypatch.setattr(loopback, "PATIENCE", 0.0)
    machines = loopback.Loopback([])
    with pytest.raises(LgfedError, match="link does not listen"):
        machines.open()
    assert machines.processes == {} and loopback._marked(machines._mark) == []


@pytest.mark.parametrize(
    ("tool", "options"),
    [
        ("flower-superlink", "enable-supernode-auth ssl-ca-certfile ssl-certfile ssl-keyfile"),
        ("flower-supernode", "auth-supernode-private-key node-config root-certificates"),
    ],
)
def test_the_pages_options_are_those_of_this_flower(tool, options):
    asked, env = [loopback._tool(tool), "--help"], os.environ | loopback.QUIET
    done = subprocess.run(asked, env=env, capture_output=True, text=True, check=True)
    assert {f"--{option}" for option in options.split()} <= set(
        re.findall(r"--[a-z-]+", done.stdout)
    )
