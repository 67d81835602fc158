"""How many coughs a client of the stand-in clips has to train on: by arithmetic, without a sound.

`data.features.clips` has `COUGHS` coughs, each a recording of its own. `stratified` takes a third
of them for testing, `parts` a share of the others for validation, and k-means puts those that are
left in as many clusters as there are clients. With no more coughs than clients each cluster is one
cough, and no client has a *kind* of them, as it has in the paper.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from lgfed_core.data.features.cough import STAND_IN
from lgfed_core.data.features.stored import TEST as SHARE, stratified
from lgfed_core.evidence.records import stand_in
from lgfed_core.partition.feature_clusters import TEST, TRAIN, VALIDATION, Clients, parts

from .run import AUDIO

COUGHS = 20  # of DCASE 2016, task 2, in the clips; ESC-10 has none
PRINTED = 273  # coughs of FSDKaggle2018, section 4.1


class Coughs(NamedTuple):
    """How many are for training, validation and testing, of how many clients."""

    training: int
    validation: int
    testing: int
    clients: int

    @property
    def each(self) -> str:
        """What a client trains on where none is shuffled."""
        return "one each" if self.training == self.clients else "not one each"


def dealt(seed: int = 0) -> Coughs:
    """Those of the clips in a repetition, which differ in nothing but ``seed``."""
    cfg = AUDIO.settings("paper", features="clips")
    cough = np.ones(COUGHS, dtype=int)
    test = stratified(cough, np.arange(COUGHS), SHARE, seed)
    part = parts(cough, test, cfg.validation, seed)
    return Coughs(*(int((part == which).sum()) for which in (TRAIN, VALIDATION, TEST)), cfg.clients)


def limit(found: pd.DataFrame) -> str:
    """What a verdict on ``found``, rows of `claims.stored`, must say; "" of other data."""
    if stand_in(found) != STAND_IN["clips"]:
        return ""
    n = dealt()
    return f" ({n.training} coughs to train on for {n.clients} clients, {n.each})"


def by_client(who: Clients, y: ArrayLike) -> str:
    """The training rows with y [n] = 1, of ``who`` they are: "12, by client 5, 7"."""
    mine = who.client[(np.asarray(y) == 1) & (who.part == TRAIN)]
    many = np.bincount(mine, minlength=who.clients)
    return f"{many.sum()}, by client {', '.join(map(str, many))}"
