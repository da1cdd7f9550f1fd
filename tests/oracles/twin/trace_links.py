"""Which call launched what, and in which operator."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from .trace_nesting import outside_in, parents

if TYPE_CHECKING:
    from .trace_events import Event, Trace


def launches(trace: Trace) -> list[dict[str, Any]]:
    """Join each GPU activity to its call, and to the operator around that."""
    parent_of = parents(trace)
    call_of = calls(trace)
    operators = _operators_by_external_id(trace)
    rows = []
    for work in filter(lambda event: event.is_work, trace.events):
        call = call_of[work.row]
        if call:
            operator, linked_by = _operator_around(call.row, parent_of, trace), "correlation"
        else:
            operator = operators.get(work.external_id)
            linked_by = None if operator is None else "external_id"
        rows.append(
            {
                "event": work.row,
                "work_class": work.work_class,
                "call": call.row if call else None,
                "operator": operator,
                "linked_by": linked_by,
                "delay_ns": _delay_ns(call, work),
            }
        )
    return rows


def calls(trace: Trace) -> dict[int, Event | None]:
    """Find the call with the correlation of each GPU activity; 0 is no correlation."""
    numbered = defaultdict(list)
    for event in trace.events:
        if event.is_call and event.correlation:
            numbered[event.correlation].append(event)
    works = [event for event in trace.events if event.is_work]
    votes: dict[Any, Any] = defaultdict(lambda: defaultdict(lambda: [0, 0, 0]))
    for work in works:
        processes = {call.process for call in numbered[work.correlation]}
        for process in processes:
            starts = [c.start_ns for c in numbered[work.correlation] if c.process == process]
            before = [start_ns for start_ns in starts if start_ns <= work.start_ns]
            vote = votes[work.process, work.device][process]
            vote[0] += len(processes) == 1
            vote[1] += not before
            vote[2] += work.start_ns - max(before) if before else 0

    def choose(work: Event) -> Event | None:
        home = _home(votes[work.process, work.device])

        def preference(call: Event) -> tuple[bool, bool]:
            same_id = work.external_id is not None and call.external_id == work.external_id
            return (home == call.process, same_id)

        best = max(map(preference, numbered[work.correlation]), default=None)
        candidates = [call for call in numbered[work.correlation] if preference(call) == best]
        candidates.sort(key=outside_in)
        earlier = [call for call in candidates if call.start_ns <= work.start_ns]
        return next(iter(earlier[::-1] or candidates), None)

    return {work.row: choose(work) for work in works}


def _home(votes: dict[Any, Any]) -> Any:
    """Find the process that alone allows some links, or that fits all others best."""
    needed = [process for process, (n_only, _, _) in votes.items() if n_only]
    if needed:
        return needed[0] if len(needed) == 1 else None
    fits = {process: tuple(vote[1:]) for process, vote in votes.items()}
    best = [process for process, fit in fits.items() if fit == min(fits.values())]
    return best[0] if len(best) == 1 else None


def _delay_ns(call: Event | None, work: Event) -> int | None:
    return None if call is None or call.end_ns is None else work.start_ns - call.end_ns


def _operators_by_external_id(trace: Trace) -> dict[int | None, int]:
    """List the External ids that name one operator, and which."""
    named = defaultdict(list)
    for event in trace.events:
        if event.kind == "operator" and event.external_id:
            named[event.external_id].append(event.row)
    return {number: rows[0] for number, rows in named.items() if len(rows) == 1}


def _operator_around(row: int, parent_of: dict[int, int | None], trace: Trace) -> int | None:
    row = parent_of.get(row)
    while row is not None and trace.events[row].kind != "operator":
        row = parent_of[row]
    return row
