"""Timing on a real GPU with torch: `pytest -m gpu`."""

import importlib.util
import os

import pytest

from longpole.bench import Effort, measure
from longpole.bench.time.measure import measure_in_turns
from longpole.bench.time.torch_clock import CaptureError, CuptiClock, TorchClock, captured

pytestmark = pytest.mark.gpu

EFFORT = Effort(budget_s=0.5)


@pytest.fixture(scope="module")
def torch():
    if importlib.util.find_spec("torch") is not None:
        import torch

        if torch.cuda.is_available():
            return torch
    if os.environ.get("LONGPOLE_REQUIRE_GPU") == "1":
        pytest.fail("LONGPOLE_REQUIRE_GPU=1, and torch sees no GPU")
    pytest.skip("torch sees no GPU")


@pytest.fixture
def matrix(torch):
    return torch.randn(1024, 1024, device="cuda")


def median_ns(function, clock):
    timing = measure(function, key="k", clock=clock, effort=EFFORT)
    assert timing.outcome == "ok", timing.message
    return timing.summarise().median_ns


def test_item_is_refused_by_name_and_random_numbers_still_work(torch, matrix):
    def loss():
        return (matrix @ matrix).sum().item()

    with pytest.raises(CaptureError, match=r"in loss \(`return .*item\(\)`\) waits for the device"):
        captured(torch, loss, 4)
    torch.randn(8, device="cuda").sum().item()


def test_after_a_capture_that_failed_torch_works_as_before(torch, matrix):
    stream = torch.cuda.current_stream()
    replay = captured(torch, lambda: torch.rand_like(matrix), 2)

    def waits():
        torch.mm(matrix, matrix)
        torch.cuda.synchronize()

    with pytest.raises(CaptureError, match=r"in waits \(`torch.cuda.synchronize\(\)`\) cannot be"):
        captured(torch, waits, 4)
    assert torch.cuda.current_stream() == stream
    torch.randn(8, device="cuda").sum().item()
    replay()  # a graph of an earlier capture, which draws random numbers
    captured(torch, lambda: torch.mm(matrix, matrix), 4)()
    torch.cuda.synchronize()


def test_other_functions_are_timed_after_a_failed_capture(torch, matrix):
    def waits():
        torch.mm(matrix, matrix)
        torch.cuda.synchronize()

    functions = {"waits": waits, "draws": lambda: torch.randn(1024, device="cuda")}
    timings = measure_in_turns(functions, clock=TorchClock("graph"), effort=EFFORT)
    assert timings["waits"].message.startswith("CaptureError: test_on_gpu.py:")
    assert timings["draws"].outcome == "ok", timings["draws"].message


@pytest.mark.parametrize("n", [1 << 10, 1 << 20, 1 << 26])
def test_graphs_take_the_time_of_their_kernels(torch, n):
    source = torch.randn(n, device="cuda")
    target = torch.empty_like(source)

    def call():
        torch.mul(source, 2.0, out=target)

    kernel_ns = median_ns(call, CuptiClock("hot"))
    graph_ns = median_ns(call, TorchClock("graph"))
    gap_ns = 400  # said in a note for calls below 5 us
    assert 0.95 * kernel_ns <= graph_ns <= 1.05 * kernel_ns + gap_ns


def test_short_calls_are_captured_and_long_ones_are_not(torch, matrix):
    large = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)

    def short():
        torch.mul(matrix, 2.0)

    def long():
        torch.mm(large, large)

    def waits():
        return matrix.sum().item()

    clock = TorchClock("hot")
    assert clock.suited_to([short]).cache == "graph"
    assert clock.suited_to([long]).cache == "hot"
    assert clock.suited_to([short, waits]).cache == "hot"


def test_the_time_to_launch_is_measured_and_said(torch, matrix):
    timing = measure(lambda: torch.mul(matrix, 2.0), clock=TorchClock("hot"), effort=EFFORT)
    assert 1_000 < timing.host_ns < 1_000_000
    assert any("host-bound" in note for note in timing.notes)


def test_a_wall_time_says_that_the_gpu_was_still_busy(torch):
    large = torch.randn(4096, 4096, device="cuda")
    timing = measure(lambda: torch.mm(large, large), effort=EFFORT)
    torch.cuda.synchronize()
    assert any("--clock torch" in note for note in timing.notes)
