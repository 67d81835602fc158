"""A device that is none, for tests of what runs on a GPU: its tensors say that they are there, and
have values all the same.

    with Pretended() as there:
        run(replace(federation, device=PLACE), ...)
    there.waits

What PyTorch does with them is done on the CPU. Whoever joins them in one operation with tensors of
the CPU gets an error, as on a GPU, and what would have to wait until all before it is done is
counted: a value that is asked for, and one that is sent and not left for the GPU to fetch.
"""

import sys
from collections import Counter
from typing import ClassVar

import torch
from torch import Tensor
from torch.utils._mode_utils import no_dispatch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

from lgfed_core.engine.memory import to_device

PLACE = torch.device("lazy")  # of no build's own kernels
CPU = torch.device("cpu")
ASKING = {"_local_scalar_dense", "equal", "is_nonzero", "masked_select", "nonzero", "bincount"}
ASKING |= {"_unique2", "unique_consecutive", "unique_dim", "repeat_interleave"}
INDEXING = {"index", "index_put", "index_put_", "_index_put_impl_", "_unsafe_index"}
LISTS = {Tensor.__getitem__, Tensor.__setitem__}
OUT = {Tensor.tolist, Tensor.numpy}


class There(Tensor):
    """A tensor at `PLACE`; ``here`` has its values."""

    @staticmethod
    def __new__(cls, here: Tensor):
        like = dict(strides=here.stride(), storage_offset=here.storage_offset(), dtype=here.dtype)
        return Tensor._make_wrapper_subclass(cls, here.shape, device=PLACE, **like)

    def __init__(self, here: Tensor):
        self.here = here

    @classmethod
    def __torch_function__(cls, function, types, inputs=(), more=None):
        """What PyTorch does with lists in C++, where no mode would hear of it."""
        if function in OUT:
            Pretended.now.note("asks")
            return getattr(inputs[0].here, function.__name__)()
        if function in LISTS:
            at = inputs[1] if isinstance(inputs[1], tuple) else (inputs[1],)
            inputs = (inputs[0], tuple(map(cls._numbers, at)), *inputs[2:])
        with torch._C.DisableTorchFunctionSubclass():
            return function(*inputs, **(more or {}))

    @staticmethod
    def _numbers(index):
        return torch.tensor(index, dtype=torch.long) if isinstance(index, list) else index

    @classmethod
    def __torch_dispatch__(cls, function, types, inputs=(), more=None):
        raise AssertionError(f"{function} of a tensor that is pretended, outside of Pretended")


class Pretended(TorchDispatchMode):
    """Inside, tensors may be at `PLACE`. ``waits`` counts, by (what, file, function)."""

    now: ClassVar["Pretended"]

    def __init__(self):
        super().__init__()
        self.waits: Counter[tuple[str, str, str]] = Counter()
        Pretended.now = self

    def count(self, what: str) -> int:
        """How often it was waited so far: what "asks", what "tells"."""
        return sum(n for (kind, *_), n in self.waits.items() if kind == what)

    def note(self, what: str) -> None:
        """Count a wait of who is at work in the package."""
        frame = sys._getframe(1)
        while frame and "lgfed_core" not in frame.f_code.co_filename:
            frame = frame.f_back
        file = frame.f_code.co_filename.split("lgfed_core")[-1] if frame else ""
        self.waits[what, file, frame.f_code.co_name if frame else ""] += 1

    def __torch_dispatch__(self, function, types, inputs=(), more=None):
        more = more or {}
        tensors = [t for t in tree_leaves((inputs, more)) if isinstance(t, Tensor)]
        far = [t for t in tensors if isinstance(t, There)]
        to = torch.device(more["device"]) if more.get("device") is not None else None
        if not far and to != PLACE:
            return function(*inputs, **more)
        name = function.overloadpacket.__name__
        home = name == "_local_scalar_dense" or to == CPU
        home |= name == "copy_" and not isinstance(inputs[0], There)
        self._look(name, inputs, more, tensors, home)
        here = tree_map(lambda t: t.here if isinstance(t, There) else t, (inputs, more))
        if to == PLACE:
            here[1]["device"] = CPU
        out = function(*here[0], **here[1])
        if home:
            return inputs[0] if name == "copy_" else out
        if torch.Tag.inplace_view in function.tags:
            return _reshaped(function, inputs, more)
        known = {id(t.here): t for t in far}  # of what is written in its place

        def there(t):
            return known[id(t)] if id(t) in known else There(t) if isinstance(t, Tensor) else t

        return tree_map(there, out)

    def _look(self, name: str, inputs, more: dict, tensors: list[Tensor], home: bool) -> None:
        """Count what waits; raise AssertionError for two places in one operation."""
        near = [t for t in tensors if not isinstance(t, There)]
        if name in INDEXING:
            at = [i for i in inputs[1] if i is not None]
            masks = [i for i in at if isinstance(i, There) and i.dtype == torch.bool]
            number = name != "index" and not isinstance(inputs[2], There) and not inputs[2].dim()
            if masks and not (number and len(at) == 1):  # how many there are decides a shape
                self.note("asks")
            for _ in [i for i in at if not isinstance(i, There)]:
                self.note("tells")
        elif name in ("_to_copy", "copy_"):
            waiting = not _fetched()
            if home:
                self.note("asks")
            elif near and waiting:
                self.note("tells")
        elif odd := [t for t in near if t.dim()]:  # numbers go with tensors of any place
            raise AssertionError(f"{name} joins two places, as of {[*odd[0].shape]}")
        elif name in ASKING:
            self.note("asks")


def _fetched() -> bool:
    """Whether a tensor is sent by `memory.to_device`, whose memory a GPU reads by itself."""
    frame = sys._getframe(1)
    while frame and frame.f_code is not to_device.__code__:
        frame = frame.f_back
    return frame is not None


def _reshaped(function, inputs, more) -> Tensor:
    """The tensor that an operation gives another shape in its place."""
    with no_dispatch():
        before = torch._C._meta_in_tls_dispatch_include()
        torch._C._set_meta_in_tls_dispatch_include(True)
        try:
            function(*inputs, **more)
        finally:
            torch._C._set_meta_in_tls_dispatch_include(before)
    return inputs[0]
