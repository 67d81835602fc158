"""Pictures of objects in several domains, as domain/class/picture: for domain adaptation.

============  =======  ===============================================  ==========================
set           classes  domains                                          source
============  =======  ===============================================  ==========================
office31      31       amazon 2,817, dslr 498, webcam 795               Saenko et al. 2010
caltech10     10       caltech10 1,123; the ten are in Office-31 too    Gong et al. 2012
officehome    65       art, clipart, product, real_world                Venkateswara et al. 2017
visda         12       train (drawn), validation (photographed)         Peng et al. 2017
============  =======  ===============================================  ==========================

The first two come through `sources` where a mirror has them. Any of the four is also read from its
official folder, unpacked as data/cache/<set> or <LGFED_MIRROR>/<set>.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from torch import Tensor

from lgfed_core import require
from lgfed_core.errors import DataError, NotAvailable

from . import sources
from .dataset import Archive, raw_bytes, shrunk

SIDE = 256  # pictures are enlarged or shrunk to this square, as in the released code
SUFFIXES = {".jpg", ".jpeg", ".png", ".webp"}

OFFICE31 = """back_pack bike bike_helmet bookcase bottle calculator desk_chair desk_lamp
    desktop_computer file_cabinet headphones keyboard laptop_computer letter_tray mobile_phone
    monitor mouse mug paper_notebook pen phone printer projector punchers ring_binder ruler scissors
    speaker stapler tape_dispenser trash_can"""
CALTECH10 = "backpack bike calculator headphones keyboard laptop monitor mouse mug projector"
SHARED10 = {  # Caltech-10's names for classes of Office-31
    name: {"backpack": "back_pack", "laptop": "laptop_computer"}.get(name, name)
    for name in CALTECH10.split()
}
OFFICEHOME = """Alarm_Clock Backpack Batteries Bed Bike Bottle Bucket Calculator Calendar Candles
    Chair Clipboards Computer Couch Curtains Desk_Lamp Drill Eraser Exit_Sign Fan File_Cabinet
    Flipflops Flowers Folder Fork Glasses Hammer Helmet Kettle Keyboard Knives Lamp_Shade Laptop
    Marker Monitor Mop Mouse Mug Notebook Oven Pan Paper_Clip Pen Pencil Postit_Notes Printer
    Push_Pin Radio Refrigerator Ruler Scissors Screwdriver Shelf Sink Sneakers Soda Speaker Spoon TV
    Table Telephone ToothBrush Toys Trash_Can Webcam"""
VISDA = "aeroplane bicycle bus car horse knife motorcycle person plant skateboard train truck"


@dataclass(frozen=True)
class Kind:
    """A set: its classes in order, the folder of each domain, and its archive in the cache."""

    title: str
    home: str
    classes: tuple[str, ...]
    domains: dict[str, str]
    archive: str = ""


KINDS = {
    "office31": Kind(
        "Office-31",
        "https://faculty.cc.gatech.edu/~judy/domainadapt/",
        tuple(OFFICE31.split()),
        {d: f"{d}/images" for d in ("amazon", "dslr", "webcam")},
        "office31_256_webp90.zip",
    ),
    "caltech10": Kind(
        "Caltech-10",
        "https://data.caltech.edu/records/nyy15-4j048",
        tuple(SHARED10),
        {"caltech10": "caltech10"},
        "caltech10_256_webp90.zip",
    ),
    "officehome": Kind(
        "Office-Home",
        "https://www.hemanthdv.org/officeHomeDataset.html",
        tuple(OFFICEHOME.split()),
        {"art": "Art", "clipart": "Clipart", "product": "Product", "real_world": "Real World"},
    ),
    "visda": Kind(
        "VisDA-C",
        "https://github.com/VisionLearningGroup/taskcv-2017-public",
        tuple(VISDA.split()),
        {"train": "train", "validation": "validation"},
    ),
}


@dataclass(frozen=True, eq=False)
class Pictures:
    """The pictures of one domain, in the order of class and name: names, and labels int64 [n]."""

    title: str
    classes: tuple[str, ...]
    place: Path  # a folder, or an archive
    names: tuple[str, ...]  # below it
    y: np.ndarray = field(repr=False)

    def __len__(self) -> int:
        return len(self.names)

    def contents(self) -> Iterator[bytes]:
        """The file of each picture, as it is."""
        if self.place.is_dir():
            yield from (raw_bytes(self.place / name) for name in self.names)
        else:
            with Archive(self.place) as box:
                yield from map(box.content, self.names)

    def decoded(self, content: bytes, i: int) -> Tensor:
        """Picture ``i`` from its file: uint8 [3, 256, 256].

        Raises DataError, with its path, where it is damaged.
        """
        return shrunk(content, SIDE, str(self.place / self.names[i]))


def read(name: str, domain: str) -> Pictures:
    """The pictures of one ``domain`` of the set ``name``, see `KINDS`.

    Raises NotAvailable where the set is not here; DataError, before anything is computed, for a
    class that is missing, empty or unknown, by name.
    """
    require.one_of("set", name, KINDS)
    kind = KINDS[name]
    require.one_of("domain", domain, kind.domains)
    place = sources.unpacked(name, kind.domains.values())
    if place is None and not kind.archive:
        raise NotAvailable(
            f"{kind.title} is not here: unpack {kind.home} in data/cache/{name} or "
            f"<LGFED_MIRROR>/{name}, so that it holds {', '.join(kind.domains.values())}"
        )
    return listed(kind, domain, place or sources.fetch(name) / kind.archive)


def listed(kind: Kind, domain: str, place: Path) -> Pictures:
    """`read` of a set that lies in the folder or archive ``place``."""
    found: dict[str, list[str]] = {}
    if place.is_dir():
        files = (place / kind.domains[domain]).glob("*/*")
        names = [path.relative_to(place).as_posix() for path in files]
    else:
        with Archive(place) as box:
            names = [name for name in box.namelist() if name.startswith(f"{domain}/")]
    for name in names:
        label, picture = name.split("/")[-2:]
        if Path(picture).suffix.lower() in SUFFIXES:
            found.setdefault(label, []).append(name)
    if unknown := sorted(set(found) - set(kind.classes)):
        raise DataError(
            f"{place}: {domain} has a folder {unknown[0]!r}, which is no class of {kind.title}; "
            f"its classes are {', '.join(kind.classes)}"
        )
    if missing := [label for label in kind.classes if label not in found]:
        raise DataError(
            f"{place}: {domain} has no picture of {missing[0]!r}"
            f"{f' and {len(missing) - 1} other classes' if missing[1:] else ''}; fetch "
            f"{kind.title} again from {kind.home}"
        )
    names = [name for label in kind.classes for name in sorted(found[label])]
    sizes = [len(found[label]) for label in kind.classes]
    y = np.repeat(np.arange(len(sizes)), sizes)
    return Pictures(kind.title, kind.classes, place, tuple(names), y)
