"""Several ranks that never were: one program on N ranks, with its truth and re-runs.

Everything that happens is a node with the reasons it waited for, each with a latency. The nodes
are timed in one sweep, so a run with a change is the same nodes with other latencies, and how
much later a node may come follows from the same nodes backwards. `ranks_kineto` writes the traces.
"""

from __future__ import annotations

import json
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path


COMPUTE_STREAM: Final = 7
COMMUNICATION_STREAM: Final = 20
MAIN_THREAD: Final = 100
BACKWARD_THREAD: Final = 101

_LAUNCH_NS: Final = 4_000
_LATENCY_NS: Final = 4_500
_GAP_NS: Final = 1_000
_EVENT_NS: Final = 1_600
_RETURN_NS: Final = 3_000
_HANDOVER_NS: Final = 14_000


@dataclass(frozen=True, slots=True)
class Latency:
    """How long an edge takes: nominal, and whose time it is, so that a change can find it."""

    nominal_ns: int
    rank: int = -1
    cause: str = ""
    """What may be changed: the class of time."""
    name: str = ""


@dataclass(slots=True)
class Event:
    """Something that a profiler writes down."""

    rank: int
    category: str
    name: str
    track: int
    start: int
    end: int
    args: dict[str, Any]
    step: int


@dataclass(slots=True)
class Call:
    """A collective or a send and its receive: who takes part."""

    operation: str
    group: str
    ranks: tuple[int, ...]
    sequence: int
    elements: int
    members: dict[int, Event] = field(default_factory=dict)


class Job:
    """All ranks of a run: nodes, the edges into each, and the events between them."""

    def __init__(self, n_ranks: int) -> None:
        self.n_ranks = n_ranks
        self.edges: list[list[tuple[int, Latency]]] = []
        self.roots: dict[int, int] = {}
        self.events: list[Event] = []
        self.calls: dict[tuple[str, int], Call] = {}
        self._sequences: dict[tuple[int, str], int] = {}

    def node(self, *reasons: tuple[int, Latency]) -> int:
        """Add a moment that comes when the last of its reasons has."""
        self.edges.append(list(reasons))
        return len(self.edges) - 1

    def root(self, time_ns: int) -> int:
        """Add a moment that waits for nothing."""
        node = self.node()
        self.roots[node] = time_ns
        return node

    def next_in(self, rank: int, group: str) -> int:
        """Number the calls of a rank in a group."""
        key = (rank, group)
        self._sequences[key] = self._sequences.get(key, 0) + 1
        return self._sequences[key]

    def join(self, transfer_ns: Callable[[Call, int], int]) -> None:
        """End the members of each call when the last of them has arrived and data has moved."""
        for call in self.calls.values():
            for rank, event in call.members.items():
                moved = Latency(transfer_ns(call, rank), rank, "transfer", call.operation)
                self.edges[event.end] += [(it.start, moved) for it in call.members.values()]

    def times_ns(self, changed: Callable[[Latency], float] | None = None) -> list[int]:
        """Time all nodes; `changed` gives the factor of a latency."""
        targets: list[list[int]] = [[] for _ in self.edges]
        n_open = [len(edges) for edges in self.edges]
        for node, edges in enumerate(self.edges):
            for source, _ in edges:
                targets[source].append(node)
        times = [self.roots.get(node, 0) for node in range(len(self.edges))]
        ready = deque(node for node, count in enumerate(n_open) if count == 0)
        n_done = 0
        while ready:
            node = ready.popleft()
            n_done += 1
            if self.edges[node]:
                times[node] = max(
                    times[source] + _after(latency, changed) for source, latency in self.edges[node]
                )
            for target in targets[node]:
                n_open[target] -= 1
                if n_open[target] == 0:
                    ready.append(target)
        if n_done != len(self.edges):
            message = "calls wait for each other in a circle"
            raise AssertionError(message)
        return times

    def slack_ns(self, times: list[int]) -> list[int]:
        """Return by how much each node may come later before the run ends later."""
        order = sorted(range(len(times)), key=lambda node: (times[node], node), reverse=True)
        end = max(times)
        latest = [end] * len(times)
        # Edges of no length may stand in either order: a second sweep settles them.
        for _ in range(2):
            for node in order:
                for source, latency in self.edges[node]:
                    latest[source] = min(latest[source], latest[node] - latency.nominal_ns)
        return [last - time for last, time in zip(latest, times, strict=True)]

    def makespan_ns(self, changed: Callable[[Latency], float] | None = None) -> int:
        """Return how long the run takes, from the earliest beginning."""
        times = self.times_ns(changed)
        starts = (times[event.start] for event in self.events)
        return max(times[event.end] for event in self.events) - min(starts)


