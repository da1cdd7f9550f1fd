"""The problems of a Chakra graph, and how its replay differs from the run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final

from longpole.cli.answer import exit_codes
from longpole.cli.answer.inputs import name_of
from longpole.report.blocks import Entry, Headline
from longpole.report.document import DATA_FORMATS, Abstention, Warned
from longpole.words.data import Row
from longpole.words.wording import count, duration

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import polars as pl

    from longpole.formats.convert.chakra import ChakraTrace
    from longpole.formats.convert.execution_trace import Deviation, Replay
    from longpole.report.blocks import Block, Style

_LARGEST_ERROR: Final = 0.05
"""Published error of graphs with these kinds of dependencies: 3.3 %."""
_TOO_SHORT: Final = (
    "the graph does not hold what was waited for there; take another iteration or record both "
    "files over the same whole iteration"
)
_TOO_LONG: Final = (
    "the cause is the form of the graph, not the recording: a node starts when others have ended, "
    "but in the run kernels start before the operator that launches them has ended, and the thread "
    "works before it waits"
)


class GraphFinding(Row):
    """A problem of a graph."""

    code: str
    refused: bool
    """Whether a simulator refuses the graph."""
    count: int
    first_node: int
    sentence: str
    effect: str


Findings = Annotated[list[dict[str, Any]], GraphFinding]


def checked_graph(graph: ChakraTrace, name: str = "") -> tuple[Findings, list[Warned]]:
    """Return the problems of a graph, and where its replay differs from the run."""
    return graph.check().to_dicts(), replay_warnings(graph.replay(), graph.nodes, name)


def exit_code_of_graph(found: Sequence[Mapping[str, Any]], warnings: Sequence[Warned]) -> int:
    """Return the exit code for the problems of a graph."""
    if warnings:
        return exit_codes.INCONCLUSIVE
    return exit_codes.FINDINGS if any(row["refused"] for row in found) else exit_codes.OK


def finding_blocks(path: str, found: Sequence[Mapping[str, Any]]) -> Iterator[Block]:
    """Show the problems of a graph."""
    told = count(len(found), "problem") if found else "no problems found"
    yield Headline(f"{name_of(path)}: {told}")
    for row in found:
        times = f"  {row['count']:,} ×" if row["count"] > 1 else ""  # noqa: RUF001
        sentence = f"{row['sentence']}, first at node {row['first_node']}."
        sentences = [f"{sentence[:1].upper()}{sentence[1:]}", f"Effect: {row['effect']}."]
        style: Style = "bad" if row["refused"] else "warn"
        label = "refused" if row["refused"] else "warning"
        yield Entry(label, style, row["code"] + times, sentences)


def known_of_replay(given: Mapping[str, Any], warnings: Sequence[Warned]) -> dict[str, Any]:
    """Return the fields of every document about a graph that was replayed."""
    return {
        "input": given,
        "status": "partial" if warnings else "ok",
        "abstains_because": [Abstention("replay_differs")] if warnings else [],
        "warnings": warnings,
        "forms_with_warnings": DATA_FORMATS,
    }


def replay_warnings(replay: Replay, nodes: pl.DataFrame, graph: str = "") -> list[Warned]:
    """Return how much time a replay misses and where, if it is more than a twentieth.

    `nodes` are those of the replayed graph, and `graph` is its name if there are several.
    """
    error, measured_ns, differs = replay.error, replay.measured_ns, replay.deviation
    if error is None or measured_ns is None or differs is None or abs(error) <= _LARGEST_ERROR:
        return []
    missing_ns = measured_ns - replay.makespan_ns
    times = f"{duration(replay.makespan_ns)} of the measured {duration(measured_ns)}"
    what = "missing" if missing_ns > 0 else "too long"
    told = f"{graph}: " if graph else ""
    return [
        Warned(
            code="replay_misses_the_run",
            count=1,
            message=f"{told}the replay takes {times} ({error:+.1%})",
            effect=f"simulators start from a graph in which {duration(abs(missing_ns))} are "
            f"{what}, {_place(differs, nodes)}",
            hint=_TOO_SHORT if missing_ns > 0 else _TOO_LONG,
        )
    ]


def _place(differs: Deviation, nodes: pl.DataFrame) -> str:
    """Return the missing share of the time, and its thread or stream, next node and time."""
    node = nodes.row(differs.row, named=True)
    is_device = node["stream"] is not None and node.get("is_cpu_op") in (None, 0)
    thread = f"thread {node['thread']}" if "thread" in node else f"tid {node['tid']}"
    where = f"stream {node['stream']}" if is_device else thread
    return (
        f"{duration(abs(differs.missing_ns))} of them on {where} at node {node['node']} "
        f"({node['name']}), between {duration(differs.start_ns)} and {duration(differs.end_ns)} "
        "after the first start"
    )
