"""One attempt at one job: what was run, where, and the result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, Self

from longpole.words.data import Data

SCHEMA: Final = "longpole.bench.record/1"

HIGH_PRESSURE: Final = 0.20
"""A run that waited for a CPU for more than this fraction of the time was disturbed by other
programs (a judgement, not measured).
"""

LONGEST_NS: Final = 10**18
"""Thirty years. A longer time is assumed to be wrong."""


def is_duration_ns(value: object) -> bool:
    """Whether a value can be a duration: positive, finite, at most 30 years.

    Examples
    --------
    >>> [is_duration_ns(value) for value in (250, 0.5, 0, float("nan"), "250", True, 10**400)]
    [True, True, False, False, False, False, False]
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return 0 < value <= LONGEST_NS


class Outcome(StrEnum):
    """The outcome of an attempt, from exit status and signal, never from the text on stderr."""

    OK = "ok"
    TIMEOUT = "timeout"
    SIGNAL = "signal"
    NONZERO = "nonzero"
    NO_RESULT = "no_result"
    NOT_STARTED = "not_started"
    DEVICE_ERROR = "device_error"
    CANCELLED = "cancelled"
    GUARD_LOST = "guard_lost"
    RAISED = "raised"
    WRONG = "wrong"
    NO_TIME = "no_time"


# These outcomes show nothing about the job itself: a resumed run repeats it.
UNDECIDED: Final = frozenset({Outcome.DEVICE_ERROR, Outcome.CANCELLED, Outcome.GUARD_LOST})


@dataclass(frozen=True, slots=True)
class Measurement(Data):
    """One result that a job printed."""

    name: str
    time_ns: float
    """Time in ns; an integer unless fractions of a nanosecond were printed."""
    workspace_bytes: int | None = None
    original: Mapping[str, str] = field(default_factory=dict)
    """The printed values, in their own units."""


@dataclass(frozen=True, slots=True)
class Omitted:
    """Summary of the results with one name that were not kept."""

    name: str
    """Name of the results; empty if they have no name, or several."""
    count: int
    """Number of rows."""
    min_ns: float | None = None
    """Shortest comparable time."""
    last_ns: float | None = None
    """Time of the last row; None without one."""


@dataclass(frozen=True, slots=True)
class Record(Data):
    """The record of one attempt."""

    schema: str = field(default_factory=lambda: SCHEMA, init=False, repr=False)
    id: str
    """Unique id among the jobs of a run: the key, with a number from the second repetition on."""
    key: str
    outcome: Outcome
    attempt: int = 1
    is_final: bool = True
    """Whether no further attempt follows."""
    argv: tuple[str, ...] = ()
    tags: Mapping[str, Any] = field(default_factory=dict)
    digest: str = ""
    device: str | None = None
    exit_code: int | None = None
    signal: str | None = None
    message: str = ""
    results: tuple[Measurement, ...] = ()
    """Results printed by the job. Those of an attempt that was not `ok` are kept but never
    chosen."""
    best: Measurement | None = None
    """The fastest result, possibly one that was not kept."""
    omitted: tuple[Omitted, ...] = ()
    """Summary of the results that were not kept."""
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
    run: str = ""
    """Id of the process."""
    pair: str = ""
    """Records with the same text were sampled in turns: the n-th sample of each belongs to the n-th
    turn."""
    samples_ns: tuple[float, ...] = ()
    """Time of one call for each batch, if timed here rather than by a job."""
    sampling: Mapping[str, Any] = field(default_factory=dict)
    """How it was sampled: clock, cache, calls per batch, `step_ns` (clock resolution per call),
    warm-up, and what was dropped and why."""

    @property
    def is_decided(self) -> bool:
        """Whether a resumed run may skip this job."""
        return self.is_final and self.outcome not in UNDECIDED

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Self:
        """Create a record from the result of `to_dict`; fields of later versions are left out.

        Raises
        ------
        KeyError, TypeError, ValueError
            It is not a record, or a value is invalid.
        """
        names = cls.__dataclass_fields__.keys() - {"schema"}
        known = {name: fields[name] for name in names if name in fields}
        _check_types(known)
        known["outcome"] = Outcome(fields["outcome"])
        known["argv"] = tuple(fields.get("argv", ()))
        known["strays"] = tuple(fields.get("strays", ()))
        known["results"] = tuple(map(_measurement, fields.get("results", ())))
        known["best"] = _measurement(fields["best"]) if fields.get("best") else None
        known["samples_ns"] = tuple(fields.get("samples_ns", ()))
        known["omitted"] = tuple(Omitted(**each) for each in fields.get("omitted", ()))
        return cls(**known)


# Valid values of fields for which it is not enough to check that they are present.
_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "id": (str,),
    "key": (str,),
    "attempt": (int,),
    "is_final": (bool,),
    "argv": (list, tuple),
    "tags": (dict,),
    "digest": (str,),
    "device": (str, type(None)),
    "message": (str,),
    "results": (list, tuple),
    "best": (dict, type(None)),
    "omitted": (list, tuple),
    "seconds": (int, float, type(None)),
    "environment": (dict,),
    "run": (str,),
    "pair": (str,),
    "samples_ns": (list, tuple),
    "sampling": (dict,),
}


def _check_types(fields: Mapping[str, Any]) -> None:
    for name, types in _TYPES.items():
        if name in fields and not isinstance(fields[name], types):
            message = f"{name!r} is {fields[name]!r:.80}"
            raise TypeError(message)
    if not all(map(is_duration_ns, fields.get("samples_ns", ()))):
        message = "a sample is not a duration"
        raise ValueError(message)
    seconds = fields.get("seconds")
    if seconds is not None and not 0 <= seconds <= LONGEST_NS / 1e9:
        message = f"'seconds' is {seconds!r:.80}"
        raise ValueError(message)


def _measurement(fields: Mapping[str, Any]) -> Measurement:
    found = Measurement(**fields)
    if not is_duration_ns(found.time_ns):
        message = f"'time_ns' is {found.time_ns!r:.80}"
        raise ValueError(message)
    if not isinstance(found.name, str):
        message = f"the name of a result is {found.name!r:.80}"
        raise TypeError(message)
    return found
