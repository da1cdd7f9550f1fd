"""`longpole summary`: show what limits the program, and where the time of a step went."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from math import ceil
from typing import TYPE_CHECKING, Any, Final

import click

from longpole.answer.blocks import verdict_blocks, with_gaps
from longpole.cli.answer.inputs import name_of
from longpole.cli.answer.mindspore import profile_answers, traces_and_profiles
from longpole.cli.answer.problems import usage_errors
from longpole.cli.answer.serving import serving_blocks
from longpole.cli.answer.windows import (
    abstained,
    abstentions,
    caveats,
    exit_code_of,
    known_of_trace,
)
from longpole.cli.ask.options import Options, answers, graph_options, top_option
from longpole.cli.ask.traces import (
    answer_each,
    given_memory_file,
    traces_argument,
)
from longpole.cli.ask.windows import OF_PROGRAM, OF_TIME, Asked, window_options
from longpole.engine.recording_cost import timing_blocks, unknown_blocks
from longpole.remedies.gains import WORTH_SAYING
from longpole.report.blocks import Column, Headline, Notes, Sentence, Table
from longpole.report.document import DATA_FORMATS, Document
from longpole.tables.check import caught_nothing, only_annotations, why_empty
from longpole.tables.summary import summary_of as summarise
from longpole.tables.window_warnings import window_warnings
from longpole.words.wording import count, duration, listing, operator_name, share, short_name

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from longpole.answer.answer import Answer as TraceAnswer
    from longpole.cli.answer.emit import Answer
    from longpole.remedies.sides import Side
    from longpole.report.blocks import Block, Cell
    from longpole.report.document import Record, Warned
    from longpole.tables.device_times import BusyTime, DeviceTime
    from longpole.tables.summary import Summary
    from longpole.trace.trace import Trace

_SCHEMA: Final = "longpole.summary/1"
_N_DEVICES: Final = 4
_N_STREAMS: Final = 8

_N_BLOCKING: Final = 5

# Default number of rows of a table, number of lines below the headline into which the tables are
# fitted, and number of characters of a line.
_N_ROWS: Final = 3
_N_LINES: Final = 15
_WIDTH: Final = 94
_CLASSES: Final = ("busy", "compute", "communication", "copy", "idle")
_DEVICE_TITLES: Final = (
    "busy",
    "compute",
    "exposed comm.",
    "exposed copies",
    "idle",
)
_STREAM_TITLES: Final = ("busy", "compute", "communication", "memcpy/memset", "idle")
_TABLES_OF_SIDES: Final[Mapping[Side, tuple[str, ...]]] = {
    "kernels": ("kernels",),
    "host": (),
    "communication": ("streams", "kernels"),
    "copies": ("streams", "blocking calls"),
    "waits": ("blocking calls",),
}
"""Tables with more detail about what limits a window."""
# Steps longer than this many times the median are named, and those that are shorter than one part
# in this many of it.
_MUCH_LONGER: Final = 1.5
_MUCH_SHORTER: Final = 2
_NEXT_TABLES: Final[Mapping[Side, str]] = {
    "kernels": "kernels --sort gain",
    "host": "idle --by host",
    "communication": "communication",
    "copies": "copies",
    "waits": "sync",
}
"""The table to print next."""
_NEXT_TABLE: Final = "kernels"
_IDLE: Final = (
    ("waiting for launch", "waiting_for_launch_ns"),
    ("between activities (under 30 µs)", "between_activities_ns"),
    ("other wait (already launched)", "other_wait_ns"),
    ("unlinked (launching call not recorded)", "unlinked_ns"),
    ("after last activity", "after_last_ns"),
)
_WAITS_FOR: Final = {
    "waiting_for_launch_ns": "waits for launches",
    "other_wait_ns": "waits for work already launched",
    "between_activities_ns": "pauses between activities",
    "after_last_ns": "is idle after its last activity",
    "unlinked_ns": "is idle before activities whose launch is not recorded",
}
"""What an idle device does, by the cause of the idle time."""
_Figures = tuple[str | None, int, int, int, int]
"""A name with its time, its count, its longest event, and the index of that event's row."""


