"""What a method answers, and cannot be meant, is refused by the name of its class."""

from dataclasses import dataclass

import pytest

from lgfed_core.engine import run
from lgfed_core.errors import SettingsError
from lgfed_core.methods import FedAvg, LGFedAvg
from lgfed_core.methods.privacy import Privacy
from toy import ABOVE, SGD, toy_federation

LANES = pytest.mark.parametrize("lanes", ["looped", "batched"])


def refused(method, said, lanes="looped", rounds=0):
    """Before anything trains, where there are no rounds."""
    with pytest.raises(SettingsError, match=said):
        run(toy_federation(), method, SGD, rounds, lanes=lanes)


class First(LGFedAvg):
    def keep(self, before, trained, weights):
        return trained[:1]


class Nothing(LGFedAvg):
    def keep(self, before, trained, weights):
        trained[:] = before


@dataclass
class Length:
    def privatise(self, before, upload, rng):
        return upload.norm()


class InPlace:
    def privatise(self, before, upload, rng):
        upload.mul_(0.5)


@LANES
@pytest.mark.parametrize(
    ("method", "said"),
    [
        (First(layers=ABOVE), r"First.keep gives shape \[1, 54\]; .* shape \[10, 54\]"),
        (Nothing(layers=ABOVE), r"Nothing.keep gives NoneType; .* shape \[10, 54\]"),
        (FedAvg(upload=[Length()]), r"Length.privatise gives shape \[\]; .* shape \[75\]"),
        (FedAvg(upload=[InPlace()]), "InPlace.privatise gives NoneType"),
    ],
)
def test_what_would_be_spread_over_devices_is_refused(method, said, lanes):
    refused(method, said, lanes, rounds=1)


@pytest.mark.parametrize(
    ("upload", "said"),
    [
        ([lambda upload: upload], "FedAvg lists <function .* in upload; .*privatise"),
        ([Privacy], "FedAvg lists <class .*Privacy"),
        ("clip", "FedAvg has upload 'clip'; list"),
        (Privacy(1.0, 0.5), r"FedAvg has upload Privacy\(.*; list"),
        (None, "FedAvg has upload None; list"),
    ],
)
def test_what_treats_no_upload_is_refused(upload, said):
    refused(FedAvg(upload=upload), said)
