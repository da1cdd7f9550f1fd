"""Launches that are the same in every step: a graph replays them with one call.

Only the time between launches of equal sequences is saved. A wait, an allocation or a tensor
created on the host between two launches ends a sequence, because it cannot be captured.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final, NamedTuple

from longpole.critical_path.changes import Drop, Insert, Scale
from longpole.remedies.model import Found, Remedy
from longpole.wording import count

if TYPE_CHECKING:
    from collections.abc import Iterator

    from longpole.critical_path.changes import TimeRange
    from longpole.remedies.facts import Activity, Facts

__all__ = ["REMEDY"]

# With fewer consecutive launches, capturing a graph is not worthwhile.
_LEAST_LAUNCHES: Final = 32

# Cost of a replay: one call, and a little time of the host and the GPU for each node.
_REPLAY_NS: Final = 15_000
_NODE_NS: Final = 200
_CAREFUL: Final = 3

# Idle time of the GPU between consecutive nodes: minimum and maximum, measured on an H100.
_BETWEEN_NODES_NS: Final = (300, 1_000)

# In a training step, the forward and the backward pass are each captured as one graph.
_OF_TRAINING: Final = 0.5

# If the host limits less than this share of the time, a graph gains nothing.
_LEAST_OF_HOST: Final = 0.05


class _Run(NamedTuple):
    """Consecutive launches of a window, with nothing between them that prevents a capture."""

    window: int
    works: tuple[Activity, ...]
    names: tuple[str, ...]
    time_range: TimeRange


def _find(facts: Facts) -> Iterator[Found]:
    if dict(facts.parts["gains"])["host"] < _LEAST_OF_HOST:
        return
    replays = {call.event for call in facts.calls("graph_launch")}
    equal: dict[tuple[str, ...], list[_Run]] = defaultdict(list)
    for run in _runs(facts, replays):
        equal[run.names].append(run)
    usual = [
        run
        for runs in equal.values()
        if len({run.window for run in runs}) >= max(facts.n_windows - 1, min(2, facts.n_windows))
        for run in runs
    ]
    if usual:
        yield _found(facts, usual)


def _runs(facts: Facts, replays: set[int]) -> Iterator[_Run]:
    blockers = _blockers(facts)
    of_optimizer = facts.once(_of_optimizer)
    launched: dict[tuple[int, int], list[tuple[int, int, Activity]]] = defaultdict(list)
    for work in facts.kernels:
        if work.call is None or work.event in of_optimizer:
            continue
        if work.call not in replays:
            place = facts.place(work.call)
            launched[place.lane, work.window].append((place.start_ns, place.end_ns, work))
    for (lane, window), rows in sorted(launched.items()):
        rows.sort(key=lambda row: row[0])
        run: list[tuple[int, int, Activity]] = []
        stops = iter(blockers.get(lane, []))
        stop = next(stops, None)
        for row in rows:
            is_cut = False
            while stop is not None and stop < row[0]:
                is_cut |= bool(run) and stop >= run[-1][0]
                stop = next(stops, None)
            if is_cut and len(run) >= _LEAST_LAUNCHES:
                yield _run(facts, lane, window, run)
            run = [] if is_cut else run
            run.append(row)
        if len(run) >= _LEAST_LAUNCHES:
            yield _run(facts, lane, window, run)


def _of_optimizer(facts: Facts) -> frozenset[int]:
    """Return what optimizers launch: they keep numbers on the host unless made capturable."""
    steps = [step.time_range for step in facts.annotations("Optimizer.step#")]
    return frozenset(work.event for work in facts.launched_in(steps))


def _blockers(facts: Facts) -> dict[int, list[int]]:
    """Return when each thread does something that cannot be captured."""
    stops: dict[int, list[int]] = defaultdict(list)
    for wait in facts.waits:
        stops[wait.call.lane].append(wait.call.start_ns)
    for call in facts.calls("allocate", "free", "blocking_copy"):
        stops[call.lane].append(call.start_ns)
    for copy in facts.copies:
        if copy.call is not None and "Pageable" in facts.name(copy.event):
            place = facts.place(copy.call)
            stops[place.lane].append(place.start_ns)
    return {lane: sorted(times) for lane, times in stops.items()}


def _run(facts: Facts, lane: int, window: int, rows: list[tuple[int, int, Activity]]) -> _Run:
    works = tuple(work for _, _, work in rows)
    names = tuple(facts.name(work.event) for work in works)
    return _Run(window, works, names, (lane, rows[0][0], rows[-1][1]))


def _found(facts: Facts, runs: list[_Run]) -> Found:
    n_launches = sum(len(run.works) for run in runs)
    host_ns = sum(end_ns - start_ns for _, start_ns, end_ns in (run.time_range for run in runs))
    cost_ns = len(runs) * _REPLAY_NS + n_launches * _NODE_NS
    rest = min(cost_ns / max(host_ns, 1), 1.0)
    time_ranges = [run.time_range for run in runs]
    is_training = len(facts.launch_lanes) > 1 or bool(facts.annotations("Optimizer."))
    kept = _OF_TRAINING if is_training else 0.0
    launched = [work.event for work in facts.kernels if work.call is not None]
    others = facts.once(_of_optimizer).intersection(launched)
    n_all = round(facts.per_window(len(launched) - len(others)))
    kernels = [work.event for run in runs for work in run.works]
    no_delay = Drop(kind="kernel_delay", events=kernels)
    least, most = (Insert(time_ns=it, events=kernels) for it in _BETWEEN_NODES_NS)
    return Found(
        careful=[
            Scale(by=min(max(_CAREFUL * rest, kept), 1.0), time_ranges=time_ranges),
            no_delay,
            most,
        ],
        hopeful=[Scale(by=rest, time_ranges=time_ranges), no_delay, least],
        advice=f"Replay the launches as a {facts.options.graph}{_with(facts)}",
        evidence=(
            f"{facts.per_window(n_launches):,.0f} of {count(n_all, 'launch', 'launches')}"
            f"{' outside the optimizer' if others else ''} {_as_seen(facts)}"
        ),
        events=[
            work.call
            for run in facts.shown_first(runs)[:1]
            for work in run.works[:1]
            if work.call is not None
        ],
    )


def _with(facts: Facts) -> str:
    """Return torch's name for a graph of launches, on devices that have it."""
    return " (`torch.cuda.graph`)" if facts.options.vendor in {"NVIDIA", "AMD"} else ""


def _as_seen(facts: Facts) -> str:
    unit, can_be_captured = facts.unit, "nothing between them that cannot be captured"
    if facts.n_windows > 1:
        return f"are the same in every {unit}, with {can_be_captured}"
    return f"have {can_be_captured}; one {unit} does not show whether they are the same each time"


REMEDY: Final = Remedy(
    id="cuda_graph",
    side="host",
    effort="code",
    needs="runtime calls linked to their kernels",
    seen_by="32 launches or more that are equal in every step, without a wait, an allocation or a "
    "pageable copy between them",
    change="the host time from the first to the last of them, except for a replay and 0.2 us a "
    "node, with 0.3 us between nodes; at least three times that with 1 us between nodes, and "
    "half of the host time in training",
    not_when="they are replayed already, or the host limits nothing",
    replaces_launches=True,
    find=_find,
)
