"""Creates a Chrome trace for `read_trace` from a MindSpore profile without a timeline.

Operators of the host are `cpu_op`, kernels and copies `kernel`, `gpu_memcpy` and `gpu_memset`, and
steps are annotations `ProfilerStep#N`. MindSpore records no launch calls, so nothing is linked.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from functools import cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from longpole.formats.mindspore.executions import (
    LONGEST_NS,
    Executions,
    clock_offset_ns,
    read_activities,
    read_executions,
    read_kernels,
    read_task_times,
)
from longpole.formats.mindspore.findings import Findings, ProfileError
from longpole.formats.mindspore.host_info import HostInfo, read_host_info
from longpole.formats.mindspore.layouts import RankFiles, find_ranks
from longpole.formats.mindspore.step_trace import read_step_detail, read_steps
from longpole.formats.mindspore.steps import Step, enclosing_steps, inferred_steps

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from longpole.formats.mindspore.layouts import RankFiles

_HOST: Final = 11_000
_STEPS: Final = 100_000
_GPU_OPS: Final = 100_002
_EPOCH_NS: Final = 10**17
"""Larger timestamps are calendar times (from 1973 on); others count from the machine's start."""


class _Span(NamedTuple):
    """A span to write; sorted by start, longest first."""

    start_ns: int
    minus_duration_ns: int
    fields: str
    """The part of the JSON that all runs of an operator share."""

    def is_between(self, start_ns: int, end_ns: int) -> bool:
        """Whether it overlaps the span between two times."""
        return self.start_ns < end_ns and self.start_ns - self.minus_duration_ns > start_ns


def timeline_events(folder: str | os.PathLike[str], *, rank: int | None = None) -> bytes:
    """Create a Chrome trace of a MindSpore profile folder, in memory.

    Problems of the files follow the events, under `findings`.

    Parameters
    ----------
    folder
        The profile, in any layout.
    rank
        The rank; optional if the profile has only one.

    Raises
    ------
    ProfileError
        The folder has no MindSpore profile (`no_profile`), several ranks without a choice
        (`several_ranks`), not that rank (`no_such_rank`), or nothing with a time (`no_timeline`).
    OSError
        A file cannot be read.
    """
    return rank_events(_chosen(find_ranks(folder), rank))


def rank_events(files: RankFiles) -> bytes:
    """Create a Chrome trace of the files of one rank, in memory; see `timeline_events`."""
    return b"".join(rank_timeline(files, Findings()))


def _chosen(ranks: Sequence[RankFiles], rank: int | None) -> RankFiles:
    if rank is None and len(ranks) == 1:
        return ranks[0]
    found = next((files for files in ranks if files.rank == rank), None)
    if found is None:
        known = ", ".join(str(files.rank) for files in ranks)
        code = "several_ranks" if rank is None else "no_such_rank"
        message = f"the profile has the ranks {known}"
        hint = "name a file of one of them, or compare them with `longpole ranks`"
        raise ProfileError(ranks[0].folder, code, message, hint=hint)
    return found


def rank_timeline(
    files: RankFiles,
    findings: Findings,
    *,
    developer_rows: bool = True,
    between_ns: tuple[int, int] | None = None,
) -> Iterator[bytes]:
    """Return the trace of one rank in chunks, and add its problems to `findings`.

    With `between_ns`, only events that overlap the span between these two times.
    """
    spans = list(_device_spans(files, findings))
    spans += _host_spans(files, findings)
    host_file = files.get("host_info")
    if host_file is not None:
        host_info = read_host_info(host_file, developer_rows=developer_rows)
        findings.include(host_info.findings)
        if spans and not _is_calendar(spans[0].start_ns):
            findings.add("other_clock", host_file)
        else:
            spans += _stage_spans(host_info)
    if between_ns is not None:
        spans = [span for span in spans if span.is_between(*between_ns)]
    if not spans:
        message = f"rank {files.rank} has nothing with a time"
        raise ProfileError(files.folder, "no_timeline", message)
    return _written(spans, files, findings)


