"""Calls captured in a graph of torch, and what is left of a capture that failed."""

import sys

import pytest
import straw_torch

from longpole.bench.time.measure import measure_in_turns
from longpole.bench.time.torch_clock import CaptureError, TorchClock, captured


@pytest.fixture
def torch(monkeypatch):
    made = straw_torch.StrawTorch()
    made.__file__ = f"{straw_torch.__file__}/__init__.py"  # its frames are those of torch
    monkeypatch.setitem(sys.modules, "torch", made)
    return made


def as_before(torch):
    torch.randn()
    return (torch.stream, torch.sync_mode) == ("the stream of the caller", 0)


def test_a_call_that_waits_is_refused_before_the_capture_and_named(torch):
    def loss():
        torch.item()

    def step():
        torch.kernel()
        loss()

    with pytest.raises(CaptureError) as caught:
        captured(torch, step, 3)
    place, hint = str(caught.value).split("\n")
    assert place.startswith("test_graph_capture.py:")
    assert place.endswith(
        " in loss (`torch.item()`) waits for the device, which a CUDA graph cannot do"
    )
    assert hint.startswith("hint: --cache hot")
    assert as_before(torch)


def test_a_capture_that_fails_leaves_torch_as_it_was(torch):
    def step():
        torch.kernel()
        torch.cuda.synchronize()

    with pytest.raises(CaptureError) as caught:
        captured(torch, step, 3)
    assert (
        str(caught.value)
        .partition("\n")[0]
        .endswith(
            "in step (`torch.cuda.synchronize()`) cannot be captured in a CUDA graph: "
            "CUDA error: operation not permitted when stream is capturing"
        )
    )
    assert as_before(torch)


def test_an_error_of_the_function_itself_stays_what_it_is(torch):
    calls = []

    def step():
        calls.append(1)
        if len(calls) > 2:
            raise ValueError(len(calls))

    with pytest.raises(ValueError, match="3"):
        captured(torch, step, 3)
    assert as_before(torch)


def test_functions_after_a_failed_capture_have_their_times(monkeypatch, torch):
    clock = TorchClock("graph")
    monkeypatch.setattr(clock._library, "now_ns", torch.gpu.now_ns)

    def waits():
        torch.kernel()
        torch.cuda.synchronize()

    timings = measure_in_turns({"waits": waits, "draws": torch.randn}, clock=clock)
    assert timings["waits"].outcome == "raised"
    assert "CaptureError: test_graph_capture.py:" in timings["waits"].message
    assert timings["draws"].summarise().median_ns == pytest.approx(10_000, rel=0.03)
