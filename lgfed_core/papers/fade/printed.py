"""The tables that Hong et al. (2021) print."""

from lgfed_core.evidence.printed import DONE, Table, accuracy

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
            headline=DONE,
            note="Three runs by the released sweeps; the text names no number for this table.",
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
