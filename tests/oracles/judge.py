"""How much of the time a path is right, and how much it is wrong without saying so.

A stretch of a path is *right* where the machine spent the same time on the same event for the same
reason. Kinds of latency count as one: what they are called in a queue, a loop that polls or a graph
is a matter of taste. The time of a call that is not in the trace is that of the event around it,
which is all that the trace can name. Where clocks disagree, a border may lie a few microseconds
off. A stretch is *falsely certain* where it is wrong, is not of a kind that admits ignorance, and
the path is not called inconclusive.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import longpole

from .simulator.scenarios import SCENARIOS, run_scenario

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from .simulator import Run
    from .simulator.timeline import Activity
    from .simulator.truth import Window

ADMITTED = frozenset({"unexplained", "unrecorded", "graph_gap", "before_first_event"})
"""Kinds by which a path says that it does not know."""

_LATENCIES = frozenset(
    {"launch", "kernel_delay", "event_wait", "sync_return", "queue_full", "handover"}
)


class Piece(NamedTuple):
    """A stretch of a path: its kind, and the row of its event in the file."""

    start_ns: int
    end_ns: int
    kind: str
    row: int | None

    def is_right(self, truth: Piece) -> bool:
        """Whether it says of a moment what is true of it."""
        if self.kind in _LATENCIES and truth.kind in _LATENCIES:
            return True
        return (self.kind, self.row) == (truth.kind, truth.row)


class Share(NamedTuple):
    """What one path says, as shares of its window."""

    right: float
    false: float
    admitted: float
    inconclusive: bool


@dataclass(frozen=True, slots=True)
class Judgement:
    """What the paths of a scenario say, over all seeds and windows."""

    shares: tuple[Share, ...]

    @property
    def mean(self) -> float:
        """The mean share of time that is right."""
        return statistics.mean(share.right for share in self.shares)

    @property
    def worst(self) -> float:
        """The least share of time that is right."""
        return min(share.right for share in self.shares)

    @property
    def false(self) -> float:
        """The mean share of time that is wrong without saying so."""
        return statistics.mean(share.false for share in self.shares)

    @property
    def inconclusive(self) -> float:
        """The share of paths that are called inconclusive."""
        return statistics.mean(share.inconclusive for share in self.shares)


def judge(name: str, seeds: Iterable[int], folder: Path, *, sync_records: bool) -> Judgement:
    """Judge the paths of a scenario.

    Parameters
    ----------
    name
        Of the scenario.
    seeds
        Of its programs.
    folder
        Where traces may be written.
    sync_records
        Whether the traces have `cuda_sync` events.
    """
    tolerance_ns = SCENARIOS[name].tolerance_ns
    shares: list[Share] = []
    for seed in seeds:
        run = run_scenario(name, seed)
        shares += judge_run(run, folder, sync_records=sync_records, tolerance_ns=tolerance_ns)
    return Judgement(tuple(shares))


def judge_run(run: Run, folder: Path, *, sync_records: bool, tolerance_ns: int = 0) -> list[Share]:
    """Judge the path of every window of a run; borders may lie `tolerance_ns` off."""
    path = folder / "trace.json"
    order = run.write(path, sync_records=sync_records)
    trace = longpole.read_trace(path, args="ids")
    places = Places(run, order, trace)
    return [_judge_window(window, trace, places, tolerance_ns) for window in run.truth.windows]


class Places:
    """Where things stand: rows of the file, and the zero of the trace on the machine's clock."""

    def __init__(self, run: Run, order: Sequence[int], trace: longpole.Trace) -> None:
        events = run.events
        self._run = run
        self._row_of_record = {record: row for row, record in enumerate(order)}
        self.row_of_event = dict(trace.events.select("event", "position").iter_rows())
        row = next(row for row, record in enumerate(order) if events[record].get("cat") == "cpu_op")
        found_ns = trace.events.filter(trace.events["position"] == row)["start_ns"].item()
        self.zero_ns = events[order[row]]["start_ns"] - found_ns

    def row(self, activity: Activity | None) -> int | None:
        """Return the row of an activity, or None if it is not in the file."""
        record = None if activity is None else self._run.truth.position(activity)
        return None if record is None else self._row_of_record.get(record)


