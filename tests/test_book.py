"""The book: rules for its notebooks, each of them executed, and the ways a build can go."""

import json
import re
import subprocess
import sys
import tarfile
from datetime import UTC, datetime
from pathlib import Path

import inputs
import light
import nbformat
import pandas
import places
import pytest
import status
import warm
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

import build
import draw
import execute
import install
import progress
import tidy
from execute import BuildError
from lgfed_core.papers.guards import MOVED
from lgfed_core.paths import ROOT
from toy import alive, until

BOOK = ROOT / "book"
NOTEBOOKS = build.notebooks(BOOK)


def code_cells(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_notebook_keeps_the_rules(name):
    notebook = nbformat.read(BOOK / name, as_version=4)
    nbformat.validate(notebook)
    assert notebook.metadata.kernelspec.name == "python3"
    cells = code_cells(notebook)
    assert not any(cell.outputs or cell.execution_count for cell in cells), "holds outputs"
    for cell in cells:  # a guard is hidden when drawn, and stands on its own
        most = 50 if "guard" in cell.metadata.get("tags", []) else 30
        assert len(cell.source.splitlines()) <= most, cell.id
    settings = [cell for cell in cells if "parameters" in cell.metadata.get("tags", [])]
    assert len(settings) == 1
    assert "hide-input" in settings[0].metadata.tags
    assert re.search(r'^scale = "quick"', settings[0].source, re.MULTILINE)
    prose = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    assert not re.findall(r"\{[a-z]+\}`|^:::|\[\]\(", prose, re.MULTILINE), "not JupyterLab's"
    keys = {key for found in tidy.CITED.findall(prose) for key in found.split(",")}
    assert keys <= {*re.findall(r"@\w+\{(\w+)", (BOOK / "references.bib").read_text())}


SHOWS = re.compile(  # a figure, a table of stored rows
    r"plt\.subplots|report\.display|claims\.(stored|judged)|records\.(load|select)|at_hand\(\)"
)
MAKES = re.compile(r"\brun\(|stages\(|train\(|getsource|federation\(|\.settings\(")


@pytest.mark.parametrize("name", [name for name in NOTEBOOKS if "/" in name])
def test_code_that_only_shows_is_folded(name):
    seen = [
        cell.source
        for cell in code_cells(nbformat.read(BOOK / name, as_version=4))
        if not {"hide-input", "remove-input", "remove-cell"} & {*cell.metadata.get("tags", [])}
    ]
    assert not [text for text in seen if SHOWS.search(text) and not MAKES.search(text)]
    assert len(seen) <= 8


@pytest.mark.book
@pytest.mark.parametrize("name", NOTEBOOKS)
def test_notebook_runs_at_smoke_scale(name, monkeypatch):
    """The copies are those of `make book SCALE=smoke`, which does not run them a second time."""
    monkeypatch.setenv("LGFED_WORKERS", "1")
    executed = BOOK / "_build" / "executed" / "smoke"
    execute.execute(BOOK, [name], "smoke", executed, 1, warm=True)
    text = (executed / name).read_text()
    page = nbformat.reads(text, as_version=4)
    assert places.without_places(page) == page and str(ROOT) not in text
    captions = re.findall(r"<figcaption><b>Figure (\d+)\.</b> ?([^<]*)</figcaption>", text)
    assert [int(number) for number, _ in captions] == list(range(1, len(captions) + 1))
    assert all(said for _, said in captions), "a figure without its sentence"
    assert '"image/png"' not in text, "a figure that is not shown by lgfed_core.plotting"
    assert MOVED not in text, "a sentence that stored rows contradict"
    for cell in code_cells(page):
        assert cell.execution_count or not cell.source.strip()
        assert not [
            o for o in cell.outputs if o.output_type == "error" or o.get("name") == "stderr"
        ]


def test_every_notebook_is_in_the_contents():
    build.check_contents(BOOK, NOTEBOOKS)


# A small book of its own for each test below.


@pytest.fixture
def small(tmp_path):
    """Write a book with one notebook per keyword: name = sources of its code cells."""

    def write(**notebooks: list[str]) -> Path:
        book = tmp_path / "a böok"
        (book / "part").mkdir(parents=True, exist_ok=True)
        for name, sources in notebooks.items():
            notebook = new_notebook(cells=[new_markdown_cell(f"# {name}")])
            settings = new_code_cell('scale = "quick"', metadata={"tags": ["parameters"]})
            notebook.cells += [settings, *map(new_code_cell, sources)]
            nbformat.write(notebook, book / "part" / f"{name}.ipynb")
        lines = ["format: jb-book", "root: intro", *(["chapters:"] if notebooks else [])]
        lines += [f"- file: part/{name}" for name in notebooks]
        (book / "_toc.yml").write_text("\n".join(lines))
        (book / "intro.md").write_text("# Intro\n\nWhere $x^2$ is.\n")
        (book / "references.bib").write_text("")
        return book

    return write


def run_build(book: Path, *options: str) -> subprocess.CompletedProcess:
    command = [sys.executable, "book/build.py", "--source", str(book), "--scale", "smoke", *options]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=100)


