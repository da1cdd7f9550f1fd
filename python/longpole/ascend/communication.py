"""Reads `communication.json` and `communication_matrix.json`: what HCCL's collectives moved."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from longpole.ascend.problems import profile_error

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Iterator, Sequence

    import polars as pl

__all__ = ["read_communication", "read_communication_matrix"]

_SUM: Final = "Total Op Info"
_TIME: Final = "Communication Time Info"
_BANDWIDTH: Final = "Communication Bandwidth Info"
_NAMED: Final = ("step", "kind", "name", "group")
_TIMES: Final = {
    "elapse_ns": "Elapse Time(ms)",
    "transit_ns": "Transit Time(ms)",
    "wait_ns": "Wait Time(ms)",
    "synchronization_ns": "Synchronization Time(ms)",
    "idle_ns": "Idle Time(ms)",
}


def read_communication(path: str | os.PathLike[str]) -> pl.DataFrame:
    """Read `communication.json`: a row for each collective and kind of transport.

    Columns: `step`, `kind` (`p2p`, `collective`), `name`, `group`, `elapse_ns`, `transit_ns`,
    `wait_ns`, `synchronization_ns`, `idle_ns` (as the tool computed them), `transport`,
    `transit_mb`, `bandwidth_gb_per_s`. What the file does not say is null.

    Raises
    ------
    TraceError
        The file is no JSON of this kind.
    """
    columns = (*_NAMED, *_TIMES, "transport", "transit_mb", "bandwidth_gb_per_s")
    return _frame(_operations(_document(path)), columns)


def read_communication_matrix(path: str | os.PathLike[str]) -> pl.DataFrame:
    """Read `communication_matrix.json`: a row for each collective and pair of ranks.

    Columns: `step`, `kind`, `name`, `group`, `source_rank`, `target_rank`, `transport`,
    `transit_mb`, `transit_ns`, `bandwidth_gb_per_s`.

    Raises
    ------
    TraceError
        The file is no JSON of this kind.
    """
    ranks = ("source_rank", "target_rank")
    columns = (*_NAMED, *ranks, "transport", "transit_mb", "transit_ns", "bandwidth_gb_per_s")
    return _frame(_links(_document(path)), columns)


def _frame(rows: Iterable[tuple[Any, ...]], columns: Sequence[str]) -> pl.DataFrame:
    import polars as pl

    types: dict[str, pl.DataType] = dict.fromkeys((*_NAMED, "transport"), pl.String())
    types |= dict.fromkeys(("transit_mb", "bandwidth_gb_per_s"), pl.Float64())
    schema = {name: types.get(name, pl.Int64()) for name in columns}
    return pl.DataFrame(list(rows), schema=schema, orient="row", strict=False)


def _document(path: str | os.PathLike[str]) -> dict[str, Any]:
    text = Path(path).read_bytes().removeprefix(b"\xef\xbb\xbf").decode(errors="replace")
    hint = "copy the file again, or export the profile again"
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise profile_error(path, f"malformed JSON: {error}", "malformed_json", hint) from error
    if not isinstance(document, dict):
        raise profile_error(path, "no object of steps", "malformed_json", hint)
    return document


def _named(document: dict[str, Any]) -> Iterator[tuple[tuple[str, str, str, str], dict[str, Any]]]:
    """Give each operation with its step, kind, name and group."""
    for step, kinds in document.items():
        for kind, operations in _items(kinds):
            for title, operation in _items(operations):
                name, _, group = title.partition("@")
                if name != _SUM and isinstance(operation, dict):
                    yield (step, kind, name, group), operation


def _operations(document: dict[str, Any]) -> Iterator[tuple[Any, ...]]:
    for place, operation in _named(document):
        times = operation.get(_TIME)
        spent = [_ms(times, name) for name in _TIMES.values()]
        transports: list[tuple[str | None, float | None, float | None]] = [
            (name, _number(values, "Transit Size(MB)"), _number(values, "Bandwidth(GB/s)"))
            for name, values in _items(operation.get(_BANDWIDTH))
            if _number(values, "Transit Size(MB)")
        ]
        for transport in transports or [(None, None, None)]:
            yield (*place, *spent, *transport)


def _links(document: dict[str, Any]) -> Iterator[tuple[Any, ...]]:
    for place, operation in _named(document):
        for pair, values in _items(operation):
            source, _, target = pair.partition("-")
            if not (source.isdecimal() and target.isdecimal()):
                continue
            kind = values.get("Transport Type") if isinstance(values, dict) else None
            size, bandwidth = (
                _number(values, "Transit Size(MB)"),
                _number(values, "Bandwidth(GB/s)"),
            )
            spent = _ms(values, "Transit Time(ms)")
            transport = kind if isinstance(kind, str) else None
            yield (*place, int(source), int(target), transport, size, spent, bandwidth)


def _items(value: object) -> list[tuple[str, Any]]:
    return list(value.items()) if isinstance(value, dict) else []


def _number(values: object, key: str) -> float | None:
    found = values.get(key) if isinstance(values, dict) else None
    return float(found) if isinstance(found, int | float) and not isinstance(found, bool) else None


def _ms(values: object, key: str) -> int | None:
    found = _number(values, key)
    return None if found is None else round(found * 1e6)
