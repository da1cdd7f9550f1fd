"""Kernels that do not fill the device: the trace and the sentence."""

from __future__ import annotations

from steps import remedy_of

from longpole.testing import TraceBuilder

H100 = {"id": 0, "name": "NVIDIA H100 80GB HBM3", "totalGlobalMem": 85e9, "numSms": 132}


def replayed(n_blocks: int, kernel_us: int = 5, n_streams: int = 1) -> TraceBuilder:
    """Build steps of 200 kernels that a graph launches."""
    builder, length = TraceBuilder().header(deviceProperties=[H100]), 200 * kernel_us + 40
    for number in range(4):
        begin = number * length
        builder.call("cudaGraphLaunch", (begin, begin + 10), correlation=number + 1)
        for place in range(200):
            start = begin + 12 + place * kernel_us
            builder.kernel(
                "gemm",
                (start, start + kernel_us),
                stream=7 + place % n_streams,
                correlation=number + 1,
                grid=[n_blocks, 1, 1],
            )
        builder.call("cudaDeviceSynchronize", (begin + 11, begin + length - 10))
        builder.step(number, (begin, begin + length))
    return builder


def test_small_kernels_are_said_to_have_room_for_more(said):
    verdict = replayed(16).read().verdict()
    found = next(row for row in verdict.remedies if row.remedy == "small_batch")
    assert (found.gain.low, found.gain.high, found.named) == (0, 0, True)
    said(verdict.actions[0])


def test_kernels_that_fill_the_device_are_left_alone():
    assert remedy_of("small_batch", replayed(132)) is None


def test_long_kernels_of_few_blocks_are_slow_for_another_reason():
    assert remedy_of("small_batch", replayed(16, 50)) is None


def test_kernels_of_several_streams_fill_the_device_together():
    assert remedy_of("small_batch", replayed(16, n_streams=2)) is None


def test_without_the_number_of_multiprocessors_nothing_is_said():
    assert remedy_of("small_batch", replayed(16).header(deviceProperties=[])) is None


def inferring(size: int) -> TraceBuilder:
    """Build steps of 20 layers with a batch of some size, which the host launches."""
    builder = TraceBuilder()
    shapes = f"[[{size}, 512], [512, 512], [512]]"
    inputs = {"Input Dims": shapes, "Input type": '["float", "float", "float"]'}
    for number in range(4):
        begin = number * 2_100.0
        for place in range(20):
            start = begin + place * 100
            builder.operator("aten::linear", (start, start + 60), **inputs)
            builder.launch("gemm", call=(start + 10, start + 20), work=(start + 25, start + 35))
        builder.step(number, (begin, begin + 2_050))
    return builder


def test_a_batch_of_one_that_the_host_launches_is_named():
    found = remedy_of("small_batch", inferring(1))
    assert found is not None
    assert found.evidence.startswith("the batch has 1 item in 20 layers a step")


def test_a_larger_batch_is_left_alone():
    assert remedy_of("small_batch", inferring(8)) is None
