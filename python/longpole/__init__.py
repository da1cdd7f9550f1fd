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
    RanksError,
    ResultsError,
    TraceError,
    WindowError,
)
from longpole.read import read_trace
from longpole.trace import Trace
from longpole.windows import Window

if TYPE_CHECKING:
    from longpole.allocations import Allocations, read_memory
    from longpole.analyses.activities import activities
    from longpole.analyses.activity_types import activity_types
    from longpole.analyses.annotated_kernels import annotated_kernels
    from longpole.analyses.annotation_times import annotation_times
    from longpole.analyses.ascend_overlap import ascend_overlap
    from longpole.analyses.ascend_ranks import ascend_ranks
    from longpole.analyses.blocking_calls import BlockingCall, blocking_calls
    from longpole.analyses.breakdown import breakdown
    from longpole.analyses.by_name import OperatorTime
    from longpole.analyses.check import check
    from longpole.analyses.collective_waits import collective_waits
    from longpole.analyses.communication import communication
    from longpole.analyses.communication_links import communication_links
    from longpole.analyses.copy_bandwidth import copy_bandwidth
    from longpole.analyses.copy_summary import copy_summary
    from longpole.analyses.counter_tracks import counter_tracks
    from longpole.analyses.counters_by_operator import (
        counters_by_operator,
        get_counter_data_with_operators,
    )
    from longpole.analyses.device_times import DeviceTime, device_times
    from longpole.analyses.diff import Change, Diff, DiffSide, diff, diff_steps
    from longpole.analyses.dumps import Dumps, dumps
    from longpole.analyses.events import events
    from longpole.analyses.findings import Finding
    from longpole.analyses.frame_times import FrameTimes
    from longpole.analyses.full_queue import full_queue
    from longpole.analyses.functions import functions
    from longpole.analyses.graph_kernels import graph_kernels
    from longpole.analyses.idle_time import idle_time
    from longpole.analyses.kernel_sequences import kernel_sequences
    from longpole.analyses.kernels import kernels
    from longpole.analyses.launch_summary import launch_summary
    from longpole.analyses.launch_times import launch_times
    from longpole.analyses.launches_without_work import launches_without_work
    from longpole.analyses.measured_work import measured_work
    from longpole.analyses.memory import Memory, memory
    from longpole.analyses.memory_churn import memory_churn
    from longpole.analyses.memory_curve import memory_curve
    from longpole.analyses.mfu import Mfu, mfu
    from longpole.analyses.modules import modules
    from longpole.analyses.operator_kernels import operator_kernels
    from longpole.analyses.operators import operators
    from longpole.analyses.overlap import Overlap, overlap
    from longpole.analyses.queue_length import queue_length
    from longpole.analyses.queue_summary import queue_summary
    from longpole.analyses.ranks import Ranks, ranks
    from longpole.analyses.roofline import Roofline, roofline
    from longpole.analyses.steps import steps
    from longpole.analyses.summary import Summary, summary
    from longpole.convert.execution_trace import (
        ExecutionTrace,
        LinkedTrace,
        link_execution_trace,
        read_execution_trace,
    )
    from longpole.counters import CUDA_SASS_INSTRUCTION_COUNTER_FLOPS
    from longpole.critical_path.changes import Drop, RemoveWait, Scale
    from longpole.critical_path.path import CriticalPath, WhatIf
    from longpole.mindspore.profiler import Profiler
    from longpole.traces.dump_set import DumpSet, OpenCall, read_dumps
    from longpole.traces.findings import RankFinding
    from longpole.traces.joining import read_traces
    from longpole.traces.late_ranks import RankRemedy
    from longpole.traces.merge import Merged, merge
    from longpole.traces.trace_set import TraceSet
    from longpole.verdict.values import Remedy, Verdict
    from longpole.windows import choose_window

