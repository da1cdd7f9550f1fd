"""Merges results files without losing or mixing rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

from longpole.bench.tunableop.records import (
    Line,
    Source,
    TunableFile,
    Validators,
    check_rows,
    in_order,
    read_all,
    render_validators,
)
from longpole.errors import ResultsError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from longpole.bench.tunableop.signature import Key

__all__ = ["Conflict", "Merged", "Policy", "merge", "merge_by_validators", "render_results"]

Policy: TypeAlias = Literal["fastest", "first", "error"]

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


@dataclass(frozen=True, slots=True)
class Merged:
    """The results tuned under the same validators, in one file.

    `n_dropped` rows were dropped for another row of the same GEMM; `conflicts` are the GEMMs for
    which the sources have different solutions.
    """

    file: TunableFile
    validators: Validators
    n_dropped: int = 0
    conflicts: list[Conflict] = field(default_factory=list)


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
    groups: dict[Validators, list[Found]] = {}
    others: dict[Validators, dict[bytes, None]] = {}
    for file in files:
        for validators, found in _parts(file):
            groups.setdefault(validators, []).extend(found)
            others.setdefault(validators, {}).update(dict.fromkeys(file.others))
    parts = sorted(groups.items()) or [((), [])]
    return [
        _merge_rows(validators, found, others.get(validators, {}), conflict)
        for validators, found in parts
    ]


def render_results(
    validators: Validators, rows: Mapping[Key, bytes], others: Iterable[bytes] = ()
) -> bytes:
    """Return validators, rows sorted by signature, and other lines in their order."""
    lines = [*(rows[key] for key in sorted(rows)), *others]
    return render_validators(validators) + b"".join(line + b"\n" for line in lines)


def _parts(file: TunableFile) -> Iterator[tuple[Validators, list[Found]]]:
    """Yield the rows by their validators; a file without rows still has validators or lines."""
    for validators, results in file.blocks:
        yield validators, [Found(file, line) for line in results]
    if not file.blocks and (file.validators or file.others):
        yield in_order(file.validators), []


def _merge_rows(
    validators: Validators, found: list[Found], others: Iterable[bytes], policy: Policy
) -> Merged:
    by_key: dict[Key, list[Found]] = {}
    for row in found:
        by_key.setdefault(row.line.key, []).append(row)
    if policy != "first":
        by_key = {key: sorted(rows, key=lambda row: row.line.rank) for key, rows in by_key.items()}
    conflicts = [
        Conflict(key, tuple(rows))
        for key, rows in sorted(by_key.items())
        if len({row.line.solution for row in rows}) > 1
    ]
    if conflicts and policy == "error":
        message = f"{len(conflicts)} GEMMs have different solutions, the first is {conflicts[0]}"
        raise ResultsError(message)
    chosen = {key: rows[0].line.text for key, rows in by_key.items()}
    text = render_results(validators, chosen, others)
    return Merged(TunableFile(text), validators, len(found) - len(by_key), conflicts)


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
        "hint: merge each set into a file of its own with `--split-validators`, "
        "or `merge_by_validators` in Python"
    )
