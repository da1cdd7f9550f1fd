"""Record real traces with the PyTorch profiler, to read with longpole.

python examples/record_trace.py training -o traces/            # a transformer, 4 steps
python examples/record_trace.py graphed -o traces/             # the same as a CUDA graph
python examples/record_trace.py inference -o traces/           # data loader, blocking copies
python examples/record_trace.py training --execution-trace -o traces/ --device cpu
python examples/record_trace.py training --ranks 2 --execution-trace -o traces/ --device cpu
python examples/record_trace.py training --counters NAME,... --per-kernel -o traces/

Needs torch (`pip install longpole[torch]`); uses a CUDA or HIP device where there is one.
Execution traces and counters need options of the profiler that `longpole.record` does not have.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import longpole

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

EXIT_MISSING = 5

try:
    import torch
    from torch import distributed, multiprocessing, nn
except ImportError:
    sys.stderr.write("error: this needs torch [missing]\nhint: pip install torch\n")
    sys.exit(EXIT_MISSING)


@dataclass(frozen=True)
class Sizes:
    """How large the model and its inputs are."""

    width: int = 512
    layers: int = 4
    heads: int = 8
    batch: int = 16
    length: int = 256


SMALL = Sizes(width=128, layers=2, heads=4, batch=4, length=64)


@dataclass(frozen=True)
class Counters:
    """Performance counters to record, for each kernel or for all together."""

    names: tuple[str, ...] = ()
    per_kernel: bool = False


def main() -> None:
    """Record what the command line asks for."""
    options = _parser().parse_args()
    device = torch.device(options.device or _best_device())
    if options.program == "graphed" and device.type != "cuda":
        sys.stderr.write("error: a graph needs a CUDA or HIP device [missing]\n")
        sys.exit(EXIT_MISSING)
    if options.ranks == 1:
        run(options, device)
        return
    with tempfile.TemporaryDirectory() as folder:
        meeting = f"file://{folder}/meeting"
        multiprocessing.spawn(run_rank, (options, device.type, meeting), nprocs=options.ranks)


def run_rank(rank: int, options: argparse.Namespace, kind: str, meeting: str) -> None:
    """Record one of several ranks, which share the gradients: over gloo, or NCCL on devices."""
    device = torch.device(kind, rank) if kind == "cuda" else torch.device(kind)
    if kind == "cuda":
        torch.cuda.set_device(device)
    backend = "nccl" if kind == "cuda" else "gloo"
    distributed.init_process_group(
        backend, init_method=meeting, rank=rank, world_size=options.ranks
    )
    try:
        run(options, device, f"-rank{rank}")
    finally:
        distributed.destroy_process_group()


def run(options: argparse.Namespace, device: torch.device, suffix: str = "") -> None:
    """Record one program, as one rank or alone."""
    torch.manual_seed(0)
    sizes = SMALL if device.type == "cpu" else Sizes()
    step = PROGRAMS[options.program](device, sizes)
    options.output.mkdir(parents=True, exist_ok=True)
    name = f"{options.program}-{device.type}{suffix}"
    trace = options.output / f"{name}.json.gz"
    graph = options.output / f"{name}.et.json" if options.execution_trace else None
    counters = Counters(tuple(filter(None, options.counters.split(","))), options.per_kernel)
    record(
        step,
        trace,
        steps=options.steps,
        stacks=options.stacks,
        execution_trace=graph,
        counters=counters,
    )
    for path in filter(None, (trace, graph)):
        sys.stderr.write(f"{path}: {path.stat().st_size:,} bytes\n")


def record(
    step: Callable[[], None],
    trace: Path,
    *,
    steps: int,
    stacks: bool = False,
    execution_trace: Path | None = None,
    counters: Counters = Counters(),
) -> None:
    """Run `step` until `steps` steps are recorded."""
    if execution_trace is None and not counters.names:
        longpole.record(step, trace, steps=steps, stacks=stacks, overwrite=True, show=False)
        return
    from torch.profiler import ProfilerActivity, profile, schedule

    has_device = torch.cuda.is_available()
    for _ in range(3):
        step()
    with (
        _observed(execution_trace),
        profile(
            activities=[ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if has_device else [])],
            # Steps are marked only where there is a schedule.
            schedule=schedule(wait=0, warmup=1, active=steps, repeat=1),
            on_trace_ready=lambda profiler: profiler.export_chrome_trace(str(trace)),
            record_shapes=True,
            with_stack=stacks,
            **(_experimental(counters) if has_device else {}),
        ) as profiler,
    ):
        for _ in range(1 + steps):
            step()
            profiler.step()


def training(device: torch.device, sizes: Sizes) -> Callable[[], None]:
    """Train a transformer in bf16; the next batch is copied on a stream of its own."""
    model = _model(device, sizes)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    batches = _Batches(device, sizes)

    def step() -> None:
        inputs = batches.take()
        batches.fetch()
        with torch.autocast(device.type, dtype=torch.bfloat16):
            loss = model(inputs).float().pow(2).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        loss.item()

    return step


def graphed(device: torch.device, sizes: Sizes) -> Callable[[], None]:
    """Replay the forward pass as a CUDA graph: one launch, many kernels."""
    model = _model(device, sizes).eval()
    inputs = torch.zeros(sizes.batch, sizes.length, sizes.width, device=device)
    side = torch.cuda.Stream()
    with torch.no_grad(), torch.cuda.stream(side):
        for _ in range(3):
            model(inputs)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.no_grad(), torch.cuda.graph(graph):
        outputs = model(inputs)
    host = torch.randn(inputs.shape).pin_memory()

    def step() -> None:
        inputs.copy_(host, non_blocking=True)
        graph.replay()
        outputs.sum().item()

    return step


def inference(device: torch.device, sizes: Sizes) -> Callable[[], None]:
    """Answer requests the slow way: a data loader of one thread, pageable blocking copies."""
    model = _model(device, sizes).eval()
    samples = torch.randn(64, sizes.length, sizes.width)
    loader = torch.utils.data.DataLoader(samples, batch_size=sizes.batch, shuffle=True)
    batches = _forever(loader)

    def step() -> None:
        with torch.no_grad():
            model(next(batches).to(device)).argmax(-1).cpu()

    return step


PROGRAMS = {"training": training, "graphed": graphed, "inference": inference}


class _Batches:
    """Batches that travel to the device while it computes."""

    def __init__(self, device: torch.device, sizes: Sizes) -> None:
        self._device = device
        self._host = torch.randn(sizes.batch, sizes.length, sizes.width)
        self._stream = None
        if device.type == "cuda":
            self._host = self._host.pin_memory()
            self._stream = torch.cuda.Stream()
        self.fetch()

    def fetch(self) -> None:
        """Begin to copy the next batch."""
        with torch.cuda.stream(self._stream) if self._stream else contextlib.nullcontext():
            self._next = self._host.to(self._device, non_blocking=True)

    def take(self) -> torch.Tensor:
        """Return the fetched batch once it is available."""
        if self._stream:
            torch.cuda.current_stream().wait_stream(self._stream)
            self._next.record_stream(torch.cuda.current_stream())
        return self._next


def _model(device: torch.device, sizes: Sizes) -> nn.Module:
    layer = nn.TransformerEncoderLayer(
        sizes.width, sizes.heads, 4 * sizes.width, dropout=0.0, batch_first=True
    )
    model = nn.TransformerEncoder(layer, sizes.layers, enable_nested_tensor=False).to(device)
    if not distributed.is_initialized():
        return model
    return nn.parallel.DistributedDataParallel(model)


def _forever(loader: Any) -> Iterator[Any]:
    while True:
        yield from loader


def _best_device() -> str:
    return "cuda" if torch.cuda.is_available() else "cpu"


def _experimental(counters: Counters) -> dict[str, Any]:
    """Ask for counters, else for records of who waited for whom, where torch can write them.

    The two exclude each other: while counters are read, kernels are not recorded one by one.
    """
    from torch._C._profiler import _ExperimentalConfig

    wanted: dict[str, Any] = {"enable_cuda_sync_events": True}
    if counters.names:
        wanted = {
            "profiler_metrics": list(counters.names),
            "profiler_measure_per_kernel": counters.per_kernel,
        }
    try:
        return {"experimental_config": _ExperimentalConfig(**wanted)}
    except TypeError:
        return {}


@contextlib.contextmanager
def _observed(path: Path | None) -> Iterator[None]:
    """Write an execution trace beside the timeline."""
    if path is None:
        yield
        return
    from torch.profiler import ExecutionTraceObserver

    observer = ExecutionTraceObserver()
    observer.register_callback(str(path))
    observer.start()
    try:
        yield
    finally:
        observer.stop()
        observer.unregister_callback()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Record a trace with the PyTorch profiler.")
    parser.add_argument("program", choices=sorted(PROGRAMS))
    parser.add_argument("-o", "--output", type=Path, default=Path("traces"), help="a folder")
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--device", choices=("cpu", "cuda"), help="default: cuda where it is")
    parser.add_argument(
        "--ranks", type=int, default=1, metavar="N", help="processes that train together"
    )
    parser.add_argument("--stacks", action="store_true", help="with Python functions")
    parser.add_argument(
        "--execution-trace", action="store_true", help="write an execution trace too"
    )
    parser.add_argument(
        "--counters",
        default="",
        metavar="NAME,...",
        help="performance counters (CUPTI), such as kineto__tensor_core_insts",
    )
    parser.add_argument(
        "--per-kernel", action="store_true", help="read the counters for each kernel"
    )
    return parser


if __name__ == "__main__":
    main()
