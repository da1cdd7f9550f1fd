"""What longpole raises. Catch `LongpoleError` for all of it."""

from longpole._core import InternalError, LongpoleError, PairError, TraceError, WindowError

__all__ = [
    "DeviceError",
    "InternalError",
    "LongpoleError",
    "MissingDependencyError",
    "PairError",
    "RanksError",
    "ResultsError",
    "TraceError",
    "WindowError",
]


class DeviceError(LongpoleError):
    """A device was asked for that is not there, or does not answer."""


class RanksError(LongpoleError):
    """Files of several ranks of which none can be read; the message says why, and a hint."""


class ResultsError(LongpoleError):
    """Results could not be written or read. Nothing that was written before is lost."""


class MissingDependencyError(LongpoleError, ImportError):
    """A function needs a package that is not installed; the message says which extra brings it."""
