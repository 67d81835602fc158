"""Questions about pictures: the official format on a tiny excerpt, the stand-in's package."""

import json
import random
import re
import warnings
import zipfile
from contextlib import suppress
from pathlib import Path
from unittest.mock import Mock

import pytest
import torch
from PIL import Image

from lgfed_core.data import easy_vqa, official_vqa
from lgfed_core.data.dataset import shrunk
from lgfed_core.errors import DataError, NotAvailable
from toy import picture

ASKED = [  # question, answer, number of the picture
    ("What colour is the cat?", "black", 9),
    ("Is there a cat?", "yes", 9),
    ("Is there a dog?", "no", 25),
    ("Is it the cat's?", "yes", 25),
]


def write(path: Path, key: str, entries: list[dict]) -> None:
    path.write_text(json.dumps({"info": {}, key: entries}, indent=1))


@pytest.fixture
def home(tmp_path) -> Path:
    """VQA v1 in its official form: four questions to train on, four others to test."""
    for part, last in (("train2014", "yes"), ("val2014", "a zebra")):
        asked = [*ASKED[:3], (ASKED[3][0] + (" now" if part == "val2014" else ""), last, 25)]
        questions, answers = [], []
        for i, (question, answer, image) in enumerate(asked):
            id = 10 * image + i
            questions.append(dict(question_id=id, image_id=image, question=question))
            said = [dict(answer=answer, answer_confidence="yes", answer_id=1)]
            one = dict(question_id=id, image_id=image, multiple_choice_answer=answer, answers=said)
            answers.append(one)
        write(tmp_path / f"OpenEnded_mscoco_{part}_questions.json", "questions", questions)
        write(tmp_path / f"mscoco_{part}_annotations.json", "annotations", answers[::-1])
        (tmp_path / part).mkdir()
        for image in (9, 25):
            name = f"COCO_{part}_{image:012d}.jpg"
            (tmp_path / part / name).write_bytes(picture(10 * image, "JPEG"))
    return tmp_path


def test_official_files_become_rows_of_pixels_and_words(home):
    asked = official_vqa.read(home, side=4)
    train, test = asked.data.train, asked.data.test
    assert asked.answers == ("black", "no", "yes") and asked.left_out == (0, 0.25)  # the zebra
    assert [asked.answers[y] for y in train.y] == [answer for _, answer, _ in ASKED]
    assert asked.words == ("a", "cat", "cat's", "colour", "dog", "is", "it", "the", "there", "what")
    assert asked.question(train.x[0]) == "what colour is the cat" and asked.vocabulary == 12
    assert train.x.shape == (4, 48 + 5) and len(test) == 3
    assert train.x[1, 48:].tolist() == [6, 9, 1, 2, 0]  # four words, then nothing
    seen = 255 * asked.picture(train.x[0])
    assert torch.allclose(seen, torch.tensor([90.0, 0, 165]), atol=3)
    assert torch.equal(train.x[0, :48], train.x[1, :48])  # both about picture 9
    few = official_vqa.read(home, side=4, answers=1)
    assert few.answers == ("yes",) and few.left_out == (0.5, 0.75)


def test_of_fewer_questions_only_their_pictures_are_read(home):
    (home / PICTURE).unlink()
    (home / "val2014/COCO_val2014_000000000025.jpg").write_bytes(b"damaged")
    asked = official_vqa.read(home, 4, questions=(2, 1))
    assert (len(asked.data.train), len(asked.data.test)) == (2, 1)
    assert asked.answers == ("black", "yes") and asked.left_out == (0, 0)
    assert asked.question(asked.data.train.x[1]) == "is there a cat"
    with pytest.raises(DataError, match=f"{PICTURE} is missing"):
        official_vqa.read(home, 4, questions=(3, 1))
    for none in ((0, 1), (2, -1), (2.5, 1)):
        with pytest.raises(DataError, match="ask for one at least"):
            official_vqa.read(home, 4, questions=none)
    with pytest.raises(NotAvailable, match="unpack the files"):  # so that others may stand in
        official_vqa.read(home / "vqa_v1", side=4)


