"""Errors that say what was wrong, where, and what to do next."""


class LgfedError(Exception):
    """Base of every error this package raises on purpose."""


class DataError(LgfedError):
    """A data set is missing, damaged, or cannot be fetched."""


class PartitionError(LgfedError, ValueError):
    """The requested split of rows over devices is impossible."""


class CheckpointError(LgfedError):
    """A stored state is damaged or belongs to another run."""


class ResultsError(LgfedError, ValueError):
    """A results file or a row for it is malformed."""


class SettingsError(LgfedError, ValueError):
    """A setting of a run is unknown or out of range."""
