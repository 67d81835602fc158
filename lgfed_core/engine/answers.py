"""What a method answers, read by the engine: refused by name where it cannot be meant."""

from lgfed_core.errors import SettingsError
from lgfed_core.methods import Method


def refuse_treatments(method: Method) -> None:
    """Raise SettingsError unless ``upload`` lists things that can treat an upload."""
    name, listed = type(method).__name__, method.upload
    if not isinstance(listed, list | tuple):
        raise SettingsError(
            f"{name} has upload {listed!r:.80}; list what is done to uploads, as "
            "[Privacy(clip=1.0, noise=0.5)]"
        )
    for one in listed:
        if isinstance(one, type) or not callable(getattr(one, "privatise", None)):
            raise SettingsError(
                f"{name} lists {one!r:.80} in upload; it has to be an object with "
                "privatise(before, upload, rng), as Privacy(clip=1.0, noise=0.5) is"
            )
