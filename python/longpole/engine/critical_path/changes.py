"""Hypothetical changes to a program, for what-if analysis."""

from __future__ import annotations

import re
from dataclasses import dataclass
from operator import index
from typing import TYPE_CHECKING, Final, Literal, get_args

from longpole.words.data import Row
from longpole.words.kernel_names import family_of
from longpole.words.path_kinds import MEANINGS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from fractions import Fraction

WorkKind = Literal[
    "operator",
    "runtime",
    "host_gap",
    "data_loading",
    "kernel",
    "copy",
    "communication",
    "launch",
    "clock_skew",
    "kernel_delay",
    "stream_overlap",
    "event_wait",
    "sync_return",
    "queue_full",
    "handover",
    "graph_gap",
    "unexplained",
    "unrecorded",
    "before_first_event",
    "after_last_event",
]
"""The kinds of time on a critical path."""

EventKind = Literal[
    "operator",
    "python",
    "runtime",
    "driver",
    "annotation",
    "kernel",
    "copy",
    "fill",
    "device_annotation",
    "synchronization",
    "counter_range",
    "device_task",
    "derived",
    "overhead",
    "span",
    "instant",
    "other",
]
"""Kinds of events, as in the column `kind` of `Trace.events`."""

WaitKind = Literal["sync_return", "event_wait", "queue_full"]
"""The kinds of waits that can be removed."""

_WAITS: Final = get_args(WaitKind)
_KINDS: Final = tuple(dict.fromkeys((*get_args(WorkKind), *get_args(EventKind))))
_ON_PATHS: Final = ", ".join(kind for kind in _KINDS if kind in MEANINGS)

# Precision of a factor: a float such as 0.1 means one tenth.
_LARGEST_DENOMINATOR: Final = 10**9
_ESCAPED: Final = re.compile(r"[][\\.+*?()|{}^$#&~-]")


Effect = Literal["scale", "drop", "replace", "insert", "remove_wait"]

TimeRange = tuple[int, int, int]
"""A part of a thread's time: its row in `Trace.lanes`, start and end in ns."""


class ChangeData(Row):
    """A change as data."""

    change: Effect
    kind: str | None
    matching: str | None
    by: float | None
    """Factor of a `scale`."""
    time_ns: int | None
    """Time of a `replace` or an `insert`."""
    events: list[int] | None
    """Rows of `Trace.events`."""
    time_ranges: list[TimeRange] | None


@dataclass(frozen=True, kw_only=True)
class Scale:
    """Multiplies the time of events of a kind with a matching name.

    `matching` is a regular expression, found anywhere in the name. The name of a kernel family
    (`gemm`, `attention`, `norm`, as in `Verdict.remedies`) selects the kernels of the family
    instead, regardless of their names.

    Without a kind, it applies to work: operators, runtime API calls, host time outside operators,
    data loading, kernels, memcpy and memset, and communication. Scaling a kernel does not scale its
    launch. If a kind of time on the path has the same name as a kind of events, the kind of time is
    used: `runtime` is all calls, `driver` those below the runtime, `python` functions without
    nested events, `annotation` the time inside annotations. With `events`, rows of `Trace.events`,
    it applies only to the time inside these events, including everything nested in an operator or
    function. With `time_ranges`, it applies only to what threads do in these ranges.
    """

    by: float | Fraction
    kind: WorkKind | EventKind | None = None
    matching: str | None = None
    events: Sequence[int] | None = None
    time_ranges: Sequence[TimeRange] | None = None

    def __data__(self) -> ChangeData:
        return _data(self, "scale", by=float(self.by))

    def __post_init__(self) -> None:
        """Raise if the kind does not exist."""
        _check_kind(self.kind)


@dataclass(frozen=True, kw_only=True)
class Drop:
    """Sets the time of events of a kind with a matching name to zero.

    Dependencies on it remain. `events` and `time_ranges` are as for `Scale`.
    """

    kind: WorkKind | EventKind | None = None
    matching: str | None = None
    events: Sequence[int] | None = None
    time_ranges: Sequence[TimeRange] | None = None

    def __data__(self) -> ChangeData:
        return _data(self, "drop")

    def __post_init__(self) -> None:
        """Raise if the kind does not exist."""
        _check_kind(self.kind)


@dataclass(frozen=True, kw_only=True)
class RemoveWait:
    """Removes the wait of calls (`sync_return`, `queue_full`) or GPU activities (`event_wait`).

    The gain is an upper bound, since the data that the wait protects is not considered. With
    `events`, rows of `Trace.events`, only these calls or activities no longer wait; with
    `time_ranges`, only calls that return during these.
    """

    kind: WaitKind = "sync_return"
    matching: str | None = None
    events: Sequence[int] | None = None
    time_ranges: Sequence[TimeRange] | None = None

    def __data__(self) -> ChangeData:
        return _data(self, "remove_wait")

    def __post_init__(self) -> None:
        """Raise if the kind is not a wait."""
        if self.kind not in _WAITS:
            message = f"{self.kind!r} is not a kind of wait; the kinds are {', '.join(_WAITS)}"
            raise ValueError(message)