def _judge_window(
    window: Window, trace: longpole.Trace, places: Places, tolerance_ns: int
) -> Share:
    path = path_in(trace, window)
    zero_ns = places.zero_ns
    columns = ["start_ns", "duration_ns", "kind", "event"]
    found = [
        Piece(zero_ns + start_ns, zero_ns + start_ns + lasts_ns, kind, places.row_of_event.get(row))
        for start_ns, lasts_ns, kind, row in path.segments.select(columns).iter_rows()
    ]
    truth = [
        Piece(segment.start_ns, segment.end_ns, segment.kind, places.row(segment.activity))
        for segment in window.segments
    ]
    is_inconclusive = path.status == "inconclusive"
    return share_of(found, truth, inconclusive=is_inconclusive, tolerance_ns=tolerance_ns)


def path_in(trace: longpole.Trace, window: Window) -> longpole.CriticalPath:
    """Return the path that longpole finds in a window of the truth."""
    if window.step is None:
        return trace.critical_path(whole=True)
    return trace.critical_path(window.step, end="period" if "period" in window.name else "last")


def share_of(
    found: Sequence[Piece],
    truth: Sequence[Piece],
    *,
    inconclusive: bool = False,
    tolerance_ns: int = 0,
) -> Share:
    """Judge a path by the true one; both are in order, and the true one tiles its window."""
    window_ns = truth[-1].end_ns - truth[0].start_ns
    right_ns = false_ns = admitted_ns = 0
    for one, number, start_ns, end_ns in overlaps(found, truth):
        good_ns = right_part_ns(one, truth, number, (start_ns, end_ns), tolerance_ns)
        right_ns += good_ns
        if one.kind in ADMITTED:
            admitted_ns += end_ns - start_ns - good_ns
        elif not inconclusive:
            false_ns += end_ns - start_ns - good_ns
    return Share(right_ns / window_ns, false_ns / window_ns, admitted_ns / window_ns, inconclusive)


def right_part_ns(
    one: Piece, truth: Sequence[Piece], number: int, shared: tuple[int, int], tolerance_ns: int
) -> int:
    """Return how long a piece is right while it overlaps a true one.

    What is true at most the tolerance before or after is right too.
    """
    start_ns, end_ns = shared
    if one.is_right(truth[number]) or _is_around(one, truth, number):
        return end_ns - start_ns
    until_ns, good_ns = start_ns, 0
    for other in _near(truth, number, start_ns - tolerance_ns, end_ns + tolerance_ns):
        if one.is_right(other):
            from_ns = max(until_ns, other.start_ns - tolerance_ns)
            until_ns = max(until_ns, min(end_ns, other.end_ns + tolerance_ns))
            good_ns += max(0, until_ns - from_ns)
    return good_ns


def _is_around(one: Piece, truth: Sequence[Piece], number: int) -> bool:
    """Whether the true piece is a call that is not in the trace, and `one` the event around it."""
    if (truth[number].kind, truth[number].row) != ("runtime", None):
        return False
    beside = [*truth[max(number - 1, 0) : number], *truth[number + 1 : number + 2]]
    return any(one.is_right(other) for other in beside)


def _near(truth: Sequence[Piece], number: int, start_ns: int, end_ns: int) -> Sequence[Piece]:
    """Return the true pieces around one of them that lie in a stretch of time."""
    first = last = number
    while first and truth[first - 1].end_ns > start_ns:
        first -= 1
    while last + 1 < len(truth) and truth[last + 1].start_ns < end_ns:
        last += 1
    return truth[first : last + 1]


def overlaps(
    found: Sequence[Piece], truth: Sequence[Piece]
) -> Iterator[tuple[Piece, int, int, int]]:
    """Yield each stretch that a piece shares with a true one: the number of that, start and end."""
    first = 0
    for one in found:
        while first < len(truth) and truth[first].end_ns <= one.start_ns:
            first += 1
        for number in range(first, len(truth)):
            other = truth[number]
            if other.start_ns >= one.end_ns:
                break
            start_ns, end_ns = max(one.start_ns, other.start_ns), min(one.end_ns, other.end_ns)
            if start_ns < end_ns:
                yield one, number, start_ns, end_ns
