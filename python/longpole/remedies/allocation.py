"""Memory that is allocated and freed in every step.

`cudaMalloc` and `cudaFree` are slow and wait for the GPU. A framework with a caching allocator
calls neither in a steady step; `torch.cuda.empty_cache()` makes it call both.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from longpole.engine.critical_path.changes import Drop, RemoveWait, Scale
from longpole.remedies.model import Found, Remedy
from longpole.words.wording import count

if TYPE_CHECKING:
    from collections.abc import Iterator

    from longpole.engine.critical_path.changes import Change, TimeRange
    from longpole.remedies.facts import Facts, OnThread

# Allocations in this share of the windows are recurring; in fewer, they are the first use of
# memory.
_STEADY: Final = 0.6

# With cached memory, an allocating operator takes this share of its time.
_REST_OF_OPERATOR: Final = 0.1

# Freeing calls closer together than this belong to one emptying of the cache.
_APART_NS: Final = 1_000_000


def _find(facts: Facts) -> Iterator[Found]:
    calls = facts.calls("allocate", "free")
    frees = facts.calls("free")
    is_steady = len({call.window for call in calls}) >= _STEADY * facts.n_windows
    if (
        facts.creates_context()
        or not calls
        or not is_steady
        or not facts.is_worth(sum(call.duration_ns for call in calls))
    ):
        return
    events = [call.event for call in calls]
    gone: list[Change] = [Drop(kind="runtime", events=events), RemoveWait(events=events)]
    around = {event for call in calls for event in _operator(facts, call)}
    advice = "Keep the memory from step to step"
    if facts.options.memory:
        advice += f" ({facts.options.memory})"
    n_calls = max(round(facts.per_window(len(calls))), 1)
    yield Found(
        careful=gone,
        hopeful=[
            *gone,
            Scale(by=_REST_OF_OPERATOR, events=sorted(around)),
            Drop(time_ranges=_runs(frees)),
        ],
        advice=advice,
        evidence=(
            f"{count(n_calls, 'call')} {facts.each} "
            f"{'allocates or frees' if n_calls == 1 else 'allocate or free'} it"
        ),
        events=facts.longest(calls),
    )


def _operator(facts: Facts, call: OnThread) -> Iterator[int]:
    operators = (event for event, kind, _ in facts.around(call.event) if kind == "operator")
    yield from list(operators)[:1]


def _runs(calls: list[OnThread]) -> list[TimeRange]:
    """Return the time spans of threads in which calls come shortly after each other."""
    of_lane: dict[int, list[list[int]]] = defaultdict(list)
    for call in sorted(calls, key=lambda call: (call.lane, call.start_ns)):
        runs = of_lane[call.lane]
        if runs and call.start_ns - runs[-1][1] < _APART_NS:
            runs[-1][1] = max(runs[-1][1], call.end_ns)
        else:
            runs.append([call.start_ns, call.end_ns])
    return [(lane, start, end) for lane, runs in of_lane.items() for start, end in runs]


REMEDY: Final = Remedy(
    id="allocation",
    side="host",
    effort="one_line",
    needs="runtime calls",
    seen_by="`cudaMalloc` or `cudaFree` (`hipMalloc` ...) in steady steps",
    change="the calls and their waits; at most also the work of the operators around them",
    not_when="few steps have any, or the call creates the context of the GPU",
    find=_find,
)
