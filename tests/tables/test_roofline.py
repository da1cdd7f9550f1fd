"""The roofline of kernels, and model FLOPs utilisation."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import longpole
from longpole.devices.peaks import PEAKS, peaks_of
from longpole.report.blocks import Sentence, Table
from longpole.tables.activities import own_activities
from longpole.testing import TraceBuilder
from real_traces import real_traces

H100 = [{"id": 0, "name": "NVIDIA H100 80GB HBM3", "totalGlobalMem": 85_000_000_000}]
PEAK = 989.4e12


def inputs(*shapes, dtype="c10::BFloat16"):
    return {"Input Dims": list(shapes), "Input type": [dtype] * len(shapes)}


def product(builder, start, took_us, *, name="gemm", size=4096, **more):
    arguments = inputs([size, size], [size, size]) | more
    return builder.operator("aten::mm", (start, start + 5), **arguments).launch(
        name, call=(start + 1, start + 2), work=(start + 2, start + 2 + took_us)
    )


def test_a_product_is_compared_with_the_peak_of_its_type():
    trace = product(TraceBuilder().header(deviceProperties=H100), 0, 200).read()
    [row] = longpole.roofline(trace).rows.to_dicts()
    flops = 2 * 4096**3
    assert (row["flops"], row["n_bytes"]) == (flops, 2 * 3 * 4096**2)
    assert (row["precision"], row["bound"]) == ("bf16", "compute")
    assert row["tflops"] == pytest.approx(flops / 200e-6 / 1e12)
    assert row["roof_ns"] == round(flops / PEAK * 1e9)
    assert row["lost_ns"] == 200_000 - row["roof_ns"]


def test_what_moves_more_than_it_computes_is_compared_with_the_memory():
    builder = TraceBuilder().header(deviceProperties=H100)
    builder = builder.operator("aten::add", (0, 5), **inputs([1000, 1000], [1000, 1000]))
    trace = builder.launch("add", call=(1, 2), work=(2, 6)).read()
    [row] = longpole.roofline(trace).rows.to_dicts()
    assert (row["bound"], row["roof_ns"]) == ("memory", round(6e6 / 3350))


def test_the_largest_loss_comes_first_beside_its_time_on_the_path():
    builder = TraceBuilder().header(deviceProperties=H100).step(1, (0, 1000))
    builder = product(builder, 0, 300)
    builder = builder.operator("aten::add", (10, 12), **inputs([1000, 1000], [1000, 1000]))
    builder = builder.launch("add", call=(11, 12), work=(20, 620), stream=9)
    found = longpole.roofline(builder.call("cudaDeviceSynchronize", (900, 1000)).read())
    names = found.rows.select("name", "lost_ns", "path_ns").rows()
    assert [name for name, *_ in names] == ["aten::add", "aten::mm"]
    assert names[0][1] > names[1][1]
    assert sum(path_ns for *_, path_ns in names) <= found.path_length_ns


def test_operators_are_sorted_by_a_column_as_it_is_printed():
    builder = product(TraceBuilder().header(deviceProperties=H100), 0, 300)
    builder.operator("aten::add", (400, 405), **inputs([4096, 4096], [4096, 4096]))
    trace = builder.launch("add", call=(401, 402), work=(402, 902)).read()
    assert longpole.roofline(trace).rows["name"].to_list() == ["aten::add", "aten::mm"]
    for column in ("of_roof", "of roofline"):
        found = longpole.roofline(trace, sort=column).rows["name"].to_list()
        assert found == ["aten::mm", "aten::add"]


def test_a_kernel_that_rounds_to_tf32_has_its_peak():
    rows = []
    for name in ("ampere_sgemm_128x64", "sm80_xmma_gemm_f32f32_tf32f32_f32"):
        builder = TraceBuilder().header(deviceProperties=H100)
        more = inputs([4096, 4096], [4096, 4096], dtype="float")
        trace = product(builder, 0, 900, name=name, **more).read()
        rows += longpole.roofline(trace).rows["precision"].to_list()
    assert rows == ["fp32", "tf32"]


def test_of_operators_inside_one_another_the_outermost_counts_once():
    builder = TraceBuilder().header(deviceProperties=H100)
    builder = builder.operator("aten::linear", (0, 9), **inputs([8, 64], [32, 64], [32]))
    builder = builder.operator("aten::addmm", (1, 8), **inputs([32], [8, 64], [64, 32]))
    builder = builder.launch("gemm", call=(2, 3), work=(3, 9))
    trace = builder.launch("splitk_reduce", call=(3, 4), work=(9, 12)).read()
    [row] = longpole.roofline(trace).rows.to_dicts()
    assert (row["name"], row["flops"], row["n_kernels"], row["kernel_ns"]) == (
        "aten::linear",
        2 * 8 * 32 * 64,
        2,
        9_000,
    )


def test_under_autocast_the_operator_with_the_types_of_the_kernels_counts():
    builder = TraceBuilder().header(deviceProperties=H100)
    wide = inputs([4096, 4096], [4096, 4096], dtype="float")
    builder.operator("aten::linear", (0, 90), **wide)
    builder.operator("aten::_to_copy", (1, 9), **inputs([4096, 4096], dtype="float"))
    builder.launch("cast", call=(2, 3), work=(4, 44))
    builder.operator("aten::linear", (10, 80), **inputs([4096, 4096], [4096, 4096]))
    trace = builder.launch("gemm", call=(11, 12), work=(50, 300)).read()
    found = {row["name"]: row for row in longpole.roofline(trace).rows.to_dicts()}
    assert (found["aten::linear"]["precision"], found["aten::linear"]["kernel_ns"]) == (
        "bf16",
        250_000,
    )
    assert found["aten::linear"]["of_roof"] < 1
    assert found["aten::_to_copy"]["kernel_ns"] == 40_000
    assert [row.precision for row in longpole.roofline(trace, by="type").rows] == ["bf16"]


def test_a_recomputation_that_stops_before_its_kernel_computes_nothing():
    mixed = {"Input type": ["c10::BFloat16", "float"]}
    shapes = inputs([4096, 4096], [4096, 4096])
    builder = TraceBuilder().header(deviceProperties=H100)
    for begin, thread, is_complete in ((0, 1, True), (1000, 2, False)):
        number = {"Sequence number": 7, "Fwd thread id": 0}
        if thread == 2:
            node = number | {"Fwd thread id": 1}
            builder.operator("CheckpointBackward", (begin, begin + 95), thread=thread, **node)
        outer = (begin + 1, begin + 90)
        builder.operator("aten::linear", outer, thread=thread, **(shapes | mixed | number))
        cast = inputs([4096, 4096], dtype="float")
        builder.operator("aten::_to_copy", (begin + 2, begin + 9), thread=thread, **cast)
        call = (begin + 3, begin + 4)
        builder.launch("cast", call=call, work=(begin + 4, begin + 44), thread=thread)
        inner = (begin + 10, begin + 80)
        builder.operator("aten::linear", inner, thread=thread, **(shapes | number))
        if is_complete:
            call = (begin + 11, begin + 12)
            builder.launch("gemm", call=call, work=(begin + 50, begin + 300), thread=thread)
    trace = builder.read()
    [row] = longpole.roofline(trace, by="type").rows
    assert (row.flops, row.recomputed_flops, row.kernel_ns) == (2 * 4096**3, 0, 250_000)
    found = {row["name"]: row for row in longpole.roofline(trace).rows.to_dicts()}
    assert (found["aten::linear"]["calls"], found["aten::_to_copy"]["calls"]) == (1, 2)


def test_the_utilisation_stands_below_the_roofline_with_the_same_number():
    trace = product(TraceBuilder().header(deviceProperties=H100), 0, 200).read()
    found = longpole.roofline(trace)
    assert found.mfu == longpole.roofline(trace, by="type").mfu
    [told] = [it.text for it in found.blocks() if isinstance(it, Sentence) and "MFU" in it.text]
    assert told.startswith(f"MFU {100 * found.mfu:.1f} %: ")
    unknown = longpole.roofline(product(TraceBuilder(), 0, 200).read())
    assert unknown.mfu is None
    assert not [it for it in unknown.blocks() if isinstance(it, Sentence) and "MFU" in it.text]


@pytest.mark.parametrize(("took_us", "told"), [(0.5, "part of the data was in a cache"), (9, None)])
def test_more_than_the_memory_allows_is_explained(took_us, told):
    builder = TraceBuilder().header(deviceProperties=H100)
    builder = builder.operator("aten::add", (0, 5), **inputs([1000, 1000], [1000, 1000]))
    trace = builder.launch("add", call=(1, 2), work=(2, 2 + took_us)).read()
    texts = [it.text for it in longpole.roofline(trace).blocks() if isinstance(it, Sentence)]
    assert any(" reaches " in text for text in texts) == bool(told)
    assert told is None or any(told in text for text in texts)


def test_more_than_the_compute_peak_is_said_of_an_operator_that_the_table_cuts_off():
    builder = product(TraceBuilder().header(deviceProperties=H100), 0, 200)
    builder = builder.operator("aten::linear", (300, 310), **inputs([4096, 4096], [4096, 4096]))
    trace = builder.launch("gemm", call=(301, 302), work=(302, 402)).read()
    found = longpole.roofline(trace, top=1)
    [table] = [it for it in found.blocks() if isinstance(it, Table)]
    assert [row[0] for row in table.rows] == ["aten::mm [4096,4096]x[4096,4096]"]
    [told] = [it.text for it in found.blocks() if isinstance(it, Sentence) and "reaches" in it.text]
    assert told.startswith("aten::linear [4096,4096]x[4096,4096] reaches 138.9 % of the compute ")


def test_a_kernel_that_is_in_the_window_in_part_counts_in_part():
    trace = product(TraceBuilder().header(deviceProperties=H100), 0, 200).read()
    window = longpole.Window("trace", None, 102_000, 500_000, "for the test")
    [row] = longpole.roofline(trace, window).rows.to_dicts()
    assert (row["kernel_ns"], row["flops"]) == (100_000, 4096**3)


def test_kernels_without_a_formula_are_listed_and_not_judged():
    trace = TraceBuilder().header(deviceProperties=H100).kernel("mine", (0, 5)).read()
    found = longpole.roofline(trace)
    [row] = found.rows.to_dicts()
    assert (row["kernel"], row["kernel_ns"], row["roof_ns"], row["bound"]) == (
        "mine",
        5_000,
        None,
        None,
    )
    assert (found.kernel_ns, found.known_ns) == (5_000, 0)


def test_kernels_of_no_known_operator_stand_under_their_own_name_without_calls():
    trace = TraceBuilder().launch("gemm", call=(0, 1), work=(2, 7)).read()
    found = longpole.roofline(trace, peak={"fp32": 20, "bandwidth": 1000})
    assert found.rows.select("name", "kernel", "calls", "n_kernels").row(0) == (
        None,
        "gemm",
        None,
        1,
    )
    assert not any(isinstance(block, Table) for block in found.blocks())


def test_the_table_shows_kernels_with_a_formula_and_names_the_longest_of_the_others(said):
    builder = product(TraceBuilder().header(deviceProperties=H100), 0, 50)
    found = longpole.roofline(builder.launch("mine", call=(60, 61), work=(70, 90)).read())
    assert found.rows.height == 2
    [table] = [block for block in found.blocks() if isinstance(block, Table)]
    assert [row[0].split()[0] for row in table.rows] == ["aten::mm"]
    text = " ".join(block.text for block in found.blocks() if isinstance(block, Sentence))
    said.within(text)


def test_communication_is_not_compared_with_the_peaks_of_a_device():
    builder = product(TraceBuilder().header(deviceProperties=H100), 0, 50)
    trace = builder.launch("ncclDevKernel_AllReduce", call=(60, 61), work=(61, 90)).read()
    assert longpole.roofline(trace).rows["name"].to_list() == ["aten::mm"]


def test_a_device_that_is_not_in_the_table_is_not_judged_until_its_peaks_are_given():
    trace = product(TraceBuilder(), 0, 200).read()
    assert longpole.roofline(trace).rows["roof_ns"].to_list() == [None]
    assert longpole.roofline(trace, by="type").mfu is None
    given = longpole.roofline(trace, peak={"bf16": 1000, "bandwidth": 1000})
    assert given.rows["roof_ns"].to_list() == [round(2 * 4096**3 / 1e6)]
    assert longpole.roofline(trace, peak={"bf16": 1000}).rows["roof_ns"].to_list() == [None]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"peak": {"bf17": 1}}, "bf17"),
        ({"peak": {"bf16": 0}}, "positive"),
        ({"peak": {"bandwidth": -1}}, "positive"),
        ({"where": "nme = 1"}, "the columns are"),
    ],
)
def test_peaks_that_cannot_be_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        longpole.roofline(product(TraceBuilder(), 0, 200).read(), **options)


def test_utilisation_is_of_the_whole_window():
    builder = TraceBuilder().header(deviceProperties=H100).step(1, (0, 1000))
    trace = product(builder, 0, 300).read()
    window = longpole.choose_window(trace, 1)
    expected = 2 * 4096**3 / (PEAK * window.duration_ns / 1e9)
    assert longpole.roofline(trace, window, by="type").mfu == pytest.approx(expected)


def test_what_a_backward_pass_runs_again_is_no_work_of_the_model():
    number = {"Sequence number": 7, "Fwd thread id": 0}
    builder = TraceBuilder().header(deviceProperties=H100)
    builder = product(builder, 0, 50, **number)
    builder = builder.operator(
        "CheckpointBackward", (100, 160), thread=2, **(number | {"Fwd thread id": 1})
    )
    arguments = inputs([4096, 4096], [4096, 4096]) | {"Sequence number": 8, "Fwd thread id": 0}
    builder = builder.operator("aten::mm", (105, 120), thread=2, **arguments)
    builder = builder.launch("gemm", call=(106, 107), work=(110, 160), thread=2)
    builder = builder.operator(
        "aten::mm", (130, 140), thread=2, **inputs([4096, 4096], [4096, 4096])
    )
    trace = builder.launch("gemm", call=(131, 132), work=(160, 210), thread=2).read()
    [row] = longpole.roofline(trace, by="type").rows
    assert (row.flops, row.recomputed_flops) == (2 * 2 * 4096**3, 2 * 4096**3)
    assert row.hfu == pytest.approx(1.5 * row.mfu)


def test_products_whose_shapes_are_not_recorded_are_told():
    builder = TraceBuilder().header(deviceProperties=H100)
    builder = product(builder, 0, 50).operator("aten::mm", (100, 110))
    trace = builder.launch("gemm", call=(101, 102), work=(102, 152)).read()
    found = longpole.roofline(trace, by="type")
    assert (found.without_formula_ns, found.kernel_ns) == (50_000, 100_000)
    assert "50.0 %" in found.blocks()[-1].text


@pytest.mark.parametrize(
    ("name", "memory", "key"),
    [
        ("NVIDIA H100 80GB HBM3", None, "H100 SXM"),
        ("NVIDIA H100 PCIe", None, "H100 PCIe"),
        ("NVIDIA H100 NVL", None, "H100 NVL"),
        ("NVIDIA H200", None, "H200"),
        ("NVIDIA B200", None, "B200"),
        ("NVIDIA A100-SXM4-80GB", 85_000_000_000, "A100 SXM 80GB"),
        ("NVIDIA A100-SXM4-40GB", 42_000_000_000, "A100 40GB"),
        ("NVIDIA A100 80GB PCIe", 85_000_000_000, "A100 PCIe 80GB"),
        ("Tesla V100-SXM2-32GB", None, "V100 SXM2"),
        ("Tesla V100-PCIE-16GB", None, "V100 PCIe"),
        ("AMD Instinct MI250X", None, "MI250X"),
        ("AMD Instinct MI300X", None, "MI300X"),
        ("AMD Instinct MI355X", None, "MI355X"),
        ("Tesla T4", None, "T4"),
        ("Tesla V100-SXM2-16GB", None, "V100 SXM2"),
        ("Tesla V100S-PCIE-32GB", None, "V100S"),
        ("NVIDIA A10", None, "A10"),
        ("NVIDIA A10G", None, "A10G"),
        ("NVIDIA A30", None, "A30"),
        ("NVIDIA A40", None, "A40"),
        ("NVIDIA L4", None, "L4"),
        ("NVIDIA L40", None, "L40"),
        ("NVIDIA L40S", None, "L40S"),
        ("NVIDIA RTX A6000", None, "RTX A6000"),
        ("NVIDIA RTX 6000 Ada Generation", None, "RTX 6000 Ada"),
        ("NVIDIA GeForce RTX 3090", None, "RTX 3090"),
        ("NVIDIA GeForce RTX 4090", None, "RTX 4090"),
        ("NVIDIA GeForce RTX 5090", None, "RTX 5090"),
        ("NVIDIA A800-SXM4-80GB", None, "A800 SXM 80GB"),
        ("NVIDIA A800 80GB PCIe", None, "A800 PCIe 80GB"),
        ("NVIDIA H800", None, "H800 SXM"),
        ("NVIDIA H800 PCIe", None, "H800 PCIe"),
        ("NVIDIA H20", None, "H20"),
        ("NVIDIA GH200 480GB", None, "GH200"),
        ("NVIDIA GH200 144G HBM3e", None, "GH200 HBM3e"),
        ("NVIDIA GB200", None, "GB200"),
        ("NVIDIA B300 SXM6 AC", None, "B300"),
        ("AMD Instinct MI210", None, "MI210"),
        ("AMD Instinct MI250X/MI250", None, "MI250X"),
        ("AMD Instinct MI300A", None, "MI300A"),
        ("AMD Instinct MI300X OAM", None, "MI300X"),
        ("AMD Instinct MI325X", None, "MI325X"),
    ],
)
def test_a_device_is_known_by_its_name(name, memory, key):
    assert peaks_of(name, memory).name == key


@pytest.mark.parametrize(
    "name",
    [
        None,
        "",
        "AMD Radeon Graphics",
        "NVIDIA GeForce RTX 4090 Laptop GPU",
        "NVIDIA GeForce RTX 3090 Ti",
        "NVIDIA GeForce RTX 5090 D",
        "NVIDIA A10-24Q",
        "NVIDIA A2",
        "NVIDIA GB300",
    ],
)
def test_other_devices_have_no_peaks(name):
    assert peaks_of(name) is None


def test_every_entry_has_a_source_and_peaks_that_fall_with_precision():
    for peaks in PEAKS:
        assert peaks.source
        order = [
            peaks.matrix[name] for name in ("fp8", "fp16", "tf32", "fp32") if name in peaks.matrix
        ]
        assert order == sorted(order, reverse=True)


@pytest.mark.parametrize("path", real_traces(100_000))
def test_the_kernels_of_real_traces_are_all_accounted_for(path):
    if not path.is_file():
        pytest.skip(f"no traces in {path}")
    trace = longpole.read_trace(path)
    window = longpole.choose_window(trace)
    kernels = own_activities(trace, window, where="kind = 'kernel' AND work_class = 'compute'")
    found = longpole.roofline(trace, window)
    assert found.kernel_ns == kernels["inside_ns"].sum()


def test_without_recorded_shapes_the_answer_says_how_to_record_them():
    trace = TraceBuilder().operator("aten::mm", (0, 5)).launch("gemm", call=(1, 2), work=(2, 20))
    trace = trace.read()
    for answer in (longpole.roofline(trace), longpole.roofline(trace, by="type")):
        texts = [str(block) for block in answer.blocks()]
        assert any("record_shapes=True" in text for text in texts)
    shown = product(TraceBuilder(), 0, 200).read()
    assert longpole.roofline(shown).hint is None
    assert longpole.roofline(shown, by="type").hint is None


def test_a_trace_in_which_no_time_passes_is_answered():
    found = longpole.roofline(TraceBuilder().operator("aten::mm", (1, 1)).read())
    assert (found.rows.height, found.path_length_ns) == (0, 0)


def replays(*names, annotation=None, starts=(600, 700)):
    """Replay a graph of kernels of 15 us each, inside an annotation."""
    builder = TraceBuilder().header(deviceProperties=H100)
    for number, start in enumerate(starts):
        if annotation is not None:
            builder.annotation(annotation, (start, start + 90))
        builder.call("cudaGraphLaunch", (start, start + 10), correlation=7 + number)
        for place, name in enumerate(names):
            where = {"ts": start + 20 + 20 * place, "dur": 15, "pid": 0, "tid": 7}
            arguments = {"device": 0, "stream": 7, "correlation": 7 + number}
            builder.event(ph="X", cat="kernel", name=name, args=arguments, **where)
    return builder


def capture_of(**operators):
    """Capture a kernel for each operator, with its inputs."""
    builder = TraceBuilder().call("cudaStreamBeginCapture", (0, 1))
    for place, (name, arguments) in enumerate(operators.items()):
        start = 10 * place + 5
        builder.operator(name.replace("__", "::"), (start, start + 8), **arguments)
        where = {"ph": "X", "cat": "cuda_runtime", "pid": 100, "tid": 1}
        call = {"name": "cudaLaunchKernel", "ts": start + 2, "dur": 3}
        builder.event(**where, **call, args={"correlation": 50 + place})
    return builder.call("cudaStreamEndCapture", (10 * len(operators) + 10, 500)).read()


def test_kernels_of_a_graph_have_the_work_of_their_captured_operator_at_each_replay():
    capture = capture_of(aten__mm=inputs([64, 64], [64, 64]))
    trace = replays("gemm").read(capture_traces=[capture])
    [row] = longpole.roofline(trace).rows.to_dicts()
    assert (row["name"], row["calls"], row["n_kernels"]) == ("aten::mm", 2, 2)
    assert (row["flops"], row["kernel_ns"]) == (2 * 2 * 64**3, 30_000)


def test_without_its_capture_the_kernel_of_a_graph_stays_unknown():
    [row] = longpole.roofline(replays("gemm").read()).rows.to_dicts()
    assert (row["name"], row["kernel"], row["flops"]) == (None, "gemm", None)


PAGED = inputs([2, 8, 64], [1], [2, 8, 64], [999, 1, 2, 64], [999, 1, 2, 64], [3], [999], [9])
REQUESTS = "execute_2_context_0(sq0sk0sqsq0sqsk0)_generation_2(sq2sk300sqsq2sqsk300)"


def test_an_annotation_with_lengths_tells_the_work_of_paged_attention():
    capture = capture_of(aiter__paged_attention_ragged=PAGED)
    trace = replays("attention", annotation=REQUESTS).read(capture_traces=[capture])
    [row] = longpole.roofline(trace).rows.to_dicts()
    assert (row["flops"], row["calls"]) == (300 * 4 * 8 * 64, 1)
    assert row["n_bytes"] == 2 * 2 * 8 * 64 * 2 + 300 * 2 * 2 * 64 * 2
    assert row["least_flops"] is None


def test_attention_of_unknown_lengths_has_bounds_and_is_not_judged(said):
    capture = capture_of(aiter__paged_attention_ragged=PAGED)
    found = longpole.roofline(replays("attention").read(capture_traces=[capture]))
    [row] = found.rows.to_dicts()
    assert (row["flops"], row["of_roof"], row["lost_ns"]) == (None, None, None)
    assert (row["least_flops"], row["most_flops"]) == (2 * 2 * 4 * 8 * 64, None)
    assert (found.known_ns, found.bounded_ns) == (0, 30_000)
    [told] = [it.text for it in found.blocks() if isinstance(it, Sentence) and "bound" in it.text]
    said.within(told)


def capture_of_size(size, mode="DECODE", *, mark=True):
    """Capture a product of a batch, inside the annotation that servers write."""
    builder = TraceBuilder()
    if mark:
        builder.annotation(f"capture_{size}_{mode}", (0, 60))
    builder.call("cudaStreamBeginCapture", (1, 2))
    builder.operator("aten::mm", (5, 13), **inputs([size, 64], [64, 64]))
    where = {"ph": "X", "cat": "cuda_runtime", "pid": 100, "tid": 1}
    builder.event(**where, name="cudaLaunchKernel", ts=7, dur=3, args={"correlation": 50})
    return builder.call("cudaStreamEndCapture", (20, 50)).read()


@given(
    st.lists(st.integers(1, 64), min_size=1, max_size=5, unique=True),
    st.lists(st.integers(1, 80), min_size=1, max_size=3),
    st.sampled_from(["step[DECODE bs={}]", "execute_context_0(0)_generation_{0}({0})"]),
)
@settings(deadline=None, max_examples=25)
def test_a_replay_belongs_to_the_smallest_captured_batch_that_holds_its_own(sizes, batches, mark):
    builder = TraceBuilder().header(deviceProperties=H100)
    for number, batch in enumerate(batches):
        start = 100 * number
        builder.annotation(mark.format(batch), (start, start + 90))
        builder.call("cudaGraphLaunch", (start, start + 10), correlation=7 + number)
        arguments = {"device": 0, "stream": 7, "correlation": 7 + number}
        where = {"ts": start + 20, "dur": 15, "pid": 0, "tid": 7}
        builder.event(ph="X", cat="kernel", name="gemm", args=arguments, **where)
    trace = builder.read(capture_traces=[capture_of_size(size) for size in sizes])
    fitting = [min((it for it in sizes if it >= batch), default=None) for batch in batches]
    found = longpole.roofline(trace, longpole.choose_window(trace, whole=True))
    known = found.rows.filter(pl.col("flops").is_not_null())
    flops = sum(2 * size * 64 * 64 for size in fitting if size is not None)
    assert known["flops"].sum() == flops
    lost = [it.text for it in found.blocks() if isinstance(it, Sentence) and "capture" in it.text]
    if None not in fitting:
        assert lost == []
    else:
        n = fitting.count(None)
        assert lost[0].startswith(f"{n} launch{'es' if n > 1 else ''} of graphs matched no capture")
        assert f"the largest batch is {max(batches)}" in lost[0]


@pytest.mark.parametrize("mark", [True, False])
def test_captures_of_several_shapes_are_not_taken_for_one_another(mark):
    """Without an annotation of the replay, or of the captures, nothing tells their batch."""
    captures = [capture_of_size(size, mark=mark) for size in (8, 16)]
    annotation = None if mark else "step[DECODE bs=8]"
    trace = replays("gemm", annotation=annotation).read(capture_traces=captures)
    [row] = longpole.roofline(trace).rows.to_dicts()
    assert (row["name"], row["flops"]) == (None, None)


def test_sizes_of_vllm_are_tokens_and_those_of_sglang_requests():
    verify = "execute_context_0(0)_generation_4(16)"
    for mode, flops in (("FULL", 2 * 16 * 64 * 64), ("DECODE", 2 * 4 * 64 * 64)):
        captures = [capture_of_size(size, mode) for size in (4, 16)]
        trace = replays("gemm", annotation=verify, starts=(600,)).read(capture_traces=captures)
        [row] = longpole.roofline(trace).rows.to_dicts()
        assert row["flops"] == flops


def test_a_replay_of_prompts_is_not_taken_for_a_decode_of_its_requests():
    prompts = "execute_context_4(400)_generation_0(0)"
    captures = [capture_of_size(size) for size in (4, 512)]
    trace = replays("gemm", annotation=prompts).read(capture_traces=captures)
    [row] = longpole.roofline(trace).rows.to_dicts()
    assert row["flops"] is None
