"""Cough against everything else, as stored features: the task of CGAU's first experiment.

============== ================================================= ==========================
features       what                                              needs
============== ================================================= ==========================
fsdkaggle2018  the paper's data and partition, YAMNet, 1,024     the set, from its authors
clips          620 clips of two small public sets, YAMNet        `LGFED_MIRROR` with both
digits         UCI's handwritten digits: 8 against the others    nothing: in scikit-learn
============== ================================================= ==========================

The first is the experiment; the others stand in for it, and every number made with them says so.
Digits are no sounds at all: they keep the experiment running where no sound can be had. YAMNet
embeddings are computed once and kept in the cache.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray
from tqdm.auto import tqdm

from lgfed_core import paths, require
from lgfed_core.errors import NotAvailable

from .. import sources
from . import clips as small, fsdkaggle, yamnet
from .stored import Features, features, load_arrays, save_arrays

STAND_IN = {  # what the column of that name says
    "fsdkaggle2018": "",
    "clips": "220 DCASE and 400 ESC-10 clips",
    "digits": "UCI digits, 8 against the rest",
}


def load(name: str, per_class: int | None = None) -> Features:
    """The features called ``name``, with y = 1 for cough (or the digit 8).

    per_class: for "clips", only the first so many clips of each of their 21 classes, for a quick
    look.

    Raises SettingsError for unknown features, DataError for those that cannot be had here.
    """
    require.one_of("features", name, STAND_IN)
    if name == "clips":
        return _clips(per_class)
    return _fsdkaggle() if name == "fsdkaggle2018" else _digits()


def at_hand(per_class: int | None = None) -> tuple[str, list[str]]:
    """The best features that can be had here, and why the better ones cannot."""
    reasons: list[str] = []
    for name in STAND_IN:
        try:
            load(name, per_class)
            return name, reasons
        except NotAvailable as error:
            reasons.append(f"{name}: {str(error).splitlines()[0].partition(' Tried')[0]}")
    raise AssertionError("digits need nothing")


def _digits() -> Features:
    from sklearn.datasets import load_digits

    x, digit = load_digits(return_X_y=True)
    return features("digits", x / 16, digit == 8, digit, stand_in=STAND_IN["digits"])


def _clips(per_class: int | None) -> Features:
    folder = sources.fetch("cough_clips")
    chosen: list[small.Clip] = []
    seen: Counter[str] = Counter()
    for clip in small.read(folder):
        seen[clip.label] += 1
        if per_class is None or seen[clip.label] <= per_class:
            chosen.append(clip)
    x = _embedded("clips", [(c.name, c.content, c.wave) for c in chosen])
    label, recording = (np.array([getattr(c, k) for c in chosen]) for k in ("label", "recording"))
    return features(
        "clips", x, label == small.COUGH, label, group=recording, stand_in=STAND_IN["clips"]
    )


def _fsdkaggle() -> Features:
    folder = sources.unpacked("fsdkaggle2018", ["FSDKaggle2018.meta"])
    if folder is None:
        raise NotAvailable(
            f"unpack https://zenodo.org/records/2552860 in {paths.CACHE.name}/fsdkaggle2018 or in "
            "<LGFED_MIRROR>/fsdkaggle2018"
        )
    table = fsdkaggle.read(folder)
    triples = []
    for row in table.itertuples():
        size = str(row.path.stat().st_size).encode()
        triples.append((f"{row.part}/{row.fname}", size, partial(fsdkaggle.sound, row.path)))
    x = _embedded("fsdkaggle2018", triples)
    label, test = table["label"].to_numpy(), (table["part"] == "test").to_numpy()
    return features("fsdkaggle2018", x, label == fsdkaggle.COUGH, label, test=test)


def _embedded(name: str, clips: Sequence[tuple]) -> NDArray:
    """YAMNet's embeddings [n, 1024] of (name, content, sound) triples; kept in the cache.

    A clip that is in the cache is not computed again, whichever others are asked for; what was
    computed is kept even if the rest fails or is stopped.
    """
    store = paths.CACHE / "embeddings" / f"{name}.npz"
    folder = sources.fetch("yamnet")
    ground = hashlib.sha256((folder / yamnet.WEIGHTS).read_bytes()).digest()
    keys = [hashlib.sha256(ground + str(n).encode() + c).hexdigest()[:24] for n, c, _ in clips]
    known: dict[str, NDArray] = {}
    if store.exists():
        stored, x = load_arrays(store, "keys", "x")
        known = dict(zip(stored.tolist(), x, strict=True))
    waiting = [(k, sound) for k, (_, _, sound) in zip(keys, clips, strict=True) if k not in known]
    if waiting:
        net = yamnet.Yamnet(folder)
        try:
            for key, sound in tqdm(waiting, f"YAMNet: {name}", leave=False):
                known[key] = net.embed(sound())
        finally:
            if known:
                save_arrays(store, keys=np.array(list(known)), x=np.stack(list(known.values())))
    return np.stack([known[k] for k in keys])
