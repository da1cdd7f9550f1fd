"""`longpole tunableop pin` and `unpin`: which solution torch uses for a GEMM."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import click

from longpole.cli.answer.problems import require, usage_errors
from longpole.cli.ask.files import OutputPath
from longpole.cli.ask.options import Options, answer_options, answers, force_option, gather
from longpole.errors import ResultsError
from longpole.words.wording import count

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longpole.bench.tunableop import TunableFile
    from longpole.cli.answer.emit import Answer

from longpole.cli.tunableop.rows import MOST_ROWS, rows_answer

__all__ = ["pin", "unpin"]


@dataclass(frozen=True, slots=True)
class _Edit:
    """The file, the regular expressions that choose rows (at least one), and the new file."""

    file: str
    operator: str | None
    parameters: str | None
    solution: str | None
    output: str
    force: bool

    def keys(self) -> list[tuple[str, str]]:
        """List the operator and parameters of each chosen row.

        Raises
        ------
        click.UsageError
            No expression was given, or one is not valid.
        ResultsError
            No row matches, or the file cannot be used.
        """
        from longpole.bench import tunableop

        chosen = {
            "operator": self.operator,
            "parameters": self.parameters,
            "solution": self.solution,
        }
        is_given = any(each is not None for each in chosen.values())
        require(is_given, "select rows with --operator, --parameters or --from")
        with usage_errors():
            keys = tunableop.select(self.file, **chosen)
        if not keys:
            message = f"{self.file} has no row that matches"
            raise ResultsError(message)
        return keys

    def answer(
        self, name: str, edited: TunableFile, keys: Sequence[tuple[str, str]], done: str
    ) -> Answer:
        """Write the new file, and report the edited rows."""
        import polars as pl

        from longpole.cli.tunableop.data import KeyRow
        from longpole.rows.frames import frame_schema

        edited.write(self.output, force=self.force)
        rows = pl.DataFrame(keys, schema=frame_schema(KeyRow), orient="row")
        headline = f"{count(rows.height, 'GEMM')} {done}; written to {self.output}"
        changed = {"rows": rows}
        return rows_answer(name, self.file, headline, changed, KeyRow, most=MOST_ROWS)


_edit_options: Final = gather(
    "edit",
    {
        "file": click.argument("file", metavar="FILE"),
        "operator": click.option(
            "--operator", metavar="REGEX", help="Rows whose operator signature matches."
        ),
        "parameters": click.option(
            "--parameters", metavar="REGEX", help="Rows whose parameter signature matches."
        ),
        "solution": click.option(
            "--from", "solution", metavar="REGEX", help="Rows whose solution matches."
        ),
        "output": click.option(
            "-o",
            "--output",
            type=OutputPath(),
            required=True,
            metavar="FILE",
            help="File to write.",
        ),
        "force": force_option,
    },
    _Edit,
)
"""Add the file, the options to choose rows and those of the new file, as argument `edit`."""


@click.command()
@answers("longpole.cli.tunableop.data:KeyRow", has_rows=True)
@_edit_options
@click.option(
    "--to", metavar="SOLUTION", default="Default", show_default=True, help="Solution to use."
)
@answer_options
def pin(*, edit: _Edit, to: str, options: Options) -> int:
    """Make GEMMs use the default of torch or a named solution, regardless of the measurements.

    The rows lose their time, because it was measured with another solution. All other bytes
    stay the same.

    \b
    Examples:
      longpole tunableop pin results0.csv --parameters '^tn_768_' -o pinned0.csv
      longpole tunableop pin results0.csv --from Rocblas --to Gemm_Hipblaslt_12 -o new0.csv
    """
    from longpole.bench import tunableop

    keys = edit.keys()
    pinned = tunableop.pin(edit.file, keys, to)
    return options.emit(edit.answer("pin", pinned, keys, f"pinned to {to}"))


@click.command()
@answers("longpole.cli.tunableop.data:KeyRow", has_rows=True)
@_edit_options
@answer_options
def unpin(*, edit: _Edit, options: Options) -> int:
    """Remove GEMMs from a file, so that torch tunes or records them again.

    \b
    Examples:
      longpole tunableop unpin results0.csv --from '^Default$' -o new0.csv
    """
    from longpole.bench import tunableop

    keys = edit.keys()
    without = tunableop.unpin(edit.file, keys)
    return options.emit(edit.answer("unpin", without, keys, "taken out"))
