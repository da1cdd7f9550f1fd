"""Values read from the GPU one by one, each with its own wait."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from longpole.critical_path.changes import Drop, RemoveWait, Scale
from longpole.remedies.model import Found, Remedy
from longpole.wording import count, short_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from longpole.critical_path.changes import Change, TimeRange
    from longpole.remedies.facts import DeviceWait, Facts

__all__ = ["REMEDY"]

# Fewer consecutive values could be read together with little gain.
_LEAST_IN_RUN: Final = 4

# Maximum number of bytes of a copy with a single value.
_MOST_BYTES: Final = 64

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
    """Yield consecutive waits of one operator with hardly any launch in between."""
    run: list[DeviceWait] = []
    for wait in sorted(facts.waits, key=lambda wait: (wait.call.lane, wait.call.start_ns)):
        if run and _continues(facts, run[-1], wait):
            run.append(wait)
            continue
        if len(run) >= _LEAST_IN_RUN:
            yield run
        run = [wait] if wait.operator is not None else []
    if len(run) >= _LEAST_IN_RUN:
        yield run


def _continues(facts: Facts, last: DeviceWait, wait: DeviceWait) -> bool:
    if (last.call.lane, last.call.window) != (wait.call.lane, wait.call.window):
        return False
    if facts.name(last.operator) != facts.name(wait.operator):
        return False
    between = facts.launched_in([(wait.call.lane, last.call.end_ns, wait.call.start_ns)])
    return len(between) <= _MOST_BETWEEN


def _found(facts: Facts, place: str, runs: list[list[DeviceWait]]) -> Found:
    n_waits = sum(len(run) for run in runs)
    others = [wait for run in runs for wait in run[:-1]]
    operators = [wait.operator for wait in others if wait.operator is not None]
    copies = sorted(_small_copies(facts, others))
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
            f"{count(max(round(facts.per_window(n_waits)), 1), 'wait')} a {facts.unit} in "
            f"{short_name(place)} read them one by one"
        ),
        name=place,
        events=[wait.call.event for wait in shown[:8]],
    )


def _small_copies(facts: Facts, waits: list[DeviceWait]) -> set[int]:
    """Return the copies of single values that are waited for."""
    works = {wait.work for wait in waits if wait.work is not None}
    return {work for work in works if 0 < (facts.number(work, "bytes") or 0) <= _MOST_BYTES}


def _start_ns(facts: Facts, wait: DeviceWait) -> int:
    return wait.call.start_ns if wait.operator is None else facts.place(wait.operator).start_ns


REMEDY: Final = Remedy(
    id="read_one_by_one",
    side="host",
    effort="code",
    needs="operators and the calls that wait",
    seen_by="a run of `item` or of small copies to the host, each of which waits",
    change="one wait, one copy and one operator instead of all; at most also one stretch of "
    "Python instead of all",
    not_when="fewer than 4 in a row, or work is launched between them",
    find=_find,
)
