"""Small tensors that are made on the host and copied to the GPU one by one."""

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
    from longpole.remedies.facts import Activity, Facts

__all__ = ["REMEDY"]

# Minimum number of these copies in a step, and their maximum size.
_LEAST_COPIES: Final = 4
_MOST_BYTES: Final = 1 << 20

# Maximum number of kernels launched between two copies of one run.
_MOST_BETWEEN: Final = 3

# Operators that join the tensors afterwards.
_JOINING: Final = ("aten::stack", "aten::cat")

# Assumed time of a launch. Computing all the values on the GPU costs a few launches; the lower
# bound assumes one for each value.
_LAUNCH_NS: Final = 10_000
_FEW: Final = 3


def _find(facts: Facts) -> Iterator[Found]:
    of_place: dict[str, list[Activity]] = defaultdict(list)
    for copy in facts.uploads:
        n_bytes = facts.number(copy.event, "bytes") or 0
        if n_bytes < _MOST_BYTES and copy.call is not None:
            of_place[facts.name(copy.outermost or copy.call)].append(copy)
    for place, copies in sorted(of_place.items()):
        if len(copies) < _LEAST_COPIES * facts.n_windows:
            continue
        runs = [run for run in _runs(facts, copies) if len(run) >= _LEAST_COPIES]
        joins = sorted((row.lane, row.start_ns, row.end_ns) for row in facts.operators(*_JOINING))
        time_ranges = [_joined(joins, *_time_range(facts, run)) for run in runs]
        if facts.is_worth(sum(end_ns - start_ns for _, start_ns, end_ns in time_ranges)):
            yield _found(facts, place, [copy for run in runs for copy in run], time_ranges)


def _runs(facts: Facts, copies: list[Activity]) -> Iterator[list[Activity]]:
    """List copies with almost no launch between them."""
    run: list[Activity] = []
    for copy in sorted(copies, key=lambda copy: facts.place(copy.call or 0).start_ns):
        if run and not _continues(facts, run[-1], copy):
            yield run
            run = []
        run.append(copy)
    yield run


def _continues(facts: Facts, last: Activity, copy: Activity) -> bool:
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


def _found(facts: Facts, place: str, copies: list[Activity], time_ranges: list[TimeRange]) -> Found:
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
    id="tensors_from_python",
    side="host",
    effort="code",
    needs="operators, memcpys with their bytes, and the calls that wait",
    seen_by="at least 4 small copies to the GPU a step from one place, with Python before them",
    change="the copies, their waits, the host time before each and the operator that joins the "
    "tensors, except for a launch each",
    not_when="the copies are few, or of 1 MB and more",
    find=_find,
)
