"""Small copies one by one: values read from the GPU, or tensors made on the host for it.

Each has an operator, a copy and a wait of its own. Together, they have one.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from typing import TYPE_CHECKING, Final

from longpole.engine.critical_path.changes import Drop, RemoveWait, Scale
from longpole.remedies.model import Found, Remedy
from longpole.words.wording import count, short_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from longpole.engine.critical_path.changes import Change, TimeRange
    from longpole.remedies.facts import Facts
    from longpole.remedies.recorded import Activity, DeviceWait

# Minimum number of consecutive reads, and of copies to the GPU in a step: fewer gain little.
_LEAST_COPIES: Final = 4

# Maximum number of bytes of a copy that is read like a single value, and of a copy to the GPU.
_MOST_READ_BYTES: Final = 4_096
_MOST_SENT_BYTES: Final = 1 << 20

# Maximum number of GPU activities launched between two consecutive copies, and maximum time of
# Python between two reads: a longer time is work with the first value.
_MOST_BETWEEN: Final = 3
_LONGEST_PAUSE_NS: Final = 100_000

# Operators that join the tensors afterwards.
_JOINING: Final = ("aten::stack", "aten::cat")

# Assumed time of a launch. Computing all the values on the GPU costs a few launches; the lower
# bound assumes one for each value.
_LAUNCH_NS: Final = 10_000
_FEW: Final = 3


def _find(facts: Facts) -> Iterator[Found]:
    yield from _find_read(facts)
    yield from _find_sent(facts)


# Values that are read from the GPU.


def _find_read(facts: Facts) -> Iterator[Found]:
    of_place: dict[str, list[list[DeviceWait]]] = defaultdict(list)
    for run in _read_runs(facts):
        of_place[facts.name(run[0].operator or run[0].call.event)].append(run)
    for place, runs in sorted(of_place.items()):
        is_usual = 2 * len({run[0].call.window for run in runs}) >= facts.n_windows
        if is_usual:
            yield _found_read(facts, place, runs)


def _read_runs(facts: Facts) -> Iterator[list[DeviceWait]]:
    """Yield consecutive reads of one operator with hardly any launch in between."""
    run: list[DeviceWait] = []
    loads = _loads(facts)
    for wait in sorted(facts.waits, key=lambda wait: (wait.call.lane, wait.call.start_ns)):
        is_read = _is_read(facts, wait)
        if run and is_read and _reads_on(facts, run[-1], wait, loads):
            run.append(wait)
            continue
        if _n_reads(run) >= _LEAST_COPIES:
            yield run
        run = [wait] if is_read else []
    if _n_reads(run) >= _LEAST_COPIES:
        yield run


def _n_reads(run: list[DeviceWait]) -> int:
    """Return the number of copies: two calls may wait for one of them."""
    return len({wait.work for wait in run})


def _is_read(facts: Facts, wait: DeviceWait) -> bool:
    """Whether an operator waits for a small copy to the host."""
    if wait.operator is None or wait.work is None or facts.direction(wait.work) != "DtoH":
        return False
    return 0 < (facts.number(wait.work, "bytes") or 0) <= _MOST_READ_BYTES


def _loads(facts: Facts) -> list[tuple[int, int]]:
    """List the threads and starts of data loading, after which values are those of other data."""
    if facts.parts["loader"] is None:
        return []
    starts = [(row.lane, row.start_ns) for row in facts.annotations("enumerate(DataLoader)")]
    starts += [(gap.lane, gap.start_ns) for gap in facts.gaps(1_000) if gap.is_loading]
    return sorted(starts)


def _reads_on(
    facts: Facts, last: DeviceWait, wait: DeviceWait, loads: list[tuple[int, int]]
) -> bool:
    if (last.call.lane, last.call.window) != (wait.call.lane, wait.call.window):
        return False
    if facts.name(last.operator) != facts.name(wait.operator):
        return False
    if _start_ns(facts, wait) - last.call.end_ns > _LONGEST_PAUSE_NS:
        return False
    lane, ends = wait.call.lane, (last.call.start_ns, wait.call.start_ns)
    before, after = (bisect_left(loads, (lane, end_ns)) for end_ns in ends)
    if before != after:
        return False
    between = facts.launched_in([(lane, last.call.end_ns, wait.call.start_ns)])
    return len(between) <= _MOST_BETWEEN


def _found_read(facts: Facts, place: str, runs: list[list[DeviceWait]]) -> Found:
    n_reads = sum(map(_n_reads, runs))
    others = [wait for run in runs for wait in run if wait.work != run[-1].work]
    operators = [wait.operator for wait in others if wait.operator is not None]
    copies = sorted({wait.work for wait in others if wait.work is not None})
    gone: list[Change] = [
        RemoveWait(events=[wait.call.event for wait in others]),
        Drop(kind="copy", events=copies),
        Drop(kind="kernel_delay", events=copies),
    ]
    kept = len(runs) / n_reads
    shown = min(runs, key=lambda run: run[0].window != facts.shown)
    whole: list[TimeRange] = [
        (run[0].call.lane, _start_ns(facts, run[0]), run[-1].call.start_ns) for run in runs
    ]
    return Found(
        careful=[Scale(by=kept, events=operators), *gone],
        hopeful=[Scale(by=kept, time_ranges=whole), *gone],
        advice="Read the values together (`torch.stack(values).tolist()`), or less often",
        evidence=(
            f"{count(max(round(facts.per_window(n_reads)), 1), 'wait')} {facts.each} in "
            f"{short_name(place)} read them one by one"
        ),
        name=place,
        events=[wait.call.event for wait in shown[:8]],
    )


def _start_ns(facts: Facts, wait: DeviceWait) -> int:
    return wait.call.start_ns if wait.operator is None else facts.place(wait.operator).start_ns


# Tensors that are made on the host.


def _find_sent(facts: Facts) -> Iterator[Found]:
    of_place: dict[str, list[Activity]] = defaultdict(list)
    for copy in facts.uploads:
        n_bytes = facts.number(copy.event, "bytes") or 0
        if n_bytes < _MOST_SENT_BYTES and copy.call is not None:
            of_place[facts.name(copy.outermost or copy.call)].append(copy)
    for place, copies in sorted(of_place.items()):
        if len(copies) < _LEAST_COPIES * facts.n_windows:
            continue
        runs = [run for run in _sent_runs(facts, copies) if len(run) >= _LEAST_COPIES]
        joins = sorted((row.lane, row.start_ns, row.end_ns) for row in facts.operators(*_JOINING))
        time_ranges = [_joined(joins, *_time_range(facts, run)) for run in runs]
        if facts.is_worth(sum(end_ns - start_ns for _, start_ns, end_ns in time_ranges)):
            yield _found_sent(facts, place, [copy for run in runs for copy in run], time_ranges)


def _sent_runs(facts: Facts, copies: list[Activity]) -> Iterator[list[Activity]]:
    """List copies with almost no launch between them."""
    run: list[Activity] = []
    for copy in sorted(copies, key=lambda copy: facts.place(copy.call or 0).start_ns):
        if run and not _sends_on(facts, run[-1], copy):
            yield run
            run = []
        run.append(copy)
    yield run


def _sends_on(facts: Facts, last: Activity, copy: Activity) -> bool:
    before, after = facts.place(last.call or 0), facts.place(copy.call or 0)
    if (last.window, before.lane) != (copy.window, after.lane):
        return False
    time_range = (before.lane, before.end_ns, after.start_ns)
    return len(facts.launched_in([time_range])) <= _MOST_BETWEEN


def _time_range(facts: Facts, run: list[Activity]) -> tuple[TimeRange, int]:
    """Return the time in which Python makes the tensors of a run and copies them, and that of one.

    The first tensor is made before its copy, in the time from one copy to the next.
    """
    first, last = (
        facts.place(copy.outermost if copy.outermost is not None else copy.call or 0)
        for copy in (run[0], run[-1])
    )
    each_ns = (last.start_ns - first.start_ns) // max(len(run) - 1, 1)
    end_ns = last.end_ns
    return (first.lane, first.end_ns - each_ns, end_ns), each_ns


def _joined(joins: list[TimeRange], run: TimeRange, each_ns: int) -> TimeRange:
    """Extend a run by the operator that joins its tensors, if one follows."""
    lane, start_ns, end_ns = run
    place = bisect_left(joins, (lane, end_ns, 0))
    if place < len(joins) and joins[place][0] == lane and joins[place][1] <= end_ns + each_ns:
        end_ns = joins[place][2]
    return (lane, start_ns, end_ns)


def _found_sent(
    facts: Facts, place: str, copies: list[Activity], time_ranges: list[TimeRange]
) -> Found:
    works = {copy.event for copy in copies}
    waits = [wait.call.event for wait in facts.waits if wait.work in works]
    host_ns = sum(end_ns - start_ns for _, start_ns, end_ns in time_ranges)
    gone: list[Change] = [RemoveWait(events=waits), Drop(kind="copy", events=sorted(works))]
    each = min(len(copies) * _LAUNCH_NS / max(host_ns, 1), 1.0)
    few = min(len(time_ranges) * _FEW * _LAUNCH_NS / max(host_ns, 1), each)
    return Found(
        careful=[Scale(by=each, time_ranges=time_ranges), *gone],
        hopeful=[Scale(by=few, time_ranges=time_ranges), *gone],
        advice="Compute these tensors on the GPU, or copy them together",
        evidence=(
            f"{count(round(facts.per_window(len(copies))), 'small tensor')} "
            f"{facts.each} are made on the host and copied one by one in "
            f"{short_name(place)}"
        ),
        name=place,
        events=facts.longest(copies),
    )


REMEDY: Final = Remedy(
    id="small_copies",
    side="host",
    effort="code",
    needs="operators, memcpys with their bytes, and the calls that wait",
    seen_by=(
        "a run of `item` or of small copies to the host, each of which waits; or at least 4 small "
        "copies to the GPU a step from one place, with Python before them"
    ),
    change=(
        "one wait, one copy and one operator instead of all reads, at most also one stretch of "
        "Python; or the copies to the GPU, their waits, the host time before each and the operator "
        "that joins the tensors, except for a launch each"
    ),
    not_when=(
        "fewer than 4 reads without other work, waits or data loading between them, or few copies "
        "to the GPU, or of 1 MB and more"
    ),
    find=_find,
)
