"""Sounds: patches, YAMNet where it can run, FSDKaggle2018's official form, the stand-ins."""

import doctest
import wave

import numpy as np
import pytest

from lgfed_core import paths
from lgfed_core.data import sources
from lgfed_core.data.features import clips, cough, fsdkaggle, yamnet
from lgfed_core.data.features.stored import features, stratified
from lgfed_core.errors import DataError, NotAvailable, SettingsError


def test_a_sound_is_cut_in_patches():
    lengths = (1, 15_600, 23_279, 23_280, 160_000)
    assert [len(yamnet.cut(np.zeros(n))) for n in lengths] == [1, 1, 1, 2, 19]
    assert len(yamnet.cut(np.zeros(500_000))) == 19, "no more than ten seconds"
    sound = np.arange(30_000) / 30_000
    assert (yamnet.cut(sound)[1] == sound[7_680:23_280].astype(np.float32)).all()
    padded = yamnet.cut(np.ones(100))[0]
    assert padded[:100].all() and not padded[100:].any()
    for bad in (np.zeros((2, 3)), np.array([]), np.array([np.nan])):
        with pytest.raises(DataError, match="mono"):
            yamnet.cut(bad)


def test_resampling_keeps_the_tone():
    t = np.arange(44_100) / 44_100
    found = yamnet.resampled(np.stack([np.sin(2 * np.pi * 440 * t)] * 2, 1), 44_100)
    assert found.shape == (16_000,) and found.dtype == np.float32
    assert np.abs(np.fft.rfft(found)).argmax() == 440


def write_wav(path, width=2):
    path.parent.mkdir(parents=True, exist_ok=True)
    sound = 8_000 * np.sin(2 * np.pi * 440 * np.arange(22_050) / 44_100)  # half a second
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(width)
        file.setframerate(44_100)
        file.writeframes(sound.astype(f"<i{width}").tobytes())


@pytest.fixture
def fsd(tmp_path):
    """FSDKaggle2018 as its authors lay it out, with six clips."""
    folder = tmp_path / "fsdkaggle2018"
    lists = {"train": ["Cough", "Cough", "Oboe", "Fart"], "test": ["Cough", "Oboe", "None"]}
    (folder / "FSDKaggle2018.meta").mkdir(parents=True)
    for part, labels in lists.items():
        lines = ["fname,label,usage,freesound_id,license"]
        for i, label in enumerate(labels):
            lines.append(f"{part}{i}.wav,{label},Public,{i},CC0")
            if label != "None":
                write_wav(folder / f"FSDKaggle2018.audio_{part}" / f"{part}{i}.wav")
        name = fsdkaggle.TABLES[part][0]
        (folder / "FSDKaggle2018.meta" / name).write_text("\n".join(lines) + "\n")
    return folder


def test_fsdkaggle2018_in_its_official_form(fsd):
    table = fsdkaggle.read(fsd)
    assert table.groupby("part").size().to_dict() == {"test": 2, "train": 4}
    assert (table["label"] == "Cough").sum() == 3 and "None" not in set(table["label"])
    sound = fsdkaggle.sound(table["path"][0])
    assert sound.shape == (8_000,) and 0.2 < np.abs(sound).max() < 0.3


def test_what_is_missing_in_fsdkaggle2018_is_named(fsd):
    (fsd / "FSDKaggle2018.audio_test" / "test1.wav").unlink()
    with pytest.raises(DataError, match=r"test1\.wav is missing"):
        fsdkaggle.read(fsd)
    table = fsd / "FSDKaggle2018.meta" / fsdkaggle.TABLES["train"][0]
    table.write_text("file,label\na.wav,Cough\n")
    with pytest.raises(DataError, match="no column fname"):
        fsdkaggle.read(fsd)
    table.unlink()
    with pytest.raises(DataError, match="unpack FSDKaggle2018"):
        fsdkaggle.read(fsd)
    write_wav(fsd / "eight.wav", width=1)
    with pytest.raises(DataError, match="8 bits"):
        fsdkaggle.sound(fsd / "eight.wav")
    (fsd / "none.wav").write_bytes(b"RIFF")
    with pytest.raises(DataError, match="cannot be read"):
        fsdkaggle.sound(fsd / "none.wav")


class FakeYamnet:
    """Two numbers in place of 1,024; counts its calls."""

    calls = 0

    def __init__(self, folder):
        pass

    def embed(self, sound):
        FakeYamnet.calls += 1
        if FakeYamnet.calls == 5:
            raise KeyboardInterrupt
        return np.array([len(sound), np.abs(sound).max()], np.float32)


