"""A method of yours beside all stored ones, on the same tasks and budget.

    python -m lgfed_core compare my_method.py:MyMethod --out report
    python -m lgfed_core compare my_method.py:MyMethod --also my_method.py:WithoutIt --out report
    python -m lgfed_core compare my_method.py:MyMethod --data my_data.py:walks --out report

`compare` loads the method, checks its contract (`lgfed_core.testing`), runs it as the page *every
method on every task* runs its own (rows, rounds, five learning rates, the choice on validation
rows), and writes a report. On data of yours all methods that fit are run in the same way. Files
that you name are run with your rights, as any Python program.
"""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import Collection, Sequence
from itertools import zip_longest
from pathlib import Path

import pandas as pd

from lgfed_core import require
from lgfed_core.errors import SettingsError

from .. import claims
from . import report
from .beside import Beside, sentences
from .experiment import METHOD, Compared, Others, Yours
from .given import UNCHECKED, Given, checked
from .own_data import read
from .source import load


def compare(
    method: object,
    *,
    net: object = None,
    data: object = None,
    settings: dict | list | None = None,
    tasks: Sequence[str] = (),
    seeds: Sequence[int] = (0, 1, 2),
    rates: Sequence[float] = (),
    scale: str = "paper",
    out: Path | str = "compared",
    device: str = "auto",
    workers: int | None = None,
    hours: float = require.YEAR,
    skip_contract: bool | Collection[str] = False,
    tuned: bool = False,
) -> pd.DataFrame:
    """Run ``method`` on ``tasks`` and set it beside the stored methods; the report lies in ``out``.

    method: a `Method`, its class, a function from a network to one, or where to find either, as
    "FILE.py:NAME" or "package.module:NAME"; or a list of such, of which the first is compared, and
    the others run, too, and stand beside it. A class whose field ``layers`` is not set gets the
    names of the head's parameters, as LG-FedAvg shares them. net: a function (inputs, classes) ->
    network, or where to find one, for all of yours; by default the small network of all methods.
    data: in the place of our tasks, a function () -> (`Dataset`, deal) with deal(seed) a
    `Partition`, or where to find one; the other methods are then run on it, too. settings: of the
    class or function; of several methods a list. tasks, rates: by default all. hours: no part
    begins after so many. skip_contract: True trains the method as it is, and the report says that
    its contract was not checked; or the names of promises that it may break. tuned: in the
    last fifth of the rounds each device fine-tunes the method's model by itself, as *fine-tuned
    FedAvg* does; that is compared, and the method as it is stands beside it. The same call
    continues one that was stopped.

    Returns a line for each comparison: task, measure, other, runs, estimate (points by which yours
    is better), low, high, outcome; its ``attrs`` have what was ``left_out``. Raises ContractError
    for a method that breaks promises, before it trains, with a line for each; SettingsError for
    what cannot be compared; and Busy while another process does the same.
    """
    require.long_enough(hours)
    network = net if net is None else load(net)
    several = method if isinstance(method, list) else [method]
    own_ones = settings if isinstance(settings, list) else [settings]
    pairs = zip_longest(several, own_ones)
    given = [Given(load(one), network, some or {}) for one, some in pairs]
    if len({one.name for one in given}) < len(given):
        names = ", ".join(one.name for one in given)
        raise SettingsError(f"your methods are called {names}; give each a name of its own")
    if data is None:
        paired(seeds)
    folder = report.folder(out)
    own = None if data is None else read(data, list(seeds))
    if own and tasks:
        raise SettingsError("tasks are of our own data; with data of yours, leave them out")
    chosen = dict(tasks=tuple(tasks)) if tasks else {}
    chosen |= dict(lrs=tuple(rates)) if rates else {}
    yours = [Yours(given[0], folder, own, tuned=True)] if tuned else []
    yours += [Yours(one, folder, own) for one in given]
    runs: list[Compared] = [*yours, *([Others(folder, own)] if own else [])]
    cfgs = [one.settings(scale, **chosen) for one in runs]
    for one, cfg in zip(runs, cfgs, strict=True):
        one.check(cfg, list(seeds), device, workers=workers)
    said = [f"{UNCHECKED}."]
    if skip_contract is not True:
        alike = [*zip(yours, cfgs, strict=False)][tuned:]  # fine-tuning is no method of yours
        skip = skip_contract or ()
        said = [checked(one.given, cfg, one.task, skip) for one, cfg in alike]
    end = time.monotonic() + 3600 * hours
    found = []
    for one, cfg in zip(runs, cfgs, strict=True):
        left = max(0.0, end - time.monotonic()) / 3600
        found.append(one.measure(cfg, list(seeds), device, workers, left))
    left_out = [why for one in runs for why in one.left_out]
    sweep = len(cfgs[0].lrs)
    theirs = claims.chosen(found.pop(), sweep) if own else claims.chosen(claims.stored())
    if theirs.empty:
        raise SettingsError(
            "no other method has run with all its rates, so there is nothing beside yours "
            f"({'; '.join(left_out)}); the same command goes on, with more --hours"
        )
    rows = [found[0].assign(method=METHOD)]
    mine = claims.chosen(rows[0])
    lost, whole = diverged(yours[0].called, rows[0], mine)
    left_out += lost
    for one, some in zip(yours[1:], found[1:], strict=True):  # under a name that is none of ours
        rows.append(some.assign(method=f"{one.called} (yours)"))
    beside = [claims.chosen(some, sweep) for some in rows[1:]]
    told = Beside(mine, pd.concat([*beside, theirs]))
    report.write(folder, yours, cfgs[0], pd.concat(rows), told, " ".join(said), left_out)
    failed = any(one.failed for one in runs) or not whole
    told.lines.attrs.update(left_out=left_out, failed=failed)
    return told.lines


