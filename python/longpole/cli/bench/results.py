"""`longpole bench results` and `best`: the outcome of each job, and the fastest results."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

import click

from longpole.bench.records.record import Outcome, Record
from longpole.cli.answer import exit_codes
from longpole.cli.ask.options import Options, answer_options, answers, top_option
from longpole.errors import ResultsError
from longpole.report.blocks import Column, Notes, Sentence, Value, tabulated
from longpole.report.document import Abstention, Document, Warned
from longpole.words.data import Row
from longpole.words.wording import count

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from longpole.bench import Measurement, ResultsFile
    from longpole.report.blocks import Block

__all__ = ["best", "results"]

_SCHEMA: Final = "longpole.bench.results/1"
_SAID_CHARACTERS: Final = 60
_BEST: Final = "longpole.bench.best/1"
_NOTHING: Final = "no run gave a result that can be chosen"


def _best_of(value: str) -> Callable[[Record], Any]:
    """Return a function that returns a value of the best result of a record, if it has one."""
    return lambda record: getattr(record.best, value, None)


def _said(record: Record) -> str:
    said = record.message
    return said if len(said) <= _SAID_CHARACTERS else said[: _SAID_CHARACTERS - 1] + "…"


_RESULTS: Final[dict[Column, Value]] = {
    Column("job", "name"): "id",
    Column("outcome"): "outcome",
    Column("attempt", "number"): "attempt",
    Column("took", "duration"): lambda row: None if row.seconds is None else row.seconds * 1e9,
    Column("best"): _best_of("name"),
    Column("time", "duration"): _best_of("time_ns"),
    Column("message"): _said,
}
_CHOICES: Final[dict[Column, Value]] = {
    Column("key", "name"): "key",
    Column("best", "name"): lambda row: row.name + (" (unstable)" if row.unstable else ""),
    Column("time", "duration"): "time_ns",
    Column("workspace", "number"): lambda row: (
        None if row.workspace_bytes is None else f"{row.workspace_bytes:,} B"
    ),
    Column("job"): "id",
    Column("device"): "device",
}


class Results(Row):
    """The records of a run."""

    records: list[Record]


@click.command()
@answers("longpole.cli.bench.results:Results")
@click.argument("path", metavar="RESULTS")
@click.option(
    "--outcome",
    type=click.Choice([outcome.value for outcome in Outcome]),
    help="Show only records with this outcome.",
)
@click.option(
    "--all-attempts", is_flag=True, help="Show all attempts at each job, not only the last."
)
@top_option(10_000, "records")
@answer_options
def results(
    *, path: str, outcome: str | None, all_attempts: bool, top: int, options: Options
) -> int:
    """Show the outcome of each job.

    JSON has everything that was recorded.

    \b
    Examples:
      longpole bench results jobs.results.jsonl --outcome timeout
      longpole bench results jobs.results.jsonl --json
    """
    from longpole.bench import ResultsFile

    file = ResultsFile(path)
    wanted = _checked(file, file.records() if all_attempts else file.final_records())
    kept: list[Record] = []
    n_found = 0
    for record in wanted:
        if outcome in {None, record.outcome}:
            n_found += 1
            if n_found <= top:
                kept.append(record)
    warnings = [*_damage_warnings(file), *_left_out(n_found - len(kept))]
    document = Document(
        schema=_SCHEMA,
        input={"path": path, "n_records": file.n_records},
        warnings=warnings,
        data=Results(records=kept),
        truncated={"records": {"shown": len(kept), "total": n_found}} if n_found > top else None,
        blocks=lambda: _table(kept, _RESULTS, "no such record", warnings),
        records=lambda: [_row(record) for record in kept],
    )
    return options.emit((document, exit_codes.OK))


def _left_out(n_records: int) -> list[Warned]:
    if not n_records:
        return []
    message = f"{count(n_records, 'further record')} beyond the limit"
    return [Warned("limit", n_records, message, "not shown; see --top")]


def _table(
    rows: Sequence[Any], columns: Mapping[Column, Value], nothing: str, warnings: Sequence[Warned]
) -> list[Block]:
    """Show rows, or that there are none, and the warnings."""
    found: Block = tabulated(rows, columns) if rows else Sentence(nothing)
    notes = [warned.message for warned in warnings]
    return [found, Notes(notes)] if notes else [found]


def _row(record: Record) -> dict[str, Any]:
    return {
        "id": record.id,
        "key": record.key,
        "outcome": record.outcome,
        "attempt": record.attempt,
        "device": record.device,
        "exit_code": record.exit_code,
        "signal": record.signal,
        "duration_ns": None if record.seconds is None else round(record.seconds * 1e9),
        "best": _best_of("name")(record),
        "time_ns": _best_of("time_ns")(record),
        "message": record.message,
    }


@dataclass(frozen=True, slots=True)
class Choice:
    """The fastest result of a key, or of a value of a tag."""

    key: str
    """The key, or the value of the tag."""
    name: str
    """The name of the result."""
    time_ns: float
    workspace_bytes: int | None
    id: str
    """Id of the job."""
    device: str | None
    unstable: bool
    """Whether repetitions within the job differ a lot."""


class Best(Row):
    """The fastest results."""

    best: list[Choice]


@click.command()
@answers("longpole.cli.bench.results:Best")
@click.argument("path", metavar="RESULTS")
@click.option(
    "--tag", metavar="TAG", help="Choose for each value of a tag instead of for each key."
)
@answer_options
def best(*, path: str, tag: str | None, options: Options) -> int:
    """Choose the fastest result of each key.

    Only successful runs count; times that are zero, negative, infinite or NaN are ignored. With
    --tag, jobs without that tag are left out and counted. The exit code is 4 if there is
    nothing to choose from.

    \b
    Examples:
      longpole bench best jobs.results.jsonl
      longpole bench best jobs.results.jsonl --tag shape --json
    """
    from longpole.bench import ResultsFile
    from longpole.bench.records.reading import best_of_final

    file = ResultsFile(path)
    groups = _Groups(tag)
    chosen = best_of_final(groups.having(_checked(file, file.final_records())), groups.of)
    warnings = [*_left_out_of_groups(tag, groups.n_left_out), *_damage_warnings(file)]
    choices = [
        _choice(name, record, record.best)
        for name, record in chosen.items()
        if record.best is not None
    ]
    document = Document(
        schema=_BEST,
        input={"path": path},
        status="ok" if choices else "abstained",
        abstains_because=[] if choices else [Abstention("no_result")],
        scope={"tag": tag},
        warnings=warnings,
        data=Best(best=choices),
        blocks=lambda: _table(choices, _CHOICES, _NOTHING, warnings),
        records=lambda: list(map(asdict, choices)),
    )
    exit_code = exit_codes.OK if choices else exit_codes.INCONCLUSIVE
    return options.emit((document, exit_code))


@dataclass(slots=True)
class _Groups:
    """Groups of competing results: by key, or by value of a tag."""

    tag: str | None
    n_left_out: int = 0

    def having(self, records: Iterator[Record]) -> Iterator[Record]:
        """Yield the records that belong to a group, and count the others."""
        for record in records:
            if self.tag is None or self.tag in record.tags:
                yield record
            else:
                self.n_left_out += 1

    def of(self, record: Record) -> str:
        return record.key if self.tag is None else str(record.tags[self.tag])


def _left_out_of_groups(tag: str | None, n_left_out: int) -> list[Warned]:
    if not n_left_out:
        return []
    message = f"{count(n_left_out, 'job')} without the tag {tag!r} left out"
    return [Warned("no_tag", n_left_out, message, "one of them may be the fastest")]


def _choice(key: str, record: Record, best: Measurement) -> Choice:
    found = (best.name, best.time_ns, best.workspace_bytes)
    return Choice(key, *found, record.id, record.device, record.unstable)


def _checked(file: ResultsFile, records: Iterator[Record]) -> Iterator[Record]:
    """Yield the records of a file; raise if it has none.

    Raises
    ------
    ResultsError
        The file contains no record of a run.
    """
    yield from records
    if not file.n_records:
        message = f"{file.path} contains no record of a run"
        raise ResultsError(message)


def _damage_warnings(file: ResultsFile) -> list[Warned]:
    """Return a warning about the rows of a file that are not records."""
    if not file.n_skipped:
        return []
    message = f"{count(file.n_skipped, 'row')} that are damaged or not records of a run"
    return [Warned("no_record", file.n_skipped, message, "their contents are not used")]
