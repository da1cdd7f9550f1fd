"""How much of a trace is tuned: the shares add up by hand."""

import gzip
import json
import math
from bisect import bisect
from pathlib import Path

import polars as pl
import pytest

import longpole
from longpole.bench import tunableop
from longpole.cli.tunableop.coverage import execution_coverage_answer, gemm_coverage_answer
from longpole.formats.convert.execution_trace import read_execution_trace
from longpole.report.blocks import Notes
from longpole.tables.execution_coverage import ExecutionCoverage, execution_coverage
from longpole.tables.gemm_coverage import gemm_coverage
from longpole.testing import TraceBuilder

SHARED = Path(__file__).parents[3] / "shared" / "data"
HEADER = b"Validator,PT_VERSION,2.9.1\n"


def product(builder, name, start_us, work_us, dims, strides):  # noqa: PLR0917
    """Add a product that launches one kernel, which begins 5 us after its operator."""
    inputs = {"Input Dims": dims, "Input type": ["c10::Half"] * len(dims)}
    inputs |= {} if strides is None else {"Input Strides": strides}
    builder.operator(name, (start_us, start_us + 4), **inputs)
    work = (start_us + 5, start_us + 5 + work_us)
    return builder.launch("gemm", call=(start_us + 1, start_us + 3), work=work)


def three_products(**changes):
    """Kernels of 60, 30 and 10 us, one after the other, and a kernel that is not a product."""
    builder = TraceBuilder()
    linear = [[36, 128], [128, 768]]
    product(builder, "aten::mm", 0, 60, linear, changes.get("strides", [[128, 1], [1, 128]]))
    product(builder, "aten::mm", 70, 30, [[8, 16], [16, 32]], [[16, 1], [32, 1]])
    batch = [[4, 8, 16], [4, 16, 8]]
    product(builder, "aten::bmm", 110, 10, batch, [[128, 16, 1], [128, 8, 1]])
    builder.operator("aten::relu", (130, 134))
    builder.launch("relu", call=(131, 133), work=(135, 155))
    builder.call("cudaDeviceSynchronize", (134, 156))
    return builder.read()


LINEAR = b"GemmTunableOp_Half_TN,tn_768_36_128_ld_128_128_768,Gemm_Hipblaslt_1,0.04\n"
BATCH = b"GemmStridedBatchedTunableOp_Half_NN,nn_8_8_16_B_4_ld_8_16_8,Gemm_Hipblaslt_2,0.02\n"


def test_shares_add_up_by_hand():
    found = gemm_coverage(three_products(), HEADER + LINEAR + BATCH)
    assert (found.gemm_ns, found.tuned_ns) == (100_000, 70_000)
    assert found.share_of_gemm_time == 0.7
    rows = found.rows.select("parameters", "match", "calls", "kernel_ns", "tuned_ns").rows()
    assert rows == [
        ("nn_32_8_16_ld_32_16_32", "missing", 1, 30_000, None),
        ("tn_768_36_128_ld_128_128_768", "tuned", 1, 60_000, 40_000.0),
        ("nn_8_8_16_B_4_ld_8_16_8", "tuned", 1, 10_000, 20_000.0),
    ]
    # The device is never waited for before the end: on the path are the kernels that the
    # last one had to wait for.
    on_path = {row["parameters"]: row["path_ns"] for row in found.rows.iter_rows(named=True)}
    assert sum(on_path.values()) == found.gemm_path_ns
    tuned = found.gemm_path_ns - on_path["nn_32_8_16_ld_32_16_32"]
    assert found.tuned_path_ns == tuned
    assert found.share_of_path == tuned / found.path_length_ns


def test_what_is_tuned_already_is_not_to_be_tuned_next():
    found = gemm_coverage(three_products(), HEADER + LINEAR)
    assert found.to_tune["parameters"].to_list() == [
        "nn_32_8_16_ld_32_16_32",
        "nn_8_8_16_B_4_ld_8_16_8",
    ]


