"""The rows of a TunableOp file that a command edits."""

from __future__ import annotations

from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from longpole.errors import ResultsError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Rows", "row_options"]


@dataclass(frozen=True, slots=True)
class Rows:
    """What chooses the rows of a file: regular expressions, at least one."""

    operator: str | None
    parameters: str | None
    solution: str | None

    def of(self, file: str) -> list[tuple[str, str]]:
        """List the operator and parameters of each row that is chosen.

        Raises
        ------
        click.UsageError
            No expression was given, or one is not valid.
        ResultsError
            No row matches, or the file cannot be used.
        """
        from longpole.bench import tunableop

        if self.operator is self.parameters is self.solution is None:
            message = "say which rows: --operator, --parameters or --from"
            raise click.UsageError(message)
        try:
            keys = tunableop.select(
                file, operator=self.operator, parameters=self.parameters, solution=self.solution
            )
        except ValueError as error:
            raise click.UsageError(str(error)) from error
        if not keys:
            message = f"{file} has no row that matches"
            raise ResultsError(message)
        return list(keys)


def row_options(command: Callable[..., int]) -> Callable[..., int]:
    """Give a command the options that choose rows, as `chosen`."""

    @click.option("--operator", metavar="REGEX", help="Rows whose operator signature matches.")
    @click.option("--parameters", metavar="REGEX", help="Rows whose parameter signature matches.")
    @click.option("--from", "solution", metavar="REGEX", help="Rows whose solution matches.")
    @wraps(command)
    def with_rows(
        *, operator: str | None, parameters: str | None, solution: str | None, **others: Any
    ) -> int:
        return command(chosen=Rows(operator, parameters, solution), **others)

    return with_rows