@dataclass(frozen=True, kw_only=True)
class _Timed:
    """A change that sets or adds a time for given events."""

    time_ns: int
    events: Sequence[int]
    kind: WorkKind | None = None
    matching: str | None = None
    time_ranges: None = None

    def __post_init__(self) -> None:
        """Raise if the time is negative."""
        _check_time(self.time_ns)


class Replace(_Timed):
    """Replaces the duration of each given GPU activity, for example with that of another kernel.

    `events` are rows of `Trace.events`.
    """

    def __data__(self) -> ChangeData:
        return _data(self, "replace", time_ns=self.time_ns)


class Insert(_Timed):
    """Adds a time to each given event, for example the cost of a mechanism.

    `events` are rows of `Trace.events`. Changes apply in the given order: a later `Scale` of the
    same events also scales the added time.
    """

    def __data__(self) -> ChangeData:
        return _data(self, "insert", time_ns=self.time_ns)


Change = Scale | Drop | Replace | Insert | RemoveWait


Parts = tuple[str, str | None, str | None, int, int, list[int] | None, list[TimeRange] | None]


def parts_of(change: Change) -> Parts:
    """Return a change in the core's format.

    The parts are the effect, the kind, the pattern, the factor as a fraction or the time, the rows
    and the time ranges.
    """
    rows = None if change.events is None else [index(row) for row in change.events]
    time_ranges = None if change.time_ranges is None else list(change.time_ranges)
    match change:
        case RemoveWait():
            effect, number, denominator = "remove_wait", 1, 1
        case Drop():
            effect, number, denominator = "scale", 0, 1
        case Scale():
            by = _factor(change.by)
            effect, number, denominator = "scale", by.numerator, by.denominator
        case Replace():
            effect, number, denominator = "replace", index(change.time_ns), 1
        case Insert():
            effect, number, denominator = "insert", index(change.time_ns), 1
    return (effect, change.kind, change.matching, number, denominator, rows, time_ranges)


def name_pattern(name: str) -> str:
    r"""Return a pattern of a name, for patterns of the form `^(?:one|two)$`.

    The core looks such names up: to compile a long name as a regular expression takes far longer.

    Examples
    --------
    >>> name_pattern("void add<float*>(int)")
    'void add<float\\*>\\(int\\)'
    """
    return _ESCAPED.sub(r"\\\g<0>", name)


def kind_named(text: str) -> str:
    """Return the kind that is written with spaces, hyphens or capitals; other text is unchanged.

    The time of memcpys and memsets has one kind, `copy`, and may be called by either name.

    Examples
    --------
    >>> kind_named("Data loading"), kind_named("Memcpy"), kind_named("copies")
    ('data_loading', 'copy', 'copies')
    """
    plain = re.sub(r"[ -]", "_", text.lower())
    plain = "copy" if plain in {"memcpy", "memset"} else plain
    return plain if plain in _KINDS else text


def _check_kind(kind: str | None) -> None:
    if kind is None or kind in _KINDS:
        return
    meant = _meant(kind)
    part = f"{f':{kind}'!r} for names that contain it"
    advice = f"write {part}, or a kind: {_ON_PATHS}"
    if meant:
        advice = f"did you mean {meant!r}, or {part}?"
    message = f"no kind {kind!r}; {advice}"
    raise ValueError(message)


def _meant(kind: str) -> str | None:
    """Return the kind or kernel family that is most similar to a misspelled one."""
    import difflib

    plain = kind_named(kind)
    if family_of(kind) == kind:
        return f"kernel:{kind}"
    close = difflib.get_close_matches(plain, _KINDS, n=1)
    named = [known for known in _KINDS if plain in re.split(r"\W+|_", known)]
    told = [known for known, meaning in MEANINGS.items() if plain in re.split(r"\W+", meaning)]
    return next(iter([plain] * (plain in _KINDS) + close + named + told), None)


def _check_time(time_ns: int) -> None:
    if index(time_ns) < 0:
        message = f"a time is at least 0 ns, not {time_ns}"
        raise ValueError(message)


def _data(
    change: Change, effect: Effect, *, by: float | None = None, time_ns: int | None = None
) -> ChangeData:
    return ChangeData(
        change=effect,
        kind=change.kind,
        matching=change.matching,
        by=by,
        time_ns=time_ns,
        events=None if change.events is None else list(change.events),
        time_ranges=None if change.time_ranges is None else list(change.time_ranges),
    )


def _factor(by: float | Fraction) -> Fraction:
    from fractions import Fraction

    try:
        exact = by if isinstance(by, Fraction) else Fraction(str(by))
    except ValueError:
        exact = Fraction(-1)
    if not 0 <= exact <= _LARGEST_DENOMINATOR:
        message = f"a factor is between 0 and {_LARGEST_DENOMINATOR:,}, not {by}"
        raise ValueError(message)
    return exact.limit_denominator(_LARGEST_DENOMINATOR)
