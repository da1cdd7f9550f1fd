"""`longpole tunableop`: check, show, edit and tune PyTorch's TunableOp files."""

from __future__ import annotations

from typing import ClassVar

import click

from longpole.cli.ask.commands import Commands


class TunableOp(Commands):
    """The commands of `tunableop`."""

    folder = "longpole.cli.tunableop"
    sections: ClassVar = {
        "Commands": {
            "check": "Find what makes torch ignore a file, and which files a process uses.",
            "edit": "Merge files, change the solution of GEMMs, and split files.",
            "show": "List the rows of a file, what differs in another, and what is tuned.",
            "tune": "Tune recorded GEMMs on several GPUs.",
        }
    }
    unknown = "not a command of tunableop"


@click.group(cls=TunableOp)
def tunableop() -> None:
    """Check, show, edit and tune PyTorch's TunableOp files.

    TunableOp keeps the fastest GEMM kernel of each shape in CSV files. Only `tune` needs torch
    and a GPU. Existing files are replaced only with -f.

    \b
    Examples:
      longpole tunableop check --phase collect
      longpole tunableop tune "tunableop_untuned?.csv" --devices 0,1,2,3
      longpole tunableop show trace.json.gz tunableop_results0.csv
    """
