"""The one place that imports torchvision: ``from lgfed_core.data._torchvision import torchvision``.

The torchvision wheel of PyPI is compiled against the CUDA build of torch. Beside a CPU-only torch
its compiled half (``_C``) cannot be loaded, and then ``import torchvision`` stops with "operator
torchvision::nms does not exist" although models, transforms and data sets are plain Python
(pytorch/vision issues 9077 and 9085). Declaring the signatures of the two operators that the import
looks up is enough to get that plain Python half; ``ops.nms`` and ``io`` stay unusable, and nothing
here uses them. Where torch and torchvision match, nothing is declared and nothing changes.
"""

import importlib.util
import sys
from pathlib import Path

import torch

_SCHEMAS = (
    "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
)


def compiled_half_loads() -> bool:
    """Say whether torchvision's compiled operators fit the torch of this process."""
    spec = importlib.util.find_spec("torchvision")
    assert spec and spec.origin, "torchvision is not installed"
    folder = Path(spec.origin).parent
    try:
        for library in (*folder.glob("_C*.so"), *folder.glob("_C*.pyd")):
            torch.ops.load_library(library)
    except OSError:
        return False
    return hasattr(torch.ops.torchvision, "nms")


def declare_operators() -> torch.library.Library:
    """Declare the operators that the import looks up; they last as long as the returned handle."""
    library = torch.library.Library("torchvision", "FRAGMENT")
    for schema in _SCHEMAS:
        library.define(schema)
    return library


if "torchvision" not in sys.modules and not compiled_half_loads():
    _LIBRARY = declare_operators()

import torchvision  # noqa: E402

__all__ = ["torchvision"]