@pytest.fixture
def fake(monkeypatch, tmp_path):
    (tmp_path / "yamnet").mkdir()
    (tmp_path / "yamnet" / yamnet.WEIGHTS).write_bytes(b"weights")
    monkeypatch.setattr(sources, "fetch", lambda name: tmp_path / name)
    monkeypatch.setattr(paths, "CACHE", tmp_path)
    monkeypatch.setattr(yamnet, "Yamnet", FakeYamnet)
    FakeYamnet.calls = 0


def test_embeddings_of_the_papers_data_survive_an_interrupt(fsd, fake):
    with pytest.raises(KeyboardInterrupt):
        cough.load("fsdkaggle2018")
    found = cough.load("fsdkaggle2018")
    assert FakeYamnet.calls == 5 + 2, "four of six were kept"
    assert found.x.shape == (6, 2) and found.y.tolist() == [1, 1, 0, 0, 1, 0]
    assert found.test_rows(0).tolist() == [False] * 4 + [True] * 2 and found.stand_in == ""
    cough.load("fsdkaggle2018")
    assert FakeYamnet.calls == 7
    (paths.CACHE / "embeddings" / "fsdkaggle2018.npz").write_bytes(b"no")
    with pytest.raises(DataError, match="damaged"):
        cough.load("fsdkaggle2018")


def test_names_of_the_small_sets():
    assert doctest.testmod(clips).failed == 0
    with pytest.raises(DataError, match="no clip of"):
        clips.named("dog.mp3")


def test_test_rows_are_a_third_of_each_class_and_part_no_recording():
    label = np.repeat(["a", "b"], [30, 60])
    group = np.concatenate([np.arange(30), 100 + np.arange(60) // 3])
    test = stratified(label, group, 1 / 3, seed=0)
    assert test[:30].sum() == 10 and test[30:].sum() in (18, 20)
    for name in np.unique(group):
        assert len(set(test[group == name])) == 1
    assert (stratified(label, group, 1 / 3, 0) == test).all()
    assert (stratified(label, group, 1 / 3, 1) != test).any()


def test_digits_need_nothing():
    found = cough.load("digits")
    assert found.x.shape == (1797, 64) and found.y.sum() == 174 and found.x.min() >= 0
    assert len(found) == 1797 and found.dataset().classes == 2
    assert found.test_rows(0).mean() == pytest.approx(1 / 3, abs=0.01)
    with pytest.raises(SettingsError, match="none of fsdkaggle2018, clips, digits"):
        cough.load("birds")
    three = features("three", np.eye(3), np.arange(3), np.zeros(3), test=np.array([True] * 3))
    assert three.dataset().classes == 3 and three.test_rows(5).all()


def test_where_no_sound_can_be_had_it_says_why(monkeypatch, tmp_path):
    monkeypatch.delenv("LGFED_MIRROR", raising=False)
    monkeypatch.setattr(paths, "CACHE", tmp_path)
    name, reasons = cough.at_hand()
    assert name == "digits"
    assert [r.partition(":")[0] for r in reasons] == ["fsdkaggle2018", "clips"]
    assert "zenodo" in reasons[0] and str(tmp_path) not in reasons[0]


def yamnet_or_skip() -> yamnet.Yamnet:
    try:
        return yamnet.Yamnet(sources.fetch("yamnet"))
    except NotAvailable as error:
        pytest.skip(str(error).splitlines()[0])


@pytest.mark.mirror
def test_yamnet_hears_what_it_should():
    """Silence is silence to it; its last layer on our embedding gives its own scores back."""
    net = yamnet_or_skip()
    x, scores = net.patches(np.zeros(20_000))
    assert x.shape == (1, 1024) and scores.shape == (1, 521) and (x >= 0).all()
    assert net.classes[scores[0].argmax()] == "Silence"
    t = np.arange(32_000) / 16_000
    tone = net.embed(np.sin(2 * np.pi * 440 * t) * 0.5)
    assert tone.shape == (1024,) and not np.allclose(tone, x[0])
    weights = {d["name"]: d for d in net._net.get_tensor_details()}
    last = []
    for end in ("fc/MatMul", "fc/biases"):
        layer = next(d for name, d in weights.items() if name.endswith(end))
        scale, zero = layer["quantization"]
        last.append((net._net.get_tensor(layer["index"]) - zero) * scale)
    by_hand = 1 / (1 + np.exp(-(last[0] @ x[0] + last[1])))
    assert np.abs(by_hand - scores[0]).max() < 0.02


@pytest.mark.mirror
def test_most_coughs_are_heard_as_coughs():
    net = yamnet_or_skip()
    try:
        found = [c for c in clips.read(sources.fetch("cough_clips")) if c.label == clips.COUGH]
        heard = [net.classes[net.patches(c.wave())[1].max(0).argmax()] for c in found[:8]]
    except NotAvailable as error:
        pytest.skip(str(error).splitlines()[0])
    assert len(found) == 20 and heard.count("Cough") >= 3
