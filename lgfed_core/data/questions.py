"""Questions about pictures, as one tensor: a row is a picture and the words of its question.

Readers of a format make a `Part` for training and one for testing; `encoded` makes rows of them.
"""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Integral

import numpy as np
import torch
from torch import Tensor

from lgfed_core.errors import DataError

from .dataset import Dataset, Split

WORD = re.compile(r"[a-z0-9']+")
FORMATS = ("JPEG", "PNG")  # of pictures: no other reader is tried


@dataclass(frozen=True, eq=False)
class Part:
    """Questions with their answers; question i is about ``pictures[about[i]]``."""

    questions: Sequence[str]
    answers: Sequence[str]
    about: Sequence[int]
    pictures: Tensor  # uint8 [m, 3, side, side]


@dataclass(frozen=True, eq=False)
class Asked:
    """Rows x float32 [n, 3 side² + t], labels y the number of the answer.

    A row has the picture's pixels, colour by colour, less ``mean`` and over ``deviation``, then its
    question's words as numbers from 1, and 0 behind the last. left_out: share of the questions
    (train, test) whose answer is none of ``answers``; they are no rows.
    """

    data: Dataset
    words: tuple[str, ...]  # word number i is words[i - 1]; one number more is for unknown ones
    answers: tuple[str, ...]
    side: int
    mean: Tensor  # [3], of the colours of the training pictures, from 0 to 1
    deviation: Tensor  # [3]
    left_out: tuple[float, float]

    @property
    def vocabulary(self) -> int:
        """Numbers that a word can have: nothing, the known ones, an unknown one."""
        return len(self.words) + 2

    def picture(self, row: Tensor) -> Tensor:
        """The picture of a row, [side, side, 3] from 0 to 1, to be drawn."""
        pixels = row[: 3 * self.side**2].view(3, self.side, self.side).permute(1, 2, 0)
        return (pixels * self.deviation + self.mean).clamp(0, 1)

    def question(self, row: Tensor) -> str:
        """The words of a row."""
        known = ("", *self.words, "?")
        return " ".join(known[int(i)] for i in row[3 * self.side**2 :] if i > 0)


def encoded(name: str, train: Part, test: Part, answers: int = 1000) -> Asked:
    """Rows of both parts, for the ``answers`` most frequent answers of training questions.

    Words are those of training questions; longer test questions are cut to the longest of these.
    Raises DataError where nothing is left.
    """
    said = Counter(train.answers).most_common(answers)
    chosen = tuple(sorted(answer for answer, _ in said))
    texts = [words_of(question) for question in train.questions]
    words = tuple(sorted({word for text in texts for word in text}))
    length = max(map(len, texts), default=0)
    pixels = train.pictures.transpose(0, 1).flatten(1).float() / 255  # [3, m side²]
    colours = pixels.mean(1), pixels.std(1).clamp(min=1e-3)  # [3], [3]
    splits, lost = [], []
    for part in (train, test):
        split, share = _rows(part, words, chosen, length, *colours)
        if not len(split):
            raise DataError(f"{name}: no question has one of the answers {', '.join(chosen[:5])}")
        splits.append(split)
        lost.append(share)
    data = Dataset(name, splits[0], splits[1], classes=len(chosen))
    side = train.pictures.shape[-1]
    return Asked(data, words, chosen, side, *colours, (lost[0], lost[1]))


def gathered(asked: Sequence[tuple[str, str, int]], picture: Callable[[int], Tensor]) -> Part:
    """A part of questions, answers and numbers of pictures, each of which is opened once."""
    questions, answers, about = zip(*asked, strict=True)
    numbers = sorted(set(about))
    place = {number: i for i, number in enumerate(numbers)}
    pictures = torch.stack([picture(number) for number in numbers])
    return Part(questions, answers, [place[number] for number in about], pictures)


def limits(questions: tuple[int, int] | None) -> tuple[int | None, int | None]:
    """How many questions of either part, None for all. Raises DataError for fewer than one."""
    if questions and not all(isinstance(n, Integral) and n > 0 for n in questions):
        raise DataError(f"questions is {questions}; ask for one at least of either part, or None")
    return questions or (None, None)


def words_of(question: str) -> list[str]:
    """The words of a question in lower case, without marks.

    >>> words_of("What's the shape's colour?")
    ["what's", 'the', "shape's", 'colour']
    """
    return WORD.findall(question.lower())


def _rows(
    part: Part,
    words: tuple[str, ...],
    answers: tuple[str, ...],
    length: int,
    mean: Tensor,
    deviation: Tensor,
) -> tuple[Split, float]:
    """The rows of ``part``, and the share of its questions that have no known answer."""
    label = {answer: i for i, answer in enumerate(answers)}
    number = {word: i for i, word in enumerate(words, 1)}
    kept = [i for i, answer in enumerate(part.answers) if answer in label]
    text = np.zeros((len(kept), length), np.float32)
    for line, i in enumerate(kept):
        said = [number.get(w, len(words) + 1) for w in words_of(part.questions[i])][:length]
        text[line, : len(said)] = said
    about = torch.tensor([part.about[i] for i in kept], dtype=torch.int64)
    pixels = (part.pictures / 255 - mean[:, None, None]) / deviation[:, None, None]
    pixels = pixels.flatten(1)[about]  # [n, 3 side²]
    y = torch.tensor([label[part.answers[i]] for i in kept], dtype=torch.int64)
    lost = 1 - len(kept) / max(1, len(part.answers))
    return Split(torch.cat([pixels, torch.from_numpy(text)], 1), y), lost
