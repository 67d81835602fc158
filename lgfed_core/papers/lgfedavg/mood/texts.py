"""Texts of persons with a mood each, as numbers of words: of one's own file, and real chats.

A table (CSV, UTF-8) with one line per text and these columns, in any order; others are ignored:

==========  ===================================================================================
column      holds
==========  ===================================================================================
``person``  who wrote it; any name. A person is a device, and has `LEAST` texts or more
``text``    what was typed: on one day, say. Quoted where it holds commas or line breaks
``label``   the mood, a whole number from 1 (worst) to 5 (best); `binned` makes it of a score
==========  ===================================================================================

Words are runs of letters and digits in lower case, and single signs.

The study is private: 14 adolescents with 572 texts. In its place stand the Chit-Chat conversations
(Myers et al. 2020): what one person typed in one conversation is a text, and its mood how upbeat
the conversation was rated, from 1 to 10.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from lgfed_core import data
from lgfed_core.errors import DataError
from lgfed_core.models.text import UNKNOWN
from lgfed_core.partition import ClientIndices, Partition
from lgfed_core.seeds import Purpose, stream

COLUMNS = ("person", "text", "label")
LABELS = 5
LEAST = 10  # texts of a person: a tenth to test, a tenth to validate
PERSONS, EACH = 14, 41  # in the study's place: as many persons, 574 texts
CHATS = "chats, how upbeat"
UNTOUCHED = {"witty": 5, "upbeat": 5, "interesting": 5}  # where the three sliders begin
_WORD = re.compile(r"\w+(?:'\w+)*|[^\w\s]")


@dataclass(frozen=True, eq=False)
class Texts:
    """n texts: who wrote each, its words, its label from 0 to 4."""

    title: str
    person: NDArray  # [n]
    words: tuple[tuple[str, ...], ...]
    label: NDArray  # int64 [n]
    vectors: dict[str, NDArray] | None = None  # [d] by word, where they are known beforehand

    def __len__(self) -> int:
        return len(self.words)

    @property
    def people(self) -> list:
        """Those who wrote them, sorted."""
        return sorted(set(self.person.tolist()))


def words_of(text: str) -> tuple[str, ...]:
    """
    >>> words_of("I'm fine, thanks :)")
    ("i'm", 'fine', ',', 'thanks', ':', ')')
    """
    return tuple(_WORD.findall(text.lower()))


def binned(score: ArrayLike, low: float, high: float) -> NDArray:
    """Whole scores from ``low`` to ``high`` in five bins of one width -> int64, 1 to 5.

    Raises DataError for other scores, and for a range of fewer than five.

    >>> binned([1, 20, 21, 100], 1, 100).tolist()
    [1, 1, 2, 5]
    """
    try:
        score = np.asarray(score, float)
    except (TypeError, ValueError) as error:
        raise DataError(f"scores must be numbers: {error}") from error
    if high - low + 1 < LABELS or (score % 1).any():
        raise DataError(
            f"scores must be whole numbers of a range that has {LABELS} or more, "
            f"not {low} to {high}; multiply shares by 100, say"
        )
    if not ((score >= low) & (score <= high)).all():
        raise DataError(f"scores go from {score.min()} to {score.max()}, not {low} to {high}")
    width = (high - low + 1) / LABELS  # of whole numbers from low to high
    return np.minimum((score - low) // width, LABELS - 1).astype(np.int64) + 1


def read(path: Path | str) -> Texts:
    """The texts of a file in the format above.

    Raises DataError, with file and line, for the first thing that is wrong; and for a person with
    too few texts, or only one person.
    """
    path = Path(path)
    lines = _lines(path)
    if not lines:
        raise DataError(f"{path} is empty; its first line names the columns {', '.join(COLUMNS)}")
    at, header = lines[0]
    names = [name.strip() for name in header]
    for name in COLUMNS:
        if names.count(name) != 1:
            has = "no" if name not in names else "more than one"
            raise DataError(
                f"{path}, line {at}: {has} column {name!r} among {', '.join(names)}; there must be "
                f"{', '.join(COLUMNS)}"
            )
    place = [names.index(name) for name in COLUMNS]
    found, first = [], {}
    for at, fields in lines[1:]:
        if len(fields) != len(names):
            raise DataError(
                f"{path}, line {at}: {len(fields)} fields, but {len(names)} columns; put texts "
                'with commas or line breaks in quotes ("...")'
            )
        who, what, mood = (fields[i].strip() for i in place)
        if not who:
            raise DataError(f"{path}, line {at}: no person; a line says who wrote the text")
        if not what:
            raise DataError(f"{path}, line {at}: the text is empty; leave the line out")
        if mood not in map(str, range(1, LABELS + 1)):
            raise DataError(
                f"{path}, line {at}: label is {mood!r}; it must be a whole number from 1 to "
                f"{LABELS} (papers.lgfedavg.mood.texts.binned makes it of a score)"
            )
        found.append((who, words_of(what), int(mood) - 1))
        first.setdefault(who, at)
    if short := {who: n for who, n in Counter(who for who, *_ in found).items() if n < LEAST}:
        few = ", ".join(f"{who} ({n}, line {first[who]})" for who, n in list(short.items())[:5])
        raise DataError(
            f"{path}: {len(short)} persons have fewer than {LEAST} texts: {few}; leave them out"
        )
    if len(first) < 2:
        raise DataError(f"{path}: texts of {len(first)} persons; a federation needs two or more")
    person, words, label = zip(*found, strict=True)
    return Texts(f"texts of {path.name}", np.array(person), words, np.array(label))


def _lines(path: Path) -> list[tuple[int, list[str]]]:
    """The lines of a table that are not blank: (the number of its first line, fields)."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        at = error.object[: error.start].count(b"\n") + 1
        raise DataError(f"{path}, line {at}: it is no UTF-8 text; save it as UTF-8") from error
    except (OSError, ValueError) as error:  # ValueError: a path that no file can have
        raise DataError(f"{path} cannot be read: {error}") from error
    reader, found, at = csv.reader(io.StringIO(text, newline=""), strict=True), [], 1
    try:
        for fields in reader:
            if fields:
                found.append((at, fields))
            at = reader.line_num + 1
    except csv.Error as error:
        raise DataError(f"{path}, line {at}: no line of a CSV table ({error})") from error
    return found


