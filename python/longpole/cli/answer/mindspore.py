"""Answers from the files of a MindSpore profile: operators, steps, data pipelines, memory."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from longpole.cli.answer import exit_codes
from longpole.cli.answer.problems import usage_errors
from longpole.errors import TraceError
from longpole.formats.profiles import timelines_in
from longpole.report.blocks import Column, Entry, Headline, Notes, Sentence, Table
from longpole.report.document import Document, Warned
from longpole.words.wording import count, duration

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from longpole.cli.answer.emit import Answer
    from longpole.formats.mindspore.device_tables import DeviceTables
    from longpole.formats.mindspore.executions import FlopsSummary
    from longpole.formats.mindspore.host_info import DatasetStage
    from longpole.formats.mindspore.minddata import DataPipeline
    from longpole.formats.mindspore.offline import Analysis
    from longpole.formats.mindspore.operators import OpRow
    from longpole.formats.mindspore.rank_analysis import RankAnalysis
    from longpole.formats.mindspore.step_trace import StepPoints
    from longpole.formats.mindspore.tables import MemorySummary
    from longpole.report.blocks import Block
    from longpole.report.document import Record

_SCHEMA: Final = "longpole.mindspore/1"
_SHOWN: Final = 10
_NAMED: Final = 3
_AI_CPU: Final = "AI_CPU"


def traces_and_profiles(
    paths: Sequence[str], *, several: bool = False
) -> tuple[list[str], list[str]]:
    """Return the paths that are read as traces, and the MindSpore profiles among all.

    A profile is read as a trace if it has one timeline, or with `several` one or more.
    """
    profiles = [path for path in paths if _is_profile(Path(path))]
    traces = [
        path for path in paths if path not in profiles or _has_timeline(Path(path), several=several)
    ]
    return traces, profiles


def _is_profile(path: Path) -> bool:
    try:
        if not path.is_dir():
            return False
        from longpole.formats.mindspore.layouts import is_profile

        return is_profile(path)
    except OSError:  # reported where the folder is read
        return False


def _has_timeline(folder: Path, *, several: bool) -> bool:
    try:
        n_timelines = len(timelines_in(folder))
    except TraceError as error:
        return error.code != "no_timeline"  # else reported where the folder is read
    return n_timelines == 1 or (several and n_timelines > 1)


def profile_answers(
    folders: Sequence[str],
    attempt: Callable[[str, str, Callable[[], Answer]], Answer],
    *,
    step: int | None = None,
    of_problems: bool = False,
    strict: bool = False,
) -> Iterator[Answer]:
    """Yield what the files of each MindSpore profile contain, or with `of_problems` their problems.

    `attempt` turns errors into answers. `step` selects a step of the step trace; the other figures
    are about the whole run.
    """
    for folder in folders:
        ask: Callable[[Analysis], Answer] = partial(_figures, folder)
        if of_problems:
            ask = partial(_problems, folder, strict=strict)
        yield attempt(_SCHEMA, folder, partial(_answer, folder, step, ask))


def _answer(folder: str, step: int | None, ask: Callable[[Analysis], Answer]) -> Answer:
    from longpole.formats.mindspore.offline import offline_analyse

    with usage_errors():
        return ask(offline_analyse(folder, step_list=None if step is None else [step]))


def _warnings(found: Analysis) -> list[Warned]:
    of_files = [
        *((rank.rank, each) for rank in found.ranks for each in rank.findings),
        *((device.rank, each) for device in found.devices for each in device.findings),
    ]
    warnings = [
        Warned(
            each.code,
            each.count,
            f"{_rank(rank)}{each.file}{_place(each.lines)}: {each.sentence}",
            each.effect,
            each.detail,
        )
        for rank, each in of_files
    ]
    warnings += [
        Warned(each.code, 1, each.message, "the rank is not analysed", each.hint)
        for each in found.failed
    ]
    return warnings


def _known(folder: str, found: Analysis, warnings: Sequence[Warned]) -> dict[str, Any]:
    """Return the fields of both documents about a profile."""
    return {
        "schema": _SCHEMA,
        "input": {"path": folder, "format": "mindspore"},
        "status": "partial" if warnings else "ok",
        "warnings": warnings,
        "data": found,
    }


def _figures(folder: str, found: Analysis) -> Answer:
    warnings = _warnings(found)
    document = Document(
        **_known(folder, found, warnings),
        blocks=lambda: [
            *(block for rank in found.ranks for block in _blocks(folder, rank)),
            *(block for device in found.devices for block in _device_blocks(folder, device)),
            *_in_short(found, warnings),
        ],
        records=lambda: [
            *(record for rank in found.ranks for record in _records(folder, rank)),
            *(record for device in found.devices for record in _device_records(folder, device)),
        ],
    )
    return document, exit_codes.FINDINGS if found.failed else exit_codes.OK


def _in_short(found: Analysis, warnings: Sequence[Warned]) -> list[Block]:
    """Report the ranks that could not be analysed, and count the problems of files."""
    told = [f"{each.message}: the rank is not analysed [{each.code}]" for each in found.failed]
    if len(found.ranks) > 1 or len(found.devices) > 1:
        told.append("`longpole ranks FOLDER` compares the timelines of the ranks.")
    n_files = len(warnings) - len(found.failed)
    if n_files:
        problems = count(n_files, "problem")
        told.append(f"The files of the profile have {problems}: `longpole check` lists them.")
    return [Notes(told)] if told else []


def _problems(folder: str, found: Analysis, *, strict: bool) -> Answer:
    warnings = _warnings(found)
    document = Document(
        **_known(folder, found, warnings),
        blocks=lambda: [
            Headline(f"{folder}: {_number_of(warnings)} in the files of the MindSpore profile"),
            *map(_entry, warnings),
        ],
        records=lambda: [_record(folder, each) for each in warnings],
    )
    is_wrong = bool(found.failed or (strict and warnings))
    return document, exit_codes.FINDINGS if is_wrong else exit_codes.OK


def _record(folder: str, warned: Warned) -> Record:
    return {
        "path": folder,
        "severity": "warning",
        "code": warned.code,
        "count": warned.count,
        "sentence": warned.message,
        "effect": warned.effect,
        "hint": warned.hint,
    }


def _number_of(warnings: Sequence[Warned]) -> str:
    return count(len(warnings), "warning") if warnings else "no problems found"


def _entry(warned: Warned) -> Entry:
    times = f"  {warned.count:,} ×" if warned.count > 1 else ""  # noqa: RUF001
    told = [f"{warned.message}.", f"Effect: {warned.effect}."]
    told += [f"{warned.hint[0].upper()}{warned.hint[1:]}."] if warned.hint else []
    return Entry("warning", "warn", warned.code + times, told)


def _rank(rank: int | None) -> str:
    return "" if rank is None else f"rank {rank}: "


def _place(lines: Sequence[int]) -> str:
    return f":{lines[0]}" if lines else ""


def _records(folder: str, rank: RankAnalysis) -> Iterator[Record]:
    for row in rank.operators or ():
        yield {"path": folder, "rank": rank.rank, **asdict(row)}


def _blocks(folder: str, rank: RankAnalysis) -> Iterator[Block]:
    yield Headline(f"{folder}: rank {rank.rank}")
    if rank.reading.step_trace is not None:
        yield from _steps(rank.reading.step_trace.steps)
    if rank.operators is not None:
        yield _operators(rank.operators)
    if rank.dataset:
        yield _dataset(rank.dataset)
    if rank.pipeline is not None:
        yield from _pipeline(rank.pipeline)
    sentences = [*_memory(rank.memory), *_flops(rank.flops)]
    if sentences:
        yield Notes(sentences)


def _steps(steps: Sequence[StepPoints]) -> Iterator[Block]:
    if steps:
        mean = duration(round(sum(step.total_ns for step in steps) / len(steps)))
        yield Sentence(f"{len(steps):,} steps of {mean} on average.")
    columns = [Column("step", "number"), Column("total", "duration")]
    columns += [Column(name, "duration") for name in ("before fp", "fp and bp", "tail")]
    columns.append(Column("collectives", "number"))
    rows = [
        (
            step.number,
            step.total_ns,
            step.interval_ns,
            step.fp_and_bp_ns,
            step.tail_ns,
            len(step.reduces),
        )
        for step in steps[:_SHOWN]
    ]
    yield Table(columns, rows)


def _operators(found: Sequence[OpRow]) -> Block:
    dearest = sorted(found, key=lambda row: -(row.total_ns or 0))[:_SHOWN]
    columns = [Column(f"operators ({len(dearest)} of {len(found)})", "name"), Column("side")]
    columns += [Column("time", "duration"), Column("kernels", "duration")]
    columns += [Column("runs", "count"), Column("inputs", "name")]
    rows = [
        (row.op_type, row.op_side, row.total_ns, row.kernels_ns, row.n_runs, row.input_shapes)
        for row in dearest
    ]
    return Table(columns, rows)


def _dataset(stages: Sequence[DatasetStage]) -> Block:
    columns = [Column("dataset operator", "name"), Column("stage", "name")]
    columns += [Column("mean", "duration"), Column("runs", "count")]
    rows = [
        (stage.operation, stage.stage, round(1000 * stage.mean_us), stage.count)
        for stage in stages[:_SHOWN]
    ]
    return Table(columns, rows)


def _pipeline(pipeline: DataPipeline) -> Iterator[Block]:
    columns = [Column("data pipeline", "name"), Column("workers", "number")]
    columns += [Column(name, "share") for name in ("queue full", "queue empty", "CPU")]
    rows = [
        (op.label, op.n_workers, op.queue_share, op.empty_share, op.cpu_share)
        for op in pipeline.operators
    ]
    yield Table(columns, rows)
    if pipeline.batches is not None and pipeline.batches.batch_ms is not None:
        yield Sentence(f"A batch every {duration(round(1e6 * pipeline.batches.batch_ms))}.")
    if pipeline.bottleneck is not None:
        bottleneck = pipeline.bottleneck
        if bottleneck.operator is not None:
            yield Sentence(f"Bottleneck: {bottleneck.operator}, {bottleneck.suggestion}.")
        lines = [*bottleneck.cpu, *bottleneck.queues]
        if lines:
            yield Notes(lines)


def _memory(peaks: Sequence[MemorySummary]) -> Iterator[str]:
    for peak in peaks:
        if peak.peak_allocated_bytes is not None:
            yield f"Peak of the allocator: {peak.peak_allocated_bytes:,} bytes allocated"
        if peak.peak_rss_bytes is not None:
            where = f" at {peak.peak_stage}" if peak.peak_stage else ""
            yield f"Peak of the process: {peak.peak_rss_bytes:,} bytes resident{where}"


def _flops(flops: FlopsSummary | None) -> Iterator[str]:
    if flops is None:
        return
    if flops.operations_as_written is not None:
        yield (
            f"Operations of {flops.n_operators:,} operators: {flops.operations_as_written:.6g} in "
            "the unit of the file, which does not name it"
        )
    if flops.operations is not None:
        rate = flops.operations_per_s
        at = "" if rate is None else f", {rate:.3g} per second"
        yield f"Operations computed: {flops.operations:.3g}{at}"


def _device_records(folder: str, device: DeviceTables) -> Iterator[Record]:
    """Return the operators of a device as records."""
    for row in device.operators:
        yield {"path": folder, "rank": device.rank, **asdict(row)}


def _device_blocks(folder: str, device: DeviceTables) -> Iterator[Block]:
    """Return steps, operators, shapes and notes of a device."""
    rank = "device" if device.rank is None else f"rank {device.rank}, device"
    yield Headline(f"{folder}: {rank}")
    if device.steps:
        yield _device_steps(device)
    if device.operators:
        yield _device_operators(device)
    if device.shapes:
        yield _device_shapes(device)
    if device.metrics:
        yield _device_metrics(device)
    notes = list(_device_notes(device))
    if notes:
        yield Notes(notes)


def _device_steps(device: DeviceTables) -> Block:
    names = {
        "total": "total_ns",
        "computing": "computing_ns",
        "communication not overlapped": "not_overlapped_ns",
        "free": "free_ns",
        "fp and bp": "fp_and_bp_ns",
        "refresh": "refresh_ns",
        "data wait": "data_wait_ns",
        "collectives": "reduce_ns",
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


def _device_operators(device: DeviceTables) -> Block:
    shown = device.operators[:_SHOWN]
    columns = [Column(f"operators ({len(shown)} of {len(device.operators)})", "name")]
    columns += [Column("core"), Column("time", "duration"), Column("share", "share")]
    columns += [Column("runs", "count"), Column("longest", "duration")]
    rows = [(op.type, op.core, op.total_ns, op.share, op.n_runs, op.max_ns) for op in shown]
    return Table(columns, rows)


def _device_shapes(device: DeviceTables) -> Block:
    shown = device.shapes[:_SHOWN]
    columns = [Column(f"by shape ({len(shown)} of {len(device.shapes)})", "name")]
    columns += [Column("time", "duration"), Column("runs", "count")]
    columns += [Column("dynamic", "count"), Column("inputs", "name")]
    rows = [
        (shape.type, shape.total_ns, shape.n_runs, shape.n_dynamic, shape.input_shapes)
        for shape in shown
    ]
    return Table(columns, rows)


def _device_metrics(device: DeviceTables) -> Block:
    """Return the counters of the operators that take most time."""
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


def _device_notes(device: DeviceTables) -> Iterator[str]:
    if device.conversion_share is not None:
        share = f"{100 * device.conversion_share:.3g} %"
        yield f"Conversions of layout or type (TransData, Cast, Transpose): {share} of the time"
    if on_cpu := [op for op in device.operators if op.core == _AI_CPU]:
        share = f"{100 * sum(op.share or 0 for op in on_cpu):.3g} %"
        names = ", ".join(op.type for op in on_cpu[:_NAMED])
        yield f"Operators on the AI CPU, not on an AI core: {share} of the time ({names})"
    if device.operations is not None:
        yield f"Operations computed: {device.operations:.3g}"
