"""A node's folder: its rows, and what it has learnt for itself, which never leaves it.

    folder/rows.safetensors         train.x, train.y, test.x and test.y, as of `data.Split`, and
                                    groups where there are some; under "node" in its metadata JSON
                                    of the texts client (its number, from 0), name and classes
    folder/run-NUMBER.safetensors   personal parameters of a run (and momentum, if that is kept)

The second file outlives its process: a node that comes back goes on from where it was.
"""

import json
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor

from lgfed_core.data import Dataset, Split
from lgfed_core.errors import DataError, SettingsError
from lgfed_core.files import replacing
from lgfed_core.partition import Partition

ROWS = "rows.safetensors"


def write_nodes(folder: Path, data: Dataset, partition: Partition) -> list[Path]:
    """Write the rows of each device of ``partition`` to a folder of its own; the folders.

    They are called node-0, node-1, ... in ``folder``; each can be carried to another machine.
    Raises SettingsError for a device without training rows, before anything is written.
    """
    if bare := (partition.train.size == 0).nonzero().flatten().tolist():
        raise SettingsError(
            f"devices {bare} of {partition.name} have no training rows, and a node cannot take "
            "part without; leave them out of the partition"
        )
    made = []
    for k in range(len(partition)):
        node = folder / f"node-{k}"
        node.mkdir(parents=True, exist_ok=True)
        tensors = {}
        for part in ("train", "test"):
            split = getattr(data, part).take(getattr(partition, part).of(k))
            for name in ("x", "y", "groups"):
                if (value := getattr(split, name)) is not None:
                    tensors[f"{part}.{name}"] = value.contiguous()
        says = {"client": str(k), "name": data.name, "classes": str(data.classes)}
        with replacing(node / ROWS, locked=True) as path:
            save_file(tensors, path, {"node": json.dumps(says)})
        made.append(node)
    return made


class Node:
    """What lies in a node's ``folder``. Raises DataError where no rows can be read."""

    def __init__(self, folder: Path):
        self.folder, path = folder, folder / ROWS
        try:
            with safe_open(path, "pt") as file:
                says = json.loads((file.metadata() or {})["node"])
            tensors = load_file(path)
            self.client = int(says["client"])
            train, test = (_split(tensors, part) for part in ("train", "test"))
            self.data = Dataset(says["name"], train, test, int(says["classes"]))
        except (OSError, SafetensorError, KeyError, ValueError) as error:
            raise DataError(
                f"{path} holds no rows of a node: it lacks, or has wrong, {error}; write it by "
                'flower.write_nodes, and name its folder in --node-config: folder="/data/node-0"'
            ) from error

    def recall(self, run: int, tensors: Mapping[str, Tensor]) -> None:
        """Fill ``tensors`` with what this node has kept of ``run``; if anything.

        Raises DataError for a file that is damaged, or of other tensors.
        """
        for name, value in self._read(run).items():
            if name not in tensors or value.shape != tensors[name].shape:
                raise DataError(
                    f"{self._kept(run)} has {name} {list(value.shape)}, which run {run} does not "
                    "keep; delete it, and this node begins anew"
                )
            tensors[name].copy_(value)

    def keep(self, run: int, tensors: Mapping[str, Tensor]) -> None:
        """Remember ``tensors`` of ``run``; nobody else writes to the folder of a node."""
        with replacing(self._kept(run), locked=True) as path:
            save_file({n: t.contiguous() for n, t in tensors.items()}, path)

    def personal(self, run: int) -> Tensor:
        """The personal vector [P_p] of this node in ``run``. Raises SettingsError for none."""
        kept = self._read(run)
        if "personal" not in kept:
            raise SettingsError(f"{self.folder} has taken no part in run {run}")
        return kept["personal"].flatten()

    def _read(self, run: int) -> dict[str, Tensor]:
        """What was kept of ``run``; nothing where this node took no part."""
        path = self._kept(run)
        try:
            return load_file(path) if path.exists() else {}
        except SafetensorError as error:
            raise DataError(
                f"{path} is damaged ({error}); delete it, and this node begins anew"
            ) from error

    def _kept(self, run: int) -> Path:
        return self.folder / f"run-{run}.safetensors"


def _split(tensors: Mapping[str, Tensor], part: str) -> Split:
    x, y = tensors[f"{part}.x"], tensors[f"{part}.y"]
    return Split(x, y.to(torch.int64), tensors.get(f"{part}.groups"))
