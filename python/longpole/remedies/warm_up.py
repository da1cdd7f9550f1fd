"""Start-up that takes most of the time, and one-time work that every step does again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.engine.critical_path.changes import Drop
from longpole.remedies.model import Found, Remedy
from longpole.remedies.start_up import captures, later, recurs, start_up
from longpole.words.wording import count, duration, short_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from longpole.remedies.facts import Facts

_WIDEST: Final = 60


def _find(facts: Facts) -> Iterator[Found]:
    yield from _start_up(facts)
    yield from _captures(facts)
    yield from _modules(facts)


def _start_up(facts: Facts) -> Iterator[Found]:
    """Yield start-up, if it is most of what was recorded."""
    found = start_up(facts)
    if found is not None and found.is_most:
        yield Found(
            careful=found.changes,
            advice=later(facts),
            evidence=found.told,
            name="start-up",
            events=found.events,
            takes=found.share,
        )


def _captures(facts: Facts) -> Iterator[Found]:
    """Yield the captures of graphs in every step."""
    found = facts.once(captures)
    total_ns = sum(row.duration_ns for row in found)
    if recurs(facts, found) and facts.is_worth(total_ns):
        which = count(len(found), "graph is captured", "graphs are captured")
        yield Found(
            careful=[Drop(time_ranges=[row.time_range for row in found])],
            advice="Capture the graph once, and replay it in every step",
            evidence=f"{which}, in {duration(total_ns)}; only their replays do work",
            name="capture",
            events=facts.longest(found),
        )


def _modules(facts: Facts) -> Iterator[Found]:
    """Yield the calls that load kernels or modules in every step."""
    calls = facts.calls("load_module")
    total_ns = sum(call.duration_ns for call in calls)
    if recurs(facts, calls) and facts.is_worth(total_ns):
        longest = facts.longest(calls)
        name = short_name(facts.name(longest[0]), _WIDEST)
        which = f"{count(len(calls), 'call')} such as {name}"
        yield Found(
            careful=[Drop(kind="runtime", events=[call.event for call in calls])],
            advice="Load kernels and modules once, before the loop",
            evidence=f"{which} load them {facts.in_each}, {duration(total_ns)} in all",
            events=longest,
        )


REMEDY: Final = Remedy(
    id="warm_up",
    side="host",
    effort="one_line",
    needs="runtime calls",
    seen_by="the first call that needs the GPU, first launches of kernels, or calls that load "
    "kernels, the capture of a graph or a compilation that does not recur, if these take more than "
    "half of the time; calls that load kernels, or the capture of a graph, in most steps",
    change="the calls, or the time of the capture",
    not_when="nothing is loaded in the steps; start-up of at most half of the time is only named",
    is_measured=False,
    find=_find,
)
