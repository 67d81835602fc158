"""The page to copy for a question of one's own: it runs, is judged, and its answer is guarded."""

import json
import shutil
import sys
from functools import partial
from importlib import import_module
from pathlib import Path

import IPython.display
import matplotlib.pyplot as plt
import pytest

from lgfed_core import papers
from lgfed_core.errors import ResultsError
from lgfed_core.evidence import records
from lgfed_core.methods import FedAvg
from lgfed_core.papers import board, front, questions

TEMPLATE = Path(__file__).parent / "own"


class Lost(FedAvg):
    def aggregate(self, uploads, weights):
        return uploads[0] * float("nan")


@pytest.fixture
def copied(monkeypatch, tmp_path):
    """Copies the page under another name, as CONTRIBUTING says; rows and checkpoints go elsewhere.

    Returns a function: the page's name -> its module and its notebook.
    """
    monkeypatch.setattr(papers, "__path__", [str(tmp_path), *papers.__path__])
    monkeypatch.setattr(records, "RESULTS", tmp_path / "results")
    monkeypatch.setattr(records, "record", partial(records.record, folder=tmp_path / "results"))
    monkeypatch.setattr("lgfed_core.papers.experiment.RUNS", tmp_path / "runs")
    before = {name for name in sys.modules if name.startswith("lgfed_core.papers.own")}
    for name in before:
        monkeypatch.delitem(sys.modules, name)

    def copy(name):
        shutil.copytree(TEMPLATE / "worst_off", tmp_path / "own" / name)
        text = (TEMPLATE / "worst_off.ipynb").read_text(encoding="utf-8")
        notebook = tmp_path / f"{name}.ipynb"
        notebook.write_text(text.replace("worst_off", name), encoding="utf-8")
        return import_module(f"lgfed_core.papers.own.{name}.run"), notebook

    yield copy
    for name in [name for name in sys.modules if name.startswith("lgfed_core.papers.own")]:
        del sys.modules[name]


def test_pages_are_found_beside_the_papers_and_not_on_their_board(copied):
    (first, _), (second, _) = copied("first"), copied("second")
    assert {first, second} <= set(front.own_pages()) and not {first, second} & {*board.STORED}
    told = front.own_told()
    assert {"own-first", "own-second"} <= told.keys()
    assert told["own-first"].claim.page == "own/first"
    assert first.OWN.name == "own.first" and first.OWN.table == "own_first"


def test_an_id_that_another_page_has_is_refused(copied, monkeypatch):
    page, _ = copied("first")
    told = page.told
    monkeypatch.setattr(page, "told", lambda: {"L1": told()["own-first"]})
    with pytest.raises(ResultsError, match="lgfedavg/cifar10 and own/first both have a claim L1"):
        front.own_told()


def test_its_answer_stands_until_its_rows_say_otherwise(copied):
    page, _ = copied("first")
    assert page.told()["own-first"].stands() and page.told()["own-first"].verdict == "open"
    page.OWN.run(page.OWN.settings("paper", rounds=1), [0, 1], record=True)
    told = page.told()["own-first"]
    assert told.lines["runs"].tolist() == [2] and not told.stands()
    assert page.from_stored().loc["own-first", "runs"] == 2


def test_where_all_seeds_diverge_each_leaves_its_row(copied, monkeypatch):
    page, _ = copied("first")
    monkeypatch.setattr(page, "METHODS", {"fedavg": Lost()})
    cfg = page.OWN.settings("smoke", methods=("fedavg",))
    with pytest.warns(RuntimeWarning, match="not finite"):
        rows, histories = page.OWN.run(cfg, [0, 1], record=False, resume=False)
    assert rows["metric"].eq("diverged").all() and sorted(rows["seed"]) == [0, 1]
    assert list(histories["fedavg"]) == ["round", "seed"] and histories["fedavg"].empty


def test_its_notebook_runs_and_takes_the_answer(copied, monkeypatch):
    page, notebook = copied("first")
    assert questions.renew(notebook, page.told().values())
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    assert "**Open.** Nothing has run" in "".join(cells[0]["source"])
    shown = []
    monkeypatch.setattr(IPython.display, "display", shown.append)
    names, code = {"__name__": "__main__"}, [c for c in cells if c["cell_type"] == "code"]
    with plt.rc_context():  # which it changes for itself
        for source in ("".join(cell["source"]) for cell in code):
            if "page_parameters" not in source:
                exec(source.replace('"quick"', '"smoke"'), names)
    assert "not yet run at full length" in shown[0].data
    assert names["rows"]["metric"].nunique() == 2
    plt.close("all")
