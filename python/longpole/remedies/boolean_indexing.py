"""Indexing with a boolean mask: the host waits to learn the number of selected elements."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from longpole.engine.critical_path.changes import Drop, RemoveWait, Scale
from longpole.remedies.model import Found, Remedy
from longpole.remedies.rooflines import replaced
from longpole.words.wording import count

if TYPE_CHECKING:
    from collections.abc import Iterator

    from longpole.remedies.facts import Facts
    from longpole.remedies.recorded import Activity, OnThread

INDEXING: Final = (
    "aten::index",
    "aten::index_put_",
    "aten::_index_put_impl_",
    "aten::masked_select",
)
"""Operators that call `nonzero` for a mask."""

# Host time of one operator instead of about ten calls: upper and lower bound as a fraction of the
# current time.
_OF_HOST: Final = (0.5, 0.2)

# Processing all elements instead of selecting some (such as counting them) takes at most this
# fraction of the time of the selection.
_OF_KERNELS: Final = 0.5

# Fraction of the memory bandwidth that a pass over the elements reaches.
_OF_BANDWIDTH: Final = 0.8
_SHORTEST_NS: Final = 2_000


class _Chosen(NamedTuple):
    operator: OnThread
    kernels: list[Activity]
    others: list[Activity]


def _find(facts: Facts) -> Iterator[Found]:
    found = [_chosen(facts, row) for row in _by_mask(facts)]
    if not found or not facts.is_worth(sum(it.operator.duration_ns for it in found)):
        return
    time_ranges = [it.operator.time_range for it in found]
    waits = RemoveWait(time_ranges=time_ranges)
    gone = [work.event for it in found for work in it.others]
    times: dict[int, float] = {}
    for it in found:
        times.update({work.event: 0.0 for work in it.kernels})
        if it.kernels:
            times[it.kernels[-1].event] = _pass_ns(facts, it)
    gathering = {work.event: _OF_KERNELS * work.duration_ns for it in found for work in it.kernels}
    most = replaced({event: max(gathering[event], times[event]) for event in gathering})
    work = [*replaced(times), *([Drop(events=gone)] if gone else [])]
    host = [Scale(by=by, time_ranges=time_ranges) for by in _OF_HOST]
    longest = max(found, key=lambda it: it.operator.duration_ns).operator
    name = facts.name(longest.event)
    is_written = name != "aten::masked_select" and "index_put" in name
    n_found = max(round(facts.per_window(len(found))), 1)
    yield Found(
        careful=[host[0], waits, *most, *([Drop(events=gone)] if gone else [])],
        hopeful=[host[1], waits, *work],
        advice=(
            "Write with `torch.where` or `masked_fill` instead of an index by a mask"
            if is_written
            else "Compute on all elements with `torch.where` instead of choosing some by a mask"
        ),
        evidence=(f"{count(n_found, 'time', 'times')} {facts.each}, {name} waits for `nonzero`"),
        name=name,
        events=facts.longest(it.operator for it in found),
    )


def _by_mask(facts: Facts) -> list[OnThread]:
    """List the operators that index by a mask, the outermost around each `nonzero`."""
    outer: set[int] = set()
    for row in facts.operators("aten::nonzero"):
        names = [(event, name) for event, _, name in facts.around(row.event)]
        outer.update([event for event, name in names if name in INDEXING][-1:])
    rows = facts.operators("aten::index", "aten::_index_put_impl_", "aten::masked_select")
    return [row for row in rows if row.event in outer]


def _chosen(facts: Facts, operator: OnThread) -> _Chosen:
    works = facts.launched_in([operator.time_range])
    kernels = [work for work in works if facts.place(work.event).kind == "kernel"]
    return _Chosen(operator, kernels, [work for work in works if work not in kernels])


def _pass_ns(facts: Facts, chosen: _Chosen) -> float:
    """Return the time of a pass over the elements, or of gathering if that is longer."""
    call, peaks = facts.called(chosen.operator.event), facts.peaks
    last_ns = float(chosen.kernels[-1].duration_ns)
    if call is None or peaks is None or peaks.bandwidth is None:
        return sum(float(work.duration_ns) for work in chosen.kernels)
    n_bytes = 2 * sum(it.stored * (it.item_bytes or 0) for it in call.all_tensors())
    return max(n_bytes / (_OF_BANDWIDTH * peaks.bandwidth), last_ns, _SHORTEST_NS)


REMEDY: Final = Remedy(
    id="boolean_indexing",
    side="host",
    effort="code",
    needs="operators of torch; with recorded shapes the pass over the elements is computed",
    seen_by="`nonzero` inside `index`, `index_put_` or `masked_select`",
    change=(
        "no wait for the number of elements, one pass over them or half of the time of the kernels "
        "of `nonzero` and of gathering instead of these, and 0.2 to 0.5 of the host time of the "
        "operator"
    ),
    not_when="indices themselves are needed, or few elements are chosen for much work",
    find=_find,
)
