"""Programs of two threads that launch at once, and let streams wait for each other."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .catalogue import copy_to_device, elementwise_name, gemm_name, item_to_host
from .program import (
    Busy,
    Frame,
    Item,
    Launch,
    Program,
    RecordEvent,
    Stream,
    Synchronize,
    WaitEvent,
    Work,
    annotation,
    operator,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_STREAMS = ((7, 13), (20, 24))


@dataclass(slots=True)
class _Draft:
    """A thread being drawn up: its dice, its streams, its events and those of the other."""

    dice: random.Random
    streams: tuple[Stream, ...]
    events: Iterator[int]
    recorded: list[int] = field(default_factory=list)
    of_other: list[int] = field(default_factory=list)
    device: int = 0

    def stream(self) -> Stream:
        """Return one of its streams."""
        return self.dice.choice(self.streams)

    def kernel(self, stream: Stream) -> Launch:
        """Return the launch of a kernel; most are short."""
        name = self.dice.choice((gemm_name, elementwise_name))(self.dice.randrange(36))
        most_ns = self.dice.choice((8_000, 30_000, 90_000))
        work = Work("kernel", name, self.dice.randint(2_000, most_ns))
        nominal_ns = self.dice.randint(3_000, 8_000)
        return Launch((work,), stream, nominal_ns=nominal_ns, rings_early=self.dice.random() < 0.5)

    def record(self, stream: Stream) -> RecordEvent:
        """Return a call that records an event after the work of a stream."""
        self.recorded.append(next(self.events))
        return RecordEvent(self.recorded[-1], stream)


def two_threads(
    seed: int, *, n_streams: int = 2, shared: bool = False, crossing: bool = False, actions: int = 9
) -> Program:
    """Return two threads that launch at once.

    Parameters
    ----------
    seed
        Of everything.
    n_streams
        Of each thread.
    shared
        Whether both launch on the same streams.
    crossing
        Whether a thread lets its streams wait for events of the other.
    actions
        How many actions a step of a thread has.
    """
    dice = random.Random(f"two threads {seed}")  # noqa: S311 - no secret
    events = iter(range(1, 1_000_000))
    numbers = [_STREAMS[0] if shared else of_thread for of_thread in _STREAMS]
    lanes = [tuple(Stream(0, number) for number in some[:n_streams]) for some in numbers]
    drafts = [_Draft(dice, streams, events) for streams in lanes]
    if crossing:
        drafts[0].of_other, drafts[1].of_other = drafts[1].recorded, drafts[0].recorded
    first = operator("aten::empty", Busy(2_000))
    bodies: tuple[list[Item], list[Item]] = ([first], [first])
    for step in range(3):
        main, other = (tuple(_step(draft, actions)) for draft in drafts)
        bodies[0].append(annotation(f"ProfilerStep#{step}", *main, step=step))
        bodies[1].extend(other)
    main = (*bodies[0], Synchronize(), operator("aten::detach", Busy(5_000)))
    return Program("two threads", main, (tuple(bodies[1]),))


def _step(draft: _Draft, n_actions: int) -> Iterator[Item]:
    for _ in range(n_actions):
        yield from draft.dice.choice(_ACTIONS)(draft)
        yield operator("aten::reshape", Busy(draft.dice.randint(500, 20_000)))


def _compute(draft: _Draft) -> Iterator[Item]:
    stream = draft.stream()
    for _ in range(draft.dice.randint(1, 3)):
        yield _operator(draft, stream)


def _operator(draft: _Draft, stream: Stream) -> Frame:
    host = Busy(draft.dice.randint(1_000, 9_000))
    return operator("aten::mm", host, draft.kernel(stream), Busy(1_000))


def _fork(draft: _Draft) -> Iterator[Item]:
    """Yield work on one stream, and work on another that waits for it."""
    source, waiter = draft.stream(), draft.stream()
    yield _operator(draft, source)
    yield draft.record(source)
    yield Busy(draft.dice.randint(300, 3_000))
    yield WaitEvent(draft.recorded[-1], waiter)
    yield _operator(draft, waiter)


def _wait_for_other(draft: _Draft) -> Iterator[Item]:
    """Yield work that waits for the other thread, if that has recorded an event."""
    stream = draft.stream()
    if draft.of_other:
        yield WaitEvent(draft.dice.choice(draft.of_other[-3:]), stream)
    yield _operator(draft, stream)
    yield draft.record(stream)


def _synchronize_event(draft: _Draft) -> Iterator[Item]:
    stream = draft.stream()
    yield _operator(draft, stream)
    yield draft.record(stream)
    yield _operator(draft, draft.stream())
    yield Synchronize(event=draft.recorded[-1])


def _synchronize_stream(draft: _Draft) -> Iterator[Item]:
    yield Synchronize(stream=draft.stream())


def _synchronize_device(draft: _Draft) -> Iterator[Item]:
    if draft.dice.random() < 0.3:
        yield Synchronize()


def _copy(draft: _Draft) -> Iterator[Item]:
    stream = draft.stream()
    if draft.dice.random() < 0.5:
        yield copy_to_device(draft.dice.randint(20_000, 300_000), stream, pinned=True)
    else:
        yield item_to_host(stream)


_ACTIONS: tuple[Callable[[_Draft], Iterator[Item]], ...] = (
    _compute,
    _compute,
    _compute,
    _fork,
    _wait_for_other,
    _synchronize_event,
    _synchronize_stream,
    _synchronize_device,
    _copy,
)
