"""Whether MNIST and CIFAR-10 have rows enough for a split, before any of them are read."""

from lgfed_core.data import cifar10, mnist
from lgfed_core.errors import SettingsError

ROWS = {"mnist": mnist.ROWS, "cifar10": cifar10.ROWS}  # of each class: to train with, to test on


def enough(
    data: str, devices: int, classes: int, per_class: tuple[int, int] | None, shards: int = 0
) -> None:
    """Raise SettingsError where ``data`` cannot be dealt to so many devices.

    classes: of a device, dealt class by class; all of them: at random. per_class: rows kept of each
    class, (train, test). shards: of a device where label-sorted rows are cut, whatever ``classes``.
    """
    rows, labels = ROWS[data], len(ROWS[data][0])
    least = tuple(map(min, rows))
    if per_class and any(n > there for n, there in zip(per_class, least, strict=True)):
        raise SettingsError(
            f"rows_per_class is {per_class}; of its smallest class {data} has {least}"
        )
    said = f"devices is {devices}, classes is {classes}"
    mixed = bool(shards) or classes == labels
    if not mixed and classes * devices % labels:
        raise SettingsError(
            f"{said}: {classes * devices} shards cannot be shared equally by {labels} classes; "
            f"make the product a multiple of {labels}"
        )
    for what, n, there in zip(("training", "test"), per_class or least, rows, strict=True):
        has = (n * labels if per_class else sum(there)) if mixed else n
        wanted = devices * (shards or 1) if mixed else devices * classes // labels
        if wanted > has:
            where = "" if mixed else " of its smallest class"
            raise SettingsError(
                f"{said}, rows_per_class is {per_class}: {wanted} shares of the {has} {what} rows"
                f"{where} of {data}; use fewer devices"
            )
