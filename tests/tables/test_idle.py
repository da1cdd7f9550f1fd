"""Why a device is idle depends on the gap, not on the window through which it is seen."""

from __future__ import annotations

import itertools

import pytest

from longpole import idle
from longpole.engine.windows import Window
from longpole.testing import TraceBuilder

US = 1_000


@pytest.fixture(scope="module")
def trace():
    builder = TraceBuilder().operator("aten::mm", (0, 400))
    builder.launch("early", call=(5, 8), work=(10, 30))
    builder.launch("late", call=(60, 65), work=(70, 90))
    builder.launch("queued", call=(66, 68), work=(180, 200))
    builder.launch("late, then queued", call=(240, 250), work=(340, 350))
    return builder.read()


def causes(trace, start_us, end_us):
    """Return the idle time of the device by cause, in microseconds."""
    origin_ns = trace.window[0]
    span_ns = (origin_ns + start_us * US, origin_ns + end_us * US)
    window = Window("time_range", None, *span_ns, reason="given")
    rows = idle(trace, window)
    rows = rows.filter(rows["stream"].is_null())
    return dict(rows.select("cause", "duration_ns").iter_rows())


def test_a_gap_keeps_its_cause_where_a_window_cuts_it(trace):
    assert causes(trace, 0, 400) == {
        "waiting_for_launch": (10 + 40 + 50) * US,
        "other_wait": (90 + 90) * US,
        "after_last": 50 * US,
    }
    assert causes(trace, 40, 50) == {"waiting_for_launch": 10 * US}
    assert causes(trace, 66, 69) == {"waiting_for_launch": 3 * US}
    assert causes(trace, 150, 160) == {"other_wait": 10 * US}
    assert causes(trace, 245, 255) == {"waiting_for_launch": 5 * US, "other_wait": 5 * US}
    assert causes(trace, 360, 370) == {"after_last": 10 * US}


@pytest.mark.parametrize("width", [7, 50, 130])
def test_windows_that_tile_the_trace_add_up_to_it(trace, width):
    edges = [*range(0, 400, width), 400]
    total: dict[str, int] = {}
    for start, end in itertools.pairwise(edges):
        for cause, duration_ns in causes(trace, start, end).items():
            total[cause] = total.get(cause, 0) + duration_ns
    assert total == causes(trace, 0, 400)
