"""The papers' experiments: list and run them, report verdicts, compare a method of your own."""

import argparse
import os
import sys
from contextlib import nullcontext
from functools import partial

from . import __version__
from .errors import LgfedError, SettingsError, at_least

MOST = 1000  # seeds of one command
CLUSTER = "run on the workers of this Dask scheduler, e.g. tcp://10.0.0.5:8786"


def main(argv: list[str] | None = None) -> int:
    """Run one command; errors of ours print one line instead of a traceback."""
    args = _parser().parse_args(argv)
    try:
        return args.command(args)
    except LgfedError as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:  # the reader of our output, such as `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        print("\nstopped; the same command continues from the last checkpoint", file=sys.stderr)
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m lgfed_core", description=__doc__)
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    show = commands.add_parser("list", help="list the experiments")
    show.set_defaults(command=_list)

    data = commands.add_parser("data", help="list the data sets, or fetch some")
    data.add_argument(
        "names", nargs="*", metavar="NAME", help="e.g. mnist cifar10; without names, list all"
    )
    data.add_argument(
        "--stand-ins",
        action="store_true",
        help="do not fail on a set that cannot be had if others stand in for it",
    )
    data.set_defaults(command=_data)

    made = commands.add_parser("features", help="compute features of pictures; repeat it to resume")
    made.add_argument("name", metavar="SET", help="e.g. cifar10, office31")
    made.add_argument("network", help="inception_v3, mobilenet_v2 or resnet50")
    made.set_defaults(command=_features)

    run = commands.add_parser("run", help="run an experiment; the same command continues it")
    run.add_argument("experiment", help="a name from `list`, e.g. lgfedavg.mnist")
    run.add_argument("--scale", default="quick", help="smoke, quick (default) or paper")
    run.add_argument("--protocol", default="both", help="as_described, as_released or both")
    run.add_argument("--seeds", default="0", type=_seeds, help="e.g. 0, 0-9 or 0,2,5")
    run.add_argument(
        "--set",
        nargs="*",
        default=[],
        action="extend",
        metavar="NAME=VALUE",
        help="change settings, e.g. classes=5",
    )
    run.add_argument("--device", default="auto", help="cpu, cuda or auto (default)")
    run.add_argument("--workers", type=int, help="processes (default: one a core)")
    run.add_argument(
        "--lanes", default="auto", help="looped, batched (small networks) or auto (by device)"
    )
    run.add_argument("--cluster", metavar="ADDRESS", help=CLUSTER)
    run.set_defaults(command=_run)

    fill = commands.add_parser("fill", help="run what the scoreboard lacks most; stop at any time")
    fill.add_argument(
        "--plan", action="store_true", help="only show what would run first, and how much in all"
    )
    fill.add_argument("--hours", type=float, default=1.0, help="how long to work (default 1)")
    fill.add_argument("--only", default="", metavar="EXPERIMENT", help="only this one")
    fill.add_argument("--device", default="auto", help="cpu, cuda or auto (default)")
    fill.add_argument("--workers", type=int, help="processes (default: one a core)")
    fill.add_argument("--cluster", metavar="ADDRESS", help=CLUSTER)
    fill.set_defaults(command=_fill)

    report = commands.add_parser("report", help="the papers' tables beside ours, with verdicts")
    report.add_argument("paper", nargs="?", help="lgfedavg, cgau or fade (default: all)")
    report.add_argument(
        "--front",
        action="store_true",
        help="renew the answers of README.md and all pages, and the first page's figures",
    )
    report.set_defaults(command=_report)

    beside = commands.add_parser("compare", help="run a method of yours beside all stored ones")
    beside.add_argument("method", metavar="FILE.py:CLASS", help="or package.module:CLASS")
    beside.add_argument("--net", metavar="FILE.py:FUNCTION", help="(inputs, classes) -> network")
    beside.add_argument("--set", nargs="*", default=[], metavar="NAME=VALUE", help="its settings")
    beside.add_argument(
        "--tasks", default="", help="mnist,cifar10,adult,digits,office31 (default: all)"
    )
    beside.add_argument("--seeds", default="0-2", type=_seeds, help="e.g. 0-2 (default)")
    beside.add_argument("--rates", default="", help="e.g. 0.05,0.2 (default: all five)")
    beside.add_argument("--hours", type=float, help="start nothing new after so many hours")
    beside.add_argument("--scale", default="paper", help="smoke, quick or paper (default)")
    beside.add_argument("--out", default="compared", metavar="FOLDER", help="where the report goes")
    beside.add_argument("--device", default="auto", help="cpu, cuda or auto (default)")
    beside.add_argument("--workers", type=int, help="processes (default: one a core)")
    beside.add_argument(
        "--skip-contract",
        action="store_true",
        help="train it, whatever promises of a method it breaks; the report says so",
    )
    beside.set_defaults(command=_compare)

    bench = commands.add_parser("bench", help="time a round against a plain PyTorch loop")
    bench.add_argument("--rounds", type=int, default=12, help="rounds to time (default 12)")
    bench.add_argument("--json", metavar="FILE", help="also write the times to FILE")
    bench.add_argument("--against", default="", metavar="NAMES", help="time these too: flower,pfl")
    bench.add_argument(
        "--tasks", default="mnist,cifar10", metavar="NAMES", help="what to time; also blazefl,pfl"
    )
    bench.add_argument(
        "--scaling", action="store_true", help="instead time more and more devices and seeds"
    )
    bench.add_argument("--profile", action="store_true", help="instead show where time goes")
    bench.set_defaults(command=_bench)

    check = commands.add_parser("gpu-check", help="compare every experiment on a GPU with the CPU")
    check.add_argument("--json", metavar="FILE", help="also write the comparisons to FILE")
    check.set_defaults(command=_gpu_check)
    return parser


