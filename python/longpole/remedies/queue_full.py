"""Launches that wait because the queue of a stream is full, while other work is late."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from longpole.engine.critical_path.changes import RemoveWait
from longpole.remedies.model import Found, Remedy
from longpole.words.wording import count

if TYPE_CHECKING:
    from collections.abc import Iterator

    from longpole.remedies.facts import Facts
    from longpole.remedies.recorded import OnThread

# A CUDA queue has 1,024 entries, some of which profilers do not show.
_FULL: Final = 950

# Maximum time of a launch that does not wait.
_LONGEST_NS: Final = 20_000


def _find(facts: Facts) -> Iterator[Found]:
    waiting = waiting_for_room(facts)
    if not waiting or not facts.is_worth(sum(call.duration_ns for call in waiting)):
        return
    n_each = max(round(facts.per_window(len(waiting))), 1)
    yield Found(
        careful=[RemoveWait(kind="queue_full", events=[call.event for call in waiting])],
        advice="Launch what is late first, or from a thread of its own",
        evidence=(
            f"{count(n_each, 'launch', 'launches')} {facts.each} "
            f"{'waits' if n_each == 1 else 'wait'} for a place in the full queue of a stream"
        ),
        events=facts.longest(waiting),
    )


def waiting_for_room(facts: Facts) -> list[OnThread]:
    """List the long launches that begin while the queue of their stream is full."""
    launches = facts.calls("launch")
    calls = {row.event: row for row in launches if row.duration_ns > _LONGEST_NS}
    if not calls or len(facts.kernels) < _FULL:
        return []
    begun_ns = {row.event: row.start_ns for row in launches}
    times: dict[int, list[tuple[int, int, OnThread | None]]] = defaultdict(list)
    for work in facts.kernels:
        if work.call is not None:
            start_ns = begun_ns.get(work.call)
            start_ns = facts.place(work.call).start_ns if start_ns is None else start_ns
            times[work.lane].append((start_ns, 1, calls.get(work.call)))
            times[work.lane].append((work.start_ns + work.duration_ns, -1, None))
    waiting = []
    for changes in times.values():
        length = 0
        for _, change, call in sorted(changes, key=lambda row: (row[0], row[1])):
            if call is not None and length >= _FULL:
                waiting.append(call)
            length += change
    return waiting


REMEDY: Final = Remedy(
    id="queue_full",
    side="host",
    effort="code",
    needs="runtime calls linked to their kernels",
    seen_by="launches longer than 20 us that begin with 950 activities or more in their stream",
    change="the waits of these launches; that there is no place in the queue is not considered",
    not_when="nothing else is late: then the host is far ahead, and nothing is to be done",
    is_upper_bound=True,
    is_measured=False,
    find=_find,
)
