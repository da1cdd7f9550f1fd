"""Compiled functions that return to Python in the middle: graph breaks.

A function that cannot be compiled as a whole continues in a second one, which torch calls from the
first: its region is inside that of the first. Each checks its guards and prepares its arguments.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, Final, NamedTuple

from longpole.engine.critical_path.changes import Drop, RemoveWait, Scale
from longpole.remedies.model import Found, Remedy
from longpole.words.wording import count, duration

if TYPE_CHECKING:
    from collections.abc import Iterator

    from longpole.engine.critical_path.changes import Change, TimeRange
    from longpole.remedies.facts import Facts
    from longpole.remedies.recorded import OnThread

_REGION: Final = "Torch-Compiled Region"

# Operators that every region runs before its kernels, to check guards and prepare arguments.
_PREPARING: Final = (
    "TorchDynamo Cache Lookup",
    "Pregraph bytecode",
    "AOTDispatcher Runtime Wrapper Prologue",
)

# With fewer breaks in a window there is little to gain.
_LEAST_BREAKS: Final = 2

# Reading a value in Python is the most frequent cause of a graph break. If this share of the breaks
# has such a read, it is reported as the cause.
_READ: Final = "aten::item"
_OF_BREAKS: Final = 0.5

# At most this share of the host time outside operators remains, because a function without breaks
# also prepares arguments and calls its kernels.
_STAYS: Final = 0.5


class _Whole(NamedTuple):
    """A region with the regions inside it."""

    region: OnThread
    inner: list[OnThread]


def _find(facts: Facts) -> Iterator[Found]:
    broken = [it for it in _wholes(facts.operators(_REGION)) if it.inner]
    n_breaks = sum(len(it.inner) for it in broken)
    is_usual = 2 * len({it.region.window for it in broken}) >= facts.n_windows
    if n_breaks < _LEAST_BREAKS * facts.n_windows or not is_usual:
        return
    spans = [_inner_span(it) for it in broken]
    preparing = [row for row in facts.operators(*_PREPARING) if _is_within(spans, row)]
    time_ranges = _outside_operators(facts, broken)
    outside_ns = sum(end_ns - start_ns for _, start_ns, end_ns in time_ranges)
    if not facts.is_worth(outside_ns):
        return
    without_waits = RemoveWait(time_ranges=[it.region.time_range for it in broken])
    reads = _reads(facts, broken)
    without_reads: list[Change] = [
        Drop(time_ranges=[row.time_range for row in reads]),
        without_waits,
    ]
    breaks_at_reads = len(reads) >= _OF_BREAKS * n_breaks
    yield Found(
        careful=[
            Drop(time_ranges=[row.time_range for row in preparing]),
            Scale(by=_STAYS, time_ranges=time_ranges),
            *(without_reads if breaks_at_reads else []),
        ],
        hopeful=[
            Drop(time_ranges=[*time_ranges, *(row.time_range for row in reads)]),
            without_waits,
        ],
        advice="Compile the model as one graph (`torch.compile(..., fullgraph=True)` shows breaks)",
        evidence=(
            f"it breaks {count(max(round(facts.per_window(n_breaks)), 1), 'time', 'times')} "
            f"{facts.each}{f', at `{_READ}`' * breaks_at_reads}, and "
            f"{duration(round(facts.per_window(outside_ns)))} of the host time is in no operator"
        ),
        events=facts.longest(row for it in broken for row in it.inner),
    )


def _wholes(regions: list[OnThread]) -> list[_Whole]:
    """List the outermost regions, each with those inside it."""
    wholes: list[_Whole] = []
    for row in sorted(regions, key=lambda row: (row.lane, row.start_ns, -row.end_ns)):
        last = wholes[-1].region if wholes else None
        if last is not None and last.lane == row.lane and row.start_ns < last.end_ns:
            wholes[-1].inner.append(row)
        else:
            wholes.append(_Whole(row, []))
    return wholes


def _reads(facts: Facts, broken: list[_Whole]) -> list[OnThread]:
    """List the values that Python reads inside broken regions."""
    spans = [it.region.time_range for it in broken]
    return [row for row in facts.operators(_READ) if _is_within(spans, row)]


def _inner_span(whole: _Whole) -> TimeRange:
    """Return the time in which preparations are those of inner regions.

    The outermost region prepares at its start: in the first half of the time to the first inner
    one, which looks up its code right before it begins.
    """
    first_ns = min(it.start_ns for it in whole.inner)
    return (whole.region.lane, (whole.region.start_ns + first_ns) // 2, whole.region.end_ns)


def _is_within(spans: list[TimeRange], row: OnThread) -> bool:
    """Whether a row lies within one of some spans, which are in order."""
    place = bisect_right(spans, (row.lane, row.start_ns, row.end_ns)) - 1
    if place < 0:
        return False
    lane, start_ns, end_ns = spans[place]
    return lane == row.lane and start_ns <= row.start_ns and row.end_ns <= end_ns


def _outside_operators(facts: Facts, broken: list[_Whole]) -> list[TimeRange]:
    """List the time of broken regions without an open operator or call of the program."""
    skipped = (_REGION, *_PREPARING)
    inside = [
        row
        for row in [*facts.operators("aten::", "triton_", "prims::"), *facts.calls(*_CALLS)]
        if not facts.name(row.event).startswith(skipped)
    ]
    inside.sort(key=lambda row: (row.lane, row.start_ns))
    keys = [(row.lane, row.start_ns) for row in inside]
    time_ranges: list[TimeRange] = []
    for lane, start_ns, end_ns in (it.region.time_range for it in broken):
        at_ns = start_ns
        for row in inside[bisect_left(keys, (lane, start_ns)) : bisect_left(keys, (lane, end_ns))]:
            if row.start_ns > at_ns:
                time_ranges.append((lane, at_ns, row.start_ns))
            at_ns = max(at_ns, row.end_ns)
        if end_ns > at_ns:
            time_ranges.append((lane, at_ns, end_ns))
    return time_ranges


_CALLS: Final = (
    "launch",
    "graph_launch",
    "copy",
    "blocking_copy",
    "stream_synchronize",
    "event_synchronize",
    "device_synchronize",
)


REMEDY: Final = Remedy(
    id="graph_breaks",
    side="host",
    effort="code",
    needs="operators of torch",
    seen_by="`Torch-Compiled Region` within another one, at least twice a step",
    change=(
        "what the inner regions do before their kernels: guards, arguments; half of the other "
        "host time of the broken regions outside operators and calls, at most all of it; values "
        "that Python reads at the breaks, and the waits for them"
    ),
    not_when="no region lies within another one, or it happens once a step",
    signature="fused_kernels",
    find=_find,
)
