"""Steps as lanes: how long each takes, and what its busiest device did in it."""

from __future__ import annotations

from itertools import accumulate
from statistics import median
from typing import TYPE_CHECKING, Final

from longpole.plot.layout import Layout
from longpole.wording import count, duration

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longpole.plot.layout import Span
    from longpole.report.lanes import Lanes
    from longpole.trace import Trace

__all__ = ["step_lanes"]

# Each step walks over all GPU activities once.
_MOST_STEPS: Final = 24
_FAR_LONGER: Final = 3
_PARTS: Final = (
    ("compute_ns", "kernel", "compute"),
    ("communication_ns", "communication", "communication"),
    ("copy_ns", "copy", "memcpy and memset"),
    ("idle_ns", "idle", "idle"),
)


def step_lanes(trace: Trace) -> Lanes | None:
    """Lay out the steps, the longest if there are many; None for fewer than two."""
    length_ns = trace.steps["window_end_ns"] - trace.steps["window_start_ns"]
    steps = trace.steps.with_columns(length_ns=length_ns)
    if steps.height <= 1:
        return None
    has_device = bool(trace.warning_counts["device_work"])
    drawn = steps.sort("length_ns", "start_ns", descending=[True, False]).head(_MOST_STEPS)
    longest_ns = _longest_drawn(drawn["length_ns"].to_list(), median(steps["length_ns"].to_list()))
    layout, n_cut = Layout(), 0
    for row in drawn.sort("start_ns").iter_rows(named=True):
        name, length_ns = f"step {row['step']}", row["length_ns"]
        whole = [(0, length_ns, "annotation", name)]
        parts = _parts(trace, row["window_start_ns"], row["window_end_ns"]) if has_device else whole
        is_cut = length_ns > longest_ns
        n_cut += is_cut
        label = f"{name}, {duration(length_ns)}, cut off" if is_cut else name
        layout.add(label, _up_to(parts, longest_ns))
    more = steps.height - drawn.height
    which = f", the {_MOST_STEPS} longest of {count(steps.height, 'step')}" if more else ""
    what = " and what its busiest device did in it" if has_device else ""
    label = f"How long each step takes{what}{which}."
    return layout.lanes(label, longest_ns, notes=_cut_off(n_cut))


def _longest_drawn(lengths_ns: Sequence[int], median_ns: float) -> int:
    """Return the length of the axis: a step that is far longer does not squash the others."""
    usual = [length_ns for length_ns in lengths_ns if length_ns <= _FAR_LONGER * median_ns]
    return max(usual or lengths_ns)


def _up_to(parts: Sequence[Span], end: int) -> list[Span]:
    """Cut off what lies after the end of the axis."""
    return [
        (start, min(length, end - start), kind, name)
        for start, length, kind, name in parts
        if start < end
    ]


def _cut_off(number: int) -> list[str]:
    if not number:
        return []
    bars = "bar is" if number == 1 else "bars are"
    takes = "takes" if number == 1 else "take"
    than = f"more than {_FAR_LONGER} times the median"
    return [f"{count(number, 'step')} {takes} {than}; the {bars} cut off."]


def _parts(trace: Trace, start_ns: int, end_ns: int) -> list[Span]:
    """Return the times of a step, one after the other."""
    busy = trace.busy(start_ns, end_ns)
    whole = busy.filter(busy["stream"].is_null()).sort("busy_ns", descending=True)
    lengths = [int(whole[column][0]) for column, _, _ in _PARTS]
    starts = accumulate(lengths, initial=0)
    return [
        (start, length, kind, name)
        for start, length, (_, kind, name) in zip(starts, lengths, _PARTS, strict=False)
        if length
    ]
