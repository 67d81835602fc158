"""Nothing is unpickled, no secret is kept, and importing or trying things out needs no network."""

import ast
import pickle
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
import torch

from lgfed_core.data.catalogue import catalogue
from lgfed_core.data.features.stored import load_arrays
from lgfed_core.engine import LocalTraining, run
from lgfed_core.engine.checkpoint import previous
from lgfed_core.errors import CheckpointError, DataError
from lgfed_core.methods import FedAvg
from lgfed_core.paths import ROOT
from toy import python, toy_federation

PROGRAMS = [p for folder in ("lgfed_core", "book") for p in sorted((ROOT / folder).rglob("*.py"))]
PROGRAMS = [path for path in PROGRAMS if "_build" not in path.parts]
SECRETS = {
    "a private key": r"-----BEGIN [A-Z ]*PRIVATE KEY",
    "a key of a cloud": r"\b(AKIA|ASIA)[0-9A-Z]{16}\b|\bAIza[0-9A-Za-z_-]{35}\b",
    "a token of a code host": r"\b(gh[pousr]_\w{36}|github_pat_\w{40}|glpat-[\w-]{20})",
    "a token of a registry": r"\b(pypi-AgE\w{20}|npm_\w{36}|hf_[A-Za-z]{30})",
    "a token of a service": r"\b(xox[abprs]-[\w-]{10}|sk-(ant-|proj-)?[A-Za-z0-9_-]{32})",
    "a signed token": r"\beyJ[\w-]{15,}\.eyJ[\w-]{15,}\.",
    "a password in an address": r"://[^/\s:@{}'\"]+:[^/\s:@{}'\"]+@",
}


class Planted:
    """What runs code where it is unpickled: it makes a file."""

    def __init__(self, mark: Path):
        self.mark = mark

    def __reduce__(self):
        return Path.touch, (self.mark,)


def test_a_planted_pickle_is_never_loaded(tmp_path):
    mark = tmp_path / "loaded"
    raw = pickle.dumps(Planted(mark))
    pickle.loads(raw)
    assert mark.exists(), "it would have worked"
    mark.unlink()
    place = tmp_path / "run.safetensors"
    train = (toy_federation(), FedAvg(), LocalTraining(0.1, 4), 1)
    for here in (place, previous(place)):
        for plant in (lambda p: p.write_bytes(raw), lambda p: torch.save(Planted(mark), p)):
            plant(here)
            with pytest.raises(CheckpointError, match="is damaged|no checkpoint of a run"):
                run(*train, workers=1, saved=place)
            here.unlink()
    arrays = tmp_path / "rows.npz"
    for plant in (
        lambda: arrays.write_bytes(raw),
        lambda: np.savez(arrays, x=np.array([Planted(mark)], object)),
    ):
        plant()
        with pytest.raises(DataError, match="is damaged"):
            load_arrays(arrays, "x")
    assert not mark.exists()


def test_no_program_can_unpickle_or_run_what_it_reads():
    read = ("pickle", "cPickle", "dill", "cloudpickle", "joblib", "marshal", "shelve")
    safe = {"torch.load": ("weights_only", True), "np.load": ("allow_pickle", False)}
    found = []
    for path in PROGRAMS:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            wrong = False
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = {alias.name for alias in node.names} | {getattr(node, "module", "")}
                wrong = bool(names & set(read))
            if isinstance(node, ast.Call):
                called = ast.unparse(node.func)
                keys = {k.arg: getattr(k.value, "value", None) for k in node.keywords}
                wrong = called in ("eval", "exec", "os.system", "pd.read_pickle", "yaml.load")
                wrong |= called in safe and keys.get(safe[called][0]) is not safe[called][1]
                wrong |= keys.get("shell") is True
                wrong |= called.endswith(".extractall")  # archives may hold "../x"
            if wrong:
                found.append(f"{path.relative_to(ROOT)}:{node.lineno}")
    assert not found and len(PROGRAMS) > 100


def test_nobody_is_told_to_ask_a_registry_for_the_name_of_this_package():
    pages = [*PROGRAMS, *ROOT.glob("*.md"), *(ROOT / "book").glob("*.md")]
    pages += (ROOT / "book").glob("[!_]*/*.ipynb")
    asks = re.compile(r"pip install ['\"]?lgfed[_-]core\b")
    assert asks.search("pip install 'lgfed_core[audio]'")
    assert not [str(p) for p in pages if asks.search(p.read_text(encoding="utf-8"))]


def test_whatever_is_fetched_has_an_exact_version():
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    loose = [line for line in lines if not re.match(r"#|[\w.-]+==[\w.+!]+( ;|$)", line)]
    mirrors = [m for source in catalogue().values() for f in source.files for m in f.mirrors]
    for how, exact in (("npm", r"@?[\w./-]+@\d+(\.\d+)+"), ("pip", r"[\w.-]+==\d+(\.\d+)+")):
        names = {mirror[how] for mirror in mirrors if how in mirror}
        loose += [name for name in names if not re.fullmatch(exact, name)]
        assert names
    assert not loose and len(lines) > 200


def secrets(text: str) -> list[str]:
    return [what for what, how in SECRETS.items() if re.search(how, text)]


def test_no_tracked_file_holds_a_secret():
    if (ROOT / ".git").exists() and shutil.which("git"):
        listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True)
        files = [ROOT / name for name in listed.stdout.split("\0") if name]
        files = [path for path in files if path.parent.name != "results"]  # numbers, by thousands
    else:
        files = PROGRAMS
    held = {p: secrets(p.read_text(errors="replace")) for p in files if p.is_file()}
    assert not {p: what for p, what in held.items() if what} and len(held) > 100
    for planted in (
        "-----BEGIN " + "RSA PRIVATE KEY-----",
        "AKIA" + "Q3EGRTLM7UYB2X4K",
        "token = 'ghp_" + "a1B2" * 9 + "'",
        "https://" + "me:word@example.org",
    ):
        assert len(secrets(planted)) == 1, planted


OFFLINE = """
import importlib, pkgutil, socket, sys

def refused(*args, **kwargs):
    raise AssertionError(f"the network was asked for: {args}")

for name in ("connect", "connect_ex", "sendto", "bind"):
    setattr(socket.socket, name, refused)
socket.create_connection = socket.getaddrinfo = socket.gethostbyname = refused

import lgfed_core
names = [m.name for m in pkgutil.walk_packages(lgfed_core.__path__, "lgfed_core.")]
for name in names:
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name.startswith("lgfed_core"):
            raise

from lgfed_core.papers.experiments import find
impairment = find("fade.impairment")
rows, _ = impairment.run(impairment.settings("smoke"), [0], record=False, resume=False, workers=1)
print(len(names), len(rows))
"""


@pytest.mark.slow
def test_importing_everything_and_a_smoke_run_need_no_network():
    done = python(OFFLINE, cwd=ROOT, timeout=280)
    assert done.returncode == 0, done.stderr[-2000:]
    modules, rows = map(int, done.stdout.split()[-2:])
    assert modules > 150 and rows > 10