@click.command()
@answers("longpole.tables.summary:Summary")
@traces_argument
@window_options(*OF_TIME, OF_PROGRAM)
@top_option(_N_ROWS)
@graph_options
def summary(
    *,
    traces: Sequence[str],
    window: Asked,
    top: int,
    options: Options,
) -> int:
    """Show what limits the program, and where the time of a step went.

    TRACE is a file of the PyTorch profiler or another profiler, compressed or not, or `-` for
    stdin. For a memory timeline or snapshot, the answer is the table `memory`.
    Each share says what it is a share of: the step, or the whole trace if it marks no steps.
    The summary of the trace of an inference server also shows how it spends its iterations, and
    that of a folder of MindSpore's profiler what its tables contain, of all ranks.

    \b
    Examples:
      longpole summary trace.json.gz
      longpole summary rank*.json.gz --step 3 --format csv
      longpole summary trace.json.gz --window 0ms..20ms
      longpole summary vllm.json.gz --capture-trace capture.json.gz
      curl -s https://example.org/trace.json.gz | longpole summary -
    """
    from longpole.engine.arguments import ARGUMENTS

    traces, profiles = traces_and_profiles(traces)
    if traces and all(map(given_memory_file, traces)):
        from longpole.cli.table import answer_memory

        return answer_memory(traces, window, options)
    ranks: list[int | None] = []

    def answer(path: str, trace: Trace) -> Answer:
        ranks.append(trace.rank)
        with usage_errors():
            return _answer(path, trace, top, window.of(trace))

    def then() -> Iterator[Answer]:
        if len(traces) > 1 and options.form in {"text", "md"}:
            yield from _together(traces, ranks, window, options)
        yield from profile_answers(profiles, options.attempt, step=window.step)

    return answer_each(traces, options, _SCHEMA, answer, arguments=ARGUMENTS, then=then)


def _together(
    traces: Sequence[str], ranks: Sequence[int | None], window: Asked, options: Options
) -> Iterator[Answer]:
    """Yield the answers about several traces together."""
    from longpole.cli.ranks import together
    from longpole.jobs.joining import read_traces

    read = partial(
        read_traces,
        vocabulary=options.vocabulary,
        step_name=window.step_name,
        data_load=window.data_load,
    )
    return together(traces, ranks, read)


def _answer(path: str, trace: Trace, top: int, answer: TraceAnswer) -> Answer:
    """Report where the time of a window went."""
    nothing = caught_nothing(trace)
    if nothing is not None:
        return abstained(_SCHEMA, path, trace, nothing.sentence)
    if only_annotations(trace):
        told = f"{why_empty(trace)}; the table annotations shows them"
        return abstained(_SCHEMA, path, trace, told)
    found = summarise(trace, answer, top)
    if found is None:
        return abstained(_SCHEMA, path, trace, why_empty(trace))
    window = found.window
    if not window.duration_ns:
        reason = f"{window.name} is 0 ns long, so nothing can be measured"
        return abstained(_SCHEMA, path, trace, reason, "empty_window")
    warnings = [*window_warnings(trace, answer.path, window.name, None)]
    known = known_of_trace(path, trace) | {"forms_with_warnings": (*DATA_FORMATS, "text")}
    known["warnings"] = [*known["warnings"], *warnings]
    known |= {"status": "partial"} if known["warnings"] or exit_code_of(found.verdict) else {}
    document = Document(
        schema=_SCHEMA,
        **known,
        abstains_because=abstentions(found.verdict, window.name),
        scope={
            "rank": trace.rank,
            "step": window.step,
            "window_ns": [window.start_ns, window.end_ns],
            "reason": window.reason,
        },
        data=found,
        truncated=_truncated(found),
        is_one_screen=True,
        blocks=lambda: _blocks(path, trace, _fitted(path, trace, found, warnings, top), warnings),
        records=lambda: _records(path, found),
    )
    return document, exit_code_of(found.verdict)


def _truncated(found: Summary) -> dict[str, dict[str, int]]:
    """Return the lengths of the lists that may be shortened."""
    lengths = {
        "kernels": (len(found.kernels.rows), found.kernels.n_total),
        "operators": (len(found.operators.rows), found.operators.n_total),
    }
    if found.serving is not None:
        lengths["serving.kernels"] = (len(found.serving.kernels), found.serving.n_kernels)
    return {name: {"shown": shown, "total": total} for name, (shown, total) in lengths.items()}


