"""A summary for people: one screen, the sentence first, every share with its denominator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.cli.output import markdown_cell, markdown_table
from longpole.cli.summary_records import rankings
from longpole.cli.terminal import Column
from longpole.cli.traces import title
from longpole.wording import count, duration, escape, share, short_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longpole.analyses.devices import BusyTime, DeviceTime
    from longpole.analyses.summary import Summary
    from longpole.cli.summary_records import Figures
    from longpole.cli.terminal import Terminal
    from longpole.trace import Trace

__all__ = ["markdown", "text"]

Rows = list[list[str]]
Table = tuple[list[Column], Rows]

_WIDTH_IN_MARKDOWN: Final = 80
_N_STREAMS: Final = 8
_N_BLOCKING: Final = 5


def text(
    path: str, trace: Trace, summary: Summary, long_pole: str | None, terminal: Terminal
) -> str:
    """Write a summary for a terminal."""
    lines = [terminal.styled(_title(path, trace, summary), "bold"), ""]
    lines += terminal.paragraph(escape(long_pole), "  ") if long_pole else []
    lines += terminal.paragraph(escape(summary.answer.sentence), "  ")
    for columns, rows in _tables(summary):
        lines += ["", *terminal.table(columns, rows)] if rows else []
    notes = _notes(trace, summary)
    lines += ["", *(line for note in notes for line in terminal.paragraph(note, "  "))]
    return "\n".join(lines).rstrip() + "\n"


def markdown(path: str, summary: Summary, long_pole: str | None) -> str:
    """Write a summary as Markdown, to paste into a pull request."""
    lines = [f"### {markdown_cell(path)}", ""]
    lines += [markdown_cell(long_pole), ""] if long_pole else []
    lines += [markdown_cell(summary.answer.sentence)]
    for columns, rows in _tables(summary):
        lines += ["", *_markdown_table(columns, rows)] if rows else []
    return "\n".join(lines) + "\n"


def _title(path: str, trace: Trace, summary: Summary) -> str:
    window = summary.window
    facts = [f"step {window.step}" if window.kind == "step" else "whole trace"]
    facts.append(f"{duration(window.span_ns)} ({window.reason})")
    if trace.rank is not None:
        facts.append(f"rank {trace.rank}")
    return f"{title(path)}: {', '.join(facts)}"


def _tables(summary: Summary) -> list[Table]:
    # The evidence for kernels is the list of kernels, which stands below.
    is_seen_below = summary.answer.waits_for == "kernels"
    return [
        *([] if is_seen_below else [_evidence(summary)]),
        _devices(summary),
        _idle(summary),
        *_lists(summary),
    ]


def _evidence(summary: Summary) -> Table:
    columns = [
        Column("evidence", "left"),
        Column("", "left", has_names=True),
        *_figures("time", summary),
    ]
    rows = [
        [
            row.what,
            _or_nothing(row.name),
            *_cells(summary, row.total_ns, row.n_events, row.longest_ns, row.longest_event),
        ]
        for row in summary.answer.evidence
    ]
    return columns, rows


def _devices(summary: Summary) -> Table:
    classes = ("busy", "compute", "communication", "copy", "idle")
    first = Column(f"share of {summary.window.noun}", "left", has_names=True)
    rows = []
    for device in summary.devices:
        name = f" ({short_name(device.name, 30)})" if device.name else ""
        rows.append([_device(device) + name, *_busy_cells(summary, device.whole, classes)])
        busiest = sorted(device.streams, key=lambda stream: -stream.busy_ns)
        shown = [stream for stream in busiest if stream.n_events][:_N_STREAMS]
        rows += [
            [f"  stream {_number(stream.stream)}", *_busy_cells(summary, stream, classes)]
            for stream in (shown if len(shown) > 1 else [])
        ]
    return [first, *(Column(name) for name in (*classes, "events"))], rows


def _idle(summary: Summary) -> Table:
    columns = [
        Column(f"why idle, of {summary.window.noun}", "left"),
        Column("launch-bound"),
        Column("not begun"),
        Column("after the last"),
        Column("unlinked"),
    ]
    rows = [
        [
            _device(device),
            _share(summary, device.idle.host_ns),
            _share(summary, device.idle.launched_ns),
            _share(summary, device.idle.after_last_ns),
            _share(summary, device.idle.unlinked_ns),
        ]
        for device in summary.devices
        if device.whole.busy_ns
    ]
    return columns, rows


def _lists(summary: Summary) -> list[Table]:
    """Kernels, operators and blocking calls, each with the names that took longest."""
    ranked = rankings(summary)
    calls = ranked["blocking call"]
    return [
        _ranked(summary, "kernels", "time", summary.kernels.n_total, ranked["kernel"]),
        _ranked(summary, "operators", "self time", summary.operators.n_total, ranked["operator"]),
        _ranked(summary, "blocking calls", "time", len(calls), calls[:_N_BLOCKING]),
    ]


def _ranked(summary: Summary, what: str, time: str, n_total: int, rows: list[Figures]) -> Table:
    title = f"{what} ({len(rows)} of {n_total:,} names)" if n_total > len(rows) else what
    columns = [Column(title, "left", has_names=True), *_figures(time, summary)]
    return columns, [[_or_nothing(name), *_cells(summary, *figures)] for name, *figures in rows]


def _figures(time: str, summary: Summary) -> list[Column]:
    titles = (time, f"of {summary.window.noun}", "count", "longest", "event")
    return [Column(title) for title in titles]


def _cells(summary: Summary, time_ns: int, n_events: int, longest_ns: int, event: int) -> list[str]:
    return [
        duration(time_ns),
        _share(summary, time_ns),
        count(n_events),
        duration(longest_ns),
        str(event),
    ]


def _notes(trace: Trace, summary: Summary) -> list[str]:
    notes = [
        f"The launch-bound share of {_device(device)} is unknown: {device.idle.reason}."
        for device in summary.devices
        if device.idle.reason
    ]
    unlinked = summary.unlinked
    if unlinked.n_unlinked:
        of_all = f"{unlinked.n_unlinked:,} of {count(unlinked.n_device_work, 'piece')}"
        part = share(unlinked.share or 0)
        notes.append(f"Not linked to a launching call: {of_all} of device work ({part}).")
    if trace.status == "recovered":
        notes.append("The file is damaged; what is whole was read: see `longpole check`.")
    return notes


def _busy_cells(summary: Summary, busy: BusyTime, classes: Sequence[str]) -> list[str]:
    shares = [_share(summary, getattr(busy, f"{name}_ns")) for name in classes]
    return [*shares, count(busy.n_events)]


def _share(summary: Summary, part_ns: int | None) -> str:
    if part_ns is None or not summary.window.span_ns:
        return "unknown"
    return share(part_ns / summary.window.span_ns)


def _device(device: DeviceTime) -> str:
    return f"device {_number(device.device)}"


def _number(number: int | None) -> str:
    return "(no number)" if number is None else str(number)


def _or_nothing(name: str | None) -> str:
    return "(no name)" if name is None else name


def _markdown_table(columns: Sequence[Column], rows: Rows) -> list[str]:
    short = [
        [
            short_name(text, _WIDTH_IN_MARKDOWN) if column.has_names else text
            for column, text in zip(columns, row, strict=True)
        ]
        for row in rows
    ]
    titles, sides = zip(*((column.title, column.align) for column in columns), strict=True)
    return markdown_table(titles, short, sides)
