"""The table that Rieger et al. (2020) print, and what fills it."""

from lgfed_core.evidence.printed import DONE, Table, other

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
    )
}
