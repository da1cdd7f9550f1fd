"""`longpole serving`: show how an inference server spends its iterations."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import click

from longpole.cli.answer import exit_codes
from longpole.cli.answer.inputs import name_of
from longpole.cli.answer.windows import known_of_trace
from longpole.cli.ask.options import Options, answers, shared_options, top_option
from longpole.cli.ask.traces import answer_each, capture_option, traces_argument
from longpole.report.blocks import (
    Column,
    Headline,
    Sentence,
    Value,
    tabulated,
    without_empty_columns,
)
from longpole.report.document import Abstention, Document
from longpole.words.wording import count

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from longpole.cli.answer.emit import Answer
    from longpole.report.blocks import Block
    from longpole.tables.serving import Serving
    from longpole.trace.trace import Trace

__all__ = ["serving"]

_SCHEMA: Final = "longpole.serving/1"
_MARKS: Final = {
    "annotation": "marked by annotations",
    "python_function": "marked by Python functions",
    "graph_launch": "marked by launches of graphs only",
}


@click.command()
@answers("longpole.tables.serving:Serving")
@traces_argument
@capture_option
@top_option(5, "kernels")
@shared_options
def serving(
    *,
    traces: Sequence[str],
    capture_traces: tuple[str, ...],
    top: int,
    options: Options,
) -> int:
    """Show how an inference server spends its iterations.

    Iterations are decode steps, prefill steps and mixed batches, as vLLM, SGLang, TensorRT-LLM
    and TGI mark them. Without such marks, repeated graph launches stand for iterations.

    \b
    Examples:
      longpole serving trace.json.gz
      longpole serving trace.json.gz --capture-trace capture.json.gz
      longpole serving trace.json.gz --json
    """
    chosen = replace(options, capture_traces=capture_traces or None)
    return answer_each(traces, chosen, _SCHEMA, partial(_answer, top=top), arguments="default")


def _kind(row: Mapping[str, Any]) -> str:
    """Return the name of a row's kind."""
    return row["kind"] or "unknown"


_COUNTS: Final[dict[Column, Value]] = {
    Column("kind"): _kind,
    Column("count", "count"): "count",
    Column("requests", "count"): "requests",
    Column("prompt tokens", "count"): "prefill_tokens",
    Column("decoded tokens", "count"): "decode_tokens",
    Column("length", "duration"): "length_ns",
    Column("decoded tokens/s", "count"): "decode_tokens_per_second",
    Column("prompt tokens/s", "count"): "prefill_tokens_per_second",
}


_TIMES: Final[dict[Column, Value]] = {
    Column("host, median"): _kind,
    Column("in all", "duration"): "host_ns",
    Column("before the launch", "duration"): "before_launch_ns",
    Column("blocked", "duration"): "blocked_ns",
    Column("sampling", "duration"): "sampling_ns",
    Column("detokenizing", "duration"): "detokenizing_ns",
}


_DEVICE: Final[dict[Column, Value]] = {
    Column("device, median"): _kind,
    Column("busy", "duration"): "device_ns",
    Column("replay", "duration"): "replay_ns",
    Column("launch to replay", "duration"): "launch_delay_ns",
    Column("between replays", "duration"): "gap_ns",
    Column("waits for scheduler", "share"): "scheduler_share",
    Column("waits for launches", "share"): "launch_share",
}


_SLOWEST: Final[dict[Column, Value]] = {
    Column("slowest", "number"): "iteration",
    Column("kind"): _kind,
    Column("length", "duration"): "length_ns",
    Column("median", "duration"): "median_ns",
    Column("than the median iteration of its kind"): "why",
}


_KERNELS: Final[dict[Column, Value]] = {
    Column("kernel", "name"): "name",
    Column("operator", "name"): "operator",
    Column("time", "duration"): "duration_ns",
    Column("share", "share"): "share",
    Column("count", "count"): "count",
}


def _answer(path: str, trace: Trace, *, top: int) -> Answer:
    """Report how a server spends its iterations."""
    from longpole.tables.serving import serving as find_iterations

    found = find_iterations(trace)
    known = known_of_trace(path, trace)
    if found.mark is None:
        known |= {"status": "abstained", "abstains_because": [Abstention("no_iterations")]}
    document = Document(
        schema=_SCHEMA,
        **known,
        scope={"rank": trace.rank},
        data=found,
        blocks=lambda: _blocks(path, found, top),
        records=lambda: [{"path": path, **row} for row in found.kinds.to_dicts()],
    )
    return document, exit_codes.OK if found.mark else exit_codes.INCONCLUSIVE


def _blocks(path: str, found: Serving, top: int) -> list[Block]:
    kinds = found.kinds.to_dicts()
    tables = [
        *(tabulated(kinds, columns) for columns in (_COUNTS, _TIMES, _DEVICE)),
        tabulated(found.slowest.to_dicts(), _SLOWEST),
        tabulated(found.kernels.head(top).to_dicts(), _KERNELS),
    ]
    shown = map(without_empty_columns, tables)
    return [
        Headline(f"{name_of(path)}: {_title(found)}"),
        Sentence(found.sentence),
        *(table for table in shown if table.rows and len(table.columns) > 1),
    ]


def _title(found: Serving) -> str:
    """Return the number of iterations, and what marks them."""
    if found.mark is None:
        return "no iterations of an inference server"
    servers = f" named like those of {' and '.join(found.servers)}" if found.servers else ""
    return f"{count(found.iterations.height, 'iteration')}, {_MARKS[found.mark]}{servers}"
