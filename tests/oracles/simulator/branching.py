"""Programs on many streams and devices: graphs with branches, pipelines, joint collectives."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from .catalogue import copy_to_device, elementwise_name, gemm_name, item_to_host
from .program import (
    Busy,
    Call,
    Frame,
    Item,
    Joint,
    Launch,
    Node,
    Program,
    RecordEvent,
    Replay,
    Stream,
    Synchronize,
    WaitEvent,
    Work,
    annotation,
    operator,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

_COMPUTE = 7
_SIDE = 13
_COMMUNICATION = 20
_FIRST_BRANCH = 40
_ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"


def branched_graph(
    seed: int, *, streams: int, replays: int, nodes: int = 30, tell_ids: bool = False
) -> Program:
    """Return replays of one captured graph whose branches run on several streams.

    Parameters
    ----------
    seed
        Of the graph and what is around it.
    streams
        Of the graph, the one it is launched on among them.
    replays
        How often the graph is launched.
    nodes
        Of the graph.
    tell_ids
        Whether the profiler tells the numbers of graph and nodes.
    """
    dice = random.Random(f"graph {seed}")  # noqa: S311 - no secret
    stream = Stream(0, _COMPUTE)
    graph = Replay(_captured(dice, streams, nodes), stream, graph=4 if tell_ids else None)
    body = [_replay(dice, graph, step) for step in range(replays)]
    return Program("branched", (Busy(2_000), *body, operator("aten::detach", Busy(9_000))))


def _captured(dice: random.Random, n_streams: int, n_nodes: int) -> tuple[Node, ...]:
    """Return nodes on several streams; forks begin at the first node, the last joins all."""
    streams = [Stream(0, _COMPUTE), *(Stream(0, _FIRST_BRANCH + i) for i in range(n_streams - 1))]
    nodes = [Node(_kernel_work(dice), streams[0])]
    last = {streams[0]: 0}
    for number in range(1, max(n_nodes, n_streams + 2)):
        stream = streams[number] if number < n_streams else dice.choice(streams)
        others = [other for lane, other in last.items() if lane != stream]
        forks = stream not in last
        after = (dice.choice(others),) if others and (forks or dice.random() < 0.4) else ()
        nodes.append(Node(_kernel_work(dice), stream, after))
        last[stream] = number
    joined = tuple(number for lane, number in last.items() if lane != streams[0])
    return (*nodes, Node(_kernel_work(dice), streams[0], joined))


def _replay(dice: random.Random, graph: Replay, step: int) -> Frame:
    end = Synchronize(stream=graph.stream) if dice.random() < 0.5 else item_to_host(graph.stream)
    return annotation(
        f"ProfilerStep#{step}",
        Busy(3_000),
        copy_to_device(dice.randint(20_000, 300_000), graph.stream, pinned=True),
        operator("GraphedCall", Busy(4_000), graph, Busy(2_000)),
        operator("aten::mul", Busy(3_000), _launch(dice, graph.stream), Busy(1_000)),
        end,
        operator("aten::reshape", Busy(dice.randint(2_000, 40_000))),
        step=step,
    )


# Several devices


def pipeline(seed: int, *, devices: int, steps: int = 3, batches: int = 3) -> Program:
    """Return steps in which every device goes on with what the one before it has made."""
    dice = random.Random(f"pipeline {seed}")  # noqa: S311 - no secret
    events = iter(range(1, 1_000_000))
    body = [_pipelined_step(dice, events, devices, step, batches) for step in range(steps)]
    return Program("pipeline", (Busy(2_000), *body), n_devices=devices)


def _pipelined_step(
    dice: random.Random, events: Iterator[int], n_devices: int, step: int, n_batches: int
) -> Frame:
    body: list[Item] = [Busy(3_000)]
    for _ in range(n_batches):
        before: int | None = None
        for device in range(n_devices):
            done = next(events)
            body += [
                Call("cudaSetDevice", 700),
                *_stage(dice, events, (device, n_devices), before, done),
            ]
            before = done
    awaited = dice.choice([0, n_devices - 1, n_devices - 1, dice.randrange(n_devices)])
    ends = (Synchronize(awaited), item_to_host(Stream(awaited, _COMPUTE)), Synchronize(event=done))
    body += [dice.choice(ends), operator("aten::reshape", Busy(dice.randint(2_000, 60_000)))]
    return annotation(f"ProfilerStep#{step}", *body, step=step)


def _stage(
    dice: random.Random,
    events: Iterator[int],
    of_devices: tuple[int, int],
    before: int | None,
    done: int,
) -> Iterator[Item]:
    """Yield the work of one device for one batch, partly concurrent."""
    device, scale = of_devices
    stream, side = Stream(device, _COMPUTE), Stream(device, _SIDE)
    beside = dice.random() < 0.3
    if beside:
        yield operator("aten::exp", Busy(2_000), _launch(dice, side, scale), Busy(800))
    if before is not None:
        yield WaitEvent(before, stream)
    for _ in range(dice.randint(1, 3)):
        yield operator("aten::mm", Busy(dice.randint(1_000, 8_000)), _launch(dice, stream, scale))
    if beside:
        ready = next(events)
        yield RecordEvent(ready, side)
        yield WaitEvent(ready, stream)
        yield operator("aten::cat", Busy(2_000), _launch(dice, stream))
    yield RecordEvent(done, stream)


def joint_collectives(seed: int, *, devices: int, steps: int = 3) -> Program:
    """Return data-parallel training of several devices by one process, all-reduces and all."""
    dice = random.Random(f"joint {seed}")  # noqa: S311 - no secret
    events = iter(range(1, 1_000_000))
    body = [_parallel_step(dice, events, devices, step) for step in range(steps)]
    return Program("joint", (Busy(2_000), *body), n_devices=devices, world_size=devices)


def _parallel_step(dice: random.Random, events: Iterator[int], n_devices: int, step: int) -> Frame:
    body: list[Item] = [Busy(3_000)]
    for _ in range(dice.randint(1, 3)):
        for device in range(n_devices):
            body += [Call("cudaSetDevice", 700), *_gradients(dice, device, n_devices)]
        body += _reduce(dice, events, n_devices)
    for device in range(n_devices):
        body += [Call("cudaSetDevice", 700)]
        body += [operator("aten::_foreach_mul_", Busy(4_000), _launch(dice, _compute(device)))]
    awaited = dice.randrange(n_devices)
    end = Synchronize(awaited) if dice.random() < 0.5 else item_to_host(_compute(awaited))
    body += [end, operator("aten::reshape", Busy(dice.randint(2_000, 60_000)))]
    return annotation(f"ProfilerStep#{step}", *body, step=step)


def _compute(device: int) -> Stream:
    return Stream(device, _COMPUTE)


def _gradients(dice: random.Random, device: int, scale: int) -> Iterator[Item]:
    for _ in range(dice.randint(1, 3)):
        launch = _launch(dice, _compute(device), scale)
        yield operator("aten::mm", Busy(dice.randint(1_000, 9_000)), launch, Busy(600))


def _reduce(dice: random.Random, events: Iterator[int], n_devices: int) -> Iterator[Item]:
    """Yield a collective after the work of each device, and the waits of each for its end."""
    lanes = [Stream(device, _COMMUNICATION) for device in range(n_devices)]
    for lane in lanes:
        ready = next(events)
        yield RecordEvent(ready, _compute(lane.device))
        yield WaitEvent(ready, lane)
    work = Work("kernel", _ALL_REDUCE, dice.randint(15_000, 90_000), {"Group size": n_devices})
    launches = (Launch((work,), lane, name="cudaLaunchKernelExC") for lane in lanes)
    yield operator("nccl:all_reduce", Busy(3_000), Joint(tuple(launches)), Busy(1_500))
    for lane in lanes:
        done = next(events)
        yield RecordEvent(done, lane)
        yield WaitEvent(done, _compute(lane.device))


def _kernel_work(dice: random.Random, scale: int = 1) -> Work:
    name = dice.choice((gemm_name, elementwise_name))(dice.randrange(36))
    return Work("kernel", name, scale * dice.randint(2_000, dice.choice((8_000, 30_000, 60_000))))


def _launch(dice: random.Random, stream: Stream, scale: int = 1) -> Launch:
    work = _kernel_work(dice, scale)
    return Launch((work,), stream, nominal_ns=dice.randint(3_000, 7_000))
