"""One attempt at one job: what was run, where, and what came of it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, Self

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Measurement", "Outcome", "Record"]

SCHEMA: Final = "longpole.bench.record/1"


class Outcome(StrEnum):
    """How an attempt ended. Exit status and signal decide, never what was printed on stderr."""

    OK = "ok"
    TIMEOUT = "timeout"
    SIGNAL = "signal"
    NONZERO = "nonzero"
    NO_RESULT = "no_result"
    NOT_STARTED = "not_started"
    DEVICE_ERROR = "device_error"
    CANCELLED = "cancelled"
    GUARD_LOST = "guard_lost"


# After these nothing is known about the job itself: a resumed run does it again.
UNDECIDED: Final = frozenset({Outcome.DEVICE_ERROR, Outcome.CANCELLED, Outcome.GUARD_LOST})


@dataclass(frozen=True, slots=True)
class Measurement:
    """One result that a job printed. `original` keeps what stood there, in its own units.

    The time is an integer unless it was printed with parts of a nanosecond.
    """

    name: str
    time_ns: float
    workspace_bytes: int | None = None
    original: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Record:
    """What is written down about one attempt.

    `id` is unique among the jobs of a run: the key, and its number from the
    second repetition on. `is_final` says that no further attempt follows.
    `results` of an attempt that was not `ok` are kept and never chosen.
    """

    id: str
    key: str
    outcome: Outcome
    attempt: int = 1
    is_final: bool = True
    argv: tuple[str, ...] = ()
    tags: Mapping[str, Any] = field(default_factory=dict)
    digest: str = ""
    device: str | None = None
    exit_code: int | None = None
    signal: str | None = None
    message: str = ""
    results: tuple[Measurement, ...] = ()
    best: Measurement | None = None
    unparsed: int = 0
    unstable: bool = False
    strays: tuple[str, ...] = ()
    started_at: str = ""
    seconds: float | None = None
    stdout_bytes: int = 0
    stderr_bytes: int = 0
    stdout_tail: str = ""
    stderr_tail: str = ""
    environment: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_decided(self) -> bool:
        """Whether a resumed run may leave this job out."""
        return self.is_final and self.outcome not in UNDECIDED

    def to_dict(self) -> dict[str, Any]:
        """Give all fields by name, in a stable order."""
        return {"schema": SCHEMA, **asdict(self)}

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Self:
        """Make a record of what `to_dict` gave; fields of later versions are left out.

        Raises
        ------
        KeyError, TypeError, ValueError
            It is no record.
        """
        known = {name: fields[name] for name in cls.__dataclass_fields__ if name in fields}
        known["outcome"] = Outcome(fields["outcome"])
        known["argv"] = tuple(fields.get("argv", ()))
        known["strays"] = tuple(fields.get("strays", ()))
        known["results"] = tuple(Measurement(**each) for each in fields.get("results", ()))
        known["best"] = Measurement(**fields["best"]) if fields.get("best") else None
        return cls(**known)