def _seeds(text: str) -> list[int]:
    """From text to numbers: 0-2,5 -> [0, 1, 2, 5]."""
    seeds = []
    for part in text.split(","):
        first, dash, last = part.partition("-")
        last = last if dash else first
        if not (first.isdecimal() and last.isdecimal() and int(last) < 2**32):
            raise argparse.ArgumentTypeError(f"{part!r} is no seed; use e.g. 0, 0-9 or 0,2,5")
        more = range(int(first), int(last) + 1)
        if len(seeds) + len(more) > MOST:
            raise argparse.ArgumentTypeError(f"{text!r} names more than {MOST:,} seeds")
        if not more or set(more) & set(seeds):
            raise argparse.ArgumentTypeError(f"{part!r} in {text!r} is empty or repeats a seed")
        seeds += more
    return seeds


def _list(args) -> int:
    from .papers.experiments import PLACES

    for name, place in PLACES.items():
        print(f"{name:20} {place.words}")
    return 0


def _data(args) -> int:
    from . import data

    return data.main(args.names, args.stand_ins)


def _features(args) -> int:
    from .data.features.compute import compute

    for part in compute(args.name, args.network):
        print(f"{part.name}: {len(part):,} rows of {part.x.shape[1]:,} numbers are ready")
    return 0


