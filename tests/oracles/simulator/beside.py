"""Programs of several threads, and of waits that no call names: queues, polling, allocation."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .catalogue import copy_to_device, elementwise_name, gemm_name, item_to_host
from .program import (
    Busy,
    Call,
    Frame,
    Get,
    Item,
    Launch,
    Poll,
    Program,
    Put,
    RecordEvent,
    Start,
    Stream,
    Synchronize,
    WaitEvent,
    Work,
    annotation,
    operator,
    python,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


_STREAM = Stream(0, 7)
_BATCHES = 0  # the queue of them


def late_helpers(seed: int, *, helpers: int) -> Program:
    """Return a program whose device work comes from threads that start late.

    As with Python's threads, who starts one goes on only when it runs.
    """
    dice = random.Random(f"late {seed}")  # noqa: S311 - no secret
    main: list[Item] = [operator("aten::empty", Busy(4_000)), Busy(2_000)]
    bodies: list[tuple[Item, ...]] = []
    for helper in range(helpers):
        wake_ns = dice.choice((30_000, 90_000, 180_000, 500_000))
        stream = Stream(0, 20 + helper)
        start = python("threading.py(938): start", Start(helper, wake_ns), Busy(2 * wake_ns))
        main += [operator("aten::ones_like", Busy(dice.randint(3_000, 50_000))), start]
        main += [operator("aten::reshape", Busy(dice.randint(2_000, 20_000)))]
        main += [Synchronize(), operator("aten::add", Busy(8_000), _launch(dice), Busy(1_000))]
        bodies.append(tuple(_helper_work(dice, stream, 3 * wake_ns)))
    main += [Synchronize(), operator("aten::detach", Busy(6_000))]
    late = frozenset(range(helpers))
    return Program("late", tuple(main), tuple(bodies), late_helpers=late)


def _helper_work(dice: random.Random, stream: Stream, at_least_ns: int) -> Iterator[Item]:
    """Yield operators that launch, the first of them so long that it is still awaited."""
    yield operator("aten::mm", Busy(3_000), _launch(dice, stream, at_least_ns), Busy(1_000))
    for _ in range(dice.randint(2, 6)):
        yield operator("aten::mm", Busy(dice.randint(2_000, 30_000)), _launch(dice, stream))
        yield Busy(dice.randint(1_000, 6_000))


def queued(
    seed: int, *, loaders: int, consumers: int = 1, wake_ns: int = 8_000, batches: int = 24
) -> Program:
    """Return threads that load batches, and threads that wait for them and compute."""
    dice = random.Random(f"queue {seed}")  # noqa: S311 - no secret
    compute_ns = dice.randint(60_000, 200_000)
    load_ns = round(compute_ns * loaders / consumers * dice.uniform(1.3, 2.5))
    per_loader, per_consumer = batches // loaders, batches // consumers
    names = ("aten::stack", "DecodeJpeg", "aten::_to_copy")
    name = dice.choice(names)
    bodies = [tuple(_load(dice, name, load_ns, per_loader, wake_ns)) for _ in range(loaders)]
    bodies += [
        tuple(_consume(dice, compute_ns, per_consumer, wake_ns, Stream(0, 20)))
        for _ in range(consumers - 1)
    ]
    main = _consume(dice, compute_ns, per_consumer, wake_ns, _STREAM)
    return Program("queued", (*main, operator("aten::detach", Busy(5_000))), tuple(bodies))


def _load(
    dice: random.Random, name: str, load_ns: int, batches: int, wake_ns: int
) -> Iterator[Item]:
    for _ in range(batches):
        load = Busy(round(load_ns * dice.uniform(0.7, 1.3)))
        yield python("loader.py(31): load", operator(name, load))
        yield Put(_BATCHES, capacity=4, wake_ns=wake_ns)


def _consume(
    dice: random.Random, compute_ns: int, batches: int, wake_ns: int, stream: Stream
) -> Iterator[Item]:
    for _ in range(batches):
        yield python("queue.py(154): get", Get(_BATCHES, wake_ns))
        host = Busy(round(compute_ns * dice.uniform(0.2, 0.5)))
        yield operator("aten::linear", host, _launch(dice, stream, compute_ns // 3), Busy(2_000))
        yield operator("aten::relu", Busy(3_000), _launch(dice, stream))


def polling(seed: int, *, rest_ns: int, loops: int = 12, scans: bool = False) -> Program:
    """Return loops that ask for an event until it happened; with `scans` also an allocator's."""
    dice = random.Random(f"poll {seed}")  # noqa: S311 - no secret
    body: list[Item] = [operator("aten::empty", Busy(5_000))]
    for number in range(loops):
        body += [operator("aten::mm", Busy(4_000), _launch(dice), Busy(1_000)), Busy(1_500)]
        body += [operator("aten::mm", Busy(4_000), _launch(dice, least_ns=60_000), Busy(900))]
        body += [RecordEvent(number, _STREAM), Busy(dice.randint(500, 9_000))]
        body += _scan(dice) if scans else ()
        body += [python("poll.py(12): wait", Poll(number, rest_ns)), Busy(1_000)]
        body += [operator("aten::reshape", Busy(dice.randint(2_000, 50_000)))]
    return Program("polling", tuple(body))


