"""Profiles of MindSpore, read and analysed without MindSpore.

Examples
--------
>>> from longpole import mindspore
>>> found = mindspore.offline_analyse("data")  # doctest: +SKIP
>>> found.ranks[0].operators  # doctest: +SKIP
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from longpole.mindspore.errors import ProfileError, RankError
    from longpole.mindspore.findings import FileFinding
    from longpole.mindspore.host_info import HostInfo, read_host_info
    from longpole.mindspore.offline import Analysis, offline_analyse
    from longpole.mindspore.operators import OpAnalysis, OpRow, op_analyse
    from longpole.mindspore.option_findings import (
        OptionFinding,
        OptionStateError,
        OptionTypeError,
        OptionValueError,
    )
    from longpole.mindspore.options import ProfilerOptions
    from longpole.mindspore.profiler import Profiler, ProfilerStateError, Recording
    from longpole.mindspore.rank_analysis import RankAnalysis
    from longpole.mindspore.step_trace import StepPoints, StepTrace, read_step_trace
    from longpole.mindspore.timeline import timeline_events

__all__ = [
    "Analysis",
    "FileFinding",
    "HostInfo",
    "OpAnalysis",
    "OpRow",
    "OptionFinding",
    "OptionStateError",
    "OptionTypeError",
    "OptionValueError",
    "ProfileError",
    "Profiler",
    "ProfilerOptions",
    "ProfilerStateError",
    "RankAnalysis",
    "RankError",
    "Recording",
    "StepPoints",
    "StepTrace",
    "offline_analyse",
    "op_analyse",
    "read_host_info",
    "read_step_trace",
    "timeline_events",
]

# Recognising a profile's files must not import the analysis.
_NAMES_OF = {
    "errors": ("ProfileError", "RankError"),
    "findings": ("FileFinding",),
    "host_info": ("HostInfo", "read_host_info"),
    "offline": ("Analysis", "offline_analyse"),
    "operators": ("OpAnalysis", "OpRow", "op_analyse"),
    "option_findings": ("OptionFinding", "OptionStateError", "OptionTypeError", "OptionValueError"),
    "options": ("ProfilerOptions",),
    "profiler": ("Profiler", "ProfilerStateError", "Recording"),
    "rank_analysis": ("RankAnalysis",),
    "step_trace": ("StepPoints", "StepTrace", "read_step_trace"),
    "timeline": ("timeline_events",),
}


def __getattr__(name: str) -> object:
    for module, names in _NAMES_OF.items():
        if name in names:
            found = getattr(import_module(f"longpole.mindspore.{module}"), name)
            globals()[name] = found
            return found
    message = f"module 'longpole.mindspore' has no attribute {name!r}"
    raise AttributeError(message)
