"""The arguments of events that an answer reads."""

from __future__ import annotations

from typing import Final

from longpole.flops.inputs import INPUT_ARGUMENTS

ARGUMENTS: Final = (
    *INPUT_ARGUMENTS,
    *("bytes", "grid", "In msg nelems", "dtype"),
    *("Total Allocated", "Device Type", "Device Id"),
)
"""Inputs of operators, sizes of copies and kernels, allocated memory."""