def time_blocks(trace: Trace, found: Summary) -> list[Block]:
    """Show where the time went: devices, idle time, kernels, operators, blocking calls."""
    tables = _tables(trace, found)
    notes = _notes(trace, found, {*tables})
    return [*tables.values(), *([Notes(notes)] if notes else [])]


def _tables(trace: Trace, found: Summary) -> dict[str, Table]:
    """Return the tables that have rows, by topic."""
    kernels, operators, blocking = _lists(trace, found)
    tables = {
        "devices": _devices(found),
        "streams": _streams(found),
        "idle time": _idle(found),
        "kernels": kernels,
        "operators": operators,
        "blocking calls": blocking,
    }
    return {name: table for name, table in tables.items() if table.rows}


def _blocks(path: str, trace: Trace, found: Summary, warnings: Sequence[Warned]) -> list[Block]:
    return [
        Headline(_title(path, trace, found)),
        *timing_blocks(found.recording_cost),
        *verdict_blocks(found.verdict),
        *unknown_blocks(found.recording_cost),
        *_unlike_steps(trace, found),
        *caveats(found.verdict, warnings),
        *(serving_blocks(found.serving) if found.serving else []),
        *_limiting_blocks(trace, found),
    ]


def _fitted(
    path: str, trace: Trace, found: Summary, warnings: Sequence[Warned], top: int
) -> Summary:
    """Leave out kernels, all but the first, if none are requested, to fit an answer on a screen."""
    if top != _N_ROWS:
        return found
    blocks = _blocks(path, trace, found, warnings)
    texts = [block.text for block in blocks if isinstance(block, Sentence)]
    texts += [text for block in blocks if isinstance(block, Notes) for text in block.items]
    rows = [1 + len(block.rows) for block in blocks if isinstance(block, Table)]
    excess = sum(ceil(len(text) / _WIDTH) for text in texts) + sum(rows) - _N_LINES
    kept = found.kernels.rows[: max(len(found.kernels.rows) - max(excess, 0), 1)]
    return replace(found, kernels=replace(found.kernels, rows=kept))


def _unlike_steps(trace: Trace, found: Summary) -> list[Block]:
    """Return the longest and the shortest step that differ much from the median one.

    The iterations of a server are of several kinds, whose lengths differ. Outside the steps of the
    verdict, the window of a step may contain work of earlier ones, so its host time counts as well.
    """
    verdict = found.verdict
    if verdict.window.n <= 1 or verdict.window.unit != "step" or trace.core.is_of_server:
        return []
    own = {*verdict.steps}
    rows = [row for row in trace.core.steps(None).to_dicts() if row["complete"]]
    if not {row["step"] for row in rows} >= own:
        return []
    least_ns = {row["step"]: _length_ns(row, is_alone=row["step"] not in own) for row in rows}
    most_ns = {row["step"]: _length_ns(row, is_alone=False) for row in rows}
    usual_ns = found.window.duration_ns
    long = [it for it, length_ns in least_ns.items() if length_ns > _MUCH_LONGER * usual_ns]
    short = [it for it, length_ns in most_ns.items() if _MUCH_SHORTER * length_ns < usual_ns]
    told = []
    if long:
        told.append(_unlike(max(long, key=least_ns.__getitem__), least_ns, len(long), "longer"))
    if short:
        told.append(_unlike(min(short, key=most_ns.__getitem__), most_ns, len(short), "shorter"))
    return [Notes(told)] if told else []


def _unlike(step: int, lengths_ns: Mapping[int, int], n_steps: int, how: str) -> str:
    """Return how long a step takes that differs much from the median one."""
    far = f"over {_MUCH_LONGER:g} times" if how == "longer" else "less than half of"
    others = f", and {count(n_steps - 1, 'other step')} {far} the median" if n_steps > 1 else ""
    takes = f"Step {step} took {duration(lengths_ns[step])}{others or f', {far} the median'}"
    return f"{takes}: `longpole diff TRACE --step {step}` shows what is {how}."


