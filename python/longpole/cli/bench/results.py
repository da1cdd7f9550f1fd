"""The results of one file: the fastest of each key, or the outcome of each job."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from longpole.bench.records.record import Record
from longpole.cli.answer import exit_codes
from longpole.cli.answer.problems import require, usage_errors
from longpole.errors import ResultsError
from longpole.report.blocks import Column, Headline, Notes, Sentence, Value, tabulated
from longpole.report.document import Abstention, Document, Warned
from longpole.words.data import Row
from longpole.words.wording import count

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from longpole.bench import Measurement, ResultsFile
    from longpole.cli.answer.emit import Answer
    from longpole.report.blocks import Block

MOST_RECORDS: Final = 10_000
_SCHEMA: Final = "longpole.bench.compare/1"
_AT_A_TIME: Final = 10_000
"""Number of jobs that a condition is evaluated for at a time."""
_SAID_CHARACTERS: Final = 60
_NO_GROUPS: Final = frozenset({"time", "unit", "format"})
"""Printed values that every result has."""
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


_TYPES: Final[Mapping[str, type]] = {
    **dict.fromkeys(("id", "key", "outcome", "device", "best", "message"), str),
    **dict.fromkeys(("attempt", "exit_code", "signal", "duration_ns"), int),
    "time_ns": float,
}
"""Columns of a job, which conditions can use."""


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


class Results(Row):
    """The results of one file."""

    outcomes: dict[str, int]
    """Number of jobs, or of attempts, by outcome."""
    best: list[Choice]
    """The fastest result of each key or tag; empty if jobs are listed."""
    records: list[Record]
    """The jobs or attempts, with everything that was recorded; empty if results are chosen."""


def results_answer(path: str, *, by: str, where: str | None, top: int) -> Answer:
    """Return the fastest results by `key` or `tag=NAME`, or each `job` or `attempt`."""
    from longpole.bench import ResultsFile

    tag = by.removeprefix("tag=") if by.startswith("tag=") else None
    require(
        tag or by in {"key", "job", "attempt"}, f"--by {by}: give key, tag=NAME, job or attempt"
    )
    file = ResultsFile(path)
    records = file.records() if by == "attempt" else file.final_records()
    named = {} if where is None else _named_types(path)
    chosen = _Counted(_matching(_checked(file, records), where, named))
    if tag or by == "key":
        return _best(path, file, chosen, tag)
    return _listed(path, file, chosen, by, top)


class _Counted:
    """Records, counted by outcome as they are read."""

    def __init__(self, records: Iterator[Record]) -> None:
        self._records = records
        self.outcomes: Counter[str] = Counter()

    def __iter__(self) -> Iterator[Record]:
        for record in self._records:
            self.outcomes[str(record.outcome)] += 1
            yield record

    def said(self, path: str, noun: str) -> Headline:
        outcomes = ", ".join(f"{n:,} {name}" for name, n in sorted(self.outcomes.items()))
        number = count(self.outcomes.total(), noun)
        return Headline(f"{path}: {number}" + (f": {outcomes}" if outcomes else ""))


def _named_types(path: str) -> dict[str, type]:
    """Return the named groups of a `regex=` format in the best results of a file, with a type each.

    A group is a number if it is one in every result.
    """
    from longpole.bench import ResultsFile

    are_numbers: dict[str, bool] = {}
    for record in ResultsFile(path).records():
        for name, value in _named_groups(record).items():
            are_numbers[name] = are_numbers.get(name, True) and _number(value) is not None
    return {name: float if is_one else str for name, is_one in sorted(are_numbers.items())}


def _named_groups(record: Record) -> dict[str, str]:
    original = record.best.original if record.best is not None else {}
    return {name: value for name, value in original.items() if name not in _NO_GROUPS | {*_TYPES}}


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _matching(
    records: Iterator[Record], where: str | None, named: Mapping[str, Any]
) -> Iterator[Record]:
    """Yield the records that match a condition on their columns and named groups."""
    if where is None:
        yield from records
        return
    import polars as pl

    from longpole.rows.selection import matching

    while some := list(islice(records, _AT_A_TIME)):
        rows = pl.DataFrame([_row(record) for record in some], schema=_TYPES)
        groups = [_named_groups(record) for record in some]
        rows = rows.with_columns(
            pl.Series(name, [_typed(group.get(name), dtype) for group in groups], dtype)
            for name, dtype in named.items()
        )
        with usage_errors():
            found = matching(rows.with_row_index("place"), where)
        yield from (some[place] for place in found["place"])


def _typed(text: str | None, dtype: type) -> float | str | None:
    return text if text is None or dtype is str else _number(text)


def _listed(path: str, file: ResultsFile, records: _Counted, by: str, top: int) -> Answer:
    kept: list[Record] = []
    for record in records:
        if len(kept) < top:
            kept.append(record)
    n_found = records.outcomes.total()
    warnings = [*_damage_warnings(file), *_left_out(n_found - len(kept))]
    data = Results(outcomes=dict(sorted(records.outcomes.items())), best=[], records=kept)
    document = Document(
        schema=_SCHEMA,
        input={"path": path, "n_records": file.n_records},
        scope={"by": by},
        warnings=warnings,
        data=data,
        truncated={"records": {"shown": len(kept), "total": n_found}} if n_found > top else None,
        blocks=lambda: [
            records.said(path, by),
            *_table(kept, _RESULTS, "no such record", warnings),
        ],
        records=lambda: [_row(record) for record in kept],
    )
    return document, exit_codes.OK


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


def _best(path: str, file: ResultsFile, records: _Counted, tag: str | None) -> Answer:
    from longpole.bench.records.reading import best_of_final

    groups = _Groups(tag)
    chosen = best_of_final(groups.having(records), groups.of)
    warnings = [*_left_out_of_groups(tag, groups.n_left_out), *_damage_warnings(file)]
    choices = [
        _choice(name, record, record.best)
        for name, record in chosen.items()
        if record.best is not None
    ]
    data = Results(outcomes=dict(sorted(records.outcomes.items())), best=choices, records=[])
    document = Document(
        schema=_SCHEMA,
        input={"path": path, "n_records": file.n_records},
        status="ok" if choices else "abstained",
        abstains_because=[] if choices else [Abstention("no_result")],
        scope={"by": "key" if tag is None else f"tag={tag}"},
        warnings=warnings,
        data=data,
        blocks=lambda: [
            records.said(path, "job"),
            *_table(choices, _CHOICES, _NOTHING, warnings),
        ],
        records=lambda: list(map(asdict, choices)),
    )
    return document, exit_codes.OK if choices else exit_codes.INCONCLUSIVE


@dataclass(slots=True)
class _Groups:
    """Groups of competing results: by key, or by value of a tag."""

    tag: str | None
    n_left_out: int = 0

    def having(self, records: Iterable[Record]) -> Iterator[Record]:
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
