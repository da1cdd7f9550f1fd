"""One-time work recorded with the steps: creating a context, loading kernels, capturing graphs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.engine.critical_path.changes import Drop
from longpole.remedies.model import Found, Remedy
from longpole.words.wording import count, duration, short_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from longpole.remedies.facts import Facts
    from longpole.remedies.recorded import Activity, OnThread

_WIDEST: Final = 60

# Loading in at least this share of several windows is recurring.
_STEADY: Final = 0.6

# Operators that only allocate a tensor. If only one window was recorded, one of them that takes
# this share of it before any GPU activity does so because something is used for the first time.
MAKERS: Final = frozenset({"aten::empty", "aten::empty_strided", "aten::empty_like"})
_LEAST_SHARE: Final = 0.2

# A first launch that takes less loads little.
_LEAST_LOADING_NS: Final = 100_000

_MOST_EVENTS: Final = 5

_BEGINS_CAPTURE: Final = ("cudaStreamBeginCapture", "cuStreamBeginCapture", "hipStreamBeginCapture")
_ENDS_CAPTURE: Final = (
    *("cudaStreamEndCapture", "cuStreamEndCapture", "hipStreamEndCapture"),
    *("cudaGraphInstantiate", "cuGraphInstantiate", "hipGraphInstantiate"),
)


def _find(facts: Facts) -> Iterator[Found]:
    yield from _context(facts)
    yield from _first_tensor(facts)
    yield from _capture(facts)
    yield from _modules(facts)
    yield from _first_launches(facts)


def _first_launches(facts: Facts) -> Iterator[Found]:
    """Yield the first launches of kernels, if they take long in a program that starts."""
    if facts.n_windows > 1 or facts.unit == "step":
        return
    first: dict[str, Activity] = {}
    for work in sorted(facts.kernels, key=lambda work: (work.start_ns, work.event)):
        if work.call is not None:
            first.setdefault(facts.name(work.event), work)
    calls = [
        (work.call, facts.place(work.call)) for work in first.values() if work.call is not None
    ]
    long = {call: place.end_ns - place.start_ns for call, place in calls}
    long = {call: ns for call, ns in long.items() if ns >= _LEAST_LOADING_NS}
    total_ns = sum(long.values())
    if not long or not facts.is_worth(total_ns):
        return
    kernels = count(len(long), "kernel")
    load, first_use = ("loads it", "its") if len(long) == 1 else ("load them", "their")
    yield Found(
        careful=[
            Drop(kind="launch", events=sorted(long)),
            Drop(kind="runtime", events=sorted(long)),
        ],
        advice=_later(facts),
        evidence=(
            f"the first launches of {kernels} take {duration(total_ns)} and most likely {load} on "
            f"{first_use} first use"
        ),
        name="first launches",
        events=tuple(sorted(long, key=lambda call: (-long[call], call))[:_MOST_EVENTS]),
    )


def _modules(facts: Facts) -> Iterator[Found]:
    """Yield the calls that load kernels or modules."""
    calls = facts.calls("load_module")
    total_ns = sum(call.duration_ns for call in calls)
    if not calls or not facts.is_worth(total_ns):
        return
    longest = facts.longest(calls)
    recurs = len({call.window for call in calls}) >= max(_STEADY * facts.n_windows, 2)
    which = f"{count(len(calls), 'call')} such as {short_name(facts.name(longest[0]), _WIDEST)}"
    load = "loads" if len(calls) == 1 else "load"
    yield Found(
        careful=[Drop(kind="runtime", events=[call.event for call in calls])],
        advice="Load kernels and modules once, before the loop" if recurs else _later(facts),
        evidence=(
            f"{which} {load} them {facts.in_each}, {duration(total_ns)} in all"
            if recurs
            else f"{which} {load} kernels on their first use, in {duration(total_ns)}"
        ),
        events=longest,
    )


def _context(facts: Facts) -> Iterator[Found]:
    """Yield the call that creates a GPU context, if it takes much of the time."""
    calls = facts.creates_context()
    if calls:
        name = short_name(facts.name(calls[0]), _WIDEST)
        yield Found(
            careful=[Drop(kind="runtime", events=calls)],
            advice=_later(facts),
            evidence=f"{name} creates the context of the GPU, which nothing used before",
            events=tuple(calls[:1]),
        )


def _first_tensor(facts: Facts) -> Iterator[Found]:
    """Yield an operator that allocates a tensor, and takes long before the GPU does anything."""
    if facts.n_windows > 1:
        return
    first_ns = min((kernel.start_ns for kernel in facts.kernels), default=None)
    for row in facts.long_events(_LEAST_SHARE):
        name = facts.name(row.event)
        if name in MAKERS and (first_ns is None or row.end_ns <= first_ns):
            yield Found(
                careful=[Drop(time_ranges=[row.time_range])],
                advice=_later(facts),
                evidence=(
                    f"{name} only allocates a tensor and takes {duration(row.duration_ns)}, "
                    "as when something is used for the first time"
                ),
                name=name,
                events=(row.event,),
            )


def _capture(facts: Facts) -> Iterator[Found]:
    """Yield the captures of CUDA graphs, with the work that is captured."""
    found = facts.once(captures)
    total_ns = sum(row.duration_ns for row in found)
    if not found or not facts.is_worth(total_ns):
        return
    recurs = len({row.window for row in found}) >= max(_STEADY * facts.n_windows, 2)
    which = count(len(found), "graph is captured", "graphs are captured")
    yield Found(
        careful=[Drop(time_ranges=[row.time_range for row in found])],
        advice="Capture the graph once, and replay it in every step" if recurs else _later(facts),
        evidence=f"{which}, in {duration(total_ns)}; only their replays do work",
        name="capture",
        events=facts.longest(found),
    )


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


def _later(facts: Facts) -> str:
    step = f" and {facts.options.step}" if facts.unit == "trace" else ""
    return f"Record a later step, with {facts.options.schedule}{step}"


REMEDY: Final = Remedy(
    id="warm_up",
    side="host",
    effort="one_line",
    needs="runtime calls",
    seen_by="the first call that needs the GPU, calls that load kernels or modules, or the capture "
    "of a CUDA graph",
    change="the calls, or the time of the capture",
    not_when="nothing is loaded in the steps, and they do not begin with the first use of the GPU",
    is_measured=False,
    find=_find,
)
