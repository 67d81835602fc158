"""The workflows name actions at a version, and commands, extras and folders that are there."""

import re
import tomllib

import pytest
import yaml

from lgfed_core.paths import ROOT

WORKFLOWS = {path.stem: path for path in (ROOT / ".github" / "workflows").glob("*.yml")}
MAKE = (ROOT / "Makefile").read_text()


def steps(name: str) -> list[dict]:
    jobs = yaml.safe_load(WORKFLOWS[name].read_text())["jobs"]
    return [step for job in jobs.values() for step in job["steps"]]


@pytest.mark.parametrize("name", WORKFLOWS)
def test_every_action_is_pinned_by_tag(name):
    used = [step["uses"] for step in steps(name) if "uses" in step]
    assert used and not [
        use for use in used if not re.fullmatch(r"actions/[\w-]+@v\d+(\.\d+)*", use)
    ]


@pytest.mark.parametrize("name", WORKFLOWS)
def test_what_a_workflow_runs_is_there(name):
    said = "\n".join(step.get("run", "") for step in steps(name))
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    for target in re.findall(r"\bmake ([a-z]+)", said):
        assert re.search(rf"^{target}:", MAKE, re.MULTILINE), target
    for group in re.findall(r"\.\[([\w,]+)\]", said):
        assert set(group.split(",")) <= set(extras), group
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
