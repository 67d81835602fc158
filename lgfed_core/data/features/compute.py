"""All features of a set of pictures, by its name: `python -m lgfed_core features office31 ...`."""

from lgfed_core import require
from lgfed_core.data.objects import KINDS

from . import cifar10, objects
from .stored import Features

SETS = ("cifar10", *KINDS)


def compute(name: str, network: str) -> list[Features]:
    """The features of each part of the set ``name``; those not in the cache are computed, with a
    bar, and a stopped computation goes on.

    Raises SettingsError for a set or network that is not known, NotAvailable where pictures or
    weights cannot be had, and DataError for what is damaged.
    """
    require.one_of("set", name, SETS)
    if name == "cifar10":
        require.one_of("network", network, cifar10.NETS)
        return [cifar10.load(network)]
    require.one_of("network", network, objects.BACKBONES)
    return [objects.load(name, domain, network) for domain in KINDS[name].domains]
