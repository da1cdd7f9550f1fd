"""Errors about a MindSpore profile: the code, the file, the line and what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from longpole.errors import TraceError

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["ProfileError", "RankError"]


class ProfileError(TraceError):
    """A profile, or one of its files, cannot be read.

    `code` is a short name for programs, `path` the file, `line` its line (from 1, None for the
    whole file), `hint` what to do next.
    """

    line: int | None

    def __init__(
        self,
        path: str | Path,
        code: str,
        message: str,
        *,
        line: int | None = None,
        hint: str | None = None,
    ) -> None:
        place = f"{path}:{line}" if line else f"{path}"
        super().__init__(f"{place}: {message}")
        self.code, self.path, self.offset = code, str(path), 0
        self.line, self.hint = line, hint


class RankError(ProfileError):
    """The analysis of one rank failed; `rank` is its number, and the cause is chained."""

    rank: int

    def __init__(self, rank: int, cause: ProfileError) -> None:
        message = str(cause).removeprefix(f"{cause.path}: ")
        where = cause.path or ""
        super().__init__(where, cause.code, f"rank {rank}: {message}", hint=cause.hint)
        self.rank, self.line = rank, cause.line
