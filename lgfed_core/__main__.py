"""The papers' experiments: list and run them, report verdicts, compare a method of your own."""

import os
import sys
from contextlib import nullcontext
from functools import partial

from . import __version__, arguments, require
from .errors import LgfedError, SettingsError


def main(argv: list[str] | None = None) -> int:
    """Run one command; errors of ours print one line instead of a traceback."""
    args = arguments.parser(__doc__, __version__).parse_args(argv)
    try:
        return COMMANDS[args.command](args)
    except LgfedError as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:  # the reader of our output, such as `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        print("\nstopped; the same command continues from the last checkpoint", file=sys.stderr)
        return 130


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
    from .engine import CPU
    from .engine.provenance import provenance
    from .evidence import records as results
    from .papers.parts import said

    experiment = experiments.find(args.experiment)
    changes = command_checks.changes(experiment.Settings, args.set)
    protocols = experiment.protocols if args.protocol == "both" else [args.protocol]
    why_not = "The smallest scale is for trying things out" if args.scale == "smoke" else ""
    if others := changes.keys() - experiment.chooses:
        picks = ", ".join(sorted(experiment.chooses)) or "none"
        why_not = (
            f"--set {', '.join(sorted(others))} changes what {experiment.name} computes "
            f"(settings that only pick some of its runs: {picks})"
        )
    if why_not:
        print(f"{why_not}: nothing is recorded.")
    else:
        results.writable()
        if provenance(CPU)["commit"].endswith("+dirty"):
            print("The code has changes that no commit has: rows will say +dirty.")
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
        require.at_least(1, workers=args.workers)
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
    if args.front:
        from .papers.front import renew

        print(*(f"renewed {path}" for path in renew()), sep="\n")
    if args.paper or not args.front:
        from .papers.printed import printout

        for part in printout(args.paper):
            print(part, flush=True)
    return 0


def _compare(args) -> int:
    from .papers import command_checks

    places = args.method, *args.also, args.net, args.data
    command_checks.compare(places, args.scale, args.device, args.hours)
    from .papers.everywhere import compare

    return compare.main(args)


def _bench(args) -> int:
    from . import bench

    against, tasks = ([*filter(None, text.split(","))] for text in (args.against, args.tasks))
    if args.scaling:
        return bench.scale_up(args.json)
    return bench.main(args.rounds, args.json, against, tasks)


def _gpu_check(args) -> int:
    from . import gpu_check

    return gpu_check.main()


COMMANDS = {
    "list": _list,
    "data": _data,
    "features": _features,
    "run": _run,
    "fill": _fill,
    "report": _report,
    "compare": _compare,
    "bench": _bench,
    "gpu-check": _gpu_check,
}

if __name__ == "__main__":
    sys.exit(main())
