"""Advice names options of the profiler that wrote the trace, and of no other."""

from __future__ import annotations

import re

import pytest

import longpole
from ascend_profiles import AscendBuilder, late_peer
from longpole.recording import OPTIONS
from longpole.testing import TraceBuilder
from mindspore_files import cpu_profile

TORCH_ALONE = re.compile("CUDA|cuda|num_workers|torch.compile|record_function|roctracer")


def told(trace: longpole.Trace) -> str:
    """Give all advice about a trace."""
    hints = [finding.hint or "" for finding in longpole.check(trace)]
    verdict = trace.verdict()
    return " ".join([str(verdict), verdict.record or "", *hints])


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
    """Let kernels that were launched at once start long after each other."""
    for number in range(10):
        call, begin = (2 * number, 2 * number + 2), 400 * number + 30
        builder.launch(f"k{number}", call=call, work=(begin, begin + 20), **launch)
    return builder


@pytest.mark.parametrize(("call", "profiler"), [("hip", "torch_rocm"), ("ur", "torch_xpu")])
def test_options_that_only_cuda_has_are_not_advised_for_others(call, profiler):
    launch = {"hip": "hipLaunchKernel", "ur": "urEnqueueKernelLaunch"}[call]
    trace = unexplained(TraceBuilder(), by=launch).read()
    assert trace.core.profiler == profiler
    assert trace.verdict().status == "inconclusive"
    assert "with schedule(" in told(trace)
    assert "enable_cuda_sync_events" not in told(trace)
    assert "with enable_cuda_sync_events=True" in told(unexplained(TraceBuilder()).read())


def test_a_trace_of_torch_is_given_torchs():
    trace = TraceBuilder().operator("aten::mm", (0, 50)).read()
    assert trace.core.profiler == "torch"
    assert "ProfilerActivity.CUDA" in told(trace)


@pytest.mark.parametrize(
    ("document", "profiler"),
    [
        ('[{"ph":"M","name":"process_name","pid":2,"args":{"name":"CPU OP"}}', "mindspore"),
        ('[{"ph":"M","name":"process_name","pid":2,"args":{"name":"Python"}}', "torch"),
        ('[{"ph":"M","name":"process_name","pid":2,"args":{"name":"Ascend Hardware"}}', "msprof"),
    ],
)
def test_names_of_processes_tell_the_profiler(document, profiler):
    event = ',{"ph":"X","name":"a","pid":2,"tid":1,"ts":1,"dur":2}]'
    assert longpole.read_trace((document + event).encode()).core.profiler == profiler


def test_every_profiler_has_every_option():
    for options in OPTIONS.values():
        assert all(options._replace(waits="never empty"))
        assert not any(part.endswith(".") for part in options)


def test_who_profiles_a_server_is_not_told_to_change_a_loop():
    builder = TraceBuilder().annotation("execute_1_context_0_generation_1", (0, 4_600))
    trace = unexplained(builder).read()
    assert trace.core.is_of_server
    assert not re.search(r"schedule\(|prof\.step|in the loop", told(trace))
    assert "start_profile" in told(trace)
    assert not TraceBuilder().annotation("train_step", (0, 9)).read().core.is_of_server
