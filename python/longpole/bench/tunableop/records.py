"""A TunableOp file, read in pieces that together are the file byte for byte."""

from __future__ import annotations

import os
from functools import cached_property
from itertools import accumulate, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias

from longpole.bench.tunableop.parts import frames_of, outline_of
from longpole.errors import ResultsError
from longpole.files.opening import binary_kind, read_bytes
from longpole.files.writing import new_file
from longpole.words.data import Row

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    import polars as pl

    from longpole.bench.tunableop.inputs import Key

Validators: TypeAlias = tuple[tuple[str, str], ...]
"""Keys and values to which a file is tied, in file order."""

FAMILIES: Final = frozenset({"default", "rocblas", "hipblaslt", "cublaslt"})
"""Libraries whose solutions torch knows."""

OUTCOME: Final = ("line", "solution", "family", "time_ns", "offset", "length")
"""Columns of the outline that a line is made of."""

# The validator that torch checks first.
_FIRST_VALIDATOR: Final = "PT_VERSION"


class GemmRow(Row):
    """A row of a file: a result or an untuned GEMM, with its parsed signatures."""

    line: int
    """Line number from 1; rows on the same line share the number."""
    offset: int
    n_bytes: int
    """Length in bytes, including the line end."""
    ending: Literal["lf", "crlf", "nothing"]
    kind: Literal["result", "untuned"]
    reason: None
    """Null: only unparsed lines have a reason."""
    key: None
    """Null: only validators have a key."""
    value: None
    """Null: only validators have a value."""
    operator: str
    """Operator signature."""
    parameters: str
    """Parameter signature."""
    operation: str
    dtype_a: str
    dtype_b: str
    dtype_c: str
    layout: str
    transa: str
    transb: str
    wildcards: str | None
    """Names of the sizes that match any size."""
    tail: str | None
    """The text after the sizes."""
    bias: str | None
    solution: str | None
    family: str | None
    """Library of the solution."""
    time: str | None
    """Time as written, in ms."""
    blas_parameters: str | None
    """The field that `BLAS_LOG` appends."""
    m: int | None
    """Size as in BLAS."""
    n: int | None
    """Size as in BLAS."""
    k: int | None
    batch: int | None
    lda: int | None
    ldb: int | None
    ldc: int | None
    solution_index: int | None
    time_ns: float | None
    """Time in ns; null unless positive and finite."""
    status: Literal["ok", "zero", "negative", "inf", "nan", "missing"] | None
    """Status of the time."""
    matmul_m: int | None
    """Size as in torch."""
    matmul_n: int | None
    """Size as in torch."""


class Line(NamedTuple):
    """A result or an untuned GEMM: its line, and the values that decide which row is used."""

    line: int
    key: Key
    solution: str | None
    family: str | None
    time_ns: float | None
    text: bytes
    """The row without its line end."""

    @property
    def rank(self) -> tuple[bool, float, str, bytes]:
        """Sort key, smallest wins: rows with a time first, shorter ones first, then by name."""
        return self.time_ns is None, self.time_ns or 0.0, self.solution or "", self.text


class Block(NamedTuple):
    """Validators, and the results tuned under them."""

    validators: Validators
    results: list[Line]


