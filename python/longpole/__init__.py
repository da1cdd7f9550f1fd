"""Find what a GPU program waits for.

Examples
--------
>>> import longpole
>>> trace = longpole.read_trace(b'{"traceEvents": [{"ph": "X", "cat": "kernel", "name": "gemm", '
...                             b'"pid": 0, "tid": 7, "ts": 1.5, "dur": 40}]}')
>>> trace.events.select("kind", "name", "start_ns", "duration_ns").row(0)
('kernel', 'gemm', 1500, 40000)
"""

from longpole.cli.process import is_command

if is_command():
    from longpole.cli.interrupts import delay_interrupts

    delay_interrupts()

from longpole.tables.questions import questions
from longpole.words.public_names import imported_on_use

_GROUPS = {
    "Record": {
        "record": "recording.recorder",
        "Recorder": "recording.recorder",
        "time_steps": "recording.step_timer",
        "StepTimer": "recording.step_timer",
    },
    "Read": {
        "read_trace": "formats.read",
        "read_traces": "jobs.joining",
        "read_dumps": "jobs.dump_set",
        "read_memory": "trace.allocations",
        "read_execution_trace": "formats.convert.execution_trace",
        "Trace": "trace.trace",
        "TraceSet": "jobs.trace_set",
        "DumpSet": "jobs.dump_set",
        "Allocations": "trace.allocations",
        "ExecutionTrace": "formats.convert.execution_trace",
    },
    "Ask": {
        "Question": "engine.question",
        "Answer": "answer.answer",
    },
    "Choose a window": {
        "choose_window": "engine.windows",
        "Window": "engine.windows",
    },
    "Ask about a trace": {
        "summary": "tables.summary",
        "check": "tables.check",
        "serving": "tables.serving",
        "device_times": "tables.device_times",
        "blocking_calls": "tables.runtime_calls",
        "counter_tracks": "tables.counter_tracks",
        "launches_without_work": "tables.runtime_calls",
        "get_counter_data_with_operators": "tables.counters",
        "CUDA_SASS_INSTRUCTION_COUNTER_FLOPS": "trace.counters",
        "Summary": "tables.summary",
        "Serving": "tables.served",
        "Verdict": "answer.values",
        "AfterRemedies": "answer.after",
        "Remedy": "answer.findings",
        "Finding": "tables.findings",
    },
    "Critical path and what-if": {
        "CriticalPath": "engine.critical_path.path",
        "WhatIf": "engine.critical_path.path",
        "Scale": "engine.critical_path.changes",
        "Drop": "engine.critical_path.changes",
        "Replace": "engine.critical_path.changes",
        "Insert": "engine.critical_path.changes",
        "RemoveWait": "engine.critical_path.changes",
    },
    "Compare": {
        "diff": "diffs",
        "diff_steps": "diffs",
        "Diff": "diffs",
    },
    "Several ranks": {
        "ranks": "jobs.ranks",
        "merge": "jobs.merge",
        "dumps": "jobs.dumps",
        "ascend_ranks": "tables.ascend_ranks",
        "Ranks": "jobs.ranks",
        "Dumps": "jobs.dumps",
    },
    "Other tools": {
        "link_execution_trace": "formats.convert.execution_trace",
        "LinkedTrace": "formats.convert.execution_trace",
        "Profiler": "formats.mindspore.profiler",
    },
    # Each table is a function in a file of the same name.
    "Tables": {name: f"tables.{name}" for name in questions()},
    "What tables with figures answer": {
        "Memory": "tables.memory",
        "Mfu": "tables.mfu",
        "Roofline": "tables.roofline",
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
    from longpole.tables.gate import gated

    return gated(found)


__getattr__, __dir__ = imported_on_use(__name__, _MODULES, _gated)
