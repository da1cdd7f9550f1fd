"""Consecutive collectives of few bytes, for example one for each parameter."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.engine.critical_path.changes import Drop, Replace, Scale
from longpole.remedies.model import Found, Remedy
from longpole.words.wording import count, duration, short_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from longpole.engine.critical_path.changes import Change
    from longpole.remedies.facts import Facts
    from longpole.remedies.recorded import Activity

# A run has at least this many collectives with the same name, each shorter than this or with fewer
# bytes. A message of few bytes takes as long as a round trip, even on a slow network.
_LEAST_IN_RUN: Final = 8
_LONGEST_NS: Final = 100_000
_MOST_BYTES: Final = 1 << 18

# Bytes of an element, by PyTorch's name of its type.
_ELEMENT_BYTES: Final = {
    **dict.fromkeys(("Double", "Long", "ComplexFloat"), 8),
    **dict.fromkeys(("Float", "Int"), 4),
    **dict.fromkeys(("Half", "BFloat16", "Short"), 2),
    **dict.fromkeys(("Byte", "Char", "Bool", "Float8_e4m3fn", "Float8_e5m2"), 1),
}

# A joined collective takes as long as the longest of them, and at most this many times that.
_CAREFUL: Final = 3


def _find(facts: Facts) -> Iterator[Found]:
    if not any(work.kind == "communication" for work in facts.kernels):
        return
    in_order = facts.in_launch_order(facts.kernels)
    runs = [run for works in in_order for run in _runs(facts, works)]
    works = [work for run in runs for work in run]
    if not works or not facts.is_worth(sum(work.duration_ns for work in works)):
        return
    careful, hopeful = (
        [change for run in runs for change in _together(run, factor)] for factor in (_CAREFUL, 1)
    )
    n_each = max(round(facts.per_window(len(works))), 1)
    mean_ns = sum(work.duration_ns for work in works) / len(works)
    yield Found(
        careful=careful,
        hopeful=hopeful,
        advice="Send small messages together (one flat buffer, larger buckets)"
        + (", if latency limits them" if _may_be_bandwidth(facts, works) else ""),
        evidence=(
            f"{count(n_each, 'collective')} {facts.each} such as "
            f"{short_name(facts.name(works[0].event))} follow each other without other work, "
            f"{duration(round(mean_ns))} each"
        ),
        name=facts.name(works[0].event),
        events=facts.longest(works),
    )


def _may_be_bandwidth(facts: Facts, works: list[Activity]) -> bool:
    """Whether bandwidth may limit slow messages, because all have one known size, or none has."""
    sizes = {bytes_of(facts, work) for work in works}
    mean_ns = sum(work.duration_ns for work in works) / len(works)
    return mean_ns >= _LONGEST_NS and len(sizes) == 1


def _runs(facts: Facts, works: list[Activity]) -> Iterator[list[Activity]]:
    """List collectives with one name that are launched with nothing else in between."""
    run: list[Activity] = []
    for work in [*works, None]:
        is_run = work is not None and work.kind == "communication" and _is_small(facts, work)
        is_next = (
            bool(run) and work is not None and facts.name(work.event) == facts.name(run[0].event)
        )
        if run and not (is_run and is_next):
            if len(run) >= _LEAST_IN_RUN:
                yield run
            run = []
        if is_run and work is not None:
            run.append(work)


def _is_small(facts: Facts, work: Activity) -> bool:
    return is_small(work.duration_ns, bytes_of(facts, work))


def is_small(duration_ns: int, n_bytes: int | None) -> bool:
    """Whether a collective is short, or of few bytes."""
    return duration_ns < _LONGEST_NS or 0 < (n_bytes or 0) <= _MOST_BYTES


def bytes_of(facts: Facts, work: Activity) -> int | None:
    """Return the bytes of a collective; None if unknown."""
    n_elements = facts.number(work.event, "In msg nelems")
    element_bytes = _ELEMENT_BYTES.get(facts.text(work.event, "dtype") or "")
    return None if n_elements is None or element_bytes is None else n_elements * element_bytes


def _together(run: list[Activity], factor: int) -> list[Change]:
    """Return the changes that turn a run into one collective."""
    first, *others = [work.event for work in run]
    total_ns = sum(work.duration_ns for work in run)
    time_ns = min(factor * max(work.duration_ns for work in run), total_ns)
    calls = [work.call for work in run[1:] if work.call is not None]
    return [
        Replace(time_ns=time_ns, events=[first]),
        Drop(kind="communication", events=others),
        Scale(by=0.0, kind="kernel_delay", events=others),
        Drop(kind="runtime", events=calls),
    ]


REMEDY: Final = Remedy(
    id="small_messages",
    side="communication",
    effort="configuration",
    needs="kernels that communicate, linked to their calls",
    seen_by=(
        "8 collectives or more of one name, each shorter than 100 us or of at most 256 KiB, that "
        "one thread launches with no other kernel between them"
    ),
    change="each run takes three times as long as its longest collective; at most, once",
    not_when="other work is launched between them, as by tensor parallelism",
    find=_find,
)
