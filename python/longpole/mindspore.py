"""Profiles of MindSpore, read and analysed without MindSpore.

Examples
--------
>>> from longpole import mindspore
>>> found = mindspore.offline_analyse("data")  # doctest: +SKIP
>>> found.ranks[0].operators  # doctest: +SKIP
"""

from longpole.words.public_names import imported_on_use

_MODULES = {
    name: f"formats.mindspore.{module}"
    for module, names in {
        "findings": ("FileFinding", "ProfileError", "RankError"),
        "host_info": ("HostInfo", "read_host_info"),
        "offline": ("Analysis", "offline_analyse"),
        "operators": ("OpAnalysis", "OpRow", "op_analyse"),
        "option_table": (
            "OptionFinding",
            "OptionStateError",
            "OptionTypeError",
            "OptionValueError",
        ),
        "options": ("ProfilerOptions",),
        "profiler": ("Profiler", "ProfilerStateError", "Recording"),
        "rank_analysis": ("RankAnalysis",),
        "step_trace": ("StepPoints", "StepTrace", "read_step_trace"),
        "timeline": ("timeline_events",),
    }.items()
    for name in names
}
"""The module of each public name, imported on first use; type checkers read `__init__.pyi`."""

__all__ = list(_MODULES)


__getattr__, __dir__ = imported_on_use(__name__, _MODULES, within="longpole")
