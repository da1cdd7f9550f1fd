"""Values read from the GPU one by one, each with its own wait."""

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
    from longpole.remedies.facts import DeviceWait, Facts

__all__ = ["REMEDY"]

# Fewer consecutive values could be read together with little gain.
_LEAST_IN_RUN: Final = 4

# Maximum number of bytes of a copy that is read like a single value.
_MOST_BYTES: Final = 4_096

# Maximum number of GPU activities launched between two consecutive reads.
_MOST_BETWEEN: Final = 3


def _find(facts: Facts) -> Iterator[Found]:
    of_place: dict[str, list[list[DeviceWait]]] = defaultdict(list)
    for run in _runs(facts):
        of_place[facts.name(run[0].operator or run[0].call.event)].append(run)
    for place, runs in sorted(of_place.items()):
        is_usual = 2 * len({run[0].call.window for run in runs}) >= facts.n_windows
        if is_usual:
            yield _found(facts, place, runs)


def _runs(facts: Facts) -> Iterator[list[DeviceWait]]:
    """Yield consecutive reads of one operator with hardly any launch in between."""
    run: list[DeviceWait] = []
    loads = _loads(facts)
    for wait in sorted(facts.waits, key=lambda wait: (wait.call.lane, wait.call.start_ns)):
        is_read = _is_read(facts, wait)
        if run and is_read and _continues(facts, run[-1], wait, loads):
            run.append(wait)
            continue
        if len(run) >= _LEAST_IN_RUN:
            yield run
        run = [wait] if is_read else []
    if len(run) >= _LEAST_IN_RUN:
        yield run


def _is_read(facts: Facts, wait: DeviceWait) -> bool:
    """Whether an operator waits for a small copy to the host."""
    if wait.operator is None or wait.work is None or facts.direction(wait.work) != "DtoH":
        return False
    return 0 < (facts.number(wait.work, "bytes") or 0) <= _MOST_BYTES


def _loads(facts: Facts) -> list[tuple[int, int]]:
    """List the threads and starts of data loading, after which values are those of other data."""
    if facts.parts["loader"] is None:
        return []
    starts = [(row.lane, row.start_ns) for row in facts.annotations("enumerate(DataLoader)")]
    starts += [(gap.lane, gap.start_ns) for gap in facts.gaps(1_000) if gap.is_loading]
    return sorted(starts)


def _continues(
    facts: Facts, last: DeviceWait, wait: DeviceWait, loads: list[tuple[int, int]]
) -> bool:
    if (last.call.lane, last.call.window) != (wait.call.lane, wait.call.window):
        return False
    if facts.name(last.operator) != facts.name(wait.operator):
        return False
    lane, ends = wait.call.lane, (last.call.start_ns, wait.call.start_ns)
    before, after = (bisect_left(loads, (lane, end_ns)) for end_ns in ends)
    if before != after:
        return False
    between = facts.launched_in([(lane, last.call.end_ns, wait.call.start_ns)])
    return len(between) <= _MOST_BETWEEN


def _found(facts: Facts, place: str, runs: list[list[DeviceWait]]) -> Found:
    n_waits = sum(len(run) for run in runs)
    others = [wait for run in runs for wait in run[:-1]]
    operators = [wait.operator for wait in others if wait.operator is not None]
    copies = sorted({wait.work for wait in others if wait.work is not None})
    gone: list[Change] = [
        RemoveWait(events=[wait.call.event for wait in others]),
        Drop(kind="copy", events=copies),
        Drop(kind="kernel_delay", events=copies),
    ]
    kept = len(runs) / n_waits
    shown = min(runs, key=lambda run: run[0].window != facts.shown)
    whole: list[TimeRange] = [
        (run[0].call.lane, _start_ns(facts, run[0]), run[-1].call.start_ns) for run in runs
    ]
    return Found(
        careful=[Scale(by=kept, events=operators), *gone],
        hopeful=[Scale(by=kept, time_ranges=whole), *gone],
        advice="Read the values together (`torch.stack(values).tolist()`), or less often",
        evidence=(
            f"{count(max(round(facts.per_window(n_waits)), 1), 'wait')} {facts.each} in "
            f"{short_name(place)} read them one by one"
        ),
        name=place,
        events=[wait.call.event for wait in shown[:8]],
    )


def _start_ns(facts: Facts, wait: DeviceWait) -> int:
    return wait.call.start_ns if wait.operator is None else facts.place(wait.operator).start_ns


REMEDY: Final = Remedy(
    id="read_one_by_one",
    side="host",
    effort="code",
    needs="operators, waiting calls, sizes of memcpys",
    seen_by="a run of `item` or of small copies to the host, each of which waits",
    change="one wait, one copy and one operator instead of all; at most also one stretch of "
    "Python instead of all",
    not_when="fewer than 4 without other work, waits or data loading between them",
    find=_find,
)
