"""Who holds which rows: by label, by chance, or by clusters of features."""

from .label_skew import (
    classes_per_device as classes_per_device,
    dirichlet as dirichlet,
    iid as iid,
    label_shards as label_shards,
    with_validation as with_validation,
)
from .partition import ClientIndices as ClientIndices, Partition as Partition