@lru_cache(4)
def chats(persons: int = PERSONS, each: int = EACH) -> Texts:
    """The first ``each`` texts of the ``persons`` with most of them, of rated conversations.

    Raises DataError where the set cannot be had, or has too few.
    """
    return chats_of(data.get("chitchat") / "dataset.json", persons, each)


def chats_of(path: Path, persons: int, each: int) -> Texts:
    """`chats` from a file. Raises DataError where it is not what it should be."""
    said: dict[str, list[tuple]] = defaultdict(list)
    try:
        with path.open(encoding="utf-8") as file:
            talks = json.load(file).values()
        for talk in talks:
            rating = talk.get("ratings")
            if not rating or rating == UNTOUCHED:
                continue
            own = defaultdict(list)
            for message in (m for turn in talk["messages"] for m in turn):
                own[message["sender"]] += words_of(message["text"])
            for who, words in own.items():
                if words:
                    said[who].append((talk["start"], tuple(words), rating["upbeat"]))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(f"{path} is not the Chit-Chat set: {error!r}; fetch it again") from error
    enough = [who for who, texts in said.items() if len(texts) >= each]
    if len(enough) < persons:
        raise DataError(f"{path}: {len(enough)} people have {each} texts, not {persons}")
    taken = sorted(enough, key=lambda who: (-len(said[who]), who))[:persons]
    lines = [(who, *text) for who in taken for text in sorted(said[who])[:each]]
    person, _, words, upbeat = zip(*lines, strict=True)
    return Texts(CHATS, np.array(person), words, binned(upbeat, 1, 10) - 1)


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """Words by their number, from 2 on; 0 is no word, 1 any other. vectors: [v, d] of the first."""

    numbers: dict[str, int]
    vectors: Tensor | None = None

    def __len__(self) -> int:
        return 2 + len(self.numbers)

    def encoded(self, words: Sequence[Sequence[str]], most: int) -> Tensor:
        """The first ``most`` words of n texts -> their numbers as floats [n, t], 0 behind them."""
        rows = [[self.numbers.get(w, UNKNOWN) for w in text[:most]] for text in words]
        return pad_sequence([torch.tensor(row, dtype=torch.float) for row in rows], True)


def vocabulary(texts: Texts, most: int) -> Vocabulary:
    """Words that are twice or more among the first ``most`` of all texts, whoever has them and
    whatever for; or those with known vectors."""
    if texts.vectors is not None:
        numbers = {word: 2 + i for i, word in enumerate(texts.vectors)}
        known = torch.from_numpy(np.stack(list(texts.vectors.values()))).float()
        return Vocabulary(numbers, known)
    often = Counter(word for text in texts.words for word in text[:most])
    kept = sorted(word for word, n in often.items() if n >= 2)
    return Vocabulary({word: 2 + i for i, word in enumerate(kept)})


def split(texts: Texts, seed: int, before: int = 0) -> Partition:
    """A device for each person: of its texts a random tenth to test and a tenth to validate, at
    least one each, the others to train.

    All are numbers of rows of one set, which has the n texts behind ``before`` other rows.
    """
    parts = []
    for k, who in enumerate(texts.people):
        rows = before + np.flatnonzero(texts.person == who)
        mixed = stream(seed, Purpose.TEST_SPLIT, k).permutation(rows)
        tenth = max(1, round(len(rows) / 10))
        parts.append(np.split(mixed, [len(rows) - 2 * tenth, len(rows) - tenth]))
    train, validation, test = map(ClientIndices.from_lists, zip(*parts, strict=True))
    return Partition("a person each", train, validation, test)