def _run(args) -> int:
    from .papers import command_checks, experiments

    command_checks.run(args.experiment, args.scale, args.protocol, args.device, args.lanes)
    from .evidence import records as results
    from .papers import parse_settings
    from .papers.parts import said

    experiment = experiments.find(args.experiment)
    changes = parse_settings.changes(experiment.Settings, args.set)
    protocols = experiment.protocols if args.protocol == "both" else [args.protocol]
    why_not = "The smallest scale is for trying things out" if args.scale == "smoke" else ""
    if others := changes.keys() - experiment.chooses:
        picks = ", ".join(sorted(experiment.chooses)) or "none"
        why_not = (
            f"--set {', '.join(sorted(others))} changes what {experiment.name} computes "
            f"(settings that only pick some of its runs: {picks})"
        )
    if not why_not:
        results.writable()
    if why_not:
        print(f"{why_not}: nothing is recorded.")
    how = dict(device=args.device, workers=args.workers, lanes=args.lanes)
    if args.cluster:
        return _run_elsewhere(args, experiment, protocols, changes, record=not why_not)
    plans = []
    for protocol in protocols:  # all of them are checked before the first one runs
        cfg = experiment.settings(args.scale, protocol, **changes)
        plans.append((protocol, cfg, experiment.plan(cfg, args.seeds, **how)))
    for protocol, cfg, plan in plans:
        print(f"{protocol}, {args.scale}, seeds {' '.join(map(str, args.seeds))}, to run:")
        print(said(plan))
        rows, _ = experiment.run(cfg, args.seeds, record=not why_not, **how)
        print(f"{protocol}, {args.scale}: {len(rows)} rows")
        if why_not:
            print(_shown(rows))
        else:
            print(f"recorded in {results.RESULTS / experiment.name}.csv")
    return 0


def _run_elsewhere(args, experiment, protocols: list[str], changes: dict, record: bool) -> int:
    """`_run` by the workers of a cluster, one errand for each protocol and seed."""
    from .fill.cluster import Cluster
    from .fill.errand import Errand

    errands = []
    for protocol in protocols:
        cfg = experiment.settings(args.scale, protocol, **changes)
        cpu = experiment.check(cfg, args.seeds, "cpu")  # settings alone: workers know their devices
        at_least(1, workers=args.workers)
        how = args.device, args.workers or 1, args.lanes
        what = experiment.name, args.scale, protocol, changes
        groups = experiment.groups(args.seeds, cpu)
        errands += [Errand(*what, tuple(group), *how) for group in groups]
    with Cluster(args.cluster) as cluster:
        found = list(cluster.recorded(partial(next, iter(errands), None), print, record))
    done = [rows for rows in found if isinstance(rows, int)]
    print(f"{len(done)} of {len(errands)} runs, {sum(done)} rows")
    return int(len(done) < len(found))


def _shown(rows) -> str:
    """Result rows of any experiment as a table: a line per cell and selection, means over seeds."""
    from .evidence.rows import identifying

    keys = [*identifying(rows), "selection"]
    rows = rows.assign(**rows[keys].astype(object).fillna(""))
    return rows.pivot_table("value", keys, "metric", sort=False).to_string()


def _fill(args) -> int:
    from .papers import command_checks

    command_checks.fill(args.hours, args.device, args.only)
    if args.plan and (args.workers is not None or args.cluster):
        raise SettingsError(
            "--plan shows what one process here would run; leave out --workers and --cluster"
        )
    from .fill import cluster, work
    from .fill.words import said

    if args.plan:
        print(said(work.planner(args.device, args.only)))
    else:
        plan = partial(work.planner, args.device, args.only, bool(args.cluster))
        how = args.hours, plan, args.device, args.workers, partial(print, flush=True)
        with cluster.Cluster(args.cluster) if args.cluster else nullcontext() as there:
            work.fill(*how, there)
    return 0


def _report(args) -> int:
    from .papers import command_checks

    command_checks.paper(args.paper)
    from .papers.printout import printout

    print(printout(args.paper, args.front))
    return 0


def _compare(args) -> int:
    from .papers.everywhere.compare import command

    return command.main(args)


def _bench(args) -> int:
    from . import bench

    against, tasks = ([*filter(None, text.split(","))] for text in (args.against, args.tasks))
    if args.scaling:
        return bench.scale_up(args.json)
    if args.profile:
        return bench.look_inside(args.json, tasks)
    return bench.main(args.rounds, args.json, against, tasks)


def _gpu_check(args) -> int:
    from . import gpu_check

    return gpu_check.main(args.json)


if __name__ == "__main__":
    sys.exit(main())
