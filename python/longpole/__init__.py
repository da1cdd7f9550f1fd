"""Find what a GPU program waits for.

Examples
--------
>>> import longpole
>>> trace = longpole.read_trace(b'{"traceEvents": [{"ph": "X", "cat": "kernel", "name": "gemm", '
...                             b'"pid": 0, "tid": 7, "ts": 1.5, "dur": 40}]}')
>>> trace.events.select("kind", "name", "start_ns", "duration_ns").row(0)
('kernel', 'gemm', 1500, 40000)
"""

from importlib import import_module
from typing import TYPE_CHECKING

from longpole.errors import (
    DeviceError,
    InternalError,
    LongpoleError,
    MissingDependencyError,
    PairError,
    ResultsError,
    TraceError,
    WindowError,
)
from longpole.read import read_trace
from longpole.trace import Trace
from longpole.windows import Window, choose_window

if TYPE_CHECKING:
    from longpole.analyses.blocking_calls import BlockingCall, blocking_calls
    from longpole.analyses.check import check
    from longpole.analyses.device_times import DeviceTime, device_times
    from longpole.analyses.findings import Finding
    from longpole.analyses.kernels import kernels
    from longpole.analyses.launches_without_work import launches_without_work
    from longpole.analyses.operators import OperatorTime, operators
    from longpole.analyses.overlap import Overlap, overlap
    from longpole.analyses.ranks import Ranks, ranks
    from longpole.analyses.summary import Summary, summary
    from longpole.convert.execution_trace import (
        ExecutionTrace,
        LinkedTrace,
        link_execution_trace,
        read_execution_trace,
    )
    from longpole.critical_path.changes import Drop, RemoveWait, Scale
    from longpole.critical_path.path import CriticalPath, WhatIf
    from longpole.traces.findings import RankFinding
    from longpole.traces.late_ranks import RankRemedy
    from longpole.traces.trace_set import TraceSet, read_traces
    from longpole.verdict.values import Remedy, Verdict

__all__ = [
    "BlockingCall",
    "CriticalPath",
    "DeviceError",
    "DeviceTime",
    "Drop",
    "ExecutionTrace",
    "Finding",
    "InternalError",
    "LinkedTrace",
    "LongpoleError",
    "MissingDependencyError",
    "OperatorTime",
    "Overlap",
    "PairError",
    "RankFinding",
    "RankRemedy",
    "Ranks",
    "Remedy",
    "RemoveWait",
    "ResultsError",
    "Scale",
    "Summary",
    "Trace",
    "TraceError",
    "TraceSet",
    "Verdict",
    "WhatIf",
    "Window",
    "WindowError",
    "blocking_calls",
    "check",
    "choose_window",
    "device_times",
    "kernels",
    "launches_without_work",
    "link_execution_trace",
    "operators",
    "overlap",
    "ranks",
    "read_execution_trace",
    "read_trace",
    "read_traces",
    "summary",
]

# `import longpole` must not wait for what answers questions. A function of `analyses`
# stands in the file of its name; only types need an entry here.
_MODULE_OF = {
    "BlockingCall": "analyses.blocking_calls",
    "CriticalPath": "critical_path.path",
    "DeviceTime": "analyses.device_times",
    "Drop": "critical_path.changes",
    "Finding": "analyses.findings",
    "OperatorTime": "analyses.operators",
    "Overlap": "analyses.overlap",
    "RankFinding": "traces.findings",
    "RankRemedy": "traces.late_ranks",
    "Ranks": "analyses.ranks",
    "Remedy": "verdict.values",
    "RemoveWait": "critical_path.changes",
    "Scale": "critical_path.changes",
    "Summary": "analyses.summary",
    "Verdict": "verdict.values",
    "WhatIf": "critical_path.path",
    **dict.fromkeys(("TraceSet", "read_traces"), "traces.trace_set"),
    **dict.fromkeys(
        ("ExecutionTrace", "LinkedTrace", "link_execution_trace", "read_execution_trace"),
        "convert.execution_trace",
    ),
}


def __getattr__(name: str) -> object:
    if name not in __all__:
        message = f"module 'longpole' has no attribute {name!r}"
        raise AttributeError(message)
    module = import_module(f"longpole.{_MODULE_OF.get(name, f'analyses.{name}')}")
    found = getattr(module, name)
    # Importing `analyses.check` does not bind `longpole.check`; keep what was found.
    globals()[name] = found
    return found
