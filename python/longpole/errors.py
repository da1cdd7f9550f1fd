"""The exceptions of longpole. Catch `LongpoleError` for all of them."""

from longpole._core import InternalError, LongpoleError, PairError, TraceError, WindowError

__all__ = [
    "DeviceError",
    "InternalError",
    "LongpoleError",
    "MissingDependencyError",
    "PairError",
    "RanksError",
    "RecordingWarning",
    "ResultsError",
    "TraceError",
    "WindowError",
]


class DeviceError(LongpoleError):
    """A requested device does not exist or does not respond."""


class RanksError(LongpoleError):
    """No file of a run with several ranks can be read."""


class RecordingWarning(UserWarning):
    """A recording is incomplete or failed; the recorded program continues."""


class ResultsError(LongpoleError):
    """Results could not be written or read; results written before are kept."""


class MissingDependencyError(LongpoleError, ImportError):
    """A function needs a package that is not installed; the message names the extra."""
