"""The arguments of an operator, as recorded, and how torch passes a matrix product to BLAS.

torch passes a product to BLAS without copying if possible: a row-major matrix is a transposed
column-major one. So sizes are swapped, and the strides determine whether a matrix counts as
transposed. This repeats the rules of torch for a row-major result, such as every new tensor.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, Self, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

Size: TypeAlias = int | Literal["*"]
"""A size, or `*` for any size (torch 2.15)."""

Key: TypeAlias = tuple[str, str]
"""Operator signature and parameter signature: the key of a tuned row."""

UNKNOWN: Final = "?"
"""Represents a `transa` or `transb` that was not recorded; no file has it."""

SIZES: Final = ("m", "n", "k", "batch", "lda", "ldb", "ldc")

_LETTERS: Final = {"n": "N", UNKNOWN: UNKNOWN}

# Names of torch's types, in profilers and in TunableOp.
DTYPES: Final = {
    "float": "float",
    "double": "double",
    "c10::Half": "Half",
    "c10::BFloat16": "BFloat16",
    "c10::complex<float>": "c10::complex<float>",
    "c10::complex<double>": "c10::complex<double>",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Gemm:
    """One matrix product, with the sizes passed to BLAS.

    BLAS uses column-major order: for `torch.matmul(A, B)` with `A[M, K]` and `B[K, N]`, `m` is N
    and `n` is M, and `transa` refers to B. `matmul_shape` has the sizes in torch's order.

    Parameters
    ----------
    operation
        `Gemm`, `GemmAndBias`, `GemmStridedBatched` or `ScaledGemm`.
    dtypes
        Types of A, B and the result. All but `ScaledGemm` have one.
    transa, transb
        `n`, `t` or `c`, or `?` if unknown.
    m, n, k, batch
        The sizes; without `batch` for a single product.
    leading
        `lda`, `ldb` and `ldc`; None before torch 2.7.
    tail
        The part after the sizes, such as `_rw_1_bias_None`.

    Examples
    --------
    >>> linear = Gemm(operation="Gemm", dtypes=("float",), transa="t", transb="n",
    ...               m=768, n=36, k=128, leading=(128, 128, 768))
    >>> linear.key
    ('GemmTunableOp_float_TN', 'tn_768_36_128_ld_128_128_768')
    >>> linear.matmul_shape, linear.flops
    ((36, 768, 128), 7077888)
    """

    operation: str
    dtypes: tuple[str, ...]
    transa: str
    transb: str
    m: Size
    n: Size
    k: Size
    batch: Size | None = None
    leading: tuple[Size, Size, Size] | None = None
    tail: str = ""

    @property
    def operator(self) -> str:
        """Operator signature."""
        layout = "".join(_LETTERS.get(trans, "T") for trans in (self.transa, self.transb))
        return "_".join([f"{self.operation}TunableOp", *self.dtypes, layout])

    @property
    def parameters(self) -> str:
        """Parameter signature."""
        sizes = f"{self.transa}{self.transb}_{self.m}_{self.n}_{self.k}"
        batch = "" if self.batch is None else f"_B_{self.batch}"
        leading = "" if self.leading is None else "_ld_{}_{}_{}".format(*self.leading)
        return f"{sizes}{batch}{leading}{self.tail}"

    @property
    def key(self) -> Key:
        """Key of a tuned row."""
        return self.operator, self.parameters

    @property
    def matmul_shape(self) -> tuple[Size, Size, Size]:
        """M, N and K of `A[M, K] @ B[K, N]`, in torch's order."""
        return self.n, self.m, self.k

    @property
    def flops(self) -> int | None:
        """Number of floating-point operations, 2 m n k for each product; None with a wildcard."""
        flops = 2
        for size in (self.m, self.n, self.k, 1 if self.batch is None else self.batch):
            if not isinstance(size, int):
                return None
            flops *= size
        return flops

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Self:
        """Create a GEMM from a row of `TunableFile.pieces`."""
        wildcards = (row["wildcards"] or "").split()
        sizes: dict[str, Any] = {name: "*" if name in wildcards else row[name] for name in SIZES}
        leading: Any = tuple(sizes.pop(name) for name in SIZES[4:])
        dtypes = tuple(row[name] for name in ("dtype_a", "dtype_b", "dtype_c"))
        return cls(
            operation=row["operation"],
            dtypes=dtypes if row["operation"] == "ScaledGemm" else dtypes[:1],
            transa=row["transa"],
            transb=row["transb"],
            leading=None if leading[0] is None else leading,
            tail=row["tail"] or "",
            **sizes,
        )


class Argument(NamedTuple):
    """An argument of an operator.

    Parameters
    ----------
    shape
        The sizes; None if the argument is not a tensor.
    strides
        None if not recorded.
    dtype
        The type in torch's names, such as `c10::Half`; empty for None.
    value
        A number, flag or list as a string: `15`, `True`, `[0, 0]`; None if not recorded.
    """

    shape: tuple[int, ...] | None
    strides: tuple[int, ...] | None
    dtype: str
    value: str | None = None