def host_info_trace(host_info: HostInfo) -> Iterator[bytes]:
    """Yield the trace of only a `host_info` file, with its points and open stages, in chunks."""
    yield b'{"schemaVersion":1,"profiler":"mindspore","traceEvents":[\n'
    for place, event in enumerate(host_info.events):
        text: dict[str, Any] = {
            "ph": event.phase,
            "cat": "cpu_op",
            "name": event.name,
            "pid": _whole(event.pid),
            "tid": _whole(event.tid),
            "ts": event.start_us,
        }
        if event.end_us is not None:
            text["dur"] = event.end_us - event.start_us
        if event.phase == "i":
            text["s"] = "t"
        text["args"] = {"module": event.module, "parent_pid": _whole(event.parent_pid)}
        yield (",\n" if place else "").encode() + json.dumps(text).encode()
    yield b"\n]}\n"


def _whole(text: str) -> int | str:
    return int(text) if text.isdecimal() else text


def _is_calendar(stamp_ns: int) -> bool:
    return stamp_ns > _EPOCH_NS


def _stage_spans(host_info: HostInfo) -> Iterator[_Span]:
    for event in host_info.events:
        if event.end_us is not None:
            args = {"module": event.module}
            place = (_whole(event.pid), _whole(event.tid))
            fields = _fields("cpu_op", event.name, *place, args)
            yield _Span(event.start_us * 1000, 1000 * (event.start_us - event.end_us), fields)


def _fields(category: str, name: str, pid: int | str, tid: int | str, args: dict[str, Any]) -> str:
    fields = {"cat": category, "name": name, "pid": pid, "tid": tid, "args": args}
    return json.dumps(fields, separators=(",", ":"))[1:-1]


def _host_spans(files: RankFiles, findings: Findings) -> Iterator[_Span]:
    """Yield the operators of the host, on the clock of the device if there is one."""
    path = files.get("cpu_op_execute_timestamp")
    if path is None:
        return
    runs = read_executions(path, findings)
    if files.get("gpu_op_execute_timestamp") is None:
        yield from _runs(runs, 0, 0)
        yield from _step_spans(inferred_steps(runs, runs.by_start()), runs, 0, inferred=True)
        return
    offset_ns = _offset_ns(runs, files, findings)
    if offset_ns is None:
        findings.add("other_clock", path)
    else:
        yield from _runs(runs, offset_ns, 0)


def _offset_ns(runs: Executions, files: RankFiles, findings: Findings) -> int | None:
    """Return the offset from host timestamps to the device's; None if unknown."""
    if runs.start_ns and _is_calendar(runs.start_ns[0]):
        return 0
    clocks = files.get("start_time")
    return clock_offset_ns(clocks, findings) if clocks is not None else None


def _device_spans(files: RankFiles, findings: Findings) -> Iterator[_Span]:
    path = files.get("gpu_op_execute_timestamp")
    if path is not None:
        runs = read_executions(path, findings)
        yield from _runs(runs, 0, _GPU_OPS)
        known = files.get("step_trace_profiling")
        steps = read_steps(known, findings).spans() if known else []
        chosen = steps or inferred_steps(runs, runs.by_start())
        yield from _step_spans(chosen, runs, _GPU_OPS, inferred=not steps)
    path = files.get("activity_execute_timestamp")
    if path is not None:
        yield from _activity_spans(path, files, findings)
    path = files.get("output_timeline_data")
    if path is not None:
        yield from _task_spans(path, files, findings)


def _task_spans(path: Path, files: RankFiles, findings: Findings) -> Iterator[_Span]:
    first_ns, last_ns = LONGEST_NS, -1
    for task in read_task_times(path, findings):
        args = {"device": files.rank, "stream": task.stream, "operator": task.operator}
        name = task.operator.rpartition("/")[2]
        fields = _fields("kernel", name, files.rank, task.stream, args)
        first_ns = min(first_ns, task.start_ns)
        last_ns = max(last_ns, task.start_ns + task.duration_ns)
        yield _Span(task.start_ns, -task.duration_ns, fields)
    detail = files.get("step_trace_raw_detail_time")
    if detail is not None:
        steps = read_step_detail(detail, findings).spans()
        # MindSpore keeps only the tasks of some steps: in the others the device would look idle.
        timed = [step for step in steps if step.start_ns < last_ns and step.end_ns > first_ns]
        if len(timed) < len(steps):
            left_out = f"{len(steps) - len(timed):,} of {len(steps):,}"
            findings.add("steps_without_tasks", detail, None, left_out)
        yield from _step_spans(timed, Executions(), 0)


