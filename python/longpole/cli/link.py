"""`longpole link`: give an execution trace the times of the Kineto trace of the same run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from longpole.wording import duration, escape

if TYPE_CHECKING:
    from longpole.convert.execution_trace import LinkedTrace

__all__ = ["link", "pair_options", "summary_of"]


def pair_options(command: Any) -> Any:
    """Give a command the two files, by the names of longpole and those of Chakra."""
    for option in (
        click.option("--iteration", type=int, help="Which of the iterations that fit to take."),
        click.option(
            "--kineto",
            "--kineto-file",
            "--chakra-device-trace",
            "kineto",
            required=True,
            type=click.Path(),
            help="The Kineto trace.",
        ),
        click.option(
            "--et",
            "--pytorch-et-file",
            "--chakra-host-trace",
            "execution",
            required=True,
            type=click.Path(),
            help="The execution trace.",
        ),
    ):
        command = option(command)
    return command


@click.command()
@pair_options
@click.option("-o", "--output", "--output-file", type=click.Path(), help="Write an ET+ file.")
@click.option("--compat", type=click.Choice(["chakra"]), help="Write what Chakra's linker does.")
@click.option("--parquet", type=click.Path(), help="Write the tables to this folder.")
@click.option("--rank", type=int, help="Refuse a trace of another rank.")
@click.option("--explain", is_flag=True, help="List every dependency on device work.")
@click.option("-f", "--force", is_flag=True, help="Write over files that are there.")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text")
@click.option("--json", "as_json", is_flag=True, help="Short for --format json.")
def link(  # noqa: PLR0917 - click names them
    execution: str,
    kineto: str,
    iteration: int | None,
    output: str | None,
    compat: Any,
    parquet: str | None,
    rank: int | None,
    form: str,
    *,
    explain: bool,
    force: bool,
    as_json: bool,
) -> int:
    """Give the nodes of an execution trace the times of the Kineto trace of the same run.

    Prints how the two files were joined, what was not, and how well the dependencies
    explain the measured time. Exits with 3 where the files do not belong together.

    \b
    Examples:
      longpole link --et et.json --kineto kineto.json -o et_plus.json
      longpole link --et et.json --kineto kineto.json --explain
    """
    from longpole.convert import chakra
    from longpole.convert.execution_trace import link_execution_trace
    from longpole.report.document import Document
    from longpole.report.json import json_text

    linked = link_execution_trace(execution, kineto, iteration=iteration)
    if rank is not None and linked.trace.rank not in {None, rank}:
        message = f"the Kineto trace is of rank {linked.trace.rank}, not {rank}"
        raise click.UsageError(message)
    if output:
        chakra.write_et_plus(linked, output, compatible=compat, overwrite=force)
    if parquet:
        chakra.write_parquet(linked, parquet, overwrite=force)
    found = summary_of(linked)
    if form == "json" or as_json:
        inputs = {"path": execution, "kineto": kineto}
        document = Document(schema="longpole.link/1", input=inputs, data=found)
        click.echo(json_text([document]), nl=False)
    else:
        click.echo("\n".join(_text(found)))
        if explain:
            click.echo("\n".join(_explained(linked)))
    return 0


def summary_of(linked: LinkedTrace) -> dict[str, Any]:
    """Count what was linked, and measure how well the dependencies explain the time."""
    import polars as pl

    whole, without = linked.replay(), linked.replay(gaps=False)
    counts = linked.nodes.group_by(pl.col("kind").cast(pl.String)).len().sort("kind")
    reasons = linked.unlinked.group_by(pl.col("reason").cast(pl.String)).len().sort("reason")
    kinds = linked.dependencies.group_by(pl.col("kind").cast(pl.String)).len().sort("kind")
    gaps = linked.nodes.filter(pl.col("kind").cast(pl.String) == "gap")["work_ns"].sum()
    return {
        "method": linked.method,
        "n_linked": linked.n_linked,
        "pids_differ": linked.pids_differ,
        "nodes": dict(counts.iter_rows()),
        "unlinked": dict(reasons.iter_rows()),
        "dependencies": dict(kinds.iter_rows()),
        "dropped": linked.dropped,
        "iterations": linked.iterations.to_dicts(),
        "measured_ns": whole.measured_ns,
        "replay_ns": whole.makespan_ns,
        "replay_error": whole.error,
        "gap_ns": gaps,
        "replay_error_without_gaps": without.error,
    }


def _text(found: dict[str, Any]) -> list[str]:
    def counts(of: dict[str, int]) -> str:
        return ", ".join(f"{n:,} {name}" for name, n in of.items()) or "none"

    lines = [
        f"Linked by {found['method'].replace('_', ' ')}: {found['n_linked']:,} nodes.",
        f"Nodes: {counts(found['nodes'])}",
        f"Not linked: {counts(found['unlinked'])}",
        f"Dependencies: {counts(found['dependencies'])}",
        f"Left out: {counts(found['dropped'])}",
    ]
    if found["pids_differ"]:
        lines.append("Warning: the two files name different processes.")
    if found["iterations"]:
        lines.append(f"Iterations that fit: {len(found['iterations'])}")
    for one in found["iterations"]:
        chosen = " (taken)" if one["chosen"] else ""
        lines.append(f"  {one['iteration']}: {duration(one['duration_ns'])}{chosen}")
    if found["measured_ns"]:
        measured, replayed = duration(found["measured_ns"]), duration(found["replay_ns"])
        error, without = found["replay_error"], found["replay_error_without_gaps"]
        lines.append(f"Measured {measured}, replayed {replayed}: {error:+.1%}")
        gaps = duration(found["gap_ns"])
        lines.append(
            f"Time between operators: {gaps}; without it the replay is off by {without:+.1%}"
        )
    return lines


def _explained(linked: LinkedTrace) -> list[str]:
    """Say of each dependency on device work which call waited, for what, and how that is known."""
    import polars as pl

    names = linked.nodes.select("node", pl.col("name").cast(pl.String))
    calls = linked.trace.events.select("event", call=pl.col("name").cast(pl.String))
    kind = pl.col("kind").cast(pl.String)
    found = linked.dependencies.filter(kind.is_in(["sync", "queue_full", "event_wait"]))
    gaps = linked.nodes.filter(pl.col("kind").cast(pl.String) == "gap")["node"]
    found = found.filter(~pl.col("node").is_in(gaps.implode()))
    rows = (
        found.join(names, on="node")
        .join(names, left_on="depends_on", right_on="node", suffix="_source")
        .join(calls, on="event", how="left")
        .sort("node", "depends_on")
    )
    return [
        f"{row['kind']}: node {row['node']} ({escape(row['name'])}) waits, in "
        f"{escape(row['call'] or '?')}, for node {row['depends_on']} "
        f"({escape(row['name_source'])}), {row['evidence']}"
        for row in rows.iter_rows(named=True)
    ]
