"""Remedies about kernels are the same if a graph replays the kernels and its capture is known."""

from __future__ import annotations

import json
import random

import pytest

import longpole
from kernel_steps import Kernel, capture, kernel, named, replays, steps, tensors
from longpole.formats.convert.remedy_script import remedy_script

HALF, FLOAT = "c10::Half", "float"
SCORES, HEADS = (HALF, 64, 2048, 2048), (HALF, 64, 2048, 64)
IMAGES, CHANNELS = (HALF, 32, 128, 64, 64), (HALF, 128)
WIDE, SQUARE = (FLOAT, 8192, 8192), (FLOAT, 4096, 4096)
MATRIX, DENSE, SWAPPED = (HALF, 8, 1024, 2048), [2097152, 2048, 1], [2097152, 1, 1024]


def norm() -> Kernel:
    inputs = tensors(IMAGES, *[CHANNELS] * 4, *[("Scalar",)] * 3)
    values = ["", "", "", "", "", "False", "0.1", "1e-05"]
    inputs["Concrete Inputs"] = json.dumps(values)
    return kernel("aten::native_batch_norm", "batch_norm_transform_input", 1_200, **inputs)


BLOCKS = {
    "fused_attention": [
        kernel("aten::bmm", "gemm_nt", 1_000, **tensors(HEADS, (HALF, 64, 64, 2048))),
        kernel("aten::div", "elementwise_kernel", 1_000, **tensors(SCORES, ("double",))),
        kernel("aten::_softmax", "softmax_warp_forward", 1_000, **tensors(SCORES)),
        kernel("aten::bmm", "gemm_nn", 1_000, **tensors(SCORES, HEADS)),
    ],
    "fused_pointwise": [
        kernel(name, name, 336, **tensors(WIDE))
        for name in ("aten::mul", "aten::tanh", "aten::sigmoid", "aten::exp")
    ],
    "folded_batch_norm": [
        kernel("aten::cudnn_convolution", "gemm", 900, **tensors(IMAGES, (HALF, 128, 128, 3, 3))),
        norm(),
        kernel("aten::relu_", "clamp", 800, **tensors(IMAGES)),
    ],
    "layout_copies": [
        kernel("aten::copy_", "copy", 700, **tensors(MATRIX, MATRIX, strides=[DENSE, SWAPPED])),
        kernel("aten::bmm", "gemm", 500, **tensors(MATRIX, (HALF, 8, 2048, 1024))),
    ],
    "tensor_cores": [kernel("aten::mm", "ampere_sgemm_128x128", 8_000, **tensors(SQUARE, SQUARE))],
    "unaligned_products": [
        kernel(
            "aten::mm",
            "cutlass_75_tensorop_f16_s1688gemm_f16_128x128_nn_align1",
            2_000,
            **tensors((HALF, 4096, 4095), (HALF, 4095, 4096)),
        )
    ],
    "slow_kernels": [
        kernel("aten::mm", "g", 5_000, **tensors((HALF, 8192, 8192), (HALF, 8192, 8192))),
        kernel("aten::mm", "g", 4_000, **tensors((HALF, 8192, 2048), (HALF, 2048, 8192))),
    ],
    "contended_atomics": [
        kernel(
            "aten::index_add_",
            "indexFuncLargeIndex",
            10_000,
            **tensors(
                (FLOAT, 16, 64),
                ("Scalar",),
                ("long int", 1048576),
                (FLOAT, 1048576, 64),
                ("Scalar",),
            ),
        )
    ],
    "channels_last": [
        kernel("aten::cudnn_convolution", name, 1_000, **tensors(IMAGES, (HALF, 64, 128, 3, 3)))
        for name in ("cudnn::ops::nchwToNhwcKernel<half>", "sm80_xmma_fprop_implicit_gemm")
    ],
}
"""Kernels in which each remedy finds something."""


def found_in(trace) -> dict[tuple[object, ...], tuple[float, ...]]:
    """Return what remedies about kernels find, with their gains."""
    return {
        (row.remedy, row.name, row.advice, row.evidence): (
            row.gain.low,
            row.gain.value,
            row.gain.high,
        )
        for row in trace.verdict().remedies
        if row.remedy in BLOCKS
    }


@pytest.mark.parametrize("remedy", BLOCKS)
def test_a_remedy_sees_the_operators_of_replayed_kernels(remedy):
    kernels = BLOCKS[remedy] * 2
    assert remedy in named(steps(kernels))
    trace = replays(kernels).read(capture_traces=[capture(kernels).read()])
    [found] = [row for row in trace.verdict().remedies if row.remedy == remedy]
    assert found.gain.low > 0.005
    assert {trace.events["kind"][event] for event in found.events} == {"kernel"}
    # Without the capture, only the names of kernels are known.
    rows = replays(kernels).read().verdict().remedies
    assert (remedy in {row.remedy for row in rows}) == (remedy == "tensor_cores")


@pytest.mark.parametrize("seed", range(12))
def test_the_same_program_has_the_same_remedies_with_and_without_a_graph(seed):
    draw = random.Random(seed)  # noqa: S311 - reproducible programs
    names = draw.choices([*BLOCKS], k=draw.randint(2, 6))
    kernels = [one for name in names for one in BLOCKS[name]]
    n_eager = draw.choice([0, 0, draw.randrange(len(kernels))])
    trace = replays(kernels, n_eager=n_eager).read(
        capture_traces=[capture(kernels[n_eager:]).read()]
    )
    eager, replayed = found_in(steps(kernels).read()), found_in(trace)
    assert eager
    assert replayed.keys() == eager.keys()
    for key, gains in eager.items():
        assert replayed[key] == pytest.approx(gains, abs=0.005), key


def test_a_capture_of_another_graph_names_nothing():
    kernels = BLOCKS["tensor_cores"] * 2
    other = capture([*kernels, *BLOCKS["fused_pointwise"]])
    trace = replays(kernels).read(capture_traces=[other.read()])
    assert not any(str(name).startswith("aten::") for _, name, _, _ in found_in(trace))


def test_a_script_times_the_operators_of_the_capture():
    kernels = BLOCKS["tensor_cores"] * 2
    trace = replays(kernels).read(capture_traces=[capture(kernels).read()])
    [found] = [row for row in trace.verdict().remedies if row.remedy == "tensor_cores"]
    text = remedy_script(trace, "tensor_cores", found.forms)
    assert "aten::mm" in text
    assert "4096, 4096" in text


def test_the_answer_names_captured_operators_and_graphs_without_a_capture():
    kernels = [kernel("aten::mm", "gemm", 2_000, **tensors(SQUARE, SQUARE))] * 2
    known = replays(kernels).read(capture_traces=[capture(kernels).read()]).verdict()
    assert known.actions[0].startswith("aten::mm takes")
    assert len(known.actions) == 1
    other = replays(kernels).read(capture_traces=[capture(kernels * 2).read()])
    for unknown in (replays(kernels).read().verdict(), other.verdict()):
        assert unknown.actions[0].startswith("gemm takes")
        assert "100 % of the kernel time without a known capture" in unknown.actions[1]


def test_a_trace_that_contains_its_capture_needs_no_other():
    kernels = BLOCKS["tensor_cores"] * 2
    replay, own = (json.loads(it.to_bytes()) for it in (replays(kernels), capture(kernels)))
    for event in own["traceEvents"]:
        event["ts"] -= 1_000
    replay["traceEvents"] += own["traceEvents"]
    assert found_in(longpole.read_trace(json.dumps(replay).encode()))
