"""`longpole bench best`: choose the fastest result of each key."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Final

import click

from longpole.cli.answer import exit_codes
from longpole.cli.ask.options import Options, answer_options, answers
from longpole.data import Row
from longpole.report.blocks import Column, Notes, Sentence, Table
from longpole.report.document import Abstention, Document, Warned
from longpole.wording import count

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from longpole.bench import Measurement, Record
    from longpole.report.blocks import Block, Cell

__all__ = ["best"]

_SCHEMA: Final = "longpole.bench.best/1"
_COLUMNS: Final = (
    Column("key", "name"),
    Column("best", "name"),
    Column("time", "duration"),
    Column("workspace", "number"),
    Column("job"),
    Column("device"),
)
_NOTHING: Final = "no run gave a result that can be chosen"


@dataclass(frozen=True, slots=True)
class Choice:
    """The fastest result of a key, or of the value of a tag."""

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
@answers("longpole.cli.bench.best:Best")
@click.argument("path", metavar="RESULTS")
@click.option("--by", metavar="TAG", help="Choose for each value of a tag instead of for each key.")
@answer_options
def best(*, path: str, by: str | None, options: Options) -> int:
    """Choose the fastest result of each key.

    Only successful runs count; times that are zero, negative, infinite or NaN are ignored. With
    --by, jobs without that tag are left out and counted. The exit code is 4 if there is
    nothing to choose from.

    \b
    Examples:
      longpole bench best jobs.results.jsonl
      longpole bench best jobs.results.jsonl --by shape --json
    """
    from longpole.bench import ResultsFile
    from longpole.bench.records.choice import best_of_final
    from longpole.cli.ask.records import checked, damage_warnings

    file = ResultsFile(path)
    groups = _Groups(by)
    chosen = best_of_final(groups.having(checked(file, file.final_records())), groups.of)
    warnings = [*_warnings(by, groups.n_left_out), *damage_warnings(file)]
    choices = [
        _choice(name, record, record.best)
        for name, record in chosen.items()
        if record.best is not None
    ]
    document = Document(
        schema=_SCHEMA,
        input={"path": path},
        status="ok" if choices else "abstained",
        abstains_because=[] if choices else [Abstention("no_result")],
        scope={"by": by},
        warnings=warnings,
        data=Best(best=choices),
        blocks=lambda: _blocks(choices, warnings),
        records=lambda: list(map(asdict, choices)),
    )
    exit_code = exit_codes.OK if choices else exit_codes.INCONCLUSIVE
    return options.emit((document, exit_code))


@dataclass(slots=True)
class _Groups:
    """Groups of competing results: by key, or by value of the tag `by`."""

    by: str | None
    n_left_out: int = 0

    def having(self, records: Iterator[Record]) -> Iterator[Record]:
        """Yield the records that belong to a group, and count the others."""
        for record in records:
            if self.by is None or self.by in record.tags:
                yield record
            else:
                self.n_left_out += 1

    def of(self, record: Record) -> str:
        return record.key if self.by is None else str(record.tags[self.by])


def _warnings(by: str | None, n_left_out: int) -> list[Warned]:
    if not n_left_out:
        return []
    message = f"{count(n_left_out, 'job')} without the tag {by!r} left out"
    return [Warned("no_tag", n_left_out, message, "one of them may be the fastest")]


def _choice(key: str, record: Record, best: Measurement) -> Choice:
    found = (best.name, best.time_ns, best.workspace_bytes)
    return Choice(key, *found, record.id, record.device, record.unstable)


def _blocks(found: Sequence[Choice], warnings: Sequence[Warned]) -> list[Block]:
    best: Block = Table(_COLUMNS, list(map(_cells, found))) if found else Sentence(_NOTHING)
    notes = [warned.message for warned in warnings]
    return [best, Notes(notes)] if notes else [best]


def _cells(found: Choice) -> tuple[Cell, ...]:
    workspace = found.workspace_bytes
    return (
        found.key,
        found.name + (" (unstable)" if found.unstable else ""),
        found.time_ns,
        None if workspace is None else f"{workspace:,} B",
        found.id,
        found.device,
    )
