"""What can be read off a representation by a linear classifier, fitted to it afterwards."""

import numpy as np
from numpy.typing import NDArray

from lgfed_core.errors import SettingsError


def linear_probe(
    h: NDArray, y: NDArray, judged: NDArray, truth: NDArray, penalty: float = 1.0
) -> float:
    """Accuracy (0 to 1) on ``judged`` [m, d], ``truth`` [m], of a classifier fitted to h [n, d].

    Least squares on the classes' indicators of y [n] with a ridge penalty (of the number of rows,
    1/1000 times ``penalty``), on coordinates of mean 0 and deviation 1 over h. It has a closed
    form, so that it does not depend on where a search began or ended. Raises SettingsError unless y
    has two classes or more.
    """
    from sklearn.linear_model import RidgeClassifier  # slow to import

    if len(np.unique(y)) < 2:
        raise SettingsError(f"a probe needs rows of two classes; all {len(y)} have one")
    mean, deviation = h.mean(0), h.std(0)
    scale = np.where(deviation > 1e-6, deviation, 1.0)  # a dead unit stays at zero
    model = RidgeClassifier(alpha=penalty * len(h) / 1000).fit((h - mean) / scale, y)
    return float((model.predict((judged - mean) / scale) == truth).mean())
