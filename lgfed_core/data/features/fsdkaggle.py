"""FSDKaggle2018 (Fonseca et al., 2018) in its official form: the paper's own audio data.

The four archives of https://zenodo.org/records/2552860, unpacked in one folder:

    FSDKaggle2018.audio_train/*.wav     9,473 clips, 44.1 kHz, 16 bit, mono
    FSDKaggle2018.audio_test/*.wav      1,600 clips
    FSDKaggle2018.meta/train_post_competition.csv           fname,label,...
    FSDKaggle2018.meta/test_post_competition_scoring_clips.csv

(an older edition calls the last file test_post_competition.csv, and lists padding clips in it,
with the label "None"). 41 classes; 273 clips are coughs.
"""

from __future__ import annotations

import wave
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from lgfed_core.errors import DataError

from .yamnet import resampled

COUGH = "Cough"
TABLES = {
    "train": ("train_post_competition.csv",),
    "test": ("test_post_competition_scoring_clips.csv", "test_post_competition.csv"),
}


def read(folder: Path) -> pd.DataFrame:
    """Every labelled clip: columns part (train | test), fname, label, path.

    Raises DataError for a missing table, column or sound file; names it.
    """
    parts = []
    for part, names in TABLES.items():
        paths = [folder / "FSDKaggle2018.meta" / name for name in names]
        path = next((p for p in paths if p.is_file()), None)
        if path is None:
            raise DataError(f"{paths[0]} is missing; unpack FSDKaggle2018's archives in {folder}")
        table = pd.read_csv(path, keep_default_na=False)
        if missing := {"fname", "label"} - set(table):
            raise DataError(f"{path} has no column {', '.join(sorted(missing))}")
        table = table[~table["label"].isin(["", "None"])]  # padding clips of the competition
        sounds = folder / f"FSDKaggle2018.audio_{part}"
        table = table.assign(part=part, path=[sounds / name for name in table["fname"]])
        parts.append(table[["part", "fname", "label", "path"]])
    found = pd.concat(parts, ignore_index=True)
    for path in found["path"]:
        if not path.is_file():
            raise DataError(f"{path} is missing, though its label is listed")
    return found


def sound(path: Path) -> NDArray:
    """A wav file as 16 kHz mono float32 [n]. Raises DataError for other than 16 bit PCM."""
    try:
        with wave.open(str(path)) as file:
            if file.getsampwidth() != 2:
                raise DataError(f"{path}: {8 * file.getsampwidth()} bits a sample instead of 16")
            raw = np.frombuffer(file.readframes(file.getnframes()), "<i2")
            rate, channels = file.getframerate(), file.getnchannels()
    except (OSError, EOFError, wave.Error) as error:
        raise DataError(f"{path} cannot be read: {error}") from error
    return resampled(raw.reshape(-1, channels) / 32768.0, rate)
