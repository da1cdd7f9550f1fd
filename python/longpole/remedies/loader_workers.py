"""Batches that are made on the thread that launches work, or workers that are too few."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.critical_path.changes import Drop, Scale
from longpole.remedies.model import Found, Remedy
from longpole.wording import duration

if TYPE_CHECKING:
    from collections.abc import Iterator

    from longpole.remedies.facts import Facts

__all__ = ["REMEDY"]

# The batch comes from so many workers at the least: each makes one while the others do.
_FEWEST_WORKERS: Final = 4


def _find(facts: Facts) -> Iterator[Found]:
    if facts.parts["loader"] is None:
        return
    gaps = [gap for gap in facts.gaps(1_000) if gap.is_loading]
    loading = facts.annotations("enumerate(DataLoader)")
    total_ns = sum(row.duration_ns for row in loading or gaps)
    options = facts.options
    match facts.parts["loader"]:
        case "main_thread":
            advice = f"Give the DataLoader workers (`{options.workers}` > 0)"
        case "workers":
            advice = f"Use more loader workers or {options.prefetch}"
        case _:
            advice = "Load data in worker processes, prefetch, or decode on the GPU"
    mean_ns = round(facts.per_window(total_ns))
    yield Found(
        careful=[Scale(by=1 / _FEWEST_WORKERS, kind="data_loading")],
        hopeful=[Drop(kind="data_loading")],
        advice=advice,
        evidence=f"each {facts.parts['unit']} makes or awaits a batch for {duration(mean_ns)}",
        events=facts.longest(loading) or [gap.after for gap in gaps[:8] if gap.after is not None],
    )


REMEDY: Final = Remedy(
    id="loader_workers",
    side="host",
    effort="one_line",
    needs="Python functions or annotations of the data loader",
    seen_by="loading data on the thread that launches work, or waiting for workers there",
    change="loading data to a quarter (4 workers); at the most, no time at all",
    not_when="no data is loaded on the path",
    find=_find,
)