def _after(latency: Latency, changed: Callable[[Latency], float] | None) -> int:
    factor = 1.0 if changed is None else changed(latency)
    return round(latency.nominal_ns * factor)


class RankBuilder:
    """The program of one rank, as it is called."""

    def __init__(
        self, job: Job, rank: int, begin_ns: int, factors: Mapping[str, Callable[[int], float]]
    ) -> None:
        self.job = job
        self.rank = rank
        self.step = 0
        self._factors = factors
        self._now = job.root(begin_ns)
        self._thread = MAIN_THREAD
        self._streams: dict[int, int] = {}
        self._waits: dict[int, list[int]] = {}
        self._correlation = 0

    def annotation(self, name: str, body: Callable[[], None]) -> None:
        """Draw a range around what the body does."""
        start = self._now
        body()
        self._write("user_annotation", name, start, {})

    def loading(self, nominal_ns: int) -> None:
        """Load a batch: a function inside the range of a data loader."""

        def load() -> None:
            self._host("cpu_op", "aten::stack", nominal_ns, "data loading")

        self.annotation("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", load)

    def operator(self, name: str, nominal_ns: int, *works: tuple[str, int, str]) -> None:
        """Run an operator that launches kernels: `(name, nominal_ns, grid)`."""
        start = self._now
        self._pass(nominal_ns, "host", name)
        for kernel, work_ns, grid in works:
            self._launch(kernel, work_ns, COMPUTE_STREAM, {"grid": grid})
        self._pass(800, "host", name)
        self._write("cpu_op", name, start, {})
        self._pass(600, "host gap", "")

    def collective(
        self,
        operation: str,
        group: str,
        ranks: tuple[int, ...],
        elements: int,
        *,
        stream: int = COMMUNICATION_STREAM,
        after_compute: bool = True,
        peer: tuple[str, int] | None = None,
    ) -> None:
        """Call a collective on a stream of its own, after what was computed so far."""
        start = self._now
        self._pass(3_000, "host", f"c10d::{operation}_")
        if after_compute:
            self._wait_event(stream, COMPUTE_STREAM)
        key = (
            group if peer is None else f"{group}:{min(ranks)}->{max(ranks)}:{_way(self.rank, peer)}"
        )
        sequence = self.job.next_in(self.rank, key)
        args: dict[str, Any] = {
            "Collective name": operation,
            "Process Group Name": group,
            "Process Group Ranks": str(list(ranks if peer is None else range(self.job.n_ranks))),
            "Group size": len(ranks) if peer is None else self.job.n_ranks,
            "dtype": "Float",
            "In msg nelems": elements,
            "Out msg nelems": elements,
            "Seq": sequence,
        }
        if peer is not None:
            args[peer[0]] = peer[1]
        event = self._launch(f"ncclDevKernel_{operation}", None, stream, args)
        call = Call(operation, group, ranks, sequence, elements)
        self.job.calls.setdefault((key, sequence), call).members[self.rank] = event
        self._write("cpu_op", f"c10d::{operation}_", start, {})

    def await_stream(self, stream: int = COMMUNICATION_STREAM) -> None:
        """Make the computation wait for the work of a stream."""
        self._wait_event(COMPUTE_STREAM, stream)

    def synchronize(self, stream: int = COMPUTE_STREAM) -> None:
        """Make the host wait for a stream."""
        start = self._now
        reasons = [(start, self._latency(4_000, "host", "cudaStreamSynchronize"))]
        if stream in self._streams:
            reasons.append((self._streams[stream], Latency(_RETURN_NS)))
        self._now = self.job.node(*reasons)
        self._write("cuda_runtime", "cudaStreamSynchronize", start, self._next({"stream": stream}))

    def backward(self, body: Callable[[], None]) -> None:
        """Run the body on the autograd thread while the main thread waits."""
        before = self._now
        self._thread = BACKWARD_THREAD
        self._now = self.job.node((before, Latency(_HANDOVER_NS)))
        body()
        self._thread = MAIN_THREAD
        self._now = self.job.node((self._now, Latency(_HANDOVER_NS)))

    def _latency(self, nominal_ns: int, cause: str, name: str) -> Latency:
        factor = self._factors.get(cause, lambda _: 1.0)(self.step)
        factor *= self._factors.get(name, lambda _: 1.0)(self.step)
        return Latency(max(1, round(nominal_ns * factor)), self.rank, cause, name)

    def _pass(self, nominal_ns: int, cause: str, name: str) -> None:
        self._now = self.job.node((self._now, self._latency(nominal_ns, cause, name)))

    def _host(self, category: str, name: str, nominal_ns: int, cause: str) -> None:
        start = self._now
        self._pass(nominal_ns, cause, name)
        self._write(category, name, start, {})

    def _launch(
        self, name: str, nominal_ns: int | None, stream: int, args: dict[str, Any]
    ) -> Event:
        """Launch a kernel; without a duration it is a member of a call and ends with it."""
        call_start = self._now
        self._pass(_LAUNCH_NS, "host", "cudaLaunchKernel")
        args = self._next(args)
        correlation = {"correlation": args["correlation"]}
        self._write("cuda_runtime", "cudaLaunchKernel", call_start, correlation)
        reasons = [(self._now, Latency(_LATENCY_NS))]
        if stream in self._streams:
            reasons.append((self._streams[stream], Latency(_GAP_NS)))
        reasons += [(node, Latency(_EVENT_NS)) for node in self._waits.pop(stream, [])]
        start = self.job.node(*reasons)
        if nominal_ns is None:
            end = self.job.node()
        else:
            end = self.job.node((start, self._latency(nominal_ns, "kernel", name)))
        self._streams[stream] = end
        place = {"device": self.rank % 8, "stream": stream}
        event = Event(self.rank, "kernel", name, stream, start, end, place | args, self.step)
        self.job.events.append(event)
        return event

    def _wait_event(self, waiter: int, awaited: int) -> None:
        for name in ("cudaEventRecord", "cudaStreamWaitEvent"):
            start = self._now
            self._pass(900, "host", name)
            self._write("cuda_runtime", name, start, self._next({}))
        if awaited in self._streams:
            self._waits.setdefault(waiter, []).append(self._streams[awaited])

    def _next(self, args: dict[str, Any]) -> dict[str, Any]:
        self._correlation += 1
        return args | {"correlation": self._correlation}

    def _write(self, category: str, name: str, start: int, args: dict[str, Any]) -> None:
        event = Event(self.rank, category, name, self._thread, start, self._now, args, self.step)
        self.job.events.append(event)


