"""The limits of numbers on the command line: what is beyond them is refused before any work."""

from __future__ import annotations

from typing import Final

import click

__all__ = ["MOST", "MOST_DEVICES", "MOST_THREADS", "NUMBER"]

MOST: Final = 1_000_000_000
"""Largest number of things to list, run or skip."""

MOST_DEVICES: Final = 1_024
MOST_THREADS: Final = 1_024
_MOST_I64: Final = 2**63 - 1


class _Number(click.IntRange):
    """An integer of 64 bits, such as the number of a step, whose range `--help` does not show."""

    def _describe_range(self) -> str:
        return ""


NUMBER: Final = _Number(-_MOST_I64, _MOST_I64)
