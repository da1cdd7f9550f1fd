"""Draws steps as lanes or columns: the length of each, and what the busiest device did in it."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from statistics import median
from typing import TYPE_CHECKING, Final

from longpole.engine.windows import Window
from longpole.plot.layout import Layout
from longpole.report.blocks import Bar, color_of
from longpole.report.overview import Columns, Stack
from longpole.rows.frames import frame_of
from longpole.tables.device_times import device_times
from longpole.words.wording import count, duration

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from longpole.plot.layout import Span
    from longpole.report.lanes import Lanes
    from longpole.tables.device_times import DeviceTime
    from longpole.trace.trace import Trace

Part = tuple[int, str, str]
"""Time in ns, kind, and label."""

_BUSY: Final = (
    ("compute_ns", "kernel", "kernels"),
    ("communication_ns", "communication", "communication (not hidden by kernels)"),
    ("copy_ns", "copy", "memcpy and memset (not hidden by kernels)"),
)
_IDLE: Final = (
    ("waiting_for_launch_ns", "waiting for launch", "idle, waiting for the host to launch"),
    ("between_activities_ns", "idle", "idle between launched activities (under 30 µs)"),
    ("other_wait_ns", "waiting", "idle, launched work waits (30 µs or more)"),
    ("unlinked_ns", "unknown cause", "idle, cause unknown (launch not recorded)"),
    ("after_last_ns", "idle", "idle after the last activity"),
)


def device_parts(device: DeviceTime) -> list[Part]:
    """Divide the window of a device into the parts that took time."""
    times = [
        *((getattr(device.whole, name), kind, label) for name, kind, label in _BUSY),
        *((getattr(device.idle, name) or 0, kind, label) for name, kind, label in _IDLE),
    ]
    return [part for part in times if part[0]]


# For each step, all GPU activities are read twice.
_MOST_STEPS: Final = 24
_FAR_LONGER: Final = 3


@dataclass(frozen=True, slots=True)
class _Step:
    """A step with its length and its parts."""

    number: int
    length_ns: int
    parts: Sequence[Part]
    is_cut: bool


@dataclass(frozen=True, slots=True)
class _Steps:
    """The steps that are drawn, in time order, on an axis of `longest_ns`."""

    drawn: Sequence[_Step]
    longest_ns: int
    label: str

    @property
    def n_cut(self) -> int:
        """Return how many steps are longer than the axis."""
        return sum(step.is_cut for step in self.drawn)


def step_lanes(trace: Trace) -> Lanes | None:
    """Lay out the steps, the longest if there are many; None for fewer than two."""
    steps = _steps(trace)
    if steps is None:
        return None
    layout = Layout()
    for step in steps.drawn:
        name = f"step {step.number}"
        label = f"{name}, {duration(step.length_ns)}, cut off" if step.is_cut else name
        layout.add(label, _spans(_up_to(step.parts, steps.longest_ns)))
    notes = _cut_off(steps.n_cut, "the bar is cut off", "the bars are cut off")
    return layout.lanes(f"{steps.label}.", steps.longest_ns, notes=notes)


def step_columns(trace: Trace, window: Window, step_name: str | None = None) -> Columns | None:
    """Draw the steps as columns, with the step of the window marked; None for fewer than two."""
    steps = _steps(trace, step_name)
    if steps is None:
        return None
    lengths_ns = [step.length_ns for step in steps.drawn]
    extent = " to ".join(dict.fromkeys(map(duration, (min(lengths_ns), max(lengths_ns)))))
    columns = [_column(step, steps.longest_ns) for step in steps.drawn]
    chosen = None if window.step is None else str(window.step)
    notes = _cut_off(steps.n_cut, "it is drawn shorter", "they are drawn shorter")
    return Columns(f"{steps.label}: {extent}", columns, chosen, notes)


def _column(step: _Step, longest_ns: int) -> Stack:
    bars = [
        Bar(part_ns / max(step.length_ns, 1), duration(part_ns), label, color_of(kind))
        for part_ns, kind, label in step.parts
    ]
    length = min(step.length_ns / max(longest_ns, 1), 1.0)
    return Stack(str(step.number), bars, length, duration(step.length_ns))


def _steps(trace: Trace, step_name: str | None = None) -> _Steps | None:
    marked = trace.steps if step_name is None else frame_of(trace.core.steps(step_name))
    length_ns = marked["window_end_ns"] - marked["window_start_ns"]
    steps = marked.with_columns(length_ns=length_ns)
    if steps.height <= 1:
        return None
    longest = steps.sort("length_ns", "start_ns", descending=[True, False]).head(_MOST_STEPS)
    drawn = longest.sort("start_ns").select("step", "length_ns", "window_start_ns", "window_end_ns")
    longest_ns = _longest_drawn(drawn["length_ns"].to_list(), median(steps["length_ns"].to_list()))
    rows = drawn.rows()
    device, parts = _parts(trace, [(start_ns, end_ns) for *_, start_ns, end_ns in rows])
    found = [
        _Step(number, length_ns, its, length_ns > longest_ns)
        for (number, length_ns, *_), its in zip(rows, parts, strict=True)
    ]
    which = f", the {_MOST_STEPS} longest of {count(steps.height, 'step')}"
    label = f"How long each step takes{device}{which if steps.height > drawn.height else ''}"
    return _Steps(found, longest_ns, label)


def _parts(trace: Trace, times_ns: Sequence[tuple[int, int]]) -> tuple[str, list[list[Part]]]:
    """Return what the busiest device did in each window, and the name of the device."""
    windows = [Window("time_range", None, *times, "") for times in times_ns]
    found = [{it.device: it for it in device_times(trace, window)} for window in windows]
    busy_ns: dict[int | None, int] = {}
    for devices in found:
        for device, its in devices.items():
            busy_ns[device] = busy_ns.get(device, 0) + its.whole.busy_ns
    if not any(busy_ns.values()):
        return "", [[(window.duration_ns, "annotation", "step")] for window in windows]
    busiest = max(busy_ns, key=lambda device: busy_ns[device])
    name = "the device" if busiest is None else f"device {busiest}"
    parts = [
        device_parts(devices[busiest])
        if busiest in devices
        else [(window.duration_ns, "idle", "idle, no activity recorded")]
        for devices, window in zip(found, windows, strict=True)
    ]
    return f", and what {name} did in it", parts


def _longest_drawn(lengths_ns: Sequence[int], median_ns: float) -> int:
    """Return the length of the axis: a step that is far longer than the others is cut off."""
    usual = [length_ns for length_ns in lengths_ns if length_ns <= _FAR_LONGER * median_ns]
    return max(usual or lengths_ns)


def _up_to(parts: Iterable[Part], end_ns: int) -> list[Part]:
    """Cut the parts off at the end of the axis."""
    kept, start_ns = [], 0
    for part_ns, kind, label in parts:
        shown_ns = min(part_ns, end_ns - start_ns)
        start_ns += shown_ns
        if shown_ns:
            kept.append((shown_ns, kind, label))
    return kept


def _cut_off(number: int, one: str, several: str) -> list[str]:
    if not number:
        return []
    takes, how = ("takes", one) if number == 1 else ("take", several)
    return [f"{count(number, 'step')} {takes} more than {_FAR_LONGER} times the median; {how}."]


def _spans(parts: Sequence[Part]) -> list[Span]:
    """Return the parts of a step as consecutive spans."""
    starts = accumulate((part_ns for part_ns, *_ in parts), initial=0)
    return [
        (start, part_ns, kind, label)
        for start, (part_ns, kind, label) in zip(starts, parts, strict=False)
    ]
