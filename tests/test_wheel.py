"""Installed from a wheel, far from any checkout: lists, numbers and rows are there, and it runs."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from lgfed_core.paths import CACHE, PAPER, RESULTS, ROOT

pytestmark = pytest.mark.slow
A_ROUND = """
import lgfed_core as lg
from lgfed_core import __main__ as command, data, models, partition, paths
from lgfed_core.evidence import records, report
from lgfed_core.papers import printed

mnist = data.load("mnist")
deal = partition.classes_per_device(mnist.train.y, mnist.test.y, devices=100, classes=2, seed=0)
net, few = models.mlp_mnist(), lg.Participation(0.02)
method = lg.LGFedAvg(layers=models.last_layers(net, 3))
federation = lg.Federation(mnist, [deal], net, [0], participation=few)
outcome = lg.run(federation, method, lg.LocalTraining(lr=0.05, batch_size=10), 1, workers=1)
assert outcome.provenance["commit"] == "unknown" and outcome.tensors["shared"].shape == (1, 99978)
assert not records.load("cgau.audio").empty
print(*report.printout(t for t in printed.TABLES.values() if t.paper == "cgau"))
print(paths.CACHE)
for asked in ("run lgfedavg.mnist --scale quick", "report --front", "fill --hours 1"):
    assert command.main(asked.split()) == 1
"""


def python(*arguments: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess:
    """A fresh Python that finds the wheel's folder, and nothing of ours in its environment."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("LGFED_", "XDG_"))}
    clean |= {"PYTHONPATH": str(cwd / "site"), "HOME": str(cwd / "home"), **environment}
    run = [sys.executable, *arguments]
    return subprocess.run(run, cwd=cwd, env=clean, capture_output=True, text=True)


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    """A folder with a wheel of a copy of the checkout installed below ``site``."""
    place = tmp_path_factory.mktemp("a b ü")
    for name in ("lgfed_core", "data/paper", "data/results"):
        shutil.copytree(ROOT / name, place / "source" / name)
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE", "data/sources.toml"):
        shutil.copyfile(ROOT / name, place / "source" / name)
    pip = ("-m", "pip", "--quiet", "--no-input", "--disable-pip-version-check")
    offline = ("--no-index", "--no-deps")
    for command in (
        ["wheel", *offline, "--no-build-isolation", "--wheel-dir", "made", "./source"],
        ["install", *offline, "--target", "site", "--find-links", "made", "lgfed_core"],
    ):
        done = python(*pip, *command, cwd=place)
        assert done.returncode == 0, done.stderr
    shutil.rmtree(place / "source")
    return place


def contents(folder: Path, *patterns: str) -> dict[str, bytes]:
    found = (path for pattern in patterns for path in folder.glob(pattern))
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(found)}


def test_a_wheel_carries_all_modules_lists_numbers_and_rows(place):
    site = place / "site" / "lgfed_core"
    assert contents(site, "**/*.py") == contents(ROOT / "lgfed_core", "**/*.py")
    for own, ours in ((site / "_data/paper", PAPER), (site / "_data/results", RESULTS)):
        assert contents(own, "*.csv") == contents(ours, "*.csv")
    (wheel,) = (place / "made").iterdir()
    assert wheel.stat().st_size < 3e6, "rows by the megabyte: leave some out, and say so"


def test_it_loads_data_runs_a_round_prints_a_report_and_leaves_the_rows_alone(place):
    if not (CACHE / "mnist").is_dir():
        pytest.skip("MNIST is not at hand")
    before = contents(place / "site/lgfed_core/_data", "**/*.*")
    done = python("-W", "error", "-c", A_ROUND, cwd=place, LGFED_MIRROR=str(CACHE))
    assert done.returncode == 0, done.stderr
    assert "1784.4" in done.stdout
    assert done.stderr.count("LGFED_HOME") == 2 and "those of a checkout" in done.stderr
    cache = Path(done.stdout.splitlines()[-1])
    assert cache.is_relative_to(place / "home") and (cache / "mnist").is_dir()
    assert contents(place / "site/lgfed_core/_data", "**/*.*") == before


@pytest.mark.parametrize("checkout", [True, False])
def test_rows_go_to_a_folder_of_ones_own_and_lists_stay_where_they_are(checkout, place, tmp_path):
    code = "from lgfed_core import paths as p; print(p.RESULTS, p.CACHE); print(p.SOURCES, p.PAPER)"
    said = python("-c", code, cwd=ROOT if checkout else place, LGFED_HOME=str(tmp_path))
    own, lists = tmp_path / "data", ROOT / "data" if checkout else place / "site/lgfed_core/_data"
    assert said.stdout == f"{own}/results {own}/cache\n{lists}/sources.toml {lists}/paper\n"
