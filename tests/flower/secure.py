"""All methods of the app, over Flower's TLS and node authentication, by real processes here.

    python tests/flower/secure.py

A SuperLink with a certificate of its own authority and two SuperNodes whose keys it was told of
train two rounds of each method; they must end where the engine ends. Then a SuperNode with a key
that nobody registered, and one that trusts another authority. Takes two minutes, so it is not in
the suite; its outcome lies in data/reliability.toml.
"""

import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from safetensors.torch import load_file

sys.path.insert(0, str(Path(__file__).parents[1]))  # for near

from lgfed_core.engine import Federation, run
from lgfed_core.flower import loopback, write_nodes
from lgfed_core.flower.app import digits
from near import two

METHODS, ROUNDS = ("FedAvg", "LG-FedAvg", "CGAU", "FADE"), 2
CONFIG = {"rounds": ROUNDS, "epochs": 1, "batch-size": 5, "lr": 0.1, "seed": 2}
CONFIG |= {"clients": 2, "fraction": 1.0, "timeout": 120.0, "test": False}


class Secure(loopback.Loopback):
    """Over TLS, and with no nodes but those of whose key the SuperLink was told."""

    unknown: tuple[int, ...] = ()  # clients of whom it is not

    def _link(self) -> tuple[str, list[str]]:
        certify(self.home)
        files = {"ca-cert": "ca.crt", "cert": "server.pem", "key": "server.key"}
        own = [text for what, name in files.items() for text in (f"--ssl-{what}file", name)]
        trust = f"root-certificates = {loopback.toml('TMPDIR', str(self.home / 'ca.crt'))}"
        return trust, ["--enable-supernode-auth", *own]

    def _node(self, k: int) -> list[str]:
        new = ["ssh-keygen", "-q", "-t", "ecdsa", "-b", "384", "-N", "", "-f", f"node-{k}"]
        subprocess.run(new, cwd=self.home, check=True)
        if k not in self.unknown:
            self._flwr("supernode", "register", str(self.home / f"node-{k}.pub"), "here")
        return ["--root-certificates", "ca.crt", "--auth-supernode-private-key", f"node-{k}"]


def certify(folder: Path) -> None:
    """Write ``ca.crt``, an authority of its own, and ``server.pem`` and ``.key`` for `HOST`."""
    new = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:secp384r1 -nodes -days 2 -subj"
    own = ["/CN=authority", "-keyout", "ca.key", "-out", "ca.crt"]
    host = loopback.HOST
    server = [f"/CN={host}", "-addext", f"subjectAltName=IP:{host}", "-CA", "ca.crt"]
    server += ["-CAkey", "ca.key", "-keyout", "server.key", "-out", "server.pem"]
    for rest in (own, server):
        subprocess.run([*new.split(), *rest], cwd=folder, check=True, capture_output=True)


def gap(fed: Federation, method: str, out: Path) -> float:
    """How far the shared parameters in ``out`` are from the engine's own, at the most."""
    plan = digits.plan(CONFIG | {"method": method})
    due = run(replace(fed, net=plan.net), plan.method, plan.training, ROUNDS, workers=1)
    named = due.layout.views(due.tensors["shared"][0], due.tensors["personal"][0, 0])
    found = load_file(out / "shared.safetensors")
    return max(float((value - named[n]).abs().max()) for n, value in found.items())


def refused(machines: loopback.Loopback, k: int) -> str:
    """What the SuperNode of ``k`` says as it gives up, or "" if it does not."""
    process, end = machines.processes[f"node-{k}"], time.monotonic() + 60
    while process.poll() is None and time.monotonic() < end:
        time.sleep(0.2)
    return machines.log(f"node-{k}", 8) if process.poll() else ""


def main() -> int:
    fed, began = two(digits.plain(), CONFIG["seed"]), time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        folders = write_nodes(place / "nodes", fed.data, fed.partitions[0])
        with Secure(folders) as machines:
            for method in METHODS:
                machines.run(loopback.DIGITS, CONFIG | {"method": method}, place / method)
                history = machines.wait(place / method, ROUNDS)
                assert (history.what == "trained").all(), history
                far = gap(fed, method, place / method)
                print(f"{method}: {ROUNDS} rounds over TLS, gap to the engine {far:.1e}")
                assert far <= 1e-6
            print(f"after {time.monotonic() - began:.0f} s")

            machines.folders += [folders[0]] * 2
            machines.unknown = 2, 3
            machines.start(2)
            said = refused(machines, 2)
            print(f"a node with an unknown key:\n{said}\n")
            assert said, "it was let in"

            certify(machines.home)  # another authority of the same name
            machines.start(3)
            said = refused(machines, 3)
            print(f"a node that trusts another authority:\n{said}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
