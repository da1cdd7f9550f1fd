"""`longpole chakra`: write, show, check and replay Chakra graphs (.et)."""

from __future__ import annotations

import json
from pathlib import Path

import click

from longpole.cli.ask.files import OutputPath
from longpole.cli.ask.options import Options, answers, force_option, shared_options
from longpole.cli.link import pair_options

__all__ = ["chakra"]


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
@answers("longpole.cli.answer.chakra:Converted")
@pair_options
@click.option(
    "-o",
    "--output",
    "--output_filename",
    required=True,
    type=OutputPath(is_either=True),
    help="Write the graph to this file, or the graphs of several ranks to this folder.",
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
    from longpole.cli.answer.chakra import converted_answer, ranks_answer
    from longpole.convert.chakra import write_chakra
    from longpole.convert.execution_trace import link_execution_trace
    from longpole.read import read_trace
    from longpole.traces.linked_ranks import link_ranks

    if any(Path(path).is_dir() or not Path(path).exists() for path in (execution, kineto)):
        ranks = link_ranks(execution, kineto)
        written = ranks.write_chakra(output, gaps=not no_gaps, overwrite=force)
        return options.emit(ranks_answer(ranks, written))
    trace = read_trace(kineto, vocabulary=options.vocabulary, threads=options.threads)
    linked = link_execution_trace(execution, trace, iteration=iteration)
    write_chakra(linked, output, gaps=not no_gaps, overwrite=force)
    return options.emit(converted_answer(execution, kineto, output))


@chakra.command()
@click.argument("graph", type=click.Path(readable=False))
def show(graph: str) -> int:
    """Print a graph as JSON Lines: its metadata, then each node."""
    from longpole.convert.chakra import read_chakra

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
@answers("longpole.cli.answer.chakra:CheckedGraph")
@click.argument("graph", type=click.Path(readable=False))
@shared_options
def check(*, graph: str, options: Options) -> int:
    """List the problems of a graph.

    The exit code is 1 if simulators would refuse the graph.
    """
    from longpole.cli.answer.chakra import check_answer
    from longpole.convert.chakra import read_chakra

    return options.emit(check_answer(graph, read_chakra(graph)))


@chakra.command()
@answers("longpole.cli.answer.chakra:Replayed")
@click.argument("graph", type=click.Path(readable=False))
@shared_options
def replay(*, graph: str, options: Options) -> int:
    """Replay a graph with its measured durations, and compare with the measured time."""
    from longpole.cli.answer.chakra import replay_answer
    from longpole.convert.chakra import read_chakra

    return options.emit(replay_answer(graph, read_chakra(graph)))
