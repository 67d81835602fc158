"""Files written whole or not at all, and locks that end with their owners."""

import errno
import os
import signal
import subprocess
import sys

import pytest

from lgfed_core import files
from lgfed_core.errors import ResultsError
from lgfed_core.evidence import records
from lgfed_core.files import replacing


@pytest.mark.parametrize("locked", [True, False])
def test_a_file_is_replaced_whole_or_not_at_all(tmp_path, locked):
    path = tmp_path / "a.csv"
    path.write_text("old")
    with pytest.raises(KeyError), replacing(path, locked) as part:
        part.write_text("half")
        raise KeyError
    assert path.read_text() == "old"
    with replacing(path, locked) as part:
        part.write_text("new")
        assert path.read_text() == "old"
        assert not part.match("*.csv")  # a reader of all results does not take it for one
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


def test_what_a_killed_owner_left_is_overwritten(tmp_path):
    path = tmp_path / "a.bin"
    with replacing(path, locked=True) as part:
        left = part
        part.write_bytes(b"1")
    left.parent.mkdir()
    left.write_bytes(b"half of a killed run")
    left.with_name(".tmpA1b2C3").write_bytes(b"half")  # what a library had begun
    with replacing(path, locked=True) as part:
        part.write_bytes(b"2")
    assert path.read_bytes() == b"2"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(os.name != "posix", reason="there are no locks")
def test_a_folder_without_locks_is_named_before_anything_runs(tmp_path, monkeypatch):
    def none(handle, how):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    with files.locked(tmp_path):
        records.writable(tmp_path)  # another process writes now
    monkeypatch.setattr(files.fcntl, "flock", none)
    with pytest.raises(ResultsError, match="no row can be written to .*: No locks available"):
        records.writable(tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(os.name != "posix", reason="a folder cannot be opened")
def test_bytes_and_name_are_on_the_disk_before_anybody_goes_on(tmp_path, monkeypatch):
    path, synced = tmp_path / "a.bin", []
    real = os.fsync

    def noted(handle):
        synced.append((os.fstat(handle).st_ino, path.exists()))
        real(handle)

    monkeypatch.setattr(files.os, "fsync", noted)
    with replacing(path) as part:
        part.write_bytes(b"1")
    assert synced == [(path.stat().st_ino, False), (tmp_path.stat().st_ino, True)]


@pytest.mark.skipif(files.fcntl is None, reason="no file locks on this system")
def test_a_lock_ends_with_its_process_though_a_worker_lives_on(tmp_path):
    holder = (
        "import os, sys, time; from pathlib import Path; from lgfed_core.files import locked\n"
        f"with locked(Path({str(tmp_path)!r})):\n"
        "    if not os.fork(): print('worker', flush=True); time.sleep(30); os._exit(0)\n"
        "    time.sleep(30)"
    )
    command = [sys.executable, "-c", holder]
    with subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True) as process:
        process.stdout.readline()
        with pytest.raises(BlockingIOError), files.locked(tmp_path, wait=False):
            pass
        process.kill()
        process.wait()
        with files.locked(tmp_path, wait=False):
            os.killpg(process.pid, signal.SIGKILL)  # its worker was there until now