@pytest.mark.book
def test_a_build_goes_on_and_names_all_that_failed_at_its_end(small, monkeypatch, capsys):
    guessed = "def guess(n):\n    return 1 / n\n\nguess(0)"
    book = small(
        bad=["a = 1", "b = 2\nraise ValueError(f'no luck, {a}')"], far=[guessed], good=["1"]
    )
    monkeypatch.setattr(build.signal, "signal", lambda *_: None)  # it is this process that builds
    assert build.main(["--source", str(book), "--scale", "smoke", "--jobs", "1"]) == 1
    said, made = capsys.readouterr(), book / "_build" / "executed" / "smoke" / "part"
    assert "2 of 3 notebooks failed" in said.err
    assert (
        "part/bad.ipynb failed in code cell 3 of 3, line 2:\n"
        "    raise ValueError(f'no luck, {a}')\nValueError: no luck, 1\n"
        f"It is kept as far as it came in {made / 'bad.partial.ipynb'}\n"
    ) in said.err
    assert "part/far.ipynb failed in code cell 2 of 2, line 4:\n    guess(0)\nZero" in said.err
    assert (made / "bad.partial.ipynb").exists() and not (made / "bad.ipynb").exists()
    assert (made / "good.ipynb").exists(), "the build did not go on"
    assert "existing" not in said.err, "the kernel's banner"
    assert not (book / "_build" / "html").exists()


@pytest.mark.book
@pytest.mark.skipif(not warm.POSSIBLE, reason="elsewhere kernels have no banner")
def test_what_a_failing_page_prints_stands_not_above_its_error(small):
    says = "import os; os.write(1, b'chatter'); 1 / 0"
    with pytest.raises(BuildError) as failed:
        book = small(loud=[says])
        execute.execute(book, ["part/loud.ipynb"], "smoke", book / "_build", 1, warm=True)
    first, _, second = str(failed.value).splitlines()[:3]
    assert first == "1 of 1 notebooks failed; what the others made is kept."
    assert second == "part/loud.ipynb failed in code cell 2 of 2, line 1:"


@pytest.mark.book
def test_one_page_is_executed_alone_and_says_nothing_of_its_wire(small):
    book = small(one=["1"], two=[f"print({MOVED!r})"])
    done = run_build(book, "--only", "part/two")
    made = book / "_build" / "executed" / "smoke" / "part"
    assert done.returncode == 0 and not done.stderr, "a warning of the kernel"
    assert "part/two.ipynb: stored rows contradict a sentence" in done.stdout
    assert (made / "two.ipynb").exists() and not (made / "one.ipynb").exists()
    done = run_build(book, "--only", "part/tow")
    assert done.returncode == 1 and "There is no page part/tow.ipynb; there are: " in done.stderr


@pytest.mark.book
def test_a_dying_kernel_fails_the_build_and_is_named(small):
    done = run_build(small(grim=["import os; os._exit(3)"]), "--no-html")
    assert done.returncode == 1
    assert "part/grim.ipynb: the kernel died in code cell 2 of 2" in done.stderr
    assert "grim.partial.ipynb" in done.stderr


