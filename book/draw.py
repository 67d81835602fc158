"""Draw the HTML pages from executed notebooks, unless they are drawn already."""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

import status
import yaml

import docstrings
from execute import ROOT, BuildError, shown

MATHJAX = "mathjax@3.2.2"
MATHJAX_FILES = {  # member: sha256; "full" has every TeX extension, which a page loads by itself
    "es5/tex-svg-full.js": "a4354ff94fd868aea0cc6eaaa79a57fda0588646fc46ee3700a349ee0a11cbe6",
    "LICENSE": "cfc7749b96f63bd31c3c42b5c471bf756814053e847c10f3eb003417bc523d30",
}


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
        shutil.copytree(source / "_vendor", pages / "_vendor")
        settings["sphinx"]["config"]["html_static_path"] = ["_vendor"]
        settings["sphinx"]["config"]["mathjax_path"] = "mathjax/tex-svg-full.js"
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
    files = [*inputs, ROOT / "constraints.txt", Path(__file__)]
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
    for page in (work / "_build" / "html").rglob("*.html"):
        page.write_text(without_extras(page.read_text(encoding="utf-8")), encoding="utf-8")
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


def vendor_mathjax(folder: Path) -> bool:
    """Put MathJax into ``folder`` from npm, so that formulas need no network; say if it worked."""
    targets = {folder / Path(member).name: sha for member, sha in MATHJAX_FILES.items()}
    if all(path.exists() and sha256(path) == sha for path, sha in targets.items()):
        return True
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        try:
            command = ["npm", "pack", "--silent", "--ignore-scripts", "--fetch-retries=1"]
            subprocess.run(
                [*command, MATHJAX], cwd=scratch, check=True, capture_output=True, timeout=180
            )
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