def test_a_wildcard_matches_any_size_and_is_not_counted_as_tuned():
    row = b"GemmTunableOp_Half_TN,tn_768_*_128_ld_*_*_768,Gemm_Hipblaslt_1,0.04\n"
    found = gemm_coverage(three_products(), HEADER + row)
    matches = dict(found.rows.select("parameters", "match").iter_rows())
    assert matches["tn_768_36_128_ld_128_128_768"] == "wildcard"
    assert found.tuned_ns == 0
    assert found.wildcard_share_of_gemm_time == 0.6
    document, _ = gemm_coverage_answer("r.csv", found)
    notes = next(block.items for block in document.blocks() if isinstance(block, Notes))
    assert any(note.startswith("60.0 % of the time in GEMMs is matched only by") for note in notes)


def test_without_strides_a_row_of_the_size_is_not_called_the_one():
    found = gemm_coverage(three_products(strides=None), HEADER + LINEAR)
    [row] = found.rows.filter(found.rows["kernel_ns"] == 60_000).iter_rows(named=True)
    assert (row["match"], row["solution"]) == ("same_size", "Gemm_Hipblaslt_1")
    assert found.tuned_ns == 0


def test_without_strides_the_layout_is_not_guessed():
    found = gemm_coverage(three_products(strides=None), HEADER)
    [row] = found.rows.filter(found.rows["kernel_ns"] == 60_000).iter_rows(named=True)
    assert (row["operator"], row["parameters"]) == ("GemmTunableOp_Half_??", "??_768_36_128")
    old = HEADER + b"GemmTunableOp_Half_NN,nn_768_36_128,Gemm_Hipblaslt_1,0.04\n"
    assert gemm_coverage(three_products(strides=None), old).tuned_ns == 0


def test_a_file_of_torch_2_6_has_no_leading_dimensions():
    old = b"GemmTunableOp_Half_TN,tn_768_36_128,Gemm_Hipblaslt_TN_1,0.04\n"
    found = gemm_coverage(three_products(), HEADER + old)
    assert found.tuned_ns == 60_000
    assert gemm_coverage(three_products(), HEADER + old + BATCH).tuned_ns == 10_000


def test_a_product_that_torch_never_looks_up_is_not_to_be_tuned():
    builder = TraceBuilder()
    product(builder, "aten::_int_mm", 0, 60, [[36, 128], [128, 768]], [[128, 1], [1, 128]])
    product(builder, "aten::mm", 70, 30, [[8, 16], [16, 32]], [[16, 1], [32, 1]])
    found = gemm_coverage(builder.read(), HEADER)
    assert dict(found.rows.select("name", "match").iter_rows()) == {
        "aten::_int_mm": "not_tunable",
        "aten::mm": "missing",
    }
    assert (found.gemm_ns, found.to_tune["kernel_ns"].sum()) == (90_000, 30_000)


def test_inputs_that_were_not_recorded_are_unknown_and_not_missing():
    builder = TraceBuilder().operator("aten::mm", (0, 4))
    trace = builder.launch("gemm", call=(1, 3), work=(5, 25)).read()
    found = gemm_coverage(trace, HEADER + LINEAR)
    assert found.rows.select("name", "operator", "match").rows() == [("aten::mm", None, "unknown")]
    assert (found.gemm_ns, found.tuned_ns) == (20_000, 0)


def test_a_trace_without_products_has_no_share():
    trace = TraceBuilder().launch("relu", call=(0, 2), work=(3, 9)).read()
    found = gemm_coverage(trace, HEADER + LINEAR)
    assert found.share_of_gemm_time is None
    assert found.share_of_path == 0


def complete_events(path):
    events = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
    return [event for event in events if event.get("ph") == "X"]


def lies_in(window, event):
    start_ns = round(event["ts"] * 1000)
    return window.start_ns <= start_ns < window.end_ns


def by_external_id(path, products, window):
    """Sum the kernels of products, in ns, by the number that kernel and operator share."""
    events = complete_events(path)
    names = {
        event["args"]["External id"]: event["name"]
        for event in events
        if event.get("cat") == "cpu_op"
    }
    kernels = [each for each in events if each.get("cat") == "kernel" and lies_in(window, each)]
    found = [each for each in kernels if names.get(each["args"].get("External id")) in products]
    return sum(round(kernel["dur"] * 1000) for kernel in found)


