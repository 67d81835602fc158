"""Light pages: formulas and icons are drawn into them when the book is built.

Otherwise each page would bring MathJax (2.3 MB) and all of the theme's icons (1.5 MB) as scripts,
that its reader's browser runs for the sake of a few formulas and a dozen icons.
"""

import hashlib
import html
import json
import re
import subprocess
import tarfile
import tempfile
from functools import cache
from pathlib import Path

from execute import ROOT, BuildError

MATHJAX = "mathjax@3.2.2"
MATHJAX_FILES = {  # member of es5/: sha256
    "node-main.js": "a3e6f8f69fb7a786f4b4d08f0f17781381996ec2c278a0f406f9e812ffa809b2",
    "input/tex-full.js": "de76b151355304bde8217d8056264d9c2bec2f47acb7ffd4d142cbe14f5b0035",
    "output/svg.js": "6fdee599b240851fd27b31017e1a18802d99743ac4fae8204998997176647609",
    "output/svg/fonts/tex.js": "6afb8e7f4f7f19255c4b111f4a00c06716b70ea9b977516127c054e7799d2da4",
    "a11y/assistive-mml.js": "5b8414e36cd63d154b90beab67e5e3399c7439aff97f4b556761224f8176f657",
    "adaptors/liteDOM.js": "30e7d3f231e5c86b0c6ecdc283e5b6f2a46d6ddee140745a050bd5ccfe62b3ef",
}
FORMULA = re.compile(
    r'(?P<start><(?P<tag>span|div) class="math[^"]*"[^>]*>\s*(?:<span class="eqno">.*?</span>)?\s*)'
    r"\\(?P<kind>[(\[])(?P<tex>.*?)\\[)\]](?P<end>\s*</(?P=tag)>)",
    re.DOTALL,
)
MATHJAX_SCRIPTS = re.compile(r"<script[^>]*>\s*window\.MathJax.*?</script>\s*", re.DOTALL)
MATHJAX_SOURCE = re.compile(r'<script[^>]*src="[^"]*mathjax[^"]*"[^>]*></script>\s*')
ICON = re.compile(
    r'<(i|span)(?= )(?P<own>[^>]*class="[^"]*\bfa[srb]?(?:-solid)? [^"]*"[^>]*)></\1>'
)
SHAPE = re.compile(r'[{,]"?([\w-]+)"?:\[(\d+),(\d+),\[[^\]]*\],"\w+","([^"]+)"\]')
ICONS = re.compile(r'<script[^>]*src="(?P<at>[^"?]*fontawesome\.js)[^"]*"[^>]*></script>\s*')


def vendor_mathjax(folder: Path) -> bool:
    """Put MathJax into ``folder`` from npm; say if it worked."""
    targets = {folder / member: sha for member, sha in MATHJAX_FILES.items()}
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
                path = Path(scratch) / member.replace("/", "-")
                path.write_bytes(package.extractfile(f"package/es5/{member}").read())
                if sha256(path) != sha:
                    raise BuildError(f"{member} of {MATHJAX} from npm has a wrong sha256")
                (folder / member).parent.mkdir(parents=True, exist_ok=True)
                path.replace(folder / member)
    return True


def lighten(pages: list[Path], mathjax: Path) -> None:
    """Draw what ``pages`` leave to scripts; formulas stay theirs where no ``mathjax`` is."""
    texts = {page: page.read_text(encoding="utf-8") for page in pages}
    if mathjax.exists():
        asked = {f for text in texts.values() for f in map(formula, FORMULA.finditer(text))}
        style, drawn = draw(sorted(asked), mathjax)
        texts = {page: with_formulas(text, style, drawn) for page, text in texts.items()}
    for page, text in texts.items():
        page.write_text(with_icons(text, page.parent), encoding="utf-8")


def formula(found: re.Match) -> tuple[str, bool]:
    """TeX of a formula, and whether it stands on a line of its own."""
    return html.unescape(found["tex"]).strip(), found["kind"] == "["


def draw(formulas: list[tuple[str, bool]], mathjax: Path) -> tuple[str, dict]:
    """A style sheet, and each formula as SVG beside MathML that a screen reader reads.

    Raises `BuildError` for TeX that MathJax does not take.
    """
    try:
        done = subprocess.run(
            ["node", str(ROOT / "book" / "formulas.js"), str(mathjax)],
            input=json.dumps(formulas),
            capture_output=True,
            text=True,
            encoding="utf-8",
        )
    except OSError as error:
        said = f"node, which npm needs too, draws formulas and cannot start: {error}"
        raise BuildError(said) from None
    if done.returncode:
        raise BuildError(f"node cannot draw formulas:\n{done.stderr}")
    found = json.loads(done.stdout)
    drawn = dict(zip(formulas, found["drawn"], strict=True))
    if wrong := [tex for (tex, _), svg in drawn.items() if 'data-mml-node="merror"' in svg]:
        raise BuildError("MathJax does not take these formulas:\n" + "\n".join(wrong))
    return found["style"], drawn


def with_formulas(text: str, style: str, drawn: dict) -> str:
    """A page with its formulas ``drawn``, and without the script that would draw them."""
    text, there = FORMULA.subn(lambda f: f["start"] + drawn[formula(f)] + f["end"], text)
    text = MATHJAX_SOURCE.sub("", MATHJAX_SCRIPTS.sub("", text))
    return text.replace("</head>", f"<style>{style}</style>\n</head>", 1) if there else text


def with_icons(text: str, folder: Path) -> str:
    """A page in ``folder`` with its icons drawn, if the theme's script has all of them."""
    script = ICONS.search(text)
    if not script or not (source := folder / script["at"]).exists():
        return text
    known = shapes(source.resolve())
    try:
        text = ICON.sub(lambda icon: drawn_icon(icon["own"], known), text)
    except KeyError:
        return text
    return ICONS.sub("", text)


@cache
def shapes(source: Path) -> dict[str, tuple[str, str, str]]:
    """Width, height and outline of each icon in the theme's script, which has solid ones last."""
    return {name: tuple(shape) for name, *shape in SHAPE.findall(source.read_text("utf-8"))}


def drawn_icon(own: str, known: dict[str, tuple[str, str, str]]) -> str:
    """SVG for an element with attributes ``own``. Raises KeyError for an icon not in ``known``."""
    name = next((n for n in re.findall(r"fa-([a-z-]+)", own) if n in known), own)
    wide, high, path = known[name]
    own = re.sub(r'class="', 'class="svg-inline--fa ', own, count=1)
    return (
        f'<svg{own} aria-hidden="true" viewBox="0 0 {wide} {high}">'
        f'<path fill="currentColor" d="{path}"/></svg>'
    )


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
