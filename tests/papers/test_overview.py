"""Lines of the scoreboard open on their runs and on the commands that make them."""

import pandas as pd
import pytest

from lgfed_core import paths
from lgfed_core.evidence import report
from lgfed_core.papers import board, experiments, overview, printed

pytestmark = pytest.mark.slow


def test_a_cell_opens_on_its_runs_and_on_the_command_that_makes_only_them():
    spec = printed.TABLES["lgfedavg_v2_table8_cifar10"]
    table = board.with_commands(report.table(spec), spec)
    line = table[table["origin"].ne("") & table["method"].eq("lg_fedavg")].iloc[0]
    asked = line["command"].partition(" --set ")[2].split()
    assert f"classes={line['classes_per_device']}" in asked
    assert f"starts={line['fedavg_rounds']}" in asked and "alone=" in asked
    assert f"--protocol {line['protocol']}" in line["command"]
    seeds = line["origin"].partition(";")[0].removeprefix("seeds ").split(", ")
    assert len(seeds) == line["seeds"]
    page = report.display(table[table["row"] == line["row"]])
    assert line["command"] in page and line["origin"] in page


def test_a_claim_and_a_contrast_open_on_the_runs_that_they_compare():
    found, table = board.of_claims(), board.board()
    told, (again,) = found["L4"]
    lines = board.accuracies.from_stored()
    assert told.startswith(f"seeds {', '.join(map(str, range(lines.loc['L4', 'runs'])))}; cpu")
    asked = dict(word.split("=") for word in again.partition(" --set ")[2].split())
    assert (
        asked["classes"] == "2"
        and asked["starts"]
        and set(asked) <= {*vars(experiments.find("lgfedavg.cifar10").settings())}
    )
    for claim, page in {"L10": "lgfedavg/theory", "F4": "fade/theory"}.items():
        live = f"python book/build.py --only {page} --scale paper --keep"
        assert found[claim][1] == [live] and (paths.ROOT / f"book/{page}.ipynb").exists()
    text = board.markdown(table.loc[["L4", "F9"]], found)  # of which the second has no runs
    assert text.count("<details") == 1 and told in text
    assert f"`{again}`" in text  # elsewhere in Markdown two hyphens become a dash


def test_a_claim_over_several_splits_has_a_command_for_each_and_together_they_make_its_runs():
    lines = board.accuracies.from_stored()
    wanted = {dict(line.ids)["classes_per_device"] for line in lines.loc["L1", "of"]}
    said = board.of_claims()["L1"][1]
    settings = [dict(w.split("=") for w in c.partition(" --set ")[2].split()) for c in said]
    assert len(wanted) > 1 and {one["classes"] for one in settings} == {*map(str, wanted)}
    assert len(settings) == len(wanted)  # a switch and a list are joined, and need no second


@pytest.mark.parametrize(
    ("said", "kind"),
    {
        "holds": "holds",
        "holds where settled (1 of 2 comparisons, the rest open)": "holds",
        "holds, stand-in data (easy-VQA)": "on other data",
        "holds in part (1 of 2 comparisons)": "holds in part",
        "does not hold": "fails",
        "open": "undecided",
        "audio: holds in part (1 of 3 comparisons); cifar10: open": "holds in part",
    }.items(),
)
def test_a_verdict_by_setting_has_a_kind(said, kind):
    lines = pd.DataFrame({"paper": ["CGAU"], "verdict": [said]})
    assert list(overview.claims(lines)["kind"]) == [kind]
