"""Draw the HTML pages from executed notebooks, unless they are drawn already."""

import hashlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import status
import yaml
from light import lighten, sha256, vendor_mathjax

import docstrings
from execute import ROOT, BuildError, shown


def gather(source: Path, names: list[str], executed: Path, scale: str) -> Path:
    """Lay out what Jupyter Book reads: pages, executed notebooks, settings; return the folder."""
    pages = source / "_build" / "pages"
    shutil.rmtree(pages, ignore_errors=True)
    left = ("_build", "_vendor", "__pycache__", ".*", "*.py", "*.ipynb")
    shutil.copytree(source, pages, ignore=shutil.ignore_patterns(*left))
    for name in names:
        shutil.copyfile(executed / name, pages / name)
    settings, more = yaml.safe_load((ROOT / "_config.yml").read_text("utf-8")), published()
    settings |= more | {"html": settings["html"] | more["html"]}
    if scale == "smoke":
        settings["html"]["announcement"] = (
            "Built at scale smoke: the live runs on these pages last seconds and their numbers "
            "mean nothing. The stored paper-scale results are the real ones."
        )
    if vendor_mathjax(source / "_vendor" / "mathjax"):
        shutil.copytree(source / "_vendor" / "mathjax", pages / "_mathjax")
    if (own := pages / "status.md").exists():
        text = status.filled(own.read_text(encoding="utf-8"), names, executed, scale)
        own.write_text(text, encoding="utf-8")
    for own in pages.glob("api/*.md"):
        own.write_text(docstrings.filled(own.read_text(encoding="utf-8")), encoding="utf-8")
    settings["sphinx"]["local_extensions"] = {"docstrings": str(ROOT / "book")}
    (pages / "_config.yml").write_text(yaml.safe_dump(settings), encoding="utf-8")
    return pages


def published() -> dict[str, dict]:
    """Settings of a book whose source has an address, ``LGFED_REPOSITORY`` in the environment:
    buttons to source and issues, and to Binder and Colab; none without it.

    Raises `BuildError` for an address from which Binder and Colab cannot open a notebook.
    """
    if not (address := os.environ.get("LGFED_REPOSITORY", "")):
        return {"html": {}}
    if not re.fullmatch(r"https://github\.com/[\w.-]+/[\w.-]+", address):
        raise BuildError(
            f"LGFED_REPOSITORY is {address!r}; it must be like https://github.com/OWNER/NAME. "
            "Without it pages have no buttons to their source, to Binder and to Colab."
        )
    branch = os.environ.get("LGFED_BRANCH", "main")
    return {
        "repository": {"url": address, "path_to_book": "book", "branch": branch},
        "launch_buttons": {
            "notebook_interface": "jupyterlab",
            "binderhub_url": "https://mybinder.org",
            "colab_url": "https://colab.research.google.com",
        },
        "html": {"use_repository_button": True, "use_issues_button": True},
    }


def drawn(pages: Path, target: Path) -> bool:
    """Whether ``target`` was drawn from pages like these, by the same packages."""
    stamp = target / ".key"
    return stamp.exists() and stamp.read_text() == key(pages)


def key(pages: Path) -> str:
    """Digest of all that decides what the HTML looks like."""
    inputs = [path for path in sorted(pages.rglob("*")) if path.is_file()]
    names = [path.relative_to(pages).as_posix() for path in inputs]
    own = [Path(__file__).with_name(name) for name in ("draw.py", "light.py", "formulas.js")]
    files = [*inputs, ROOT / "constraints.txt", *own]
    return hashlib.sha256(repr([names, *map(sha256, files)]).encode()).hexdigest()


def draw(pages: Path, target: Path) -> Path:
    """Build the HTML from gathered pages, a warning being an error; return the first page."""
    work = pages.parent / "work"
    shutil.rmtree(work, ignore_errors=True)
    made_from = key(pages)
    command = [sys.executable, "-c", "from jupyter_book.cli.main import main; main()", "build"]
    command += [str(pages), "--path-output", str(work), "-W", "--keep-going"]
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode:
        said = re.sub(r"\x1b\[[\d;]*m", "", done.stdout + done.stderr)
        said = said.replace(str(pages), shown(pages.parent.parent)).splitlines()
        wrong = [line for line in said if re.search(r"WARNING|ERROR|CRITICAL", line)]
        raise BuildError("Jupyter Book warned or failed:\n" + "\n".join(wrong or said[-30:]))
    drawn_pages = list((work / "_build" / "html").rglob("*.html"))
    for page in drawn_pages:
        page.write_text(without_extras(page.read_text(encoding="utf-8")), encoding="utf-8")
    lighten(drawn_pages, pages / "_mathjax")
    shutil.rmtree(target, ignore_errors=True)
    (work / "_build" / "html").rename(target)
    (target / ".key").write_text(made_from)
    shutil.rmtree(work)
    return target / "index.html"


def without_extras(html: str) -> str:
    """A page without the scripts that Jupyter Book adds twice (both copies of MathJax fail then),
    and without thebe, which would run cells on somebody's server."""
    seen = set()

    def once(tag: re.Match) -> str:
        again = tag[1] in seen
        seen.add(tag[1])
        return "" if again else tag[0]

    return re.sub(r'<script[^>]*\ssrc="([^"]+)"[^>]*></script>', once, _THEBE.sub("", html))


_THEBE = re.compile(
    r"<script[^>]*>\s*(?:const THEBE_JS_URL|kernelName).*?</script>"
    r"|<script[^>]*(?:sphinx-thebe\.js|x-thebe-config)[^>]*>.*?</script>",
    re.DOTALL,
)
