"""Performance counters of kernels, joined with their operators where that is certain."""

from __future__ import annotations

import gzip
import hashlib
import json

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import longpole
from longpole.cli import program
from longpole.tables.impossible_values import impossible_values
from longpole.tables.measured_work import measured_work
from longpole.testing import TraceBuilder
from real_traces import SHARED

TRACE = SHARED / "traces/cupti_counters.json.gz"
ANSWER = SHARED / "hta_results/cupti_counters/cupti_counters_0.parquet"
FFMA, FADD = (f"smsp__sass_thread_inst_executed_op_{name}_pred_on.sum" for name in ("ffma", "fadd"))

needs_trace = pytest.mark.skipif(not TRACE.exists(), reason=f"no {TRACE}")


def hash_of(text):
    return hashlib.sha256(text.encode()).hexdigest()


def counted(builder, name, start, value, **more):
    return builder.event(
        ph="X",
        cat="cuda_profiler_range",
        name=name,
        pid=0,
        tid=0,
        ts=start,
        dur=10,
        args={FFMA: value, **more},
    )


def launched(*names, with_kernels=True):
    """Build operators that launch a kernel each."""
    builder = TraceBuilder()
    for place, name in enumerate(names):
        start = 100 * place
        builder.operator(f"aten::{name}", (start, start + 50))
        if with_kernels:
            builder.launch(name, call=(start + 10, start + 20), work=(start + 30, start + 40))
        else:
            builder.call("cudaLaunchKernel", (start + 10, start + 20))
    return builder


def rows(trace):
    found = trace.counters_by_operator()
    return found.select("kernel_name", "matched_by", "bottom_level_op", "flops").rows()


def test_without_names_the_nth_range_is_the_nth_launch():
    builder = launched("mm", "add", with_kernels=False)
    trace = counted(counted(builder, "second", 20, 3), "first", 5, 1).read()
    assert rows(trace) == [("first", "order", "aten::mm", 2), ("second", "order", "aten::add", 6)]


def test_without_names_one_range_too_few_leaves_all_unmatched():
    trace = counted(launched("mm", "add", with_kernels=False), "first", 5, 1).read()
    assert rows(trace) == [
        ("first", None, None, 2),
        (None, None, "aten::mm", None),
        (None, None, "aten::add", None),
    ]


def test_names_are_checked_and_only_those_that_fail_are_unmatched():
    builder = launched("mm", "add", "mm")
    for start, name in enumerate(["mm", "mul", "mm"]):
        counted(builder, name, start, 1)
    assert rows(builder.read()) == [
        ("mm", "name_and_order", "aten::mm", 2),
        ("mul", None, None, 2),
        ("mm", "name_and_order", "aten::mm", 2),
        (None, None, "aten::add", None),
    ]


def test_a_correlation_decides_before_names_and_order():
    builder = launched("mm", "mm")
    counted(builder, "mm", 1, 1, correlation=2)
    counted(builder, "mm", 2, 5, correlation=1)
    found = builder.read().counters_by_operator()
    calls = found.sort("event")["call"].to_list()
    assert found["matched_by"].to_list() == ["correlation", "correlation"]
    assert calls == sorted(calls, reverse=True)


def test_a_region_belongs_to_no_kernel():
    trace = counted(launched("mm", "add"), "region", 1, 7).read()
    assert rows(trace)[0] == ("region", None, None, 14)


def test_bytes_and_operations_come_from_the_counters_that_tell_of_them():
    builder = launched("mm", "add")
    counted(builder, "mm", 1, 2, **{FADD: 3})
    dram = {"dram__bytes_read.sum": 100, "dram__bytes_write.sum": 28}
    trace = counted(builder, "add", 2, 0, **dram).read()
    found = trace.counters_by_operator()
    assert found.select("flops", "dram_bytes").rows() == [(7, None), (0, 128)]


def test_a_trace_read_without_its_counters_says_so():
    builder = counted(launched("mm"), "mm", 1, 2)
    with pytest.raises(ValueError, match="read without its counters"):
        builder.read(args="ids").counters_by_operator()
    assert launched("mm").read().counters_by_operator().is_empty()


def test_ranks_are_chosen_and_ordered():
    traces = [
        counted(launched("mm").header(distributedInfo={"rank": rank}), "mm", 1, rank).read()
        for rank in (0, 1)
    ]
    found = longpole.get_counter_data_with_operators(traces, ranks=[1, 0])
    assert [frame["flops"].to_list() for frame in found] == [[2], [0]]
    by_rank = longpole.get_counter_data_with_operators(dict(enumerate(traces)), ranks=[1])
    assert by_rank[0].equals(found[0])
    with pytest.raises(ValueError, match="no trace of rank 7"):
        longpole.get_counter_data_with_operators(traces, ranks=[7])


