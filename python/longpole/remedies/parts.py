"""What the core finds for a verdict, before it is put into words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypedDict

if TYPE_CHECKING:
    from longpole.recording import Profiler

__all__ = [
    "AwaitedParts",
    "BoundsParts",
    "Cause",
    "Fact",
    "HoleParts",
    "RecordedParts",
    "VerdictParts",
]

Status = Literal["ok", "balanced", "inconclusive", "no_device"]
Side = Literal["kernels", "host", "communication", "copies"]
Fact = Literal[
    "recorded",
    "busy_stream",
    "lost_work",
    "late_launches",
    "unexplained_time",
    "recording_cost",
]
"""What bounds a gain: nothing is missing, a stream is busy the rest of the time, launched work is
not recorded, launches are missing, time has no explanation, or recording may have cost less or more
than estimated."""
BoundsParts = tuple[float, float, Fact, Fact]
"""The least and the greatest gain, and what bounds each."""
Cause = Literal[
    "unlinked",
    "remaining",
    "polling",
    "host_waits",
    "graph_gap",
    "unexplained",
    "unrecorded",
    "before_first_event",
    "after_last_event",
    "sync_return",
]
"""Why a trace does not show what holds it up."""
Unit = Literal["step", "repetition", "annotation", "stretch", "trace"]


class HoleParts(TypedDict):
    """A piece of time that nothing explains, which the answer leaves out."""

    duration_ns: int
    event: int
    before: str
    """The name of what begins or returns late."""
    is_activity: bool
    """Whether that is a GPU activity."""
    host: tuple[str, bool] | None
    """What the host did for most of it, and whether that is a call that waits."""
    busy_ns: int
    """How long a device was busy meanwhile."""
    is_first: bool
    """Whether it precedes all but a few GPU activities, or is the first call of its kind."""


class AwaitedParts(TypedDict):
    """How long collectives waited for other ranks, where the profile shows their tasks."""

    name: str
    """The collective with the longest wait for one peer."""
    event: int
    peer: int
    """That peer, by its number in the group of the collective."""
    peer_ns: int
    waiting_ns: int
    total_ns: int


class RecordedParts(TypedDict):
    """What the trace holds of the window that is shown; shares are of its time."""

    busy: list[tuple[Side, float]]
    """What the busiest device did, as the table of the summary has it: computing before
    communicating before copying."""
    device: float
    """Time with a GPU activity."""
    host: float
    """Time with an operator, a call or a function of Python."""
    n_activities: int
    n_unlinked: int
    """GPU activities, and those whose launching call is not known."""
    host_collectives: tuple[str, float] | None
    """The collective of a library of the CPU that is open longest, and for how long any is."""
    has_operators: bool
    """Whether operators or functions of Python are recorded anywhere."""
    n_silent_threads: int
    """Threads that launch work without operators, while other threads have some."""
    stopped_ns: int
    """How long before the end of the window the profiler stopped."""
    n_launching: int
    """Calls of the whole trace that launch."""
    n_counter_ranges: int
    """Kernels of the whole trace with performance counters."""


class VerdictParts(TypedDict):
    """What holds a program up, in plain values."""

    status: Status
    sides: list[Side]
    holes: list[HoleParts]
    gains: list[tuple[Side, float]]
    bounds: list[tuple[Side, BoundsParts]]
    """The least and the greatest gain of each."""
    kernels_and_host: float
    unit: Unit
    numbers: list[int]
    shown: int
    n_windows: int
    lengths_ns: tuple[int, int, int, int]
    """Of the shown window, the shortest, the longest, and all together."""
    outliers: list[int]
    doubt: dict[str, float]
    cause: Cause | None
    reason: str
    waits_lead: bool
    nearly_balanced: bool
    function: tuple[str, float] | None
    busiest: tuple[str, float, int, float, str | None, bool] | None
    """What the host did longest on the path: its name, its share of the time, the number of events,
    the share of the longest of them, what it does if it is a runtime API call, and whether it is
    the first use of the GPU."""
    n_launched: int
    """GPU activities that were launched meanwhile."""
    loader: Literal["workers", "main_thread", "own"] | None
    usual: tuple[list[Side], float] | None
    awaited: AwaitedParts | None
    recorded: RecordedParts
    profiler: Profiler
    """Which one wrote the trace: whose options advice names."""
    is_of_server: bool
    """Whether an inference server marks its iterations: advice is for who has no loop."""
