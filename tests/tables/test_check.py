"""What is wrong with a trace: small traces with the findings they must give."""

from __future__ import annotations

import json
from functools import partial

import pytest

import longpole
from longpole.cli.program import run
from longpole.tables.findings import SEVERITIES
from longpole.testing import TraceBuilder
from oracles.simulator import simulate
from oracles.simulator.rocprof_csv import write_rocprof_csv
from oracles.walker.damage import with_entry


def sound():
    """Build a trace against which there is nothing to say."""
    return (
        TraceBuilder()
        .header(distributedInfo={"rank": 0})
        .step(1, (0, 100))
        .operator("aten::mm", (0, 20), **{"External id": 1})
        .launch("gemm", call=(5, 10), work=(12, 60))
        .synchronization("Stream Sync", (60, 61))
    )


def findings(builder):
    return {finding.code: finding for finding in longpole.check(builder.read())}


def test_there_is_nothing_to_say_against_a_sound_trace():
    assert findings(sound()) == {}


def test_what_reading_found_comes_with_its_first_byte():
    cut = sound().to_bytes()[:-9]
    finding = longpole.check(longpole.read_trace(cut))[0]
    assert (finding.code, finding.severity) == ("truncated", "data_loss")
    assert finding.first.offset == len(cut)
    assert finding.hint.endswith("while the trace was written")


def test_work_without_its_call_is_counted_with_the_first():
    finding = findings(sound().kernel("orphan", (70, 80), correlation=77))["unlinked_device_work"]
    assert (finding.severity, finding.count) == ("warning", 1)
    assert finding.sentence.endswith("(50.0 % of all in the trace)")
    assert (finding.first.event, finding.first.name) == (5, "orphan")


def test_a_trace_without_any_correlation_says_so_instead():
    builder = TraceBuilder().event(ph="X", cat="kernel", name="gemm", pid=0, tid=7, ts=10, dur=10)
    found = findings(builder)
    assert found["no_correlations"].count == 1
    assert "unlinked_device_work" not in found


def test_a_trace_without_any_call_of_the_host_says_so_and_not_that_it_began_too_late():
    found = findings(TraceBuilder().kernel("gemm", (10, 20), correlation=3))
    assert found["no_host_calls"].count == 1
    assert found["no_host_calls"].hint.endswith("with ProfilerActivity.CPU among the activities")
    assert "unlinked_device_work" not in found


def test_a_launch_without_its_kernel_is_found():
    finding = findings(sound().call("cudaLaunchKernel", (20, 21), correlation=99))
    assert finding["launches_without_work"].first.event == 5


def test_launches_into_a_graph_that_is_captured_are_not_lost():
    builder = (
        sound()
        .call("cudaStreamBeginCapture", (20, 21))
        .call("cudaLaunchKernel", (22, 23), correlation=99)
        .call("cudaStreamEndCapture", (24, 25))
    )
    assert "launches_without_work" not in findings(builder)
    after = builder.call("cudaLaunchKernel", (26, 27), correlation=100)
    assert findings(after)["launches_without_work"].count == 1


def test_a_driver_call_inside_the_runtime_call_that_has_the_kernel_is_no_loss():
    builder = sound().event(
        ph="X", cat="cuda_driver", name="cuLaunchKernel", pid=100, tid=1, ts=6, dur=2
    )
    assert "launches_without_work" not in findings(builder)


def test_events_of_a_thread_that_cross_are_counted_by_category():
    builder = sound().operator("one", (20, 40)).operator("two", (30, 50))
    finding = findings(builder)["crossing_events"]
    assert (finding.count, finding.first.name) == (1, "two")
    assert "cpu_op" in finding.sentence


def test_work_that_overlaps_on_one_stream_is_counted_and_measured():
    finding = findings(sound().launch("late", call=(10, 11), work=(50, 70)))
    assert finding["overlapping_device_work"].count == 1
    assert "by up to 10.0 µs" in finding["overlapping_device_work"].sentence


