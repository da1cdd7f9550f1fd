"""Options to edit rows of a TunableOp file: which rows, and the new file."""

from __future__ import annotations

from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from longpole.cli.answer.usage import require, usage_errors
from longpole.cli.ask.files import OutputPath
from longpole.cli.ask.options import force_option
from longpole.errors import ResultsError
from longpole.wording import count

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from longpole.bench.tunableop import TunableFile
    from longpole.cli.answer.emit import Answer

__all__ = ["Edit", "edit_options"]


@dataclass(frozen=True, slots=True)
class Edit:
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

        from longpole.cli.answer.tunable_data import Changed, KeyRow
        from longpole.cli.answer.tunableop import MOST_ROWS, rows_answer
        from longpole.frames import frame_schema

        edited.write(self.output, force=self.force)
        rows = pl.DataFrame(keys, schema=frame_schema(KeyRow), orient="row")
        headline = f"{count(rows.height, 'GEMM')} {done}; written to {self.output}"
        changed = Changed(rows=rows)
        return rows_answer(name, self.file, headline, changed, KeyRow, most=MOST_ROWS)


def edit_options(command: Callable[..., int]) -> Callable[..., int]:
    """Add the file, the options to choose rows and those of the new file, as argument `edit`."""

    @click.argument("file", metavar="FILE")
    @click.option("--operator", metavar="REGEX", help="Rows whose operator signature matches.")
    @click.option("--parameters", metavar="REGEX", help="Rows whose parameter signature matches.")
    @click.option("--from", "solution", metavar="REGEX", help="Rows whose solution matches.")
    @click.option(
        "-o",
        "--output",
        type=OutputPath(),
        required=True,
        metavar="FILE",
        help="The file to write.",
    )
    @force_option
    @wraps(command)
    def with_edit(
        *,
        file: str,
        operator: str | None,
        parameters: str | None,
        solution: str | None,
        output: str,
        force: bool,
        **others: Any,
    ) -> int:
        return command(edit=Edit(file, operator, parameters, solution, output, force), **others)

    return with_edit