@pytest.mark.book
@pytest.mark.skipif(not warm.POSSIBLE, reason="reads /proc")
@pytest.mark.parametrize("many", [1, 2])
def test_a_second_build_is_told_and_a_killed_one_leaves_nobody(small, tmp_path, many):
    says = "import os, time; open('../' + '{}.pid', 'w').write(str(os.getpid())); time.sleep(60)"
    book = small(**{name: [says.format(name)] for name in ("one", "two")[:many]})
    command = [sys.executable, "book/build.py", "--source", str(book), "--scale", "smoke"]
    quiet = dict(stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    first = subprocess.Popen([*command, "--jobs", "2", "--no-html"], cwd=ROOT, **quiet)
    places = [book / f"{name}.pid" for name in ("one", "two")[:many]]
    until(lambda: all(p.exists() and p.read_text() for p in places), 90)
    pids = [int(place.read_text()) for place in places]
    second = run_build(book, "--no-html")
    assert second.returncode == 1 and "Another process is building this book" in second.stderr
    assert all(map(alive, pids))
    first.kill()
    first.wait()
    until(lambda: not any(map(alive, pids)), 10)


@pytest.mark.book
@pytest.mark.skipif(not warm.POSSIBLE, reason="only Linux forks safely")
def test_a_page_from_a_warm_process_is_like_one_from_nothing(small):
    asks = """import os, sys
print(os.path.basename(os.getcwd()), __name__, "lgfed_core" in sys.modules, scale)
print([p for p in sys.path if "tests" in p or p.endswith("book")], os.environ["OMP_NUM_THREADS"])"""
    book, said = small(asks=[asks], grim=["import os; os._exit(3)"]), {}
    for hot in (True, False):
        out = book / "_build" / str(hot)
        execute.execute(book, ["part/asks.ipynb"], "smoke", out, 1, warm=hot)
        cells = code_cells(nbformat.read(out / "part/asks.ipynb", as_version=4))
        said[hot] = cells[-1].outputs[0].text
    assert said[True] == said[False] == "part __main__ False smoke\n[] 1\n"
    with pytest.raises(BuildError, match="the kernel died in code cell 2 of 2"):
        execute.execute(book, ["part/grim.ipynb"], "smoke", out, 1, warm=True)


@pytest.mark.book
def test_a_notebook_that_ends_early_is_not_taken_for_whole(small):
    book = small(early=["raise SystemExit(0)", "print(1)"])
    with pytest.raises(BuildError, match=r"part/early\.ipynb ended before code cell 3"):
        execute.execute(book, ["part/early.ipynb"], "smoke", book / "_build", 1, warm=True)


@pytest.mark.book
def test_unchanged_notebooks_are_not_executed_again(small, capsys):
    book = small(one=["import os; print(scale, os.path.basename(os.getcwd()))"])
    out = book / "_build" / "executed" / "smoke"
    names = build.notebooks(book)
    assert execute.execute(book, names, "smoke", out, 2, warm=True) == 1
    cells = code_cells(nbformat.read(out / "part/one.ipynb", as_version=4))
    assert cells[-1].outputs[0].text == "smoke part\n"
    assert execute.execute(book, names, "smoke", out, 2) == 0
    assert "unchanged" in capsys.readouterr().out
    small(one=["print('other')"])
    assert execute.execute(book, names, "smoke", out, 2, warm=True) == 1


@pytest.mark.book
def test_a_page_notes_the_results_that_it_reads(small, monkeypatch):
    book = small(one=["from lgfed_core.evidence import records; records.select('lgfedavg.mnist')"])
    out, names = book / "_build" / "executed" / "smoke", build.notebooks(book)
    execute.execute(book, names, "smoke", out, 1, warm=True)
    known = json.loads(execute.stamp(out / "part/one.ipynb").read_text())
    assert known["reads"] == ["lgfedavg.mnist"]
    asked = []
    monkeypatch.setattr(inputs, "results", lambda reads, rows: asked.append(reads) or "new rows")
    assert not execute.unchanged(book / "part/one.ipynb", out / "part/one.ipynb", "smoke")
    assert asked == [["lgfedavg.mnist"]]


@pytest.mark.book
def test_rows_that_come_while_a_page_runs_make_it_run_again(small, monkeypatch):
    book = small(one=["from lgfed_core.evidence import records; records.select('lgfedavg.mnist')"])
    out, names = book / "_build" / "executed" / "smoke", build.notebooks(book)
    page, seen = Path("part/one.ipynb"), iter([b"old", *[b"new"] * 3])
    monkeypatch.setattr(inputs, "rows", lambda: {"lgfedavg.mnist": next(seen)})
    execute.execute(book, names, "smoke", out, 1, warm=True)  # other rows were there at its start
    assert not execute.unchanged(book / page, out / page, "smoke")
    execute.execute(book, names, "smoke", out, 1, warm=True)
    monkeypatch.setattr(inputs, "rows", lambda: {"lgfedavg.mnist": b"new"})
    assert execute.unchanged(book / page, out / page, "smoke")


def test_a_page_says_under_its_title_what_stood_in_and_waits_for_the_data(tmp_path, monkeypatch):
    cell = new_code_cell(outputs=[new_output("stream", name="stdout", text="kept\n")])
    notebook = new_notebook(cells=[new_markdown_cell("# Title\n\nText."), cell])
    tidy.note(notebook)
    assert notebook.cells[0].source == "# Title\n\nText."
    told = {"papers": "USPS", "stand_in": "UCI digits", "stored": "USPS", "set": "usps"}
    said = {"text/plain": "stands in for USPS: UCI digits"}
    cell.outputs.append(new_output("display_data", data=said, metadata={"stand_in": told}))
    tidy.note(notebook)
    lines = notebook.cells[0].source.splitlines()
    assert lines[0] == "# Title" and lines[2].startswith(":::{admonition}") and lines[-1] == "Text."
    said = "The answers are from stored runs on USPS. Only the live run uses UCI digits."
    assert lines[4] == said
    assert tidy.words("MAPS", "texts", "chats") == (
        "The answers are from stored runs on chats, in place of MAPS. The live run uses texts."
    )
    assert tidy.words("VQA", "shapes", "shapes") == (
        "The answers and the live run use shapes, in place of VQA."
    )
    nbformat.write(notebook, tmp_path / "page.ipynb")
    assert execute.stand_ins(tmp_path / "page.ipynb") == [told]
    monkeypatch.setattr(execute.Before, "key", lambda before, scale, reads: "k")
    known = {"key": "k", "reads": [], "seconds": 1, "awaits": ["usps"]}
    (tmp_path / "page.key.json").write_text(json.dumps(known))
    monkeypatch.setattr(execute, "CACHE", tmp_path / "cache")
    (tmp_path / "cache" / "usps").mkdir(parents=True)
    (tmp_path / "cache" / "usps" / ".lock").touch()
    page = tmp_path / "page.ipynb"
    assert execute.unchanged(page, page, "smoke")
    (tmp_path / "cache" / "usps" / "usps-train.bin").touch()
    assert not execute.unchanged(page, page, "smoke")


def test_the_longest_goes_first_and_what_is_left_follows_the_pace(tmp_path, monkeypatch):
    assert progress.expected("a.ipynb", "smoke", tmp_path / "none") == progress.OTHERS["smoke"]
    (tmp_path / "a.json").write_text('{"key": "k", "seconds": 7}')
    assert progress.expected("a.ipynb", "smoke", tmp_path / "a.json") == 7
    assert set(progress.SECONDS) <= set(NOTEBOOKS)
    now = 0.0
    monkeypatch.setattr(progress.time, "monotonic", lambda: now)
    watch = progress.Watch({"a": 40.0, "b": 20.0, "c": 20.0}, 2)
    assert watch.left() == 40
    watch.start("a"), watch.start("b")
    now = 40.0
    assert watch.end("b") == 40, "twice as long as expected"
    assert watch.left() == 40 and watch.state() == "1 of 3, about 40 s left"
    said = [progress.spoken(s) for s in (3.2, 75, 120, 599, 3601)]
    assert said == ["3 s", "1 min 20 s", "2 min", "10 min", "60 min"]


def test_the_installation_says_what_pip_is_doing(tmp_path):
    assert {"torch", "jupyter-book", "pytest", "ruff"} <= set(install.wanted())
    (tmp_path / "log").write_text("Collecting torch==2\nCollecting numpy (from x)\n")
    (tmp_path / "wheel").write_bytes(b"0" * 2_000_000)
    said = install.state(tmp_path / "log", tmp_path, 0)
    assert said == "fetched 2 MB, 2 packages, now numpy"
    (tmp_path / "log").write_text("Installing collected packages: a, b, c\n")
    there = len(install.packages())
    assert install.state(tmp_path / "log", tmp_path, there) == "unpacked 0 of 3 packages"


def test_the_key_follows_what_a_page_shows_and_nothing_else(tmp_path):
    """Its own source, modules it imports (through others, too), papers' numbers, rows it reads."""
    cell = new_code_cell("%matplotlib inline\nfrom lgfed_core.deep import b")
    texts = {
        "lgfed_core/__init__.py": "",
        "lgfed_core/a.py": "",
        "lgfed_core/other.py": "",
        "lgfed_core/deep/__init__.py": "",
        "lgfed_core/deep/b.py": "def f():\n    from ..a import x",
        "data/paper/t.csv": "",
        "data/results/r.csv": "",
        "data/results/s.csv": "",
        "page.ipynb": nbformat.writes(new_notebook(cells=[cell])),
    }
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)

    def digest():
        rows = inputs.rows(tmp_path)
        return inputs.code(tmp_path / "page.ipynb", tmp_path), inputs.results(["r"], rows)

    before = digest()
    for name, text in texts.items():
        (tmp_path / name).write_text(text + " ")
        changes = digest() != before
        assert changes == (name not in ("lgfed_core/other.py", "data/results/s.csv")), name
        before = digest()
    everything = inputs.results([inputs.ALL], inputs.rows(tmp_path))
    (tmp_path / "data" / "results" / "s.csv").write_text("a row")
    assert inputs.results([inputs.ALL], inputs.rows(tmp_path)) != everything


