"""Easy-VQA (Zhou 2020): made-up questions about one coloured shape, a stand-in for VQA.

4,000 and 1,000 pictures of 64 x 64, 38,575 and 9,673 questions, 13 answers, in one package.
"""

import zipfile
from pathlib import Path

import torch

from lgfed_core.errors import DataError

from . import sources
from .official_vqa import checked_text, parsed
from .questions import Asked, Part, encoded, shrunk

ARCHIVE = "easy_vqa-1.0-py3-none-any.whl"


def load(side: int, questions: tuple[int, int] | None = None, closed: bool = True) -> Asked:
    """The set, fetched first if it is missing; see `read`."""
    return read(sources.fetch("easy_vqa") / ARCHIVE, side, questions, closed)


def read(
    archive: Path, side: int, questions: tuple[int, int] | None = None, closed: bool = True
) -> Asked:
    """The set out of its package, which is opened, not installed; pictures of ``side`` pixels.

    questions: how many for training and testing; None: all. closed: whether those to be answered by
    yes or no are among them, of which four in five can be had without looking.

    Raises DataError for a damaged package, text or picture, by name and entry.
    """
    limits = zip(("train", "test"), questions or (None, None), strict=True)
    try:
        with zipfile.ZipFile(archive) as box:
            train, test = (_part(box, archive, name, side, limit, closed) for name, limit in limits)
    except (OSError, KeyError, zipfile.BadZipFile) as error:
        raise DataError(f"{archive} cannot be read: {error}") from error
    return encoded("easy_vqa", train, test)


def _part(
    box: zipfile.ZipFile, archive: Path, name: str, side: int, limit: int | None, closed: bool
) -> Part:
    folder = f"easy_vqa/data/{name}"
    where = f"{archive.name}: {folder}/questions.json"
    entries = parsed(box.read(f"{folder}/questions.json"), where)
    known = {member for member in box.namelist() if member.startswith(f"{folder}/images/")}
    for i, entry in enumerate(entries):
        if not (isinstance(entry, list) and len(entry) == 3):
            raise DataError(f"{where}, entry {i}: {entry!r} is no [question, answer, picture]")
        for text in entry[:2]:
            checked_text(text, f"{where}, entry {i}")
        if f"{folder}/images/{entry[2]}.png" not in known:
            raise DataError(f"{where}, entry {i}: there is no picture {entry[2]!r}")
    if not closed:
        entries = [entry for entry in entries if entry[1] not in ("yes", "no")]
    entries = entries[:limit]
    about = [entry[2] for entry in entries]
    numbers = sorted(set(about))
    place = {number: i for i, number in enumerate(numbers)}
    pictures = [
        shrunk(box.read(member), side, f"{archive.name}: {member}")
        for member in (f"{folder}/images/{number}.png" for number in numbers)
    ]
    texts, answers, _ = zip(*entries, strict=True)
    return Part(texts, answers, [place[n] for n in about], torch.stack(pictures))
