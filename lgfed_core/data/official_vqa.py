"""VQA v1 (Antol et al. 2015) in its official form, as https://visualqa.org/vqa_v1_download.html
gives it. Unpacked in one folder:

    OpenEnded_mscoco_train2014_questions.json   {"questions": [{question_id, image_id, question}]}
    mscoco_train2014_annotations.json           {"annotations": [{question_id, image_id,
                                                 multiple_choice_answer}]}
    train2014/COCO_train2014_000000000009.jpg   a picture of COCO

and the same with val2014, on which it is tested: the answers of test2015 are not public. Other
fields are not read. Everything is checked before the first picture is opened.
"""

import json
from itertools import islice
from pathlib import Path
from reprlib import repr as short
from typing import Any

import torch

from lgfed_core.errors import DataError, NotAvailable

from .dataset import raw_bytes, shrunk
from .questions import FORMATS, Asked, Part, encoded, gathered, limits, words_of

PARTS = ("train2014", "val2014")  # training, testing
ROWS = 248_349, 121_512  # questions to train with and to test on, in its official form
DIGITS = 12  # of a picture's number in its name


def read(
    folder: Path, side: int, questions: tuple[int, int] | None = None, answers: int = 1000
) -> Asked:
    """Rows of both parts, pictures of ``side`` pixels, the most frequent ``answers``.

    questions: how many for training and testing, the first ones; None: all. What the others are
    about is neither checked nor opened.

    Raises NotAvailable where there is no such folder; DataError, with file and line or entry, for a
    damaged text, an entry without a field, a question given twice, without words, without its
    picture or without an answer, an answer without its question or about another picture, and a
    picture that cannot be read.
    """
    if not folder.is_dir():
        raise NotAvailable(
            f"VQA v1 is not here: unpack the files that visualqa.org names for it in {folder}"
        )
    some = zip(PARTS, limits(questions), strict=True)
    found = [entries(folder, part, limit) for part, limit in some]  # all of it before any picture
    train, test = (_part(folder, *pair, side) for pair in zip(PARTS, found, strict=True))
    return encoded("vqa_v1", train, test, answers)


def entries(folder: Path, part: str, limit: int | None = None) -> list[tuple[str, str, int]]:
    """Questions of ``part``, their answers and pictures, in the order of the file: the first so
    many."""
    asked = folder / f"OpenEnded_mscoco_{part}_questions.json"
    said = folder / f"mscoco_{part}_annotations.json"
    questions = _listed(asked, "questions", ("question_id", "image_id", "question"))
    answers = _listed(said, "annotations", ("question_id", "image_id", "multiple_choice_answer"))
    if left := answers.keys() - questions.keys():
        id = min(left, key=lambda id: answers[id]["place"])
        raise DataError(
            f"{said}, entry {answers[id]['place']} of annotations: question {id} is not asked in "
            f"{asked.name}; the two files belong to different editions"
        )
    found = []
    for id, question in islice(questions.items(), limit):
        where = f"{asked}, entry {question['place']} of questions"
        if id not in answers:
            raise DataError(f"{where}: question {id} has no answer in {said.name}")
        text = checked_question(question["question"], where)
        image = _checked_picture(folder, part, question, where)
        where = f"{said}, entry {answers[id]['place']} of annotations"
        if (other := answers[id]["image_id"]) != image:
            raise DataError(
                f"{where}: question {id} is about picture {short(other)}, and about {image} in "
                f"{asked.name}; the two files belong to different editions"
            )
        found.append((text, checked_text(answers[id]["multiple_choice_answer"], where), image))
    return found


def parsed(content: bytes, where: str) -> Any:
    """JSON as Python has it. Raises DataError where it is damaged, with the place."""
    try:
        return json.loads(content.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise DataError(f"{where} cannot be read: {error}; fetch it again") from error


def checked_text(text: Any, where: str) -> str:
    """``text`` without blanks around it. Raises DataError unless it says something."""
    if not isinstance(text, str) or not text.strip():
        raise DataError(f"{where}: {short(text)} is no text")
    return text.strip()


def checked_question(text: Any, where: str) -> str:
    """The same of a question, which must have words."""
    text = checked_text(text, where)
    if not words_of(text):
        raise DataError(f"{where}: {short(text)} has no words; take it out, and its answer")
    return text


def _listed(path: Path, key: str, fields: tuple[str, ...]) -> dict[Any, dict]:
    """The entries under ``key`` by question_id, each with its ``place`` from 0."""
    whole = parsed(raw_bytes(path), str(path))
    if not isinstance(whole, dict) or not isinstance(whole.get(key), list) or not whole[key]:
        raise DataError(f"{path} has no list {key!r}; it must have one with an entry per question")
    found: dict[Any, dict] = {}
    for place, entry in enumerate(whole[key]):
        where = f"{path}, entry {place} of {key}"
        lacking = [f for f in fields if not isinstance(entry, dict) or f not in entry]
        if lacking:
            raise DataError(f"{where} has no {', '.join(lacking)}")
        id = entry["question_id"]
        if not isinstance(id, int | str):
            raise DataError(f"{where}: question_id is {short(id)}; it must be a number")
        if id in found:
            raise DataError(f"{where}: question {id} is there already, entry {found[id]['place']}")
        found[id] = entry | dict(place=place)
    return found


def _checked_picture(folder: Path, part: str, question: dict, where: str) -> int:
    """The number of the picture that a question is about. Raises DataError unless it is there."""
    image = question["image_id"]
    if type(image) is not int or not 0 <= image < 10**DIGITS:
        said = f"it must be a whole number of at most {DIGITS} digits"
        raise DataError(f"{where}: image_id is {short(image)}; {said}")
    if not (picture := _place(folder, part, image)).is_file():
        about = f"question {question['question_id']} is about picture {image}"
        raise DataError(f"{where}: {about}; {picture} is missing")
    return image


def _place(folder: Path, part: str, image: int) -> Path:
    return folder / part / f"COCO_{part}_{image:0{DIGITS}d}.jpg"


def _part(folder: Path, part: str, found: list[tuple[str, str, int]], side: int) -> Part:
    def picture(image: int) -> torch.Tensor:
        place = _place(folder, part, image)
        return shrunk(raw_bytes(place), side, str(place), FORMATS)

    return gathered(found, picture)
