"""The real data sets: fetched once, checked by sha256, handed over as tensors.

>>> from lgfed_core import data
>>> mnist = data.load("mnist")          # fetches what is missing, then under a second
>>> mnist.train.x.shape
torch.Size([60000, 784])

Where each file comes from, its licence and citation: ``data/sources.toml``; what is in it:
``data/README.md``.
"""

from pathlib import Path

from lgfed_core.data import mnist, sources
from lgfed_core.data.dataset import Dataset, Split, subset

__all__ = ["Dataset", "Split", "get", "load", "subset"]

_READERS = {"mnist": mnist}


def get(name: str) -> Path:
    """Fetch a set if it is not here, check it, and return its folder. Raises DataError."""
    return sources.fetch(name, getattr(_READERS.get(name), "rebuild", None))


def load(name: str, **options) -> Dataset:
    """A data set as float32 tensors, preprocessed as in the papers; fetched first if missing.

    Args:
        name: "mnist".

    Raises:
        DataError: unknown name, no mirror works, or a file is not what it should be.
    """
    return _READERS[sources.source(name).name].read(get(name), **options)
