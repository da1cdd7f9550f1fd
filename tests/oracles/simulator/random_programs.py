"""Programs that make no sense, but mix everything that a path has to understand.

A program is a few blocks of random actions. Each action is what some code could do: an operator,
a fork to another stream, a collective, a blocking copy. Features choose the kinds of action.

Some patterns are left out on purpose, because no trace tells what happened in them: a stream that
waits for an event but gets no work before it is itself recorded or awaited, two threads that
launch at once, and slow allocations while a device works.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from .catalogue import (
    all_reduce,
    copy_to_device,
    elementwise_name,
    gemm_name,
    item_to_host,
    view,
    zero,
)
from .program import (
    Backward,
    Busy,
    Call,
    Frame,
    Item,
    Launch,
    Memory,
    Program,
    RecordEvent,
    Stream,
    Synchronize,
    WaitEvent,
    Work,
    annotation,
    operator,
    python,
)

_SHARES = {
    "steps": 0.8,
    "backward": 0.5,
    "streams": 0.7,
    "devices": 0.25,
    "event_waits": 0.6,
    "event_synchronize": 0.5,
    "stream_synchronize": 0.5,
    "device_synchronize": 0.4,
    "pinned_copies": 0.5,
    "blocking_copies": 0.4,
    "memset": 0.4,
    "collectives": 0.4,
    "graphs": 0.3,
    "loading": 0.5,
    "driver": 0.4,
    "memory": 0.3,
    "polling": 0.3,
    "free": 0.15,
    "helper": 0.2,
    "full_queue": 0.03,
}
FEATURES = frozenset(_SHARES)
"""What a random program may have."""

RARE_FEATURES = frozenset({"late_records"})
"""What it has only if asked for."""

_WORLD_SIZE = 4
_COMMUNICATION = 31
_FIRST_STREAM = Stream(0, 7)


@dataclass(slots=True)
class _Draft:
    """A program being drawn up: the dice, the streams there are, the numbers given out."""

    dice: random.Random
    features: frozenset[str]
    stream: Stream = _FIRST_STREAM
    n_events: int = 0
    sequence: int = 500
    gradients: list[int] = field(default_factory=list)

    def chance(self, share: float) -> bool:
        """Return true in this share of cases."""
        return self.dice.random() < share

    def host(self, most_ns: int = 20_000) -> Busy:
        """Return some time of the host; mostly short."""
        return Busy(self.dice.randint(200, self.dice.choice((2_000, 6_000, most_ns))))

    def kernel_ns(self) -> int:
        """Return the duration of a kernel; mostly short."""
        return self.dice.randint(1_500, self.dice.choice((5_000, 30_000, 120_000)))

    def other_stream(self) -> Stream:
        """Return another stream of the same device."""
        numbers = (number for number in (7, 20, 24, 28) if number != self.stream.number)
        return Stream(self.stream.device, self.dice.choice(list(numbers)))

    def next_event(self) -> int:
        """Return the number of a new device event."""
        self.n_events += 1
        return self.n_events


_Action = Callable[[_Draft], Iterable[Item]]


def random_program(
    seed: int, *, features: Iterable[str] | None = None, steps: int = 3, actions: int = 9
) -> Program:
    """Return a program of random actions.

    Parameters
    ----------
    seed
        Of everything.
    features
        Some of `FEATURES` and `RARE_FEATURES`; by default every program has some of the first.
    steps
        How many blocks of actions; with the feature `steps` each is a profiler step.
    actions
        How many actions a block has at most.
    """
    dice = random.Random(f"program {seed}")  # noqa: S311 - no secret
    drawn = frozenset(name for name, share in _SHARES.items() if dice.random() < share)
    draft = _Draft(dice, drawn if features is None else frozenset(features))
    blocks = [_block(draft, number, actions) for number in range(steps)]
    main = python("odd.py(12): main", *_opening(draft), *blocks, *_ending(draft))
    helpers = (_helper(draft),) if "helper" in draft.features else ()
    n_devices = 2 if "devices" in draft.features else 1
    return Program("random", (main,), helpers, n_devices, world_size=_WORLD_SIZE)


def _opening(draft: _Draft) -> Iterator[Item]:
    """Yield the allocations, all before any device has work."""
    yield operator("aten::empty", Busy(2_000), Call("cudaMalloc", 90_000), Busy(1_000))
    yield draft.host()


def _ending(draft: _Draft) -> Iterator[Item]:
    yield operator("aten::add", draft.host(), _kernel(draft), draft.host())
    if "free" in draft.features:
        yield Synchronize(device=draft.stream.device, name="cudaFree", nominal_ns=20_000)
    yield operator("aten::detach", draft.host())


def _helper(draft: _Draft) -> tuple[Item, ...]:
    """Return thread work that no other thread waits for."""
    work = [operator("aten::pin_memory", draft.host(90_000), view("aten::view")) for _ in range(6)]
    return (python("torch/utils/data/_utils/pin_memory.py(20): _pin_memory_loop", *work),)


def _block(draft: _Draft, number: int, n_actions: int) -> Frame:
    body: list[Item] = [draft.host()]
    choices = _choices(draft)
    for _ in range(draft.dice.randint(3, n_actions)):
        body += draft.dice.choice(choices)(draft)
        body += [draft.host()] if draft.chance(0.7) else []
    if "backward" in draft.features:
        body += _backward(draft)
    if "full_queue" in draft.features and number == 0:
        body += _full_queue(draft)
    if "steps" in draft.features:
        return annotation(f"ProfilerStep#{number}", *body, step=number)
    return python(f"odd.py({30 + number}): block", *body)


def _choices(draft: _Draft) -> list[_Action]:
    actions = [action for feature, action in _ACTIONS if feature in draft.features]
    return [_compute, _compute, _compute, _host_only, *actions]


# Actions


def _kernel(draft: _Draft, stream: Stream | None = None) -> Launch:
    """Return the launch of one kernel by some call."""
    variant = draft.dice.randrange(36)
    name = draft.dice.choice((gemm_name, elementwise_name))(variant)
    by_driver = "driver" in draft.features and draft.chance(0.3)
    return Launch(
        (Work("kernel", name, draft.kernel_ns()),),
        stream or draft.stream,
        name="cuLaunchKernel" if by_driver else "cudaLaunchKernel",
        nominal_ns=draft.dice.randint(3_000, 9_000),
        category="cuda_driver" if by_driver else "cuda_runtime",
        rings_early=draft.chance(0.5),
    )


def _compute(draft: _Draft) -> Iterator[Item]:
    """Yield an operator that launches, perhaps several kernels, perhaps from inner operators."""
    draft.sequence += 1
    draft.gradients.append(draft.sequence)
    inner: list[Item] = [draft.host()]
    for _ in range(draft.dice.choice((1, 1, 1, 2, 3))):
        inner += [_kernel(draft), draft.host(4_000)]
    if draft.chance(0.5):
        inner = [draft.host(3_000), operator("aten::addmm", *inner), draft.host(3_000)]
    frame = operator("aten::linear", *inner, sequence=draft.sequence)
    yield python("odd.py(77): layer", draft.host(2_000), frame, draft.host(2_000))


def _host_only(draft: _Draft) -> Iterator[Item]:
    yield operator("aten::reshape", draft.host(), view("aten::view"), draft.host(60_000))


def _move_to_stream(draft: _Draft) -> Iterator[Item]:
    draft.stream = draft.other_stream()
    yield Call("cudaStreamIsCapturing", 500)


def _move_to_device(draft: _Draft) -> Iterator[Item]:
    draft.stream = Stream(1 - draft.stream.device, 7)
    yield Call("cudaSetDevice", 700)
    yield from _compute(draft)


def _fork(draft: _Draft) -> Iterator[Item]:
    """Yield work on one or two streams, and work on another that waits for it."""
    waiter = draft.other_stream()
    events: list[int] = []
    for _ in range(draft.dice.choice((1, 1, 2))):
        stream = draft.stream if not events else draft.other_stream()
        if stream == waiter:
            continue
        events.append(draft.next_event())
        yield operator("aten::mul", draft.host(), _kernel(draft, stream), draft.host(2_000))
        yield RecordEvent(events[-1], stream)
    yield draft.host()
    yield from (WaitEvent(event, waiter) for event in events)
    yield operator("aten::cat", draft.host(4_000), _kernel(draft, waiter), draft.host(2_000))


def _late_record(draft: _Draft) -> Iterator[Item]:
    """Yield work on two streams, an event after the first, and work that waits for it."""
    waiter, other, event = draft.other_stream(), draft.other_stream(), draft.next_event()
    yield operator("aten::mul", draft.host(), _kernel(draft), draft.host(2_000))
    if other != waiter:
        yield operator("aten::add", draft.host(), _kernel(draft, other), draft.host(2_000))
    yield RecordEvent(event, draft.stream)
    yield from _compute(draft) if draft.chance(0.5) else ()
    yield WaitEvent(event, waiter)
    yield operator("aten::cat", draft.host(4_000), _kernel(draft, waiter), draft.host(2_000))


def _event_synchronize(draft: _Draft) -> Iterator[Item]:
    event = draft.next_event()
    yield operator("aten::sum", draft.host(), _kernel(draft), draft.host(2_000))
    yield RecordEvent(event, draft.stream)
    yield from _compute(draft)
    yield Synchronize(event=event)


def _stream_synchronize(draft: _Draft) -> Iterator[Item]:
    yield Synchronize(stream=draft.stream)


def _device_synchronize(draft: _Draft) -> Iterator[Item]:
    yield python("torch/cuda/__init__.py(1040): synchronize", Synchronize(draft.stream.device))


def _pinned_copy(draft: _Draft) -> Iterator[Item]:
    yield copy_to_device(draft.dice.randint(100_000, 900_000), draft.stream, pinned=True)


def _blocking_copy(draft: _Draft) -> Iterator[Item]:
    if draft.chance(0.5):
        yield copy_to_device(draft.dice.randint(1_000, 200_000), draft.stream, pinned=False)
    else:
        yield item_to_host(draft.stream)


def _memset(draft: _Draft) -> Iterator[Item]:
    yield zero(draft.dice.randint(1_000, 100_000), draft.stream)


def _collective(draft: _Draft) -> Iterator[Item]:
    """Yield an all-reduce on its own stream, after this stream's work; then work that waits."""
    communication = Stream(draft.stream.device, _COMMUNICATION)
    ready, reduced = draft.next_event(), draft.next_event()
    yield operator("aten::copy_", draft.host(3_000), _kernel(draft), draft.host(2_000))
    yield all_reduce(
        250_000,
        2 * draft.kernel_ns() + 10_000,
        after=draft.stream,
        stream=communication,
        events=(ready, reduced),
        world_size=_WORLD_SIZE,
    )
    yield from _compute(draft)
    yield WaitEvent(reduced, draft.stream)
    yield operator("aten::div_", draft.host(3_000), _kernel(draft), draft.host(2_000))


