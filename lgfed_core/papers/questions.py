"""Questions and answers of a page's claims, as its first cell, the first page and README have them.

They are written in the claims themselves. In a notebook they stand between two marks, in Markdown,
so that they are read where notebooks have no outputs; `python -m lgfed_core report --front` renews
them, and a test holds them.
"""

import json
import re
from collections.abc import Iterable
from pathlib import Path

from lgfed_core.errors import ResultsError
from lgfed_core.evidence.answers import Told, key
from lgfed_core.files import replacing

BEGIN, END = "<!-- answers -->", "<!-- /answers -->"
MOVED = "*The runs have moved since this was written.*"


def place(told: Told) -> str:
    """What an answer is called in a page: "answer-L1"."""
    return "answer-" + key(told.claim).replace(", ", "-").replace(" ", "-")


def asked(told: Told) -> str:
    """The question, with the data where several have it."""
    return told.claim.question + (f" ({told.claim.where})" if told.claim.where else "")


def answered(told: Told, short: bool = False) -> str:
    """The answer, struck through where its guard fails; what limits it after it.

    short: of what follows the verdict, the first sentence alone.
    """
    answer = told.claim.answer
    if short:
        answer = " ".join(_SENTENCE.split(answer)[:2])
    answer = answer if told.stands() else f"~~{answer}~~ {MOVED}"
    tags = "".join(f" *{tag[0].upper()}{tag[1:]}.*" for tag in told.tags)
    return answer + tags


def markdown(some: Iterable[Told]) -> str:
    """A question and its answer to a paragraph, each with a place of its own."""
    return "\n\n".join(
        f'<span id="{place(one)}"></span>*{asked(one)}*\\\n{answered(one)}' for one in some
    )


def marked(text: str, words: str) -> str:
    """``text`` with ``words`` between the two marks; as it is where it has none."""
    head, begin, rest = text.partition(BEGIN)
    _, end, tail = rest.partition(END)
    return f"{head}{BEGIN}\n\n{words}\n\n{END}{tail}" if begin and end else text


def renew(path: Path, some: Iterable[Told], write: bool = True) -> bool:
    """Renew the answers of a notebook; whether that changed it. write: whether it is saved."""
    book, words, changed = json.loads(path.read_text(encoding="utf-8")), markdown(some), False
    for cell in book["cells"]:
        before = "".join(cell["source"])
        after = marked(before, words) if cell["cell_type"] == "markdown" else before
        if after != before:
            cell["source"], changed = after.splitlines(keepends=True), True
    if changed and write:
        with replacing(path) as part:
            text = json.dumps(book, indent=1, ensure_ascii=False)
            part.write_text(f"{text}\n", encoding="utf-8")
    return changed


def renew_page(path: Path, words: str, write: bool = True) -> bool:
    """Put ``words``, with links as in the book, between the marks of a page in Markdown; whether
    that changed it. Raises ResultsError for a page without the marks."""
    before = path.read_text(encoding="utf-8")
    if BEGIN not in before or END not in before:
        raise ResultsError(f"{path} has no lines {BEGIN} and {END}; put them where answers go")
    after = marked(before, words if path.parent.name == "book" else _LINK.sub(r"](book/\1", words))
    if after != before and write:
        with replacing(path) as part:
            part.write_text(after, encoding="utf-8")
    return after != before


_SENTENCE = re.compile(r"(?:(?<=\.)|(?<=\.\*\*)) (?=[A-Z])")
_LINK = re.compile(r"\]\((?!\w+:)([^)#]+)")  # to another page
