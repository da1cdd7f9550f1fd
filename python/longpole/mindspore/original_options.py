"""The options as the `Profiler` of the installed MindSpore takes them.

A level is a member of `ProfilerLevel`: MindSpore records Level0 for any other type. From 2.5 on,
metrics are members of `AicoreMetrics`, `host_stack` is `with_stack`, and `op_time` and
`profile_framework` are activities; other options of 2.3 have no effect there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from longpole.mindspore.option_findings import OptionValueError
from longpole.mindspore.option_table import OPTIONS
from longpole.mindspore.options import AICORE_METRICS

if TYPE_CHECKING:
    from longpole.mindspore.options import ProfilerOptions

__all__ = ["options_of", "without_effect"]

_GONE: Final = frozenset(("timeline_limit", "profile_communication", "ascend_job_id"))
"""Options that MindSpore has no more from 2.5 on."""
_ACTIVITIES: Final = frozenset(("op_time", "profile_framework"))
"""Options that are activities from 2.5 on, on an Ascend device."""


def options_of(options: ProfilerOptions, types: Any) -> dict[str, Any]:
    """Return the arguments for `mindspore.Profiler`.

    Parameters
    ----------
    options
        The options, checked for their device.
    types
        The module `mindspore.profiler`, whose enumerations tell what its options are.
    """
    names = [name for name in sorted(OPTIONS) if options.device in OPTIONS[name].devices]
    values = {name: getattr(options, name) for name in names if name != "start"}
    level = values.pop("profiler_level", None)
    levels = getattr(types, "ProfilerLevel", None)
    if level is not None and levels is not None:
        values["profiler_level"] = _level_of(levels, level)
    if not options.ascend_job_id:
        values.pop("ascend_job_id", None)
    return _since_2_5(values, types) if _is_new(types) else values


def _level_of(levels: Any, name: str) -> Any:
    """Return a level of the installed MindSpore.

    Raises
    ------
    OptionValueError
        It has no such level.
    """
    member = getattr(levels, name, None)
    if member is None:
        known = ", ".join(level.name for level in levels)
        message = f"the installed MindSpore has no profiler_level {name}; it has {known}"
        raise OptionValueError(message)
    return member


def without_effect(types: Any, device: str) -> frozenset[str]:
    """Return the options that the installed MindSpore does not have in any form."""
    gone = frozenset(() if hasattr(types, "ProfilerLevel") else ("profiler_level",))
    if not _is_new(types):
        return gone
    return gone | _GONE | (frozenset() if device == "ascend" else _ACTIVITIES)


def _is_new(types: Any) -> bool:
    """Whether the options are those of MindSpore 2.5 or later."""
    return hasattr(types, "AicoreMetrics")


def _since_2_5(values: dict[str, Any], types: Any) -> dict[str, Any]:
    kept = {name: values[name] for name in values.keys() - _GONE - _ACTIVITIES}
    metrics, stack = kept.pop("aicore_metrics", None), kept.pop("host_stack", None)
    if metrics is None:
        return kept
    name = "AiCoreNone" if metrics < 0 else AICORE_METRICS[metrics]
    activity = types.ProfilerActivity
    activities = [activity.CPU] if values["profile_framework"] is not None else []
    activities += [activity.NPU] if values["op_time"] else []
    return kept | {
        "aicore_metrics": getattr(types.AicoreMetrics, name),
        "with_stack": stack,
        "activities": activities,
    }
