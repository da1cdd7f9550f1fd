"""The first part of a report on one trace: its figures, where the time went, what to change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from longpole.answer.blocks import beside_remedies, rest_of, with_gaps
from longpole.engine.recording_cost import unused_timings
from longpole.plot.step_lanes import device_parts, step_columns
from longpole.report.blocks import Bar, Notes, Sentence, color_of
from longpole.report.overview import Interval, Intervals, Stack, Tile, Tiles
from longpole.report.paths import kinds_chart
from longpole.report.sections import Section
from longpole.words.wording import count, duration, memory_size, share, short_name

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Sequence

    from longpole.answer.answer import Answer
    from longpole.answer.findings import Findings, PlanLine, Remedy
    from longpole.engine.critical_path.path import CriticalPath
    from longpole.engine.windows import Window
    from longpole.report.sections import Part
    from longpole.tables.device_times import DeviceTime
    from longpole.tables.memory import Memory
    from longpole.tables.mfu import Mfu
    from longpole.tables.roofline import Roofline
    from longpole.tables.summary import Summary
    from longpole.trace.trace import Trace

    Told = PlanLine | Remedy

_MOST_DEVICES: Final = 4

# If less than this share of the kernel time has known work, the utilisation is not meaningful.
_LEAST_KNOWN: Final = 0.5
_ALL: Final = 0.99


def overview(
    trace: Trace,
    found: Summary,
    path: CriticalPath,
    *,
    answer: Answer | None = None,
    mfu: Mfu | None = None,
    roofline: Roofline | None = None,
    memory: Memory | None = None,
    prefix: str = "",
    step_name: str | None = None,
) -> list[Part]:
    """Return the first screen of a report: what is predicted, then what was recorded.

    `answer` is the one that predicts, at other times than those of `trace` if recording cost time;
    `prefix` is that of the keys of sections.
    """
    verdict = found.verdict
    steps = step_columns(trace, found.window, step_name)
    shown = [
        *_step_tile(found),
        *_busy_tile(found),
        *_speed_tiles(mfu, roofline),
        *_communication_tile(found),
        *_memory_tile(memory),
    ]
    predicted = [*_program_tile(found), *_limit_tile(verdict)]
    gains = gain_parts(trace, answer, found, f"{prefix}more-remedies")
    facts: list[Part] = [
        Tiles(shown),
        *device_stacks(found.devices, found.window),
        *([steps] if steps else []),
        path_stack(path, _name(found.window)),
    ]
    return [
        Sentence(verdict.sentence),
        *([Tiles(predicted)] if predicted else []),
        *gains,
        Section(f"{prefix}as-recorded", "As recorded", facts),
    ]


def device_stacks(devices: Sequence[DeviceTime], window: Window) -> list[Stack]:
    """Divide the window of the busiest devices into work and the causes of idle time."""
    busiest = sorted(devices, key=lambda device: -device.whole.busy_ns)
    return [_device_stack(device, window) for device in busiest[:_MOST_DEVICES]]


def _device_stack(device: DeviceTime, window: Window) -> Stack:
    whole_ns = window.duration_ns
    bars = [
        Bar(time_ns / whole_ns, duration(time_ns), label, color_of(kind))
        for time_ns, kind, label in device_parts(device)
    ]
    name = f" ({short_name(device.name, 30)})" if device.name else ""
    whole = f"{_name(window)}, {duration(whole_ns)}"
    return Stack(f"{_device(device).capitalize()}{name}: what it did in {whole}", bars)


def path_stack(path: CriticalPath, name: str) -> Stack:
    """Divide the critical path by kind."""
    label = f"Critical path of {name}: what the end of its {duration(path.length_ns)} waited for"
    return Stack(label, kinds_chart(path).bars)


def gain_parts(trace: Trace, answer: Answer | None, found: Summary, key: str) -> Iterator[Part]:
    """Show what to do: the plan as intervals, then the rest of the verdict."""
    verdict = found.verdict
    lines, others = verdict.plan.lines, rest_of(verdict)
    if lines:
        yield _intervals(trace, answer, lines, found.window)
    yield from map(Sentence, filter(None, (verdict.plan.sentence, verdict.plan.obstacle)))
    more = beside_remedies(verdict)
    if more:
        yield Notes(more)
    if others:
        title = count(len(others), "more remedy", "more remedies")
        rows = _intervals(trace, answer, others, found.window)
        yield Section(key, title, [rows], is_folded=True)


def _intervals(
    trace: Trace, answer: Answer | None, remedies: Sequence[Told], window: Window
) -> Intervals:
    seen = _in_window(trace, [event for remedy in remedies for event in remedy.events], window)
    return Intervals([_interval(remedy, seen, answer, window) for remedy in remedies])


def _interval(
    remedy: Told, seen: Container[int], answer: Answer | None, window: Window
) -> Interval:
    """Return the interval of a remedy, with its first event.

    If that event is outside the window, also the longest part of a thread in the window that the
    remedy changes.
    """
    low, high, words = remedy.saves
    evidence = f": {remedy.evidence}" if remedy.evidence else ""
    event = next(iter(remedy.events), None)
    is_drawn = event is None or event in seen
    time_range = None if is_drawn else _time_range(remedy, answer, window)
    return Interval(f"{remedy.advice}{evidence}.", low, high, words, event, time_range)


def _time_range(remedy: Told, answer: Answer | None, window: Window) -> tuple[int, int] | None:
    """Return start and length, as recorded, of the longest part of the window that changes."""
    within = None if answer is None else answer.window
    if answer is None or within is None:
        return None
    parts = [
        (lane, max(start_ns, within.start_ns), min(end_ns, within.end_ns))
        for change in remedy.changes
        for lane, start_ns, end_ns in getattr(change, "time_ranges", None) or ()
    ]
    lane, *times = max(parts, key=lambda part: part[2] - part[1], default=(0, 0, 0))
    if times[1] <= times[0]:
        return None
    program = cast("Trace", answer.trace)
    start_ns, end_ns = program.core.recorded_times(lane, (times[0], times[1]))
    return start_ns - window.start_ns, end_ns - start_ns


def _in_window(trace: Trace, events: Sequence[int], window: Window) -> Container[int]:
    """Return the events that ran in a window."""
    chosen = trace.events.select("event", "start_ns", "duration_ns")[list(events)]
    return window.clip(chosen)["event"].to_list()


def tiles(rows: Iterable[tuple[str, str | None, str]]) -> Tiles:
    """Create tiles of labels, values and notes; an unknown figure has no tile."""
    return Tiles(
        [Tile(label, value, [note] if note else []) for label, value, note in rows if value]
    )


def _step_tile(found: Summary) -> Iterator[Tile]:
    window = found.window
    is_whole = window.kind == "trace"
    notes = [window.reason if is_whole else f"{window.name}: {window.reason}"]
    notes += with_gaps(found.verdict, window.duration_ns)
    yield Tile(_time_of(found), duration(window.duration_ns), notes)


def _time_of(found: Summary) -> str:
    window = found.window
    return "Whole trace" if window.kind == "trace" else f"{window.noun.capitalize()} time"


def _program_tile(found: Summary) -> Iterator[Tile]:
    """Show the length without the profiler, if that is known."""
    cost = found.recording_cost
    if cost is None or cost["status"] == "unknown":
        return
    length_ns, notes = found.verdict.window.length_ns, unused_timings(cost)
    least_ns, most_ns = cost["least_step_ns"] or 0, cost["most_step_ns"] or 0
    if length_ns == cost["step_ns"] and least_ns < most_ns:
        notes = [f"{cost['status']}: {duration(least_ns)} to {duration(most_ns)}", *notes]
    yield Tile(f"{_time_of(found)} without the profiler", duration(length_ns), notes)


def _busy_tile(found: Summary) -> Iterator[Tile]:
    if not found.devices:
        return
    devices = sorted(found.devices, key=lambda device: -device.whole.busy_ns)
    whole_ns = found.window.duration_ns
    busiest, idlest = devices[0], devices[-1]
    kernels = f"kernels {share(busiest.whole.compute_ns / whole_ns)}"
    notes = [f"{_device(busiest)}, {kernels}"]
    if len(devices) > 1:
        least = f"{_device(idlest)} {share(idlest.whole.busy_ns / whole_ns)}"
        notes = [f"{_device(busiest)} of {len(devices)}, {kernels}", f"least: {least}"]
    yield Tile("Device busy", share(busiest.whole.busy_ns / whole_ns), notes)


def _limit_tile(verdict: Findings) -> Iterator[Tile]:
    if verdict.limited_by is not None:
        value, note = verdict.limited_by
        yield Tile("Limited by", value, [note])


def _speed_tiles(mfu: Mfu | None, roofline: Roofline | None) -> list[Tile]:
    """Show the MFU or, if it is unknown, how close kernels come to the roofline."""
    return _mfu_tiles(mfu) or _roofline_tiles(roofline)


def _mfu_tiles(mfu: Mfu | None) -> list[Tile]:
    if mfu is None or mfu.mfu is None or not mfu.kernel_ns:
        return []
    known = 1 - (mfu.unknown_ns + mfu.without_formula_ns) / mfu.kernel_ns
    notes = ["model FLOPs over those that the peak allows", *_of_kernels(known)]
    return [Tile("MFU", share(mfu.mfu), notes)] if known >= _LEAST_KNOWN else []


def _roofline_tiles(roofline: Roofline | None) -> list[Tile]:
    if roofline is None or not roofline.kernel_ns:
        return []
    rows = roofline.rows.drop_nulls("roof_ns")
    known_ns, roof_ns = (int(rows[name].sum()) for name in ("kernel_ns", "roof_ns"))
    known = known_ns / roofline.kernel_ns
    notes = ["least possible time of kernels over theirs", *_of_kernels(known)]
    return [Tile("Roofline", share(roof_ns / known_ns), notes)] if known >= _LEAST_KNOWN else []


def _of_kernels(known: float) -> list[str]:
    """Return the share of the kernels that a value covers, as a note; empty for all kernels."""
    return [f"known for {share(known)} of the kernel time"] if known < _ALL else []


def _communication_tile(found: Summary) -> Iterator[Tile]:
    """Show the exposed communication of the device that has most of it."""
    most = max(found.devices, key=lambda it: it.whole.communication_total_ns, default=None)
    if most is None or not most.whole.communication_total_ns:
        return
    exposed_ns, total_ns = most.whole.communication_ns, most.whole.communication_total_ns
    of = f"of {duration(total_ns)} communication on {_device(most)}"
    yield Tile("Exposed communication", duration(exposed_ns), [of])


def _memory_tile(memory: Memory | None) -> Iterator[Tile]:
    if memory is None or memory.devices.is_empty():
        return
    most = memory.devices.sort("peak_bytes", descending=True).row(0, named=True)
    notes = [f"allocated on {most['device']}, in the whole recording"]
    yield Tile("Memory peak", memory_size(most["peak_bytes"]), notes)


def _name(window: Window) -> str:
    """Return the window as part of a sentence."""
    return f"the {window.name}" if window.kind == "trace" else window.name


def _device(device: DeviceTime) -> str:
    return "device" if device.device is None else f"device {device.device}"
