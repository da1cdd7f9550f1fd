"""The iterations of an inference server, as an answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from longpole.analyses.serving import serving
from longpole.cli.answer import exit_codes
from longpole.cli.answer.inputs import name_of
from longpole.cli.answer.windows import known_of_trace
from longpole.report.blocks import (
    Column,
    Headline,
    Sentence,
    Value,
    tabulated,
    without_empty_columns,
)
from longpole.report.document import Abstention, Document
from longpole.wording import count

if TYPE_CHECKING:
    from collections.abc import Mapping

    from longpole.analyses.serving import Serving
    from longpole.cli.answer.emit import Answer
    from longpole.report.blocks import Block
    from longpole.trace import Trace

__all__ = ["SERVING", "serving_answer"]

SERVING: Final = "longpole.serving/1"
_MARKS: Final = {
    "annotation": "marked by annotations",
    "python_function": "marked by Python functions",
    "graph_launch": "marked by launches of graphs only",
}


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


def serving_answer(path: str, trace: Trace, top: int) -> Answer:
    """Report how a server spends its iterations."""
    found = serving(trace)
    known = known_of_trace(path, trace)
    if found.mark is None:
        known |= {"status": "abstained", "abstains_because": [Abstention("no_iterations")]}
    document = Document(
        schema=SERVING,
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
    return [
        Headline(f"{name_of(path)}: {_title(found)}"),
        Sentence(found.sentence),
        *(without_empty_columns(table) for table in tables if table.rows),
    ]


def _title(found: Serving) -> str:
    """Return the number of iterations, the server, and what marks them."""
    if found.mark is None:
        return "no iterations of an inference server"
    servers = f" of {' and '.join(found.servers)}" if found.servers else ""
    return f"{count(found.iterations.height, 'iteration')}{servers}, {_MARKS[found.mark]}"
