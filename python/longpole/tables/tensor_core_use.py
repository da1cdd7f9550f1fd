"""Whether products run on tensor or matrix cores, by the names of their kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal

import polars as pl

from longpole.words.matrix_units import ON_TENSOR_CORES, ON_VECTOR_UNITS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from longpole.devices.peaks import Peaks

_UNIT_BYTES: Final = 16
"""Alignment that libraries need for tensor cores, of a row in bytes."""
_LEAST: Final = 8
_BYTES: Final = {"fp64": 8, "fp32": 4, "tf32": 4, "bf16": 2, "fp16": 2, "fp8": 1, "int8": 1}
_MATRIX: Final = 2

TensorCores = Literal["used", "possible"]


def tensor_core_use(rows: pl.DataFrame, peaks: Mapping[int | None, Peaks]) -> pl.Series:
    """Return the use of each row: `used`, `possible`, or null if it is unknown or not possible.

    Possible are products that use none by the name of their kernel, although the device has tensor
    cores for their type, and all sizes are multiples of 16 bytes and at least 8.
    """
    kernel, is_matrix = pl.col("kernel"), pl.col("is_matrix").fill_null(value=False)
    named = rows.select(
        pl.when(~is_matrix)
        .then(None)
        .when(kernel.str.contains(ON_TENSOR_CORES))
        .then(pl.lit("used"))
        .when(kernel.str.contains(ON_VECTOR_UNITS))
        .then(pl.lit("without"))
        .alias("use")
    )["use"]
    asked = rows.select("device", "precision", "shapes").iter_rows()
    uses = [
        use if use != "without" else "possible" if _is_eligible(peaks.get(device), *of) else None
        for use, (device, *of) in zip(named, asked, strict=True)
    ]
    return pl.Series("tensor_cores", uses, dtype=pl.String)


def _is_eligible(peaks: Peaks | None, dtype: str | None, shapes: list[Any] | None) -> bool:
    if peaks is None or dtype is None or dtype not in _BYTES:
        return False
    # The vector units are listed as matrix units for fp32, where those of NVIDIA round it to TF32.
    of_type = peaks.matrix.get("tf32" if dtype == "fp32" else dtype)
    if of_type is None or of_type <= peaks.vector.get(dtype, 0):
        return False
    sizes = [size for shape in shapes or () if len(shape or ()) >= _MATRIX for size in shape[-2:]]
    unit = max(_UNIT_BYTES // _BYTES[dtype], 1)
    return bool(sizes) and all(size >= _LEAST and size % unit == 0 for size in sizes)
