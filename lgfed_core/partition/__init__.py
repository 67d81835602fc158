"""Who holds which rows: as is known, by label, by chance, or by clusters of features."""

from .device_ids import by_device as by_device
from .label_skew import (
    classes_per_device as classes_per_device,
    dirichlet as dirichlet,
    iid as iid,
    label_shards as label_shards,
    with_validation as with_validation,
)
from .partition import ClientIndices as ClientIndices, Partition as Partition
