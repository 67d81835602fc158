"""Settings of the page on questions: what reaches loaders and networks, is refused, and is said."""

import json
import random
from itertools import product

import pytest
import torch
from torch import nn

from lgfed_core import paths
from lgfed_core.data import easy_vqa
from lgfed_core.errors import SettingsError
from lgfed_core.evidence.rows import DIVERGED
from lgfed_core.papers.lgfedavg.vqa import settings
from lgfed_core.papers.lgfedavg.vqa.run import QUESTIONS
from toy import picture

COLOURS = {"red": 255, "purple": 128, "blue": 0}  # of `picture`


@pytest.fixture
def official(tmp_path, monkeypatch):
    """VQA v1 in its official form, made up: 300 questions a part, two about each picture."""
    monkeypatch.setattr(paths, "CACHE", tmp_path)
    folder, ways = tmp_path / "vqa_v1", ("What colour is it?", "Which colour is this?")
    for part in ("train2014", "val2014"):
        (folder / part).mkdir(parents=True)
        questions, answers = [], []
        for image, way in product(range(150), ways):
            name = random.Random(image).choice(list(COLOURS))
            one = dict(question_id=len(questions), image_id=image)
            questions.append(one | dict(question=way))
            answers.append(one | dict(multiple_choice_answer=name))
            file = folder / part / f"COCO_{part}_{image:012d}.jpg"
            file.write_bytes(picture(COLOURS[name], "JPEG"))
        asked, said = (json.dumps(d) for d in ({"questions": questions}, {"annotations": answers}))
        (folder / f"OpenEnded_mscoco_{part}_questions.json").write_text(asked)
        (folder / f"mscoco_{part}_annotations.json").write_text(said)
    settings._asked.cache_clear()
    yield
    settings._asked.cache_clear()


def test_of_vqa_v1_as_many_questions_are_read_as_are_asked_for(official):
    cfg = QUESTIONS.settings("smoke", data="vqa_v1", lines=())
    asked = settings.asked_of(cfg)
    assert (len(asked.data.train), len(asked.data.test)) == cfg.questions == (240, 200)
    rows, _ = QUESTIONS.run(cfg, [0], record=False, resume=False, device="cpu")
    assert set(rows["stand_in"]) == {cfg.stand_in} and rows["value"].notna().all()
    every = settings.asked_of(QUESTIONS.settings("smoke", data="vqa_v1", questions=None))
    assert (len(every.data.train), len(every.data.test)) == (300, 300)


def test_the_package_has_as_many_questions_as_are_reckoned_with():
    asked = easy_vqa.load(1)
    short = [asked.answers.index(word) for word in ("yes", "no")]
    for part, every, left in zip(("train", "test"), easy_vqa.ROWS, easy_vqa.OPEN, strict=True):
        y = getattr(asked.data, part).y
        assert (len(y), int((~torch.isin(y, torch.tensor(short))).sum())) == (every, left)
    for closed, rows in ((True, easy_vqa.ROWS), (False, easy_vqa.OPEN)):
        assert QUESTIONS.settings("smoke", closed=closed, questions=None).rows == sum(rows)
    assert QUESTIONS.settings("smoke", questions=(20_000, 10)).rows == easy_vqa.OPEN[0] + 10


def test_nothing_that_can_be_set_counts_as_the_papers_own():
    def said(**changed):
        return QUESTIONS.settings("paper", **changed).stand_in

    assert said() == "easy-VQA, a small network"  # as stored rows have it
    assert said(data="vqa_v1", network="paper", lines=()) == (
        "VQA v1, the paper's network, side 16, lr 0.05, batch_size 20, random weights"
    )
    nearest = dict(data="vqa_v1", network="paper", lines=(), questions=(20_000, 8_000))
    assert said(**nearest, **settings.TEXT) == "VQA v1, the paper's network, random weights"
    assert said(data="vqa_v1", lr=0.01, batch_size=100) == (
        "VQA v1, a small network, side 16, random weights"
    )
    other = said(network="paper", lines=(), side=224)
    assert other.startswith("easy-VQA, the paper's network, lr 0.05, ")


@pytest.mark.slow
def test_the_papers_own_network_trains_in_looped_lanes_and_is_refused_where_it_cannot(official):
    way = dict(data="vqa_v1", network="paper", devices=2, fraction=1.0, questions=(24, 24))
    way |= dict(rounds=2, start=1, scratch=1, lines=("lg_scratch",))
    cfg = QUESTIONS.settings("smoke", **way)
    net = cfg.net()
    assert sum(isinstance(layer, nn.BatchNorm2d) for layer in net.modules()) == 20  # ResNet-18's
    assert net.fc1.in_features == 1024 and net.words.embedding_dim == 512
    asked = settings.asked_of(cfg)
    held = [len(cfg.split(asked, 0).train.of(k)) for k in range(2)]
    engine = dict(record=False, resume=False, device="cpu", workers=1)
    alone = next(size for size in range(2, 20) if any(n % size == 1 for n in held))
    with pytest.raises(SettingsError, match=f"with batch_size {alone} a batch has one"):
        QUESTIONS.run(QUESTIONS.settings("smoke", **way, batch_size=alone), [0], **engine)
    whole = QUESTIONS.settings("smoke", **way, batch_size=max(held) + 1)
    with pytest.raises(SettingsError, match="batched lanes pad its last batch"):
        QUESTIONS.run(whole, [0], lanes="batched", **(engine | dict(workers=None)))
    rows, histories = QUESTIONS.run(whole, [0], lanes="looped", **engine)
    assert set(histories) == {"fedavg", "lg_scratch"} and rows["value"].notna().all()
    assert DIVERGED not in set(rows["metric"])
