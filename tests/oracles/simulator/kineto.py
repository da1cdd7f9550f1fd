"""Converts simulated events to the records that Kineto would write, with all arguments.

Records come with the metadata of processes and threads first.

One file: every kind of record stands beside the others.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypedDict

from .facts import N_PROCESSORS
from .program import Program, Stream
from .threads import FIRST_NS
from .timeline import AUTOGRAD_THREAD, MAIN_THREAD, Activity, Sync, Timeline

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from .machine import Machine
    from .timeline import Note

HOST_PROCESS = 31_415
_FIRST_CORRELATION = 117
_NO_STREAM = -1
_ALLOCATED_BEFORE = 1 << 30
_ANNOTATED = ("cpu_op", "user_annotation")

_CALL_NUMBERS = {
    "cudaMalloc": 20,
    "cudaFree": 22,
    "cudaMemcpy": 31,
    "cudaMemcpyAsync": 41,
    "cudaMemsetAsync": 51,
    "cudaStreamSynchronize": 131,
    "cudaEventRecord": 135,
    "cudaEventSynchronize": 137,
    "cudaEventQuery": 138,
    "cudaStreamWaitEvent": 147,
    "cudaDeviceSynchronize": 165,
    "cudaLaunchKernel": 211,
    "cudaSetDevice": 16,
    "cuLaunchKernel": 307,
    "cudaGraphLaunch": 311,
    "cudaStreamIsCapturing": 317,
    "cudaLaunchKernelExC": 430,
}


class Record(TypedDict, total=False):
    """One entry of `traceEvents`, with its times in nanoseconds."""

    ph: str
    cat: str
    name: str
    pid: int | str
    tid: int | str
    start_ns: int
    duration_ns: int
    id: int
    bp: str
    s: str
    args: dict[str, Any]


@dataclass(slots=True)
class Recording:
    """The records of a run, and where each activity stands among them."""

    records: list[Record] = field(default_factory=list)
    positions: dict[int, int] = field(default_factory=dict)

    def position(self, activity: Activity) -> int | None:
        """Return the position of an activity in `records`, or none if it was not recorded."""
        return self.positions.get(id(activity))


def record(
    program: Program, machine: Machine, timeline: Timeline, *, shapes: bool = False
) -> Recording:
    """Return the records of a run: metadata, threads, calls and devices, annotations, the rest."""
    return _Recorder(program, machine, timeline, shapes=shapes).run()


class _Recorder:
    """The state of one recording: the numbers that were given out so far."""

    def __init__(
        self, program: Program, machine: Machine, timeline: Timeline, *, shapes: bool
    ) -> None:
        self._program = program
        self._machine = machine
        self._timeline = timeline
        self._shapes = shapes
        self._recording = Recording()
        self._n_cpu_events = 0
        self._n_functions = 0
        self._python_ids: dict[int, int] = {}
        self._allocated: dict[int, int] = {}
        self._seen = [activity for activity in timeline.activities if activity.is_recorded]
        self._forward = _forward_operators(self._seen)

    def run(self) -> Recording:
        """Write everything down."""
        by_start = sorted(self._seen, key=lambda activity: activity.start.time_ns)
        self._write_all(_metadata(self._program, by_start))
        for activity in sorted(_of(by_start, *_ANNOTATED), key=_autograd_first):
            self._write_host(activity)
        for note in self._timeline.notes:
            self._write(self._memory(note))
        for activity in _of(by_start, "python_function"):
            self._write_function(activity)
        every = sorted(self._timeline.activities, key=lambda activity: activity.start.time_ns)
        for call in _of(every, "cuda_runtime", "cuda_driver"):
            self._write_call(call)
        for activity in _of(by_start, "user_annotation"):
            self._write_all(self._device_annotations(activity))
        self._write_all(_closing(by_start))
        return self._recording

    def _write(self, record: Record) -> None:
        self._recording.records.append(record)

    def _write_all(self, records: Iterable[Record]) -> None:
        self._recording.records.extend(records)

    def _write_activity(self, activity: Activity, args: dict[str, Any]) -> Record:
        self._recording.positions[id(activity)] = len(self._recording.records)
        entry = self._interval(activity, activity.name, args)
        self._write(entry)
        return entry

    def _interval(self, activity: Activity, name: str, args: dict[str, Any]) -> Record:
        start_ns, end_ns = self._stamps_ns(activity)
        pid, tid = _lane(activity.lane)
        return {
            "ph": "X",
            "cat": activity.category,
            "name": name,
            "pid": pid,
            "tid": tid,
            "start_ns": start_ns,
            "duration_ns": end_ns - start_ns,
            "args": args,
        }

    def _stamps_ns(self, activity: Activity) -> tuple[int, int]:
        """Return start and end as the clocks showed them."""
        start_ns, end_ns = activity.start.time_ns, activity.end.time_ns
        if activity.is_work:
            offset_ns = self._machine.clock_offset_ns(_lane(activity.lane)[0])
            offset_ns += self._machine.clock_jumped_ns(start_ns - FIRST_NS)
            return start_ns + offset_ns, end_ns + offset_ns
        return start_ns, end_ns

    # Host

    def _next_event_index(self) -> int:
        self._n_cpu_events += 1
        return self._n_cpu_events - 1

    def _write_host(self, activity: Activity) -> None:
        args: dict[str, Any] = {
            "External id": activity.external_id,
            "Record function id": activity.external_id,
        }
        if activity.sequence is not None:
            args["Sequence number"] = activity.sequence
            args["Fwd thread id"] = int(activity.lane == AUTOGRAD_THREAD)
        args |= self._host_args(activity)
        args["Ev Idx"] = self._next_event_index()
        entry = self._write_activity(activity, args)
        if activity.sequence is not None:
            self._write_all(self._gradient_flow(activity, entry))

    def _host_args(self, activity: Activity) -> dict[str, Any]:
        tensors = {"Concrete Inputs", "Input type", "Input Strides", "Input Dims"}
        return {
            key: value for key, value in activity.args.items() if self._shapes or key not in tensors
        }

    def _gradient_flow(self, activity: Activity, entry: Record) -> Iterator[Record]:
        """Yield the arrow between an operator and its gradient, at either end of it."""
        number = self._forward.get(activity.sequence or 0)
        if number is None or activity.name.startswith("autograd::"):
            return
        if activity.lane == MAIN_THREAD:
            yield _flow("s", "fwdbwd", number, entry)
        else:
            yield _flow("f", "fwdbwd", number, entry)

    def _memory(self, note: Note) -> Record:
        pid, tid = _lane(note.thread)
        allocated = self._allocated.get(note.device, _ALLOCATED_BEFORE) + note.bytes
        self._allocated[note.device] = allocated
        return {
            "ph": "i",
            "cat": "cpu_instant_event",
            "s": "t",
            "name": "[memory]",
            "pid": pid,
            "tid": tid,
            "start_ns": note.time_ns,
            "args": {
                "Total Reserved": 2 * _ALLOCATED_BEFORE,
                "Total Allocated": allocated,
                "Bytes": note.bytes,
                "Addr": 140_000_000_000_000 + abs(note.bytes),
                "Device Id": note.device,
                "Device Type": 1,
                "Ev Idx": self._next_event_index(),
            },
        }

    def _write_function(self, activity: Activity) -> None:
        self._n_functions += 1
        self._python_ids[id(activity)] = self._n_functions
        parent = activity.parent
        while parent is not None and parent.category != "python_function":
            parent = parent.parent
        args = {
            "Python parent id": None if parent is None else self._python_ids[id(parent)],
            "Python id": self._n_functions,
            "Ev Idx": self._next_event_index(),
        }
        self._write_activity(activity, args)

    # Calls and devices

    def _write_call(self, call: Activity) -> None:
        number = _FIRST_CORRELATION + call.correlation
        for work in call.works:
            if work.is_recorded:
                entry = self._write_activity(work, _work_args(work, number, call.args))
                self._write_all([_flow("f", "ac2g", number, entry)] if call.is_recorded else [])
        if not call.is_recorded:
            return
        if call.sync is not None:
            self._write(self._sync_record(call, call.sync, number))
        args = _external(call) | {"cbid": _CALL_NUMBERS.get(call.name, 1), "correlation": number}
        entry = self._write_activity(call, args)
        self._write(_flow("s" if call.works else "f", "ac2g", number, entry))

    def _sync_record(self, call: Activity, sync: Sync, number: int) -> Record:
        """Return what the device side notes of a call that synchronises."""
        stream = _NO_STREAM if sync.stream is None else sync.stream.number
        args = _external(call) | {"cuda_sync_kind": sync.kind}
        if sync.waits_on is not None:
            awaited, record_call = sync.waits_on
            args["wait_on_stream"] = awaited.number
            args["wait_on_cuda_event_record_corr_id"] = _FIRST_CORRELATION + record_call
            args["wait_on_cuda_event_id"] = sync.event
        args |= {"stream": stream, "correlation": number, "device": sync.device, "context": 1}
        entry = self._interval(call, sync.kind, args)
        margin_ns = self._margin_ns(entry["duration_ns"])
        entry["cat"] = "cuda_sync"
        entry["pid"], entry["tid"] = sync.device, stream
        entry["start_ns"] += margin_ns
        entry["duration_ns"] -= 2 * margin_ns
        return entry

    def _margin_ns(self, duration_ns: int) -> int:
        """Return how far inside its call a record lies."""
        quantum_ns = self._machine.quantum_ns
        return min(600 // quantum_ns, duration_ns // quantum_ns // 3) * quantum_ns

    def _device_annotations(self, annotation: Activity) -> Iterator[Record]:
        """Yield the label over the work of each stream that was launched under an annotation."""
        for stream, works in sorted(_works_under(annotation, self._timeline).items()):
            stamps = [self._stamps_ns(work) for work in works]
            start_ns = min(start for start, _ in stamps)
            pid, tid = _lane(stream)
            yield {
                "ph": "X",
                "cat": "gpu_user_annotation",
                "name": annotation.name,
                "pid": pid,
                "tid": tid,
                "start_ns": start_ns,
                "duration_ns": max(end for _, end in stamps) - start_ns,
                "args": {"External id": annotation.external_id},
            }


def _of(activities: list[Activity], *categories: str) -> list[Activity]:
    return [activity for activity in activities if activity.category in categories]


def _autograd_first(activity: Activity) -> int:
    return int(activity.lane != AUTOGRAD_THREAD)


def _lane(lane: int | Stream) -> tuple[int, int]:
    """Return process and thread as Kineto numbers them: a device is a process of its own."""
    if isinstance(lane, Stream):
        return lane
    return HOST_PROCESS, HOST_PROCESS + (0 if lane == MAIN_THREAD else 90 + lane)


def _external(activity: Activity) -> dict[str, Any]:
    return {"External id": activity.external_id} if activity.external_id else {}


def _flow(phase: str, name: str, number: int, entry: Record) -> Record:
    arrow: Record = {
        "ph": phase,
        "id": number,
        "pid": entry["pid"],
        "tid": entry["tid"],
        "start_ns": entry["start_ns"],
        "cat": name,
        "name": name,
    }
    if phase == "f":
        arrow["bp"] = "e"
    return arrow


def _forward_operators(activities: list[Activity]) -> dict[int, int]:
    """Return the number of the arrow for each sequence number that both sides have."""
    forward = {
        act.sequence for act in activities if act.sequence is not None and act.lane == MAIN_THREAD
    }
    gradient = {
        act.sequence
        for act in activities
        if act.sequence is not None and act.lane == AUTOGRAD_THREAD
    }
    return {sequence: number for number, sequence in enumerate(sorted(forward & gradient), 1)}


def _works_under(annotation: Activity, timeline: Timeline) -> dict[Stream, list[Activity]]:
    under: dict[Stream, list[Activity]] = {}
    for call in timeline.launches_between(annotation.start.time_ns, annotation.end.time_ns):
        for work in (work for work in call.works if work.is_recorded):
            under.setdefault(Stream(*_lane(work.lane)), []).append(work)
    return under


# Arguments of device work. What a kernel needs of the hardware depends on its name alone.


def _work_args(work: Activity, number: int, graph: Mapping[str, Any]) -> dict[str, Any]:
    device, stream = _lane(work.lane)
    where = {"device": device, "context": 1, "stream": stream, "correlation": number}
    if work.category != "kernel":
        return _external(work) | where | _transfer_args(work)
    node = {**graph, "graph node id": work.place.part} if graph else {}
    return (
        _external(work) | {"queued": 0} | where | _kernel_args(work.name) | dict(work.args) | node
    )


def _transfer_args(work: Activity) -> dict[str, Any]:
    duration_ns = work.end.time_ns - work.start.time_ns
    n_bytes = work.args["bytes"]
    return {"bytes": n_bytes, "memory bandwidth (GB/s)": n_bytes / max(duration_ns, 1)}


def _kernel_args(name: str) -> dict[str, Any]:
    """Return a launch configuration."""
    digest = zlib.crc32(name.encode())
    n_threads = (64, 128, 256, 512)[digest & 3]
    n_blocks = 1 + (digest >> 4) % 2_048
    return {
        "registers per thread": 16 + (digest >> 8) % 30 * 8,
        "shared memory": (digest >> 12) % 8 * 8_192,
        "blocks per SM": round(n_blocks / N_PROCESSORS, 6),
        "warps per SM": round(n_blocks * (n_threads // 32) / N_PROCESSORS, 6),
        "grid": [n_blocks, 1 + (digest >> 16) % 2, 1],
        "block": [n_threads, 1, 1],
        "est. achieved occupancy %": (digest >> 20) % 101,
    }


# Records that stand for no activity


def _metadata(program: Program, by_start: list[Activity]) -> Iterator[Record]:
    lanes = sorted({_lane(activity.lane) for activity in by_start})
    time_ns = by_start[0].start.time_ns if by_start else 0
    processes = [(HOST_PROCESS, "CPU", HOST_PROCESS)]
    processes += [
        (device, f"GPU {device}", 5_000_000 + device) for device in range(program.n_devices)
    ]
    for pid, label, index in processes:
        yield _meta("process_name", time_ns, pid, 0, {"name": "python"})
        yield _meta("process_labels", time_ns, pid, 0, {"labels": label})
        yield _meta("process_sort_index", time_ns, pid, 0, {"sort_index": index})
    for pid, tid in lanes:
        name = f"thread {tid} (python)" if pid == HOST_PROCESS else f"stream {tid} "
        yield _meta("thread_name", time_ns, pid, tid, {"name": name})
        yield _meta("thread_sort_index", time_ns, pid, tid, {"sort_index": tid})


def _closing(by_start: list[Activity]) -> Iterator[Record]:
    if not by_start:
        return
    first_ns = by_start[0].start.time_ns - 60_000
    last_ns = max(activity.end.time_ns for activity in by_start)
    yield {
        "ph": "X",
        "cat": "Trace",
        "name": "PyTorch Profiler (0)",
        "pid": "Spans",
        "tid": "PyTorch Profiler",
        "start_ns": first_ns,
        "duration_ns": last_ns + 100_000 - first_ns,
        "args": {"Op count": 0},
    }
    yield _meta("process_sort_index", first_ns, "Spans", 0, {"sort_index": 536_870_912})
    span = ("Traces", "Trace PyTorch Profiler")
    yield _instant("Iteration Start: PyTorch Profiler", first_ns, *span)
    yield _instant("Record Window End", last_ns + 120_000, "", "")


def _meta(name: str, time_ns: int, pid: int | str, tid: int, args: dict[str, Any]) -> Record:
    return {"ph": "M", "name": name, "start_ns": time_ns, "pid": pid, "tid": tid, "args": args}


def _instant(name: str, time_ns: int, pid: str, tid: str) -> Record:
    return {"ph": "i", "s": "g", "name": name, "pid": pid, "tid": tid, "start_ns": time_ns}
