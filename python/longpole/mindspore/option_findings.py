"""Problems with the options of a profiler: warnings, and errors with their class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from longpole.errors import LongpoleError

__all__ = [
    "OptionFinding",
    "OptionStateError",
    "OptionTypeError",
    "OptionValueError",
]


class OptionTypeError(LongpoleError, TypeError):
    """An option has a type that cannot be repaired."""


class OptionValueError(LongpoleError, ValueError):
    """An option has an invalid value."""


class OptionStateError(LongpoleError, RuntimeError):
    """The device or the environment does not allow a profiler."""


@dataclass(frozen=True, slots=True)
class OptionFinding:
    """A problem with one option: a warning, or an error if it `raises`.

    `used` is the replacement value, if any.
    """

    code: str
    option: str | None
    message: str
    used: object = None
    raises: type[LongpoleError] | None = None

    @property
    def severity(self) -> Literal["warning", "error"]:
        """Severity of the problem."""
        return "warning" if self.raises is None else "error"