def changed(home: Path, file: str, change) -> None:
    """With other questions, or other answers."""
    whole = json.loads((home / file).read_text())
    change(whole["questions" if file == Q else "annotations"])
    (home / file).write_text(json.dumps(whole))


Q, A = "OpenEnded_mscoco_train2014_questions.json", "mscoco_train2014_annotations.json"
PICTURE = "train2014/COCO_train2014_000000000025.jpg"
NUMBER, QUESTION = dict(image_id=10**300), dict(question=" ??? ")


@pytest.mark.parametrize(
    ("said", "damage"),
    [
        (f"{A} cannot be read: No such file", lambda h: (h / A).unlink()),
        (rf"{Q} cannot be read: .*line \d+ column \d+", lambda h: (h / Q).write_text(
            (h / Q).read_text()[:-40])),
        (f"{Q} cannot be read: .*utf-8", lambda h: (h / Q).write_bytes(b"\xff\xfe")),
        (f"{Q} cannot be read: .*recursion", lambda h: (h / Q).write_text(
            "[" * 100_000 + "]" * 100_000)),
        (f"{A} cannot be read: .*digits", lambda h: (h / A).write_text("9" * 5000)),
        (f"{Q} has no list 'questions'", lambda h: (h / Q).write_text("{}")),
        (f"{Q}, entry 2 of questions has no image_id", lambda h: changed(
            h, Q, lambda q: q[2].pop("image_id"))),
        (f"{Q}, entry 1 of questions: ' ' is no text", lambda h: changed(
            h, Q, lambda q: q[1].update(question=" "))),
        (rf"{Q}, entry 1 of questions: '\?\?\?' has no words", lambda h: changed(
            h, Q, lambda q: q[1].update(QUESTION))),
        (f"{Q}, entry 4 of questions: question 90 is there already, entry 0", lambda h: changed(
            h, Q, lambda q: q.append(q[0]))),
        (f"{A}, entry 3 of annotations: question 90 is not asked in {Q}", lambda h: changed(
            h, Q, lambda q: q.pop(0))),
        (f"{Q}, entry 3 of questions: question 253 has no answer in {A}", lambda h: changed(
            h, A, lambda a: a.pop(0))),
        (f"{A}, entry 0 .*: question 253 is about picture 9, and about 25 in {Q}", lambda h:
            changed(h, A, lambda a: a[0].update(image_id=9))),
        (f"{Q}, entry 2 of questions: question 252 is about picture 25; .*{PICTURE} is missing",
            lambda h: (h / PICTURE).unlink()),
        (rf"{Q}, entry 2 of questions: image_id is 10+\.\.\.0+; it must be .* at most 12 digits",
            lambda h: changed(h, Q, lambda q: q[2].update(NUMBER))),
        (rf"{PICTURE} is no readable picture", lambda h: (h / PICTURE).write_bytes(
            picture(3, "JPEG")[:100])),
    ],
)  # fmt: skip
def test_bad_input_is_refused_with_its_file_and_place(home, said, damage):
    damage(home)
    with pytest.raises(DataError, match=said):
        official_vqa.read(home, side=4)


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "TIFF", "DDS"])
def test_flipped_bytes_of_a_picture_end_in_a_named_error_or_none(kind):
    whole, draw = picture(3, kind), random.Random(0)
    with warnings.catch_warnings(action="ignore"):
        for _ in range(300):
            content = bytearray(whole)
            for _ in range(draw.randint(1, 4)):
                content[draw.randrange(min(len(content), 200))] = draw.randrange(256)
            try:
                assert shrunk(bytes(content), 4, "the.jpg").shape == (3, 4, 4)
            except DataError as error:
                assert re.match(r"the.jpg is no readable picture \(\w", str(error)), error
                assert "0x" not in str(error)


@pytest.mark.parametrize("raised", [TypeError("a float"), NotImplementedError("so"), EOFError()])
def test_whatever_a_reader_of_pictures_raises_has_the_pictures_name(raised, monkeypatch):
    monkeypatch.setattr(Image, "open", Mock(side_effect=raised))
    with pytest.raises(DataError, match=rf"the.jpg .* \({str(raised) or 'EOFError'}"):
        shrunk(picture(3), 4, "the.jpg")


