"""The tables that Hong et al. (2021) print."""

from collections.abc import Mapping
from typing import Any

from lgfed_core.evidence.printed import DONE, Table, accuracy


def _guess(row: Mapping[str, Any]) -> float:
    """One of 31 classes of Office-31 (A, D, W), or of 65 of Office-Home; in %."""
    return 100 / (31 if row["task"][0] in "ADW" and row["task"][1] == "-" else 65)


TABLES = {
    table.name: table
    for table in (
        Table(
            "fade_table1_office",
            "fade",
            "Table 1: Office-31 and Office-Home",
            contrasts=(("fade_cdan", "fade_dann"), ("fade_cdan", "fedavg_shot")),
            ids=("method", "setting", "target_users", "task"),
            metrics=(accuracy("target_acc", "std"),),
            runs=3,
            guess=_guess,
            headline=DONE,
            experiments=("fade.objects",),
            sets=("", "data=officehome"),
            note="Three runs by the released sweeps; the text names no number for this table. Ours "
            "are at feature level: the backbone is frozen.",
        ),
        Table(
            "fade_table2_visda",
            "fade",
            "Table 2: VisDA-C",
            contrasts=(("cdan+shot", "shot"), ("shot", "dann"), ("dann", "source_only")),
            ids=("method", "setting"),
            metrics=(accuracy("target_acc"),),
            headline=DONE,
        ),
    )
}
