"""Build the book: execute its notebooks at a scale, gather the pages, draw the HTML.

Nothing is left out silently: a notebook that is not in ``_toc.yml``, that fails, or that makes the
HTML builder warn, ends the build with an exit status other than 0.
"""

import argparse
import hashlib
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path

import yaml

from execute import ROOT, BuildError, core_digest, cores, execute, shown

BOOK = Path(__file__).resolve().parent
SCALES = {
    "smoke": "seconds per notebook, for tests; its live numbers mean nothing",
    "quick": "about a minute per notebook on two cores",
    "paper": "the full protocol of the papers; hours",
}
MATHJAX = "mathjax@3.2.2"
MATHJAX_FILES = {  # member: sha256; "full" has every TeX extension, which a page loads by itself
    "es5/tex-svg-full.js": "a4354ff94fd868aea0cc6eaaa79a57fda0588646fc46ee3700a349ee0a11cbe6",
    "LICENSE": "cfc7749b96f63bd31c3c42b5c471bf756814053e847c10f3eb003417bc523d30",
}


def main(arguments: list[str] | None = None) -> int:
    """Command line; returns the exit status."""
    parser = argparse.ArgumentParser(
        description="Execute every notebook of the book and build its HTML pages.",
        epilog="Scales: " + "; ".join(f"{name} = {text}" for name, text in SCALES.items()) + ".",
    )
    parser.add_argument("--scale", choices=SCALES, default="quick", help="default: %(default)s")
    parser.add_argument(
        "--jobs", type=int, metavar="N", default=cores(), help="notebooks at once (default: cores)"
    )
    parser.add_argument("--no-html", action="store_true", help="execute only")
    parser.add_argument(
        "--source", type=Path, metavar="DIR", default=BOOK, help="the book (default: this folder)"
    )
    chosen = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends like Ctrl-C
    try:
        build(chosen.source.resolve(), chosen.scale, chosen.jobs, html=not chosen.no_html)
    except BuildError as error:
        print(f"\nThe book was not built.\n{error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nStopped. Notebooks that had finished are kept.", file=sys.stderr)
        return 130
    return 0


def build(source: Path, scale: str, jobs: int, html: bool = True) -> None:
    """Execute the notebooks of ``source`` at ``scale`` and, unless told not to, draw the pages."""
    start = time.monotonic()
    out = source / "_build" / "executed" / scale
    names = notebooks(source)
    check_contents(source, names)
    print(f"Notebooks at scale {scale}, up to {jobs} at once:", flush=True)
    count = execute(source, names, scale, out, jobs, core_digest())
    print(f"{count} of {len(names)} executed in {time.monotonic() - start:.0f} s", flush=True)
    if html:
        pages = gather(source, names, out, scale)
        page = draw(pages, source / "_build" / "html")
        print(f"The book: {page}")


def notebooks(source: Path) -> list[str]:
    """Every notebook below ``source``, relative to it; none in folders with a leading _ or dot."""
    found = (path.relative_to(source) for path in source.rglob("*.ipynb"))
    return sorted(p.as_posix() for p in found if not any(part[0] in "._" for part in p.parts))


def contents(source: Path) -> list[str]:
    """Page names of ``_toc.yml`` in reading order, without suffix."""

    def walk(entry: object) -> list[str]:
        if isinstance(entry, list):
            return [name for item in entry for name in walk(item)]
        if isinstance(entry, dict):
            own = [entry[k] for k in ("root", "file") if k in entry]
            return own + [name for value in entry.values() for name in walk(value)]
        return []

    return walk(yaml.safe_load((source / "_toc.yml").read_text(encoding="utf-8")))


def check_contents(source: Path, names: list[str]) -> None:
    """Raise `BuildError` unless table of contents and folder name the same notebooks and pages."""
    listed = [re.sub(r"\.(md|ipynb)$", "", name) for name in contents(source)]
    missing = [name for name in names if name.removesuffix(".ipynb") not in listed]
    if missing:
        raise BuildError(f"Not in {shown(source / '_toc.yml')}: {', '.join(missing)}. Add them.")
    absent = [
        name
        for name in listed
        if f"{name}.ipynb" not in names and not (source / f"{name}.md").exists()
    ]
    if absent:
        raise BuildError(f"{shown(source / '_toc.yml')} lists pages without a file: {absent}")


def gather(source: Path, names: list[str], executed: Path, scale: str) -> Path:
    """Lay out what Jupyter Book reads: pages, executed notebooks, settings; return the folder."""
    pages = source / "_build" / "pages"
    shutil.rmtree(pages, ignore_errors=True)
    left = ("_build", "_vendor", "__pycache__", ".*", "*.py", "*.ipynb")
    shutil.copytree(source, pages, ignore=shutil.ignore_patterns(*left))
    for name in names:
        shutil.copyfile(executed / name, pages / name)
    settings = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))
    if scale == "smoke":
        settings["html"]["announcement"] = (
            "Built at scale smoke: the live runs on these pages last seconds and their numbers "
            "mean nothing. The stored paper-scale results are the real ones."
        )
    if vendor_mathjax(source / "_vendor" / "mathjax"):
        shutil.copytree(source / "_vendor", pages / "_vendor")
        settings["sphinx"]["config"]["html_static_path"] = ["_vendor"]
        settings["sphinx"]["config"]["mathjax_path"] = "mathjax/tex-svg-full.js"
    (pages / "_config.yml").write_text(yaml.safe_dump(settings), encoding="utf-8")
    return pages


def draw(pages: Path, target: Path) -> Path:
    """Build the HTML from gathered pages, a warning being an error; return the first page."""
    work = pages.parent / "work"
    shutil.rmtree(work, ignore_errors=True)
    command = [sys.executable, "-c", "from jupyter_book.cli.main import main; main()", "build"]
    command += [str(pages), "--path-output", str(work), "-W", "--keep-going"]
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode:
        said = re.sub(r"\x1b\[[\d;]*m", "", done.stdout + done.stderr)
        said = said.replace(str(pages), shown(pages.parent.parent)).splitlines()
        wrong = [line for line in said if re.search(r"WARNING|ERROR|CRITICAL", line)]
        raise BuildError("Jupyter Book warned or failed:\n" + "\n".join(wrong or said[-30:]))
    shutil.rmtree(target, ignore_errors=True)
    (work / "_build" / "html").rename(target)
    shutil.rmtree(work)
    return target / "index.html"


def vendor_mathjax(folder: Path) -> bool:
    """Put MathJax into ``folder`` from npm, so that formulas need no network; say if it worked."""
    targets = {folder / Path(member).name: sha for member, sha in MATHJAX_FILES.items()}
    if all(path.exists() and sha256(path) == sha for path, sha in targets.items()):
        return True
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        try:
            command = ["npm", "pack", "--silent", MATHJAX]
            subprocess.run(command, cwd=scratch, check=True, capture_output=True, timeout=180)
        except (OSError, subprocess.SubprocessError):
            print("npm cannot fetch MathJax: pages will load it from the network to draw formulas")
            return False
        with tarfile.open(next(Path(scratch).glob("*.tgz"))) as package:
            for member, sha in MATHJAX_FILES.items():
                path = Path(scratch) / Path(member).name
                path.write_bytes(package.extractfile(f"package/{member}").read())
                if sha256(path) != sha:
                    raise BuildError(f"{member} of {MATHJAX} from npm has a wrong sha256")
                path.replace(folder / path.name)
    return True


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


if __name__ == "__main__":
    sys.exit(main())