def _length_ns(step: Mapping[str, Any], *, is_alone: bool) -> int:
    window_ns: int = step["window_end_ns"] - step["window_start_ns"]
    return min(window_ns, step["duration_ns"]) if is_alone else window_ns


def _limiting_blocks(trace: Trace, found: Summary) -> list[Block]:
    """Show what devices did, the tables about what limits the window, and how to see more."""
    tables, sides = _tables(trace, found), _sides(found)
    limiting = {name for side in found.verdict.sides for name in _TABLES_OF_SIDES[side]}
    wanted = limiting if found.verdict.sides else {"kernels"}
    shown = [_worth_saying(table) for name, table in tables.items() if name in wanted]
    lines = [*found.details, *_device_lines(found)]
    label = [Sentence("As recorded:")] if shown and not found.devices else []
    events = [event for line in found.verdict.plan.lines for event in line.events[:1]]
    around = f"`events --around {next(iter(events), 'N')}`"
    first = f"`longpole TRACE {_NEXT_TABLES[sides[0]] if sides else _NEXT_TABLE}`"
    plan = ", `longpole whatif TRACE`" if found.verdict.plan.lines else ""
    more = f"More: {first} (or {around}){plan}."
    notes = Notes([*_notes(trace, found, wanted), more])
    return [*([Notes(lines)] if lines else []), *label, *shown, notes]


def _worth_saying(table: Table) -> Table:
    """Leave out rows with a share that is not worth saying, all but the first."""
    places = [place for place, it in enumerate(table.columns) if it.type == "share"]
    if len(places) != 1:
        return table
    [place] = places
    first, *rows = table.rows
    kept = [row for row in rows if not _is_little(row[place])]
    return replace(table, rows=[first, *kept])


def _is_little(part: Cell) -> bool:
    return isinstance(part, float) and part < WORTH_SAYING


def _device_lines(found: Summary) -> list[str]:
    """Return for each device how long it works, and what it mostly waits for."""
    busiest = sorted(found.devices, key=lambda device: -device.whole.busy_ns)
    lines = [_device_line(found, device) for device in busiest[:_N_DEVICES]]
    left = len(busiest) - len(lines)
    works = "works" if left == 1 else "work"
    return [*lines, *([f"{count(left, 'more device')} {works} less."] if left else [])]


def _device_line(found: Summary, device: DeviceTime) -> str:
    window_ns, whole = found.window.duration_ns, device.whole
    name = f" ({short_name(device.name, 30)})" if device.name else ""
    parts = {
        "exposed communication": whole.communication_ns,
        "exposed copies": whole.copy_ns,
    }
    told = [f"{name} {share(ns / window_ns)}" for name, ns in parts.items() if _is_much(found, ns)]
    also = f", {listing(told)}" if told else ""
    works = f"works {duration(whole.busy_ns)} of {duration(window_ns)}{also}"
    causes = {words: getattr(device.idle, part) or 0 for part, words in _WAITS_FOR.items()}
    cause = max(causes, key=causes.__getitem__)
    waits = (
        f"; {cause} {share(causes[cause] / window_ns)}" if _is_much(found, causes[cause]) else ""
    )
    return f"As recorded, {_device(device)}{name} {works}{waits}."


def _is_much(found: Summary, time_ns: int) -> bool:
    return time_ns >= WORTH_SAYING * found.window.duration_ns


def _sides(found: Summary) -> list[Side]:
    """Return what limits the window, then what else the plan changes."""
    verdict = found.verdict
    planned = [side for line in verdict.plan.lines for side in line.sides]
    return [*dict.fromkeys([*verdict.sides, *(planned if verdict.sides else [])])]


def _title(path: str, trace: Trace, found: Summary) -> str:
    window = found.window
    facts = [window.title]
    if trace.rank is not None:
        of_all = f" of {trace.world_size}" if (trace.world_size or 1) > 1 else ""
        facts.append(f"rank {trace.rank}{of_all}")
    return f"{name_of(path)}: {', '.join(facts)}"


def _devices(found: Summary) -> Table:
    rows: list[Sequence[Cell]] = []
    for device in found.devices:
        name = f" ({short_name(device.name, 30)})" if device.name else ""
        rows.append((_device(device) + name, *_busy(found, device.whole)))
    return _times(f"share of {found.window.noun}", _DEVICE_TITLES, rows)


