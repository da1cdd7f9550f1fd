"""Results of the core for a verdict, before they are worded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple, TypedDict

if TYPE_CHECKING:
    from longpole.engine.recording_cost import RecordingCost
    from longpole.engine.windows import Unit
    from longpole.remedies.gains import Gain
    from longpole.remedies.limits import Kind, Limit
    from longpole.remedies.sides import Cause, Side
    from longpole.words.recording import Profiler

Loader = Literal["workers", "main_thread", "own"]
"""Where data is loaded."""


class GapParts(TypedDict):
    """Unexplained time that the answer leaves out."""

    duration_ns: int
    event: int
    before: str
    """Name of the event that begins or returns late."""
    is_activity: bool
    """Whether that event is a GPU activity."""
    host: tuple[str, bool] | None
    """Event of the host that took most of the gap, and whether it is a call that waits."""
    busy_ns: int
    """How long any device was busy during the gap."""
    is_first: bool
    """Whether it precedes all but a few GPU activities, or is the first call of its kind."""
    follows_wait: bool
    """Whether a stream was made to wait before the late activity, after the device had run any."""


class AwaitedParts(TypedDict):
    """How long collectives waited for other ranks, if the profile shows their tasks."""

    name: str
    """The collective with the longest wait for one peer."""
    event: int
    peer: int
    """The peer of that wait, by its index in the collective's group."""
    peer_ns: int
    waiting_ns: int
    total_ns: int


class RecordedParts(TypedDict):
    """What the trace contains for the shown window; shares are of its time."""

    busy: list[tuple[Side, float]]
    """What the busiest device did, as in the table of the summary: computing, else communicating,
    else copying."""
    device: float
    """Fraction of the window in which a GPU activity ran."""
    host: float
    """Fraction in which an operator, a call or a Python function ran."""
    n_activities: int
    n_unlinked: int
    """Number of GPU activities, and of those whose launch is unknown."""
    host_collectives: tuple[str, float] | None
    """The CPU library collective that is open longest, and how long any is open."""
    has_operators: bool
    """Whether operators or Python functions are recorded anywhere."""
    n_silent_threads: int
    """Number of launching threads without operators, if other threads have some."""
    stopped_ns: int
    """How long before the end of the window the profiler stopped."""
    n_launching: int
    """Number of launching calls in the whole trace."""
    n_counter_ranges: int
    """Number of kernels with performance counters in the whole trace."""
    impossible: float
    """Time of GPU activities with impossible times, in the steps that the gains cover."""


class ServedSteps(NamedTuple):
    """What the iterations of a server are that a verdict covers: they are of one kind."""

    kind: str
    """`decode`, `prefill` or `mixed`."""
    requests: int | None
    """Number of requests in the shown iteration."""
    has_token_each: bool
    """Whether each request decodes one token in each iteration."""

    @property
    def noun(self) -> str:
        """The iteration as a noun."""
        return "mixed batch" if self.kind == "mixed" else f"{self.kind} step"


class _Parts(TypedDict):
    """What the core finds for a verdict, besides what limits the program."""

    gaps: list[GapParts]
    kernels_and_host: float
    unit: Unit
    numbers: list[int]
    shown: int
    n_windows: int
    lengths_ns: tuple[int, int, int, int]
    """Lengths: of the shown window, the shortest, the longest, and the total."""
    outliers: list[int]
    uncertainty: dict[str, float]
    cause: Cause | None
    reason: str
    function: tuple[str, float] | None
    busiest: tuple[str, float, int, float, str | None, bool] | None
    """The host's longest work on the path: its name, its share of the time, the number of events,
    the share of the longest one, its role if it is a runtime API call, and whether it is the first
    use of the GPU."""
    n_launched: int
    """Number of GPU activities launched during the longest work of the host."""
    loader: Loader | None
    usual: tuple[list[Side], float, bool] | None
    """What limits the shown window alone and its gain, if the lengths are uneven or it is something
    else, and whether it is something else."""
    caught_up_ns: int | None
    """Mean time that the host takes for a window, if the device catches up with a backlog in it."""
    awaited: AwaitedParts | None
    recorded: RecordedParts
    profiler: Profiler
    """Profiler of the trace, whose options advice names."""
    is_of_server: bool
    """Whether an inference server marks its iterations, so that there is no loop to change."""


class CoreParts(_Parts):
    """A verdict of the core, as plain values."""

    limit: Kind
    sides: list[Side]


class VerdictParts(_Parts):
    """What limits a program, with facts about the trace and the question."""

    limit: Limit
    gains: dict[Side, Gain]
    """What removing each side gains."""
    in_use: tuple[str, ...]
    """Fields of `Options` that the trace was recorded with."""
    served: ServedSteps | None
    """What the steps are if an inference server marks them."""
    n_earlier: int
    """If the cause is `unlinked`, the number of GPU activities of the shown window that were most
    likely launched before recording began."""
    runs_elsewhere: bool
    """Whether the GPU activities of the trace are all outside the window."""
    recorded_ns: int | None
    """Length of a chosen window as recorded, if the times do not contain the overhead."""
    range_ns: int | None
    """Length of the time range requested; None for other windows."""
    recording_cost: RecordingCost | None
    """The overhead that the times do not contain; None if they are as recorded."""
