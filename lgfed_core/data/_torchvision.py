"""The one place that imports torchvision: ``from lgfed_core.data._torchvision import torchvision``.

The torchvision wheel of PyPI is compiled against the CUDA build of torch. Beside a CPU-only torch
its compiled half (``_C``) cannot be loaded, and ``import torchvision`` stops with "operator
torchvision::nms does not exist" (pytorch/vision issues 9077 and 9085). Declaring the two operators
that the import looks up is enough for its plain Python half, which is all that is used here.
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


if "torchvision" not in sys.modules and not compiled_half_loads():
    _LIBRARY = torch.library.Library("torchvision", "FRAGMENT")  # for as long as it is held
    for _schema in _SCHEMAS:
        _LIBRARY.define(_schema)

import torchvision  # noqa: E402

__all__ = ["torchvision"]