def _streams(found: Summary) -> Table:
    """Show the streams of devices with several; streams do not reduce each other's time."""
    rows: list[Sequence[Cell]] = []
    for device in found.devices:
        busiest = sorted(device.streams, key=lambda stream: -stream.busy_ns)
        shown = [stream for stream in busiest if stream.count][:_N_STREAMS]
        rows += [
            (f"{_device(device)}, stream {_number(stream.stream)}", *_busy(found, stream))
            for stream in (shown if len(shown) > 1 else [])
        ]
    return _times(f"stream, share of {found.window.noun}", _STREAM_TITLES, rows)


def _times(first: str, titles: Sequence[str], rows: Sequence[Sequence[Cell]]) -> Table:
    shares = [Column(title, "share") for title in titles]
    return Table((Column(first, "name"), *shares, Column("count", "count")), rows)


def _idle(found: Summary) -> Table:
    devices = [device for device in found.devices if device.whole.busy_ns]
    first = Column(f"idle, share of {found.window.noun}")
    columns = [first, *(Column(_device(device), "share") for device in devices)]
    rows = [
        (title, *(_share(found, getattr(device.idle, part)) for device in devices))
        for title, part in _IDLE
    ]
    return Table(columns, rows if devices else [])


def _lists(trace: Trace, found: Summary) -> tuple[Table, Table, Table]:
    """Return kernels, operators and blocking calls, each with the names with most time."""
    ranked = _rankings(found)
    calls = ranked["blocking call"]
    n_devices = sum(device.whole.count > 0 for device in found.devices)
    n_processes = trace.warning_counts["processes_with_calls"]
    kernels = f"kernels of {n_devices} devices" if n_devices > 1 else "kernels"
    of_hosts = f" of {n_processes} processes" if n_processes > 1 else ""
    return (
        _with_operators(
            trace,
            _ranked(found, kernels, "time", found.kernels.n_total, ranked["kernel"]),
            [event for *_, event in ranked["kernel"]],
        ),
        _ranked(
            found,
            f"operators{of_hosts}",
            "self time",
            found.operators.n_total,
            ranked["operator"],
        ),
        _ranked(found, f"blocking calls{of_hosts}", "time", len(calls), calls[:_N_BLOCKING]),
    )


def _ranked(found: Summary, what: str, time: str, n_total: int, rows: list[_Figures]) -> Table:
    title = f"{what} ({len(rows)} of {n_total:,} names)" if n_total > len(rows) else what
    columns = (Column(title, "name"), *_figures(time, found))
    return Table(
        columns, [(_or_nothing(name), *_cells(found, *figures)) for name, *figures in rows]
    )


def _with_operators(trace: Trace, table: Table, events: list[int]) -> Table:
    """Show the operators that launched the longest kernels first, if known."""
    launched = trace.core.operators_of(events)
    if not any(launched):
        return table
    operators = [operator_name(*operator[1:]) if operator else "-" for operator in launched]
    columns = (Column("launched by (longest)", "name"), *table.columns)
    rows = [(operator, *row) for row, operator in zip(table.rows, operators, strict=True)]
    return Table(columns, rows)


def _figures(time: str, found: Summary) -> tuple[Column, ...]:
    return (
        Column(time, "duration"),
        Column(f"of {found.window.noun}", "share"),
        Column("count", "count"),
        Column("longest", "duration"),
        Column("event", "event"),
    )


def _cells(
    found: Summary, time_ns: int, n_events: int, longest_ns: int, event: int
) -> tuple[Cell, ...]:
    is_part = time_ns <= found.window.duration_ns
    return time_ns, _share(found, time_ns) if is_part else None, n_events, longest_ns, event


