"""The table of options of MindSpore's profiler."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from longpole.errors import LongpoleError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_UNSET: Final = object()
_LEVELS: Final = ("LevelNone", "Level0", "Level1", "Level2")
"""Levels, from least to most detail; MindSpore has LevelNone from 2.5 on."""


class Option(NamedTuple):
    """An option: its default, the devices that have it, and its valid values."""

    default: Any
    devices: frozenset[str]
    needs_op_time: bool
    """Whether it has no effect without `op_time`."""
    check: Callable[[Any], str | None]
    """Return what a value must be, or None if it is valid."""
    instead: Any
    """Value used instead of an invalid one."""


def _option(
    devices: str,
    check: Callable[[Any], str | None],
    *,
    default: Any,
    needs_op_time: bool = False,
    instead: Any = _UNSET,
) -> Option:
    taken = default if instead is _UNSET else instead
    return Option(default, frozenset(devices.split()), needs_op_time, check, taken)


def _flag(value: Any) -> str | None:
    return None if type(value) is bool else "must be bool"


def _limit(value: Any) -> str | None:
    if type(value) is not int:
        return "must be int"
    return None if value > 0 else "must be greater than 0"


def _metrics(value: Any) -> str | None:
    known = list(range(-1, 7))
    return None if type(value) is int and value in known else f"must be in {known}"


def _framework(value: Any) -> str | None:
    is_known = value is None or (isinstance(value, str) and value in {"memory", "time", "all"})
    return None if is_known else "must be one of 'memory', 'time', 'all' and None"


def _level(value: Any) -> str | None:
    name = getattr(value, "name", value)
    is_known = isinstance(name, str) and name in _LEVELS
    return None if name is None or is_known else f"must be one of {', '.join(_LEVELS)}"


def _path(value: Any) -> str | None:
    is_path = isinstance(value, str | os.PathLike) and bool(os.fspath(value))
    return None if is_path else "must be a path"


def _job(value: Any) -> str | None:
    return None if isinstance(value, str) else "must be a path"


_ALL: Final = "cpu gpu ascend"

OPTIONS: Final[Mapping[str, Option]] = {
    "start": _option(_ALL, lambda _: None, default=None),
    "output_path": _option(_ALL, _path, default="data"),
    "start_profile": _option(_ALL, _flag, default=True),
    "op_time": _option(_ALL, _flag, default=True),
    "profile_framework": _option(_ALL, _framework, default="all"),
    "timeline_limit": _option(_ALL, _limit, default=500, needs_op_time=True),
    "data_process": _option("gpu ascend", _flag, default=True),
    "sync_enable": _option("gpu", _flag, default=True, needs_op_time=True),
    "profiler_level": _option("ascend", _level, default=None, instead="Level0"),
    "profile_communication": _option("ascend", _flag, default=False, needs_op_time=True),
    "profile_memory": _option("ascend", _flag, default=False, needs_op_time=True),
    "parallel_strategy": _option("ascend", _flag, default=True),
    "aicore_metrics": _option("ascend", _metrics, default=0, needs_op_time=True),
    "l2_cache": _option("ascend", _flag, default=False),
    "hbm_ddr": _option("ascend", _flag, default=False),
    "pcie": _option("ascend", _flag, default=False),
    "host_stack": _option("ascend", _flag, default=True, needs_op_time=True),
    "data_simplification": _option("ascend", _flag, default=True, needs_op_time=True),
    "ascend_job_id": _option("ascend", _job, default=""),
}


# Problems with the options of a profiler: warnings, and errors with their class.


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