def by_time_of_launch(path, products, window):
    """Sum the kernels of products, in ns, whose launch lies within one on its thread."""
    events = complete_events(path)
    spans = sorted(
        (event["tid"], event["ts"], event["ts"] + event["dur"])
        for event in events
        if event.get("cat") == "cpu_op" and event["name"] in products
    )
    calls = {
        event["args"]["correlation"]: (event["tid"], event["ts"])
        for event in events
        if event.get("cat") == "cuda_runtime" and "correlation" in event["args"]
    }
    total_ns = 0
    for kernel in (event for event in events if event.get("cat") == "kernel"):
        if not lies_in(window, kernel):
            continue
        thread, time = calls[kernel["args"]["correlation"]]
        place = bisect(spans, (thread, time, math.inf)) - 1
        if place >= 0 and spans[place][0] == thread and time < spans[place][2]:
            total_ns += round(kernel["dur"] * 1000)
    return total_ns


@pytest.mark.parametrize(
    ("file", "by_hand"),
    [
        ("traces/h100_owlv2.json.gz", by_external_id),
        ("et_pairs/resnet_a100.kineto.json.gz", by_time_of_launch),
    ],
)
def test_shares_of_a_real_trace_add_up_by_hand(file, by_hand):
    path = SHARED / file
    if not path.exists():
        pytest.skip(f"needs {path}")
    trace = longpole.read_trace(path)
    bare = gemm_coverage(trace, HEADER)
    assert bare.gemm_ns == by_hand(path, set(bare.rows["name"]), bare.window) > 0
    assert 0 < bare.gemm_path_ns <= bare.gemm_ns
    # Made-up results for every second GEMM that has a name.
    named = bare.rows.drop_nulls("parameters")
    chosen = named.gather_every(2)
    rows = chosen.select("operator", "parameters").iter_rows()
    results = HEADER + "".join(f"{a},{b},Gemm_Made_1,0.01\n" for a, b in rows).encode()
    found = gemm_coverage(trace, results)
    assert found.tuned_ns == chosen["kernel_ns"].sum()
    assert found.tuned_path_ns == chosen["path_ns"].sum()
    assert found.gemm_ns == bare.gemm_ns
    segments = trace.critical_path(step=found.window.step).segments
    assert found.path_length_ns == segments["duration_ns"].sum()


def on_path_by_external_id(path, trace, products, window):
    """Sum what kernels of products have on the path, in ns, by the number in both events."""
    events = complete_events(path)
    names = {
        event["args"]["External id"]: event["name"]
        for event in events
        if event.get("cat") == "cpu_op"
    }
    operators = {
        (event["name"], round(event["ts"] * 1000)): names.get(event["args"].get("External id"))
        for event in events
        if event.get("cat") == "kernel"
    }
    rows = trace.events.select("name", "start_ns").rows()
    segments = trace.critical_path(step=window.step).segments
    return sum(
        duration_ns
        for kind, event, duration_ns in segments.select("kind", "event", "duration_ns").iter_rows()
        if kind == "kernel" and operators[rows[event]] in products
    )


def test_the_share_of_the_path_adds_up_by_hand():
    path = SHARED / "traces/h100_owlv2.json.gz"
    if not path.exists():
        pytest.skip(f"needs {path}")
    trace = longpole.read_trace(path)
    found = gemm_coverage(trace, HEADER)
    products = set(found.rows["name"])
    assert found.gemm_path_ns == on_path_by_external_id(path, trace, products, found.window) > 0


