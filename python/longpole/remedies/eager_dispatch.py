"""A function of JAX that dispatches operation by operation, outside `jax.jit`.

Each `PjitFunction` is then a compiled program of one operation: the host checks its arguments,
allocates its result and launches a kernel.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Final, NamedTuple

from longpole.engine.critical_path.changes import Drop
from longpole.remedies.model import Found, Remedy
from longpole.words.wording import count, duration, short_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from longpole.engine.critical_path.changes import TimeRange
    from longpole.remedies.facts import Facts
    from longpole.remedies.recorded import OnThread, ThreadGap

_CALL: Final = "PjitFunction("

# Operators in which the host reads a value.
_READS: Final = ("np.asarray(jax.Array)", "CommonPjRtBuffer::ToLiteral")

# A primitive launches one kernel, a function of `jax.numpy` a few: a mean three.
_MOST_LAUNCHED: Final = 4

# Fewer calls in a row are usual around a compiled step. A call that takes longer compiles, in ns.
_LEAST_CALLS: Final = 4
_COMPILES_NS: Final = 5_000_000

# Calls that together take less of a window are not worth a change.
_LEAST_SHARE: Final = 0.03
_WIDEST: Final = 60

# Shorter gaps of other threads do not matter.
_LEAST_GAP_NS: Final = 1_000


class _Call(NamedTuple):
    row: OnThread
    launches: list[TimeRange]
    """Times of the runtime API calls that launch its activities, by start."""

    @property
    def rest(self) -> list[TimeRange]:
        """Its time outside its launches."""
        lane, start_ns, end_ns = self.row.time_range
        ranges = []
        for _, begin_ns, until_ns in self.launches:
            ranges.append((lane, start_ns, begin_ns))
            start_ns = until_ns
        return [it for it in (*ranges, (lane, start_ns, end_ns)) if it[1] < it[2]]


def _find(facts: Facts) -> Iterator[Found]:
    of_function: dict[str | None, list[list[_Call]]] = defaultdict(list)
    for run in facts.once(_runs):
        of_function[_function(facts, run)].append(run)
    for function, runs in of_function.items():
        total_ns = sum(call.row.duration_ns for run in runs for call in run)
        is_usual = 2 * len({run[0].row.window for run in runs}) >= facts.n_windows
        if is_usual and facts.is_worth(total_ns, _LEAST_SHARE):
            yield _found(facts, function, runs)


def dispatched(facts: Facts) -> list[TimeRange]:
    """Return the times of threads in which operations are dispatched one by one."""
    runs = facts.once(_runs)
    return [(run[0].row.lane, run[0].row.start_ns, run[-1].row.end_ns) for run in runs]


def _runs(facts: Facts) -> list[list[_Call]]:
    """List calls of one thread and window in a row, each of one operation, without a wait."""
    calls = facts.once(_calls)
    reads = facts.once(_reads) if calls else []
    marks: list[tuple[int, int, int, _Call | None]] = [
        (it.lane, it.window, it.start_ns, None) for it in reads
    ]
    marks += [(it.row.lane, it.row.window, it.row.start_ns, it) for it in calls]
    runs: list[list[_Call]] = [[]]
    before: tuple[int, int] | None = None
    for lane, window, _, call in sorted(marks, key=lambda mark: mark[:3]):
        is_small = call is not None and _is_small(call)
        if not is_small or before != (lane, window):
            runs.append([])
        if call is not None and is_small:
            runs[-1].append(call)
        before = (lane, window)
    return [run for run in runs if len(run) >= _LEAST_CALLS]


def _calls(facts: Facts) -> list[_Call]:
    """List the outermost calls of compiled functions, with their launches."""
    outermost: list[OnThread] = []
    rows = facts.operators(_CALL)
    for row in sorted(rows, key=lambda row: (row.lane, row.start_ns, -row.end_ns)):
        if not outermost or (row.lane, row.start_ns) >= (outermost[-1].lane, outermost[-1].end_ns):
            outermost.append(row)
    launches: dict[tuple[int, int], list[TimeRange]] = defaultdict(list)
    if outermost:
        ends = iter(outermost)
        call = next(ends)
        works = facts.launched_in([row.time_range for row in outermost])
        times = [facts.place(work.call).time_range for work in works if work.call is not None]
        for time_range in sorted(times):
            while time_range[:2] >= (call.lane, call.end_ns):
                call = next(ends)
            launches[call.lane, call.start_ns].append(time_range)
    return [_Call(row, launches[row.lane, row.start_ns]) for row in outermost]


def _reads(facts: Facts) -> list[OnThread]:
    return [*(wait.call for wait in facts.waits), *facts.operators(*_READS)]


def _is_small(call: _Call) -> bool:
    return 0 < len(call.launches) <= _MOST_LAUNCHED and call.row.duration_ns < _COMPILES_NS


def _function(facts: Facts, run: list[_Call]) -> str | None:
    """Return the innermost function around the calls, if it calls nothing else that is compiled."""
    first, last = run[0].row, run[-1].row
    for event, kind, name in facts.around(first.event):
        place = facts.place(event)
        if kind == "python" and place.end_ns >= last.end_ns:
            starts = facts.once(_starts)[place.lane]
            n_calls = bisect_left(starts, place.end_ns) - bisect_left(starts, place.start_ns)
            return name if n_calls == len(run) else None
    return None


def _starts(facts: Facts) -> dict[int, list[int]]:
    """Return when calls of compiled functions and reads start on each thread, sorted."""
    starts: dict[int, list[int]] = defaultdict(list)
    for row in (*(it.row for it in facts.once(_calls)), *facts.once(_reads)):
        starts[row.lane].append(row.start_ns)
    for of_lane in starts.values():
        of_lane.sort()
    return starts


def _idle_workers(facts: Facts) -> list[TimeRange]:
    """List the gaps of XLA's own threads, which wait there for the launching thread.

    Nothing records that they wait, so that the gaps would keep a step as long as it is.
    """
    lanes = facts.launch_lanes | {call.row.lane for call in facts.once(_calls)}
    gaps = [gap for gap in facts.gaps(_LEAST_GAP_NS) if gap.lane not in lanes]
    return [gap.time_range for gap in gaps if not _runs_python(facts, gap)]


def _runs_python(facts: Facts, gap: ThreadGap) -> bool:
    ends = [event for event in (gap.before, gap.after) if event is not None]
    return any(kind == "python" for event in ends for _, kind, _ in facts.around(event))


def _found(facts: Facts, function: str | None, runs: list[list[_Call]]) -> Found:
    calls = [call.row for run in runs for call in run]
    names = Counter(facts.name(row.event) for row in calls)
    usual = min(names, key=lambda name: (-names[name], name))
    n_calls = count(max(round(facts.per_window(len(calls))), 1), "call")
    rest = [it for run in runs for call in run[1:] for it in call.rest]
    all_of = [(run[0].row.lane, run[0].row.end_ns, run[-1].row.end_ns) for run in runs]
    idle = facts.once(_idle_workers)
    return Found(
        careful=[Drop(time_ranges=[*rest, *idle])],
        hopeful=[Drop(time_ranges=[*all_of, *idle])],
        advice=(
            f"Compile {short_name(function, _WIDEST)} with `jax.jit`"
            if function
            else "Compile what JAX dispatches one by one as one function, with `jax.jit`"
        ),
        evidence=(
            f"{n_calls} {facts.each} such as {short_name(usual, _WIDEST)} dispatch one operation "
            f"each, in {duration(facts.told_ns(calls))}; the compiled function is not measured"
        ),
        name=function or usual,
        events=facts.longest(calls),
    )


REMEDY: Final = Remedy(
    id="eager_dispatch",
    side="host",
    effort="one_line",
    needs="host events of JAX and runtime calls",
    seen_by="4 calls of `PjitFunction` in a row with at most 4 activities each",
    change=(
        "the host time of all calls but the first outside their launches; at most also their "
        "launches and the Python between them"
    ),
    not_when="a value is read or a larger function is called between them",
    shortens=("operator", "runtime", "host_gap"),
    is_measured=False,
    find=_find,
)
