"""Runs on the workers of a Dask cluster: a worker dies, rows come once, nothing runs on."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import replace
from functools import partial

import pandas as pd
import pytest

from lgfed_core.errors import LgfedError, NotAvailable, ResultsError, SettingsError
from lgfed_core.fill import errand
from lgfed_core.fill.errand import Errand
from lgfed_core.papers.lgfedavg.mnist import MNIST
from toy import alive, until

distributed = pytest.importorskip("distributed", reason="the extra `cluster` is not installed")
dask = pytest.importorskip("dask")
psutil = pytest.importorskip("psutil")  # which Dask needs
cluster = pytest.importorskip("lgfed_core.fill.cluster")
LONG = dict(shrink=0.05, starts=(800,), alone=(), rows_per_class=(50, 20))  # some seconds


def mnist(seed: int, **changes) -> Errand:
    changes = dict(starts=(800,), alone=()) | changes
    return Errand("lgfedavg.mnist", "smoke", "as_described", changes, (seed,))


@pytest.fixture(scope="module")
def scheduler(tmp_path_factory):
    """Two workers of a thread each, which share a folder of checkpoints."""
    runs = tmp_path_factory.mktemp("cluster")
    # Of the workers themselves: the fork server lives on, with the environment it began with.
    env = {"LGFED_RUNS": str(runs / "runs"), "OMP_NUM_THREADS": "1"}
    forked = {"distributed.worker.multiprocessing-method": "forkserver"}  # imports Dask once
    here = dict(n_workers=2, threads_per_worker=1, dashboard_address=None, env=env)
    with (
        dask.config.set(forked),
        distributed.LocalCluster(**here, local_directory=str(runs)) as local,
    ):
        yield local, runs / "runs"


@pytest.fixture
def there(scheduler):
    with cluster.Cluster(scheduler[0].scheduler_address) as found:
        yield found


def once(*errands: Errand):
    """What gives one after the other, and then says that there is none."""
    return partial(next, iter(errands), None)


def numbers(rows: pd.DataFrame) -> list[dict]:
    """All that is said but how long it took."""
    return rows.drop(columns="seconds").to_dict("records")


def test_a_dead_workers_run_goes_on_elsewhere_and_is_told_once(scheduler, there):
    asked = mnist(0, **LONG)
    assert there.slots == 2
    found = there.rows(once(asked))
    assert next(found) == (asked, None)
    until(lambda: list(scheduler[1].rglob("*seed0*/*.safetensors")))
    children = there.client.run(_children)
    (worker,) = (who for who, mine in children.items() if mine)
    killed = [there.client.run(os.getpid)[worker], *children[worker]]
    os.kill(killed[0], signal.SIGKILL)
    ((errand_, rows),) = found  # once
    assert errand_ == asked and not any(map(alive, killed))  # neither the worker nor its child
    cfg = MNIST.settings(asked.scale, asked.protocol, **asked.changes)
    here, _ = MNIST.run(cfg, [0], record=False, resume=False, workers=1)
    assert numbers(rows) == numbers(here)


def test_what_a_worker_cannot_run_is_named(there, monkeypatch):
    monkeypatch.setattr(cluster, "work", lambda asked, stop: errand.answer(asked))
    (_, said), (_, error) = there.rows(once(mnist(2, devices=0)))
    assert said is None and isinstance(error, LgfedError) and "devices" in str(error)


def test_what_is_printed_before_an_answer_is_no_part_of_it():
    rows = pd.DataFrame({"seed": [0, 1], "value": [0.5, 1.5]})
    said = json.dumps(rows.to_dict("split", index=False))
    assert errand.rows(f"20 devices\nof small digits\n{said}\n").equals(rows)
    with pytest.raises(LgfedError, match="no rows came back, but '20 devices'"):
        errand.rows("20 devices\n")


@pytest.mark.skipif(os.name != "posix", reason="workers are forked")
@pytest.mark.parametrize("closed", [False, True])
def test_an_errand_may_have_workers_of_its_own_and_none_outlives_who_asked(closed, tmp_path):
    env = os.environ | {"LGFED_RUNS": str(tmp_path), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "lgfed_core.fill.errand"]
    pipes = dict(stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env)
    with subprocess.Popen(command, **pipes) as process:
        process.stdin.write(replace(mnist(4, **LONG), workers=2).asked() + "\n")
        process.stdin.flush()
        own = psutil.Process(process.pid)
        until(lambda: len(own.children()) >= 2)
        mine = [child.pid for child in own.children()]
        if closed:
            process.stdin.close()
        else:
            assert len(errand.rows(process.stdout.readline())) > 0
        assert process.wait(60) == int(closed)
        until(lambda: not any(map(alive, mine)), 10)


def test_rows_that_cannot_be_recorded_stop_no_other_run(there, monkeypatch):
    monkeypatch.setattr(cluster, "work", lambda asked, stop: '{"columns": ["seed"], "data": [[0]]}')
    told, failing = [], iter([ResultsError("a column is missing"), None])

    def record(name, rows):
        if error := next(failing):
            raise error

    monkeypatch.setattr(cluster.records, "record", record)
    found = list(there.recorded(once(mnist(0), mnist(1)), told.append))
    assert found == ["a column is missing", 1]
    assert any(line.endswith("left out, a column is missing") for line in told)


def test_a_scheduler_that_is_gone_says_how_to_go_on(there, monkeypatch):
    def gone():
        raise OSError("Timed out trying to connect to tcp://10.0.0.5:8786 after 30 s")

    monkeypatch.setattr(there.client, "nthreads", gone)
    with pytest.raises(LgfedError, match="Timed out .* say the same command again"):
        list(there.rows(lambda: mnist(0)))


def test_whatever_an_experiment_raises_comes_back_by_name(monkeypatch):
    def fails(name):
        raise IndexError("list index out of range")

    monkeypatch.setattr(errand.experiments, "find", fails)
    with pytest.raises(LgfedError, match="IndexError: list index out of range"):
        errand.rows(errand.answer(mnist(0).asked()))


def test_other_code_is_refused(monkeypatch):
    asked = mnist(2).asked()
    monkeypatch.setattr(errand, "code", lambda: "another")
    with pytest.raises(LgfedError, match="this machine has other code"):
        errand.rows(errand.answer(asked))


def test_who_leaves_stops_what_runs(scheduler):
    local, _ = scheduler
    with cluster.Cluster(local.scheduler_address) as there:
        begun = there.rows(once(mnist(3, **LONG | dict(shrink=5.0))))
        next(begun)
        until(lambda: any(there.client.run(_children).values()))
        children = [pid for mine in there.client.run(_children).values() for pid in mine]
    with distributed.Client(local.scheduler_address) as client:
        until(lambda: not any(map(alive, children)), 10)
        assert not any(client.run(_children).values())


def test_a_scheduler_that_is_not_there_is_named(monkeypatch):
    monkeypatch.setattr(cluster, "CONNECT", 0.3)
    for address in ("tcp://127.0.0.1:9", "inproc://10.0.0.5/1/1"):  # which were asked
        with pytest.raises(SettingsError, match=r"no scheduler of Dask answers there \((?!it is)"):
            cluster.Cluster(address)
    begun = time.monotonic()
    for address in ("nonsense", "tcp://10.0.0.5", "nonsense://x"):
        with pytest.raises(SettingsError, match="it is no file, and has no port"):
            cluster.Cluster(address)
    assert time.monotonic() - begun < 0.3  # nobody was asked


def test_tls_takes_its_certificates_from_the_environment_or_says_so(tmp_path):
    pytest.importorskip("cryptography", reason="it makes certificates")
    shared = tmp_path / "shared.json"
    shared.write_text('{"address": "tls://127.0.0.1:9"}')
    for asked in ("tls://127.0.0.1:9", str(shared)):
        with pytest.raises(SettingsError, match="TLS needs the files that .*CA_FILE, .*KEY name"):
            cluster.Cluster(asked)
    made = distributed.Security.temporary()
    parts = made.tls_ca_file, made.tls_client_cert, made.tls_client_key
    files = [tmp_path / f"{number}.pem" for number in range(3)]
    for file, text in zip(files, parts, strict=True):
        file.write_text(text)
    named = dask.config.collect_env(dict(zip(cluster.CERTIFICATES, map(str, files), strict=True)))
    named = dask.config.merge(dask.config.config, named)  # as Dask does when it is imported
    here = dict(protocol="tls", security=made, dashboard_address=None, silence_logs=40)
    with distributed.LocalCluster(n_workers=0, **here) as local, dask.config.set(named):
        assert local.scheduler_address.startswith("tls://")
        with cluster.Cluster(local.scheduler_address) as there:
            assert there.slots == 0


def test_without_dask_a_cluster_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(NotAvailable, match="pip install 'distributed"):
        cluster.Cluster("tcp://127.0.0.1:9")


def _children() -> list[int]:
    """The processes that run errands for the one that is asked, but for those just ended."""
    mine = []
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):  # or a zombie, whose command can't be asked for
            if "lgfed_core.fill.errand" in process.cmdline():
                mine.append(process.pid)
    return mine