def test_work_that_overlaps_on_two_streams_is_what_streams_are_for():
    builder = sound().launch("beside", call=(10, 11), work=(50, 70), stream=8)
    assert "overlapping_device_work" not in findings(builder)


def test_work_before_its_call_is_a_doubt_about_the_clocks():
    finding = findings(sound().launch("early", call=(80, 81), work=(70, 75)))
    assert finding["work_before_its_call"].sentence.endswith("by up to 10.0 µs")


def behind(by_us):
    """Build a trace whose kernels seem to start that long before their calls return."""
    builder = TraceBuilder()
    for number in range(4):
        start = 1_000 * (number + 1)
        builder.launch("gemm", call=(start, start + 5), work=(start - by_us, start + 200 - by_us))
    return builder


def test_a_clock_more_than_20_us_off_is_a_doubt(said):
    (finding,) = [it for it in longpole.check(behind(40).read()) if it.code == "clock_shift"]
    said(finding.sentence)
    assert "clock_shift" not in findings(behind(10))


def test_a_time_of_zero_on_a_device_is_a_doubt():
    assert findings(sound().kernel("lost", (0, 0)))["zero_timestamp"].severity == "warning"


def test_a_correlation_of_two_calls_is_ambiguous():
    builder = sound().call("cudaLaunchKernel", (11, 12), correlation=1)
    assert findings(builder)["ambiguous_correlations"].count == 1


def test_calls_of_two_processes_look_like_two_ranks():
    builder = sound().event(
        ph="X", cat="cuda_runtime", name="cudaFree", pid=200, tid=1, ts=6, dur=2
    )
    assert findings(builder)["several_processes"].count == 2


def test_a_range_that_never_ended_is_found(said):
    builder = sound().event(ph="B", cat="cpu_op", name="open", pid=100, tid=1, ts=90)
    finding = findings(builder)["unmatched_begin"]
    said(finding.hint)


def test_only_metadata_is_nothing_to_analyse():
    builder = TraceBuilder().event(ph="M", name="process_name", pid=1, args={"name": "python"})
    assert list(findings(builder)) == ["no_timed_events"]


def test_a_trace_of_the_cpu_is_noted_and_not_blamed():
    finding = findings(TraceBuilder().operator("aten::mm", (0, 10)))["no_device_work"]
    assert finding.severity == "info"


def test_counters_without_times_are_told_from_no_device_at_all():
    builder = TraceBuilder().event(
        ph="X", cat="cuda_profiler_range", name="gemm", pid=0, tid=0, ts=1, dur=1
    )
    assert "only_counter_ranges" in findings(builder.operator("aten::mm", (0, 10)))


def test_a_missing_rank_is_noted_where_ranks_communicate():
    builder = TraceBuilder().launch("gemm", call=(0, 1), work=(2, 3))
    assert "no_rank" not in findings(builder)
    builder.launch("ncclDevKernel_AllReduce_Sum_f32", call=(3, 4), work=(5, 9))
    assert findings(builder)["no_rank"].severity == "info"


@pytest.mark.parametrize("code", ["no_steps", "no_synchronization_records"])
def test_what_is_merely_missing_is_a_note(code):
    assert (
        findings(TraceBuilder().launch("gemm", call=(0, 1), work=(2, 3)))[code].severity == "info"
    )


def test_operators_without_external_ids_are_a_note():
    assert "no_external_ids" in findings(TraceBuilder().operator("aten::mm", (0, 10)))


def steps_of(*lengths_us):
    builder, start = TraceBuilder(), 0
    for number, length in enumerate(lengths_us):
        end = start + length
        builder.step(number, (start, end))
        builder.launch("gemm", call=(start, start + 1), work=(start + 2, end))
        start = end
    return builder


