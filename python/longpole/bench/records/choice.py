"""Chooses the best result: by time, then by name, independent of the order of completion."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from longpole.bench.records.record import Outcome, is_duration_ns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from longpole.bench.records.record import Measurement, Record

__all__ = ["best_of_final", "best_records", "fastest", "final_records"]


def fastest(results: Iterable[Measurement]) -> Measurement | None:
    """Return the fastest result. An invalid time never wins (see `is_duration_ns`)."""
    sound = [result for result in results if is_duration_ns(result.time_ns)]
    return min(sound, key=lambda result: (result.time_ns, result.name), default=None)


def final_records(records: Iterable[Record]) -> dict[str, Record]:
    """Return the last record of each job by id, in the order in which ids first occur."""
    last: dict[str, Record] = {}
    for record in records:
        if record.is_final:
            last[record.id] = record
    return last


def best_records(
    records: Iterable[Record], by: Callable[[Record], str] = lambda record: record.key
) -> dict[str, Record]:
    """Return the record with the fastest result of each group, among successful runs.

    Ties are decided by the name of the result, then the id of the job, so that the order in which
    jobs ran does not matter. Groups are in the order of their names.
    """
    last = final_records(records)
    chosen = best_of_final(last.values(), by)
    return {group: last[record.id] for group, record in chosen.items()}


def best_of_final(
    records: Iterable[Record], by: Callable[[Record], str] = lambda record: record.key
) -> dict[str, Record]:
    """Choose as `best_records` does, from final records, one per job, which are read once.

    To save memory, the chosen records come without their environment, their output and their other
    results.
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
