"""The page to copy for a question of one's own: it runs, is judged, and its answer is guarded."""

import json
from functools import partial
from pathlib import Path

import IPython.display
import matplotlib.pyplot as plt
import pytest

from lgfed_core import papers
from lgfed_core.evidence import records
from lgfed_core.methods import FedAvg
from lgfed_core.papers import board, front, questions

HERE = Path(__file__).parent
NOTEBOOK = HERE / "own" / "worst_off.ipynb"


class Lost(FedAvg):
    def aggregate(self, uploads, weights):
        return uploads[0] * float("nan")


@pytest.fixture
def page(monkeypatch, tmp_path):
    """Its module, as it is once it lies beside the papers; rows and checkpoints go elsewhere."""
    monkeypatch.setattr(papers, "__path__", [*papers.__path__, str(HERE)])
    monkeypatch.setattr(records, "RESULTS", tmp_path / "results")
    monkeypatch.setattr(records, "record", partial(records.record, folder=tmp_path / "results"))
    monkeypatch.setattr("lgfed_core.papers.experiment.RUNS", tmp_path / "runs")
    (found,) = front.own_pages()
    return found


def test_it_is_found_beside_the_papers_and_not_on_their_board(page):
    assert page.__name__ == "lgfed_core.papers.own.worst_off.run"
    assert page not in board.STORED
    assert not {claim.id for claim in page.CLAIMS} & {claim.id for claim in board.CLAIMS}


def test_its_answer_stands_until_its_rows_say_otherwise(page):
    assert page.told()["X1"].stands() and page.told()["X1"].verdict == "open"
    experiment = page.WORST_OFF
    experiment.run(experiment.settings("paper", rounds=1), [0, 1], record=True)
    told = page.told()["X1"]
    assert told.lines["runs"].tolist() == [2] and not told.stands()
    assert page.from_stored().loc["X1", "runs"] == 2


def test_where_all_seeds_diverge_each_leaves_its_row(page, monkeypatch):
    experiment, cfg = page.WORST_OFF, page.WORST_OFF.settings("smoke", methods=("fedavg",))
    monkeypatch.setattr(page, "METHODS", {"fedavg": Lost()})
    with pytest.warns(RuntimeWarning, match="not finite"):
        rows, histories = experiment.run(cfg, [0, 1], record=False, resume=False)
    assert rows["metric"].eq("diverged").all() and sorted(rows["seed"]) == [0, 1]
    assert list(histories["fedavg"]) == ["round", "seed"] and histories["fedavg"].empty


def test_its_notebook_runs_and_takes_the_answer(page, monkeypatch, tmp_path):
    copy = tmp_path / NOTEBOOK.name
    copy.write_text(NOTEBOOK.read_text(encoding="utf-8"), encoding="utf-8")
    assert questions.renew(copy, page.told().values())
    cells = json.loads(copy.read_text(encoding="utf-8"))["cells"]
    assert "**Open.** Nothing has run" in "".join(cells[0]["source"])
    shown = []
    monkeypatch.setattr(IPython.display, "display", shown.append)
    names = {"__name__": "__main__"}
    for cell in cells:
        source = "".join(cell["source"])
        if cell["cell_type"] == "code" and "page_parameters" not in source:
            exec(source.replace('"quick"', '"smoke"'), names)
    assert "not yet run at full length" in shown[0].data
    assert names["rows"]["metric"].nunique() == 2
    plt.close("all")
