"""The words a program is written in: what threads do, and what they ask of devices.

A program says only what *shall* happen and how long it nominally takes. When things happen, and
who waits for whom, is for the engine to find out. Items are values: they can be shared, nested
and repeated freely.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

FrameCategory: TypeAlias = Literal["cpu_op", "python_function", "user_annotation"]
WorkCategory: TypeAlias = Literal["kernel", "gpu_memcpy", "gpu_memset"]
CallCategory: TypeAlias = Literal["cuda_runtime", "cuda_driver"]


class Stream(NamedTuple):
    """One in-order queue of one device."""

    device: int
    number: int


@dataclass(frozen=True, slots=True)
class Busy:
    """The thread works for itself, inside whatever is open."""

    nominal_ns: int


@dataclass(frozen=True, slots=True)
class Frame:
    """Something that is open while its body happens: an operator, a function, an annotation.

    `step` numbers the annotation of a training step; `loading` marks the frames under which a
    data loader works; `sequence` joins a forward operator with the node of its gradient.
    """

    category: FrameCategory
    name: str
    body: tuple[Item, ...]
    sequence: int | None = None
    step: int | None = None
    loading: bool = False
    args: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Call:
    """A runtime call that neither launches nor waits."""

    name: str
    nominal_ns: int
    category: CallCategory = "cuda_runtime"


@dataclass(frozen=True, slots=True)
class Work:
    """A GPU activity for a stream."""

    category: WorkCategory
    name: str
    nominal_ns: int
    args: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_collective(self) -> bool:
        """Whether the work talks to other ranks."""
        return self.name.startswith("ncclDevKernel")


@dataclass(frozen=True, slots=True)
class Launch:
    """A call that hands work to a stream; a graph launch hands over many at once.

    With `rings_early` the work may begin before the call returns, if its stream is idle.
    With `blocking` the call returns only when the work has ended, as pageable copies do.
    """

    works: tuple[Work, ...]
    stream: Stream
    name: str = "cudaLaunchKernel"
    nominal_ns: int = 5_000
    category: CallCategory = "cuda_runtime"
    rings_early: bool = False
    blocking: bool = False


@dataclass(frozen=True, slots=True)
class Joint:
    """One collective on several devices of a process: no part ends before the last has begun."""

    launches: tuple[Launch, ...]


@dataclass(frozen=True, slots=True)
class Node:
    """A kernel of a captured graph, its stream, and the earlier nodes that it comes after.

    Nodes of one stream come after one another in any case.
    """

    work: Work
    stream: Stream
    after: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Replay:
    """`cudaGraphLaunch`: a graph begins after all earlier work of its stream.

    The next work of the stream begins after all nodes. The profiler tells the number of a `graph`
    and of its nodes, if there is one.
    """

    nodes: tuple[Node, ...]
    stream: Stream
    graph: int | None = None
    nominal_ns: int = 14_000


@dataclass(frozen=True, slots=True)
class RecordEvent:
    """`cudaEventRecord`: the event happens when the stream's work so far has ended."""

    event: int
    stream: Stream


@dataclass(frozen=True, slots=True)
class WaitEvent:
    """`cudaStreamWaitEvent`: the stream's next work begins after the event."""

    event: int
    stream: Stream


@dataclass(frozen=True, slots=True)
class Synchronize:
    """A call that returns when an event happened or a stream or device has nothing left to do.

    The scope is what is given: an event, else a stream, else the whole device. A call by another
    `name`, such as `cudaFree`, waits for the device too, but leaves no synchronisation record.
    """

    device: int = 0
    stream: Stream | None = None
    event: int | None = None
    name: str | None = None
    nominal_ns: int = 4_000


@dataclass(frozen=True, slots=True)
class Poll:
    """A loop that asks whether an event happened, rests, and asks again until it did."""

    event: int
    rest_ns: int = 300
    name: str = "cudaEventQuery"


@dataclass(frozen=True, slots=True)
class Start:
    """A helper thread that was not there begins; it needs this long to wake."""

    helper: int
    nominal_ns: int


@dataclass(frozen=True, slots=True)
class Put:
    """The thread puts an entry into a queue of the host, once there is room."""

    queue: int
    capacity: int = 2
    wake_ns: int = 8_000


@dataclass(frozen=True, slots=True)
class Get:
    """The thread takes an entry out of a queue of the host, once there is one."""

    queue: int
    wake_ns: int = 8_000


@dataclass(frozen=True, slots=True)
class StartRecording:
    """The profiler starts: what began before is not recorded."""


@dataclass(frozen=True, slots=True)
class Backward:
    """The autograd thread does the body while this thread waits for it."""

    body: tuple[Item, ...]


@dataclass(frozen=True, slots=True)
class Memory:
    """An allocation (or, below zero, a release) noted by the allocator."""

    bytes: int
    device: int


Item: TypeAlias = (
    Busy
    | Frame
    | Call
    | Launch
    | Joint
    | Replay
    | RecordEvent
    | WaitEvent
    | Synchronize
    | Poll
    | Start
    | Put
    | Get
    | StartRecording
    | Backward
    | Memory
)


@dataclass(frozen=True, slots=True)
class Program:
    """What the main thread does, and what helper threads do concurrently.

    `late_helpers` begin when they are started, the others at once. `legacy_stream` is the number
    of the stream that waits for all others of its device, and they for it.
    """

    name: str
    main: tuple[Item, ...]
    helpers: tuple[tuple[Item, ...], ...] = ()
    n_devices: int = 1
    rank: int = 0
    world_size: int = 1
    late_helpers: frozenset[int] = frozenset()
    legacy_stream: int | None = None


def operator(
    name: str,
    *body: Item,
    sequence: int | None = None,
    args: Mapping[str, Any] | None = None,
) -> Frame:
    """Return an operator; `args` become arguments of its event."""
    return Frame("cpu_op", name, body, sequence=sequence, args=args or {})


def python(name: str, *body: Item) -> Frame:
    """Return a Python function; it leaves an event only when stacks are recorded."""
    return Frame("python_function", name, body)


def annotation(name: str, *body: Item, step: int | None = None, loading: bool = False) -> Frame:
    """Return a label over a stretch of a thread."""
    return Frame("user_annotation", name, body, step=step, loading=loading)
