"""Where a number was made."""

import shutil
import subprocess

import pytest
import torch

from lgfed_core.engine import provenance


def test_provenance_says_device_version_and_commit():
    found = provenance.provenance(torch.device("cpu"))
    assert found["device"].startswith("cpu: ") and len(found["device"]) > len("cpu: ")
    assert found["torch"] == torch.__version__ and found["commit"]


@pytest.mark.skipif(not shutil.which("git"), reason="git is not installed")
def test_commit_of_clean_changed_and_foreign_folders(tmp_path):
    def git(*arguments):
        named = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
        asked = ["git", "-C", str(tmp_path), *named, *arguments]
        return subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()

    commit = provenance._commit.__wrapped__
    package = tmp_path / "lgfed_core"
    (package / "engine").mkdir(parents=True)
    (package / "engine" / "provenance.py").write_text("1\n")
    assert commit(package) == "unknown"
    git("init", "-q")
    assert commit(package) == "unknown"  # inside a checkout that is not ours
    git("add", ".")
    git("commit", "-qm", "one")
    short = git("rev-parse", "HEAD")[:8]
    assert commit(package) == short
    (package / "new.py").write_text("")  # not tracked
    (tmp_path / "elsewhere.txt").write_text("")
    assert commit(package) == short
    (package / "engine" / "provenance.py").write_text("2\n")
    assert commit(package) == f"{short}+dirty"


def test_without_git_a_commit_is_unknown(monkeypatch):
    monkeypatch.setenv("PATH", "")
    assert provenance._commit.__wrapped__() == "unknown"