class TunableFile:
    r"""A file of results or of untuned GEMMs; returned by `read`.

    Parameters
    ----------
    text
        The bytes of the file.
    path
        Path of the file, if any.

    Examples
    --------
    >>> file = TunableFile(b"Validator,PT_VERSION,2.9.1\n"
    ...                    b"GemmTunableOp_Half_NN,nn_64_32_16,Gemm_Hipblaslt_7,0.0125\n")
    >>> file.validators
    {'PT_VERSION': '2.9.1'}
    >>> file.results.select("line", "m", "n", "k", "solution_index", "time_ns").row(0)
    (2, 64, 32, 16, 7, 12500.0)
    """

    def __init__(self, text: bytes, path: Path | None = None) -> None:
        self.text = text
        self.path = path

    @property
    def name(self) -> str:
        """The path, or `-` without one."""
        return "-" if self.path is None else os.fspath(self.path)

    @cached_property
    def pieces(self) -> pl.DataFrame:
        """Every piece of the file, in order; together they have all its bytes.

        The columns are those of `GemmRow`. `kind` may also be `validator` (with `key` and `value`),
        `blank`, `byte_order_mark`, or `unknown` (`reason` explains it).
        """
        import polars as pl

        return pl.concat(self.parts())

    def parts(self, columns: Collection[str] | None = None) -> Iterator[pl.DataFrame]:
        """Read the pieces again, part by part, with some or all columns."""
        return frames_of(self.text, columns)

    @cached_property
    def outline(self) -> pl.DataFrame:
        """The columns that are needed to choose between rows, in a fraction of the memory."""
        return outline_of([self.text])

    def count(self, kind: str) -> int:
        """Return the number of pieces of a kind."""
        return int((self.outline["kind"] == kind).sum())

    @cached_property
    def results(self) -> pl.DataFrame:
        """The tuned GEMMs: the pieces of kind `result`."""
        return self._of_kind("result")

    @cached_property
    def untuned(self) -> pl.DataFrame:
        """The recorded GEMMs: the pieces of kind `untuned`."""
        return self._of_kind("untuned")

    @cached_property
    def validators(self) -> dict[str, str]:
        """Validators of the file. Of a repeated key, torch uses the last value."""
        return dict(validators_of(self.text, self.outline))

    @cached_property
    def lines(self) -> list[Line]:
        """The results and the untuned GEMMs, in file order."""
        return self.lines_of(_of_kinds(self.outline, "result", "untuned"))

    @cached_property
    def blocks(self) -> list[Block]:
        """The results grouped by validators.

        Validators count anywhere in the file, as in torch. A file written by torch has one block.
        Files concatenated by hand have several: validators that repeat a key after rows begin the
        next block. Only a block whose validators differ from the previous one may be without
        results.
        """
        return [
            Block(validators, self.lines_of(results))
            for validators, results in blocks_of(self.text, self.outline)
        ]

    @property
    def others(self) -> list[bytes]:
        """Return the lines other than validators and results: unparsed ones and untuned GEMMs."""
        return others_of(self.text, self.outline)

    def lines_of(self, rows: pl.DataFrame) -> list[Line]:
        """Return rows of the outline as lines."""
        return [self.line_at(*row) for row in rows.select(OUTCOME).iter_rows()]

    def line_at(self, *outcome: Any) -> Line:
        """Return a row of the outline, given its columns `OUTCOME`, as a line."""
        line, solution, family, time_ns, offset, length = outcome
        text = self.text[offset : offset + length]
        operator, parameters, *rest = text.decode().split(",", 3)
        name = None if solution is None else rest[0]
        return Line(line, (operator, parameters), name, family, time_ns, text)

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield the pieces."""
        return self.pieces.iter_rows(named=True)

    def line(self, row: Mapping[str, Any]) -> Line:
        """Return a piece as a line, with the values that decide between rows of the same GEMM."""
        return Line(
            row["line"],
            (row["operator"], row["parameters"]),
            row["solution"],
            row["family"],
            row["time_ns"],
            self.bytes_of(row),
        )

    def bytes_of(self, row: Mapping[str, Any]) -> bytes:
        """Return the bytes of a piece, without its line end."""
        text = self.piece(row)
        return text.removesuffix(b"\n").removesuffix(b"\r") if row["ending"] != "nothing" else text

    def piece(self, row: Mapping[str, Any]) -> bytes:
        """Return the bytes of a piece with its line end."""
        return self.text[row["offset"] : row["offset"] + row["n_bytes"]]

    def render(self) -> bytes:
        """Return the bytes of the file: those that were read."""
        return self.text

    def write(
        self,
        path: str | os.PathLike[str],
        *,
        force: bool = False,
        inputs: Sequence[str | os.PathLike[str]] = (),
    ) -> None:
        """Write the file, completely or not at all.

        Parameters
        ----------
        path
            The file to write.
        force
            Replace the file if it exists.
        inputs
            Files that are never replaced, in addition to the file it was read from.

        Raises
        ------
        FileExistsError
            The file exists and `force` is not given, or it is an input.
        """
        kept = [Path(each) for each in inputs] + ([self.path] if self.path else [])
        with new_file(Path(path), force=force, inputs=kept) as unfinished:
            unfinished.write_bytes(self.render())

    def __repr__(self) -> str:
        n_results, n_untuned = self.count("result"), self.count("untuned")
        return f"<longpole.TunableFile {self.name}: {n_results} results, {n_untuned} untuned>"

    def _of_kind(self, kind: str) -> pl.DataFrame:
        import polars as pl

        return self.pieces.filter(pl.col("kind") == kind)


Source: TypeAlias = TunableFile | str | os.PathLike[str] | bytes
"""A file that was read, its path, or its bytes."""


def read(source: Source) -> TunableFile:
    """Read a TunableOp file, of results or of untuned GEMMs, regardless of its contents.

    What torch cannot parse is kept with the reason, in `TunableFile.pieces`; `check` describes the
    effect.

    Parameters
    ----------
    source
        The path, or the bytes of the file.
    """
    if isinstance(source, TunableFile):
        return source
    if isinstance(source, bytes):
        return TunableFile(source)
    path = Path(source)
    return TunableFile(read_bytes(path), path)


def read_all(sources: object) -> list[TunableFile]:
    """Read one or more sources."""
    if isinstance(sources, TunableFile | str | os.PathLike | bytes):
        return [read(sources)]
    return [read(source) for source in sources]  # type: ignore[attr-defined]


def check_rows(files: Sequence[TunableFile]) -> None:
    """Raise for files with text but without rows or validators of TunableOp.

    Raises
    ------
    ResultsError
        A file has only other text.
    """
    for file in files:
        if file.text and not _holds(file, "validator", "result", "untuned"):
            raise ResultsError(_no_rows(file))


def require_rows(files: Sequence[TunableFile]) -> None:
    """Raise if none of the files has a result or an untuned GEMM.

    Raises
    ------
    ResultsError
        No file has a row, or `check_rows` raises.
    """
    check_rows(files)
    if not any(_holds(file, "result", "untuned") for file in files):
        message = (
            f"{', '.join(file.name for file in files)}: no TunableOp rows\n"
            "hint: torch writes a file without rows if no GEMM ran while TunableOp was on; set "
            "PYTORCH_TUNABLEOP_ENABLED=1 before torch is imported"
        )
        raise ResultsError(message)


def _holds(file: TunableFile, *kinds: str) -> bool:
    """Whether a file has a piece of one of these kinds; stops reading at the first."""
    return any(not _of_kinds(part, *kinds).is_empty() for part in file.parts(()))


def others_of(text: bytes, outline: pl.DataFrame) -> list[bytes]:
    """Return the lines of a file other than validators and results."""
    places = _of_kinds(outline, "unknown", "untuned").select("offset", "length").iter_rows()
    return [text[offset : offset + length] for offset, length in places]


def validators_of(text: bytes, outline: pl.DataFrame) -> list[tuple[str, str]]:
    """Return the key and the value of each validator of a file, in file order."""
    places = _of_kinds(outline, "validator").select("offset", "length").iter_rows()
    lines = (text[offset : offset + length].decode().split(",") for offset, length in places)
    return [(key, value) for _, key, value, *_ in lines]


def blocks_of(text: bytes, outline: pl.DataFrame) -> list[tuple[Validators, pl.DataFrame]]:
    """Return the validators of each block of a file, and its results as rows of the outline."""
    rows, found = _of_kinds(outline, "validator", "result"), iter(validators_of(text, outline))
    blocks: list[tuple[dict[str, str], int]] = [({}, 0)]
    for length, kind in rows["kind"].rle().struct.unnest().iter_rows():
        given, n_results = blocks[-1]
        if kind == "result":
            blocks[-1] = given, n_results + length
            continue
        validators = dict(islice(found, length))
        if n_results and not given.keys().isdisjoint(validators):
            blocks.append(({}, 0))
        blocks[-1][0].update(validators)
    last, n_results = blocks[-1]
    if not n_results and (len(blocks) == 1 or last.items() <= blocks[-2][0].items()):
        blocks.pop()
    results, ends = _of_kinds(outline, "result"), accumulate(n for _, n in blocks)
    return [
        (in_order(validators), results.slice(end - n_results, n_results))
        for (validators, n_results), end in zip(blocks, ends, strict=True)
    ]


def _of_kinds(outline: pl.DataFrame, *kinds: str) -> pl.DataFrame:
    import polars as pl

    return outline.filter(pl.any_horizontal(pl.col("kind") == kind for kind in kinds))


def check_kinds(files: Sequence[TunableFile]) -> None:
    """Raise for files that are evidently of another kind: compressed, JSON or a database.

    Raises
    ------
    ResultsError
        A file is of another kind.
    """
    for file in files:
        if _other_kind(file.text) is not None:
            raise ResultsError(_no_rows(file))


def _other_kind(text: bytes) -> str | None:
    """Return what a file is, by its first bytes; None if it may be a TunableOp file."""
    return binary_kind(text) or ("JSON" if text[:64].lstrip()[:1] in {b"{", b"["} else None)


def _no_rows(file: TunableFile) -> str:
    what = _other_kind(file.text)
    if what is not None:
        message = f"{file.name} is not a TunableOp file: it is {what}"
        return f"{message}\nhint: if it is a trace, ask `longpole summary {file.name}`"
    is_utf16 = file.text.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" in file.text[:4096]
    hint = (
        "it looks like UTF-16: save it as UTF-8 without a byte order mark"
        if is_utf16
        else "give a file that torch wrote, such as tunableop_results0.csv"
    )
    return f"{file.name} is not a TunableOp file: none of its lines is a row\nhint: {hint}"


def key_of(row: Mapping[str, Any]) -> Key | None:
    """Return the key of a piece's GEMM; None without a GEMM."""
    has_gemm = row["kind"] in {"result", "untuned"}
    return (row["operator"], row["parameters"]) if has_gemm else None


def render_validators(validators: Validators) -> bytes:
    """Format validators as torch does, one per line."""
    return b"".join(f"Validator,{key},{value}\n".encode() for key, value in validators)


def in_order(validators: Mapping[str, str]) -> Validators:
    """Sort validators: the version of torch first, then by name."""
    return tuple(sorted(validators.items(), key=lambda each: (each[0] != _FIRST_VALIDATOR, each)))
