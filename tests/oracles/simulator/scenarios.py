"""Programs by what makes their traces hard to understand, each with a machine and with losses.

A scenario is judged over many seeds (`judge`): its program, its noise and its losses come from the
seed alone.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from .beside import (
    allocating,
    late_helpers,
    polling,
    queued,
    scanning,
    two_launching_threads,
    two_threads,
)
from .branching import branched_graph, joint_collectives, pipeline
from .losses import Losses
from .machine import Machine
from .program import Frame, Program, StartRecording
from .programs import graphed, inference, training
from .random_programs import random_program
from .run import Run

if TYPE_CHECKING:
    from collections.abc import Callable

_OFFSETS_US = (3, 5, 10, 20, 50, 2_000)
_CLOCK_TOLERANCE_NS = 3_000  # the least time from call to kernel is not known better than that


@dataclass(frozen=True, slots=True)
class Scenario:
    """A kind of program, the machine it runs on, and what the profiler loses of it.

    Where clocks disagree, nothing tells by how many of the last `tolerance_ns` they do.
    """

    program: Callable[[int], Program]
    machine: dict[str, Any] = field(default_factory=dict)
    losses: Losses | None = None
    tolerance_ns: int = 0


def run_scenario(name: str, seed: int) -> Run:
    """Run the program that a seed makes of a scenario."""
    scenario = SCENARIOS[name]
    machine = Machine(seed=seed, **scenario.machine)
    return Run(scenario.program(seed), machine, losses=scenario.losses)


def _backlog(seed: int) -> Program:
    """Return a random program that is recorded only from its second block on."""
    program = random_program(seed, steps=4)
    (main,) = program.main
    assert isinstance(main, Frame)
    opening, first, *rest = _opening(main)
    return replace(program, main=(*opening, first, StartRecording(), *rest))


def _opening(main: Frame) -> list[Any]:
    """Return what comes before the first block in one piece, the first block, and the rest."""
    n_before = 2
    before, (first, *rest) = main.body[:n_before], main.body[n_before:]
    return [before, first, *rest]


def _legacy(seed: int) -> Program:
    features = {"steps", "streams", "stream_synchronize", "device_synchronize", "blocking_copies"}
    return replace(random_program(seed, features=features, actions=14), legacy_stream=7)


def _often_waiting(seed: int) -> Program:
    """Return a program that waits for its device in every step: a clock needs several witnesses."""
    make = (training, inference)[seed % 2]
    return make(seed, steps=5, kernel_scale=(1, 0.4, 2.5)[seed // 2 % 3])


def _clock(offset_us: int) -> Scenario:
    machine = {"device_clock_offset_ns": offset_us * 1_000}
    return Scenario(_often_waiting, machine, tolerance_ns=_CLOCK_TOLERANCE_NS)


SCENARIOS: dict[str, Scenario] = {
    "base: random": Scenario(random_program),
    "base: training": Scenario(training),
    "base: inference": Scenario(inference),
    "base: graph on one stream": Scenario(graphed),
    **{f"clock ahead by {us} us": _clock(us) for us in _OFFSETS_US},
    **{f"clock behind by {us} us": _clock(-us) for us in _OFFSETS_US},
    "clock behind by 50 us, graphs only": Scenario(
        graphed, {"device_clock_offset_ns": -50_000}, tolerance_ns=_CLOCK_TOLERANCE_NS
    ),
    "clocks of two devices apart": Scenario(
        partial(pipeline, devices=2, steps=12),
        {"device_clock_offsets_ns": (40_000, -25_000)},
        tolerance_ns=_CLOCK_TOLERANCE_NS,
    ),
    **{
        f"clocks of two devices {one} and {other} us off": Scenario(
            partial(pipeline, devices=2),
            {"device_clock_offsets_ns": (one * 1_000, other * 1_000)},
            tolerance_ns=_CLOCK_TOLERANCE_NS,
        )
        for one, other in ((5, -5), (0, 5), (0, -5))
    },
    **{f"{n} devices": Scenario(partial(pipeline, devices=n)) for n in (2, 4, 8)},
    **{
        f"joint collectives, {n} devices": Scenario(partial(joint_collectives, devices=n))
        for n in (2, 4, 8)
    },
    **{
        f"graph, {n} streams, {replays} replays": Scenario(
            partial(branched_graph, streams=n, replays=replays)
        )
        for n, replays in ((2, 10), (4, 10), (8, 10), (16, 10), (2, 1), (4, 1), (2, 3), (4, 3))
    },
    "graph, 4 streams, node ids": Scenario(
        partial(branched_graph, streams=4, replays=10, tell_ids=True)
    ),
    "graph, nodes lost": Scenario(
        partial(branched_graph, streams=4, replays=10), losses=Losses(graph_nodes=0.1)
    ),
    "graph, nodes hidden": Scenario(
        partial(branched_graph, streams=4, replays=10), losses=Losses(hidden_nodes=0.3)
    ),
    "late helper": Scenario(partial(late_helpers, helpers=1)),
    "late helpers": Scenario(partial(late_helpers, helpers=3)),
    "queue, 1 loader": Scenario(partial(queued, loaders=1)),
    "queue, 3 loaders": Scenario(partial(queued, loaders=3)),
    "queue, 8 loaders": Scenario(partial(queued, loaders=8, batches=64)),
    "queue, 1 loader, 2 consumers": Scenario(partial(queued, loaders=1, consumers=2)),
    "queue, 4 loaders, 2 consumers": Scenario(partial(queued, loaders=4, consumers=2, batches=48)),
    "queue, wake-up after 30 us": Scenario(partial(queued, loaders=2, wake_ns=30_000)),
    "queue, wake-up after 80 us": Scenario(partial(queued, loaders=2, wake_ns=80_000)),
    "polling, tight": Scenario(partial(polling, rest_ns=300)),
    "polling, sleeping": Scenario(partial(polling, rest_ns=20_000)),
    "polling beside scans": Scenario(partial(polling, rest_ns=300, scans=True)),
    "allocator scans": Scenario(scanning),
    "launches lost": Scenario(random_program, losses=Losses(launches=0.1)),
    "kernels lost": Scenario(random_program, losses=Losses(kernels=0.1)),
    "device buffer lost": Scenario(random_program, losses=Losses(buffer=(0.4, 0.55))),
    "backlog": Scenario(_backlog),
    "malloc that waits": Scenario(partial(allocating, malloc_waits=True)),
    "malloc that does not": Scenario(partial(allocating, malloc_waits=False)),
    "legacy default stream": Scenario(_legacy),
    "two launching threads": Scenario(two_launching_threads),
    "two threads, a stream each": Scenario(partial(two_threads, n_streams=1)),
    "two threads, two streams each": Scenario(two_threads),
    "two threads, the same streams": Scenario(partial(two_threads, shared=True)),
    "two threads, events of each other": Scenario(partial(two_threads, shared=True, crossing=True)),
}
