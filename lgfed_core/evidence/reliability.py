"""What was attacked, how often, and what came out: ``data/reliability.toml``.

These are counts of tests and not results of experiments, so they do not lie among the rows. Each
has the command that counted, the day and the commit; who counts again writes the new number there.
"""

import tomllib
from pathlib import Path

import pandas as pd

from lgfed_core.errors import ResultsError
from lgfed_core.paths import ROOT

PLACE = ROOT / "data" / "reliability.toml"
FIELDS = ("what", "tried", "unit", "failed", "found", "command", "date", "commit")


def counts(path: Path = PLACE) -> pd.DataFrame:
    """One line per count, in the order of the file; columns `FIELDS`.

    Raises ResultsError for a file that cannot be read, and for a line that lacks a field, has
    another, or more failures than tries.
    """
    try:
        lines = tomllib.loads(path.read_text(encoding="utf-8")).get("count", [])
    except (OSError, ValueError) as error:
        raise ResultsError(f"{path} cannot be read: {error}") from error
    for number, line in enumerate(lines, 1):
        if odd := set(line) ^ set(FIELDS):
            raise ResultsError(f"{path.name}, count {number}: {', '.join(sorted(odd))} is missing, "
                               f"or none of {', '.join(FIELDS)}")  # fmt: skip
        numbers = [line[name] for name in ("failed", "tried")]
        if not (all(type(n) is int for n in numbers) and 0 <= numbers[0] <= numbers[1]):
            raise ResultsError(
                f"{path.name}, {line['what']}: {line['failed']} of {line['tried']} failed"
            )
    return pd.DataFrame(lines, columns=list(FIELDS))


def markdown(lines: pd.DataFrame) -> str:
    """A bullet for each count: ``tried`` with its unit, what came out, and how it was counted."""
    return "\n".join(
        f"- **{line.what}**: {line.failed:,} of {line.tried:,} {line.unit} failed; {line.found} "
        f"(`{line.command}`, {line.date}, {line.commit})"
        for line in lines.itertuples()
    )
