"""Steps as lanes: how long each takes, and what its busiest device did in it."""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING, Final

from longpole.plot.layout import Layout
from longpole.wording import count

if TYPE_CHECKING:
    from longpole.plot.layout import Span
    from longpole.report.lanes import Lanes
    from longpole.trace import Trace

__all__ = ["step_lanes"]

# Each step walks over all GPU activities once.
_MOST_STEPS: Final = 24
_PARTS: Final = (
    ("compute_ns", "kernel", "compute"),
    ("communication_ns", "communication", "communication"),
    ("copy_ns", "copy", "memcpy and memset"),
    ("idle_ns", "idle", "idle"),
)


def step_lanes(trace: Trace) -> Lanes | None:
    """Lay out the steps, the longest where there are many; None where there are not two."""
    length_ns = trace.steps["window_end_ns"] - trace.steps["window_start_ns"]
    steps = trace.steps.with_columns(length_ns=length_ns)
    if steps.height <= 1:
        return None
    has_device = bool(trace.warning_counts["device_work"])
    drawn = steps.sort("length_ns", "start_ns", descending=[True, False]).head(_MOST_STEPS)
    layout = Layout()
    for row in drawn.sort("start_ns").iter_rows(named=True):
        whole = [(0, row["length_ns"], "annotation", f"step {row['step']}")]
        parts = _parts(trace, row["window_start_ns"], row["window_end_ns"]) if has_device else whole
        layout.add(f"step {row['step']}", parts)
    more = steps.height - drawn.height
    which = f", the {_MOST_STEPS} longest of {count(steps.height, 'step')}" if more else ""
    what = " and what its busiest device did in it" if has_device else ""
    return layout.lanes(f"How long each step takes{what}{which}.", max(drawn["length_ns"]))


def _parts(trace: Trace, start_ns: int, end_ns: int) -> list[Span]:
    """Lay the times of a step one behind the other."""
    busy = trace.busy(start_ns, end_ns)
    whole = busy.filter(busy["stream"].is_null()).sort("busy_ns", descending=True)
    lengths = [int(whole[column][0]) for column, _, _ in _PARTS]
    starts = accumulate(lengths, initial=0)
    return [
        (start, length, kind, name)
        for start, length, (_, kind, name) in zip(starts, lengths, _PARTS, strict=False)
        if length
    ]
