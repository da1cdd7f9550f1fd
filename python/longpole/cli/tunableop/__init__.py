"""`longpole tunableop`: read, check, merge, split and tune PyTorch's TunableOp files."""

from __future__ import annotations

from typing import ClassVar

import click

from longpole.cli.ask.commands import Commands

__all__ = ["tunableop"]


class TunableOp(Commands):
    """The commands of `tunableop`."""

    folder = "longpole.cli.tunableop"
    sections: ClassVar = {
        "Commands": {
            "check": "Find what makes torch ignore a file or lose rows of it.",
            "coverage": "Show how much of a trace, or of recorded GEMMs, is tuned.",
            "diff": "Compare the rows that torch takes from two files.",
            "env": "Print the variables for a phase, and warn about ineffective ones.",
            "files": "Show which files a process reads and writes.",
            "merge": "Merge results files.",
            "pin": "Make GEMMs use the default or a named solution.",
            "show": "List the rows of a file with their typed columns.",
            "speedup": "Show how much tuning gained over a baseline.",
            "split": "Split a file into parts of about the same cost.",
            "tune": "Tune recorded GEMMs on several GPUs.",
            "unpin": "Remove GEMMs from a file, to tune them again.",
            "untuned": "Merge recorded GEMMs without duplicates.",
        }
    }
    modules: ClassVar = {
        "diff": "show",
        "speedup": "show",
        "env": "check",
        "files": "check",
        "split": "merge",
        "untuned": "merge",
        "pin": "edit",
        "unpin": "edit",
    }
    unknown = "not a command of tunableop"


@click.group(cls=TunableOp)
def tunableop() -> None:
    """Read, check, merge, split and tune PyTorch's TunableOp files.

    TunableOp keeps the fastest GEMM kernel of each shape in CSV files. Only `tune` needs torch
    and a GPU. Existing files are replaced only with -f.

    \b
    Examples:
      longpole tunableop env collect
      longpole tunableop tune "tunableop_untuned?.csv" --devices 0,1,2,3
      longpole tunableop coverage trace.json.gz tunableop_results0.csv
    """
