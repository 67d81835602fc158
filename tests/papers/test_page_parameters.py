"""Parameters from outside: a wrong name or value ends a page at once."""

import nbformat
import pytest
from IPython.core.interactiveshell import InteractiveShell

import build
import execute
from lgfed_core.errors import SettingsError
from lgfed_core.papers import page_parameters
from lgfed_core.paths import ROOT

OWN = 'scale = "quick"  # smoke: seconds\nclasses = 2\nspread = 0.25\nseeds = [0]'


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        ('scal = "smoke"', "no parameter scal; there are: scale, classes, spread, seeds"),
        ('scale = "huge"', "scale 'huge' is none of smoke, quick, paper"),
        ("scale = 3", "scale is 3; it must be like 'quick'"),
        ('classes = "2"', "classes is '2'; it must be like 2"),
        ("classes = True", "classes is True"),
        ("classes = 3", "classes 3 is none of 2, 5"),
        ("seeds = 0", "seeds is 0"),
        ("seeds = []", "seeds are whole numbers from 0"),
        ("seeds = [-1]", "seeds are whole numbers from 0"),
        ('spread = "wide"', "spread is 'wide'"),
    ],
)
def test_what_a_page_does_not_know_is_refused_by_name(cell, said):
    with pytest.raises(SettingsError, match=said):
        page_parameters.refuse(
            ["import lgfed_core", OWN, f"# Parameters\n{cell}\n"], dict(classes=(2, 5))
        )


def test_what_a_page_knows_is_taken():
    for cell in ("", "# Parameters\nclasses = 5\nspread = 1\nseeds = [3, 4]\n", "classes = 'x'"):
        page_parameters.refuse(["", OWN, cell], dict(classes=(2, 5)))
    page_parameters.refuse(["# Parameters\nscal = 1", OWN], {})  # of an earlier page in this kernel


@pytest.mark.parametrize("name", build.notebooks(ROOT / "book"))
def test_every_page_checks_its_parameters_before_anything_else(name):
    cells = [c for c in nbformat.read(ROOT / "book" / name, 4).cells if c.cell_type == "code"]
    own = next(n for n, c in enumerate(cells) if "parameters" in c.metadata.get("tags", []))
    assert cells[own + 1].source.startswith(
        "from lgfed_core.papers import page_parameters\n\npage_parameters.check("
    )
    assert cells[own].source.startswith("scale =")


def test_smoke_says_so(capsys):
    shell = InteractiveShell.instance()
    try:
        shell.run_cell('scale = "smoke"', store_history=True)
        shell.run_cell(
            "from lgfed_core.papers import page_parameters\n\npage_parameters.check()",
            store_history=True,
        )
        assert "Markdown" in capsys.readouterr().out and "mean nothing" in page_parameters.SMOKE
    finally:
        InteractiveShell.clear_instance()


@pytest.mark.book
def test_papermill_with_a_wrong_value_ends_at_the_check(tmp_path):
    with pytest.raises(execute.BuildError, match=r"(?s)code cell 3 .*scale 'huge' is none of"):
        execute.run_one(ROOT / "book", "cgau/xor.ipynb", "huge", tmp_path / "xor.ipynb")