@pytest.mark.parametrize(
    ("lengths_us", "first", "sentence"),
    [
        # The first step follows no other, so answers are not about it.
        (
            (90, 10, 12, 30, 11, 30, 24, 10),
            "ProfilerStep#3",
            "steps that take 24.0 to 30.0 µs, unlike the 4 steps that take 10.0 to 12.0 µs",
        ),
        (
            (90, 30, 10, 30, 12, 30, 10, 30),
            "ProfilerStep#2",
            "steps that take 10.0 to 12.0 µs, unlike the 4 steps that take 30.0 µs",
        ),
    ],
)
def test_steps_of_a_length_that_the_median_step_does_not_have_are_a_note(
    lengths_us, first, sentence
):
    finding = findings(steps_of(*lengths_us))["steps_of_two_lengths"]
    assert (finding.severity, finding.count, finding.first.name) == ("info", 3, first)
    assert finding.sentence == sentence


@pytest.mark.parametrize(
    "lengths_us",
    [
        pytest.param((90, 10, 12, 30, 11, 10, 24, 10), id="two are exceptions"),
        pytest.param((90, 10, 12, 23, 11, 23, 23, 10), id="not twice as long"),
        pytest.param((90, 10, 10, 10, 30, 30, 30, 90, 90, 90), id="three groups"),
    ],
)
def test_steps_of_different_lengths_are_not_always_two_groups(lengths_us):
    assert "steps_of_two_lengths" not in findings(steps_of(*lengths_us))


def test_the_gravest_comes_first():
    cut = sound().kernel("orphan", (70, 80)).kernel("cut", (80, 90)).to_bytes()[:-9]
    severities = [finding.severity for finding in longpole.check(longpole.read_trace(cut))]
    assert len(severities) > 1
    assert severities == sorted(severities, key=SEVERITIES.index)


def test_every_finding_says_what_it_costs():
    builder = TraceBuilder().kernel("gemm", (0, 0)).operator("one", (0, 9)).operator("two", (5, 15))
    for finding in longpole.check(builder.read()):
        assert finding.sentence
        assert finding.effect
        assert finding.count >= 1


def codes(builder):
    return {finding.code for finding in longpole.check(builder.read())}


def test_numbers_that_are_all_zero_are_told_from_none():
    builder = TraceBuilder().kernel("gemm", (10, 20), correlation=0)
    assert codes(builder) >= {"zero_correlations"}
    assert codes(builder) & {"no_correlations", "unlinked_device_work"} == set()


@pytest.mark.parametrize("cut", [7, 7 + 2**31 - 2**32])
def test_a_number_that_was_cut_to_32_bits_is_recognised_and_joins_nothing(cut):
    whole = 5 * 2**32 + cut % 2**32
    builder = sound().call("cudaLaunchKernel", (20, 21), correlation=whole)
    builder = builder.kernel("cut", (70, 80), correlation=cut)
    finding = findings(builder)["narrowed_correlations"]
    assert (finding.count, finding.first.name) == (1, "cut")
    assert "unlinked_device_work" in codes(builder)


def test_an_external_id_that_was_cut_is_recognised():
    builder = sound().operator("aten::wide", (20, 30), **{"External id": 2**33 + 9})
    document = builder.kernel("cut", (70, 80), correlation=77).to_bytes()
    cut = document.replace(b'"correlation": 77', b'"correlation": 77, "External id": 9')
    assert cut != document
    found = {finding.code for finding in longpole.check(longpole.read_trace(cut))}
    assert "narrowed_external_ids" in found


def test_external_ids_of_several_recordings_in_one_file_are_found():
    builder = sound().operator("aten::mm", (20, 30), **{"External id": 1})
    assert findings(builder)["reused_external_ids"].count == 1


def rank(number, begin=0):
    info = {"rank": number, "world_size": 2}
    builder = TraceBuilder().header(distributedInfo=info).step(1, (begin, begin + 100))
    return builder.operator("aten::mm", (begin, begin + 90))


