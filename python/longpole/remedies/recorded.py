"""What is recorded, as rows: events of threads, activities of devices, and where they are.

Events are rows of `Trace.events`, windows are counted from 0, and times are in ns.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

    from longpole._core import Facts as CoreFacts
    from longpole.engine.critical_path.changes import TimeRange


Built = TypeVar("Built")


class OnThread(NamedTuple):
    """A thread's event that begins in a window."""

    event: int
    lane: int
    start_ns: int
    end_ns: int
    window: int

    @property
    def duration_ns(self) -> int:
        """Duration of the event."""
        return self.end_ns - self.start_ns

    @property
    def time_range(self) -> TimeRange:
        """Its time range on its thread, for changes."""
        return (self.lane, self.start_ns, self.end_ns)


class ThreadGap(NamedTuple):
    """Time of a thread without an open operator or runtime API call."""

    lane: int
    start_ns: int
    end_ns: int
    window: int
    idle_ns: int
    """How long all GPUs were idle during the gap."""
    before: int | None
    """The previous operator or call."""
    after: int | None
    """The next operator or call."""
    is_loading: bool
    """Whether it is inside a data loader."""

    @property
    def duration_ns(self) -> int:
        """Duration of the gap."""
        return self.end_ns - self.start_ns

    @property
    def time_range(self) -> TimeRange:
        """Its time range on its thread, for changes."""
        return (self.lane, self.start_ns, self.end_ns)


class Activity(NamedTuple):
    """A GPU activity that belongs to a window."""

    event: int
    call: int | None
    """The runtime API call that launched it."""
    operator: int | None
    """The innermost operator around that call."""
    outermost: int | None
    """The outermost operator around that call."""
    kind: str
    """`kernel`, `copy` or `communication`."""
    start_ns: int
    duration_ns: int
    lane: int
    window: int


class DeviceWait(NamedTuple):
    """A runtime API call that waited for a GPU."""

    call: OnThread
    operator: int | None
    """The outermost operator around it."""
    work: int | None
    """The GPU activity that it waited for."""

    @property
    def window(self) -> int:
        """The window in which the call begins."""
        return self.call.window


class Named(NamedTuple):
    """Events with one name within some time of a thread."""

    name: str
    kind: str
    n_events: int
    total_ns: int
    """The part of their time within the given spans."""
    first: int
    """The event with the smallest depth."""
    depth: int


class Place(NamedTuple):
    """Thread and time of an event."""

    kind: str
    lane: int
    start_ns: int
    duration_ns: int | None

    @property
    def end_ns(self) -> int:
        """When it ended; its start if it has no duration."""
        return self.start_ns + (self.duration_ns or 0)

    @property
    def time_range(self) -> TimeRange:
        """Its time range on its thread, for changes."""
        return (self.lane, self.start_ns, self.end_ns)


# Named tuples of the core's rows, made without a call of Python for each: there may be 100,000.
on_thread: Final[Callable[[tuple[Any, ...]], OnThread]] = partial(tuple.__new__, OnThread)
activity: Final[Callable[[tuple[Any, ...]], Activity]] = partial(tuple.__new__, Activity)
place_of: Final[Callable[[tuple[Any, ...]], Place]] = partial(tuple.__new__, Place)


class _Names(dict[int, str]):
    """The name of each event, asked once; equal names are one object."""

    def __init__(self, core: CoreFacts) -> None:
        self._core = core
        self._equal: dict[str, str] = {}

    def __missing__(self, event: int) -> str:
        name = self._core.name(event)
        self[event] = name = self._equal.setdefault(name, name)
        return name


class _Places(dict[int, Place]):
    """The place of each event, asked once."""

    def __init__(self, core: CoreFacts) -> None:
        self._core = core

    def __missing__(self, event: int) -> Place:
        self[event] = place = place_of(self._core.place(event))
        return place


class Recorded:
    """Rows of the core, shared by the facts and those after changes."""

    def __init__(self, core: CoreFacts) -> None:
        self._core = core
        self._rows: dict[tuple[Any, ...], list[Any]] = {}
        self.names = _Names(core)
        self.places = _Places(core)

    def _once(self, make: Callable[..., Built], ask: Callable[..., Any], *of: Any) -> list[Built]:
        """Return rows of a query as other objects, computed once."""
        key = (ask.__name__, *of)
        if key not in self._rows:
            self._rows[key] = [*map(make, ask(*of))]
        return self._rows[key]

    def on_threads(
        self, kinds: tuple[str, ...], least_ns: int, prefixes: tuple[str, ...]
    ) -> list[OnThread]:
        """Return the events of threads of some kinds, of a least duration and with some names."""
        return self._once(on_thread, self._core.on_threads, kinds, least_ns, prefixes)

    def calls(self, roles: tuple[str, ...]) -> list[OnThread]:
        """Return the runtime API calls with some roles."""
        return self._once(on_thread, self._core.calls, roles)

    def activities(self, kind: str, least_ns: int) -> list[Activity]:
        """Return the GPU activities of a kind and of a least duration."""
        return self._once(activity, self._core.activities, (kind,), least_ns)

    def gaps(self, least_ns: int) -> list[ThreadGap]:
        """Return the gaps of threads of a least duration."""
        return self._once(ThreadGap._make, self._core.thread_gaps, least_ns)
