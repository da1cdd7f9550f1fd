"""Streams that wait for each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.engine.critical_path.changes import Drop, RemoveWait
from longpole.remedies.model import Found, Remedy
from longpole.words.wording import count

if TYPE_CHECKING:
    from collections.abc import Iterator

    from longpole.engine.critical_path.changes import TimeRange
    from longpole.remedies.facts import Facts
    from longpole.remedies.recorded import OnThread

# Calls that torch makes before it records an event or waits for one.
_BESIDE: Final = ("cudaStreamIsCapturing", "hipStreamIsCapturing")


def _find(facts: Facts) -> Iterator[Found]:
    waits = facts.calls("stream_wait")
    if not waits:
        return
    inside, with_before = _host_time(facts, waits)
    # What communication brings is needed, so it is not certain that any wait can go.
    is_needed = any(work.kind == "communication" for work in facts.kernels)
    yield Found(
        careful=[] if is_needed else [RemoveWait(kind="event_wait"), Drop(time_ranges=inside)],
        hopeful=[RemoveWait(kind="event_wait"), Drop(time_ranges=with_before)],
        advice="Let streams wait less for each other",
        evidence=f"{count(round(facts.per_window(len(waits))), 'wait')} {facts.each}",
        events=[call.event for call in facts.shown_first(waits)[:8]],
    )


def _host_time(facts: Facts, waits: list[OnThread]) -> tuple[list[TimeRange], list[TimeRange]]:
    """Return the host time of the waits, without and with the time before each.

    A wait is a row of calls with nothing else between them: the event that the other stream
    records, and the wait for it.
    """
    calls = sorted(
        [*waits, *facts.calls("event_record"), *facts.calls_named(*_BESIDE)],
        key=lambda call: (call.lane, call.start_ns),
    )
    events = {call.event for call in calls}
    before = {gap.after: gap for gap in facts.gaps(0) if gap.after in events}
    waiting = {call.event for call in waits}
    rows: list[list[OnThread]] = []
    for call in calls:
        gap = before.get(call.event)
        if rows and gap is not None and gap.before == rows[-1][-1].event:
            rows[-1].append(call)
        else:
            rows.append([call])
    inside, with_before = [], []
    for row in rows:
        if any(call.event in waiting for call in row):
            lane, start_ns, end_ns = row[0].lane, row[0].start_ns, row[-1].end_ns
            gap = before.get(row[0].event)
            inside.append((lane, start_ns, end_ns))
            with_before.append((lane, start_ns if gap is None else gap.start_ns, end_ns))
    return inside, with_before


REMEDY: Final = Remedy(
    id="stream_waits",
    side="kernels",
    effort="code",
    needs="waits between streams; see the options of the profiler",
    seen_by="GPU activities that begin after a wait for another stream",
    change="the waits and their calls, at most with the host time before each; that the data is "
    "needed is not considered; if the program communicates, at most that",
    not_when="streams do not wait for each other",
    is_upper_bound=True,
    depends_on_ranks=True,
    find=_find,
)