def test_blanks_around_an_answer_make_no_other_answer(home):
    changed(home, A, lambda a: a[0].update(multiple_choice_answer=" yes\n"))
    assert official_vqa.read(home, side=4).answers == ("black", "no", "yes")
    whole = [["what is it?", "red", 0], ["what is it?", " red ", 1]]
    assert easy_vqa.asked(package(home / "p.whl", whole), 4).answers == ("red",)


def package(path: Path, whole, damaged: bool = False, packed: int = 0) -> Path:
    with zipfile.ZipFile(path, "w", packed) as box:
        for part in ("train", "test"):
            folder = f"easy_vqa/data/{part}"
            box.writestr(f"{folder}/questions.json", json.dumps(whole))
            for number in (0, 1):
                content = picture(200, "PNG")[: 40 if damaged else None]
                box.writestr(f"{folder}/images/{number}.png", content)
    return path


@pytest.mark.parametrize(
    ("whole", "said"),
    [
        ([["what is it?", "red", 0], ["who?", "red"]], r"entry 1: \['who\?', 'red'\] is no \["),
        ([["what is it?", "", 0]], "entry 0: '' is no text"),
        ([["???", "red", 0]], r"entry 0: '\?\?\?' has no words"),
        ([["what is it?", "red", 7]], "entry 0: there is no picture 7"),
        ([["what is it?", "red", 0], ["who?", "red", "1"]], "entry 1: there is no picture '1'"),
        ([["what is it?", "red", 1]], "images/1.png is no readable picture"),
        (5, "train/questions.json is no list"),
        (None, "train/questions.json is no list"),
        ({}, "train/questions.json is no list"),
        ([], "train/questions.json has no question but for yes or no"),
        ([["is it red?", "yes", 0]], "train/questions.json has no question but for yes or no"),
    ],
)
def test_a_damaged_package_is_refused_by_entry(tmp_path, whole, said):
    with pytest.raises(DataError, match=rf"p\.whl: .*{said}"):
        easy_vqa.asked(package(tmp_path / "p.whl", whole, "readable" in said), 4, closed=False)


def test_flipped_bytes_of_a_package_end_in_a_named_error_or_none(tmp_path):
    draw = random.Random(0)
    for packed in (0, zipfile.ZIP_DEFLATED):
        path = package(tmp_path / "p.whl", [["what is it?", "red", 0]] * 3, packed=packed)
        whole = path.read_bytes()
        for _ in range(300):
            content = bytearray(whole)
            for _ in range(draw.randint(1, 3)):
                content[draw.randrange(len(content))] = draw.randrange(256)
            path.write_bytes(content)
            with suppress(DataError):
                easy_vqa.asked(path, 4)


def test_a_damaged_stream_is_refused_by_its_name(tmp_path):
    made = package(tmp_path / "p.whl", [["what is it?", "red", 0]], packed=zipfile.ZIP_DEFLATED)
    name = "easy_vqa/data/train/questions.json"  # the first one
    content = bytearray(made.read_bytes())
    content[30 + len(name)] = 7  # a block of no known type
    unreadable = f": {name} cannot be read .*Error -3"
    unopened = " cannot be read .*File is not a zip"
    for bad, said in ((content, unreadable), (b"no archive", unopened)):
        made.write_bytes(bad)
        with pytest.raises(DataError, match=f"p.whl{said}"):
            easy_vqa.asked(made, 4)


def test_the_package_is_read_as_it_counts_itself():
    asked = easy_vqa.load(4, (400, 350))
    assert len(asked.answers) == 13 and len(asked.words) == 26 and asked.left_out == (0, 0)
    assert (len(asked.data.train), len(asked.data.test)) == (400, 350)
    assert re.fullmatch("what is the blue shape", asked.question(asked.data.train.x[0]))
    assert asked.answers[asked.data.train.y[0]] == "rectangle"
