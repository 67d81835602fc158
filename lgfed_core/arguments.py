"""What each command takes: a function each, in the order of `python -m lgfed_core --help`."""

from argparse import Action, ArgumentParser, ArgumentTypeError

MOST = 1000  # seeds of one command


def parser(description: str | None, version: str) -> ArgumentParser:
    """The parser of the command line; ``command`` of what it finds is the command's name."""
    whole = ArgumentParser("python -m lgfed_core", description=description)
    whole.add_argument("--version", action="version", version=version)
    commands = whole.add_subparsers(required=True, metavar="COMMAND", dest="command")
    commands.add_parser("list", help="list the experiments")
    add = commands.add_parser("data", help="list the data sets, or fetch some").add_argument
    add("names", nargs="*", metavar="NAME", help="e.g. mnist cifar10; without names, list all")
    stand_ins = "do not fail on a set that cannot be had if others stand in for it"
    add("--stand-ins", action="store_true", help=stand_ins)
    resume = "compute features of pictures; repeat it to resume"
    add = commands.add_parser("features", help=resume).add_argument
    add("name", metavar="SET", help="e.g. cifar10, office31")
    add("network", help="inception_v3, mobilenet_v2 or resnet50")
    _run(commands.add_parser("run", help="run an experiment; the same command continues it"))
    _fill(commands.add_parser("fill", help="run what the scoreboard lacks most; stop at any time"))
    report = "the papers' tables beside ours, with verdicts"
    add = commands.add_parser("report", help=report).add_argument
    add("paper", nargs="?", help="lgfedavg, cgau or fade (default: all)")
    front = "renew the answers of README.md and all pages, and the first page's figures"
    add("--front", action="store_true", help=front)
    _compare(commands.add_parser("compare", help="run a method of yours beside all stored ones"))
    _bench(commands.add_parser("bench", help="time a round against a plain PyTorch loop"))
    commands.add_parser("gpu-check", help="compare every experiment on a GPU with the CPU")
    return whole


def _run(run: ArgumentParser) -> None:
    add = run.add_argument
    add("experiment", help="a name from `list`, e.g. lgfedavg.mnist")
    add("--scale", default="quick", help="smoke, quick (default) or paper")
    add("--protocol", default="both", help="as_described, as_released or both")
    add("--seeds", default="0", type=seeds, help="e.g. 0, 0-9 or 0,2,5")
    said, many = "change settings, e.g. classes=5", dict(nargs="*", default=[], action="extend")
    add("--set", metavar="NAME=VALUE", help=said, **many)
    _where(run)
    add("--lanes", default="auto", help="looped, batched (small networks) or auto (by device)")
    _cluster(run)


def _fill(fill: ArgumentParser) -> None:
    add = fill.add_argument
    add("--plan", action="store_true", help="only show what would run first, and how much in all")
    add("--hours", type=float, default=1.0, help="how long to work (default 1)")
    add("--only", default="", metavar="EXPERIMENT", help="only this one")
    _where(fill)
    _cluster(fill)


def _compare(beside: ArgumentParser) -> None:
    add = beside.add_argument
    add("method", metavar="FILE.py:CLASS", help="or package.module:CLASS")
    many: dict = dict(nargs="*", default=[], action="extend")
    add("--also", metavar="FILE.py:CLASS", help="more of yours, beside it", **many)
    add("--net", metavar="FILE.py:FUNCTION", help="(inputs, classes) -> network, of all yours")
    add(
        "--data",
        metavar="FILE.py:FUNCTION",
        help="() -> (Dataset, deal): your data in place of our tasks",
    )
    said = "settings of the method named before it, e.g. quantile=0.4"
    add("--set", metavar="NAME=VALUE", nargs="*", default=[], action=_OfTheLast, help=said)
    add("--tasks", default="", help="some of mnist,cifar10,adult,digits,office31")
    add("--seeds", default="0-2", type=seeds, help="e.g. 0-2 (default)")
    add("--rates", default="", help="e.g. 0.05,0.2 (default: all five)")
    add("--hours", type=float, help="start nothing new after so many hours")
    add("--scale", default="paper", help="smoke, quick or paper (default)")
    add("--out", default="compared", metavar="FOLDER", help="of the report (default: compared)")
    _where(beside)
    tune = "fine-tune its model on each device in the last fifth of the rounds, and compare that"
    add("--fine-tune", action="store_true", help=tune)
    skip = "train it though it breaks these promises of a method (default: any); the report says so"
    add("--skip-contract", nargs="*", default=False, metavar="PROMISE", help=skip)


class _OfTheLast(Action):
    """Settings, each as (which method has it: 0, then those of --also; its text)."""

    def __call__(self, parser, namespace, values, option_string=None):
        which = len(namespace.also)
        namespace.set = [*namespace.set, *((which, text) for text in values)]


def _bench(bench: ArgumentParser) -> None:
    add = bench.add_argument
    add("--rounds", type=int, default=12, help="rounds to time (default 12)")
    add("--json", metavar="FILE", help="also write the times to FILE")
    add("--against", default="", metavar="NAMES", help="time these too: flower,pfl")
    tasks = "what to time; also blazefl,pfl"
    add("--tasks", default="mnist,cifar10", metavar="NAMES", help=tasks)
    add("--scaling", action="store_true", help="instead time more and more devices and seeds")


def _where(of: ArgumentParser) -> None:
    of.add_argument("--device", default="auto", help="cpu, cuda or auto (default)")
    of.add_argument("--workers", type=int, help="processes (default: one a core)")


def _cluster(of: ArgumentParser) -> None:
    said = "run on the workers of this Dask scheduler, e.g. tcp://10.0.0.5:8786"
    of.add_argument("--cluster", metavar="ADDRESS", help=said)


def seeds(text: str) -> list[int]:
    """From text to numbers: 0-2,5 -> [0, 1, 2, 5].

    Raises ArgumentTypeError for what names no seeds, one twice, or more than `MOST`.
    """
    found: list[int] = []
    for part in text.split(","):
        first, dash, last = part.partition("-")
        last = last if dash else first
        if not (first.isdecimal() and last.isdecimal() and int(last) < 2**32):
            raise ArgumentTypeError(f"{part!r} is no seed; use e.g. 0, 0-9 or 0,2,5")
        more = range(int(first), int(last) + 1)
        if len(found) + len(more) > MOST:
            raise ArgumentTypeError(f"{text!r} names more than {MOST:,} seeds")
        if not more or set(more) & set(found):
            raise ArgumentTypeError(f"{part!r} in {text!r} is empty or repeats a seed")
        found += more
    return found
