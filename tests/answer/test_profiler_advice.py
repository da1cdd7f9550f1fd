"""Advice names options of the profiler that wrote the trace, and of no other."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import polars as pl
import pytest

import longpole
from ascend_profiles import AscendBuilder, late_peer
from longpole.testing import TraceBuilder
from longpole.words.recording import OPTIONS, options_for
from mindspore_files import cpu_profile
from real_traces import SHARED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from longpole.words.recording import Options

TORCH_ALONE = re.compile("CUDA|cuda|num_workers|torch.compile|record_function|roctracer")

# What looks like an option or a name of an API, and not like a word.
CODE = re.compile(
    r"--[a-z][\w-]+|[A-Za-z]\w*_\w+|\w+(?==)|\w+\.\w[\w.]+|(?:CUDA|HIP) graph|NVTX|roctx|mstx"
)
OWN = {"--step-name"}
"""Options of longpole."""

CALLS = {
    "torch": ("cudaLaunchKernel", "cudaMemcpyAsync", "cudaDeviceSynchronize", "cudaFree"),
    "torch_rocm": ("hipLaunchKernel", "hipMemcpyWithStream", "hipDeviceSynchronize", "hipFree"),
    "torch_xpu": ("urEnqueueKernelLaunch", "urEnqueueUSMMemcpy", "urQueueFinish", "urUSMFree"),
}


def told(trace: longpole.Trace) -> str:
    """Return all advice about a trace."""
    verdict = trace.verdict()
    return " ".join([str(verdict), *advised(trace, verdict)])


def advised(trace: longpole.Trace, verdict: longpole.Verdict) -> list[str]:
    """List what advice there is outside of the sentence, which names events."""
    hints = [finding.hint or "" for finding in longpole.check(trace)]
    tables = [
        longpole.functions(trace),
        longpole.modules(trace),
        longpole.operators(trace, shapes=True),
        longpole.memory(trace),
    ]
    return [verdict.record or "", *hints, *(table.hint or "" for table in tables)]


def named(options: Options) -> set[str]:
    """List the options that advice may name."""
    return set(CODE.findall(" ".join(text for text in options if text)))


def foreign(trace: longpole.Trace) -> set[str]:
    """List what advice about a trace names and its profiler does not have."""
    own = named(options_for(trace.core)) | OWN
    own |= {"xplane.pb"} if trace.format.startswith("xprof") else set()
    others = set().union(*(named(options) for options in OPTIONS.values())) - own
    verdict = trace.verdict()
    advice = " ".join(advised(trace, verdict))
    events = " ".join(trace.events["name"].cast(pl.String).unique().drop_nulls())
    in_sentence = {name for name in CODE.findall(str(verdict)) if name not in events}
    ours = {"--window", "--step", "--step-name", "--capture-trace"}
    return (set(CODE.findall(advice)) - own - ours) | (in_sentence & others)


def situations() -> dict[str, Callable[[TraceBuilder, tuple[str, ...]], TraceBuilder]]:
    """Return what draws advice out: each adds events with the calls of a vendor."""

    def two(builder: TraceBuilder, calls: tuple[str, ...], work: tuple[int, int]) -> TraceBuilder:
        builder.launch("a", call=(0, 2), work=(4, 10), by=calls[0])
        return builder.launch("b", call=(3, 5), work=work, by=calls[0])

    def busy(builder: TraceBuilder, calls: tuple[str, ...]) -> TraceBuilder:
        for at in range(0, 900, 30):
            builder.operator("aten::mm", (at, at + 29))
            builder.launch("a", call=(at + 1, at + 5), work=(at + 6, at + 8), by=calls[0])
        return builder

    def freeing(builder: TraceBuilder, calls: tuple[str, ...]) -> TraceBuilder:
        builder.launch("a", call=(0, 5), work=(6, 80), by=calls[0])
        builder.call(calls[3], (10, 900))
        return builder.launch("a", call=(901, 905), work=(906, 980), by=calls[0])

    def copying(builder: TraceBuilder, calls: tuple[str, ...]) -> TraceBuilder:
        for at in range(0, 900, 90):
            builder.launch("a", call=(at, at + 2), work=(at + 3, at + 60), by=calls[0])
            name = "Memcpy HtoD (Pageable -> Device)"
            builder.launch(name, call=(at + 3, at + 70), work=(at + 60, at + 68), by=calls[1])
            builder.operator("aten::add", (at + 71, at + 89))
        return builder

    def loading(builder: TraceBuilder, calls: tuple[str, ...]) -> TraceBuilder:
        name = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
        for at in range(0, 900, 90):
            builder.annotation(name, (at, at + 60))
            builder.launch("a", call=(at + 61, at + 65), work=(at + 66, at + 80), by=calls[0])
            builder.call(calls[2], (at + 66, at + 85))
        return builder

    return {
        "gap": lambda builder, calls: two(builder, calls, (400, 500)),
        "kernels": lambda builder, calls: two(builder, calls, (10, 500)),
        "unlinked": lambda builder, calls: two(builder, calls, (10, 20)).kernel("c", (20, 90)),
        "launches without work": lambda builder, calls: builder.call(calls[0], (0, 2)),
        "host": busy,
        "free": freeing,
        "copies": copying,
        "loading": loading,
    }


def simulated() -> Iterator[object]:
    """Yield each situation on each vendor's devices, and as the files of each other profiler."""
    for what, add in situations().items():
        for profiler, calls in CALLS.items():
            yield pytest.param(profiler, calls, add, {}, id=f"{profiler}: {what}")
        for profiler in ("nsys", "xprof", "torch_npu", "msprof", "mindspore"):
            header = {"profiler": profiler}
            yield pytest.param(profiler, CALLS["torch"], add, header, id=f"{profiler}: {what}")
        header = {"profiler": "rocprofv3"}
        yield pytest.param("rocprofv3", CALLS["torch_rocm"], add, header, id=f"rocprofv3: {what}")