def test_a_page_hangs_on_what_is_imported_by_name_and_not_on_all_that_the_face_has(tmp_path):
    texts = {
        "lgfed_core/__init__.py": "if TYPE_CHECKING:\n    from .a import run as run\n"
        "    from .deep.b import Step as Step",
        "lgfed_core/a.py": "",
        "lgfed_core/deep/__init__.py": "",
        "lgfed_core/deep/b.py": "",
        "lgfed_core/deep/names.py": "PLACES = {'b': ('b', 'B')}\nimport_module(f'.{PLACES[name]}')",
        "lgfed_core/data/__init__.py": "import_module(name)",
        "lgfed_core/data/tiny.py": "",
        "lgfed_core/data/beside.py": "",
        "data/sources.toml": "[tiny]",
    }
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)

    def found(source: str) -> set[str]:
        (tmp_path / "p.ipynb").write_text(
            nbformat.writes(new_notebook(cells=[new_code_cell(source)]))
        )
        return {path.stem for path in inputs.modules(tmp_path / "p.ipynb", tmp_path)} - {"__init__"}

    assert found("from lgfed_core import run") == {"a"}
    assert found("import lgfed_core as lg") == {"a", "b"}
    assert found("from lgfed_core.deep import names") == {"names", "b"}
    assert found("from lgfed_core import data") == {"tiny"}, "which set is loaded is not known"


