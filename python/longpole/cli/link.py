"""`longpole link`: add the times of a Kineto trace to the execution trace of the same run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final

import click

from longpole.cli.answer import exit_codes
from longpole.cli.answer.inputs import name_of
from longpole.cli.answer.problems import require
from longpole.cli.ask.files import OutputPath
from longpole.cli.ask.numbers import NUMBER
from longpole.cli.ask.options import Options, answers, force_option, shared_options
from longpole.formats.convert.execution_trace import Method
from longpole.report.blocks import Column, Headline, Notes, Sentence, Table
from longpole.report.document import DATA_FORMATS, Abstention, Document, Warned
from longpole.words.data import Row
from longpole.words.wording import count, duration, escape

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import polars as pl

    from longpole.cli.answer.emit import Answer
    from longpole.formats.convert.execution_trace import Deviation, LinkedTrace, Replay
    from longpole.report.blocks import Block
    from longpole.report.document import Record

__all__ = ["known_of_replay", "link", "pair_options", "replay_warnings"]

_SCHEMA: Final = "longpole.link/1"
_LARGEST_ERROR: Final = 0.05
"""Published error of graphs with these kinds of dependencies: 3.3 %."""


def pair_options(command: Any) -> Any:
    """Add the two files to a command, under longpole's and Chakra's names."""
    for option in (
        click.option(
            "--iteration",
            type=NUMBER,
            metavar="N",
            help="Which of the matching iterations to use, counted from 0.  [default: the one of "
            "median length]",
        ),
        click.option(
            "--kineto",
            "--kineto-file",
            "--chakra-device-trace",
            "kineto",
            required=True,
            type=click.Path(readable=False),
            help="Kineto trace.",
        ),
        click.option(
            "--et",
            "--pytorch-et-file",
            "--chakra-host-trace",
            "execution",
            required=True,
            type=click.Path(readable=False),
            metavar="FILE",
            help="Execution trace of the same run.",
        ),
    ):
        command = option(command)
    return command


@click.command()
@answers("longpole.cli.link:Linked")
@pair_options
@click.option("-o", "--output", "--output-file", type=OutputPath(), help="ET+ file to write.")
@click.option(
    "--compat", type=click.Choice(["chakra"]), help="Write the same file as the linker of Chakra."
)
@click.option("--parquet", type=OutputPath(is_folder=True), help="Folder to write the tables to.")
@click.option("--rank", type=NUMBER, metavar="N", help="Fail if the trace is of another rank.")
@click.option("--explain", is_flag=True, help="List every dependency on GPU activities.")
@force_option
@shared_options
def link(
    *,
    execution: str,
    kineto: str,
    iteration: int | None,
    output: str | None,
    compat: Any,
    parquet: str | None,
    rank: int | None,
    explain: bool,
    force: bool,
    options: Options,
) -> int:
    """Add the times of a Kineto trace to the execution trace of the same run.

    The answer shows what was linked, what was not, and how well the dependencies explain the
    measured time. The exit code is 3 if the files do not belong together.

    \b
    Examples:
      longpole link --et et.json --kineto kineto.json -o et_plus.json
      longpole link --et et.json --kineto kineto.json --explain
    """
    from longpole.formats.convert import chakra
    from longpole.formats.convert.execution_trace import link_execution_trace
    from longpole.formats.read import read_trace

    trace = read_trace(kineto, vocabulary=options.vocabulary, threads=options.threads)
    is_of_rank = rank is None or trace.rank in {None, rank}
    require(is_of_rank, f"the Kineto trace is of rank {trace.rank}, not {rank}")
    linked = link_execution_trace(execution, trace, iteration=iteration)
    if output:
        chakra.write_et_plus(linked, output, compatible=compat, overwrite=force)
    if parquet:
        chakra.write_parquet(linked, parquet, overwrite=force)
    answer = _answer(execution, kineto, linked, explain=explain)
    return options.emit(answer)


class Iteration(Row):
    """A position in the Kineto trace that matches the execution trace."""

    iteration: int
    start_ns: int
    duration_ns: int
    n_nodes: int
    chosen: bool


class Linked(Row):
    """The result of joining two files, and how well the dependencies explain the run."""

    method: Method
    n_linked: int
    pids_differ: bool
    nodes: dict[str, int]
    """Number of nodes by kind."""
    unlinked: dict[str, int]
    """Number of unlinked nodes and activities by reason."""
    dependencies: dict[str, int]
    """Number of dependencies by kind."""
    dropped: dict[str, int]
    """Number of dependencies left out, by reason."""
    iterations: Annotated[list[dict[str, Any]], Iteration]
    measured_ns: int | None
    replay_ns: int
    replay_error: float | None
    """Error of the replay relative to the measured time."""
    gap_ns: int
    replay_error_without_gaps: float | None


def _answer(execution: str, kineto: str, linked: LinkedTrace, *, explain: bool) -> Answer:
    """Report how two files were joined, what was not, and how well dependencies explain the run."""
    replay = linked.replay()
    found = _figures(linked, replay)
    warnings = replay_warnings(replay, linked.nodes)
    document = Document(
        schema=_SCHEMA,
        **known_of_replay({"path": execution, "kineto": kineto}, warnings),
        data=found,
        blocks=lambda: [
            Headline(f"{name_of(execution)}, {name_of(kineto)}"),
            *_blocks(found),
            *([Notes(list(_explained(linked)))] if explain else []),
        ],
        records=lambda: _records(found),
    )
    return document, exit_codes.INCONCLUSIVE if warnings else exit_codes.OK


def _figures(linked: LinkedTrace, whole: Replay) -> Linked:
    import polars as pl

    def counts(frame: pl.DataFrame, column: str) -> dict[str, int]:
        words = frame.group_by(pl.col(column).cast(pl.String)).len().sort(column)
        return dict(words.iter_rows())

    without = linked.replay(gaps=False)
    gaps = linked.nodes.filter(pl.col("kind").cast(pl.String) == "gap")["work_ns"].sum()
    return Linked(
        method=linked.method,
        n_linked=linked.n_linked,
        pids_differ=linked.pids_differ,
        nodes=counts(linked.nodes, "kind"),
        unlinked=counts(linked.unlinked, "reason"),
        dependencies=counts(linked.dependencies, "kind"),
        dropped=linked.dropped,
        iterations=linked.iterations.to_dicts(),
        measured_ns=whole.measured_ns,
        replay_ns=whole.makespan_ns,
        replay_error=whole.error,
        gap_ns=int(gaps),
        replay_error_without_gaps=without.error,
    )


def _counted(found: Linked) -> Iterator[tuple[str, str, dict[str, int]]]:
    """Yield a label, a title, and the counts by name of each kind of result."""
    yield "nodes", "nodes", found["nodes"]
    yield "unlinked", "not linked", found["unlinked"]
    yield "dependencies", "dependencies", found["dependencies"]
    yield "dropped", "dependencies left out", found["dropped"]


def _records(found: Linked) -> Iterator[Record]:
    """Yield every count as a row: what was counted, its name, the count."""
    for part, _, counts in _counted(found):
        for name, number in counts.items():
            yield {"part": part, "name": name, "count": number}


def _blocks(found: Linked) -> Iterator[Block]:
    method = found["method"].replace("_", " ")
    yield Sentence(f"Linked by {method}: {count(found['n_linked'], 'node')}.")
    rows = [
        (title, name.replace("_", " "), number)
        for _, title, counts in _counted(found)
        for name, number in counts.items()
    ]
    yield Table((Column("what"), Column("kind"), Column("count", "count")), rows)
    if found["iterations"]:
        yield Sentence(f"Iterations that fit: {len(found['iterations'])}.")
        columns = (Column("iteration", "number"), Column("length", "duration"), Column("taken"))
        yield Table(
            columns,
            [
                (one["iteration"], one["duration_ns"], "taken" if one["chosen"] else "")
                for one in found["iterations"]
            ],
        )
    yield from _replayed(found)
    if found["pids_differ"]:
        yield Notes(["The two files name different processes."])


def _replayed(found: Linked) -> Iterator[Block]:
    if not found["measured_ns"]:
        return
    measured, replayed = duration(found["measured_ns"]), duration(found["replay_ns"])
    yield Sentence(
        f"Measured {measured}, replayed {replayed}: {found['replay_error']:+.1%}. "
        f"Time between operators: {duration(found['gap_ns'])}; without it the replay differs by "
        f"{found['replay_error_without_gaps']:+.1%}."
    )


def _explained(linked: LinkedTrace) -> Iterator[str]:
    """Explain each dependency on GPU activities: the waiting call, the activity, the evidence."""
    import polars as pl

    names = linked.nodes.select("node", pl.col("name").cast(pl.String))
    calls = linked.trace.events.select("event", call=pl.col("name").cast(pl.String))
    kind = pl.col("kind").cast(pl.String)
    found = linked.dependencies.filter(kind.is_in(["sync", "queue_full", "event_wait"]))
    gaps = linked.nodes.filter(pl.col("kind").cast(pl.String) == "gap")["node"]
    rows = (
        found.filter(~pl.col("node").is_in(gaps.implode()))
        .join(names, on="node")
        .join(names, left_on="depends_on", right_on="node", suffix="_source")
        .join(calls, on="event", how="left")
        .sort("node", "depends_on")
    )
    for row in rows.iter_rows(named=True):
        waiting = f"{row['kind']}: node {row['node']} ({escape(row['name'])}) waits, in "
        source = f"for node {row['depends_on']} ({escape(row['name_source'])})"
        yield f"{waiting}{escape(row['call'] or '?')}, {source}, {row['evidence']}"


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
            hint="the graph does not hold what was waited for there; take another iteration or "
            "record both files over the same whole iteration",
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
