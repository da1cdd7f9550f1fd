"""`longpole tunableop`: read, check, merge, split and tune PyTorch's TunableOp files."""

from __future__ import annotations

import click

from longpole.cli.ask.commands import Commands

__all__ = ["tunableop"]


class TunableOp(Commands):
    """The commands of `tunableop`."""

    folder = "longpole.cli.tunableop"
    unknown = "not a command of tunableop"


@click.group(cls=TunableOp)
def tunableop() -> None:
    """Read, check, merge, split and tune PyTorch's TunableOp files.

    TunableOp keeps the fastest GEMM kernel of each shape in CSV files. Only `tune` needs torch
    and a GPU. Existing files are replaced only with -f.
    """
