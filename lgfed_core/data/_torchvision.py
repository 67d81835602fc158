"""The one place that imports torchvision: ``from lgfed_core.data._torchvision import torchvision``.

The torchvision wheel of PyPI is compiled against the CUDA build of torch. Beside a CPU-only torch
its compiled half cannot be loaded, and ``import torchvision`` stops with "operator
torchvision::nms does not exist" (pytorch/vision issues 9077 and 9085). Declaring the two operators
that the import looks up is enough for its plain Python half, which is all that is used here.
"""

import torch

try:
    import torchvision
except RuntimeError:
    _LIBRARY = torch.library.Library("torchvision", "FRAGMENT")  # for as long as it is held
    for _name in ("nms", "qnms"):
        _LIBRARY.define(f"{_name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    import torchvision

__all__ = ["torchvision"]
