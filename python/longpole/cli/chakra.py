"""`longpole chakra`: write, show, check and replay Chakra graphs (.et)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from longpole.cli.link import pair_options
from longpole.wording import duration, escape

if TYPE_CHECKING:
    from longpole.convert.execution_trace import Replay

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
@pair_options
@click.option("-o", "--output", "--output_filename", required=True, type=click.Path())
@click.option("--no-gaps", is_flag=True, help="Leave out the time between operators.")
@click.option("-f", "--force", is_flag=True, help="Write over a file that is there.")
def convert(
    execution: str, kineto: str, iteration: int | None, output: str, *, no_gaps: bool, force: bool
) -> int:
    """Link two files and write a Chakra graph, then say what is wrong with it, if anything."""
    from longpole.convert.chakra import read_chakra, write_chakra
    from longpole.convert.execution_trace import link_execution_trace

    linked = link_execution_trace(execution, kineto, iteration=iteration)
    write_chakra(linked, output, gaps=not no_gaps, overwrite=force)
    return _findings(output, read_chakra(output).check().to_dicts())


@chakra.command()
@click.argument("graph", type=click.Path())
def show(graph: str) -> int:
    """Print a graph as JSON Lines: first what the file says of itself, then each node."""
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
@click.argument("graph", type=click.Path())
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def check(graph: str, *, as_json: bool) -> int:
    """Say what is wrong with a graph. Exits with 1 where simulators would refuse it."""
    from longpole.convert.chakra import read_chakra

    found = read_chakra(graph).check().to_dicts()
    if as_json:
        _show_json("longpole.chakra.check/1", graph, {"findings": found})
        return int(any(row["refused"] for row in found))
    return _findings(graph, found)


@chakra.command()
@click.argument("graph", type=click.Path())
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def replay(graph: str, *, as_json: bool) -> int:
    """Run a graph with its measured durations, and compare with the time it took."""
    from longpole.convert.chakra import read_chakra

    trace = read_chakra(graph)
    whole, without = trace.replay(), trace.replay(gaps=False)
    if as_json:
        data = {
            "replay_ns": whole.makespan_ns,
            "measured_ns": whole.measured_ns,
            "error": whole.error,
            "error_without_gaps": without.error,
            "stuck": whole.stuck,
            "resources": whole.resources.to_dicts(),
        }
        _show_json("longpole.chakra.replay/1", graph, data)
    else:
        click.echo("\n".join(_replayed(graph, whole, without)))
    return int(whole.stuck > 0)


def _show_json(schema: str, graph: str, data: dict[str, Any]) -> None:
    from longpole.report.document import Document
    from longpole.report.json import json_text

    click.echo(json_text([Document(schema=schema, input={"path": graph}, data=data)]), nl=False)


def _findings(graph: str, found: list[dict[str, Any]]) -> int:
    if not found:
        click.echo(f"{escape(graph)}: no problems found")
    for row in found:
        click.echo(
            f"{escape(graph)}: {row['sentence']}: {row['count']:,}, first at node "
            f"{row['first_node']}; {row['effect']}"
        )
    return int(any(row["refused"] for row in found))


def _replayed(graph: str, whole: Replay, without: Replay) -> list[str]:
    lines = [f"{escape(graph)}: replayed in {duration(whole.makespan_ns)}"]
    if whole.measured_ns is None or whole.error is None or without.error is None:
        lines.append("The graph does not say when its nodes ran, so the error is not known.")
    else:
        lines.append(
            f"Measured {duration(whole.measured_ns)}: {whole.error:+.1%} "
            f"({without.error:+.1%} without the time between operators)"
        )
    if whole.stuck:
        lines.append(f"{whole.stuck:,} nodes never run, because they wait for each other.")
    for row in whole.resources.iter_rows(named=True):
        error = "" if row["error"] is None else f", {row['error']:+.1%}"
        lines.append(
            f"  {row['kind']} {row['lane']}: {row['n_nodes']:,} nodes, busy "
            f"{duration(row['busy_ns'])}, ends at {duration(row['end_ns'])}{error}"
        )
    return lines
