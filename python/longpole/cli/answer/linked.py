"""How an execution trace was linked to a Kineto trace, and how well this explains the run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, get_args

from longpole.cli.answer import exit_codes
from longpole.cli.answer.graphs import known_of_replay, replay_warnings
from longpole.cli.answer.inputs import name_of
from longpole.formats.convert.execution_trace import Method
from longpole.report.blocks import Column, Headline, Notes, Sentence, Table
from longpole.report.document import Document
from longpole.words.data import Row
from longpole.words.wording import count, duration, escape

if TYPE_CHECKING:
    from collections.abc import Iterator

    import polars as pl

    from longpole.cli.answer.emit import Answer
    from longpole.formats.convert.execution_trace import LinkedTrace, Replay
    from longpole.report.blocks import Block
    from longpole.report.document import Record

_SHOWN: Final = 5
"""Number of waits that the text lists; JSON lists all."""


class Iteration(Row):
    """A position in the Kineto trace that matches the execution trace."""

    iteration: int
    start_ns: int
    duration_ns: int
    n_nodes: int
    chosen: bool


WaitKind = Literal["sync", "queue_full", "event_wait"]


class Wait(Row):
    """A node that waits for a GPU activity."""

    kind: WaitKind
    node: int
    name: str
    call: str | None
    """The waiting runtime API call."""
    depends_on: int
    depends_on_name: str
    evidence: str


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
    waits: Annotated[list[dict[str, Any]], Wait]
    iterations: Annotated[list[dict[str, Any]], Iteration]
    measured_ns: int | None
    replay_ns: int
    replay_error: float | None
    """Error of the replay relative to the measured time."""
    gap_ns: int
    replay_error_without_gaps: float | None


def linked_answer(schema: str, execution: str, kineto: str, linked: LinkedTrace) -> Answer:
    """Report how two files were joined, what was not, and how well dependencies explain the run."""
    replay = linked.replay()
    found = _figures(linked, replay)
    warnings = replay_warnings(replay, linked.nodes)
    document = Document(
        schema=schema,
        **known_of_replay({"path": execution, "kineto": kineto}, warnings),
        data=found,
        blocks=lambda: [
            Headline(f"{name_of(execution)}, {name_of(kineto)}"),
            *_blocks(found),
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
        waits=_waits(linked).to_dicts(),
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
    notes = [*_explained(found)]
    if found["pids_differ"]:
        notes.append("The two files name different processes.")
    if notes:
        yield Notes(notes)


def _replayed(found: Linked) -> Iterator[Block]:
    if not found["measured_ns"]:
        return
    measured, replayed = duration(found["measured_ns"]), duration(found["replay_ns"])
    yield Sentence(
        f"Measured {measured}, replayed {replayed}: {found['replay_error']:+.1%}. "
        f"Time between operators: {duration(found['gap_ns'])}; without it the replay differs by "
        f"{found['replay_error_without_gaps']:+.1%}."
    )


def _waits(linked: LinkedTrace) -> pl.DataFrame:
    """Return the dependencies on GPU activities: the waiting call, the activity, the evidence."""
    import polars as pl

    names = linked.nodes.select("node", pl.col("name").cast(pl.String))
    calls = linked.trace.events.select("event", call=pl.col("name").cast(pl.String))
    texts = [pl.col(column).cast(pl.String) for column in ("kind", "evidence")]
    found = linked.dependencies.with_columns(texts).filter(pl.col("kind").is_in(get_args(WaitKind)))
    is_added = pl.col("kind").cast(pl.String).is_in(["gap", "after_wait"])
    added = linked.nodes.filter(is_added)["node"]
    return (
        found.filter(~pl.col("node").is_in(added.implode()))
        .join(names, on="node")
        .join(names.rename({"name": "depends_on_name"}), left_on="depends_on", right_on="node")
        .join(calls, on="event", how="left")
        .sort("node", "depends_on")
        .select(*Wait.__annotations__)
    )


def _explained(found: Linked) -> Iterator[str]:
    """Explain the first waits."""
    for wait in found["waits"][:_SHOWN]:
        waiting = f"{wait['kind']}: node {wait['node']} ({escape(wait['name'])}) waits, in "
        source = f"for node {wait['depends_on']} ({escape(wait['depends_on_name'])})"
        yield f"{waiting}{escape(wait['call'] or '?')}, {source}, {wait['evidence']}"
    more = len(found["waits"]) - _SHOWN
    if more > 0:
        yield f"{count(more, 'more wait')}: `--json` lists all"