def scanning(seed: int, *, loops: int = 12) -> Program:
    """Return an allocator that asks for several events now and then, and waits for none."""
    dice = random.Random(f"scan {seed}")  # noqa: S311 - no secret
    body: list[Item] = [operator("aten::empty", Busy(5_000))]
    for _ in range(loops):
        body += [operator("aten::mm", Busy(4_000), _launch(dice, least_ns=40_000), Busy(1_000))]
        body += [operator("aten::empty", Busy(1_500), *_scan(dice), Busy(2_500))]
        body += [operator("aten::reshape", Busy(dice.randint(2_000, 90_000)))]
        body += [Synchronize(stream=_STREAM)] if dice.random() < 0.4 else []
    return Program("scanning", tuple(body))


def _scan(dice: random.Random) -> Iterator[Item]:
    """Yield an allocator's look at its events: many queries in a row, whatever they say."""
    for _ in range(dice.choice((4, 5, 7, 11, 24))):
        yield Call("cudaEventQuery", 700)
        yield Busy(200)


def allocating(seed: int, *, malloc_waits: bool, blocks: int = 14) -> Program:
    """Return allocations while the device works: `cudaFree` waits for it, `cudaMalloc` may not."""
    dice = random.Random(f"allocate {seed}")  # noqa: S311 - no secret
    body: list[Item] = [operator("aten::empty", Busy(5_000))]
    for _ in range(blocks):
        for _ in range(dice.randint(1, 4)):
            body += [operator("aten::mm", Busy(4_000), _launch(dice, least_ns=30_000), Busy(900))]
        body += [_allocation(dice, malloc_waits=malloc_waits), Busy(1_500)]
        body += [operator("aten::reshape", Busy(dice.randint(2_000, 40_000)))]
    return Program("allocating", (*body, operator("aten::detach", Busy(4_000))))


def _allocation(dice: random.Random, *, malloc_waits: bool) -> Frame:
    nominal_ns = dice.randint(9_000, 80_000)
    if dice.random() < 0.4:
        return operator("aten::resize_", Synchronize(name="cudaFree", nominal_ns=nominal_ns))
    if malloc_waits:
        return operator("aten::empty", Synchronize(name="cudaMalloc", nominal_ns=nominal_ns))
    return operator("aten::empty", Busy(2_000), Call("cudaMalloc", nominal_ns), Busy(1_000))


def two_launching_threads(seed: int, *, actions: int = 14) -> Program:
    """Return two threads that launch at once, each on two streams of its own, and wait for them."""
    dice = random.Random(f"two {seed}")  # noqa: S311 - no secret
    main = tuple(_launching(dice, (Stream(0, 7), Stream(0, 13)), actions))
    other = tuple(_launching(dice, (Stream(0, 20), Stream(0, 24)), actions))
    return Program("two threads", (*main, Synchronize(), operator("end", Busy(5_000))), (other,))


def _launching(dice: random.Random, streams: tuple[Stream, ...], actions: int) -> Iterator[Item]:
    for _ in range(actions):
        stream = dice.choice(streams)
        for _ in range(dice.randint(1, 3)):
            yield operator("aten::mm", Busy(dice.randint(2_000, 9_000)), _launch(dice, stream))
        if dice.random() < 0.6:
            yield Synchronize(stream=stream)
        yield annotation("block", operator("aten::reshape", Busy(dice.randint(1_000, 30_000))))


def _launch(dice: random.Random, stream: Stream = _STREAM, least_ns: int = 2_000) -> Launch:
    name = dice.choice((gemm_name, elementwise_name))(dice.randrange(36))
    work = Work("kernel", name, dice.randint(least_ns, 2 * least_ns + dice.choice((8_000, 60_000))))
    return Launch((work,), stream, nominal_ns=dice.randint(3_000, 7_000))


# Programs of two threads that launch at once, and let streams wait for each other.


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
