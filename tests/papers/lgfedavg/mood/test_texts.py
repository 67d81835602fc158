"""One's own texts and made-up ones: what is refused, read and split, and how least squares errs."""

import json

import numpy as np
import pytest
import torch

from lgfed_core.errors import DataError
from lgfed_core.papers.lgfedavg.mood import made_up, texts
from toy import page

HEAD = "label,person,day,text\n"  # any order, one more column
FINE = 'a,ann,Mon,"Well, I slept\n"\n'.replace("a,", "4,", 1)  # a text over two lines
FINE = FINE * 10 + "1,ben,Tue,so tired :(\n" * 10  # lines 2 to 31


@pytest.fixture
def written(tmp_path):
    def write(content: str | bytes):
        content = content.encode() if isinstance(content, str) else content
        (tmp_path / "moods.csv").write_bytes(content)
        return tmp_path / "moods.csv"

    return write


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "moods.csv is empty"),
        ("person,text\nann,hello\n", "moods.csv, line 1: no column 'label' among person, text"),
        ("text,person,text,label\n", "line 1: more than one column 'text'"),
        (HEAD + FINE + "3,,Wed,hello\n", "moods.csv, line 32: no person"),
        (HEAD + FINE + '3,ann,Wed," \t"\n', "moods.csv, line 32: the text is empty"),
        (HEAD + FINE + "0,ann,Wed,hello\n", "line 32: label is '0'; .* from 1 to 5"),
        (HEAD + FINE + "6,ann,Wed,hello\n", "line 32: label is '6'"),
        (HEAD + FINE + "2.5,ann,Wed,hello\n", "line 32: label is '2.5'"),
        (HEAD + FINE + ",ann,Wed,hello\n", "line 32: label is ''"),
        (HEAD + "\n" + FINE + "3,ann,Wed,well, well\n", "line 33: 5 fields, but 4 columns"),
        (HEAD + FINE + '3,ann,Wed,"well\n', "moods.csv, line 32: no line of a CSV table"),
        ((HEAD + FINE).encode() + b"3,ann,Wed,caf\xe9\n", "moods.csv, line 32: .* UTF-8"),
        (HEAD + FINE + "3,eve,Wed,hi\n", r"1 persons have fewer than 10 texts: eve \(1, line 32\)"),
        (HEAD + "3,ann,Wed,hi\n" * 10, "texts of 1 persons"),
    ],
)
def test_what_is_wrong_is_named_with_file_and_line(written, content, said):
    with pytest.raises(DataError, match=said):
        texts.read(written(content))
    with pytest.raises(DataError, match="none.csv cannot be read"):
        texts.read(written("").with_name("none.csv"))


def test_a_file_is_read_word_by_word(written):
    found = texts.read(written("\ufeff" + HEAD + FINE))  # as a spreadsheet saves it
    assert found.people == ["ann", "ben"] and len(found) == 20
    assert found.words[0] == ("well", ",", "i", "slept") and found.words[-1][-2:] == (":", "(")
    assert found.label.tolist() == [3] * 10 + [0] * 10
    words = texts.vocabulary(found, most=3)
    assert set(words.numbers) == {"well", ",", "i", "so", "tired", ":"}  # not "slept", the fourth
    coded = words.encoded([("so", "slept"), ("well", ",", "i", "tired")], 3)
    assert coded.shape == (2, 3) and coded[0, 1:].tolist() == [1, 0] and (coded[1] > 1).all()


@pytest.mark.parametrize(
    ("scores", "low", "high", "said"),
    [
        ([0, 5], 1, 10, "0.0 to 5.0, not 1 to 10"),
        ([0, 0.5, 1], 0, 1, "must be"),
        ([1.5, 2, 3], 1, 100, "must be"),
        (["a"], 1, 100, "must be"),
    ],
)
def test_scores_become_five_bins_unless_they_are_no_whole_numbers(scores, low, high, said):
    assert texts.binned([1, 20, 21, 60, 80, 81, 100], 1, 100).tolist() == [1, 1, 2, 3, 4, 5, 5]
    assert texts.binned(range(1, 11), 1, 10).tolist() == [1, 1, 2, 2, 3, 3, 4, 4, 5, 5]
    with pytest.raises(DataError, match=said):
        texts.binned(scores, low, high)


