"""Programs that look like what people profile: training, inference, a captured graph."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from .catalogue import (
    all_reduce,
    copy_to_device,
    elementwise,
    elementwise_name,
    flash_attention,
    fused_optimizer,
    gemm_name,
    item_to_host,
    launch,
    layer_norm,
    linear,
    view,
    zero,
)
from .program import (
    Backward,
    Busy,
    Frame,
    Item,
    Launch,
    Memory,
    Program,
    Replay,
    Stream,
    Synchronize,
    WaitEvent,
    Work,
    annotation,
    operator,
    python,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path


COMPUTE = Stream(0, 7)
COMMUNICATION = Stream(0, 20)
_FIRST_SEQUENCE = 1_000
_REDUCE_KERNEL = (
    "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::func_wrapper_t"
    "<float, at::native::sum_functor<float, float, float>::operator()(at::TensorIterator&)::"
    "{lambda(float, float)#1}>, unsigned int, float, 4, 4> >(at::native::ReduceOp<float, "
    "at::native::func_wrapper_t<float, at::native::sum_functor<float, float, float>::operator()"
    "(at::TensorIterator&)::{lambda(float, float)#1}>, unsigned int, float, 4, 4>)"
)


LayerKind: TypeAlias = Literal["linear", "attention", "norm"]
_GRADIENTS: dict[LayerKind, str] = {
    "linear": "AddmmBackward0",
    "attention": "ScaledDotProductFlashAttentionBackward0",
    "norm": "NativeLayerNormBackward0",
}
_MODULES: dict[LayerKind, tuple[str, str]] = {
    "linear": ("Linear", "torch/nn/modules/linear.py(125): forward"),
    "attention": ("MultiheadAttention", "torch/nn/modules/activation.py(1275): forward"),
    "norm": ("LayerNorm", "torch/nn/modules/normalization.py(228): forward"),
}


class Layer(NamedTuple):
    """A layer of a model: what it computes, with which kernels, for how long."""

    kind: LayerKind
    variant: int
    kernel_ns: int


def training(
    seed: int, *, steps: int = 3, layers: int = 4, world_size: int = 8, kernel_scale: float = 1.0
) -> Program:
    """Return training steps: loader, copies, forward, backward with all-reduce, optimizer.

    Parameters
    ----------
    seed
        Chooses the layers.
    steps
        How many steps.
    layers
        Of the model; each has some 60 events in a step.
    world_size
        Ranks that train together; with 1 there is no communication.
    kernel_scale
        Factor on the duration of kernels: below 1 the host is the long pole, above 1 the device.
    """
    model = _draw_model(seed, layers, kernel_scale)
    body = [_training_step(model, step, world_size) for step in range(steps)]
    return Program("training", (_script("train.py(88): main", *body),), world_size=world_size)


def inference(seed: int, *, steps: int = 4, layers: int = 4, kernel_scale: float = 1.0) -> Program:
    """Return requests that are answered one after the other, without profiler steps.

    There are `steps` of them. Each is loaded, copied from pageable memory, computed, and read
    back, which waits.
    """
    model = _draw_model(seed, layers, kernel_scale)
    body = [_request(model, request) for request in range(steps)]
    return Program("inference", (_script("serve.py(41): main", *body),))


def graphed(seed: int, *, steps: int = 4, kernels: int = 40, kernel_scale: float = 1.0) -> Program:
    """Return steps that replay one captured graph: a call, and many kernels from it."""
    model = _draw_model(seed, kernels, kernel_scale)
    works = tuple(Work("kernel", _kernel_name(layer), layer.kernel_ns) for layer in model)
    body = [_replay(works, step) for step in range(steps)]
    return Program("graphed", (_script("replay.py(27): main", *body),))


def _draw_model(seed: int, n_layers: int, kernel_scale: float) -> list[Layer]:
    draw = random.Random(f"model {seed}")  # noqa: S311 - no secret
    kinds: tuple[LayerKind, ...] = ("linear", "linear", "attention", "norm")
    return [
        Layer(
            draw.choice(kinds),
            draw.randrange(36),
            round(draw.randint(8_000, 60_000) * kernel_scale),
        )
        for _ in range(n_layers)
    ]


def _script(name: str, *body: Item) -> Frame:
    """Return the Python functions around everything."""
    return python("runpy.py(198): _run_module_as_main", python(name, Busy(2_000), *body))


# Training


def _training_step(model: Sequence[Layer], step: int, world_size: int) -> Frame:
    sequence = _FIRST_SEQUENCE + step * len(model)
    reduces = world_size > 1
    return annotation(
        f"ProfilerStep#{step}",
        Busy(3_000),
        _next_batch(60_000),
        Busy(2_000),
        copy_to_device(600_000, COMPUTE, pinned=True),
        copy_to_device(4_096, COMPUTE, pinned=step % 2 == 0),
        _zero_gradients(model),
        *_forward(model, sequence),
        elementwise("aten::nll_loss_forward", 5, 3_000, COMPUTE),
        python("torch/_tensor.py(570): backward", Backward(_backward(model, sequence, world_size))),
        *(_await_all_reduces(model) if reduces else ()),
        _optimizer_step(model),
        item_to_host(COMPUTE),
        Busy(4_000),
        step=step,
    )


def _next_batch(host_ns: int) -> Frame:
    """Return the loader at work on this thread, as with `num_workers=0`."""
    collate = python(
        "torch/utils/data/_utils/collate.py(398): default_collate",
        Busy(1_000),
        operator("aten::stack", Busy(host_ns // 4), operator("aten::cat", Busy(host_ns // 3))),
    )
    fetch = annotation(
        "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__",
        Busy(host_ns // 4),
        collate,
        Busy(host_ns // 6),
        loading=True,
    )
    name = "torch/utils/data/dataloader.py(733): __next__"
    return Frame("python_function", name, (Busy(1_500), fetch, Busy(1_000)), loading=True)


def _zero_gradients(model: Sequence[Layer]) -> Frame:
    fills = [zero(1_024 * (16 + layer.variant), COMPUTE) for layer in model[::2]]
    return annotation("Optimizer.zero_grad#AdamW.zero_grad", Busy(2_500), *fills, Busy(900))


def _forward(model: Sequence[Layer], sequence: int) -> Iterator[Item]:
    for number, layer in enumerate(model):
        module, function = _MODULES[layer.kind]
        yield python(
            f"nn.Module: {module}_{number}",
            Busy(1_500),
            python(function, Busy(900), *_forward_layer(layer, sequence + number), Busy(400)),
            Busy(700),
        )


def _forward_layer(layer: Layer, sequence: int) -> tuple[Item, ...]:
    memory = Memory(4_096 * (1 + layer.variant), COMPUTE.device)
    match layer.kind:
        case "linear":
            rows = 64 * (1 + layer.variant % 8)
            multiply = linear(layer.variant, layer.kernel_ns, COMPUTE, sequence, (rows, 1_024))
            activate = elementwise("aten::gelu", 3, layer.kernel_ns // 6, COMPUTE)
            return memory, multiply, Busy(1_800), activate
        case "attention":
            views = [view("aten::transpose"), view("aten::view", "aten::alias")]
            return memory, *views, flash_attention(layer.kernel_ns, COMPUTE, sequence)
        case "norm":
            norm = layer_norm(layer.kernel_ns // 3, COMPUTE, sequence)
            return memory, norm, elementwise("aten::add_", layer.variant, 4_000, COMPUTE)


def _backward(model: Sequence[Layer], sequence: int, world_size: int) -> tuple[Item, ...]:
    body: list[Item] = []
    for number, layer in reversed(list(enumerate(model))):
        body += [_gradient(layer, sequence + number), Busy(1_200), _accumulate(layer)]
        if world_size > 1 and number % 2 == 0:
            body.append(_reduce_bucket(layer, number, world_size))
        body.append(Busy(1_500))
    return tuple(body)


def _gradient(layer: Layer, sequence: int) -> Frame:
    """Return what the engine does for one node: evaluate it, which computes two gradients."""
    name = _GRADIENTS[layer.kind]
    by_input = gemm_name(layer.variant + 6), layer.kernel_ns
    by_weight = gemm_name(layer.variant + 12), layer.kernel_ns
    node = operator(
        name,
        Busy(2_000),
        view("aten::t", "aten::transpose"),
        operator("aten::mm", Busy(4_000), launch(*by_input, COMPUTE), Busy(900)),
        operator("aten::mm", Busy(3_500), launch(*by_weight, COMPUTE), Busy(900)),
        operator("aten::sum", launch(_REDUCE_KERNEL, layer.kernel_ns // 5, COMPUTE), Busy(700)),
        Busy(800),
        sequence=sequence,
    )
    evaluate = f"autograd::engine::evaluate_function: {name}"
    return operator(evaluate, Busy(1_800), node, Busy(900), sequence=sequence)


def _accumulate(layer: Layer) -> Frame:
    name = "torch::autograd::AccumulateGrad"
    add = elementwise("aten::add_", layer.variant, max(1_500, layer.kernel_ns // 8), COMPUTE)
    return operator(
        f"autograd::engine::evaluate_function: {name}", Busy(900), operator(name, Busy(800), add)
    )


def _reduce_bucket(layer: Layer, bucket: int, world_size: int) -> Frame:
    """Return an all-reduce of gradients, concurrent with the rest of the backward pass."""
    return all_reduce(
        100_000 * (1 + layer.variant),
        20_000 + 2 * layer.kernel_ns,
        after=COMPUTE,
        stream=COMMUNICATION,
        events=(2 * bucket + 1, _reduced_event(bucket)),
        world_size=world_size,
    )


def _await_all_reduces(model: Sequence[Layer]) -> Iterator[Item]:
    for bucket in range(0, len(model), 2):
        yield WaitEvent(_reduced_event(bucket), COMPUTE)


def _reduced_event(bucket: int) -> int:
    return 2 * bucket + 2


def _optimizer_step(model: Sequence[Layer]) -> Frame:
    total_ns = sum(layer.kernel_ns for layer in model)
    updates = [fused_optimizer(part, 3_000 + total_ns // 8, COMPUTE) for part in range(4)]
    body = python("torch/optim/adamw.py(241): step", Busy(4_000), *updates, Busy(1_000))
    return annotation("Optimizer.step#AdamW.step", Busy(6_000), body, Busy(1_500))


# Inference and graphs


def _request(model: Sequence[Layer], request: int) -> Frame:
    return python(
        "serve.py(63): answer",
        Busy(5_000),
        _next_batch(40_000 + 10_000 * (request % 3)),
        copy_to_device(150_000, COMPUTE, pinned=False),
        *_forward(model, _FIRST_SEQUENCE + request * len(model)),
        item_to_host(COMPUTE),
        operator("aten::topk", Busy(9_000)),
        Busy(12_000),
    )


def _replay(works: tuple[Work, ...], step: int) -> Frame:
    graph = Launch(works, COMPUTE, name="cudaGraphLaunch", nominal_ns=18_000)
    replay = python("torch/cuda/graphs.py(88): replay", Busy(2_000), graph, Busy(900))
    return annotation(
        f"ProfilerStep#{step}",
        Busy(2_000),
        _next_batch(50_000),
        copy_to_device(200_000, COMPUTE, pinned=True),
        replay,
        *((Synchronize(),) if step % 2 else (item_to_host(COMPUTE),)),
        Busy(3_000),
        step=step,
    )


def _kernel_name(layer: Layer) -> str:
    name = gemm_name if layer.kind == "linear" else elementwise_name
    return name(layer.variant)


# The trace of the capture of a graph: operators around calls that launch nothing.


_PROCESS, _THREAD = 31_415, 31_415
_OPERATORS = (
    ("aten::linear", "aten::addmm"),
    ("aten::gelu",),
    ("aten::layer_norm", "aten::native_layer_norm"),
    ("aten::scaled_dot_product_attention", "aten::_flash_attention_forward"),
    ("aten::add",),
)


def replayed(items: Sequence[Any]) -> Iterator[Replay]:
    """Find the graphs that a program launches, each once."""
    found: list[Replay] = []
    for item in items:
        inner = [item] if isinstance(item, Replay) else []
        inner += replayed(item.body) if isinstance(item, Frame) else []
        found += [graph for graph in inner if graph not in found]
    yield from found


def captured_operators(graph: Replay, seed: int) -> list[tuple[str, ...]]:
    """Draw the operators around each node, the outermost first, in the order of the capture."""
    dice = random.Random(f"captured {seed}")  # noqa: S311 - no secret
    return [dice.choice(_OPERATORS) for _ in graph.nodes]


def write_capture(path: Path, graphs: Sequence[Replay], seed: int) -> Path:
    """Write the trace of a run that captures graphs, one after the other; give its path.

    As with real captures, calls leave no work on a device, and tell no numbers of nodes.
    """
    events: list[dict[str, Any]] = []
    now_us = 100.0
    for graph in graphs:
        now_us = _add(events, "cuda_runtime", "cudaStreamBeginCapture", now_us, 5)
        for operators in captured_operators(graph, seed):
            for depth, name in enumerate(operators):
                _add(events, "cpu_op", name, now_us + depth, 20 - 2 * depth)
            _add(events, "cuda_runtime", "cudaLaunchKernel", now_us + 8, 4)
            now_us += 25
        now_us = _add(events, "cuda_runtime", "cudaStreamEndCapture", now_us, 30)
        now_us = _add(events, "cuda_runtime", "cudaGraphInstantiateWithFlags", now_us, 50)
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    return path


def _add(
    events: list[dict[str, Any]], category: str, name: str, start_us: float, lasts_us: float
) -> float:
    where = {"ph": "X", "cat": category, "pid": _PROCESS, "tid": _THREAD}
    number = len(events) + 1
    args = {"External id": number} if category == "cpu_op" else {"correlation": number}
    events.append({**where, "name": name, "ts": start_us, "dur": lasts_us, "args": args})
    return start_us + lasts_us + 1