def _notes(trace: Trace, found: Summary, shown: Collection[str]) -> list[str]:
    notes = [
        f"How long {_device(device)} waited for launch is unknown: {device.idle.reason}."
        for device in found.devices
        if device.idle.reason
    ]
    ranked = {f"{section}s": rows for section, rows in _rankings(found).items()}
    times_ns = (row[1] for section, rows in ranked.items() if section in shown for row in rows)
    if max(times_ns, default=0) > found.window.duration_ns:
        told = f"Times longer than the {found.window.noun} are sums over several devices, threads"
        notes.append(f"{told} or streams.")
    with_gap = with_gaps(found.verdict, found.window.duration_ns)
    notes += [f"Shares in tables are of the {told}." for told in with_gap]
    notes += _cut(trace, found, shown)
    unlinked = found.unlinked
    if unlinked.n_unlinked:
        n_work = count(unlinked.n_device_work, "GPU activity", "GPU activities")
        of_all = f"{unlinked.n_unlinked:,} of {n_work}"
        notes.append(f"Not linked to a launching call: {of_all} ({share(unlinked.share or 0)}).")
    if trace.status == "recovered" and trace.damage is None:
        notes.append("The file is malformed, but nothing was lost: see `longpole check`.")
    return notes


def _cut(trace: Trace, found: Summary, shown: Collection[str]) -> list[str]:
    """List the longest events that are only partly inside the window."""
    kernels = found.kernels.rows if "kernels" in shown else ()
    calls = found.blocking_calls[:_N_BLOCKING] if "blocking calls" in shown else ()
    rows = [*kernels, *calls]
    whole_ns = trace.core.event_durations_ns([row.longest_event for row in rows])
    return [
        f"Event {row.longest_event} ({short_name(row.name, 30)}) lasts {duration(length_ns)}; "
        f"{duration(row.longest_ns)} of it is in the window."
        for row, length_ns in zip(rows, whole_ns, strict=True)
        if length_ns is not None and length_ns > row.longest_ns
    ]


def _busy(found: Summary, busy: BusyTime) -> tuple[Cell, ...]:
    shares = (_share(found, getattr(busy, f"{name}_ns")) for name in _CLASSES)
    return (*shares, busy.count)


def _share(found: Summary, part_ns: int | None) -> float | None:
    return None if part_ns is None else part_ns / found.window.duration_ns


def _device(device: DeviceTime) -> str:
    return f"device {_number(device.device)}"


def _number(number: int | None) -> str:
    return "(no number)" if number is None else str(number)


def _or_nothing(name: str | None) -> str:
    return "(no name)" if name is None else name


def _records(path: str, found: Summary) -> list[Record]:
    """List every figure as a row of one table: name, place, count, time, share."""
    span_ns = found.window.duration_ns
    window = found.window
    rows = [_record(path, "window", span_ns, span_ns, name=f"{window.name}, {window.reason}")]
    verdict = found.verdict
    rows.append(_record(path, "verdict", None, span_ns, name=verdict.sentence))
    rows += [
        {
            **_record(path, f"remedy: {row.remedy}", row.gain.duration_ns, span_ns, name=row.name),
            "share": row.gain.value,
        }
        for row in verdict.remedies
    ]
    for device in found.devices:
        for busy in (device.whole, *device.streams):
            rows += _busy_records(path, device, busy, span_ns)
        rows += _idle_records(path, device, span_ns)
    rows += [
        _record(path, "iterations", row["total_ns"], None, name=row["kind"], count=row["count"])
        for row in (found.serving.kinds if found.serving else ())
    ]
    for section, figures in _rankings(found).items():
        rows += [
            _record(path, section, total_ns, span_ns, name=name, count=n_of)
            for name, total_ns, n_of, *_ in figures
        ]
    return rows


def _rankings(found: Summary) -> dict[str, list[_Figures]]:
    """List name, time, count, longest and its event, by section."""
    return {
        "kernel": [
            (row.name, row.duration_ns, row.count, row.longest_ns, row.longest_event)
            for row in found.kernels.rows
        ],
        "operator": [
            (row.name, row.self_ns, row.count, row.longest_self_ns, row.longest_event)
            for row in found.operators.rows
        ],
        "blocking call": [
            (row.name, row.duration_ns, row.count, row.longest_ns, row.longest_event)
            for row in found.blocking_calls
        ],
    }


def _busy_records(path: str, device: DeviceTime, busy: BusyTime, span_ns: int) -> list[Record]:
    section = "device" if busy.stream is None else "stream"
    place = {"device": device.device, "stream": busy.stream}
    # Activities on other streams do not hide the time of a stream.
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
    span_ns: int | None,
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
