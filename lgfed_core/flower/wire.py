"""What crosses the wire: shared parameters by name, a few numbers, and a ledger of all of it."""

from collections.abc import Iterator

import torch
from flwr.app import Array, ArrayRecord, Message
from torch import Tensor

from lgfed_core.models.layout import Layout


def arrays(layout: Layout, shared: Tensor) -> ArrayRecord:
    """The shared vector [P_s] as arrays by name: no other parameter has a way out."""
    named = layout.views(shared, shared.new_zeros(layout.size_personal))
    return ArrayRecord({name: Array(named[name].numpy()) for name in layout.shared})


def vector(layout: Layout, record: ArrayRecord) -> Tensor:
    """The inverse of `arrays`, [P_s]. Raises ValueError, in words, for what is none."""
    if set(record) != set(layout.shared):
        raise ValueError(f"arrays {sorted(record)} for {sorted(layout.shared)}")
    parts = {name: torch.from_numpy(record[name].numpy().copy()) for name in layout.shared}
    for name, part in parts.items():
        if part.shape != layout.shapes[name] or part.dtype != torch.get_default_dtype():
            raise ValueError(f"{name} is {part.dtype} {list(part.shape)}")
        if not part.isfinite().all():
            raise ValueError(f"{name} is not finite")
    return torch.cat([torch.empty(0), *(parts[name].flatten() for name in layout.shared)])


def ledger(message: Message, way: str, node: int) -> Iterator[dict]:
    """A line for each key of each record of a message: ``way`` it went, what it was, how large."""
    at = {"round": message.metadata.group_id, "way": way, "node": node}
    if message.has_error():
        yield at | {"record": "error", "key": "reason", "bytes": len(message.error.reason or "")}
        return
    for record, entries in message.content.items():
        for key, value in entries.items():
            if isinstance(value, Array):
                size = len(value.data)
            elif isinstance(value, str | bytes):
                size = 8 * -(-len(value) // 8)  # rounded up
            else:
                size = 8 * (len(value) if isinstance(value, list) else 1)
            yield at | {"record": record, "key": key, "bytes": size}
