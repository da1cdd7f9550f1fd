"""Find what a GPU program waits for.

Examples
--------
>>> import longpole
>>> trace = longpole.read_trace(b'{"traceEvents": [{"ph": "X", "cat": "kernel", "name": "gemm", '
...                             b'"pid": 0, "tid": 7, "ts": 1.5, "dur": 40}]}')
>>> trace.events.select("kind", "name", "start_ns", "duration_ns").row(0)
('kernel', 'gemm', 1500, 40000)
"""

from longpole.cli.interrupts import delay_interrupts, is_command

if is_command():
    delay_interrupts()

from longpole.analyses.catalogue import questions
from longpole.public_names import imported_on_use

_GROUPS = {
    "Record": {
        "record": "recorder",
        "Recorder": "recorder",
    },
    "Read": {
        "read_trace": "read",
        "read_traces": "traces.joining",
        "read_dumps": "traces.dump_set",
        "read_memory": "allocations",
        "read_execution_trace": "convert.execution_trace",
        "Trace": "trace",
        "TraceSet": "traces.trace_set",
        "DumpSet": "traces.dump_set",
        "Allocations": "allocations",
        "ExecutionTrace": "convert.execution_trace",
    },
    "Choose a window": {
        "choose_window": "windows",
        "Window": "windows",
    },
    "Ask about a trace": {
        "summary": "analyses.summary",
        "check": "analyses.check",
        "serving": "analyses.serving",
        "device_times": "analyses.device_times",
        "blocking_calls": "analyses.runtime_calls",
        "counter_tracks": "analyses.counter_tracks",
        "launches_without_work": "analyses.runtime_calls",
        "get_counter_data_with_operators": "analyses.counters_by_operator",
        "CUDA_SASS_INSTRUCTION_COUNTER_FLOPS": "counters",
        "Summary": "analyses.summary",
        "Serving": "analyses.serving",
        "Verdict": "verdict.values",
        "AfterRemedies": "verdict.after",
        "Remedy": "verdict.findings",
        "Finding": "analyses.findings",
    },
    "Critical path and what-if": {
        "CriticalPath": "critical_path.path",
        "WhatIf": "critical_path.path",
        "Scale": "critical_path.changes",
        "Drop": "critical_path.changes",
        "Replace": "critical_path.changes",
        "Insert": "critical_path.changes",
        "RemoveWait": "critical_path.changes",
    },
    "Compare": {
        "diff": "analyses.diff",
        "diff_steps": "analyses.diff",
        "Diff": "analyses.diff",
    },
    "Several ranks": {
        "ranks": "analyses.ranks",
        "merge": "traces.merge",
        "dumps": "analyses.dumps",
        "ascend_ranks": "analyses.ascend_ranks",
        "Ranks": "analyses.ranks",
        "Dumps": "analyses.dumps",
    },
    "Other tools": {
        "link_execution_trace": "convert.execution_trace",
        "LinkedTrace": "convert.execution_trace",
        "Profiler": "mindspore.profiler",
    },
    # Each table is a function in a file of the same name.
    "Tables": {name: f"analyses.{name}" for name in questions()},
    "What tables with figures answer": {
        "Memory": "analyses.memory",
        "Mfu": "analyses.mfu",
        "Overlap": "analyses.overlap",
        "Roofline": "analyses.roofline",
    },
    "Errors": {
        "LongpoleError": "errors",
        "TraceError": "errors",
        "WindowError": "errors",
        "RanksError": "errors",
        "RecordingWarning": "errors",
        "PairError": "errors",
        "ResultsError": "errors",
        "DeviceError": "errors",
        "MissingDependencyError": "errors",
        "InternalError": "errors",
    },
}
"""Public names and the module of each, in the order of the documentation.

Keeps `import longpole` fast: a module is imported on first use. Type checkers read `__init__.pyi`,
which `tests/oracles/pages.py` writes from this list.
"""

_MODULES = {name: module for group in _GROUPS.values() for name, module in group.items()}
__all__ = list(_MODULES)


def _gated(found: object) -> object:
    from longpole.gate import gated

    return gated(found)


__getattr__, __dir__ = imported_on_use(__name__, _MODULES, _gated)
