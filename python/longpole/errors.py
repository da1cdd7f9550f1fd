"""What longpole raises. Catch `LongpoleError` for all of it."""

from longpole._core import InternalError, LongpoleError, PairError, TraceError, WindowError

__all__ = [
    "DeviceError",
    "InternalError",
    "LongpoleError",
    "MissingDependencyError",
    "PairError",
    "ResultsError",
    "TraceError",
    "WindowError",
]


class DeviceError(LongpoleError):
    """A device was asked for that is not there, or does not answer."""


class ResultsError(LongpoleError):
    """Results could not be written or read. Nothing that was written before is lost."""


class MissingDependencyError(LongpoleError, ImportError):
    """A function needs a package that is not installed; the message says which extra brings it."""
