"""Coughs and other sounds out of two small public sets: a stand-in for FSDKaggle2018.

220 clips of DCASE 2016 task 2 (11 classes of office sounds, 20 coughs among them) and the 400 of
ESC-10 (10 classes of 40). None is in FSDKaggle2018's official split;
`stored.Features.test_rows` draws one.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from numpy.typing import NDArray

from lgfed_core.errors import DataError, NotAvailable

from ..dataset import Archive
from .yamnet import INSTALL, resampled

ARCHIVES = ("dcase2016_task2_train_16k_flac.zip", "esc10_16k_vorbis.zip")
COUGH = "cough"


@dataclass(frozen=True)
class Clip:
    """A sound and where it is from: clips of one ``recording`` stay in one part of a split."""

    name: str
    label: str
    recording: str
    content: bytes  # as in the archive

    def wave(self) -> NDArray:
        """The sound at 16 kHz, mono float32 [n]. Raises DataError where it cannot be decoded."""
        try:
            import soundfile
        except ImportError as error:
            raise NotAvailable(f"{self.name}: FLAC and Ogg need soundfile: {INSTALL}") from error
        try:
            wave, rate = soundfile.read(io.BytesIO(self.content), dtype="float32")
        except soundfile.LibsndfileError as error:
            raise DataError(f"{self.name} cannot be decoded: {error}") from error
        return resampled(wave, rate)


def read(folder: Path) -> Iterator[Clip]:
    """All clips of both archives, in the order of their names.

    Raises DataError for an archive that is missing or damaged, or a name of another form.
    """
    for archive in ARCHIVES:
        with Archive(folder / archive) as box:
            for name in sorted(box.namelist()):
                yield Clip(name, *named(name), box.content(name))


def named(name: str) -> tuple[str, str]:
    """Label and recording of a clip by its file name.

    >>> named("cough004.flac")
    ('cough', 'cough004')
    >>> named("001 - Dog bark/1-59513-A.ogg")  # take A of Freesound's recording 59513
    ('dog bark', '59513')
    """
    if found := re.fullmatch(r"([A-Za-z]+)(\d+)\.flac", name):
        return found[1].lower(), found[1] + found[2]
    if found := re.fullmatch(r"\d+ - ([^/]+)/\d+-(\d+)-[A-Z]\.ogg", name):
        return found[1].lower(), found[2]
    raise DataError(f"{name!r} is named as no clip of {' or '.join(ARCHIVES)}")
