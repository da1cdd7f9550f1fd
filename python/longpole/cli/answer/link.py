"""How an execution trace and a Kineto trace were joined, as an answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final

from longpole.cli.answer import exit_codes
from longpole.cli.answer.inputs import name_of
from longpole.cli.answer.replayed import replay_warnings
from longpole.convert.execution_trace import Method
from longpole.data import Row
from longpole.report.blocks import Column, Headline, Notes, Sentence, Table
from longpole.report.document import DATA_FORMATS, Abstention, Document
from longpole.wording import count, duration, escape

if TYPE_CHECKING:
    from collections.abc import Iterator

    from longpole.cli.answer.emit import Answer
    from longpole.convert.execution_trace import LinkedTrace, Replay
    from longpole.report.blocks import Block
    from longpole.report.document import Record

__all__ = ["LINK", "link_answer"]

LINK: Final = "longpole.link/1"


class Iteration(Row):
    """A position in the Kineto trace that matches the execution trace."""

    iteration: int
    start_ns: int
    duration_ns: int
    n_nodes: int
    chosen: bool


class Linked(Row):
    """How two files were joined, and how well the dependencies explain the run."""

    method: Method
    n_linked: int
    pids_differ: bool
    nodes: dict[str, int]
    """By kind."""
    unlinked: dict[str, int]
    """By reason."""
    dependencies: dict[str, int]
    """By kind."""
    dropped: dict[str, int]
    """Number of dependencies left out, by reason."""
    iterations: Annotated[list[dict[str, Any]], Iteration]
    measured_ns: int | None
    replay_ns: int
    replay_error: float | None
    """Relative to the measured time."""
    gap_ns: int
    replay_error_without_gaps: float | None


def link_answer(execution: str, kineto: str, linked: LinkedTrace, *, explain: bool) -> Answer:
    """Report how two files were joined, what was not, and how well dependencies explain the run."""
    replay = linked.replay()
    found = _figures(linked, replay)
    warnings = replay_warnings(replay, linked.nodes)
    document = Document(
        schema=LINK,
        input={"path": execution, "kineto": kineto},
        status="partial" if warnings else "ok",
        abstains_because=[Abstention("replay_differs")] if warnings else [],
        warnings=warnings,
        forms_with_warnings=DATA_FORMATS,
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
    """Yield each counted thing, its title, and the counts by name."""
    yield "nodes", "nodes", found["nodes"]
    yield "unlinked", "not linked", found["unlinked"]
    yield "dependencies", "dependencies", found["dependencies"]
    yield "dropped", "dependencies left out", found["dropped"]


def _records(found: Linked) -> Iterator[Record]:
    """Yield every count as a row: the thing, its name, the count."""
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
