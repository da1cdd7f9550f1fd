"""Programs of several threads, and of waits that no call names: queues, polling, allocation."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from .catalogue import elementwise_name, gemm_name
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
    Work,
    annotation,
    operator,
    python,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

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
