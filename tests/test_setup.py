"""The project's own set-up: pins, environments, commands, workflows and links agree."""

import os
import re
import subprocess
import sys
import tomllib

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from lgfed_core.paths import ROOT
from toy import python

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]
MAKE = (ROOT / "Makefile").read_text()
TARGETS = set(re.findall(r"^(\w+):", MAKE, re.MULTILINE))
PAGES = ["README.md", *sorted(str(p.relative_to(ROOT)) for p in ROOT.glob("book/*.md"))]


def requirements():
    lines = [*PROJECT["dependencies"], *(line for extra in EXTRAS.values() for line in extra)]
    return [Requirement(line) for line in lines]


def pins(version: str) -> dict[str, str]:
    """Names and versions of constraints.txt that hold for a Python version on Linux."""
    place = dict(python_version=version, python_full_version=f"{version}.9", os_name="posix")
    place |= dict(sys_platform="linux", platform_machine="x86_64", implementation_name="cpython")
    place |= dict(platform_python_implementation="CPython")
    found = {}
    for line in (ROOT / "constraints.txt").read_text().splitlines():
        if line.lstrip().startswith("#"):
            continue
        pin = Requirement(line)
        if pin.marker is None or pin.marker.evaluate(place):
            assert pin.name not in found, f"{pin.name} is pinned twice for Python {version}"
            found[pin.name] = re.fullmatch(r"==([^,+*]+)", str(pin.specifier))[1]
    return found


@pytest.mark.parametrize("version", ["3.11", "3.12"])
def test_every_requirement_has_a_pin_inside_its_range(version):
    pinned = pins(version)
    for need in requirements():
        assert need.name in pinned, f"{need.name} has no pin; `make lock` makes one"
        assert need.specifier.contains(pinned[need.name]), f"{need} against {pinned[need.name]}"


def test_pins_name_no_index_and_say_how_they_were_made():
    text = (ROOT / "constraints.txt").read_text()
    assert "make lock" in text.splitlines()[1]
    assert not re.search(r"https?:|--|\+cpu|\+cu\d", text)


def test_conda_environment_installs_what_make_installs():
    environment = yaml.safe_load((ROOT / "environment.yml").read_text())
    *conda, pip = environment["dependencies"]
    ours = next(Requirement(line) for line in conda if line.startswith("python"))
    assert ours.specifier == SpecifierSet(PROJECT["requires-python"])
    assert "--constraint constraints.txt" in pip["pip"]
    package = next(line for line in pip["pip"] if line.startswith("--editable"))
    extras = set(re.fullmatch(r"--editable \.\[(.*)\]", package)[1].split(","))
    assert {"book", "test"} <= extras <= set(EXTRAS)
    # Nothing that has a pin is installed a second way.
    assert not {re.split(r"[<>= ]", line)[0] for line in conda} & set(pins("3.11"))


@pytest.mark.parametrize("page", PAGES)
def test_commands_on_the_pages_exist(page):
    text = (ROOT / page).read_text()
    named = set(re.findall(r"(?:^|`)(?:\S+=\S+ )?make ([a-z]+)\b", text, re.MULTILINE))
    assert named <= TARGETS
    for command in re.findall(r"python -m lgfed_core ([\w-]+)", text):
        run = [sys.executable, "-m", "lgfed_core", command, "--help"]
        assert subprocess.run(run, capture_output=True, cwd=ROOT).returncode == 0


@pytest.mark.parametrize("page", PAGES)
def test_links_on_the_pages_lead_somewhere(page):
    text = (ROOT / page).read_text()
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text) + re.findall(r"\{image\} (\S+)", text)
    assert [link for link in links if not ((ROOT / page).parent / link).exists()] == []


def test_make_help_lists_every_target():
    said = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True)
    listed = set(re.findall(r"^  (\w+) +\w", said.stdout, re.MULTILINE))
    assert listed == TARGETS - {"python"}  # which others ask for


def test_make_without_a_python_says_what_to_install():
    run = ["make", "--silent", "python", "PYTHON="]
    said = subprocess.run(run, cwd=ROOT, capture_output=True, text=True)
    assert said.returncode != 0
    assert "3.11 or 3.12" in said.stderr


def test_torchvision_works_in_a_fresh_process_without_warnings():
    code = (
        "from lgfed_core.data._torchvision import torchvision\n"
        "import torch\n"
        "from torchvision.transforms import v2\n"
        "net = torchvision.models.mobilenet_v2(weights=None).eval()\n"
        "assert net(torch.zeros(1, 3, 64, 64)).shape == (1, 1000)\n"
        "assert v2.RandomCrop(32, padding=4)(torch.zeros(2, 3, 32, 32)).shape == (2, 3, 32, 32)\n"
    )
    assert python(code, cwd=ROOT, env=os.environ | {"PYTHONWARNINGS": "error"}).stderr == ""


WORKFLOWS = {path.stem: path for path in (ROOT / ".github" / "workflows").glob("*.yml")}


def steps(name: str) -> list[dict]:
    jobs = yaml.safe_load(WORKFLOWS[name].read_text())["jobs"]
    return [step for job in jobs.values() for step in job["steps"]]


@pytest.mark.parametrize("name", WORKFLOWS)
def test_every_action_is_pinned_by_tag(name):
    used = [step["uses"] for step in steps(name) if "uses" in step]
    assert used and all(re.fullmatch(r"actions/[\w-]+@v\d+(\.\d+)*", use) for use in used)


@pytest.mark.parametrize("name", WORKFLOWS)
def test_what_a_workflow_runs_is_there(name):
    said = "\n".join(step.get("run", "") for step in steps(name))
    assert set(re.findall(r"\bmake ([a-z]+)", said)) <= TARGETS
    for group in re.findall(r"\.\[([\w,]+)\]", said):
        assert set(group.split(",")) <= set(EXTRAS), group
    for path in re.findall(r"\bpython (\S+\.py)", said):
        assert (ROOT / path).exists(), path


def test_readers_get_the_data_that_make_gets():
    (made,) = re.findall(r"-m lgfed_core (data .+)", MAKE)
    assert any(made in step.get("run", "") for step in steps("reader"))
    assert "constraints" not in WORKFLOWS["reader"].read_text(), "readers have no pins"


def test_what_is_published_is_what_is_built():
    (folder,) = (s["with"]["path"] for s in steps("book") if "pages-artifact" in s.get("uses", ""))
    assert folder == "book/_build/html"
    publish = yaml.safe_load(WORKFLOWS["book"].read_text())["jobs"]["publish"]
    assert publish["needs"] == "build" and "refs/heads/main" in publish["if"]