__all__ = [
    "CUDA_SASS_INSTRUCTION_COUNTER_FLOPS",
    "Allocations",
    "BlockingCall",
    "Change",
    "CriticalPath",
    "DeviceError",
    "DeviceTime",
    "Diff",
    "DiffSide",
    "Drop",
    "DumpSet",
    "Dumps",
    "ExecutionTrace",
    "Finding",
    "FrameTimes",
    "InternalError",
    "LinkedTrace",
    "LongpoleError",
    "Memory",
    "Merged",
    "Mfu",
    "MissingDependencyError",
    "OpenCall",
    "OperatorTime",
    "Overlap",
    "PairError",
    "Profiler",
    "RankFinding",
    "RankRemedy",
    "Ranks",
    "RanksError",
    "Remedy",
    "RemoveWait",
    "ResultsError",
    "Roofline",
    "Scale",
    "Summary",
    "Trace",
    "TraceError",
    "TraceSet",
    "Verdict",
    "WhatIf",
    "Window",
    "WindowError",
    "activities",
    "activity_types",
    "annotated_kernels",
    "annotation_times",
    "ascend_overlap",
    "ascend_ranks",
    "blocking_calls",
    "breakdown",
    "check",
    "choose_window",
    "collective_waits",
    "communication",
    "communication_links",
    "copy_bandwidth",
    "copy_summary",
    "counter_tracks",
    "counters_by_operator",
    "device_times",
    "diff",
    "diff_steps",
    "dumps",
    "events",
    "full_queue",
    "functions",
    "get_counter_data_with_operators",
    "graph_kernels",
    "idle_time",
    "kernel_sequences",
    "kernels",
    "launch_summary",
    "launch_times",
    "launches_without_work",
    "link_execution_trace",
    "measured_work",
    "memory",
    "memory_churn",
    "memory_curve",
    "merge",
    "mfu",
    "modules",
    "operator_kernels",
    "operators",
    "overlap",
    "queue_length",
    "queue_summary",
    "ranks",
    "read_dumps",
    "read_execution_trace",
    "read_memory",
    "read_trace",
    "read_traces",
    "roofline",
    "steps",
    "summary",
]

# `import longpole` must not wait for what answers questions. A function of `analyses`
# stands in the file of its name; only types need an entry here.
_MODULE_OF = {
    "Allocations": "allocations",
    "CUDA_SASS_INSTRUCTION_COUNTER_FLOPS": "counters",
    "BlockingCall": "analyses.blocking_calls",
    "CriticalPath": "critical_path.path",
    "DeviceTime": "analyses.device_times",
    "Drop": "critical_path.changes",
    "Finding": "analyses.findings",
    "FrameTimes": "analyses.frame_times",
    "Memory": "analyses.memory",
    "Mfu": "analyses.mfu",
    "OperatorTime": "analyses.by_name",
    "Overlap": "analyses.overlap",
    "Profiler": "mindspore.profiler",
    "RankFinding": "traces.findings",
    "RankRemedy": "traces.late_ranks",
    "Ranks": "analyses.ranks",
    "Remedy": "verdict.values",
    "RemoveWait": "critical_path.changes",
    "Roofline": "analyses.roofline",
    "Scale": "critical_path.changes",
    "Summary": "analyses.summary",
    "read_memory": "allocations",
    "Verdict": "verdict.values",
    "WhatIf": "critical_path.path",
    "Dumps": "analyses.dumps",
    **dict.fromkeys(("DumpSet", "OpenCall", "read_dumps"), "traces.dump_set"),
    **dict.fromkeys(("Merged", "merge"), "traces.merge"),
    "TraceSet": "traces.trace_set",
    "choose_window": "windows",
    "read_traces": "traces.joining",
    **dict.fromkeys(("Change", "Diff", "DiffSide", "diff_steps"), "analyses.diff"),
    "get_counter_data_with_operators": "analyses.counters_by_operator",
    **dict.fromkeys(
        ("ExecutionTrace", "LinkedTrace", "link_execution_trace", "read_execution_trace"),
        "convert.execution_trace",
    ),
}


def __getattr__(name: str) -> object:
    if name not in __all__:
        message = f"module 'longpole' has no attribute {name!r}"
        raise AttributeError(message)
    from longpole.gate import gated

    module = import_module(f"longpole.{_MODULE_OF.get(name, f'analyses.{name}')}")
    found = gated(getattr(module, name))
    # Importing `analyses.check` does not bind `longpole.check`; keep what was found.
    globals()[name] = found
    return found
