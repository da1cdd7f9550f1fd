"""Which options there are, on which device, what each may be, and what is taken instead."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["CHECKS", "DEFAULTS", "DEVICES", "WITHOUT_OP_TIME", "Problem"]

_ALL: Final = (
    "start",
    "start_profile",
    "output_path",
    "op_time",
    "profile_framework",
    "timeline_limit",
)
_ASCEND: Final = (
    "profiler_level",
    "profile_communication",
    "profile_memory",
    "parallel_strategy",
    "aicore_metrics",
    "l2_cache",
    "hbm_ddr",
    "pcie",
    "host_stack",
    "data_simplification",
    "ascend_job_id",
)
DEVICES: Final[Mapping[Literal["cpu", "gpu", "ascend"], frozenset[str]]] = {
    "cpu": frozenset(_ALL) - {"start"},
    "gpu": frozenset((*_ALL, "data_process", "sync_enable")),
    "ascend": frozenset((*_ALL, *_ASCEND, "data_process")),
}
"""The options of each device."""

WITHOUT_OP_TIME: Final = frozenset(
    (
        "start",
        "start_profile",
        "output_path",
        "data_process",
        "parallel_strategy",
        "l2_cache",
        "hbm_ddr",
        "pcie",
        "ascend_job_id",
        "op_time",
        "profile_framework",
        "profiler_level",
    )
)
"""The options that mean something without `op_time`."""

DEFAULTS: Final[Mapping[str, Any]] = {
    "output_path": "data",
    "start_profile": True,
    "op_time": True,
    "profile_framework": "all",
    "timeline_limit": 500,
    "data_process": True,
    "sync_enable": True,
    "profiler_level": None,
    "profile_communication": False,
    "profile_memory": False,
    "parallel_strategy": True,
    "aicore_metrics": 0,
    "l2_cache": False,
    "hbm_ddr": False,
    "pcie": False,
    "host_stack": True,
    "data_simplification": True,
    "ascend_job_id": "",
}

_HIGHEST_METRIC: Final = 6
_LEVELS: Final = ("Level0", "Level1", "Level2")
_FRAMEWORK: Final = ("memory", "time", "all")


class Problem(NamedTuple):
    """What an option must be, and the value that is taken instead."""

    rule: str
    used: Any


def _flag(name: str) -> Callable[[Any], Problem | None]:
    default = DEFAULTS[name]
    return lambda value: None if type(value) is bool else Problem("must be bool", default)


def _limit(value: Any) -> Problem | None:
    if type(value) is not int:
        return Problem("must be int", DEFAULTS["timeline_limit"])
    return None if value > 0 else Problem("must be greater than 0", DEFAULTS["timeline_limit"])


def _metrics(value: Any) -> Problem | None:
    is_known = type(value) is int and -1 <= value <= _HIGHEST_METRIC
    return None if is_known else Problem("must be in [-1, 0, 1, 2, 3, 4, 5, 6]", 0)


def _framework(value: Any) -> Problem | None:
    is_known = value is None or (isinstance(value, str) and value in _FRAMEWORK)
    return None if is_known else Problem("must be one of 'memory', 'time', 'all' and None", "all")


def _level(value: Any) -> Problem | None:
    name = getattr(value, "name", value)
    is_known = name is None or (isinstance(name, str) and name in _LEVELS)
    return None if is_known else Problem("must be Level0, Level1 or Level2", "Level0")


def _path(value: Any) -> Problem | None:
    is_path = isinstance(value, str | os.PathLike) and bool(os.fspath(value))
    return None if is_path else Problem("must be a path", DEFAULTS["output_path"])


def _job(value: Any) -> Problem | None:
    return None if isinstance(value, str) else Problem("must be a path", "")


CHECKS: Final[Mapping[str, Callable[[Any], Problem | None]]] = {
    **{name: _flag(name) for name, value in DEFAULTS.items() if type(value) is bool},
    "start": lambda _: None,
    "output_path": _path,
    "profile_framework": _framework,
    "timeline_limit": _limit,
    "profiler_level": _level,
    "aicore_metrics": _metrics,
    "ascend_job_id": _job,
}
"""Says what is wrong with a value; None where nothing is."""