def _graph(draft: _Draft) -> Iterator[Item]:
    works = tuple(
        Work("kernel", elementwise_name(variant), draft.kernel_ns() // 2)
        for variant in range(draft.dice.randint(4, 14))
    )
    graph = Launch(works, draft.stream, name="cudaGraphLaunch", nominal_ns=14_000)
    yield python("torch/cuda/graphs.py(88): replay", draft.host(2_000), graph, draft.host(2_000))


def _loading(draft: _Draft) -> Iterator[Item]:
    name = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
    stack = operator("aten::stack", draft.host(80_000), operator("aten::cat", draft.host()))
    fetch = annotation(name, draft.host(), stack, draft.host(), loading=True)
    function = "torch/utils/data/dataloader.py(733): __next__"
    yield Frame("python_function", function, (draft.host(2_000), fetch), loading=True)


def _memory(draft: _Draft) -> Iterator[Item]:
    n_bytes = 512 * draft.dice.randint(1, 4_000)
    yield Memory(n_bytes, draft.stream.device)
    yield operator("aten::empty", draft.host(3_000))
    yield Memory(-n_bytes, draft.stream.device)


def _polling(draft: _Draft) -> Iterator[Item]:
    for _ in range(3):
        yield Call("cudaEventQuery", 900)
        yield draft.host(2_000)


def _backward(draft: _Draft) -> Iterator[Item]:
    """Yield the gradients of what was computed since the last time."""
    body: list[Item] = []
    for sequence in reversed(draft.gradients):
        node = operator(
            "AddmmBackward0", draft.host(3_000), _kernel(draft), draft.host(), sequence=sequence
        )
        name = "autograd::engine::evaluate_function: AddmmBackward0"
        body += [operator(name, draft.host(2_000), node, sequence=sequence), draft.host(3_000)]
    draft.gradients.clear()
    if body:
        yield python("torch/_tensor.py(570): backward", Backward(tuple(body)))


def _full_queue(draft: _Draft) -> Iterator[Item]:
    """Yield more launches than a queue holds; then so much host work that the queue runs dry."""
    name = elementwise_name(draft.dice.randrange(16))
    for _ in range(1_100):
        work = Work("kernel", name, 45_000)
        yield Launch((work,), draft.stream, nominal_ns=3_000)
    if draft.chance(0.6):
        yield operator("aten::unique", Busy(70_000_000))


_ACTIONS: list[tuple[str, _Action]] = [
    ("streams", _move_to_stream),
    ("devices", _move_to_device),
    ("event_waits", _fork),
    ("event_synchronize", _event_synchronize),
    ("stream_synchronize", _stream_synchronize),
    ("device_synchronize", _device_synchronize),
    ("pinned_copies", _pinned_copy),
    ("blocking_copies", _blocking_copy),
    ("memset", _memset),
    ("collectives", _collective),
    ("graphs", _graph),
    ("loading", _loading),
    ("memory", _memory),
    ("polling", _polling),
    ("late_records", _late_record),
]
