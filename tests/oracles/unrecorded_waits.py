"""Programs whose waits are not recorded, and how often a path is wrong about them without a doubt.

    python tests/oracles/unrecorded_waits.py [FIRST:END]

The shapes differ from those of the simulator's scenarios: two threads hand buffers to each other,
fan out to two streams, take turns, or share the legacy default stream. A wrong stretch of a path is
*doubted* if its certainty is `doubtful`, its kind admits ignorance or its path is inconclusive,
otherwise it is *falsely certain*.
"""

from __future__ import annotations

import random
import statistics
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

import longpole
from oracles.judge import ADMITTED, Piece, Places, overlaps, path_in, right_part_ns
from oracles.simulator import Machine, Run
from oracles.simulator.catalogue import copy_to_device, item_to_host
from oracles.simulator.program import (
    Busy,
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
    from collections.abc import Callable, Iterable, Iterator

    from oracles.simulator.program import Item
    from oracles.simulator.truth import Window

_COMPUTE, _SIDE = Stream(0, 7), Stream(0, 20)
_TOLERANCE_NS: Final = 3_000  # the least time from call to kernel is not known better than that

MOST_FALSE: Final = 0.05
"""An answer is falsely certain if a greater share of its window is."""


class Share(NamedTuple):
    """What one path says, as shares of its window."""

    right: float
    unsure: float
    """Right, but doubted."""
    doubted: float
    false: float


@dataclass(slots=True)
class _Draft:
    """A program being drawn up: its dice, its scales and the numbers of its events."""

    dice: random.Random
    kernel_ns: int
    host_ns: int
    n_events: int = 0

    def event(self) -> int:
        """Return the number of a new event."""
        self.n_events += 1
        return self.n_events

    def work(self, stream: Stream, name: str = "gemm", *, scale: float = 1.0) -> Item:
        """Return an operator that launches one kernel."""
        kernel_ns = round(scale * self.kernel_ns * self.dice.uniform(0.5, 2.0))
        launch = Launch(
            (Work("kernel", f"{name}_{self.dice.randrange(4)}", max(kernel_ns, 1_500)),),
            stream,
            nominal_ns=self.dice.randint(3_000, 7_000),
            rings_early=self.dice.random() < 0.5,
        )
        return operator("aten::mm", self.host(), launch, Busy(800))

    def host(self) -> Busy:
        """Return some time of the host."""
        return Busy(max(300, round(self.host_ns * self.dice.uniform(0.3, 1.7))))


def _draft(kind: str, seed: int) -> _Draft:
    dice = random.Random(f"{kind} {seed}")  # noqa: S311 - no secret
    return _Draft(dice, dice.choice((6_000, 20_000, 60_000)), dice.choice((1_500, 6_000, 20_000)))


def _steps(bodies: Iterable[Iterable[Item]]) -> Iterator[Item]:
    for step, body in enumerate(bodies):
        yield annotation(f"ProfilerStep#{step}", *body, step=step)


def _program(main: Iterable[Item], helper: Iterable[Item] = (), **options: Any) -> Program:
    opening = operator("aten::empty", Busy(2_000))
    helpers = tuple(helper)
    return Program(
        "unrecorded waits",
        (opening, *main, Synchronize(), operator("aten::detach", Busy(3_000))),
        ((opening, *helpers),) if helpers else (),
        **options,
    )


def _double_buffered(draft: _Draft) -> Program:
    """Return a thread that copies batches, and one that computes on them, two buffers between."""
    loaded, used = [draft.event() for _ in range(12)], [draft.event() for _ in range(12)]
    helper: list[Item] = []
    steps: list[list[Item]] = []
    for batch in range(12):
        if batch >= 2:  # there are two buffers
            helper.append(
                Synchronize(event=used[batch - 2])
                if draft.dice.random() < 0.5
                else WaitEvent(used[batch - 2], _SIDE)
            )
        copy = copy_to_device(draft.dice.randint(50_000, 900_000), _SIDE, pinned=True)
        helper += [draft.host(), copy, RecordEvent(loaded[batch], _SIDE)]
        body: list[Item] = [draft.host(), WaitEvent(loaded[batch], _COMPUTE)]
        body += [draft.work(_COMPUTE) for _ in range(draft.dice.randint(1, 3))]
        body.append(RecordEvent(used[batch], _COMPUTE))
        if draft.dice.random() < 0.3:
            body.append(Synchronize(stream=_COMPUTE))
        steps.append(body)
    return _program(_steps(_grouped(steps)), helper)


def _grouped(bodies: list[list[Item]], n: int = 4) -> Iterator[list[Item]]:
    for first in range(0, len(bodies), n):
        yield [item for body in bodies[first : first + n] for item in body]


def _taking_turns(draft: _Draft) -> Program:
    """Return two threads with a stream each that wait for their own streams again and again."""
    steps: list[list[Item]] = []
    helper: list[Item] = []
    for _ in range(3):
        body: list[Item] = []
        for _ in range(draft.dice.randint(3, 6)):
            body += [draft.work(_COMPUTE), draft.work(_COMPUTE, "relu", scale=0.3)]
            body.append(_wait(draft, _COMPUTE))
            body.append(draft.host())
            helper += [draft.work(_SIDE), draft.host(), _wait(draft, _SIDE)]
        steps.append(body)
    return _program(_steps(steps), helper)


def _wait(draft: _Draft, stream: Stream) -> Item:
    if draft.dice.random() < 0.3:
        return item_to_host(stream)
    return Synchronize(stream=stream)


def _fanned_out(draft: _Draft) -> Program:
    """Return two threads on the same two streams, which fork to the other stream and join."""
    steps: list[list[Item]] = []
    helper: list[Item] = []
    for _ in range(3):
        body: list[Item] = []
        for _ in range(draft.dice.randint(2, 4)):
            body += _fork(draft, _COMPUTE, _SIDE)
            helper += _fork(draft, _SIDE, _COMPUTE)
            if draft.dice.random() < 0.4:
                helper.append(Synchronize(stream=_SIDE))
        body.append(Synchronize(event=_last_event(body)))
        steps.append(body)
    return _program(_steps(steps), helper)


def _fork(draft: _Draft, stream: Stream, other: Stream) -> list[Item]:
    ready, done = draft.event(), draft.event()
    return [
        draft.work(stream),
        RecordEvent(ready, stream),
        WaitEvent(ready, other),
        draft.work(other, "side"),
        RecordEvent(done, other),
        draft.work(stream, "relu", scale=0.3),
        WaitEvent(done, stream),
        draft.work(stream, "join"),
        RecordEvent(draft.event(), stream),
        draft.host(),
    ]


def _last_event(body: list[Item]) -> int:
    return next(item.event for item in reversed(body) if isinstance(item, RecordEvent))


def _one_thread(draft: _Draft) -> Program:
    """Return one thread that forks, joins, copies and waits on two streams."""
    steps: list[list[Item]] = []
    for _ in range(4):
        body: list[Item] = []
        for _ in range(draft.dice.randint(2, 4)):
            body += draft.dice.choice((_fork, _fork_and_wait))(draft, _COMPUTE, _SIDE)
        steps.append(body)
    return _program(_steps(steps))


def _fork_and_wait(draft: _Draft, stream: Stream, other: Stream) -> list[Item]:
    ready = draft.event()
    copy = copy_to_device(draft.dice.randint(50_000, 600_000), other, pinned=True)
    body = [copy, RecordEvent(ready, other), draft.work(stream), WaitEvent(ready, stream)]
    return [*body, draft.work(stream), _wait(draft, stream), draft.host()]


def _legacy(draft: _Draft) -> Program:
    """Return one thread on the legacy default stream and two others that wait for it unasked."""
    others = (_SIDE, Stream(0, 24))
    steps: list[list[Item]] = []
    for _ in range(4):
        body: list[Item] = []
        for _ in range(draft.dice.randint(3, 7)):
            side = draft.dice.choice(others)
            body += [draft.work(side, "side") for _ in range(draft.dice.randint(1, 2))]
            if draft.dice.random() < 0.6:
                body.append(draft.work(_COMPUTE, scale=draft.dice.choice((0.3, 1.0))))
            if draft.dice.random() < 0.25:
                body.append(_wait(draft, draft.dice.choice((_COMPUTE, side))))
            body.append(draft.host())
        steps.append(body)
    return _program(_steps(steps), legacy_stream=_COMPUTE.number)


KINDS: Final[dict[str, tuple[tuple[Callable[[_Draft], Program], ...], dict[str, Any]]]] = {
    "two threads on two streams": ((_double_buffered, _fanned_out), {}),
    "two threads with a stream each": ((_taking_turns,), {}),
    "one thread on two streams": ((_one_thread,), {}),
    "device clock 5 us ahead": ((_one_thread, _fanned_out), {"device_clock_offset_ns": 5_000}),
    "device clock 5 us behind": ((_one_thread, _fanned_out), {"device_clock_offset_ns": -5_000}),
    "legacy default stream": ((_legacy,), {}),
}
"""For each kind of program its shapes, and the machine it runs on."""


def run_of(kind: str, seed: int) -> Run:
    """Run the program that a seed makes of a kind."""
    shapes, machine = KINDS[kind]
    program = shapes[seed % len(shapes)](_draft(kind, seed))
    return Run(program, Machine(seed=seed, **machine))


def judged(run: Run, folder: Path) -> list[Share]:
    """Judge the path of every window of a run whose waits are not recorded."""
    path = folder / "trace.json"
    order = run.write(path, sync_records=False)
    trace = longpole.read_trace(path, args="ids")
    places = Places(run, order, trace)
    tolerance_ns = _TOLERANCE_NS if run.machine.device_clock_offset_ns else 0
    return [_share(window, trace, places, tolerance_ns) for window in run.truth.windows]


def _share(window: Window, trace: longpole.Trace, places: Places, tolerance_ns: int) -> Share:
    path = path_in(trace, window)
    truth = [
        Piece(segment.start_ns, segment.end_ns, segment.kind, places.row(segment.activity))
        for segment in window.segments
    ]
    columns = ["start_ns", "duration_ns", "kind", "event", "certainty"]
    right = unsure = doubted = 0
    for start_ns, lasts_ns, kind, event, certainty in path.segments.select(columns).iter_rows():
        begin_ns = places.zero_ns + start_ns
        one = Piece(begin_ns, begin_ns + lasts_ns, kind, places.row_of_event.get(event))
        is_doubted = certainty == "doubtful" or kind in ADMITTED or path.status == "inconclusive"
        for _, number, from_ns, until_ns in overlaps([one], truth):
            good_ns = right_part_ns(one, truth, number, (from_ns, until_ns), tolerance_ns)
            right += good_ns
            unsure += good_ns if is_doubted else 0
            doubted += (until_ns - from_ns - good_ns) if is_doubted else 0
    length = truth[-1].end_ns - truth[0].start_ns
    false = length - right - doubted
    return Share(*(part / length for part in (right, unsure, doubted, false)))


def rows(seeds: Iterable[int]) -> Iterator[tuple[str, Share, float]]:
    """Yield the mean of each kind, and the share of answers that are falsely certain."""
    with tempfile.TemporaryDirectory() as folder:
        for kind in KINDS:
            shares = [it for seed in seeds for it in judged(run_of(kind, seed), Path(folder))]
            mean = Share(*(statistics.mean(column) for column in zip(*shares, strict=True)))
            yield kind, mean, statistics.mean(it.false > MOST_FALSE for it in shares)


def main() -> None:
    """Print a table of all kinds."""
    first, _, end = (sys.argv[1:] or ["0:20"])[0].partition(":")
    print("| programs | right | of it doubted | wrong, doubted | falsely certain | answers |")  # noqa: T201
    print("|---|--:|--:|--:|--:|--:|")  # noqa: T201
    for kind, mean, answers in rows(range(int(first), int(end))):
        cells = " | ".join(f"{100 * share:.1f}" for share in (*mean, answers))
        print(f"| {kind} | {cells} |", flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
