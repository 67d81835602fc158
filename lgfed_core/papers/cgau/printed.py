"""The table that Rieger et al. (2020) print, two accuracies of their text, and what fills both."""

import pandas as pd

from lgfed_core.evidence.printed import DONE, Table, accuracy, cells, other

TABLES = {
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
    )
}


def accuracies() -> pd.Series:
    """Those of the text on CIFAR-10, all rows shuffled, in percent, by method."""
    return cells(TABLES["cgau_text_cifar10"]).set_index("method")["paper"]