@pytest.mark.parametrize(("profiler", "calls", "add", "header"), [*simulated()])
def test_advice_names_no_option_of_another_profiler(profiler, calls, add, header):
    trace = add(TraceBuilder().header(**header), calls).read()
    assert trace.core.profiler == profiler
    assert foreign(trace) == set()


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(
            path,
            id=path.name,
            marks=[pytest.mark.slow] if path.stat().st_size > 12_000 else [],
        )
        for path in sorted(SHARED.glob("*/**/*.json.gz"))
    ]
    or [pytest.param(SHARED, marks=pytest.mark.skip)],
)
def test_advice_about_a_real_trace_names_no_option_of_another_profiler(path):
    if path.stat().st_size > 5_000_000:
        pytest.skip("large")
    try:
        trace = longpole.read_trace(path)
    except longpole.LongpoleError:
        pytest.skip("no trace")
    assert foreign(trace) == set()


# What the documentation of each profiler lists.
TORCHS = {"activities", "with_stack", "record_shapes", "profile_memory", "experimental_config"}
TORCHS |= {"wait", "warmup", "active", "pin_memory", "non_blocking"}
TORCH = TORCHS | {
    "experimental_config",
    "profile_all_threads",
    "profiler_metrics",
    "profiler_measure_per_kernel",
}
HAS = {
    "torch": TORCH | {"enable_cuda_sync_events", "profiler_metrics", "profiler_measure_per_kernel"},
    "torch_rocm": TORCH,
    "torch_xpu": TORCH,
    "torch_unknown": TORCH,
    "torch_npu": TORCHS | {"profiler_level"},
    "mindspore": TORCHS | {"profiler_level", "device_target"},
    "msprof": {
        *("--task-time", "--ascendcl", "--runtime-api", "--msproftx", "--aic-metrics"),
        "--sys-hardware-mem",
    },
    "nsys": {
        *("--trace", "--capture-range", "--python-sampling", "--pytorch", "--cuda-memory-usage"),
        "--gpu-metrics-devices",
    },
    "rocprofv3": {
        *("--kernel-trace", "--memory-copy-trace", "--hip-runtime-trace", "--collection-period"),
        *("--marker-trace", "--memory-allocation-trace", "--pmc"),
    },
    "rpd": set(),
    "xprof": set(),
}


@pytest.mark.parametrize("profiler", OPTIONS)
def test_a_profiler_has_the_options_that_advice_names(profiler):
    texts = " ".join(text for text in OPTIONS[profiler] if text)
    assert set(re.findall(r"--[a-z][\w-]+|(?<![\w-])\w+(?==)", texts)) <= HAS[profiler]


def test_a_profile_of_mindspore_is_not_given_options_of_torch(tmp_path):
    trace = longpole.read_trace(cpu_profile(tmp_path))
    assert trace.core.profiler == "mindspore"
    assert "device_target" in told(trace)
    assert not TORCH_ALONE.search(told(trace))


def test_a_profile_of_torch_npu_is_given_its_own_options():
    host = AscendBuilder().operator("aten::mm", (0, 50)).call("Node@launch", (10, 12), 1)
    assert "ProfilerActivity.NPU" in told(host.read())
    assert late_peer().read().core.profiler == "torch_npu"
    assert not TORCH_ALONE.search(told(late_peer().read()))


def unexplained(builder: TraceBuilder, **launch: str) -> TraceBuilder:
    """Make kernels that were launched together start long after each other."""
    for number in range(10):
        call, begin = (2 * number, 2 * number + 2), 400 * number + 30
        builder.launch(f"k{number}", call=call, work=(begin, begin + 20), **launch)
    return builder


