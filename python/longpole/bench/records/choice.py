"""The best result: by time, and by name between equals, whatever came in first."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from longpole.bench.records.record import Outcome, is_duration_ns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from longpole.bench.records.record import Measurement, Record

__all__ = ["best_of_final", "best_records", "fastest", "final_records"]


def fastest(results: Iterable[Measurement]) -> Measurement | None:
    """Choose the fastest result. A time that is none never wins (see `is_duration_ns`)."""
    sound = [result for result in results if is_duration_ns(result.time_ns)]
    return min(sound, key=lambda result: (result.time_ns, result.name), default=None)


def final_records(records: Iterable[Record]) -> dict[str, Record]:
    """Give the last word on each job, by its id, in the order of the ids' first mention."""
    last: dict[str, Record] = {}
    for record in records:
        if record.is_final:
            last[record.id] = record
    return last


def best_records(
    records: Iterable[Record], by: Callable[[Record], str] = lambda record: record.key
) -> dict[str, Record]:
    """Choose the record with the fastest result of each group, of runs that were sound.

    Ties go to the name of the result, then to the id of the job, so that the
    order in which jobs were done has no say. Groups are in the order of their names.
    """
    last = final_records(records)
    chosen = best_of_final(last.values(), by)
    return {group: last[record.id] for group, record in chosen.items()}


def best_of_final(
    records: Iterable[Record], by: Callable[[Record], str] = lambda record: record.key
) -> dict[str, Record]:
    """Choose as `best_records` does from final records, one a job, which are read once.

    Of the chosen records only what a choice rests on is kept: they come without their
    environment, their output and their other results.
    """
    chosen: dict[str, Record] = {}
    for record in records:
        group = by(record)
        if _rank(record) is not None and _is_better(record, chosen.get(group)):
            chosen[group] = _slim(record)
    return dict(sorted(chosen.items()))


def _slim(record: Record) -> Record:
    return replace(
        record, environment={}, stdout_tail="", stderr_tail="", results=(), omitted=(), strays=()
    )


def _is_better(record: Record, rival: Record | None) -> bool:
    return rival is None or (_rank(record) or ()) < (_rank(rival) or ())


def _rank(record: Record) -> tuple[float, str, str] | None:
    if record.outcome is not Outcome.OK or record.best is None:
        return None
    return (record.best.time_ns, record.best.name, record.id)
