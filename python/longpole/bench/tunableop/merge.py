"""Merges results files without losing or mixing rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from io import BytesIO
from itertools import accumulate, chain, islice
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias, overload

from longpole.bench.tunableop.parts import outline_of, spans
from longpole.bench.tunableop.records import (
    OUTCOME,
    Line,
    Source,
    TunableFile,
    Validators,
    blocks_of,
    check_rows,
    in_order,
    others_of,
    read_all,
    render_validators,
    validators_of,
)
from longpole.errors import ResultsError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    import polars as pl

    from longpole.bench.tunableop.inputs import Key

Policy: TypeAlias = Literal["fastest", "first", "error"]

_CONFLICTS_AT_A_TIME: Final = 1_000
_POLICIES: Final = ("fastest", "first", "error")


class Found(NamedTuple):
    """A row, and its file."""

    file: TunableFile
    line: Line

    @property
    def place(self) -> str:
        """File and line, in the form of compilers."""
        return f"{self.file.name}:{self.line.line}"


class Conflict(NamedTuple):
    """Rows with different solutions for one GEMM, the chosen one first."""

    key: Key
    rows: tuple[Found, ...]

    def __str__(self) -> str:
        """Return the solutions and their places."""
        rows = ", ".join(f"{row.line.solution} ({row.place})" for row in self.rows)
        return f"{','.join(self.key)}: {rows}"


class Conflicts(Sequence[Conflict]):
    """GEMMs with different solutions, created on request because there may be many.

    Parameters
    ----------
    files
        The sources.
    rows
        Their rows of these GEMMs, with the number of the file, in the order of the GEMMs.
    """

    def __init__(self, files: Sequence[TunableFile], rows: pl.DataFrame) -> None:
        self._files = files
        self._rows = rows
        self._lengths = [length for length, _ in rows["gemm"].rle().struct.unnest().iter_rows()]

    def __len__(self) -> int:
        """Return the number of GEMMs."""
        return len(self._lengths)

    @overload
    def __getitem__(self, place: int) -> Conflict: ...
    @overload
    def __getitem__(self, place: slice) -> list[Conflict]: ...

    def __getitem__(self, place: int | slice) -> Conflict | list[Conflict]:
        """Return a conflict, or several."""
        if isinstance(place, slice):
            return [self[at] for at in range(*place.indices(len(self)))]
        at = range(len(self))[place]
        rows = self._rows.slice(self._begins[at], self._lengths[at])
        return next(self._of(rows, [rows.height]))

    def __iter__(self) -> Iterator[Conflict]:
        """Yield all conflicts; they are created a few at a time."""
        for first in range(0, len(self), _CONFLICTS_AT_A_TIME):
            lengths = self._lengths[first : first + _CONFLICTS_AT_A_TIME]
            yield from self._of(self._rows.slice(self._begins[first], sum(lengths)), lengths)

    @cached_property
    def _begins(self) -> list[int]:
        return [0, *accumulate(self._lengths)]

    def _of(self, rows: pl.DataFrame, lengths: Iterable[int]) -> Iterator[Conflict]:
        """Yield one conflict for each of `lengths`, from that number of consecutive rows."""
        found = self._found(rows)
        for length in lengths:
            part = tuple(islice(found, length))
            yield Conflict(part[0].line.key, part)

    def _found(self, rows: pl.DataFrame) -> Iterator[Found]:
        for number, *row in rows.select("file", *OUTCOME).iter_rows():
            yield Found(self._files[number], self._files[number].line_at(*row))


@dataclass(frozen=True, slots=True)
class Merged:
    """The results tuned under the same validators, in one file.

    `n_gemms` is the number of its rows. `n_dropped` rows were dropped for another row of the same
    GEMM; `conflicts` are the GEMMs for which the sources have different solutions.
    """

    file: TunableFile
    validators: Validators
    n_gemms: int
    n_dropped: int = 0
    conflicts: Sequence[Conflict] = ()


def merge(sources: Iterable[Source] | Source, *, conflict: Policy = "fastest") -> Merged:
    r"""Merge results files that were tuned under the same validators.

    The result is in canonical form: validators, then a row for each GEMM in the order of the
    signatures, then unparsed lines. With `fastest` it does not depend on the order of the sources,
    or on earlier merges.

    Parameters
    ----------
    sources
        Files, paths or bytes.
    conflict
        What to do if sources have different solutions for a GEMM. `fastest` chooses the shortest
        time; a missing, infinite or otherwise unusable time loses, and equal times are decided by
        the name of the solution. `first` chooses the first row, as torch does. `error` raises.

    Raises
    ------
    ResultsError
        The sources were tuned under different validators, one of them is not a TunableOp file, or
        they conflict and `conflict` is `error`.
    ValueError
        The policy does not exist.

    Examples
    --------
    >>> header = b"Validator,PT_VERSION,2.9.1\n"
    >>> slow = header + b"GemmTunableOp_float_NN,nn_1_2_3,Default,0.5\n"
    >>> fast = header + b"GemmTunableOp_float_NN,nn_1_2_3,Gemm_Rocblas_7,0.25\n"
    >>> merged = merge([slow, fast])
    >>> merged.file.results["solution"].to_list(), len(merged.conflicts)
    (['Gemm_Rocblas_7'], 1)
    """
    parts = merge_by_validators(sources, conflict=conflict)
    if len(parts) > 1:
        raise ResultsError(_difference([part.validators for part in parts]))
    return parts[0]


def merge_by_validators(
    sources: Iterable[Source] | Source, *, conflict: Policy = "fastest"
) -> list[Merged]:
    """Merge results files into one result for each set of validators, in the order of the sets.

    Lines that are not results are in every result that their file contributes to.

    Raises
    ------
    ResultsError
        A source is not a TunableOp file, or they conflict and `conflict` is `error`.
    ValueError
        The policy does not exist.
    """
    if conflict not in _POLICIES:
        message = f"conflict is one of {', '.join(_POLICIES)}, not {conflict!r}"
        raise ValueError(message)
    files = read_all(sources)
    check_rows(files)
    outline = outline_of([file.text for file in files], place=True)
    groups: dict[Validators, list[pl.DataFrame]] = {}
    others: dict[Validators, dict[bytes, None]] = {}
    for number, file in enumerate(files):
        of_file = outline.filter(outline["file"] == number)
        other_lines = dict.fromkeys(others_of(file.text, of_file))
        for validators, rows in _parts(file.text, of_file, other_lines):
            groups.setdefault(validators, []).append(rows)
            others.setdefault(validators, {}).update(other_lines)
    del outline
    parts = sorted(groups) or [()]
    return [
        _merge_rows(
            files, validators, groups.pop(validators, []), others.get(validators, ()), conflict
        )
        for validators in parts
    ]


def render_results(
    validators: Validators, rows: Mapping[Key, bytes], others: Iterable[bytes] = ()
) -> bytes:
    """Return validators, rows sorted by signature, and other lines in their order."""
    lines = [*(rows[key] for key in sorted(rows)), *others]
    return render_validators(validators) + b"".join(line + b"\n" for line in lines)


def _parts(
    text: bytes, outline: pl.DataFrame, others: Collection[bytes]
) -> Iterator[tuple[Validators, pl.DataFrame]]:
    """Return the rows by their validators; a file without rows may have validators or lines."""
    blocks = blocks_of(text, outline)
    yield from blocks
    validators = {} if blocks else dict(validators_of(text, outline))
    if not blocks and (validators or others):
        yield in_order(validators), outline.clear()


def _merge_rows(
    files: Sequence[TunableFile],
    validators: Validators,
    parts: list[pl.DataFrame],
    others: Iterable[bytes],
    policy: Policy,
) -> Merged:
    """Choose a row for each GEMM, and write them in the order of their signatures."""
    import polars as pl

    if not parts:
        return Merged(TunableFile(b""), validators, 0)
    rows = _in_order_of_choice(pl.concat(parts), policy)
    rows = rows.with_columns(is_first=_changes("gemm"))
    disagreeing = rows.filter(~pl.col("is_first") & _changes("solution"))["gemm"].unique()
    conflicts = Conflicts(files, rows.join(disagreeing.to_frame(), on="gemm", how="semi"))
    if conflicts and policy == "error":
        message = f"{len(conflicts)} GEMMs have different solutions, the first is {conflicts[0]}"
        raise ResultsError(message)
    chosen = rows.filter("is_first").select("file", "offset", "length")
    n_dropped = rows.height - chosen.height
    file = TunableFile(_rendered(files, validators, chosen, others))
    return Merged(file, validators, chosen.height, n_dropped, conflicts)


def _in_order_of_choice(rows: pl.DataFrame, policy: Policy) -> pl.DataFrame:
    """Sort rows by their GEMM, with the row to choose first."""
    import polars as pl

    if policy == "first":
        first_place = pl.col("place").min().over("gemm")
        return rows.sort(first_place, maintain_order=True)
    return rows.sort("place")


def _changes(column: str) -> pl.Expr:
    """Whether a value differs from that of the previous row."""
    import polars as pl

    return (pl.col(column) != pl.col(column).shift()).fill_null(value=True)


def _rendered(
    files: Sequence[TunableFile],
    validators: Validators,
    chosen: pl.DataFrame,
    others: Iterable[bytes],
) -> bytes:
    """Return validators, the chosen rows, and other lines in their order."""
    written = BytesIO()
    written.write(render_validators(validators))
    for line in chain(spans([file.text for file in files], chosen), others):
        written.write(line)
        written.write(b"\n")
    return written.getvalue()


def _difference(sets: list[Validators]) -> str:
    """Describe how the validators of the sources differ, and what to do."""
    values = [dict(validators) for validators in sets]
    keys = sorted({key for each in values for key in each})
    differing = [
        f"{key} ({', '.join(dict.fromkeys(each.get(key, 'missing') for each in values))})"
        for key in keys
        if len({each.get(key) for each in values}) > 1
    ]
    return (
        f"the results were tuned under {len(sets)} different sets of validators; they differ in "
        f"{', '.join(differing)}; torch would accept none but its own\n"
        "hint: merge each set into a file of its own with `--parts validators`, "
        "or `merge_by_validators` in Python"
    )