def test_every_person_has_each_text_once_and_a_tenth_to_test():
    made = made_up.made_up(0.2, seed=3, persons=3, each=41).texts
    part = texts.split(made, 3)
    for k in range(3):
        kinds = [rows.of(k) for rows in (part.train, part.validation, part.test)]
        assert [len(rows) for rows in kinds] == [33, 4, 4]
        assert torch.cat(kinds).sort().values.tolist() == list(range(41 * k, 41 * k + 41))
    assert not torch.equal(part.test.of(0), texts.split(made, 4).test.of(0))


def test_chats_are_those_with_a_rating_of_who_talks_most(tmp_path):
    def talk(start, upbeat, *said, **more):
        rating = dict(witty=5, upbeat=upbeat, interesting=5)
        turns = [[dict(sender=who, text=text)] for who, text in said]
        return dict(start=start, messages=turns) | (dict(ratings=rating) | more)

    talks = {
        "b": talk("2", 10, ("ann", "hi"), ("ben", "Yes."), ("ann", "bye")),
        "a": talk("1", 1, ("ann", "late"), ("ben", " ")),  # who says nothing has no text
        "c": talk("3", 5, ("ann", "untouched"), ("ben", "untouched")),
        "d": talk("4", 9, ("ann", "unrated"), ratings=None),
        "e": talk("5", 4, ("cat", "one"), ("ben", "two")),
    }
    path = tmp_path / "dataset.json"
    path.write_text(json.dumps(talks))
    found = texts.chats_of(path, persons=2, each=2)
    assert found.person.tolist() == ["ann", "ann", "ben", "ben"]
    assert found.words == (("late",), ("hi", "bye"), ("yes", "."), ("two",))
    assert found.label.tolist() == [0, 4, 4, 1]
    with pytest.raises(DataError, match="2 people have 2 texts, not 3"):
        texts.chats_of(path, persons=3, each=2)
    path.write_text('{"a": {"messages": [[]], "ratings": {"upbeat": 1}}}')
    with pytest.raises(DataError, match="0 people"):
        texts.chats_of(path, 1, 1)
    for broken in ("[", "[1]", '{"a": {"ratings": {"upbeat": 1}}}'):
        path.write_text(broken)
        with pytest.raises(DataError, match="is not the Chit-Chat set"):
            texts.chats_of(path, 1, 1)


@pytest.mark.parametrize("rho", made_up.RHOS.values())
def test_the_mixture_errs_as_the_theory_says_and_least_where_it_says(rho):
    predicted = page("lgfedavg/mood").predicted
    best = 1 - predicted(rho).best_weight
    grid = np.array([0.0, 0.5, 1.0, best])  # of the global model
    found = []
    for seed in range(12):
        made = made_up.made_up(rho, seed)
        part = texts.split(made.texts, seed).train
        own = [part.of(k).numpy() for k in range(len(part))]
        fits = [np.linalg.lstsq(made.x[r], made.score[r])[0] for r in (*own, np.concatenate(own))]
        local, shared = np.stack(fits[:-1]), fits[-1]
        mixed = (1 - grid[:, None, None]) * local + grid[:, None, None] * shared
        found.append(((mixed - made.teachers) ** 2).sum(-1).mean(-1))
    found, due = np.stack(found), predicted(rho).error(1 - grid)
    assert (abs(found.mean(0) - due) < 4 * found.std(0, ddof=1) / np.sqrt(12)).all()
    assert found.mean(0)[3] <= found.mean(0)[:3].min() * 1.01


def test_made_up_texts_are_what_the_theory_speaks_of():
    made = made_up.made_up(1.0, seed=0, persons=40, each=50)
    second = made.x.T @ made.x / len(made.x)
    assert second == pytest.approx(np.eye(made_up.FEATURES), abs=0.15)
    counts = np.bincount(made.texts.label, minlength=5) / len(made.texts)
    assert counts == pytest.approx(np.full(5, 0.2), abs=0.05)
    noise = made.score - (made.x * made.teachers[made.texts.person]).sum(1)
    assert noise.std() == pytest.approx(made_up.SIGMA, abs=0.05)
    own = made.teachers - made.teachers.mean(0)
    assert own.std() == pytest.approx(1.0, abs=0.15)
    alike = made_up.made_up(0.0, 0).teachers
    assert (alike == alike[0]).all()
    words = texts.vocabulary(made.texts, 24)
    ids = words.encoded(made.texts.words, 24).long()
    x = words.vectors[ids - 2].sum(1) / made_up.PER_TEXT**0.5
    assert x.numpy() == pytest.approx(made.x, abs=1e-4)  # what the network begins with