def test_ranks_are_held_against_each_other(tmp_path, capsys):
    day_us = 24 * 3600 * 1_000_000
    files = [
        rank(0).write(tmp_path / "a.json"),
        rank(0).write(tmp_path / "b.json"),
        rank(1, day_us).write(tmp_path / "c.json"),
    ]
    assert run(["check", *map(str, files), "--json"]) == 0
    found = [
        {finding["code"] for finding in answer["data"]["findings"]}
        for answer in json.loads(capsys.readouterr().out)
    ]
    between = {"repeated_rank", "clocks_far_apart"}
    assert [each & between for each in found] == [set(), {"repeated_rank"}, {"clocks_far_apart"}]


@pytest.mark.parametrize("value", [5, 0.5, None, True, "text", {}, [5, None, {}], ["a"]])
def test_a_field_of_any_form_is_not_taken_for_what_a_reader_writes(value):
    fields = dict.fromkeys(("profiler_messages", "unread_tables", "files"), value)
    found = findings(sound().header(**fields))
    assert ("profiler_message" in found) == (value == ["a"])


@pytest.mark.parametrize("text", ["5", "null", '"a"', "[5]", '[{"name":5}]', "[{}]"])
def test_the_files_of_a_saved_trace_may_be_of_any_form(tmp_path, text):
    (tmp_path / "csv").mkdir()
    write_rocprof_csv(simulate("inference", seed=1, steps=1), tmp_path / "csv")
    path = tmp_path / "a.longpole"
    longpole.read_trace(tmp_path / "csv").save(path)
    before = {finding.code for finding in longpole.check(longpole.read_trace(path))}
    changed = with_entry(path.read_bytes(), "longpole.json", partial(with_files, text))
    path.write_bytes(changed)
    after = {finding.code for finding in longpole.check(longpole.read_trace(path))}
    assert before - after == {"several_files"}


def with_files(text, document):
    """Return the document of a saved trace with another value of `files`, of the same length."""
    [old] = [value for name, value in json.loads(document)["fields"] if name == "files"]
    written = json.dumps(old, separators=(",", ":"))
    new = json.dumps(text)
    new = new[:-1] + " " * (len(written) - len(new)) + '"'
    assert written in document.decode()
    return document.decode().replace(written, new).encode()


def test_a_profiler_that_saw_no_work_says_how_long_it_ran(tmp_path, capsys, said):
    span = {"ph": "X", "cat": "Trace", "name": "PyTorch Profiler (0)", "pid": "Spans", "tid": "P"}
    builder = TraceBuilder().call("cudaDeviceSynchronize", (5, 9))
    builder.event(**span, ts=0, dur=78_000_000, args={"Op count": 0})
    [found] = [it for it in longpole.check(builder.read()) if it.code == "caught_nothing"]
    said.within(found.sentence)
    assert run(["summary", str(builder.write(tmp_path / "trace.json"))]) == 4
    assert "recorded no operator" in capsys.readouterr().out
    assert "caught_nothing" not in findings(builder.operator("aten::mm", (1, 2)))


@pytest.mark.parametrize(
    ("category", "code"), [("COLL", "collectives_of_plugin"), ("x", "asynchronous_only")]
)
def test_asynchronous_events_alone_are_named(category, code):
    builder = TraceBuilder()
    for phase, at in (("b", 1.5), ("e", 9.25)):
        event = {"ph": phase, "cat": category, "name": "AllReduce", "id": 1, "pid": 7, "tid": 1}
        builder.event(**event, ts=at)
    found = findings(builder)
    assert code in found
    assert "no_timed_events" not in found
    assert "ui.perfetto.dev" in found[code].hint


def test_launches_at_the_start_without_their_kernels_ask_for_a_warm_up():
    builder = TraceBuilder().call("cudaLaunchKernel", (1, 2), correlation=99)
    builder.launch("gemm", call=(5, 10), work=(12, 60))
    found = findings(builder)
    assert "launches_without_work" not in found
    assert "warmup" in found["launches_before_recording"].hint
    builder.call("cudaLaunchKernel", (20, 21), correlation=98)
    assert "launches_without_work" in findings(builder)
