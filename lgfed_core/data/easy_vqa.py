"""Easy-VQA (Zhou 2020): made-up questions about one coloured shape, a stand-in for VQA.

4,000 and 1,000 pictures of 64 x 64, 38,575 and 9,673 questions, 13 answers, in one package.
"""

from pathlib import Path
from reprlib import repr as short

import torch

from lgfed_core.errors import DataError

from . import sources
from .dataset import Archive, shrunk
from .official_vqa import checked_question, checked_text, parsed
from .questions import FORMATS, Asked, Part, encoded, gathered, limits

ARCHIVE = "easy_vqa-1.0-py3-none-any.whl"
ROWS = 38_575, 9_673  # questions to train with and to test on
OPEN = 10_168, 2_537  # those not to be answered by yes or no


def load(side: int, questions: tuple[int, int] | None = None, closed: bool = True) -> Asked:
    """The set, fetched first if it is missing; see `asked`."""
    return asked(sources.fetch("easy_vqa") / ARCHIVE, side, questions, closed)


def asked(
    archive: Path, side: int, questions: tuple[int, int] | None = None, closed: bool = True
) -> Asked:
    """The set out of its package, which is opened, not installed; pictures of ``side`` pixels.

    questions: how many for training and testing; None: all. closed: whether those to be answered by
    yes or no are among them, of which four in five can be had without looking.

    Raises DataError for a damaged package, text or picture, by name and entry.
    """
    some = zip(("train", "test"), limits(questions), strict=True)
    with Archive(archive) as box:
        train, test = (_part(box, name, side, limit, closed) for name, limit in some)
    return encoded("easy_vqa", train, test)


def _part(box: Archive, name: str, side: int, limit: int | None, closed: bool) -> Part:
    folder = f"easy_vqa/data/{name}"
    entries = _entries(box, folder)
    if not closed:
        entries = [entry for entry in entries if entry[1] not in ("yes", "no")]
    if not entries:
        but = "" if closed else " but for yes or no, which closed=True would ask"
        raise DataError(f"{box.filename}: {folder}/questions.json has no question{but}")

    def picture(number: int) -> torch.Tensor:
        member = _picture(folder, number)
        return shrunk(box.content(member), side, f"{box.filename}: {member}", FORMATS)

    return gathered(entries[:limit], picture)


def _entries(box: Archive, folder: str) -> list[tuple[str, str, int]]:
    """Every question below ``folder``, its answer and its picture's number."""
    name = f"{folder}/questions.json"
    where = f"{box.filename}: {name}"
    whole = parsed(box.content(name), where)
    if not isinstance(whole, list):
        raise DataError(f"{where} is no list; it must be one with an entry per question")
    known, found = set(box.namelist()), []
    for i, entry in enumerate(whole):
        at = f"{where}, entry {i}"
        if not (isinstance(entry, list) and len(entry) == 3):
            raise DataError(f"{at}: {short(entry)} is no [question, answer, picture]")
        question, answer, number = entry
        if type(number) is not int or _picture(folder, number) not in known:
            raise DataError(
                f"{at}: there is no picture {short(number)}; it must be the number of one"
            )
        found.append((checked_question(question, at), checked_text(answer, at), number))
    return found


def _picture(folder: str, number: int) -> str:
    return f"{folder}/images/{number}.png"
