"""Start-up: one-time work that is recorded with the steps, such as loading kernels.

It is not a part of the program that a change can shorten: a later recording does not contain it.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final, NamedTuple

from longpole.engine.critical_path.changes import Drop
from longpole.remedies.allocation import allocates_once
from longpole.remedies.compile_overhead import compiled_once
from longpole.remedies.gains import values_of
from longpole.remedies.profiler_work import without_profiler_work
from longpole.remedies.queue_full import waiting_for_room
from longpole.remedies.spans import Spans
from longpole.words.wording import count, duration, short_name, whole_percent

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from longpole.engine.critical_path.changes import Change, TimeRange, WorkKind
    from longpole.remedies.facts import Facts
    from longpole.remedies.recorded import Activity, OnThread, Place

MOST: Final = 0.5
"""Start-up that takes more than this share of the windows is what they consist of."""

# Removing start-up saves at least this share of its time, if the program waits for it.
_LEAST_SAVED: Final = 0.5

_WIDEST: Final = 60

# Work in at least this share of several windows is recurring.
_STEADY: Final = 0.6

# Operators that only allocate a tensor. If only one window was recorded, one of them that takes
# this share of it, or this time, before any GPU activity does so because something is used for the
# first time.
MAKERS: Final = frozenset({"aten::empty", "aten::empty_strided", "aten::empty_like"})
_LEAST_SHARE: Final = 0.2
_LEAST_MAKING_NS: Final = 1_000_000

# A first launch that takes less loads little. One that loads takes this many times as long as
# another launch of its kernel.
_LEAST_LOADING_NS: Final = 100_000
_LONGER: Final = 3

# A kind of start-up with a smaller share of it is not named.
_LEAST_NAMED: Final = 0.05
_MOST_EVENTS: Final = 5

_BEGINS_CAPTURE: Final = ("cudaStreamBeginCapture", "cuStreamBeginCapture", "hipStreamBeginCapture")
_ENDS_CAPTURE: Final = (
    *("cudaStreamEndCapture", "cuStreamEndCapture", "hipStreamEndCapture"),
    *("cudaGraphInstantiate", "cuGraphInstantiate", "hipGraphInstantiate"),
)


class Part(NamedTuple):
    """One kind of start-up."""

    what: str
    """What takes the time, as a noun phrase."""
    time_ranges: Sequence[TimeRange]
    events: Sequence[int]
    changes: Sequence[Change]


class StartUp(NamedTuple):
    """The start-up in the windows of a verdict."""

    duration_ns: int
    """The time in which any thread starts something up."""
    share: float
    """This time as a share of all windows."""
    told: str
    """How much it takes and what it is, as a clause."""
    is_most: bool
    """Whether the windows mostly wait for it, so that the answer is to record a later step."""
    changes: tuple[Change, ...]
    """What removes it."""
    events: tuple[int, ...]
    """The events that show it best."""


def start_up(facts: Facts) -> StartUp | None:
    """Return the start-up in the windows; None if there is none that takes a share of them."""
    return facts.once(_start_up)


def later(facts: Facts) -> str:
    """Return what to record instead, as an instruction."""
    step = f" and {facts.options.step}" if facts.unit == "trace" else ""
    return f"Record a later step, with {facts.options.schedule}{step}"


def _start_up(facts: Facts) -> StartUp | None:
    parts: list[tuple[int, Part]] = []
    known: list[TimeRange] = []
    known_ns = 0
    for part in _parts(facts):
        all_ns = _within_ns(facts, [*known, *part.time_ranges])
        if all_ns > known_ns:
            parts.append((all_ns - known_ns, part))
            known, known_ns = [*known, *part.time_ranges], all_ns
    if not facts.is_worth(known_ns):
        return None
    parts.sort(key=lambda row: -row[0])
    part_of_all = known_ns / max(facts.mean_ns * facts.n_windows, 1)
    changes = tuple(change for _, part in parts for change in part.changes)
    whole = f"the {facts.unit if facts.n_windows == 1 else f'{facts.n_windows:,} {facts.unit}s'}"
    taken = f"{duration(known_ns)} ({whole_percent(part_of_all)} of {whole})"
    return StartUp(
        duration_ns=known_ns,
        share=part_of_all,
        told=f"start-up takes {taken}: {_listed(parts)}",
        is_most=part_of_all > MOST and _is_awaited(facts, changes, part_of_all),
        changes=changes,
        events=tuple(event for _, part in parts for event in part.events)[:_MOST_EVENTS],
    )


def _is_awaited(facts: Facts, changes: Sequence[Change], part: float) -> bool:
    """Whether the program waits for most of the start-up, which may be on another thread."""
    [saved] = values_of(facts.core, [changes])
    return saved >= _LEAST_SAVED * part


def _listed(parts: Sequence[tuple[int, Part]]) -> str:
    least_ns = _LEAST_NAMED * sum(ns for ns, _ in parts)
    long = [(ns, part.what) for ns, part in parts if ns >= least_ns]
    if len(long) == 1:
        return long[0][1]
    return "; ".join(f"{duration(ns)} in {what}" for ns, what in long)


def _within_ns(facts: Facts, time_ranges: Iterable[TimeRange]) -> int:
    """Return the time of the windows in which some thread is in one of its time ranges."""
    # All threads as one: at a time when two of them start something up, time passes once.
    spans = [*Spans((0, start_ns, end_ns) for _, start_ns, end_ns in time_ranges)]
    total_ns, place = 0, 0
    for begin_ns, until_ns in facts.windows:
        while place < len(spans) and spans[place][2] <= begin_ns:
            place += 1
        at = place
        while at < len(spans) and spans[at][1] < until_ns:
            total_ns += min(spans[at][2], until_ns) - max(spans[at][1], begin_ns)
            at += 1
    return total_ns


def _parts(facts: Facts) -> Iterator[Part]:
    yield from _context(facts)
    yield from _first_tensor(facts)
    yield from _compilations(facts)
    yield from _captures(facts)
    yield from _modules(facts)
    yield from _first_launches(facts)
    yield from _first_allocations(facts)


def _context(facts: Facts) -> Iterator[Part]:
    """Yield the call that creates a GPU context, if it takes much of the time."""
    calls = facts.creates_context()
    if calls:
        name = short_name(facts.name(calls[0]), _WIDEST)
        yield _of_calls(facts, calls, f"{name}, which creates the context of the GPU")


def _first_tensor(facts: Facts) -> Iterator[Part]:
    """Yield an operator that allocates a tensor, and takes long before the GPU does anything."""
    if facts.n_windows > 1:
        return
    first_ns = min((kernel.start_ns for kernel in facts.kernels), default=None)
    least_ns = min(_LEAST_SHARE * facts.mean_ns, _LEAST_MAKING_NS)
    rows = [
        row
        for row in facts.long_events(least_ns / max(facts.mean_ns, 1))
        if facts.name(row.event) in MAKERS and (first_ns is None or row.end_ns <= first_ns)
    ]
    rows = without_profiler_work(facts, rows)
    if rows:
        [longest, *_] = facts.longest(rows)
        name = facts.name(longest)
        what = f"{name}, most likely the first use of the {facts.processor}"
        yield _of_threads(facts, rows, what)


def _compilations(facts: Facts) -> Iterator[Part]:
    """Yield functions that are compiled once."""
    rows = compiled_once(facts)
    if rows:
        yield _of_threads(facts, rows, f"the compilation of {count(len(rows), 'function')}")


def _captures(facts: Facts) -> Iterator[Part]:
    """Yield the captures of graphs that are captured once, with the work that is captured."""
    rows = facts.once(captures)
    if rows and not recurs(facts, rows):
        yield _of_threads(facts, rows, f"the capture of {count(len(rows), 'graph')}")


def _modules(facts: Facts) -> Iterator[Part]:
    """Yield the calls that load kernels or modules once."""
    calls = facts.calls("load_module")
    if calls and not recurs(facts, calls):
        events = [call.event for call in calls]
        name = short_name(facts.name(facts.longest(calls)[0]), _WIDEST)
        which = name if len(calls) == 1 else f"{count(len(calls), 'call')} such as {name}"
        load = "loads" if len(calls) == 1 else "load"
        yield _of_calls(facts, events, f"{which}, which {load} kernels on their first use")


def _first_launches(facts: Facts) -> Iterator[Part]:
    """Yield the first launches of kernels, if they take long in the only window."""
    loading = _loading(facts) if facts.n_windows == 1 else []
    if loading:
        what = "the first launch of a kernel, which most likely loads it"
        if len(loading) > 1:
            kernels = count(len(loading), "kernel")
            what = f"the first launches of {kernels}, which most likely load them"
        yield _of_calls(facts, loading, what, are_launches=True)


def _loading(facts: Facts) -> list[int]:
    """List the first launches in the trace that take so long that they load their kernels.

    Other launches of the kernel do not take as long then.
    """
    launches: dict[str, list[int]] = {}
    # A call that launches several kernels launches a graph.
    launched = Counter(work.call for work in facts.kernels)
    own = {call.event: call for call in facts.calls("launch") if launched[call.event] == 1}
    for work in sorted(facts.kernels, key=_in_time):
        if work.call in own:
            launches.setdefault(facts.name(work.event), []).append(work.call)
    waiting = {call.event for call in facts.once(waiting_for_room)}
    found: dict[str, OnThread] = {}
    for name, (first, *others) in launches.items():
        taken_ns = _length_ns(facts.place(first))
        lengths_ns = (_length_ns(facts.place(call)) for call in others if call != first)
        other_ns = min(lengths_ns, default=0)
        if first not in waiting and taken_ns >= max(_LEAST_LOADING_NS, _LONGER * other_ns):
            found[name] = own[first]
    [(start_ns, _)] = facts.windows
    if found and facts.parts["unit"] != "trace":
        for event in facts.named(*found):
            if facts.place(event).start_ns < start_ns:
                found.pop(facts.name(event), None)
    return [call.event for call in without_profiler_work(facts, [*found.values()])]


def _in_time(work: Activity) -> tuple[int, int]:
    return work.start_ns, work.event


def _length_ns(place: Place) -> int:
    return place.end_ns - place.start_ns


def _first_allocations(facts: Facts) -> Iterator[Part]:
    """Yield the allocations before the first kernel of a program that allocates once."""
    first_ns = min((kernel.start_ns for kernel in facts.kernels), default=0)
    calls = facts.calls("allocate", "free") if allocates_once(facts) else []
    before = [call.event for call in calls if call.end_ns <= first_ns]
    if before:
        what = f"{count(len(before), 'call')} before the first kernel that "
        what += "allocates or frees memory" if len(before) == 1 else "allocate or free memory"
        yield _of_calls(facts, before, what)


def _of_threads(facts: Facts, rows: Sequence[OnThread], what: str) -> Part:
    """Return start-up that consists of all that threads do in some time."""
    time_ranges = [row.time_range for row in rows]
    return Part(what, time_ranges, facts.longest(rows), [Drop(time_ranges=time_ranges)])


def _of_calls(
    facts: Facts, events: Sequence[int], what: str, *, are_launches: bool = False
) -> Part:
    """Return start-up that consists of calls."""
    places = {event: facts.place(event) for event in events}
    longest = sorted(events, key=lambda event: (-_length_ns(places[event]), event))
    kinds: tuple[WorkKind, ...] = ("launch", "runtime") if are_launches else ("runtime",)
    changes = [Drop(kind=kind, events=sorted(events)) for kind in kinds]
    return Part(what, [places[event].time_range for event in events], longest, changes)


def recurs(facts: Facts, rows: Sequence[OnThread]) -> bool:
    """Whether most of several windows have some of these events."""
    return len({row.window for row in rows}) >= max(_STEADY * facts.n_windows, 2)


def captures(facts: Facts) -> list[OnThread]:
    """List the times from the call that begins a capture to those that end and instantiate it."""
    found: list[OnThread] = []
    open_on: dict[int, OnThread] = {}
    calls = facts.calls_named(*_BEGINS_CAPTURE, *_ENDS_CAPTURE)
    for call in sorted(calls, key=lambda row: (row.lane, row.start_ns)):
        if facts.name(call.event).startswith(_BEGINS_CAPTURE):
            open_on[call.lane] = call
        elif call.lane in open_on:
            begin = open_on[call.lane]
            if found and found[-1].event == begin.event:
                found.pop()
            found.append(begin._replace(end_ns=call.end_ns))
    return found
