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

from importlib import import_module
from typing import TYPE_CHECKING

from longpole.analyses.catalogue import questions
from longpole.errors import DeviceError as DeviceError
from longpole.errors import InternalError as InternalError
from longpole.errors import LongpoleError as LongpoleError
from longpole.errors import MissingDependencyError as MissingDependencyError
from longpole.errors import PairError as PairError
from longpole.errors import RanksError as RanksError
from longpole.errors import RecordingWarning as RecordingWarning
from longpole.errors import ResultsError as ResultsError
from longpole.errors import TraceError as TraceError
from longpole.errors import WindowError as WindowError
from longpole.read import read_trace as read_trace
from longpole.trace import Trace as Trace
from longpole.windows import Window as Window

if TYPE_CHECKING:
    from longpole.allocations import Allocations as Allocations
    from longpole.allocations import read_memory as read_memory
    from longpole.analyses.activities import activities as activities
    from longpole.analyses.activity_types import activity_types as activity_types
    from longpole.analyses.annotated_kernels import annotated_kernels as annotated_kernels
    from longpole.analyses.annotation_times import annotation_times as annotation_times
    from longpole.analyses.ascend_overlap import ascend_overlap as ascend_overlap
    from longpole.analyses.ascend_ranks import ascend_ranks as ascend_ranks
    from longpole.analyses.blocking_calls import blocking_calls as blocking_calls
    from longpole.analyses.breakdown import breakdown as breakdown
    from longpole.analyses.check import check as check
    from longpole.analyses.collective_waits import collective_waits as collective_waits
    from longpole.analyses.communication import communication as communication
    from longpole.analyses.communication_links import communication_links as communication_links
    from longpole.analyses.copy_bandwidth import copy_bandwidth as copy_bandwidth
    from longpole.analyses.copy_summary import copy_summary as copy_summary
    from longpole.analyses.counter_tracks import counter_tracks as counter_tracks
    from longpole.analyses.counters_by_operator import counters_by_operator as counters_by_operator
    from longpole.analyses.counters_by_operator import (
        get_counter_data_with_operators as get_counter_data_with_operators,
    )
    from longpole.analyses.device_times import device_times as device_times
    from longpole.analyses.diff import Diff as Diff
    from longpole.analyses.diff import diff as diff
    from longpole.analyses.diff import diff_steps as diff_steps
    from longpole.analyses.dumps import Dumps as Dumps
    from longpole.analyses.dumps import dumps as dumps
    from longpole.analyses.events import events as events
    from longpole.analyses.findings import Finding as Finding
    from longpole.analyses.full_queue import full_queue as full_queue
    from longpole.analyses.functions import functions as functions
    from longpole.analyses.graph_kernels import graph_kernels as graph_kernels
    from longpole.analyses.idle_time import idle_time as idle_time
    from longpole.analyses.iterations import iterations as iterations
    from longpole.analyses.kernel_gains import kernel_gains as kernel_gains
    from longpole.analyses.kernel_sequences import kernel_sequences as kernel_sequences
    from longpole.analyses.kernels import kernels as kernels
    from longpole.analyses.launch_summary import launch_summary as launch_summary
    from longpole.analyses.launch_times import launch_times as launch_times
    from longpole.analyses.launches_without_work import (
        launches_without_work as launches_without_work,
    )
    from longpole.analyses.measured_work import measured_work as measured_work
    from longpole.analyses.memory import Memory as Memory
    from longpole.analyses.memory import memory as memory
    from longpole.analyses.memory_churn import memory_churn as memory_churn
    from longpole.analyses.memory_curve import memory_curve as memory_curve
    from longpole.analyses.mfu import Mfu as Mfu
    from longpole.analyses.mfu import mfu as mfu
    from longpole.analyses.modules import modules as modules
    from longpole.analyses.operator_kernels import operator_kernels as operator_kernels
    from longpole.analyses.operators import operators as operators
    from longpole.analyses.overlap import Overlap as Overlap
    from longpole.analyses.overlap import overlap as overlap
    from longpole.analyses.queue_length import queue_length as queue_length
    from longpole.analyses.queue_summary import queue_summary as queue_summary
    from longpole.analyses.ranks import Ranks as Ranks
    from longpole.analyses.ranks import ranks as ranks
    from longpole.analyses.roofline import Roofline as Roofline
    from longpole.analyses.roofline import roofline as roofline
    from longpole.analyses.serving import Serving as Serving
    from longpole.analyses.serving import serving as serving
    from longpole.analyses.steps import steps as steps
    from longpole.analyses.summary import Summary as Summary
    from longpole.analyses.summary import summary as summary
    from longpole.convert.execution_trace import ExecutionTrace as ExecutionTrace
    from longpole.convert.execution_trace import LinkedTrace as LinkedTrace
    from longpole.convert.execution_trace import link_execution_trace as link_execution_trace
    from longpole.convert.execution_trace import read_execution_trace as read_execution_trace
    from longpole.counters import (
        CUDA_SASS_INSTRUCTION_COUNTER_FLOPS as CUDA_SASS_INSTRUCTION_COUNTER_FLOPS,
    )
    from longpole.critical_path.changes import Drop as Drop
    from longpole.critical_path.changes import Insert as Insert
    from longpole.critical_path.changes import RemoveWait as RemoveWait
    from longpole.critical_path.changes import Replace as Replace
    from longpole.critical_path.changes import Scale as Scale
    from longpole.critical_path.path import CriticalPath as CriticalPath
    from longpole.critical_path.path import WhatIf as WhatIf
    from longpole.mindspore.profiler import Profiler as Profiler
    from longpole.recorder import Recorder as Recorder
    from longpole.recorder import record as record
    from longpole.traces.dump_set import DumpSet as DumpSet
    from longpole.traces.dump_set import read_dumps as read_dumps
    from longpole.traces.joining import read_traces as read_traces
    from longpole.traces.merge import merge as merge
    from longpole.traces.trace_set import TraceSet as TraceSet
    from longpole.verdict.findings import Remedy as Remedy
    from longpole.verdict.values import Verdict as Verdict
    from longpole.windows import choose_window as choose_window

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
        "blocking_calls": "analyses.blocking_calls",
        "counter_tracks": "analyses.counter_tracks",
        "launches_without_work": "analyses.launches_without_work",
        "get_counter_data_with_operators": "analyses.counters_by_operator",
        "CUDA_SASS_INSTRUCTION_COUNTER_FLOPS": "counters",
        "Summary": "analyses.summary",
        "Serving": "analyses.serving",
        "Verdict": "verdict.values",
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
    # Each table is a function in a file of the same name, found there.
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

Keeps `import longpole` fast: a module is imported on first use.
"""

_MODULES = {name: module for group in _GROUPS.values() for name, module in group.items()}
__all__ = list(_MODULES)


def __getattr__(name: str) -> object:
    if name not in __all__:
        message = f"module 'longpole' has no attribute {name!r}"
        raise AttributeError(message)
    from longpole.gate import gated

    module = import_module(f"longpole.{_MODULES[name]}")
    found = gated(getattr(module, name))
    # Importing `analyses.check` must not bind `longpole.check`: keep the function.
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