def _runs(runs: Executions, offset_ns: int, first_thread: int) -> Iterator[_Span]:
    @cache
    def fields(operator: int, thread: int) -> str:
        full = runs.operators[operator]
        name = full.rpartition("/")[2]
        args = {"full_name": full, "type": name.partition("-")[0], "kind": runs.threads[thread]}
        return _fields("cpu_op", name, _HOST, first_thread + thread, args)

    for operator, thread, start_ns, duration_ns in runs.rows():
        yield _Span(start_ns + offset_ns, -duration_ns, fields(operator, thread))


def _step_spans(
    steps: Sequence[Step], runs: Executions, first_thread: int, *, inferred: bool = False
) -> Iterator[_Span]:
    """Yield steps on the thread of the operators, if there is only one and steps enclose them."""
    order = runs.by_start()
    enclosing = enclosing_steps(steps, runs, order) if len(runs.threads) == 1 else None
    thread = _STEPS if enclosing is None else first_thread
    steps = steps if enclosing is None else enclosing
    for step in steps:
        name, args = f"ProfilerStep#{step.number}", {"inferred": inferred}
        fields = _fields("user_annotation", name, _HOST, thread, args)
        yield _Span(step.start_ns, step.start_ns - step.end_ns, fields)


def _activity_spans(path: Path, files: RankFiles, findings: Findings) -> Iterator[_Span]:
    table = files.get("gpu_activity_data")
    kernels = read_kernels(table, findings) if table else []
    kinds = {kernel.name: kernel.kind for kernel in kernels}
    found = read_activities(path, findings)

    @cache
    def fields(operator: int, thread: int) -> str:
        name, stream = found.operators[operator], int(found.threads[thread])
        args: dict[str, Any] = {"device": files.rank, "stream": stream}
        if name in kinds:
            args["kind"] = kinds[name]
        return _fields(_category(name, kinds.get(name, "")), name, files.rank, stream, args)

    for operator, thread, start_ns, duration_ns in found.rows():
        yield _Span(start_ns, -duration_ns, fields(operator, thread))


def _category(name: str, kind: str) -> str:
    words = f"{name} {kind}".lower()
    if "memcpy" in words:
        return "gpu_memcpy"
    return "gpu_memset" if "memset" in words else "kernel"


def _written(spans: list[_Span], files: RankFiles, findings: Findings) -> Iterator[bytes]:
    spans.sort()
    base_ns = spans[0].start_ns
    if spans[-1].start_ns - base_ns > LONGEST_NS:
        findings.add("far_apart", files.folder)
    head = f'"baseTimeNanoseconds":{base_ns},"distributedInfo":{{"rank":{files.rank}}}'
    head = f'"profiler":"mindspore",{head}'
    yield f'{{"schemaVersion":1,"displayTimeUnit":"ns",{head},"traceEvents":[\n'.encode()
    yield from (f"{json.dumps(event)},\n".encode() for event in _names(files.rank))
    for place, (start_ns, minus_duration_ns, fields) in enumerate(spans):
        times = f'"ts":{_us(start_ns - base_ns)},"dur":{_us(-minus_duration_ns)}'
        yield f'{"," if place else ""}{{"ph":"X",{fields},{times}}}\n'.encode()
    found = [asdict(finding) for finding in findings.all()]
    yield f'],"findings":{json.dumps(found)}}}\n'.encode()


def _names(device: int) -> Iterator[dict[str, Any]]:
    for pid, name in ((_HOST, "MindSpore host"), (device, f"device {device}")):
        yield {"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "args": {"name": name}}
    for tid, name in ((_GPU_OPS, "GpuOps"), (_STEPS, "Steps")):
        yield {"ph": "M", "name": "thread_name", "pid": _HOST, "tid": tid, "args": {"name": name}}


def _us(time_ns: int) -> str:
    return f"{time_ns // 1000}.{time_ns % 1000:03d}"
