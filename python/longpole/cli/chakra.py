"""`longpole chakra`: check, show and replay Chakra graphs (.et)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Final, Literal

import click
import polars as pl

from longpole.cli.answer import exit_codes
from longpole.cli.answer.graphs import (
    Findings,
    checked_graph,
    exit_code_of_graph,
    finding_blocks,
    known_of_replay,
    replay_warnings,
)
from longpole.cli.answer.inputs import name_of
from longpole.cli.ask.options import Options, answer_options, answers
from longpole.report.blocks import Column, Headline, Notes, Sentence, Value, tabulated
from longpole.report.document import Document
from longpole.words.data import Row
from longpole.words.wording import count, duration

if TYPE_CHECKING:
    from collections.abc import Iterator

    from longpole.cli.answer.emit import Answer
    from longpole.formats.convert.chakra import ChakraTrace
    from longpole.formats.convert.execution_trace import Replay
    from longpole.report.blocks import Block

_CHECK: Final = "longpole.chakra.check/1"
_REPLAY: Final = "longpole.chakra.replay/1"
_RESOURCES: Final[dict[Column, Value]] = {
    Column("kind"): "kind",
    Column("number", "number"): "lane",
    Column("nodes", "count"): "n_nodes",
    Column("busy", "duration"): "busy_ns",
    Column("ends at", "duration"): "end_ns",
    Column("measured", "duration"): "measured_end_ns",
    Column("error"): lambda row: "" if row["error"] is None else f"{row['error']:+.1%}",
}


@click.group()
def chakra() -> None:
    """Check, show and replay Chakra graphs, which simulators read.

    \b
    Examples:
      longpole convert --et et.json kineto.json -o rank.0.et
      longpole chakra check rank.0.et
      longpole chakra replay rank.0.et
    """


@chakra.command()
@click.argument("graph", type=click.Path(readable=False))
def show(graph: str) -> int:
    """Print a graph as JSON Lines: its metadata, then each node.

    \b
    Example:
      longpole chakra show rank.0.et
    """
    from longpole.formats.convert.chakra import read_chakra

    trace = read_chakra(graph)
    click.echo(json.dumps({"metadata": trace.metadata}))
    edges: dict[int, dict[str, list[int]]] = {}
    for node, source, kind in trace.dependencies.iter_rows():
        edges.setdefault(node, {}).setdefault(f"{kind}_deps", []).append(source)
    for place, row in enumerate(trace.nodes.iter_rows(named=True)):
        found = {"id": row["node"], "name": row["name"], "type": row["type"]}
        found |= {"duration_us": row["duration_us"], **edges.get(row["node"], {})}
        click.echo(json.dumps({**found, "attributes": trace.attributes(place)}))
    return 0


@chakra.command()
@answers("longpole.cli.chakra:CheckedGraph")
@click.argument("graph", type=click.Path(readable=False))
@answer_options
def check(*, graph: str, options: Options) -> int:
    """List the problems of a graph.

    The exit code is 1 if simulators would refuse the graph.

    \b
    Example:
      longpole chakra check rank.0.et
    """
    from longpole.formats.convert.chakra import read_chakra

    return options.emit(_check_answer(graph, read_chakra(graph)))


@chakra.command()
@answers("longpole.cli.chakra:Replayed")
@click.argument("graph", type=click.Path(readable=False))
@answer_options
def replay(*, graph: str, options: Options) -> int:
    """Replay a graph with its measured durations, and compare with the measured time.

    \b
    Example:
      longpole chakra replay rank.0.et
    """
    from longpole.formats.convert.chakra import read_chakra

    return options.emit(_replay_answer(graph, read_chakra(graph)))


class CheckedGraph(Row):
    """The problems of a graph."""

    findings: Findings


class Resource(Row):
    """A thread or stream in a replay."""

    kind: Literal["thread", "stream"]
    lane: int
    n_nodes: int
    busy_ns: int
    end_ns: int
    measured_end_ns: int | None
    error: float | None


class Replayed(Row):
    """Time of a graph with its measured durations."""

    replay_ns: int
    measured_ns: int | None
    error: float | None
    """Error of the replay relative to the measured time."""
    error_without_gaps: float | None
    stuck: int
    """Number of nodes that never became ready."""
    resources: Annotated[pl.DataFrame, Resource]


def _check_answer(path: str, graph: ChakraTrace) -> Answer:
    """Return the problems of a graph."""
    found, warnings = checked_graph(graph)
    document = Document(
        schema=_CHECK,
        **known_of_replay({"path": path}, warnings),
        data=CheckedGraph(findings=found),
        blocks=lambda: list(finding_blocks(path, found)),
        records=lambda: [{"path": path, **row} for row in found],
    )
    return document, exit_code_of_graph(found, warnings)


def _replay_answer(path: str, graph: ChakraTrace) -> Answer:
    """Compare the replayed time of a graph with the measured time."""
    whole, without = graph.replay(), graph.replay(gaps=False)
    resources = whole.resources.to_dicts()
    warnings = replay_warnings(whole, graph.nodes)
    document = Document(
        schema=_REPLAY,
        **known_of_replay({"path": path}, warnings),
        data=Replayed(
            replay_ns=whole.makespan_ns,
            measured_ns=whole.measured_ns,
            error=whole.error,
            error_without_gaps=without.error,
            stuck=whole.stuck,
            resources=whole.resources,
        ),
        blocks=lambda: list(_replayed(path, whole, without)),
        records=lambda: [{"path": path, **row} for row in resources],
    )
    if whole.stuck:
        return document, exit_codes.FINDINGS
    return document, exit_codes.INCONCLUSIVE if warnings else exit_codes.OK


def _replayed(path: str, whole: Replay, without: Replay) -> Iterator[Block]:
    yield Headline(f"{name_of(path)}: replayed in {duration(whole.makespan_ns)}")
    if whole.measured_ns is None or whole.error is None or without.error is None:
        yield Sentence("The graph does not say when its nodes ran, so the error is not known.")
    else:
        yield Sentence(
            f"Measured {duration(whole.measured_ns)}: {whole.error:+.1%} "
            f"({without.error:+.1%} without the time between operators)."
        )
    yield tabulated(whole.resources.iter_rows(named=True), _RESOURCES)
    if whole.stuck:
        nodes = count(whole.stuck, "node")
        yield Notes([f"{nodes} never run, because they wait for each other."])
