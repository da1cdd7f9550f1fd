"""The output of benchmark tools as rows of records: one per operation and run.

A run is defined by the tool (`run` among the fields), or else is the whole output: rows of one
process are its samples. Rows that cannot be compared are failed attempts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from longpole.bench.extraction import extract

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator

    from longpole.bench.extraction import Extraction

__all__ = ["printed_rows"]

_SAID = ("run", "statistic", "started_at")


def printed_rows(path: str | os.PathLike[str]) -> Iterator[dict[str, Any]]:
    """Yield the rows of the tools that wrote a file; none if no format is recognised."""
    found = extract(path)
    said = _said(found)
    runs: dict[tuple[str, ...], dict[str, Any]] = {}
    for at, row in enumerate(found.measurements):
        run, statistic, started_at = (said.get((at, name), "") for name in _SAID)
        name = row.operation or row.format
        if not row.is_selectable:
            yield {"key": name, "outcome": row.status}
            continue
        key = (name, row.format, statistic, run)
        clock = f"{row.format} {statistic}".rstrip()
        printed = {
            "key": name,
            "outcome": "ok",
            "results": [],
            "started_at": started_at,
            "sampling": {"clock": clock},
        }
        original = {"time": row.printed_time, "unit": row.printed_unit}
        runs.setdefault(key, printed)["results"].append(
            {"name": "", "time_ns": row.time_ns, "original": original}
        )
    yield from runs.values()


def _said(found: Extraction) -> dict[tuple[int, str], str]:
    import polars as pl

    told = found.fields.filter(pl.col("name").cast(pl.String).is_in(_SAID))
    return {(record, name): value for record, name, value in told.iter_rows()}
