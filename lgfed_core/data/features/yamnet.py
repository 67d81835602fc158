"""YAMNet's embedding of a sound, from the TensorFlow Lite file that its authors published.

The file (MobileNet v1 on AudioSet, 521 classes, 8-bit weights) takes 0.975 s of sound, 16 kHz mono
in [-1, 1], and says how likely each class is; the 1,024 numbers in front of the last layer are the
embedding. A longer clip is cut in patches every 0.48 s, as YAMNet does, and each number of the clip
is its largest over the patches (Rieger et al., 2020, Section 4.1). A clip shorter than a patch is
padded with silence; what is left after the last whole patch is dropped.
"""

from __future__ import annotations

import csv
import warnings
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lgfed_core.errors import DataError, NotAvailable

RATE, PATCH, HOP, WIDTH = 16_000, 15_600, 7_680, 1_024  # samples a second, per patch, between two
SECONDS = 10.0  # clips are cut here, as in the released code
WEIGHTS, CLASSES = "lite-model_yamnet_classification_tflite_1.tflite", "yamnet_class_map.csv"
INSTALL = (
    ".venv/bin/python -m pip install --constraint constraints.txt --editable '.[audio]' in the "
    "checkout (ai-edge-litert and soundfile; make leaves them out)"
)


class Yamnet:
    """The network, ready to run: ``folder`` holds the two files of `data.get("yamnet")`.

    Raises DataError when the runtime is not installed, or the file is another network.
    """

    def __init__(self, folder: Path):
        try:
            from ai_edge_litert import interpreter as lite
        except ImportError as error:
            why = f"YAMNet needs a runtime that is not installed: {INSTALL}"
            raise NotAvailable(why) from error
        plain = lite.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES  # others fuse what we read
        try:
            with warnings.catch_warnings():  # "for debugging": it is how to read an inner layer
                warnings.simplefilter("ignore", UserWarning)
                self._net = lite.Interpreter(
                    str(folder / WEIGHTS),
                    experimental_op_resolver_type=plain,
                    experimental_preserve_all_tensors=True,
                    num_threads=1,
                )
        except ValueError as error:
            raise DataError(f"{folder / WEIGHTS} cannot be read: {error}") from error
        self._net.allocate_tensors()
        found = [t for t in self._net.get_tensor_details() if t["name"].endswith("/reduce_mean")]
        if len(found) != 1 or found[0]["shape"][-1] != WIDTH:
            raise DataError(f"{folder / WEIGHTS} has no layer of {WIDTH} numbers; not YAMNet?")
        self._at, (self._scale, self._zero) = found[0]["index"], found[0]["quantization"]
        self._out = self._net.get_output_details()[0]["index"]
        with (folder / CLASSES).open(encoding="utf-8") as lines:
            self.classes = [row["display_name"] for row in csv.DictReader(lines)]

    def patches(self, wave: NDArray) -> tuple[NDArray, NDArray]:
        """Embeddings [p, 1024] and class probabilities [p, 521] of a sound's patches; wave [n]."""
        embeddings, scores = [], []
        for patch in cut(wave):
            self._net.set_tensor(0, patch)
            self._net.invoke()
            whole = self._net.get_tensor(self._at).astype(np.float32).ravel()
            embeddings.append((whole - self._zero) * self._scale)
            scores.append(self._net.get_tensor(self._out).ravel())
        return np.stack(embeddings).astype(np.float32), np.stack(scores)

    def embed(self, wave: NDArray) -> NDArray:
        """The clip's embedding, float32 [1024]: the largest over its patches."""
        return self.patches(wave)[0].max(0)


def cut(wave: NDArray) -> list[NDArray]:
    """A sound [n] at 16 kHz -> its patches, float32 [15600] each; at least one.

    Raises DataError for a sound that is no vector of finite numbers, or empty.
    """
    wave = np.asarray(wave, np.float32)
    if wave.ndim != 1 or wave.size == 0 or not np.isfinite(wave).all():
        raise DataError(f"a sound of shape {wave.shape}; expected finite numbers [n], mono")
    wave = wave[: int(SECONDS * RATE)]
    wave = np.pad(wave, (0, max(0, PATCH - len(wave))))
    return [wave[i : i + PATCH] for i in range(0, len(wave) - PATCH + 1, HOP)]


def resampled(wave: NDArray, rate: int) -> NDArray:
    """A sound [n] or [n, channels] at ``rate`` -> mono float32 [m] at 16 kHz."""
    from math import gcd

    from scipy.signal import resample_poly

    wave = np.asarray(wave, np.float64)
    wave = wave if wave.ndim == 1 else wave.mean(1)
    if rate != RATE:
        common = gcd(rate, RATE)
        wave = resample_poly(wave, RATE // common, rate // common)
    return wave.astype(np.float32)
