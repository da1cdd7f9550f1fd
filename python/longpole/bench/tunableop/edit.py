"""Edits single rows of a file; all other bytes are unchanged."""

from __future__ import annotations

import sys
from io import BytesIO
from typing import TYPE_CHECKING, Final

from longpole.bench.tunableop.parts import width
from longpole.bench.tunableop.records import Source, TunableFile, read
from longpole.errors import ResultsError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from longpole.bench.tunableop.inputs import Key

DEFAULT: Final = "Default"
"""The solution that torch chooses without tuning."""

_BLAS_LOG: Final = "BLAS_PARAMS: - {"


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

    def pinned(row: str) -> str:
        signatures = ",".join(row.split(",", 2)[:2])
        return ",".join(filter(None, (signatures, solution, _blas_log(row))))

    return _rewritten(read(source), set(keys), pinned)


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
    return _rewritten(read(source), set(keys), None)


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
    found: dict[Key, None] = {}
    for part in read(source).parts(patterns.keys() | {"operator", "parameters"}):
        for row in part.filter(part["kind"] == "result").iter_rows(named=True):
            if all(pattern.search(row[name]) for name, pattern in patterns.items()):
                found.setdefault((sys.intern(row["operator"]), row["parameters"]))
    return list(found)


def _rewritten(
    file: TunableFile, keys: set[Key], change: Callable[[str], str] | None
) -> TunableFile:
    """Replace the text of the results of `keys` by the result of `change`, or remove them."""
    kept, end = BytesIO(), 0
    seen: set[Key] = set()
    rows = file.outline.filter(file.outline["kind"] == "result")
    for offset, length, ending in rows.select("offset", "length", "ending").iter_rows():
        row = file.text[offset : offset + length].decode()
        operator, parameters, _ = row.split(",", 2)
        key = (operator, parameters)
        if key not in keys:
            continue
        seen.add(key)
        kept.write(file.text[end:offset])
        end = offset + length
        if change is None:
            end += width(ending)
        else:
            kept.write(change(row).encode())
    _refuse_missing(file, keys - seen)
    kept.write(file.text[end:])
    return TunableFile(kept.getvalue(), file.path)


def _blas_log(row: str) -> str:
    """Return the field that `BLAS_LOG` appends, or an empty string."""
    return "".join(row.partition(_BLAS_LOG)[1:])


def _refuse_missing(file: TunableFile, missing: set[Key]) -> None:
    if missing:
        message = f"{file.name} has no result for {','.join(min(missing))}"
        raise ResultsError(message)


def _check_name(solution: str) -> None:
    if not solution or "," in solution or any(map(str.isspace, solution)):
        message = f"{solution!r} is not a solution name: it is empty or contains a comma or a blank"
        raise ResultsError(message)
