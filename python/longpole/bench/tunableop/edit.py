"""Edits single rows of a file; all other bytes are unchanged."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from longpole.bench.tunableop.records import Source, TunableFile, key_of, read
from longpole.errors import ResultsError

if TYPE_CHECKING:
    from collections.abc import Collection

    from longpole.bench.tunableop.signature import Key

__all__ = ["DEFAULT", "pin", "select", "unpin"]

DEFAULT: Final = "Default"
"""The solution that torch chooses without tuning."""


def pin(source: Source, keys: Collection[Key], solution: str = DEFAULT) -> TunableFile:
    r"""Make GEMMs use a given solution, regardless of the measurements.

    The rows lose their time, which was that of another solution: torch accepts a row without a
    time, and a merge by `fastest` prefers any row that has one.

    Parameters
    ----------
    source
        A results file.
    keys
        The GEMMs, by their signatures; `select` finds them.
    solution
        Name of the solution; `Default` is torch's choice without tuning.

    Raises
    ------
    ResultsError
        The file has no row for a GEMM, or the solution name is invalid.

    Examples
    --------
    >>> file = b"GemmTunableOp_float_NN,nn_1_2_3,Gemm_Rocblas_7,0.25\n"
    >>> pin(file, [("GemmTunableOp_float_NN", "nn_1_2_3")]).text
    b'GemmTunableOp_float_NN,nn_1_2_3,Default\n'
    """
    _check_name(solution)
    file, wanted = read(source), set(keys)
    _refuse_missing(file, wanted)

    def pinned(row: dict[str, Any]) -> bytes:
        fields = [row["operator"], row["parameters"], solution, row["blas_parameters"]]
        return ",".join(field for field in fields if field).encode()

    return _rewritten(file, wanted, pinned)


def unpin(source: Source, keys: Collection[Key]) -> TunableFile:
    r"""Remove GEMMs from a file, so that torch tunes or records them again.

    Raises
    ------
    ResultsError
        The file has no row for a GEMM.

    Examples
    --------
    >>> file = b"GemmTunableOp_float_NN,nn_1_2_3,Default\n"
    >>> unpin(file, [("GemmTunableOp_float_NN", "nn_1_2_3")]).text
    b''
    """
    file, wanted = read(source), set(keys)
    _refuse_missing(file, wanted)
    return _rewritten(file, wanted, lambda _: None)


def select(
    source: Source,
    *,
    operator: str | None = None,
    parameters: str | None = None,
    solution: str | None = None,
) -> list[Key]:
    """Find distinct GEMMs of a results file, in file order.

    Parameters
    ----------
    source
        A results file.
    operator, parameters, solution
        Regular expressions, found anywhere in the field; all given ones must match.

    Raises
    ------
    ValueError
        An expression is invalid.
    """
    import re

    given = {"operator": operator, "parameters": parameters, "solution": solution}
    try:
        patterns = {name: re.compile(text) for name, text in given.items() if text is not None}
    except re.error as error:
        message = f"invalid regular expression: {error}"
        raise ValueError(message) from error
    rows = read(source).results.iter_rows(named=True)
    found = (
        (row["operator"], row["parameters"])
        for row in rows
        if all(pattern.search(row[name]) for name, pattern in patterns.items())
    )
    return list(dict.fromkeys(found))


def _rewritten(file: TunableFile, keys: set[Key], change: Any) -> TunableFile:
    """Replace the results of `keys` by the result of `change`; None removes the line."""
    pieces = []
    for row in file.rows():
        whole = file.piece(row)
        if row["kind"] == "result" and key_of(row) in keys:
            bare = file.bytes_of(row)
            changed = change(row)
            whole = b"" if changed is None else changed + whole[len(bare) :]
        pieces.append(whole)
    return TunableFile(b"".join(pieces), file.path)


def _refuse_missing(file: TunableFile, keys: set[Key]) -> None:
    missing = keys - {line.key for line in file.lines if line.solution is not None}
    if missing:
        message = f"{file.name} has no result for {','.join(min(missing))}"
        raise ResultsError(message)


def _check_name(solution: str) -> None:
    if not solution or "," in solution or any(map(str.isspace, solution)):
        message = f"{solution!r} is not a solution name: it is empty or contains a comma or a blank"
        raise ResultsError(message)