def test_contents_and_folder_must_name_the_same_pages(small):
    book = small(one=[])
    build.check_contents(book, ["part/one.ipynb"])
    with pytest.raises(BuildError, match=r"part/two\.ipynb"):
        build.check_contents(book, ["part/one.ipynb", "part/two.ipynb"])
    (book / "intro.md").unlink()
    with pytest.raises(BuildError, match="intro"):
        build.check_contents(book, ["part/one.ipynb"])


@pytest.mark.book
def test_pages_are_drawn_and_a_warning_is_an_error(small, monkeypatch):
    monkeypatch.setattr(draw, "vendor_mathjax", lambda folder: False)
    book = small()
    first = draw.draw(draw.gather(book, [], book, "smoke"), book / "_build" / "html")
    assert first == book / "_build" / "html" / "index.html"
    page = (book / "_build" / "html" / "intro.html").read_text()
    assert "mean nothing" in page, "a smoke build says so"
    assert draw.drawn(draw.gather(book, [], book, "smoke"), book / "_build" / "html")
    assert not draw.drawn(draw.gather(book, [], book, "quick"), book / "_build" / "html")
    (book / "intro.md").write_text("# Intro\n\n[nowhere](nowhere.md)\n")
    with pytest.raises(BuildError, match=r"intro\.md.*nowhere"):
        draw.draw(draw.gather(book, [], book, "smoke"), book / "_build" / "html")


@pytest.mark.book
def test_a_published_page_opens_on_binder_and_colab_and_names_its_source(small, monkeypatch):
    monkeypatch.setattr(draw, "vendor_mathjax", lambda folder: False)
    monkeypatch.setenv("LGFED_REPOSITORY", "https://github.com/somebody/a-book")
    book, name = small(one=[]), "part/one.ipynb"
    nbformat.write(new_notebook(cells=[new_markdown_cell("# One")]), book / name)
    draw.draw(draw.gather(book, [name], book, "quick"), book / "_build" / "html")
    page = (book / "_build" / "html" / "part" / "one.html").read_text()
    for address in (
        "https://mybinder.org/v2/gh/somebody/a-book/main?urlpath=lab/tree/book/part/one.ipynb",
        "https://colab.research.google.com/github/somebody/a-book/blob/main/book/part/one.ipynb",
        "https://github.com/somebody/a-book/issues/new",
    ):
        assert address in page
    monkeypatch.setenv("LGFED_REPOSITORY", "https://example.org/a-book")
    with pytest.raises(BuildError, match="https://github.com/OWNER/NAME"):
        build.build(book, "smoke", 1)
    assert not (book / "_build" / "executed").exists(), "before anything is executed"