def paired(seeds: Sequence[int]) -> None:
    """Raise SettingsError where no stored method has run with any of ``seeds``."""
    known = {*claims.stored()["seed"]}
    if known and known.isdisjoint(seeds):
        raise SettingsError(
            f"differences are paired by seed, and the stored methods have {min(known)} to "
            f"{max(known)}: give --seeds among these, or first run them with yours, as `python -m "
            f"lgfed_core run everywhere --scale paper --seeds {min(seeds)} --set methods=fedavg`"
        )


def diverged(called: str, rows: pd.DataFrame, mine: pd.DataFrame) -> tuple[list[str], bool]:
    """Where seeds diverged at the chosen rate, in words, and whether each task has some left.

    mine: `claims.chosen` of ``rows``, which also leaves out a task whose rates have not all run;
    that is said elsewhere. Raises SettingsError where all diverged.
    """
    if mine.empty:
        raise SettingsError(
            f"all runs of {called} diverged, so nothing can be compared; give lower --rates"
        )
    out, whole = [], True
    ended = rows[(rows["table"] == claims.TABLE) & (rows["metric"] == "validation_acc")]
    for task, some in ended.groupby("task", sort=False):
        kept, lost = claims.of(mine, task, METHOD), some[some["value"].isna()]
        which = "all seeds" if len(lost) == len(some) else ""
        whole &= not which
        if len(kept) and len(lost := lost[lost["lr"] == kept["lr"].iloc[0]]):
            which = f"seeds {', '.join(map(str, sorted(lost['seed'])))}"
        if which:
            out.append(f"{called}, {task}: {which} diverged")
    return out, whole


def main(typed: Namespace) -> int:
    """Run the comparison that was ``typed``, and say what came out and where the report lies."""
    try:
        rates = tuple(float(rate) for rate in typed.rates.split(",") if rate)
    except ValueError:
        raise SettingsError(f"--rates is {typed.rates!r}; give numbers, as 0.01,0.05") from None
    lines = compare(
        [typed.method, *typed.also],
        net=typed.net,
        data=typed.data,
        settings=[
            dict(_pair(text) for at, text in typed.set if at == number)
            for number in range(1 + len(typed.also))
        ],
        tasks=tuple(filter(None, typed.tasks.split(","))),
        seeds=typed.seeds,
        rates=rates,
        scale=typed.scale,
        out=typed.out,
        device=typed.device,
        workers=typed.workers,
        hours=require.YEAR if typed.hours is None else typed.hours,
        skip_contract=typed.skip_contract == [] or typed.skip_contract,
        tuned=typed.fine_tune,
    )
    said = [
        *report.short(typed.scale, typed.data is not None),
        *(one.replace("**", "") for one in sentences(lines)),
    ]
    print("\n".join(said))
    print(f"\nthe report: {typed.out}/report.html, report.md, rows.csv, command.txt, code/")
    for one in lines.attrs["left_out"]:
        print(f"left out: {one}")
    return int(lines.attrs["failed"])


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise SettingsError(f"--set {text!r} has no value; write {name}=VALUE")
    return name, value
