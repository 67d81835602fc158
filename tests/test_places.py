"""Published pages do not say where their author keeps anything, whatever the folders are called."""

import html
import json
import os
import sys
import tempfile
import unicodedata
from pathlib import Path
from urllib.parse import quote

import nbformat
import papermill
import places
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

import execute
from toy import python

NAMES = [
    "plain",
    "a b ü",
    "p y ü",
    "quo'te",
    'two "quotes"',
    "a & b",
    "100 % (new)",
    "日本 語",
    "é",
]


@pytest.fixture(params=NAMES)
def folders(request, tmp_path, monkeypatch):
    """Folders of this name for the project, its environment, the user and what is temporary."""
    place = tmp_path / request.param
    found = {what: place / what for what in ("lgfed", "env", "home", "tmp")}
    for path in found.values():
        path.mkdir(parents=True)
    monkeypatch.setattr(places, "ROOT", found["lgfed"])
    monkeypatch.setattr(sys, "prefix", str(found["env"]))
    monkeypatch.setenv("HOME", str(found["home"]))
    monkeypatch.setattr(tempfile, "tempdir", str(found["tmp"]))
    return found


def page(*texts: str):
    outputs = [new_output("stream", name="stdout", text=text) for text in texts]
    return new_notebook(cells=[new_markdown_cell("# Page"), new_code_cell(outputs=outputs)])


def test_folders_have_short_names_on_a_page(folders):
    root, env, home, tmp = folders.values()
    texts = [
        f"{root}/a.py:3: UserWarning: b\n",
        f"it is in {root}. The other is in {env}/lib,\n",
        f"{home}/x '{home}' {home}-old\n",
        f'File "{tmp}/ipykernel_12/345.py", line 2\n/elsewhere/ipykernel_1/2.py:1: b\n',
    ]
    kept = nbformat.reads(nbformat.writes(places.without_places(page(*texts))), 4)
    assert [output.text for output in kept.cells[1].outputs] == [
        "./a.py:3: UserWarning: b\n",
        "it is in .. The other is in .venv/lib,\n",
        f"~/x '~' {home}-old\n",
        'File "<cell>", line 2\n<cell>:1: b\n',
    ]


def test_a_folder_is_found_however_it_is_spelled(folders):
    root = str(folders["lgfed"])
    spelled = [root, repr(root)[1:-1], json.dumps(root)[1:-1], html.escape(root), quote(root)]
    spelled += [unicodedata.normalize(form, root) for form in ("NFC", "NFD")]
    for text in spelled:
        assert places.without_places(f"<{text}/data>") == "<./data>"
    cell = new_code_cell(root, metadata={"tags": [root], "n": 1, root: None})
    assert root not in repr(places.without_places(cell))


def test_links_do_not_give_a_folder_away(folders, tmp_path, monkeypatch):
    (tmp_path / "link").symlink_to(folders["home"])
    (tmp_path / "way").symlink_to(folders["lgfed"])
    monkeypatch.setenv("HOME", str(tmp_path / "link") + "/")
    monkeypatch.setattr(places, "ROOT", tmp_path / "way")
    said = f"{tmp_path}/link/x {folders['home']}/x {tmp_path}/way/y {folders['lgfed']}/y"
    assert places.without_places(said) == "~/x ~/x ./y ./y"


def test_large_and_small_letters_are_one_where_the_disk_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(places, "ROOT", tmp_path / "Lgfed Ü")
    (tmp_path / "Lgfed Ü").mkdir()
    assert places.without_places(f"{tmp_path}/lgfed ü/a") != "./a", "another folder"
    (tmp_path / "lGFED ü").symlink_to(tmp_path / "Lgfed Ü")  # as macOS and Windows see it
    assert places.without_places(f"{tmp_path}/lgfed ü/a {tmp_path}/Lgfed Ü/b") == "./a ./b"


@pytest.mark.parametrize("home", ["/", ""])
def test_without_a_home_pages_stay_as_they_are(home, monkeypatch):
    monkeypatch.setenv("HOME", home)
    assert places.without_places("https://a.org/b ~/c") == "https://a.org/b ~/c"


@pytest.mark.parametrize("folders", NAMES[1:3], indirect=True)
def test_an_executed_page_is_written_without_them(folders, monkeypatch):
    source, target = folders["lgfed"] / "a.ipynb", folders["lgfed"] / "out" / "a.ipynb"
    done = page(f"{folders['lgfed']}/a.py\n")
    done.cells[1].update(source="1", execution_count=1)
    nbformat.write(done, source)
    monkeypatch.setattr(papermill, "execute_notebook", lambda *how, **more: done)
    execute.run_one(source.parent, source.name, "smoke", target)
    text = target.read_text(encoding="utf-8")
    assert json.loads(text)["cells"][1]["outputs"][0]["text"] == ["./a.py\n"]
    assert "\\u" not in text and str(folders["lgfed"]) not in text


@pytest.mark.parametrize("folders", NAMES[1:2], indirect=True)
def test_a_tilde_in_the_environment_is_the_home_folder(folders):
    code = "import execute, json; from lgfed_core import paths as p; print(json.dumps("
    code += "[str(x) for x in (p.ROOT, p.RUNS, p.CACHE, execute.CACHE)]))"
    given = {"LGFED_HOME": "~/own", "LGFED_CACHE": "~/a b", "LGFED_RUNS": ""}
    there = os.pathsep.join(str(Path(execute.__file__).parents[n]) for n in (0, 1))
    done = python(code, env=os.environ | given | {"PYTHONPATH": there}, cwd=folders["tmp"])
    own, home = folders["home"] / "own", folders["home"]
    cache = str(home / "a b")
    assert json.loads(done.stdout) == [str(own), str(own / "data/runs"), cache, cache]