@pytest.mark.parametrize(("call", "profiler"), [("hip", "torch_rocm"), ("ur", "torch_xpu")])
def test_options_that_only_cuda_has_are_not_advised_for_others(said, call, profiler):
    launch = {"hip": "hipLaunchKernel", "ur": "urEnqueueKernelLaunch"}[call]
    trace = unexplained(TraceBuilder(), by=launch).read()
    assert trace.core.profiler == profiler
    assert trace.verdict().status == "inconclusive"
    assert "with schedule(" in told(trace)
    assert "enable_cuda_sync_events" not in told(trace)
    said.within(told(unexplained(TraceBuilder()).read()))


def test_a_trace_without_a_device_is_not_told_that_it_has_nvidias(said):
    trace = TraceBuilder().operator("aten::mm", (0, 50)).read()
    assert trace.core.profiler == "torch_unknown"
    said.within(told(trace))
    assert "enable_cuda_sync_events" not in told(trace)


@pytest.mark.parametrize(
    ("field", "profiler"), [("cupti_version", "torch"), ("hip_runtime_version", "torch_rocm")]
)
def test_the_header_tells_the_vendor_where_no_call_does(field, profiler):
    builder = TraceBuilder().header(**{field: 70051831}).kernel("gemm", (0, 50))
    assert builder.read().core.profiler == profiler


@pytest.mark.parametrize(
    ("document", "profiler"),
    [
        ('[{"ph":"M","name":"process_name","pid":2,"args":{"name":"CPU OP"}}', "mindspore"),
        ('[{"ph":"M","name":"process_name","pid":2,"args":{"name":"Python"}}', "torch_unknown"),
        ('[{"ph":"M","name":"process_name","pid":2,"args":{"name":"Ascend Hardware"}}', "msprof"),
    ],
)
def test_names_of_processes_tell_the_profiler(document, profiler):
    event = ',{"ph":"X","name":"a","pid":2,"tid":1,"ts":1,"dur":2}]'
    assert longpole.read_trace((document + event).encode()).core.profiler == profiler


LACKING = ("waits", "shapes", "allocations", "pinned", "all_threads", "counters")


def test_every_profiler_has_every_option():
    may_lack = dict.fromkeys(LACKING, "-")
    for options in OPTIONS.values():
        assert all(options._replace(vendor="AMD", **may_lack))
        assert not any(part.endswith(".") for part in options if part)


def test_who_profiles_a_server_is_not_told_to_change_a_loop():
    builder = TraceBuilder().annotation("execute_1_context_0_generation_1", (0, 4_600))
    trace = unexplained(builder).read()
    assert trace.core.is_of_server
    assert not re.search(r"schedule\(|prof\.step|in the loop", told(trace))
    assert "start_profile" in told(trace)
    assert not TraceBuilder().annotation("train_step", (0, 9)).read().core.is_of_server


def threads_of(operators: str) -> longpole.Trace:
    """Launch from two threads without operators, and mark steps on a third."""
    builder = TraceBuilder()
    for step in range(4):
        begin = 1_000 * step
        builder.step(step, (begin, begin + 1_000))
        if operators == "recorded of another":
            builder.operator("aten::ones", (begin + 1, begin + 5))
        for thread in (2, 3):
            for place in range(3):
                call = begin + 10 + 300 * place + 100 * thread // 2
                work = (call + 10, call + 20)
                builder.launch(
                    "gemm", call=(call, call + 5), work=work, thread=thread, stream=thread
                )
    return builder.read()


@pytest.mark.parametrize("operators", ["recorded of none", "recorded of another"])
def test_operators_of_other_threads_are_asked_for_and_not_what_was_already_on(operators):
    said = told(threads_of(operators))
    assert "profile_all_threads=True" in said
    assert "ProfilerActivity.CPU among" not in said


@pytest.mark.skipif(not SHARED.is_dir(), reason="the shared traces are not here")
def test_a_program_of_two_launching_threads_is_told_to_record_all_threads():
    trace = longpole.read_trace(SHARED / "gpu" / "other" / "threads.json.gz")
    assert "profile_all_threads=True" in str(trace.verdict())
    assert "ProfilerActivity.CPU" not in told(trace)


@pytest.mark.skipif(not SHARED.is_dir(), reason="the shared traces are not here")
def test_times_of_0_are_explained_by_counters_that_could_not_be_read(said):
    trace = longpole.read_trace(SHARED / "gpu" / "other" / "counters_training.json.gz")
    [found] = [each for each in longpole.check(trace) if each.code == "zero_timestamp"]
    assert found.count == 307
    said.within(str(found.hint))
