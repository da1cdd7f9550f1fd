"""Possible problems of TunableOp files, and their effects."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from longpole.data import Data, computed

__all__ = ["PROBLEMS", "Problem", "ProblemKind"]


Severity: TypeAlias = Literal["error", "warning", "info"]
"""An error if tuned results are lost or torch fails, a warning if they may be."""


@dataclass(frozen=True, slots=True)
class ProblemKind:
    """A kind of problem: severity, meaning, and what to do."""

    severity: Severity
    effect: str
    hint: str


PROBLEMS: Final = {
    "no_validators": ProblemKind(
        "error",
        "torch ignores the whole file",
        "put the validators of the torch that tuned it on top",
    ),
    "missing_validator": ProblemKind(
        "error", "torch ignores the whole file", "tune again, or copy the line from another file"
    ),
    "foreign_validator": ProblemKind(
        "error",
        "torch ignores the whole file; up to 2.9 it overwrites the file at exit, and from 2.10 on "
        "it appends new rows to it, which it will ignore as well",
        "keep a copy of the file, and tune again into a new one",
    ),
    "unexpected_validator": ProblemKind(
        "error", "torch ignores the whole file", "tune again with the installed torch"
    ),
    "duplicate_validator": ProblemKind("info", "none: the lines agree", "delete one"),
    "conflicting_validator": ProblemKind(
        "error",
        "torch takes the last value",
        "find out under which version the rows were tuned",
    ),
    "mixed_validators": ProblemKind(
        "error",
        "the rows were tuned under different versions, and torch takes the last validators "
        "for all of them",
        "`longpole tunableop merge --split-validators` separates them",
    ),
    "crlf": ProblemKind(
        "error",
        "torch takes the carriage return for a part of the value: the validators differ and "
        "the whole file is ignored",
        "`longpole tunableop merge FILE -o NEW` writes line feeds",
    ),
    "crlf_row": ProblemKind(
        "error",
        "torch takes the carriage return for a part of the solution's name and fails",
        "`longpole tunableop merge FILE -o NEW` writes line feeds",
    ),
    "byte_order_mark": ProblemKind(
        "error", "torch does not understand the first line", "save the file without the mark"
    ),
    "duplicate_rows": ProblemKind(
        "info", "torch takes the first", "`longpole tunableop merge FILE -o NEW` keeps one"
    ),
    "conflicting_rows": ProblemKind(
        "warning",
        "torch takes the first",
        "`longpole tunableop merge FILE -o NEW` keeps the fastest",
    ),
    "slower_row_first": ProblemKind(
        "error",
        "torch takes the first, which is not the fastest",
        "`longpole tunableop merge FILE -o NEW` keeps the fastest",
    ),
    "default_inf": ProblemKind(
        "warning",
        "no solution could be run when it was tuned; torch uses its default",
        "delete the row to have it tuned again",
    ),
    "unusable_time": ProblemKind(
        "warning", "torch uses the solution; its time has no meaning", "tune it again"
    ),
    "glued_rows": ProblemKind(
        "error",
        "torch reads the first row of the line and loses the others",
        "`longpole tunableop merge FILE -o NEW` takes them apart",
    ),
    "unknown_line": ProblemKind(
        "warning",
        "torch uses a line of three fields or more if it has such an operator and meets the "
        "shape, and skips any other",
        "delete it unless a newer torch wrote it",
    ),
    "cut_line": ProblemKind(
        "error",
        "the writer died within the line; a row that is appended is glued to it",
        "delete the line",
    ),
    "no_final_newline": ProblemKind(
        "warning",
        "the last row may be cut short, and a row that is appended is glued to it",
        "`longpole tunableop merge FILE -o NEW` ends it; check its time",
    ),
    "unknown_solution": ProblemKind(
        "warning",
        "if torch does not know the solution, it stops with an error up to 2.12, and from 2.14 on "
        "it uses its default without a message",
        "`longpole tunableop unpin` takes the row out",
    ),
    "layout_mismatch": ProblemKind(
        "warning", "torch never looks the row up", "the row was edited by hand: delete it"
    ),
    "old_row_format": ProblemKind(
        "warning",
        "torch 2.7 and later look GEMMs up with leading dimensions and never find the row",
        "tune it again",
    ),
    "untuned_rows": ProblemKind(
        "info", "torch skips rows without a solution", "tune them with `longpole tunableop tune`"
    ),
    "blank_line": ProblemKind(
        "warning", "undefined: some versions of torch read a field that is not there", "delete it"
    ),
    "no_ordinal": ProblemKind(
        "warning",
        "torch puts the ordinal of a device into the name and looks for another file",
        "name it as `longpole tunableop files` says",
    ),
    "empty": ProblemKind("info", "torch tunes from scratch", "nothing"),
    "mixed_versions": ProblemKind(
        "warning",
        "a process that reads one of the files ignores the other",
        "tune all of them with the same torch",
    ),
}


@dataclass(frozen=True, slots=True)
class Problem(Data):
    """One problem of a file."""

    code: str
    file: str
    lines: tuple[int, ...]
    """Line numbers from 1; empty if it concerns the whole file."""
    message: str

    @property
    def kind(self) -> ProblemKind:
        """Severity, meaning, and what to do."""
        return PROBLEMS[self.code]

    @computed
    def severity(self) -> Severity:
        """An error if tuned results are lost or torch fails, a warning if they may be."""
        return self.kind.severity

    @computed
    def effect(self) -> str:
        """Effect of the problem."""
        return self.kind.effect

    @computed
    def hint(self) -> str:
        """What to do."""
        return self.kind.hint
