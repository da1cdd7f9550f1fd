"""Parses a profiler's output exactly as AITemplate does, oddities included.

For programs that were written for AITemplate and rely on its answers. `longpole.bench.extract`
reads the same rows without the oddities: here a time in scientific notation loses its exponent, a
row with an odd name is lost or loses its name, and the 0 printed by a crashed kernel is the best
time of all.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

__all__ = [
    "PROF_RUNTIME_PATTERN",
    "RUNTIME_PATTERN",
    "WORKSPACE_PATTERN",
    "ProfileResult",
    "extract_profile_result",
    "optimization_key",
    "update_inplace",
]

# Unanchored, and `\d` matches the digits of any script, as in AITemplate.
PROF_RUNTIME_PATTERN: Final = re.compile(r"OP:([a-zA-Z0-9_]+),TIME:([\d\.]+),WS:([\d]+)")
RUNTIME_PATTERN: Final = re.compile(r"TIME:([\d\.]+)")
WORKSPACE_PATTERN: Final = re.compile(r"WS:([\d]+)")


class ProfileResult(NamedTuple):
    """An operation, its time in milliseconds as printed, and its workspace in bytes."""

    op_config: str
    duration: float
    workspace: int


def extract_profile_result(
    stdout: str, return_ops: Iterable[str] | None = None
) -> tuple[ProfileResult | list[ProfileResult], bool]:
    r"""Find the fastest row, or all rows of some operations, as AITemplate does.

    Parameters
    ----------
    stdout
        What the profiler printed.
    return_ops
        The operations to list. By default the fastest row is returned, or the first of several
        equally fast ones.

    Returns
    -------
    tuple
        The fastest row, or the list of rows in printed order; and whether this failed. Only the
        flag shows a failure: the row with it is that of an operation without a name and with time
        0. If there is no row but a time and a workspace, these are returned, never in a list.

    Examples
    --------
    >>> extract_profile_result("OP:slow,TIME:2.5,WS:0\nOP:fast,TIME:0.5,WS:64\n")
    (ProfileResult(op_config='fast', duration=0.5, workspace=64), False)
    """
    try:
        return _extract(stdout, return_ops), False
    except Exception:  # noqa: BLE001 - whatever is wrong with the text or the arguments
        return ProfileResult("", 0, 0), True


def optimization_key(result: Sequence[str]) -> float:
    """Return the time of a row, by which results are ordered.

    Examples
    --------
    >>> optimization_key(("gemm", "1.5", "0"))
    1.5
    """
    return float(result[1])


def update_inplace(d: dict[str, str], new_d: Mapping[str, str]) -> dict[str, str]:
    """Update a dictionary and return it.

    Examples
    --------
    >>> update_inplace({"a": "1"}, {"b": "2"})
    {'a': '1', 'b': '2'}
    """
    d.update(new_d)
    return d


def _extract(stdout: str, return_ops: Iterable[str] | None) -> ProfileResult | list[ProfileResult]:
    rows = PROF_RUNTIME_PATTERN.findall(stdout)
    if not rows:
        time, workspace = RUNTIME_PATTERN.findall(stdout)[0], WORKSPACE_PATTERN.findall(stdout)[0]
        return _result("", time, workspace)
    if return_ops is None:
        return _result(*min(rows, key=optimization_key))
    wanted = set(return_ops)
    return [_result(*row) for row in rows if row[0] in wanted]


def _result(operation: str, time: str, workspace: str) -> ProfileResult:
    return ProfileResult(operation, float(time), int(workspace))
