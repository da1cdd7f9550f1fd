"""The part of the answer of `longpole mindspore` about exported files of Ascend devices."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Final

from longpole.report.blocks import Column, Headline, Notes, Table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from longpole.mindspore.device_tables import DeviceTables
    from longpole.report.blocks import Block
    from longpole.report.document import Record

__all__ = ["device_blocks", "device_records"]

_SHOWN: Final = 10


def device_records(folder: str, device: DeviceTables) -> Iterator[Record]:
    """Return the operators of a device as records."""
    for row in device.operators:
        yield {"path": folder, "rank": device.rank, **asdict(row)}


def device_blocks(folder: str, device: DeviceTables) -> Iterator[Block]:
    """Return steps, operators, shapes and notes of a device."""
    rank = "device" if device.rank is None else f"rank {device.rank}, device"
    yield Headline(f"{folder}: {rank}")
    if device.steps:
        yield _steps(device)
    if device.operators:
        yield _operators(device)
    if device.shapes:
        yield _shapes(device)
    if device.metrics:
        yield _metrics(device)
    notes = list(_notes(device))
    if notes:
        yield Notes(notes)


def _steps(device: DeviceTables) -> Block:
    names = {
        "total": "total_ns",
        "computing": "computing_ns",
        "communication not overlapped": "not_overlapped_ns",
        "free": "free_ns",
        "fp and bp": "fp_and_bp_ns",
        "refresh": "refresh_ns",
        "data wait": "data_wait_ns",
    }
    steps = device.steps[:_SHOWN]
    having = [
        (name, field)
        for name, field in names.items()
        if any(getattr(step, field) is not None for step in steps)
    ]
    columns = [Column("step", "number"), *(Column(name, "duration") for name, _ in having)]
    rows = [(step.number, *(getattr(step, field) for _, field in having)) for step in steps]
    return Table(columns, rows)


def _operators(device: DeviceTables) -> Block:
    shown = device.operators[:_SHOWN]
    columns = [Column(f"operators ({len(shown)} of {len(device.operators)})", "name")]
    columns += [Column("core"), Column("time", "duration"), Column("share", "share")]
    columns += [Column("runs", "count"), Column("longest", "duration")]
    rows = [(op.type, op.core, op.total_ns, op.share, op.n_runs, op.max_ns) for op in shown]
    return Table(columns, rows)


def _shapes(device: DeviceTables) -> Block:
    shown = device.shapes[:_SHOWN]
    columns = [Column(f"by shape ({len(shown)} of {len(device.shapes)})", "name")]
    columns += [Column("time", "duration"), Column("runs", "count")]
    columns += [Column("dynamic", "count"), Column("inputs", "name")]
    rows = [
        (shape.type, shape.total_ns, shape.n_runs, shape.n_dynamic, shape.input_shapes)
        for shape in shown
    ]
    return Table(columns, rows)


def _metrics(device: DeviceTables) -> Block:
    """Return the counters of the operators with most time."""
    longest = [(op.type, op.core) for op in device.operators[:_SHOWN]]
    by_operator = {
        key: [it for it in device.metrics if (it.type, it.core) == key] for key in longest
    }
    rows = [
        (metric.type, metric.metric, f"{metric.mean:.3g}")
        for key in longest
        for metric in sorted(by_operator[key], key=lambda it: -it.mean)[:3]
    ]
    return Table([Column("counters", "name"), Column("counter"), Column("mean")], rows)


def _notes(device: DeviceTables) -> Iterator[str]:
    if device.conversion_share is not None:
        share = f"{100 * device.conversion_share:.3g} %"
        yield f"Conversions of layout or type (TransData, Cast, Transpose): {share} of the time"
    if device.operations is not None:
        yield f"Operations computed: {device.operations:.3g}"
