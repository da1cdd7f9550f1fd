"""Advice on what to record and what to change, in the terms of the trace's profiler.

Advice names options. Profilers other than `torch.profiler` have other options for the same purpose;
some exist only for GPUs of one vendor. `OPTIONS` has all of them, one row per profiler, and every
sentence takes them from there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

Profiler = Literal[
    "torch",
    "torch_rocm",
    "torch_xpu",
    "torch_unknown",
    "torch_npu",
    "mindspore",
    "msprof",
    "nsys",
    "rocprofv3",
    "rpd",
    "xprof",
]
Vendor = Literal["NVIDIA", "AMD", "Intel", "Huawei"]


class Recorded(Protocol):
    """The parts of the core's trace used here."""

    @property
    def profiler(self) -> Profiler:
        """The profiler that wrote the trace."""
        ...

    @property
    def is_of_server(self) -> bool:
        """Whether an inference server marks its iterations."""
        ...


class Options(NamedTuple):
    """Options of one profiler; each phrase follows "record" or "with".

    A phrase is empty if the profiler has no such option; then there is no advice.
    """

    vendor: Vendor | None
    """Vendor of the recorded devices; None if it records those of several vendors."""
    device: str
    """Option that records GPU activities."""
    launches: str
    """How to record launch calls; follows "record" alone."""
    calls: str
    """Option that records the runtime API calls of the host."""
    waits: str
    """Option that records which stream or call waits for which."""
    schedule: str
    """Option that records some steps after a warm-up."""
    stack: str
    """Option that records Python functions."""
    step: str
    """How to mark the end of each step."""
    shapes: str
    """Option that records the input shapes of operators."""
    allocations: str
    """Option that records memory allocations."""
    ranges: str
    """Name of the function that annotates a range."""
    operators: str
    """Option that records the host work between runtime API calls."""
    synchronize: str
    """A call that waits for the devices."""
    graphs: str
    """How to launch many activities at once."""
    graph: str
    """The term for a recorded sequence of launches."""
    no_counters: str
    """How to record activities with durations instead of performance counters."""
    memory: str
    """How to keep memory from one step to the next."""
    workers: str
    """How to load data outside the main thread."""
    prefetch: str
    """How to load data further ahead."""
    pinned: str
    """How to make copies from the host asynchronous."""
    rank: str
    """How to set the rank."""
    all_threads: str = ""
    """Option that records operators on threads that the profiler leaves out by default."""
    counters: str = ""
    """Option that records performance counters of kernels."""


_FRAMEWORK: Final = "the profiler of the framework (torch_npu.profiler, mindspore.profiler)"
_OF_FRAMEWORK: Final = "the profiler of the framework"
_FOLDER: Final = "keep the files in the folder of the profile, which names the rank"
_SCHEDULE: Final = "schedule(wait=1, warmup=1, active=3)"

ANY_MEMORY: Final = "a pool of memory that outlives the iteration"
"""How a program of any framework keeps memory."""

_TORCH: Final = Options(
    vendor="NVIDIA",
    device="activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]",
    launches="with fewer activities and without with_stack, or with a larger buffer",
    calls="ProfilerActivity.CPU among the activities",
    waits="enable_cuda_sync_events=True",
    schedule=_SCHEDULE,
    stack="with_stack=True",
    step="prof.step() in the loop",
    shapes="record_shapes=True",
    allocations="profile_memory=True",
    ranges="record_function",
    operators="operators (ProfilerActivity.CPU among the activities)",
    synchronize="torch.cuda.synchronize",
    graphs="CUDA graphs or torch.compile",
    graph="CUDA graph",
    no_counters="without performance counters (experimental_config)",
    memory="expandable_segments:True, no empty_cache() in the loop",
    workers="num_workers",
    prefetch="a larger prefetch_factor",
    pinned="pin_memory=True, non_blocking=True",
    rank="initialise torch.distributed before the profiler starts",
    all_threads="operators of all threads (torch 2.7 or later: "
    "experimental_config=_ExperimentalConfig(profile_all_threads=True))",
    counters="experimental_config=_ExperimentalConfig(profiler_metrics=[...], "
    "profiler_measure_per_kernel=True)",
)

# Servers start profiling on an HTTP request, or by a function of their engine (vLLM, SGLang).
_OF_SERVER: Final[dict[str, Any]] = {
    "schedule": "several iterations after a warm-up (start_profile and stop_profile of the server)",
    "step": "whole iterations (start_profile and stop_profile of the server)",
}