def test_an_execution_trace_gives_the_shapes_that_the_trace_has_not():
    trace_path = SHARED / "et_pairs/resnet_a100.kineto.json.gz"
    if not trace_path.exists():
        pytest.skip(f"needs {trace_path}")
    trace = longpole.read_trace(trace_path)
    assert set(gemm_coverage(trace, HEADER).rows["match"]) == {"unknown"}
    # The last layer of ResNet-18 with 128 images: forwards, then by the input and the weight.
    results = HEADER + (
        b"GemmAndBiasTunableOp_float_TN,tn_1000_128_512_ld_512_512_1000,Gemm_Made_1,0.01\n"
        b"GemmTunableOp_float_NN,nn_512_128_1000_ld_512_1000_512,Gemm_Made_2,0.02\n"
    )
    execution = SHARED / "et_pairs/resnet_a100.et.json.gz"
    found = gemm_coverage(trace, results, execution=execution)
    values = {
        (row["name"], row["parameters"], row["match"]): (row["calls"], row["kernel_ns"])
        for row in found.rows.iter_rows(named=True)
    }
    # This file has no strides, so a row of the size is not called the one.
    assert values == {
        ("aten::addmm", "tn_1000_128_512_ld_512_512_1000", "same_size"): (1, 26_000),
        ("aten::mm", "nn_512_128_1000_ld_512_1000_512", "same_size"): (1, 21_000),
        ("aten::mm", "??_512_1000_128", "missing"): (1, 15_000),
    }
    assert (found.gemm_ns, found.gemm_path_ns, found.tuned_ns) == (62_000, 62_000, 0)


def test_the_products_of_an_execution_trace_add_up_by_hand():
    path = SHARED / "et_pairs/torch213_ddp2_rank0.et.json.gz"
    if not path.exists():
        pytest.skip(f"needs {path}")
    execution = read_execution_trace(path)
    nodes = json.loads(gzip.decompress(path.read_bytes()))["nodes"]
    names = {"aten::mm", "aten::addmm", "aten::bmm"}
    flops = {}
    for node in nodes:
        if node["name"] in names:
            left, right = node["inputs"]["shapes"][1 if node["name"] == "aten::addmm" else 0 :][:2]
            size = 2 * math.prod(left) * right[-1]
            flops.setdefault(node["name"], []).append(size)
    row = b"GemmAndBiasTunableOp_float_TN,tn_128_24_64_ld_64_64_128,Gemm_Made_1,0.01\n"
    found = execution_coverage(execution, HEADER + row)
    assert found.n_calls == sum(map(len, flops.values())) == 126
    assert found.rows["flops"].sum() == sum(map(sum, flops.values()))
    assert (found.n_tuned_calls, found.share_of_flops) == (
        6,
        6 * 2 * 128 * 24 * 64 / sum(map(sum, flops.values())),
    )


def test_products_of_an_execution_trace_that_only_a_wildcard_matches_are_said():
    columns = {"name": ["aten::mm"] * 2, "operator": ["GemmTunableOp_Half_NN"] * 2}
    columns |= {"parameters": ["nn_1_1_3", "nn_1_1_1"], "match": ["wildcard", "missing"]}
    columns |= {"solution": ["Default", None], "calls": [1, 1], "flops": [3, 1]}
    found = ExecutionCoverage(pl.DataFrame({**columns, "share_of_flops": [0.75, 0.25]}))
    assert (found.share_of_flops, found.wildcard_share_of_flops) == (0, 0.75)
    document, _ = execution_coverage_answer("r.csv", found)
    notes = next(block.items for block in document.blocks() if isinstance(block, Notes))
    assert any(note.startswith("75.0 % of the flops is matched only by a row") for note in notes)


def test_untuned_gemms_are_priced_and_the_dearest_comes_first():
    recorded = b"".join(b"GemmTunableOp_Half_NN,nn_%d_10_10\n" % m for m in (1, 2, 7))
    tuned = HEADER + b"GemmTunableOp_Half_NN,nn_2_10_10,Default,0.5\n"
    covered = tunableop.coverage([recorded, recorded], tuned)
    assert covered.rows.select("parameters", "match", "flops").rows() == [
        ("nn_7_10_10", "missing", 1400),
        ("nn_1_10_10", "missing", 200),
        ("nn_2_10_10", "tuned", 400),
    ]
    assert (covered.n_tuned, covered.n_gemms, covered.share_of_flops) == (1, 3, 0.2)
    assert tunableop.coverage([], tuned).share_of_flops is None
