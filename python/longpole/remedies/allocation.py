"""Memory that is allocated and freed in every step.

`cudaMalloc` and `cudaFree` are slow and wait for the GPU. A framework with a caching allocator
calls neither in a steady step; `torch.cuda.empty_cache()` makes it call both, all frees together.
Frees in many different operators mean that there is no caching allocator.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from longpole.engine.critical_path.changes import Drop, RemoveWait, Scale
from longpole.remedies.model import Found, Remedy
from longpole.words.recording import ANY_MEMORY
from longpole.words.wording import count

if TYPE_CHECKING:
    from collections.abc import Iterator

    from longpole.engine.critical_path.changes import Change, TimeRange
    from longpole.remedies.facts import Facts
    from longpole.remedies.recorded import OnThread

# Allocations in this share of the windows are recurring; in fewer, they are the first use of
# memory.
_STEADY: Final = 0.6

# With cached memory, an allocating operator takes this share of its time.
_REST_OF_OPERATOR: Final = 0.1

# Freeing calls closer together than this belong to one emptying of the cache.
_APART_NS: Final = 1_000_000

# Without a cache, at least this many frees of a window lie in operators, most in one of their own.
_LEAST_FREES: Final = 8
_MOSTLY: Final = 0.5

# A single window that is not a step has to allocate again after it has freed.
_LEAST_AGAIN: Final = 2

_EMPTYING: Final = "empty_cache"

# Segments of torch's allocator that can be extended are mapped with these calls.
_SEGMENTS: Final = "expandable_segments"
_MAPPING: Final = ("cuMemMap", "hipMemMap")
_MEMORY_MODULE: Final = "torch/cuda/memory.py"


def _find(facts: Facts) -> Iterator[Found]:
    first = {*facts.creates_context()}
    calls = [call for call in facts.calls("allocate", "free") if call.event not in first]
    frees = [call for call in facts.calls("free") if call.event not in first]
    is_steady = len({call.window for call in calls}) >= _STEADY * facts.n_windows
    if (
        not calls
        or not is_steady
        or allocates_once(facts)
        or not facts.is_worth(sum(call.duration_ns for call in calls))
    ):
        return
    events = [call.event for call in calls]
    gone: list[Change] = [Drop(kind="runtime", events=events), RemoveWait(events=events)]
    around = {event for call in calls for event in _operator(facts, call)}
    n_calls = max(round(facts.per_window(len(calls))), 1)
    yield Found(
        careful=gone,
        hopeful=[
            *gone,
            Scale(by=_REST_OF_OPERATOR, events=sorted(around)),
            Drop(time_ranges=_runs(frees)),
        ],
        advice=_advice(facts),
        evidence=(
            f"{count(n_calls, 'call')} {facts.each} "
            f"{'allocates or frees' if n_calls == 1 else 'allocate or free'} it"
        ),
        events=facts.longest(calls),
    )


def allocates_once(facts: Facts) -> bool:
    """Whether the only window is a program that starts, and not a loop.

    It allocates once, and a free before that is of a library that makes its handle.
    """
    if facts.n_windows > 1 or facts.unit == "step":
        return False
    freeing = {call.event for call in facts.calls("free")}
    n_again, has_allocated, has_freed = 0, False, False
    for call in sorted(facts.calls("allocate", "free"), key=lambda call: call.start_ns):
        is_free = call.event in freeing
        n_again += has_freed and not is_free
        has_freed = has_allocated and is_free
        has_allocated = has_allocated or not is_free
    return n_again < _LEAST_AGAIN


def _advice(facts: Facts) -> str:
    """Return what to do, without a cause that the recorded functions and calls contradict."""
    is_of_torch = facts.is_of_torch
    hint = facts.options.memory
    if hint and facts.parts["profiler"].startswith("torch") and not is_of_torch:
        hint = ANY_MEMORY
    if hint and _is_uncached(facts):
        how = " (without PYTORCH_NO_CUDA_MEMORY_CACHING)" if is_of_torch else ""
        return f"Use a caching allocator{how}: each operator allocates and frees its own memory"
    refuted = [_EMPTYING] if facts.has_stacks and not _empties(facts) else []
    refuted += [_SEGMENTS] if facts.calls_named(*_MAPPING) else []
    if is_of_torch:
        hint = ", ".join(part for part in hint.split(", ") if not any(it in part for it in refuted))
    return f"Keep the memory from step to step{f' ({hint})' if hint else ''}"


def _empties(facts: Facts) -> bool:
    """Whether a recorded function empties the cache."""
    functions = facts.functions(_MEMORY_MODULE)
    return any(_EMPTYING in facts.name(row.event) for row in functions)


def _is_uncached(facts: Facts) -> bool:
    """Whether memory is freed in enough operators that nothing can have kept it."""
    frees = facts.calls("free")
    operators = {event for call in frees for event in _operator(facts, call)}
    is_enough = len(frees) >= _LEAST_FREES * facts.n_windows
    return is_enough and len(operators) >= _MOSTLY * len(frees) and not _empties(facts)


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
