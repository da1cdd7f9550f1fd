"""What to record, and what to change in the program, in the words of the profiler of a trace.

Advice names options. Those of `torch.profiler` do not exist in the profilers of Ascend and
MindSpore, which have others for the same purpose; some exist for GPUs of one vendor alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["OPTIONS", "Options", "Profiler", "options_of"]

Profiler = Literal["torch", "torch_rocm", "torch_xpu", "torch_npu", "mindspore", "msprof", "xprof"]


class Options(NamedTuple):
    """What one profiler calls what advice asks for; each follows "record" or "with"."""

    device: str
    """Work on devices."""
    launches: str
    """The calls that launch work."""
    waits: str
    """Who waits for whom on a device; empty where no option records that."""
    schedule: str
    """Some steps after a warm-up."""
    stack: str
    """The Python functions."""
    step: str
    """Marks between steps."""
    ranges: str
    """A range that the program names."""
    synchronize: str
    """A call that waits until devices are done."""
    graphs: str
    """What launches much work at once."""
    memory: str
    """What keeps memory from one step to the next."""
    workers: str
    """What loads data beside the main thread."""
    rank: str
    """What makes the rank known."""


_FRAMEWORK: Final = "the profiler of the framework (torch_npu.profiler, mindspore.profiler)"
_FOLDER: Final = "keep the files in the folder of the profile, which names the rank"
_SCHEDULE: Final = "schedule(wait=1, warmup=1, active=3)"

_TORCH: Final = Options(
    device="activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]",
    launches="fewer activities and no with_stack, or a larger buffer",
    waits="enable_cuda_sync_events=True",
    schedule=_SCHEDULE,
    stack="with_stack=True",
    step="prof.step() in the loop",
    ranges="record_function",
    synchronize="torch.cuda.synchronize",
    graphs="CUDA graphs or torch.compile",
    memory="expandable_segments:True, no empty_cache() in the loop",
    workers="num_workers",
    rank="initialise torch.distributed before the profiler starts",
)

# Servers are told over HTTP to profile, or by a function of their engine (vLLM, SGLang).
_OF_SERVER: Final = {
    "schedule": "several iterations after a warm-up (start_profile and stop_profile of the server)",
    "step": "whole iterations (start_profile and stop_profile of the server)",
}

OPTIONS: Final[Mapping[Profiler, Options]] = {
    "torch": _TORCH,
    "torch_rocm": _TORCH._replace(
        launches="fewer activities and no with_stack, or with a newer ROCm",
        waits="",
        graphs="HIP graphs (torch.cuda.CUDAGraph) or torch.compile",
        memory="no empty_cache() in the loop",
    ),
    "torch_xpu": _TORCH._replace(
        device="activities=[ProfilerActivity.CPU, ProfilerActivity.XPU]",
        waits="",
        synchronize="torch.xpu.synchronize",
        graphs="torch.compile",
        memory="no empty_cache() in the loop",
    ),
    "torch_npu": _TORCH._replace(
        device="activities=[ProfilerActivity.CPU, ProfilerActivity.NPU]",
        launches="profiler_level=ProfilerLevel.Level1 or higher, which records the calls into CANN",
        waits="profiler_level=ProfilerLevel.Level2, which records the calls into the runtime",
        ranges="torch_npu.npu.mstx.range_start",
        synchronize="torch_npu.npu.synchronize",
        graphs="graph mode (torch.compile with torchair)",
        rank=_FOLDER,
    ),
    "mindspore": Options(
        device="device_target='Ascend' or 'GPU'",
        launches="with mindspore.profiler.profile of MindSpore 2.4 or later, on Ascend "
        "(profiler_level=ProfilerLevel.Level1), since its text files name no launching calls",
        waits="profiler_level=ProfilerLevel.Level2, on Ascend",
        schedule=f"mindspore.profiler.{_SCHEDULE}",
        stack="with_stack=True (MindSpore 2.4 or later)",
        step="profiler.step() in the loop",
        ranges="mindspore.profiler.mstx.range_start",
        synchronize="mindspore.runtime.synchronize",
        graphs="graph mode (mindspore.jit)",
        memory="no empty_cache() in the loop",
        workers="num_parallel_workers",
        rank=_FOLDER,
    ),
    "msprof": Options(
        device="msprof --task-time=on",
        launches="msprof --ascendcl=on --runtime-api=on",
        waits="msprof --runtime-api=on",
        schedule="msprof over several iterations",
        stack=_FRAMEWORK,
        step=f"{_FRAMEWORK}, which marks steps",
        ranges="mstx ranges (msprof --msproftx=on)",
        synchronize="aclrtSynchronizeDevice",
        graphs="graph mode of the framework",
        memory="allocate before the loop",
        workers="the number of workers",
        rank=_FOLDER,
    ),
    "xprof": Options(
        device="jax.profiler.trace on a machine with a GPU or TPU that the program uses",
        launches="fewer steps, or no Python tracer (ProfileOptions.python_tracer_level = 0)",
        waits="",
        schedule="jax.profiler.trace around some steps after a warm-up",
        stack="the Python tracer (ProfileOptions.python_tracer_level = 1)",
        step="jax.profiler.StepTraceAnnotation around each step",
        ranges="jax.profiler.TraceAnnotation",
        synchronize="jax.block_until_ready",
        graphs="one jax.jit around the whole step",
        memory="donate_argnums, and no allocation in the loop",
        workers="the number of workers",
        rank="keep the name of the file, which tells the host",
    ),
}
"""By profiler; what is not known is taken for torch's."""


def options_of(profiler: Profiler, *, is_of_server: bool) -> Options:
    """Give the options of a profiler. A server starts and stops it, and has no loop to change.

    Examples
    --------
    >>> options_of("torch", is_of_server=False).step
    'prof.step() in the loop'
    """
    options = OPTIONS[profiler]
    return options._replace(**_OF_SERVER) if is_of_server else options
