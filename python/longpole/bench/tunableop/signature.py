"""A GEMM in TunableOp's names: an operator signature and a parameter signature."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, Self, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["DTYPES", "UNKNOWN", "Gemm", "Key", "Size"]

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