def test_ranks_may_be_files_a_folder_or_a_set_of_traces(tmp_path):
    for rank in (0, 1):
        builder = launched("mm").header(distributedInfo={"rank": rank})
        counted(builder, "mm", 1, rank).write(tmp_path / f"rank{rank}.json")
    files = sorted(tmp_path.iterdir())
    for traces in (tmp_path, str(tmp_path), files, longpole.read_traces(tmp_path)):
        found = longpole.get_counter_data_with_operators(traces)
        assert [frame["flops"].to_list() for frame in found] == [[0], [2]]
        [second] = longpole.get_counter_data_with_operators(traces, ranks=[1])
        assert second.equals(found[1])
    [alone] = longpole.get_counter_data_with_operators(files[1])
    assert alone["flops"].to_list() == [2]


@needs_trace
def test_the_counters_and_operators_are_those_of_hta():
    theirs = pl.read_parquet(ANSWER)
    trace = longpole.read_trace(TRACE)
    [ours] = longpole.get_counter_data_with_operators(trace)
    counters = [name for name in ours.columns if name.startswith("smsp__")]
    assert (ours.height, len(counters)) == (77, 9)
    assert set(ours["matched_by"]) == {"order"}
    for name in [*counters, "top_level_op", "bottom_level_op"]:
        assert ours[name].to_list() == theirs[name].to_list()
    assert ours["op_stack"].to_list() == [json.loads(stack) for stack in theirs["op_stack"]]
    assert ours["kernel_name"].to_list() == theirs["name"].to_list()
    position = dict(zip(trace.events["event"], trace.events["position"], strict=True))
    assert [position[call] for call in ours["call"]] == theirs["index_runtime"].to_list()
    weights = longpole.CUDA_SASS_INSTRUCTION_COUNTER_FLOPS
    flops = [sum(row[name] * weights[name] for name in counters) for row in theirs.to_dicts()]
    assert ours["flops"].to_list() == flops


@needs_trace
def test_the_order_of_the_file_changes_nothing_and_missing_kernels_are_told():
    document = json.loads(gzip.decompress(TRACE.read_bytes()))
    whole = longpole.read_trace(TRACE).counters_by_operator()
    events = document["traceEvents"]
    events.sort(key=lambda event: hash_of(json.dumps(event)))
    shuffled = longpole.read_trace(json.dumps(document).encode()).counters_by_operator()
    assert shuffled.drop("event", "call").equals(whole.drop("event", "call"))
    ranges = [event for event in events if event.get("cat") == "cuda_profiler_range"]
    for event in ranges[:3]:
        events.remove(event)
    found = longpole.read_trace(json.dumps(document).encode()).counters_by_operator()
    assert found["matched_by"].null_count() == found.height == 74 + 77
    assert found["top_level_op"].head(74).null_count() == 74


@pytest.mark.needs("pandas", "pyarrow")
def test_a_frame_becomes_one_of_pandas():
    [frame] = longpole.get_counter_data_with_operators(counted(launched("mm"), "mm", 1, 2).read())
    assert list(frame.to_pandas()["bottom_level_op"]) == ["aten::mm"]


def test_ranges_and_launches_that_differ_in_number_are_said(tmp_path, capsys):
    builder = launched("relu", "mm", "relu", "mm", with_kernels=False)
    for number in range(3):
        counted(builder, f"kernel_{number}", 100 * number, 1)
    path = str(builder.write(tmp_path / "trace.json"))
    told = "4 kernels were launched and 3 ranges have counters: 3 ranges are matched to no kernel"
    assert program.run(["table", path, "counters"]) == 0
    assert f"{told}. Their operators are unknown." in " ".join(capsys.readouterr().out.split())
    [finding] = [
        it for it in longpole.check(longpole.read_trace(path)) if it.code == "unmatched_counters"
    ]
    assert (finding.severity, finding.count, finding.sentence) == ("warning", 3, told)


def test_ranges_that_each_have_their_kernel_are_not_mentioned(tmp_path, capsys):
    builder = counted(counted(launched("mm", "mm"), "mm", 1, 2), "mm", 101, 3)
    path = str(builder.write(tmp_path / "trace.json"))
    assert program.run(["table", path, "counters"]) == 0
    assert "matched to no kernel" not in capsys.readouterr().out
    codes = {it.code for it in longpole.check(longpole.read_trace(path))}
    assert "unmatched_counters" not in codes


WRONG = [1e308, -1e308, -1, 2**63, 10**400, True, "many", "", float(10**18)]


@given(
    values=st.lists(
        st.one_of(st.sampled_from(WRONG), st.integers(0, 2**50)), min_size=1, max_size=20
    )
)
def test_a_counter_that_is_not_a_count_is_null_and_so_are_its_sums(values):
    builder = launched(*["mm"] * len(values))
    for place, value in enumerate(values):
        counted(builder, "mm", place, value, **{FADD: 1})
    trace = builder.read()
    found = trace.counters_by_operator()
    is_count = [isinstance(it, int) and it is not True and 0 <= it <= 10**17 for it in values]
    expected = [value if good else None for value, good in zip(values, is_count, strict=True)]
    assert found[FFMA].to_list() == expected
    assert found["flops"].to_list() == [None if it is None else 2 * it + 1 for it in expected]
    assert measured_work(trace)["cuda_core_flops"].dtype.is_integer()
    told = impossible_values("counters", trace)
    assert bool(told) == (not all(is_count))
