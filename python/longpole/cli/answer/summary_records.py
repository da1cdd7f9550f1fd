"""A summary as one table: one figure per row, for spreadsheets."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from longpole.analyses.device_times import BusyTime, DeviceTime
    from longpole.analyses.summary import Summary
    from longpole.report.document import Record

__all__ = ["Figures", "rankings", "records"]

Figures = tuple[str | None, int, int, int, int]
"""A name with its time, its count, its longest event, and the row of that."""


def records(path: str, summary: Summary) -> list[Record]:
    """List every figure as a row of one table: name, place, count, time, share."""
    span_ns = summary.window.duration_ns
    window = summary.window
    rows = [_record(path, "window", span_ns, span_ns, name=f"{window.name}, {window.reason}")]
    verdict = summary.verdict
    rows.append(_record(path, "verdict", None, span_ns, name=verdict.sentence))
    rows += [
        _record(path, f"remedy: {row.remedy}", row.gain_ns, span_ns, name=row.name)
        for row in verdict.remedies
    ]
    for device in summary.devices:
        for busy in (device.whole, *device.streams):
            rows += _busy_records(path, device, busy, span_ns)
        rows += _idle_records(path, device, span_ns)
    for section, figures in rankings(summary).items():
        rows += [
            _record(path, section, total_ns, span_ns, name=name, count=n_of)
            for name, total_ns, n_of, *_ in figures
        ]
    return rows


def rankings(summary: Summary) -> dict[str, list[Figures]]:
    """List name, time, count, longest and its event, by section."""
    return {
        "kernel": [
            (row.name, row.duration_ns, row.count, row.longest_ns, row.longest_event)
            for row in summary.kernels.rows
        ],
        "operator": [
            (row.name, row.self_ns, row.count, row.longest_self_ns, row.longest_event)
            for row in summary.operators.rows
        ],
        "blocking call": [
            (row.name, row.duration_ns, row.count, row.longest_ns, row.longest_event)
            for row in summary.blocking_calls
        ],
    }


def _busy_records(path: str, device: DeviceTime, busy: BusyTime, span_ns: int) -> list[Record]:
    section = "device" if busy.stream is None else "stream"
    place = {"device": device.device, "stream": busy.stream}
    # Activities on other streams hide nothing of a stream.
    exposed = "exposed_" if busy.stream is None else ""
    classes = {"busy": "busy", "compute": "compute", f"{exposed}communication": "communication"}
    classes |= {f"{exposed}copy": "copy", "idle": "idle"}
    return [
        _record(path, section, getattr(busy, f"{part}_ns"), span_ns, name=name, **place)
        for name, part in classes.items()
    ]


def _idle_records(path: str, device: DeviceTime, span_ns: int) -> list[Record]:
    parts = ("waiting_for_launch", "between_activities", "other_wait", "after_last", "unlinked")
    return [
        _record(
            path,
            "idle",
            getattr(device.idle, f"{part}_ns"),
            span_ns,
            name=part,
            device=device.device,
        )
        for part in parts
    ]


def _record(
    path: str,
    section: str,
    time_ns: int | None,
    span_ns: int,
    *,
    name: str | None = None,
    count: int | None = None,
    device: int | None = None,
    stream: int | None = None,
) -> Record:
    return {
        "path": path,
        "section": section,
        "device": device,
        "stream": stream,
        "name": name,
        "count": count,
        "duration_ns": time_ns,
        "share": None if time_ns is None or not span_ns else time_ns / span_ns,
    }
