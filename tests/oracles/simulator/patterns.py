"""Programs that are slow for one known reason, and the same without it.

Every program trains or infers with layers of random size. A *pattern* adds what makes it slow, in
its slow form, or what stands for it after mending. The names of patterns are those of the remedies
that mend them.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Final, NamedTuple

from .program import (
    Busy,
    Call,
    Get,
    Item,
    Launch,
    Node,
    Program,
    Put,
    Replay,
    Stream,
    Synchronize,
    Work,
    annotation,
    operator,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

STEPS: Final = 6
_STREAM: Final = Stream(0, 7)
_WORKERS: Final = 4
_QUEUE: Final = 1


class Pair(NamedTuple):
    """A slow program and the same program mended."""

    pattern: str
    slow: Program
    mended: Program


class _Form(NamedTuple):
    """What a pattern adds to each step: before the layers, after them, and what helpers do."""

    before: tuple[Item, ...] = ()
    after: tuple[Item, ...] = ()
    helpers: tuple[tuple[Item, ...], ...] = ()
    replaces_layers: tuple[Item, ...] | None = None


class _Layers(NamedTuple):
    """The layers of a step: operators that each launch a kernel."""

    body: tuple[Item, ...]
    kernels_ns: tuple[int, ...]
    host_ns: int

    @property
    def length_ns(self) -> int:
        """About how long a step with nothing else takes."""
        return max(sum(self.kernels_ns), self.host_ns)


def pair(seed: int) -> Pair:
    """Return a program that is slow for a reason, and the same program mended."""
    dice = random.Random(f"pattern {seed}")  # noqa: S311 - not a secret
    name = dice.choice(sorted(PATTERNS))
    layers = _layers(dice, is_host_bound=name == "cuda_graph")
    slow, mended = PATTERNS[name](dice, layers)
    waits = dice.random() < 0.3 and name != "cuda_graph"
    end = (operator("aten::item", *_read()),) if waits else ()
    return Pair(name, *(_program(name, layers, form, end) for form in (slow, mended)))


class Several(NamedTuple):
    """A program that is slow for several reasons, each of which can be mended by itself.

    The launches of the layers can be replayed as a graph in every program.
    """

    patterns: tuple[str, ...]
    forms: dict[str, tuple[_Form, _Form]]
    layers: _Layers

    def program(self, mended: Collection[str]) -> Program | None:
        """Return the program with some reasons mended; None if an obstacle prevents one."""
        is_blocked = "blocking_calls" in {*self.patterns} - {*mended}
        if "cuda_graph" in mended and is_blocked:
            return None
        forms = [both[name in mended] for name, both in self.forms.items()]
        replaced = [form.replaces_layers for form in forms if form.replaces_layers is not None]
        whole = _Form(
            before=tuple(item for form in forms for item in form.before),
            after=tuple(item for form in forms for item in form.after),
            helpers=tuple(helper for form in forms for helper in form.helpers),
            replaces_layers=replaced[-1] if replaced else None,
        )
        return _program("several", self.layers, whole, ())


def several(seed: int) -> Several:
    """Return a program that is slow for two or three reasons; obstacles may be among them."""
    dice = random.Random(f"several {seed}")  # noqa: S311 - not a secret
    names = dice.sample(sorted(PATTERNS), dice.choice((2, 3)))
    if dice.random() < 0.25:
        names = [*dict.fromkeys(("blocking_calls", "cuda_graph", *names))][: len(names)]
    layers = _layers(dice, is_host_bound="cuda_graph" in names)
    forms = {name: PATTERNS[name](dice, layers) for name in sorted(names)}
    forms = dict(sorted({**forms, "cuda_graph": _graph(dice, layers)}.items()))
    return Several(tuple(sorted(names)), forms, layers)


def _program(name: str, layers: _Layers, form: _Form, end: tuple[Item, ...]) -> Program:
    body = layers.body if form.replaces_layers is None else form.replaces_layers
    steps = [
        annotation(f"ProfilerStep#{number}", *form.before, *body, *form.after, *end, step=number)
        for number in range(STEPS)
    ]
    return Program(name, (*steps, Synchronize()), helpers=form.helpers)


def _layers(dice: random.Random, *, is_host_bound: bool) -> _Layers:
    """Return many small kernels, or fewer: large ones, or too few to be replayed as a graph."""
    count, kernel_ns = dice.randint(40, 120), dice.randint(2_000, 6_000)
    if not is_host_bound:
        is_large = dice.random() < 0.6
        kernel_ns = dice.randint(40_000, 120_000) if is_large else dice.randint(5_000, 15_000)
        count = count if is_large else dice.randint(10, 28)
    body: list[Item] = []
    kernels, host_ns = [], 0
    for place in range(count):
        name, length_ns = f"gemm_{place % 5}", round(kernel_ns * dice.uniform(0.6, 1.4))
        python_ns, own_ns = dice.randint(2_000, 12_000), dice.randint(2_000, 9_000)
        work = Work("kernel", name, length_ns)
        body += [
            operator("aten::linear", Busy(own_ns), Launch((work,), _STREAM), Busy(1_000)),
            Busy(python_ns),
        ]
        kernels.append(length_ns)
        host_ns += python_ns + own_ns + 6_000
    return _Layers(tuple(body), tuple(kernels), host_ns)


def _read() -> tuple[Item, ...]:
    """Return a read of a value: a small copy to the host that is waited for."""
    copy = Work("gpu_memcpy", "Memcpy DtoH (Device -> Pageable)", 1_500, {"bytes": 4})
    return (
        Busy(2_000),
        Launch((copy,), _STREAM, name="cudaMemcpyAsync"),
        Synchronize(stream=_STREAM),
        Busy(1_000),
    )


def _share(dice: random.Random, layers: _Layers) -> int:
    """Return a time that is worth mending, beside the layers."""
    return round(dice.uniform(0.3, 2.0) * layers.length_ns)


def _loader(dice: random.Random, layers: _Layers) -> tuple[_Form, _Form]:
    load_ns = _share(dice, layers)
    name = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
    alone = annotation(name, Busy(load_ns), loading=True)
    taken = annotation(
        name.replace("SingleProcess", "MultiProcessing"), Get(_QUEUE), Busy(20_000), loading=True
    )
    # Each worker makes every fourth batch, and goes on while the steps run.
    worker = tuple(
        item
        for _ in range(STEPS // _WORKERS + 2)
        for item in (Busy(load_ns), Put(_QUEUE, capacity=2 * _WORKERS))
    )
    return _Form((alone,)), _Form((taken,), helpers=(worker,) * _WORKERS)


def _python(dice: random.Random, layers: _Layers) -> tuple[_Form, _Form]:
    gap = Busy(_share(dice, layers))
    reads = operator("aten::item", *_read())
    return _Form(after=(reads, gap)), _Form()


def _recurring(dice: random.Random, layers: _Layers) -> tuple[_Form, _Form]:
    return _Form(after=(operator("aten::sort", Busy(_share(dice, layers))),)), _Form()


def _optimizer(dice: random.Random, _: _Layers) -> tuple[_Form, _Form]:
    n_parameters, kernel_ns = dice.randint(30, 90), dice.randint(2_000, 5_000)

    def update(name: str, kernel: str, length_ns: int) -> Item:
        work = Work("kernel", kernel, length_ns)
        return operator(name, Busy(3_000), Launch((work,), _STREAM), Busy(1_000))

    names = ("aten::lerp_", "aten::addcmul_", "aten::sqrt", "aten::addcdiv_")
    loop = [
        item
        for _ in range(n_parameters)
        for name in names
        for item in (update(name, name[6:], kernel_ns), Busy(2_000))
    ]
    n_launches = max(n_parameters // 30, 1)
    pass_ns = n_parameters * kernel_ns * len(names) // 3 // n_launches
    fused = [update("aten::_fused_adamw_", "fused", pass_ns) for _ in range(n_launches)]
    step = "Optimizer.step#AdamW.step"
    return (
        _Form(after=(annotation(step, *loop),)),
        _Form(after=(annotation(step, Busy(30_000), *fused),)),
    )


def _values(dice: random.Random, _: _Layers) -> tuple[_Form, _Form]:
    number = dice.randint(40, 160)
    reads = [
        item for _ in range(number) for item in (operator("aten::item", *_read()), Busy(3_000))
    ]
    return _Form(after=tuple(reads)), _Form(after=(operator("aten::item", *_read()),))


def _waits(dice: random.Random, layers: _Layers) -> tuple[_Form, _Form]:
    every = dice.choice((1, 2))
    body: list[Item] = []
    for place in range(0, len(layers.body), 2):
        body += layers.body[place : place + 2]
        if place // 2 % every == 0:
            body += [Synchronize(), Busy(2_000)]
    return _Form(replaces_layers=tuple(body)), _Form()


def _graph(_: random.Random, layers: _Layers) -> tuple[_Form, _Form]:
    nodes = tuple(
        Node(Work("kernel", f"gemm_{place % 5}", length_ns), _STREAM)
        for place, length_ns in enumerate(layers.kernels_ns)
    )
    return _Form(), _Form(replaces_layers=(Replay(nodes, _STREAM),))


def _upload(dice: random.Random, layers: _Layers) -> tuple[_Form, _Form]:
    n_bytes = max(round(4 * _share(dice, layers)), 4 << 20)  # as long at 4 GB/s

    def copy(memory: str, rate: float, *, blocking: bool) -> Item:
        name = f"Memcpy HtoD ({memory} -> Device)"
        work = Work("gpu_memcpy", name, round(n_bytes / rate), {"bytes": n_bytes})
        launch = Launch((work,), _STREAM, name="cudaMemcpyAsync", blocking=blocking)
        waits = (Synchronize(stream=_STREAM),) if blocking else ()
        return operator("aten::to", Busy(5_000), launch, *waits, Busy(2_000))

    slow = copy("Pageable", dice.uniform(3.0, 6.0), blocking=True)
    return _Form((slow,)), _Form((copy("Pinned", dice.uniform(24.0, 50.0), blocking=False),))


def _memory(dice: random.Random, layers: _Layers) -> tuple[_Form, _Form]:
    number = dice.randint(4, 12)
    each_ns = _share(dice, layers) // (2 * number)
    calls = [
        item
        for _ in range(number)
        for item in (
            operator("aten::empty", Call("cudaMalloc", each_ns)),
            Synchronize(name="cudaFree", nominal_ns=each_ns),
        )
    ]
    return _Form(after=tuple(calls)), _Form()


def _trip(dice: random.Random, layers: _Layers) -> tuple[_Form, _Form]:
    n_bytes = dice.randint(1 << 16, 1 << 20)
    down = Work("gpu_memcpy", "Memcpy DtoH (Device -> Pageable)", n_bytes // 6, {"bytes": n_bytes})
    up = Work("gpu_memcpy", "Memcpy HtoD (Pageable -> Device)", n_bytes // 6, {"bytes": n_bytes})
    waits = Synchronize(stream=_STREAM)
    slow = (
        operator("aten::to", Launch((down,), _STREAM, name="cudaMemcpyAsync"), waits),
        Busy(_share(dice, layers)),
        operator("aten::copy_", Launch((up,), _STREAM, name="cudaMemcpyAsync"), waits),
    )
    work = Work("kernel", "argmax", dice.randint(5_000, 20_000))
    there = operator("aten::argmax", Busy(5_000), Launch((work,), _STREAM), Busy(2_000))
    return _Form(after=slow), _Form(after=(there,))


PATTERNS: Final[dict[str, Callable[[random.Random, _Layers], tuple[_Form, _Form]]]] = {
    "allocation": _memory,
    "blocking_calls": _waits,
    "cuda_graph": _graph,
    "loader_workers": _loader,
    "optimizer_loop": _optimizer,
    "pinned_copies": _upload,
    "python_between_operators": _python,
    "recurring_call": _recurring,
    "round_trip": _trip,
    "small_copies": _values,
}
