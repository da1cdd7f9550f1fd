"""What is wrong with the options of a profiler: warnings, and errors with their class."""

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
    """An option has a value that cannot be."""


class OptionStateError(LongpoleError, RuntimeError):
    """The device or the environment allows no profiler."""


@dataclass(frozen=True, slots=True)
class OptionFinding:
    """Something about one option: a warning, or an error where there is what it `raises`.

    `used` is the value in use instead, where there is one.
    """

    code: str
    option: str | None
    message: str
    used: object = None
    raises: type[LongpoleError] | None = None

    @property
    def severity(self) -> Literal["warning", "error"]:
        """How bad it is."""
        return "warning" if self.raises is None else "error"
