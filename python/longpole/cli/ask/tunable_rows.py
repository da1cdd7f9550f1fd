"""Which rows of a TunableOp file a command changes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from longpole.errors import ResultsError

if TYPE_CHECKING:
    from longpole.bench.tunableop.signature import Key

__all__ = ["RowSelection", "row_selection"]


@dataclass(frozen=True, slots=True)
class RowSelection:
    """Rows that are chosen by regular expressions, all of which must match."""

    operator: str | None
    parameters: str | None
    solution: str | None

    def keys(self, file: str) -> list[Key]:
        """Find the GEMMs of the rows.

        Raises
        ------
        UsageError
            No expression was given, or one is invalid.
        ResultsError
            No row matches.
        """
        from longpole.bench import tunableop

        if self.operator is self.parameters is self.solution is None:
            message = "say which rows: --operator, --parameters or --from"
            raise click.UsageError(message)
        try:
            found = tunableop.select(
                file,
                operator=self.operator,
                parameters=self.parameters,
                solution=self.solution,
            )
        except ValueError as error:
            raise click.UsageError(str(error)) from error
        if not found:
            message = f"{file} has no row that matches"
            raise ResultsError(message)
        return found


def row_selection(command: Any) -> Any:
    """Give a command the options that choose rows, as `rows`."""

    @click.option("--operator", metavar="REGEX", help="Rows whose operator signature matches.")
    @click.option("--parameters", metavar="REGEX", help="Rows whose parameter signature matches.")
    @click.option("--from", "solution", metavar="REGEX", help="Rows whose solution matches.")
    @wraps(command)
    def with_rows(
        *, operator: str | None, parameters: str | None, solution: str | None, **rest: Any
    ) -> Any:
        return command(rows=RowSelection(operator, parameters, solution), **rest)

    return with_rows