def test_the_status_of_a_copy_has_each_notebooks_time_and_date(tmp_path):
    (tmp_path / "a.ipynb").write_text("{}")
    (tmp_path / "a.key.json").write_text('{"seconds": 3.2}')
    (tmp_path / "b.ipynb").write_text("{}")
    page = status.filled(f"# Status\n\n{status.MARK}\n", ["a.ipynb", "b.ipynb"], tmp_path, "quick")
    today = f"{datetime.now(UTC):%Y-%m-%d}"
    assert f"| [a](a.ipynb) | {today}" in page and "| 3.2 |" in page
    assert f"| [b](b.ipynb) | {today}" in page and "| not known |" in page
    assert "All at scale quick" in page
    assert f"pandas {pandas.__version__}" in page and status.MARK not in page
    assert status.MARK in (build.BOOK / "status.md").read_text()


def test_a_script_is_there_once_and_thebe_is_not():
    math, thebe = '<script defer src="a/mj.js"></script>', "<script>const THEBE_JS_URL = 1</script>"
    again = '<script src="a/mj.js"></script><script src="b.js"></script>'
    served = '<script async="async" src="_static/sphinx-thebe.js?v=1"></script>'
    page = f"<head>{math}{thebe}{served}</head><p>{again}</p><script>own()</script>"
    left = '<head><script defer src="a/mj.js"></script></head><p><script src="b.js"></script></p>'
    assert draw.without_extras(page) == f"{left}<script>own()</script>"


def test_mathjax_is_checked_and_done_without_where_npm_cannot_fetch(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert not light.vendor_mathjax(tmp_path / "_vendor" / "mathjax")
    assert "from the network" in capsys.readouterr().out
    with tarfile.open(tmp_path / "other.tgz", "w:gz") as package:
        for member in light.MATHJAX_FILES:
            package.add(__file__, f"package/es5/{member}")
    npm = tmp_path / "npm"
    npm.write_text(f"#!/bin/sh\n/bin/cp '{tmp_path}/other.tgz' mathjax.tgz\n")
    npm.chmod(0o755)
    with pytest.raises(BuildError, match="wrong sha256"):
        light.vendor_mathjax(tmp_path / "_vendor" / "mathjax")
    assert not list((tmp_path / "_vendor").rglob("*.js"))
    digest = light.sha256(Path(__file__))
    monkeypatch.setattr(light, "MATHJAX_FILES", dict.fromkeys(light.MATHJAX_FILES, digest))
    assert light.vendor_mathjax(tmp_path / "_vendor" / "mathjax")
    npm.unlink()
    assert light.vendor_mathjax(tmp_path / "_vendor" / "mathjax"), "fetched again"


def test_formulas_and_icons_are_drawn_into_a_page(tmp_path, monkeypatch):
    """By a MathJax that draws the TeX itself; the real one draws the pages of test_pages."""
    (tmp_path / "mathjax").mkdir()
    node = "const {readFileSync} = require('fs'); exports.init = async () => ({"
    node += "startup: {adaptor: {outerHTML: (x) => x, textContent: (x) => x}},"
    node += "tex2svgPromise: async (tex, {display}) => `<svg>${display} ${tex}</svg>`,"
    node += "svgStylesheet: () => 'svg {}'})"
    (tmp_path / "mathjax" / "node-main.js").write_text(node)
    icons = (
        'file:[1,2,[],"f15b","M0"]}}{file:[3,4,[9,"x"],"f15b","M1"],"file-pdf":[5,6,[],"f1","M2"]}'
    )
    (tmp_path / "fontawesome.js").write_text(icons)
    scripts = "<script>window.MathJax = {}</script><script src='m'></script>"
    scripts += '<script defer="defer" src="a/mathjax@3/x.js"></script>'
    icon = '<i class="fas fa-file" title="Page"></i>'
    body = r'<span class="math notranslate">\(a &lt; b\)</span> \(not math\)'
    body += (
        '<div class="math notranslate" id="e">\n<span class="eqno">(1)</span>\\[c_{[1]}\\]</div>'
    )
    page, plain = tmp_path / "a.html", tmp_path / "b.html"
    theme = '<script src="fontawesome.js?v=1"></script>'
    page.write_text(f"<head>{scripts}{theme}</head>{body}{icon}")
    plain.write_text(f'<head>{scripts}</head>{theme}<span class="fa-solid fa-unknown"></span>')
    light.lighten([page, plain], tmp_path / "mathjax")
    drawn = page.read_text()
    assert '<span class="math notranslate"><svg>false a < b</svg></span>' in drawn
    assert '<span class="eqno">(1)</span><svg>true c_{[1]}</svg></div>' in drawn
    assert r"\(not math\)" in drawn and "MathJax" not in drawn and "fontawesome" not in drawn
    assert "<style>svg {}</style>" in drawn and "<script src='m'>" in drawn
    shape = 'viewBox="0 0 3 4"><path fill="currentColor" d="M1"/></svg>'
    assert f'class="svg-inline--fa fas fa-file" title="Page" aria-hidden="true" {shape}' in drawn
    assert "MathJax" not in plain.read_text() and theme in plain.read_text(), "an unknown icon"
    page.write_text(f"<head>{scripts}</head>{body}")
    light.lighten([page], tmp_path / "none")
    assert page.read_text() == f"<head>{scripts}</head>{body}", "the reader's browser draws"
    svg = '<g data-mml-node="merror">'
    done = subprocess.CompletedProcess([], 0, json.dumps({"style": "", "drawn": [svg]}), "")
    monkeypatch.setattr(light.subprocess, "run", lambda *args, **more: done)
    with pytest.raises(BuildError, match=r"not take these formulas:\n\\fraq"):
        light.draw([("\\fraq", True)], tmp_path / "mathjax")
    monkeypatch.undo()
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BuildError, match="node, which npm needs too"):
        light.draw([("x", True)], tmp_path / "mathjax")


