"""Checks whether a candidate is correct: compares its numbers with a reference."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from longpole._core import check_pattern
from longpole.files.opening import open_file, read_bytes, read_text

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from numpy.typing import ArrayLike

_NUMBER: Final = re.compile(r"[-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?|nan|inf)")


@dataclass(frozen=True, slots=True)
class Reference:
    """The correct numbers, and the tolerances for a candidate.

    Parameters
    ----------
    file
        The numbers: a `.npy` file, text, or with `dtype` the bytes of an array.
    function
        A Python function that returns them, as `MODULE:FUNC`.
    dtype
        Data type of the numbers in a binary file, in numpy's names.
    relative, absolute
        The tolerances: a number may differ by `absolute + relative * abs(right)`.
    lines
        A regular expression without lookaround; only matching lines of a candidate's output are
        compared.
    """

    file: str | None = None
    function: str | None = None
    dtype: str | None = None
    relative: float = 1e-5
    absolute: float = 1e-8
    lines: str | None = None

    def __post_init__(self) -> None:
        if (self.file is None) == (self.function is None):
            message = "a reference is a file or a function"
            raise ValueError(message)
        if self.lines is not None:
            check_pattern(self.lines)

    def expected(self, folder: Path, call: Callable[[str], Callable[[], Any]]) -> Any:
        """Return the correct numbers; `call` finds a function by name."""
        if self.function is not None:
            return as_array(call(self.function)())
        path = folder / str(self.file)
        return read_numbers(path, self.dtype)

    def digest(self, folder: Path) -> str:
        """Return a digest of all that determines the correct numbers, except a function's code."""
        content = b"" if self.file is None else read_bytes(folder / self.file)
        return hashlib.sha256(repr(self).encode() + content).hexdigest()[:16]

    def check(self, found: Any, expected: ArrayLike) -> None:
        """Raise `AssertionError` with the difference, if any."""
        if wrong := self.fault(as_array(found), expected):
            raise AssertionError(wrong)

    def fault(self, found: ArrayLike, expected: ArrayLike) -> str:
        """Describe what is wrong with a candidate's numbers; empty if they are correct."""
        return difference(found, expected, self.relative, self.absolute)

    def printed(self, output: str) -> list[float]:
        """Return the numbers that an output contains."""
        lines = output.splitlines()
        if self.lines is not None:
            lines = _matching(lines, self.lines)
        return _numbers("\n".join(lines))


def _matching(lines: list[str], pattern: str) -> list[str]:
    """Return the lines that match a pattern, in time linear in their length."""
    import polars as pl

    column = pl.Series(lines, dtype=pl.String)
    return column.filter(column.str.contains(pattern)).to_list()


def difference(found: ArrayLike, expected: ArrayLike, relative: float, absolute: float) -> str:
    """Describe how numbers differ from the expected ones; empty within the tolerances.

    NaN is correct only if it is expected.

    Examples
    --------
    >>> difference([1.0, 2.1], [1.0, 2.0], 0.01, 0.0)
    '1 of 2 numbers are wrong, number 1 by 0.1: it is 2.1 and must be 2'
    >>> difference([1.0, 2.001], [1.0, 2.0], 0.01, 0.0)
    ''
    """
    import numpy as np

    ours, right = (np.asarray(each).ravel() for each in (found, expected))
    if ours.size != right.size:
        return f"the output has {ours.size:,} numbers, the reference {right.size:,}"
    with np.errstate(invalid="ignore", over="ignore"):
        off = ~np.isclose(ours, right, rtol=relative, atol=absolute, equal_nan=True)
        if not off.any():
            return ""
        errors = np.where(off, np.nan_to_num(np.abs(ours - right), nan=np.inf), -1)
    worst = int(np.argmax(errors))
    return (
        f"{int(off.sum()):,} of {off.size:,} numbers are wrong, number {worst} by "
        f"{errors[worst]:.3g}: it is {ours[worst]:.6g} and must be {right[worst]:.6g}"
    )


def as_array(value: Any) -> Any:
    """Convert a result to numpy, in double precision if numpy lacks its type."""
    import numpy as np

    if not hasattr(value, "detach"):
        return np.asarray(value)
    tensor = value.detach().cpu()
    return (tensor if tensor.is_complex() else tensor.double()).numpy()


def read_numbers(path: Path, dtype: str | None = None) -> Any:
    """Read the numbers of a file: `.npy`, binary, or text.

    Raises
    ------
    ValueError
        The file does not contain such numbers.
    OSError
        The file cannot be read.
    """
    import numpy as np

    if dtype is not None:
        return np.frombuffer(read_bytes(path), dtype)
    with open_file(path, is_named=False) as file:
        is_array = file.read(6) == b"\x93NUMPY"
    if is_array:
        return np.load(path, allow_pickle=False)
    return np.asarray(_numbers(read_text(path, errors="replace")))


def _numbers(text: str) -> list[float]:
    return [float(each) for each in _NUMBER.findall(text)]
