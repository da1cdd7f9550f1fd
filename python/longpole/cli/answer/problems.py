"""Errors for the user: one sentence, a code, a hint, an exit code."""

from __future__ import annotations

import errno
import os
import sys
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Self

import click

from longpole.cli.answer import exit_codes
from longpole.errors import (
    DeviceError,
    InternalError,
    MissingDependencyError,
    PairError,
    RanksError,
    ResultsError,
    TraceError,
    WindowError,
)
from longpole.words.wording import escape

if TYPE_CHECKING:
    from collections.abc import Iterator

_SAME_RUN: Final = "give the two files of one rank of one run, recorded together"
_OF_CLICK: Final = ("Missing ", "Invalid value", "Option ", "Got unexpected")
_SYSTEM_ERRORS: Final = {
    errno.ENOENT: ("file_not_found", "no such file"),
    errno.EACCES: ("permission_denied", "permission denied"),
    errno.ENOTSUP: ("not_a_regular_file", None),
    errno.EISDIR: ("is_a_directory", "this is a directory; name the trace in it"),
}


@dataclass(frozen=True, slots=True)
class Problem:
    """An error in the form shown to people and programs."""

    code: str
    message: str
    exit_code: int
    hint: str | None = None
    path: str | None = None
    offset: int | None = None

    @classmethod
    def of(cls, error: Exception) -> Self:
        """Return the message of an exception and its hint."""
        found = cls._of(error)
        message, mark, hint = found.message.partition("\nhint: ")
        return replace(found, message=message, hint=hint) if mark else found

    @classmethod
    def _of(cls, error: Exception) -> Self:  # noqa: C901, PLR0911 (one for each kind of error)
        match error:
            case TraceError():
                message = str(error).removeprefix(f"{error.path}: ")
                where = (error.hint, error.path, error.offset)
                return cls(error.code, message, exit_codes.UNREADABLE, *where)
            case MissingDependencyError() | DeviceError():
                return cls._with_hint("missing", error, exit_codes.MISSING)
            case RanksError():
                return cls._with_hint("no_ranks", error, exit_codes.UNREADABLE)
            case ResultsError():
                return cls._with_hint("results", error, exit_codes.UNREADABLE)
            case PairError():
                return cls("not_a_pair", str(error), exit_codes.UNREADABLE, _SAME_RUN)
            case WindowError():
                return cls._with_hint("no_such_window", error, exit_codes.USAGE)
            case click.ClickException():
                hint = None
                if isinstance(error, click.UsageError) and error.ctx is not None:
                    hint = f"see `{error.ctx.command_path} --help`"
                return cls("usage", _as_ours(error.format_message()), exit_codes.USAGE, hint)
            case FileExistsError() if error.errno is None:
                return cls("file_exists", str(error), exit_codes.USAGE)
            case OSError():
                return cls._of_system(error)
            case _:
                kind = "internal" if isinstance(error, InternalError) else type(error).__name__
                hint = "internal error (please report); `--debug` shows where"
                return cls(kind, str(error), exit_codes.INTERNAL, hint)

    @classmethod
    def _with_hint(cls, code: str, error: Exception, exit_code: int) -> Self:
        """Split off the hint in the last line of a message, if there is one."""
        message, _, hint = str(error).partition("\nhint: ")
        return cls(code, message, exit_code, hint or None)

    @classmethod
    def _of_system(cls, error: OSError) -> Self:
        known = _SYSTEM_ERRORS.get(error.errno or 0)
        code, message = known or ("io", None)
        own = error.strerror or ""
        if not own.startswith(os.strerror(error.errno or 0)):  # the core adds the number
            message = own
        message = message or own or str(error)
        path = None if error.filename is None else os.fsdecode(error.filename)
        return cls(code, message, exit_codes.UNREADABLE, path=path)

    def at(self, path: str) -> Self:
        """Add the name of the input, if the error lacks it."""
        message = self.message.removeprefix(f"{path}: ")
        return self if self.path else replace(self, path=path, message=message)

    def to_dict(self) -> dict[str, Any]:
        """Return the data for programs."""
        fields = asdict(self)
        del fields["exit_code"]
        return fields

    def show(self) -> None:
        """Print the error to stderr."""
        where = f"{self.path}: " if self.path else ""
        lines = [f"error: {where}{' '.join(self.message.split())} [{self.code}]"]
        if self.hint:
            lines.append(f"hint: {self.hint}")
        sys.stderr.write("".join(f"{escape(line)}\n" for line in lines))


def _as_ours(message: str) -> str:
    """Return a message of click without its capital and full stop, like all other messages."""
    if not message.startswith(_OF_CLICK):
        return message
    return message[0].lower() + message[1:].removesuffix(".")


def require(condition: object, message: str) -> None:
    """Raise a usage error unless a condition holds."""
    if not condition:
        raise click.UsageError(message)


@contextmanager
def usage_errors(kind: type[ValueError] = ValueError) -> Iterator[None]:
    """Convert errors of this kind to usage errors within the context."""
    try:
        yield
    except kind as error:
        raise click.UsageError(str(error)) from error
