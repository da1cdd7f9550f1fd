"""Shows how an inference server spends its iterations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from longpole.report.blocks import Column, Sentence, Value, tabulated, without_empty_columns
from longpole.words.wording import count, duration, duration_range

if TYPE_CHECKING:
    from collections.abc import Mapping

    from longpole.report.blocks import Block
    from longpole.tables.served import Serving

_MARKS: Final = {
    "annotation": "marked by annotations",
    "python_function": "marked by Python functions",
    "graph_launch": "marked by launches of graphs only",
}


def serving_blocks(found: Serving) -> list[Block]:
    """Show the iterations of a server by kind, the slowest, and the kernels with most time."""
    tables = [
        *(tabulated(found.kinds, columns) for columns in (_COUNTS, _TIMES, _DEVICE)),
        tabulated(found.slowest, _SLOWEST),
        tabulated(found.kernels, _KERNELS),
    ]
    shown = map(without_empty_columns, tables)
    return [
        Sentence(f"{_title(found)}: {found.sentence}"),
        *map(Sentence, _of_tokens(found)),
        *(table for table in shown if table.rows and len(table.columns) > 1),
    ]


def _of_tokens(found: Serving) -> list[str]:
    """Return the time per output token, and to the first token."""
    told = []
    if found.time_per_output_token_ns is not None and found.longest_output_token_ns is not None:
        delayed = f", {found.n_delayed} of them with prompts in between" if found.n_delayed else ""
        most = f"at most {duration(found.longest_output_token_ns)}{delayed}"
        told.append(
            f"The time per output token is {duration(round(found.time_per_output_token_ns))} "
            f"(median), {most}{_planned(found)}."
        )
    if found.time_to_first_token_ns is not None:
        told.append(
            f"The time to the first token is at least "
            f"{duration(round(found.time_to_first_token_ns))} (median of the iterations with "
            "prompts): the marks do not show the time in the queue, and other chunks of a prompt."
        )
    return told


def _planned(found: Serving) -> str:
    """Return the time per output token after the plan."""
    times_ns = found.planned_output_token_ns
    return "" if times_ns is None else f"; {duration_range(*times_ns)} after the plan"


def _title(found: Serving) -> str:
    """Return the number of iterations, and what marks them."""
    servers = f" named like those of {' and '.join(found.servers)}" if found.servers else ""
    marks = "" if found.mark is None else f", {_MARKS[found.mark]}{servers}"
    of_server = "" if found.mark == "graph_launch" else " of an inference server"
    return f"{count(found.n_iterations, 'iteration')}{of_server}{marks}"


def _kind(row: Mapping[str, Any]) -> str:
    """Return the name of a row's kind."""
    return row["kind"] or "unknown"


_COUNTS: Final[dict[Column, Value]] = {
    Column("kind"): _kind,
    Column("count", "count"): "count",
    Column("requests", "count"): "requests",
    Column("most", "count"): "most_requests",
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
