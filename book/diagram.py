"""Draw the design page's diagrams: the rooms with the one direction of imports, and one round.

``python book/diagram.py`` writes book/images/rooms.svg and round.svg. Who may import whom is read
from tests/test_directions.py, which holds the code to it. The pages include the drawings as they
are, so that they take the page's colours, by day and by night, and a phone's width.
"""

import argparse
import html
import runpy
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
IMAGES = ROOT / "book" / "images"
WIDTH, ROW, HIGH = 380, 58, 28  # of the drawing, from row to row, and of a box

ROUND = (  # (who, what happens there or is sent from there, the answer of a method that decides it)
    ("server", "sends the parameters that are averaged", "shared"),
    ("device", "puts them into its own model", ""),
    ("device", "trains on its own rows", "steps"),
    ("device", "treats its update: clipped, blurred", "upload"),
    ("device", "sends it, and nothing of its own parts", "shared"),
    ("server", "weighs the updates", "weights"),
    ("server", "takes their average, or a median", "aggregate"),
    ("server", "moves; the next round begins", "server_update"),
)
STYLE = (
    ".lgfed-drawing{width:100%;max-width:30rem}"
    ".lgfed-drawing text{fill:currentColor;font:13px sans-serif;text-anchor:middle}"
    ".lgfed-drawing .answer{font:12px monospace}"
    ".lgfed-drawing :is(rect,.way){fill:none;stroke:currentColor}"
    ".lgfed-drawing .head{fill:currentColor}"
)


def main() -> None:
    """Write both drawings."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    for name, drawing in (("rooms", rooms(sees())), ("round", one_round())):
        (IMAGES / f"{name}.svg").write_text(drawing, encoding="utf-8")


def sees() -> dict[str, set[str]]:
    """Room or ground file -> those that it may import."""
    return runpy.run_path(str(ROOT / "tests" / "test_directions.py"))["SEES"]


def edges(known: dict[str, set[str]]) -> list[tuple[str, str]]:
    """The pairs (who imports, what) that do not follow from others; two that import each other
    stand side by side, without one."""
    above = {a: {b for b in known[a] if a not in known[b]} for a in known}
    return sorted(
        (a, b) for a in above for b in above[a] if not any(b in above[c] for c in above[a])
    )


def levels(known: dict[str, set[str]]) -> list[list[str]]:
    """Rows of a drawing from the top: each stands above all that it imports, and what imports
    nothing right below those that import it; in a row, who has users on the left is on the left."""
    below = {name: [b for a, b in edges(known) if a == name] for name in known}
    users = {name: [a for a, b in edges(known) if b == name] for name in known}

    def height(name: str) -> int:
        return 1 + max(map(height, below[name]), default=-1)

    place = {name: height(name) for name in known}
    for name in known:
        if not below[name] and users[name]:
            place[name] = min(place[user] for user in users[name]) - 1
    rows: list[list[str]] = []
    x: dict[str, float] = {}
    for n in sorted(set(place.values()), reverse=True):
        row = [name for name in known if place[name] == n]
        mean = {a: sum(x[user] for user in users[a]) / max(1, len(users[a])) for a in row}
        rows.append(sorted(row, key=lambda name: (mean[name], name)))
        x |= {name: (m + 0.5) / len(row) for m, name in enumerate(rows[-1])}
    return rows


def rooms(known: dict[str, set[str]]) -> str:
    """The rooms as an SVG drawing, arrows from who imports to what is imported."""
    parts, at, rows, found = [], {}, levels(known), edges(known)
    for n, row in enumerate(rows):
        step = WIDTH / len(row)
        for m, name in enumerate(row):
            at[name] = (m + 0.5) * step, 1 + n * ROW + HIGH / 2
            parts.append(_box(*at[name], min(step - 4, 92), name))
    for a, b in found:
        (x, y), (to_x, to_y) = at[a], at[b]
        parts.append(_arrow(x, y + HIGH / 2, to_x, to_y - HIGH / 2))
    pairs = "; ".join(
        f"{a} imports {', '.join(b for c, b in found if c == a)}"
        for a in dict.fromkeys(a for a, _ in found)
    )
    said = f"All arrows run downwards: {pairs}; and whatever lies below these."
    high = ROW * (len(rows) - 1) + HIGH
    return _svg("rooms", "The rooms of lgfed_core and who imports whom", said, parts, high)


def one_round() -> str:
    """A round as an SVG drawing: what server and device do in turn, and what is sent."""
    x, parts = {"server": 70.0, "device": 310.0}, []
    for who, words in (("server", "server"), ("device", "each device")):
        parts.append(_box(x[who], 15, 120, words))
    for n, (who, words, answer) in enumerate(ROUND):
        y = 48 + n * ROW
        lines = textwrap.wrap(f"{n + 1}. {words}", 24)
        if words.startswith("sends "):
            other = "device" if who == "server" else "server"
            parts.append(_arrow(x[who], y + 30, x[other], y + 30))
            parts.append(_text(WIDTH / 2, y + 8, f"{n + 1}. {words}"))
            parts.append(_text(WIDTH / 2, y + 24, answer, "answer"))
            continue
        side = min(max(x[who], 84), WIDTH - 84)
        parts += [_text(side, y + 8 + 15 * m, line) for m, line in enumerate(lines)]
        parts.append(_text(side, y + 8 + 15 * len(lines), answer, "answer") if answer else "")
    said = "; ".join(
        f"{n}, {who}: {words}" + (f" ({answer})" if answer else "")
        for n, (who, words, answer) in enumerate(ROUND, 1)
    )
    high = 48 + ROW * len(ROUND)
    return _svg("round", "One round: who does and sends what", f"{said}.", parts, high)


def _svg(name: str, title: str, said: str, parts: list[str], high: float) -> str:
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {high + 2:g}" role="img" '
        f'class="lgfed-drawing" aria-labelledby="{name}-title {name}-words">'
    )
    words = f'<title id="{name}-title">{title}</title>\n<desc id="{name}-words">'
    words += f"{html.escape(said)}</desc>"
    return "\n".join([head, words, f"<style>{STYLE}</style>", *filter(None, parts), "</svg>\n"])


def _box(x: float, y: float, wide: float, words: str) -> str:
    corner = f'x="{x - wide / 2:g}" y="{y - HIGH / 2:g}" width="{wide:g}" height="{HIGH}"'
    return f'<rect {corner} rx="4"/>' + _text(x, y + 4, words)


def _text(x: float, y: float, words: str, kind: str = "") -> str:
    named = f' class="{kind}"' if kind else ""
    return f'<text x="{x:g}" y="{y:g}"{named}>{html.escape(words)}</text>'


def _arrow(x: float, y: float, to_x: float, to_y: float) -> str:
    """A line with a head at its end."""
    long = ((to_x - x) ** 2 + (to_y - y) ** 2) ** 0.5
    a, b = (to_x - x) / long, (to_y - y) / long  # its direction
    ends = [(to_x - 7 * a - s * 3.5 * b, to_y - 7 * b + s * 3.5 * a) for s in (1, -1)]
    head = " L".join(f"{u:.1f} {v:.1f}" for u, v in [(to_x, to_y), *ends])
    return (
        f'<path class="way" d="M{x:g} {y:g} L{to_x:g} {to_y:g}"/><path class="head" d="M{head} Z"/>'
    )


if __name__ == "__main__":
    main()
