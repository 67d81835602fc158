"""What papermill gives a page is checked before the page computes anything.

Papermill puts a cell of its own behind the page's parameters, whatever is in it: a name with a slip
would be set, and never read.
"""

import ast
from collections.abc import Iterable, Sequence
from typing import Any

from lgfed_core import require
from lgfed_core.errors import SettingsError

from .command_checks import SCALES

MARK = "# Parameters"  # how papermill's cell begins
SMOKE = (
    "**Scale smoke**: what runs live here lasts seconds, and its numbers mean nothing. "
    "Stored runs are shown as they are."
)


def check(**choices: Iterable) -> None:
    """Look through the cells that have run in this notebook; see `refuse`.

    At scale smoke it says so here, which the book says above each page.
    """
    from IPython.core.getipython import get_ipython
    from IPython.display import Markdown, display

    if shell := get_ipython():
        refuse(shell.user_ns["In"], choices)
        if shell.user_ns.get("scale") == "smoke":
            display(Markdown(SMOKE))


def refuse(cells: Sequence[str], choices: dict[str, Iterable]) -> None:
    """Raise SettingsError for a parameter that the page does not have, or of another type.

    cells: sources, in order; the page's own parameters are in the last that sets ``scale``, those
    from outside behind it. choices: for some of them, what they can be; `SCALES` for the scale.
    """
    own = [n for n, cell in enumerate(cells) if cell.startswith("scale =")]
    if not own:
        return
    usual, given = assigned(cells[own[-1]]), {}
    for cell in cells[own[-1] + 1 :]:
        given |= assigned(cell) if cell.startswith(MARK) else {}
    if unknown := sorted(given.keys() - usual.keys()):
        raise SettingsError(
            f"this page has no parameter {', '.join(unknown)}; there are: {', '.join(usual)}"
        )
    for name, value in (usual | given).items():
        kind = float if isinstance(usual[name], float) and isinstance(value, int) else type(value)
        if kind is not type(usual[name]):
            raise SettingsError(f"{name} is {value!r}; it must be like {usual[name]!r}")
        if name in ("seed", "seeds"):
            seeds = value if isinstance(value, list) else [value]
            if not seeds or any(type(s) is not int or s < 0 for s in seeds):
                raise SettingsError(f"{name} is {value!r}; seeds are whole numbers from 0")
    for name, known in ({"scale": SCALES} | choices).items():
        require.one_of(name, (usual | given)[name], known)


def assigned(cell: str) -> dict[str, Any]:
    """Names and values of a cell of plain assignments."""
    found = {}
    for line in ast.parse(cell).body:
        if isinstance(line, ast.Assign) and isinstance(line.targets[0], ast.Name):
            found[line.targets[0].id] = ast.literal_eval(line.value)
    return found
