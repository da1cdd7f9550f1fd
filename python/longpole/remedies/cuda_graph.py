"""Launches that are the same in every step: a graph replays them with one call.

Only the time between launches of equal sequences is saved. A wait, an allocation or a tensor
created on the host between two launches ends a sequence, because it cannot be captured. A copy
within the GPU can be.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

from longpole.engine.critical_path.changes import Drop, Insert, Scale
from longpole.remedies.model import Found, Remedy
from longpole.words.wording import count, short_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from longpole.engine.critical_path.changes import TimeRange
    from longpole.remedies.facts import Facts
    from longpole.remedies.recorded import Activity

# Consecutive launches from which a graph is worthwhile. Fewer are if they are at least half of the
# launches of each of several windows, in few graphs, and take the host much of the time.
_MANY: Final = 32
_LEAST_LAUNCHES: Final = 8
_LEAST_OF_ALL: Final = 0.5
_MOST_GRAPHS: Final = 4
_LEAST_OF_HOST_TIME: Final = 0.1

# A longer time between two of few launches is work of the program, which a graph does not replace.
_LONGEST_PAUSE_NS: Final = 200_000

# Cost of a replay: one call, and a little time of the host and the GPU for each node.
_REPLAY_NS: Final = 15_000
_NODE_NS: Final = 200
_CAREFUL: Final = 3

# Idle time of the GPU between consecutive nodes: minimum and maximum, measured on an H100.
_BETWEEN_NODES_NS: Final = (300, 1_000)

# In a training step, the forward and the backward pass are each captured as one graph.
_OF_TRAINING: Final = 0.5

_WIDEST: Final = 40

# If the host limits less than this share of the time, a graph gains nothing.
_LEAST_OF_HOST: Final = 0.05


class _Run(NamedTuple):
    """Consecutive launches of a window, with nothing between them that prevents a capture."""

    window: int
    works: tuple[Activity, ...]
    names: tuple[str, ...]
    time_range: TimeRange
    stop: int | None
    """Event after it that cannot be captured, if more launches of the thread follow."""

    @property
    def host_ns(self) -> int:
        """How long the host takes from the first launch to the last."""
        _, start_ns, end_ns = self.time_range
        return end_ns - start_ns


class _Stop(NamedTuple):
    """Start of an event that cannot be captured."""

    start_ns: int
    event: int


def _find(facts: Facts) -> Iterator[Found]:
    if facts.gains_less("host", _LEAST_OF_HOST):
        return
    replays = {call.event for call in facts.calls("graph_launch")}
    every = [*_runs(facts, replays)]
    runs = [run for run in _usual(facts, every) if len(run.works) >= _MANY]
    runs = runs or _worthwhile(facts, every)
    if runs:
        yield _found(facts, runs)


def _usual(facts: Facts, runs: list[_Run]) -> list[_Run]:
    """Return the runs that are equal in every window, or in all but one."""
    equal: dict[tuple[str, ...], list[_Run]] = defaultdict(list)
    for run in runs:
        equal[run.names].append(run)
    least = max(facts.n_windows - 1, min(2, facts.n_windows))
    return [
        run for same in equal.values() if len({it.window for it in same}) >= least for run in same
    ]


def _worthwhile(facts: Facts, every: list[_Run]) -> list[_Run]:
    """Return short runs if they are most of what is launched, and launching them takes long."""
    runs = _usual(facts, [part for run in every for part in _between_pauses(facts, run)])
    n_launches, n_all = sum(len(run.works) for run in runs), len(facts.kernels)
    are_few = facts.n_windows > 1 and facts.per_window(len(runs)) <= _MOST_GRAPHS
    is_long = facts.is_worth(sum(run.host_ns for run in runs), _LEAST_OF_HOST_TIME)
    is_most = n_launches >= _LEAST_OF_ALL * n_all
    return runs if are_few and is_long and is_most else []


def _between_pauses(facts: Facts, run: _Run) -> Iterator[_Run]:
    """Yield the parts of a run between long pauses, which are work of the program."""
    calls = [facts.place(work.call) for work in run.works if work.call is not None]
    cuts = [
        number
        for number, (before, after) in enumerate(pairwise(calls), 1)
        if after.start_ns - before.start_ns > _LONGEST_PAUSE_NS
    ]
    for first, end in pairwise((0, *cuts, len(calls))):
        if end - first >= _LEAST_LAUNCHES:
            lane = run.time_range[0]
            yield run._replace(
                works=run.works[first:end],
                names=run.names[first:end],
                time_range=(lane, calls[first].start_ns, calls[end - 1].end_ns),
                stop=run.stop if end == len(calls) else None,
            )


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
            first = None
            while stop is not None and stop.start_ns < row[0]:
                if first is None and run and stop.start_ns >= run[-1][0]:
                    first = stop.event
                stop = next(stops, None)
            if first is not None and len(run) >= _LEAST_LAUNCHES:
                yield _run(facts, lane, window, run, first)
            run = [] if first is not None else run
            run.append(row)
        if len(run) >= _LEAST_LAUNCHES:
            yield _run(facts, lane, window, run)


def _of_optimizer(facts: Facts) -> frozenset[int]:
    """Return what optimizers launch: they keep numbers on the host unless made capturable."""
    steps = [step.time_range for step in facts.annotations("Optimizer.step#")]
    return frozenset(work.event for work in facts.launched_in(steps))


def _blockers(facts: Facts) -> dict[int, list[_Stop]]:
    """Return when each thread does something that cannot be captured."""
    stops: dict[int, list[_Stop]] = defaultdict(list)
    for wait in facts.waits:
        stops[wait.call.lane].append(_Stop(wait.call.start_ns, wait.call.event))
    on_device = {copy.call for copy in facts.copies if facts.direction(copy.event) == "DtoD"}
    for call in facts.calls("allocate", "free", "blocking_copy"):
        if call.event not in on_device:
            stops[call.lane].append(_Stop(call.start_ns, call.event))
    for copy in facts.copies:
        is_copied = copy.call is not None and copy.call not in facts.gone.events
        if copy.call is not None and is_copied and "Pageable" in facts.name(copy.event):
            place = facts.place(copy.call)
            stops[place.lane].append(_Stop(place.start_ns, copy.call))
    return {lane: sorted(times) for lane, times in stops.items()}


def _run(
    facts: Facts,
    lane: int,
    window: int,
    rows: list[tuple[int, int, Activity]],
    stop: int | None = None,
) -> _Run:
    works = tuple(work for _, _, work in rows)
    names = tuple(facts.name(work.event) for work in works)
    return _Run(window, works, names, (lane, rows[0][0], rows[-1][1]), stop)


def _found(facts: Facts, runs: list[_Run]) -> Found:
    n_launches = sum(len(run.works) for run in runs)
    host_ns = sum(run.host_ns for run in runs)
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
            f"{' outside the optimizer' if others else ''} {_as_seen(facts, runs)}"
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
    has_it = facts.is_of_torch and facts.options.vendor in {"NVIDIA", "AMD"}
    return " (`torch.cuda.graph`)" if has_it else ""


def _as_seen(facts: Facts, runs: list[_Run]) -> str:
    """Return whether the launches are equal in every step, and what divides them into graphs."""
    unit, parts = facts.unit, _in_runs(facts, runs)
    if facts.n_windows > 1:
        return f"are equal in every {unit}{f', in {parts}' if parts else ' and can be captured'}"
    told = f"are {parts}" if parts else "can be captured"
    return f"{told}; one {unit} does not show whether they are the same each time"


def _in_runs(facts: Facts, runs: list[_Run]) -> str | None:
    """Describe the runs and what is between them; None if nothing divides the launches."""
    memory = {call.event for call in facts.calls("allocate", "free")}
    stops = Counter(_place(facts, run.stop, memory) for run in runs if run.stop is not None)
    if not stops:
        return None
    [(place, _)] = stops.most_common(1)
    n_runs = max(round(facts.per_window(len(runs))), 1)
    sizes = sorted({len(run.works) for run in runs})
    size = f"{sizes[0]:,}" if len(sizes) == 1 else f"{sizes[0]:,} to {sizes[-1]:,}"
    divided = f"{place} between them cannot be captured"
    if len({run.names for run in runs}) == 1:
        return f"{n_runs} equal runs of {size}, one graph for all: {divided}"
    return f"{n_runs} runs of {size}, each a graph: {divided}"


def _place(facts: Facts, event: int, memory: set[int]) -> str:
    """Return the name of a call that changes memory, otherwise of the outermost operator."""
    names = [name for _, kind, name in facts.around(event) if kind == "operator"]
    if event in memory or not names:
        return facts.name(event)
    return short_name(names[-1], _WIDEST)


REMEDY: Final = Remedy(
    id="cuda_graph",
    side="host",
    effort="code",
    needs="runtime calls linked to their kernels",
    seen_by="32 launches or more that are equal in every step, without a wait, an allocation or a "
    "pageable copy between them; or 8, if these are half of all and take the host a tenth of the "
    "time",
    change="the host time from the first to the last of them, except for a replay and 0.2 us a "
    "node, with 0.3 us between nodes; at least three times that with 1 us between nodes, and "
    "half of the host time in training",
    not_when="they are replayed already, or the host limits nothing",
    replaces_launches=True,
    has_obstacles=True,
    signature="graph_launches",
    find=_find,
)
