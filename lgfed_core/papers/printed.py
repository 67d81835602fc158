"""Every printed table of the papers, and what ``python -m lgfed_core report`` says of them.

Those of CGAU (2020) and FADE (2021) are declared here, LG-FedAvg's in `lgfedavg.printed`.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from lgfed_core.evidence import report, scoreboard
from lgfed_core.evidence.printed import DONE, Table, accuracy, other

from . import command_checks
from .lgfedavg import printed as lgfedavg


def _guess(row: Mapping[str, Any]) -> float:
    """One of 31 classes of Office-31 (A, D, W), or of 65 of Office-Home; in %."""
    return 100 / (31 if row["task"][0] in "ADW" and row["task"][1] == "-" else 65)


TABLES: dict[str, Table] = lgfedavg.TABLES | {  # by file in data/paper
    table.name: table
    for table in (
        Table(
            "cgau_table1_frechet",
            "cgau",
            "Table 1: how far clients differ",
            ids=("shuffle_proportion",),
            metrics=(other("average_client_frechet_distance"),),
            headline=DONE,
            experiments=("cgau.audio",),
            note="Distances depend on embeddings and number of clips; other sounds have others.",
        ),
        Table(
            "cgau_text_cifar10",
            "cgau",
            "Section 5: CIFAR-10, all rows shuffled",
            contrasts=(("cgau_kept", "baseline"),),
            ids=("method", "shuffle_proportion"),
            metrics=(accuracy("test_acc"),),
            headline=("as_described", "best_val"),
            experiments=("cgau.cifar10",),
            protocols=("as_described",),
            source=("cgau_figure2b", {}),
            note='The text says "about", and with which features of Inception v3 it does not.',
        ),
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


def printout(paper: str | None = None) -> Iterator[str]:
    """The tables of a paper (of all when None), one by one, and their counts. Raises ResultsError
    for an unknown paper."""
    command_checks.paper(paper)
    tables = [t for t in TABLES.values() if paper in (None, t.paper)]
    yield from report.printout(tables)
    counts = scoreboard.scoreboard(tables).to_string(index=False)
    yield f"Printed numbers, each once, at the protocol they stand for:\n\n{counts}"
