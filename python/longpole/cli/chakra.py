"""`longpole chakra`: write, show, check and replay Chakra graphs (.et)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, NotRequired

import click
import polars as pl

from longpole.cli.answer import exit_codes
from longpole.cli.answer.inputs import name_of
from longpole.cli.ask.files import OutputPath
from longpole.cli.ask.options import (
    Options,
    answer_options,
    answers,
    force_option,
    shared_options,
)
from longpole.cli.link import known_of_replay, pair_options, replay_warnings
from longpole.formats.convert.chakra import read_chakra
from longpole.report.blocks import Column, Entry, Headline, Notes, Sentence, Value, tabulated
from longpole.report.document import Document
from longpole.words.data import Row, plain
from longpole.words.wording import count, duration

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from longpole.cli.answer.emit import Answer
    from longpole.formats.convert.chakra import ChakraTrace
    from longpole.formats.convert.execution_trace import Replay
    from longpole.jobs.linked_ranks import LinkedRanks
    from longpole.report.blocks import Block, Style
    from longpole.report.document import Warned

__all__ = ["chakra"]

_CHECK: Final = "longpole.chakra.check/1"
_CONVERT: Final = "longpole.chakra.convert/1"
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
    """Write, show, check and replay Chakra graphs, which simulators read.

    \b
    Examples:
      longpole chakra convert --et et.json --kineto kineto.json -o rank.0.et
      longpole chakra check rank.0.et
      longpole chakra replay rank.0.et
    """


@chakra.command()
@answers("longpole.cli.chakra:Converted")
@pair_options
@click.option(
    "-o",
    "--output",
    "--output_filename",
    required=True,
    type=OutputPath(is_either=True),
    help="File to write, or folder for the graphs of several ranks.",
)
@click.option("--no-gaps", is_flag=True, help="Leave out the time between operators.")
@force_option
@shared_options
def convert(
    *,
    execution: str,
    kineto: str,
    iteration: int | None,
    output: str,
    no_gaps: bool,
    force: bool,
    options: Options,
) -> int:
    """Link two files, write a Chakra graph, and check it.

    For the ranks of one run, give directories or quoted glob patterns. OUTPUT is then a
    directory for one graph per rank and the ranks of the process groups.

    \b
    Examples:
      longpole chakra convert --et et.json --kineto kineto.json -o rank.0.et
      longpole chakra convert --et "et*.json" --kineto "kineto*.json" -o graphs/
    """
    from longpole.formats.convert.chakra import write_chakra
    from longpole.formats.convert.execution_trace import link_execution_trace
    from longpole.formats.read import read_trace
    from longpole.jobs.linked_ranks import link_ranks

    if any(Path(path).is_dir() or not Path(path).exists() for path in (execution, kineto)):
        ranks = link_ranks(execution, kineto)
        written = ranks.write_chakra(output, gaps=not no_gaps, overwrite=force)
        return options.emit(_ranks_answer(ranks, written))
    trace = read_trace(kineto, vocabulary=options.vocabulary, threads=options.threads)
    linked = link_execution_trace(execution, trace, iteration=iteration)
    write_chakra(linked, output, gaps=not no_gaps, overwrite=force)
    return options.emit(_converted_answer(execution, kineto, output))


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


class CheckedGraph(Row):
    """The problems of a graph."""

    findings: Findings


class Pair(Row):
    """A written graph, and the two files it was made from."""

    path: str
    rank: int | None
    execution: str
    kineto: str
    paired_by: Literal["process", "rank"] | None


class ConvertedGraph(Pair):
    """A written graph with its problems."""

    findings: Findings


class MatchedCalls(Row):
    """The collective calls of several ranks."""

    count: int
    matched_by: list[str]


class Converted(Row):
    """The files that were written."""

    graphs: list[ConvertedGraph]
    groups: str | None
    """File with the ranks of the process groups, for several ranks."""
    calls: NotRequired[MatchedCalls]
    findings: NotRequired[list[str]]


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
    found, warnings = _checked(graph)
    document = Document(
        schema=_CHECK,
        **known_of_replay({"path": path}, warnings),
        data=CheckedGraph(findings=found),
        blocks=lambda: list(_findings(path, found)),
        records=lambda: [{"path": path, **row} for row in found],
    )
    return document, _exit_code(found, warnings)


def _converted_answer(execution: str, kineto: str, output: str) -> Answer:
    """Return the problems of a graph that was just written."""
    found, warnings = _checked(read_chakra(output))
    pair = Pair(path=output, rank=None, execution=execution, kineto=kineto, paired_by=None)
    document = Document(
        schema=_CONVERT,
        **known_of_replay({"path": execution, "kineto": kineto}, warnings),
        data=Converted(graphs=[{**pair, "findings": found}], groups=None),
        blocks=lambda: list(_findings(output, found)),
        records=lambda: [plain(pair)],
    )
    return document, _exit_code(found, warnings)


def _ranks_answer(ranks: LinkedRanks, written: Sequence[Path]) -> Answer:
    """Report the files written for the ranks of a run, and how their calls were matched."""
    *graphs, groups = written
    checked = [_checked(read_chakra(path), path.name) for path in graphs]
    warnings = [warned for _, of_graph in checked for warned in of_graph]
    pairs = _pairs(ranks, graphs)
    calls = ranks.traces.calls
    converted = Converted(
        graphs=[
            {**pair, "findings": found} for pair, (found, _) in zip(pairs, checked, strict=True)
        ],
        groups=str(groups),
        calls={
            "count": calls.height,
            "matched_by": sorted(calls["matched_by"].unique().cast(str)),
        },
        findings=[finding.message for finding in ranks.traces.findings],
    )
    document = Document(
        schema=_CONVERT,
        **known_of_replay(
            {"path": str(groups.parent), "ranks": [pair["rank"] for pair in pairs]}, warnings
        ),
        data=converted,
        blocks=lambda: list(_converted(pairs, converted)),
        records=lambda: plain(pairs),
    )
    return document, max(_exit_code(found, warnings) for found, _ in checked)


def _pairs(ranks: LinkedRanks, graphs: Sequence[Path]) -> list[Pair]:
    return [
        Pair(
            path=str(path),
            rank=pair.rank,
            execution=pair.execution,
            kineto=pair.kineto,
            paired_by=pair.paired_by,
        )
        for pair, path in zip(ranks.pairs, graphs, strict=True)
    ]


def _converted(pairs: Sequence[Pair], converted: Converted) -> Iterator[Block]:
    """Show the pairs, the problems of their graphs, and how calls were matched."""
    calls = converted["calls"]
    by = f", matched by {', '.join(calls['matched_by'])}" if calls["matched_by"] else ""
    yield Headline(f"{count(len(pairs), 'rank')}, {count(calls['count'], 'call')} of several{by}")
    yield tabulated(pairs, {Column(name.replace("_", " ")): name for name in pairs[0]})
    for graph in converted["graphs"]:
        yield from _findings(graph["path"], graph["findings"])
    groups = f"The ranks of the process groups: {converted['groups']}."
    yield Notes([*converted["findings"], groups])


def _checked(graph: ChakraTrace, name: str = "") -> tuple[Findings, list[Warned]]:
    """Return the problems of a graph, and where its replay deviates from the run."""
    return graph.check().to_dicts(), replay_warnings(graph.replay(), graph.nodes, name)


def _exit_code(found: Sequence[Mapping[str, Any]], warnings: Sequence[Warned]) -> int:
    if warnings:
        return exit_codes.INCONCLUSIVE
    return exit_codes.FINDINGS if any(row["refused"] for row in found) else exit_codes.OK


def _findings(path: str, found: Sequence[Mapping[str, Any]]) -> Iterator[Block]:
    told = count(len(found), "problem") if found else "no problems found"
    yield Headline(f"{name_of(path)}: {told}")
    for row in found:
        times = f"  {row['count']:,} ×" if row["count"] > 1 else ""  # noqa: RUF001
        sentence = f"{row['sentence']}, first at node {row['first_node']}."
        sentences = [f"{sentence[:1].upper()}{sentence[1:]}", f"Effect: {row['effect']}."]
        style: Style = "bad" if row["refused"] else "warn"
        label = "refused" if row["refused"] else "warning"
        yield Entry(label, style, row["code"] + times, sentences)


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
