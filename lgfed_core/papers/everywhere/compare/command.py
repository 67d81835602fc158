"""What is typed after `python -m lgfed_core compare`."""

from argparse import Namespace

from lgfed_core.errors import SettingsError

from . import compare
from .beside import sentences
from .report import short


def main(typed: Namespace) -> int:
    """Run the comparison that was ``typed``, and say what came out and where the report lies."""
    try:
        rates = tuple(float(rate) for rate in typed.rates.split(",") if rate)
    except ValueError:
        raise SettingsError(f"--rates is {typed.rates!r}; give numbers, as 0.01,0.05") from None
    lines = compare(
        typed.method,
        net=typed.net,
        settings=dict(pair.partition("=")[::2] for pair in typed.set),
        tasks=tuple(filter(None, typed.tasks.split(","))),
        seeds=typed.seeds,
        rates=rates,
        scale=typed.scale,
        out=typed.out,
        device=typed.device,
        workers=typed.workers,
        hours=typed.hours,
        contract=not typed.skip_contract,
    )
    said = [*short(typed.scale), *(one.replace("**", "") for one in sentences(lines))]
    print("\n".join(said))
    print(f"\nthe report: {typed.out}/report.html, report.md, rows.csv, command.txt")
    return 0