def recorded(
    shapes: str | None, strides: str | None, types: str | None, values: str | None = None
) -> list[Argument]:
    """Parse arguments from the JSON lists of a profiler; empty if not recorded.

    Examples
    --------
    >>> recorded("[[2, 3], []]", "[[3, 1], []]", '["c10::Half", "Scalar"]', '["", "15"]')[0]
    Argument(shape=(2, 3), strides=(3, 1), dtype='c10::Half', value='')
    """
    sizes, dtypes = _list(shapes), _list(types)
    if len(sizes) != len(dtypes):
        return []
    steps, texts = (_padded(_list(text), len(sizes)) for text in (strides, values))
    return [
        Argument(_sizes(size), _strides(size, step), _dtype(str(dtype)), _text(text))
        for size, step, dtype, text in zip(sizes, steps, dtypes, texts, strict=True)
    ]


def _list(text: str | None) -> list[Any]:
    try:
        value = json.loads(text or "[]")
    except (ValueError, RecursionError):
        return []
    return value if isinstance(value, list) else []


def _padded(values: list[Any], length: int) -> list[Any]:
    """Return the values, or a list of None if the length differs."""
    return values if len(values) == length else [None] * length


def _is_sizes(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(size, int) for size in value)


def _sizes(value: Any) -> tuple[int, ...] | None:
    return tuple(value) if _is_sizes(value) else None


def _strides(shape: Any, value: Any) -> tuple[int, ...] | None:
    is_known = _is_sizes(shape) and _is_sizes(value) and len(value) == len(shape)
    return tuple(value) if is_known else None


def _dtype(name: str) -> str:
    """Parse the type of a tensor in the form of execution traces, `Tensor(float)`."""
    if name in {"None", "Tensor(nullptr (uninitialized))"}:
        return ""
    return name.removeprefix("Tensor(").removesuffix(")") if name.startswith("Tensor(") else name


def _text(value: Any) -> str | None:
    """Format a value of an execution trace as a string, the form that profilers record."""
    if value is None or isinstance(value, str):
        return "" if value == "<None>" else value
    return str(value)


_SINGLE = 2  # dimensions of the factors of a single product


class _Factor(NamedTuple):
    """A factor as passed to BLAS."""

    trans: str
    leading: int | None


def multiplies(left: Argument, right: Argument) -> bool:
    """Whether two arguments are matrices, or batches of them, with compatible sizes."""
    a, b = left.shape or (), right.shape or ()
    return len(a) == len(b) >= _SINGLE and a[-1] == b[-2]


def gemm_of(operation: str, dtypes: tuple[str, ...], left: Argument, right: Argument) -> Gemm:
    """Swap the factors: the transposed result is the product of the transposed factors.

    Without strides there is no `leading`, and `transa` and `transb` are `?`.
    """
    left_shape, right_shape = left.shape or (), right.shape or ()
    rows, inner, columns = left_shape[-2], left_shape[-1], right_shape[-1]
    is_batched = len(left_shape) > _SINGLE
    # A result with one column is both row-major and column-major, and torch's rule for batches
    # chooses the latter: nothing is swapped.
    is_swapped = not (is_batched and columns == 1)
    a, b = (right, left) if is_swapped else (left, right)
    factor_a, factor_b = _factor(a, is_swapped=is_swapped), _factor(b, is_swapped=is_swapped)
    m, n = (columns, rows) if is_swapped else (rows, columns)
    known = factor_a.leading is not None and factor_b.leading is not None
    return Gemm(
        operation=operation,
        dtypes=dtypes,
        transa=factor_a.trans,
        transb=factor_b.trans,
        m=m,
        n=n,
        k=inner,
        batch=left_shape[0] if is_batched else None,
        leading=(factor_a.leading or 0, factor_b.leading or 0, m if is_swapped else 1)
        if known
        else None,
    )


def _factor(tensor: Argument, *, is_swapped: bool) -> _Factor:
    """Whether BLAS has to transpose a factor, and the distance between its columns."""
    shape = tensor.shape or ()
    if tensor.strides is None:
        return _Factor(UNKNOWN, None)
    rows, columns = shape[-2:]
    row_stride, column_stride = tensor.strides[-2:]
    by_rows = column_stride == 1 and row_stride >= max(1, columns)
    by_columns = row_stride == 1 and column_stride >= max(1, rows)
    if len(shape) == _SINGLE and is_contiguous(tensor):
        by_columns = False
    if by_columns and not (by_rows and is_swapped):
        return _Factor("t" if is_swapped else "n", column_stride)
    # Any other layout is first copied to row-major.
    leading = row_stride if by_rows or is_contiguous(tensor) else columns
    return _Factor("n" if is_swapped else "t", leading)


def is_contiguous(tensor: Argument) -> bool:
    """Whether it is row-major without gaps; a dimension of size one may have any stride."""
    expected = 1
    sizes, strides = tensor.shape or (), tensor.strides or ()
    for size, stride in zip(reversed(sizes), reversed(strides), strict=True):
        if size != 1:
            if stride != expected:
                return False
            expected *= size
    return True