OPTIONS: Final[Mapping[Profiler, Options]] = {
    "torch": _TORCH,
    "torch_rocm": _TORCH._replace(
        vendor="AMD",
        launches="with fewer activities and without with_stack, or with a newer ROCm",
        waits="",
        graphs="HIP graphs (torch.cuda.CUDAGraph) or torch.compile",
        graph="HIP graph",
        memory="no empty_cache() in the loop",
        counters="",
    ),
    "torch_xpu": _TORCH._replace(
        vendor="Intel",
        device="activities=[ProfilerActivity.CPU, ProfilerActivity.XPU]",
        waits="",
        synchronize="torch.xpu.synchronize",
        graphs="torch.compile",
        graph="graph",
        no_counters="without performance counters",
        memory="no empty_cache() in the loop",
        counters="",
    ),
    "torch_unknown": _TORCH._replace(
        vendor=None,
        device="activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA] (XPU on Intel's GPUs)",
        waits="",
        synchronize="a wait for the GPU",
        graphs="torch.compile",
        graph="graph",
        no_counters="without performance counters",
        memory="no empty_cache() in the loop",
        counters="",
    ),
    "torch_npu": _TORCH._replace(
        vendor="Huawei",
        device="activities=[ProfilerActivity.CPU, ProfilerActivity.NPU]",
        launches="with profiler_level=ProfilerLevel.Level1 or higher, which records the calls into "
        "CANN",
        calls="profiler_level=ProfilerLevel.Level1 or higher",
        waits="profiler_level=ProfilerLevel.Level2, which records the calls into the runtime",
        ranges="torch_npu.npu.mstx.range_start",
        operators="operators (ProfilerActivity.CPU among the activities)",
        synchronize="torch_npu.npu.synchronize",
        graphs="graph mode (torch.compile with torchair)",
        graph="graph",
        no_counters="without performance counters (aic_metrics)",
        rank=_FOLDER,
        all_threads="",
        counters="",
    ),
    "mindspore": Options(
        vendor=None,
        device="device_target='Ascend' or 'GPU'",
        launches="with mindspore.profiler.profile of MindSpore 2.4 or later, on Ascend "
        "(profiler_level=ProfilerLevel.Level1), since its text files name no launching calls",
        calls="profiler_level=ProfilerLevel.Level1, on Ascend (MindSpore 2.4 or later)",
        waits="profiler_level=ProfilerLevel.Level2, on Ascend",
        schedule=f"mindspore.profiler.{_SCHEDULE}",
        stack="with_stack=True (MindSpore 2.4 or later)",
        step="profiler.step() in the loop",
        shapes="",
        allocations="profile_memory=True (MindSpore 2.4 or later)",
        ranges="mindspore.profiler.mstx.range_start",
        operators="operators (ProfilerActivity.CPU among the activities)",
        synchronize="mindspore.runtime.synchronize",
        graphs="graph mode (mindspore.jit)",
        graph="graph",
        no_counters="without performance counters (aic_metrics)",
        memory="no empty_cache() in the loop",
        workers="num_parallel_workers",
        prefetch="a larger mindspore.dataset.config.set_prefetch_size",
        pinned="",
        rank=_FOLDER,
    ),
    "msprof": Options(
        vendor="Huawei",
        device="msprof --task-time=on",
        launches="with msprof --ascendcl=on --runtime-api=on",
        calls="msprof --ascendcl=on --runtime-api=on",
        waits="msprof --runtime-api=on",
        schedule="msprof over several iterations",
        stack=_FRAMEWORK,
        step=f"{_FRAMEWORK}, which marks steps",
        shapes="",
        allocations="msprof --sys-hardware-mem=on",
        ranges="mstx ranges (msprof --msproftx=on)",
        operators=f"operators with {_FRAMEWORK}",
        synchronize="aclrtSynchronizeDevice",
        graphs="graph mode of the framework",
        graph="graph",
        no_counters="msprof --aic-metrics off",
        memory="allocate before the loop",
        workers="the number of workers",
        prefetch="deeper prefetching",
        pinned="",
        rank=_FOLDER,
    ),
    "nsys": Options(
        vendor="NVIDIA",
        device="nsys profile --trace=cuda,nvtx",
        launches="with nsys profile --trace=cuda from before the first launch",
        calls="nsys profile --trace=cuda",
        waits="",
        schedule="nsys profile --capture-range=cudaProfilerApi over iterations after a warm-up",
        stack="nsys profile --python-sampling=true",
        step="an NVTX range around each iteration (--trace=nvtx)",
        shapes="nsys profile --pytorch=autograd-shapes-nvtx",
        allocations="nsys profile --cuda-memory-usage=true",
        ranges="NVTX ranges (--trace=nvtx)",
        operators="operators (nsys profile --pytorch=autograd-nvtx, or torch.profiler)",
        synchronize="cudaDeviceSynchronize",
        graphs="CUDA graphs",
        graph="CUDA graph",
        no_counters="without performance counters (--gpu-metrics-devices)",
        memory=ANY_MEMORY,
        workers="the number of workers",
        prefetch="deeper prefetching",
        pinned="pinned memory and asynchronous copies",
        rank="a file for each rank, named by it (-o with %q{...})",
    ),
    "rocprofv3": Options(
        vendor="AMD",
        device="rocprofv3 --kernel-trace --memory-copy-trace",
        launches="with rocprofv3 --hip-runtime-trace --kernel-trace --memory-copy-trace",
        calls="rocprofv3 --hip-runtime-trace",
        waits="",
        schedule="rocprofv3 --collection-period over iterations after a warm-up",
        stack=_OF_FRAMEWORK,
        step="a roctx range around each iteration (rocprofv3 --marker-trace)",
        shapes="",
        allocations="rocprofv3 --memory-allocation-trace",
        ranges="roctx ranges (rocprofv3 --marker-trace)",
        operators=f"operators with {_OF_FRAMEWORK}",
        synchronize="hipDeviceSynchronize",
        graphs="HIP graphs",
        graph="HIP graph",
        no_counters="without performance counters (--pmc)",
        memory=ANY_MEMORY,
        workers="the number of workers",
        prefetch="deeper prefetching",
        pinned="pinned memory and asynchronous copies",
        rank="a file for each rank, named by it (-o with %rank%)",
    ),
    "rpd": Options(
        vendor="AMD",
        device="runTracer.sh (rocmProfileData)",
        launches="with runTracer.sh, without other profilers",
        calls="runTracer.sh",
        waits="",
        schedule="rpdTracerControl.start() and stop() around iterations after a warm-up",
        stack=_OF_FRAMEWORK,
        step="a roctx range around each iteration",
        shapes="",
        allocations="",
        ranges="roctx ranges",
        operators="operators (rpdTracerControl, or the profiler of the framework)",
        synchronize="hipDeviceSynchronize",
        graphs="HIP graphs",
        graph="HIP graph",
        no_counters="without performance counters",
        memory=ANY_MEMORY,
        workers="the number of workers",
        prefetch="deeper prefetching",
        pinned="pinned memory and asynchronous copies",
        rank="a file for each rank, named by it (RPDT_FILENAME)",
    ),
    "xprof": Options(
        vendor=None,
        device="jax.profiler.trace on a machine with a GPU or TPU that the program uses",
        launches="with fewer steps, or without the Python tracer "
        "(ProfileOptions.python_tracer_level = 0)",
        calls="the host tracer (ProfileOptions.host_tracer_level = 2)",
        waits="",
        schedule="jax.profiler.trace around some steps after a warm-up",
        stack="the Python tracer (ProfileOptions.python_tracer_level = 1)",
        step="jax.profiler.StepTraceAnnotation around each step",
        shapes="",
        allocations="",
        ranges="jax.profiler.TraceAnnotation",
        operators="the host tracer too (ProfileOptions.host_tracer_level = 2)",
        synchronize="jax.block_until_ready",
        graphs="one jax.jit around the whole step",
        graph="graph",
        no_counters="without performance counters",
        memory="donate_argnums, and no allocation in the loop",
        workers="the number of workers",
        prefetch="deeper prefetching",
        pinned="",
        rank="keep the name of the file, which tells the host",
    ),
}
"""Options by profiler; an unknown profiler has those of torch."""


# Arguments of torch's profiler that its traces tell, and what they record.
_IN_USE: Final = {"with_stack": "stack", "record_shapes": "shapes", "profile_memory": "allocations"}


def in_use(metadata: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the options that a trace was recorded with, by its metadata.

    Examples
    --------
    >>> in_use({"with_stack": 1, "record_shapes": 0})
    ('stack',)
    """
    return tuple(option for name, option in _IN_USE.items() if metadata.get(name) in (1, True))


def options_of(profiler: Profiler, *, is_of_server: bool) -> Options:
    """Return the options of a profiler. A server starts and stops it and has no loop to change.

    Examples
    --------
    >>> options_of("torch", is_of_server=False).step
    'prof.step() in the loop'
    """
    options = OPTIONS[profiler]
    return options._replace(**_OF_SERVER) if is_of_server else options


def options_for(recorded: Recorded) -> Options:
    """Return the options of the profiler that wrote a trace."""
    return options_of(recorded.profiler, is_of_server=recorded.is_of_server)