def _way(rank: int, peer: tuple[str, int]) -> str:
    """Return the direction of a message between two ranks."""
    return "up" if (peer[0] == "Dst Rank") == (rank < peer[1]) else "down"


# Writes the traces of several simulated ranks, with clocks that disagree.


@dataclass(frozen=True, slots=True)
class RankClock:
    """What the clock of a rank shows: ahead of the true time by this, and more with time."""

    offset_ns: int = 0
    drift: float = 0.0

    def shown_ns(self, time_ns: int) -> int:
        """Return what the clock shows at a time."""
        return time_ns + self.offset_ns + round(self.drift * time_ns)


def write_ranks(
    job: Job,
    times: Sequence[int],
    clocks: Sequence[RankClock],
    folder: Path,
    *,
    keep: Sequence[Any] | None = None,
    numbered: bool = True,
    hosts: bool = True,
) -> dict[tuple[int, int], Event]:
    """Write one file a rank; give what stands at each `(rank, row)`.

    Parameters
    ----------
    keep
        For each event whether the profiler wrote it; by default all.
    numbered
        Whether calls have sequence numbers.
    """
    rows: dict[tuple[int, int], Event] = {}
    of_rank: list[list[dict[str, Any]]] = [[] for _ in range(job.n_ranks)]
    for place, event in enumerate(job.events):
        if keep is not None and not keep[place]:
            continue
        rows[event.rank, len(of_rank[event.rank])] = event
        of_rank[event.rank].append(_record(event, times, clocks[event.rank], numbered=numbered))
    for rank, records in enumerate(of_rank):
        document = {
            "schemaVersion": 1,
            "distributedInfo": {"backend": "nccl", "rank": rank, "world_size": job.n_ranks},
            "traceEvents": records,
        }
        if hosts:
            document["host_name"] = f"host{rank}"
        folder.joinpath(f"rank{rank}.json").write_text(json.dumps(document), encoding="utf-8")
    return rows


def _record(
    event: Event, times: Sequence[int], clock: RankClock, *, numbered: bool
) -> dict[str, Any]:
    start, end = (clock.shown_ns(times[node]) for node in (event.start, event.end))
    args = event.args if numbered else {k: v for k, v in event.args.items() if k != "Seq"}
    is_kernel = event.category == "kernel"
    return {
        "ph": "X",
        "cat": event.category,
        "name": event.name,
        "pid": event.args["device"] if is_kernel else 1_000 + event.rank,
        "tid": event.track if is_kernel else 1_000 + event.rank + event.track - 100,
        "ts": start / 1_000,
        "dur": (end - start) / 1_000,
        "args": args,
    }