def test_numbers_of_a_table_stay_in_one_line():
    table = "<td class='a'>86.7 ± 4.1</td><td>-1.2 [-22.8, +20.4] (3)</td><script>[1, 2]</script>"
    assert tidy.in_one_line(table) == (
        "<td class='a'>86.7&nbsp;±&nbsp;4.1</td><td>-1.2 [-22.8,&nbsp;+20.4] (3)</td>"
        "<script>[1, 2]</script>"
    )


def test_pages_carry_no_progress_bars_widgets_or_places():
    bar = "train: 100%|####| 20/20 [00:00<00:00, 49.5it/s]\n"
    widget = {"application/vnd.jupyter.widget-view+json": {"model_id": "1"}, "text/plain": "0%"}
    cell = new_code_cell(
        outputs=[
            new_output("stream", name="stderr", text=f"0%|  |\r{bar}"),
            new_output("stream", name="stderr", text=f"{bar}{ROOT}/a.py:3: UserWarning: b\n"),
            new_output("display_data", data=widget),
            new_output("stream", name="stdout", text="kept\n"),
        ]
    )
    settings = new_code_cell('scale = "quick"', metadata={"tags": ["parameters"]})
    given = new_code_cell('# Parameters\nscale = "quick"\n')
    given.metadata["tags"] = ["injected-parameters"]
    notebook = new_notebook(cells=[settings, given, cell], metadata={"papermill": {}})
    cited = "FedAvg [McMahan et al., 2017](../references.bib#mcmahan2017communication), [x](y.md)."
    notebook.cells.insert(2, new_markdown_cell(cited))
    tidy.tidy(notebook)
    assert notebook.cells[2].source == "FedAvg {cite}`mcmahan2017communication`, [x](y.md)."
    kept = json.loads(nbformat.writes(places.without_places(notebook)))
    texts = ["".join(output["text"]) for output in kept["cells"][-1]["outputs"]]
    assert texts == ["./a.py:3: UserWarning: b\n", "kept\n"]
    assert "papermill" not in kept["metadata"]
    assert kept["cells"][1]["metadata"]["tags"] == ["injected-parameters", "remove-cell"]
    given.source = '# Parameters\nscale = "paper"\n'
    given.metadata["tags"] = ["injected-parameters"]
    tidy.tidy(notebook)
    assert given.metadata["tags"] == ["injected-parameters", "hide-input"]
