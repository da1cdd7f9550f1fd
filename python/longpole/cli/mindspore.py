"""`longpole mindspore`: analyse MindSpore profiles without MindSpore."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import click

from longpole.cli.answer import exit_codes
from longpole.cli.answer.problems import require, usage_errors
from longpole.cli.ask.files import OutputPath
from longpole.cli.ask.options import Options, answer_options, answers
from longpole.cli.ask.windows import step_option
from longpole.formats.mindspore.offline import offline_analyse
from longpole.report.blocks import Column, Headline, Notes, Sentence, Table
from longpole.report.document import DATA_FORMATS, Document, Warned
from longpole.words.wording import duration

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

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

__all__ = ["mindspore"]

_SCHEMA: Final = "longpole.mindspore/1"
_SHOWN: Final = 10


@click.command()
@answers("longpole.formats.mindspore.offline:Analysis")
@click.argument(
    "folders", nargs=-1, required=True, type=click.Path(readable=False), metavar="DIR..."
)
@click.option(
    "-o",
    "--output",
    type=OutputPath(is_folder=True),
    help="Write files to a folder.",
)
@step_option("all steps", "steps", multiple=True)
@click.option("--no-developer-rows", is_flag=True, help="Leave out level 0 of host_info.")
@answer_options
def mindspore(
    *,
    folders: Sequence[str],
    output: str | None,
    steps: Sequence[int],
    no_developer_rows: bool,
    options: Options,
) -> int:
    """Analyse MindSpore profiles without MindSpore: operators, steps, data pipelines, memory.

    DIR is the output_path of the profiler, or a folder in it. Without -o, nothing is written.
    Every command can read the timelines: `longpole summary OUT/timeline_0.json`.

    \b
    Examples:
      longpole mindspore data/
      longpole mindspore data/ -o analysis
    """
    require(output is None or len(folders) == 1, "with -o, name one DIR")
    asked: Any = {
        "step_list": sorted(steps) or None,
        "output": output,
        "developer_rows": not no_developer_rows,
    }

    def ask(folder: str) -> Answer:
        with usage_errors():
            return _answer(folder, offline_analyse(folder, **asked))

    return options.emit_each(
        options.attempt(_SCHEMA, folder, partial(ask, folder)) for folder in folders
    )


def _answer(folder: str, found: Analysis) -> Answer:
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
    document = Document(
        schema=_SCHEMA,
        input={"path": folder, "format": "mindspore"},
        status="partial" if warnings else "ok",
        warnings=warnings,
        forms_with_warnings=DATA_FORMATS,
        data=found,
        blocks=lambda: [
            *(block for rank in found.ranks for block in _blocks(folder, rank)),
            *(block for device in found.devices for block in _device_blocks(folder, device)),
            *([Notes([f"Wrote {path}" for path in found.written])] if found.written else []),
        ],
        records=lambda: [
            *(record for rank in found.ranks for record in _records(folder, rank)),
            *(record for device in found.devices for record in _device_records(folder, device)),
        ],
    )
    return document, exit_codes.OK


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
    sentences += [f"Wrote {path}" for path in rank.written]
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
    if device.operations is not None:
        yield f"Operations computed: {device.operations:.3g}"
