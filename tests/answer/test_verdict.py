"""Verdicts on tiny programs whose long pole is plain, and on real traces."""

import json
import re
from types import SimpleNamespace

import pytest

import longpole
from longpole.answer.spent import spent_on
from longpole.cli.program import run
from longpole.remedies.limits import Sides
from longpole.testing import TraceBuilder
from longpole.words.wording import short_name
from oracles.simulator.scenarios import run_scenario
from real_traces import SHARED, real_traces
from tiny_traces import annotation, call, copy, frame, kernel, launch, operator, read

SLOW_BYTES = 200_000


def loop(iteration, n_iterations=5, start=0, length=100):
    """Repeat what happens in an iteration, marked as a step of the profiler."""
    events = []
    for number in range(n_iterations):
        begin = start + number * length
        events.append(annotation(f"ProfilerStep#{number}", begin, begin + length))
        events += iteration(begin, 100 * number + 1)
    return events


def host_bound(begin, number):
    return [
        operator("aten::mm", begin + 2, begin + 90),
        launch(begin + 80, begin + 85, number),
        kernel("gemm", begin + 87, begin + 95, number),
    ]


def device_bound(begin, number):
    return [
        launch(begin, begin + 5, number),
        kernel("volta_sgemm", begin + 7, begin + 97, number),
        call("cudaStreamSynchronize", begin + 6, begin + 99),
    ]


def loading(begin, number):
    return [
        annotation(
            "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", begin + 1, begin + 70
        ),
        *(
            [
                launch(begin + 75, begin + 80, number),
                kernel("gemm", begin + 82, begin + 97, number),
                call("cudaStreamSynchronize", begin + 81, begin + 99),
            ]
        ),
    ]


def test_a_program_whose_host_is_slow_is_held_up_by_the_host():
    verdict = read(loop(host_bound)).verdict()
    assert (verdict.status, verdict.sides) == ("ok", ("host",))
    assert verdict.gains["host"].value > 0.8
    assert verdict.gains["kernels"].value < 0.2
    assert verdict.steps == (1, 2, 3, 4)
    assert verdict.actions == ("aten::mm takes 83 % of the time (1 call a step).",)


def test_a_program_whose_kernels_are_slow_is_held_up_by_its_kernels(said):
    verdict = read(loop(device_bound)).verdict()
    assert verdict.sides == ("kernels",)
    said(verdict.actions[-1])
    assert verdict.sentence.startswith("The median step takes 100 µs; the kernels")


@pytest.mark.parametrize("earlier", ["relu", "add"])
def test_the_longest_call_of_a_name_is_shown_unless_it_starts_up(earlier):
    builder = TraceBuilder().step(0, (0, 1_000)).step(1, (1_000, 2_000))
    builder.launch(earlier, call=(10, 20), work=(30, 40), by="hipLaunchKernel")
    starts = [1_010, 1_030, *range(1_740, 1_920, 20)]
    for number, start_us in enumerate(starts):
        name, end_us = ("add", start_us + 700) if number == 1 else ("relu", start_us + 5)
        work = (end_us + 2, end_us + 6)
        builder.launch(name, call=(start_us, end_us), work=work, by="hipLaunchKernel")
    actions = builder.read().verdict().actions
    if earlier == "relu":
        assert "the first launch of a kernel, which most likely loads it" in actions[0]
        return
    line = next(line for line in actions if line.startswith("hipLaunchKernel takes"))
    told = re.escape("11 calls, one of which takes 70 %: event ")
    found = re.search(rf"hipLaunchKernel takes 7\d % of the time \({told}(\d+)\)", line)
    assert found, line
    assert builder.read().events["start_ns"][int(found[1])] == 1_030_000


def test_calls_of_equal_length_are_counted(said):
    busiest = ("hipLaunchKernel", 0.71, 12, 0.1, "launch", False)
    parts = {
        "limit": Sides(("host",)),
        "function": None,
        "busiest": busiest,
        "n_windows": 4,
        "gaps": [],
    }
    [line] = spent_on(SimpleNamespace(parts=parts, unit="step", each="a step"))
    said(line)


def test_copies_that_run_at_the_same_time_do_not_take_all_of_the_time():
    name = "Memcpy HtoD (Pinned -> Device)"

    def copying(begin, number):
        return [
            launch(begin, begin + 2, number),
            copy(name, begin + 3, begin + 95, number),
            launch(begin + 2, begin + 4, number + 100),
            kernel(name, begin + 5, begin + 97, number + 100, stream=8, category="gpu_memcpy"),
            call("cudaDeviceSynchronize", begin + 5, begin + 99),
        ]

    verdict = read(loop(copying)).verdict()
    told = "takes 184 µs, several at a time (2 copies a step; "
    assert any(told in line for line in verdict.actions), verdict.actions


def test_times_of_concurrent_copies_are_those_of_the_shown_step():
    """A step with ten times the copies does not change what the tables of the median one show."""
    builder, begin = TraceBuilder(), 0
    for number, length_us in enumerate((100, 100, 1_000, 100, 100)):
        builder.step(number, (begin, begin + length_us))
        for stream in (7, 8):
            call = (begin + 2 * stream - 13, begin + 2 * stream - 12)
            work = (begin + 5, begin + length_us - 5)
            name = "Memcpy HtoD (Pinned -> Device)"
            builder.launch(name, call=call, work=work, by="cudaMemcpyAsync", stream=stream)
        builder.call("cudaDeviceSynchronize", (begin + 6, begin + length_us - 1))
        begin += length_us
    verdict = builder.read().verdict()
    assert any("takes 180 µs, several at a time (2 copies" in line for line in verdict.actions)
    row = next(row for row in verdict.remedies if row.remedy == "overlap_copies")
    assert row.evidence == "2 copies a step take 180 µs"


def test_data_loading_is_named_before_the_rest_of_the_host():
    verdict = read(loop(loading)).verdict()
    assert verdict.sides == ("host",)
    assert verdict.remedies[0].remedy == "loader_workers"
    assert verdict.actions[0].startswith(
        "Give the DataLoader workers (`num_workers` > 0): each step"
    )


def test_calls_that_wait_are_named_where_host_and_device_take_turns():
    def turns(begin, number):
        return [
            operator("aten::item", begin + 45, begin + 99),
            operator("aten::mm", begin + 1, begin + 44),
            launch(begin + 40, begin + 44, number),
            kernel("gemm", begin + 46, begin + 92, number),
            call("cudaStreamSynchronize", begin + 46, begin + 95),
        ]

    verdict = read(loop(turns, 8)).verdict()
    [site] = [row.name for row in verdict.remedies if row.remedy == "blocking_calls"]
    assert site == "aten::item"
    text = "Do not wait for the GPU in aten::item: 1 call a step waits; saves up to 46 % (event "
    assert any(line.startswith(text) for line in verdict.actions), verdict.actions


@pytest.mark.parametrize(
    ("until", "action"),
    [
        (52, "1 copy a step takes 45.0 µs; saves 34 to 44 %"),
        (67, "1 copy a step takes 60.0 µs; saves 22 to 31 %"),
    ],
)
def test_copies_that_hold_a_program_up_are_named(until, action):
    def copying(begin, number):
        return [
            launch(begin, begin + 5, number),
            copy("Memcpy HtoD (Pinned -> Device)", begin + 7, begin + until, number),
            launch(begin + 5, begin + 6, number + 100),
            kernel("gemm", begin + until, begin + 97, number + 100),
            call("cudaStreamSynchronize", begin + 6, begin + 99),
        ]

    verdict = read(loop(copying)).verdict()
    assert "copies" in verdict.sides
    what = "Copy concurrently with other work on a separate stream, or copy less"
    assert any(line.startswith(f"{what}: {action}") for line in verdict.actions), verdict.actions


def test_gaps_in_a_graph_count_only_as_the_greatest_gain_of_kernels():
    def replaying(begin, number):
        first = kernel("G1", begin + 7, begin + 37, number)
        second = kernel("G2", begin + 67, begin + 97, number)
        wait = call("cudaStreamSynchronize", begin + 6, begin + 98)
        return [call("cudaGraphLaunch", begin, begin + 5, number), first, second, wait]

    verdict = read(loop(replaying)).verdict()
    assert verdict.sides == ("kernels",)
    low, high = verdict.gains["kernels"].low, verdict.gains["kernels"].high
    assert (low, high) == pytest.approx((0.6, 0.9))
    assert verdict.caveat.startswith("30 % of the path is gaps in CUDA graphs")


def test_communication_that_holds_a_program_up_is_named(said):
    def reducing(begin, number):
        return [
            launch(begin, begin + 5, number),
            kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL", begin + 7, begin + 97, number),
            call("cudaStreamSynchronize", begin + 6, begin + 99),
        ]

    verdict = read(loop(reducing)).verdict()
    assert verdict.sides == ("communication",)
    said.within(str(verdict.caveat))


def test_expert_parallelism_is_communication():
    def exchanging(begin, number):
        dispatch = "void dpsk::ep::internode::combine<false, 4>(int4*, float*)"
        return [
            launch(begin, begin + 5, number),
            kernel(dispatch, begin + 7, begin + 97, number),
            call("cudaStreamSynchronize", begin + 6, begin + 99),
        ]

    assert read(loop(exchanging)).verdict().sides == ("communication",)


def test_the_function_that_is_named_is_the_innermost_with_most_of_the_time():
    def called(begin, number):
        return [
            frame("serve.py(10): run_on_input", begin + 1, begin + 92),
            frame("model.py(5): forward", begin + 2, begin + 90),
            frame("model.py(50): rotate", begin + 10, begin + 70),
            frame("model.py(60): rest", begin + 70, begin + 80),
            *host_bound(begin, number)[1:],
        ]

    verdict = read([frame("serve.py(1): main", 0, 500), *loop(called)]).verdict()
    assert verdict.sides == ("host",)
    assert verdict.actions[0].startswith(
        "Shorten model.py(50): rotate, or do it outside the loop: "
    )


def test_stacks_are_not_asked_for_where_they_are_recorded(said):
    def gaps(begin, number):
        return [operator("aten::mm", begin + 1, begin + 5), *host_bound(begin, number)[1:]]

    def framed(begin, number):
        return [frame("train.py(10): step", begin + 6, begin + 78), *gaps(begin, number)]

    said.within(str(read(loop(gaps)).verdict()))
    verdict = read(loop(framed)).verdict()
    assert "with_stack" not in str(verdict) + str(verdict.record)


KEEP = "Keep the memory from step to step"
LATER = "Record a later step, with schedule(wait=1, warmup=1, active=3)"


@pytest.mark.parametrize(
    ("name", "once", "again"),
    [
        ("cudaFree", LATER, f"{KEEP} (a pool of memory that outlives the iteration)"),
        ("hipFree", LATER, f"{KEEP} (a pool of memory that outlives the iteration)"),
        ("cudaHostAlloc", LATER, KEEP),
        ("cuModuleLoadData", LATER, "cuModuleLoadData takes 78 % of the time"),
        (
            "cudaDeviceGetStreamPriorityRange",
            "Call cudaDeviceGetStreamPriorityRange less often",
            "Call cudaDeviceGetStreamPriorityRange less often",
        ),
    ],
)
def test_one_long_call_is_named_and_no_graphs_are_offered_for_it(name, once, again):
    def long(begin, number):
        vendor = "hip" if name.startswith("hip") else "cuda"
        work = range(20 * number, 20 * number + 10)
        return [
            call(name, begin + 2, begin + 80),
            *(
                event
                for place, one in enumerate(work)
                for event in (
                    call(f"{vendor}LaunchKernel", begin + 81 + place, begin + 81.5 + place, one),
                    kernel("gemm", begin + 82.5 + place, begin + 83 + place, one),
                )
            ),
        ]

    for n_steps, advice in ((1, once), (5, again)):
        verdict = read(loop(long, n_steps)).verdict()
        assert verdict.actions[0].startswith(advice)
        assert "raph" not in str(verdict)


def test_gains_that_hide_one_another_are_said(said):
    def both(begin, number):
        return [
            operator("aten::mm", begin + 1, begin + 80),
            launch(begin, begin + 1, number),
            kernel("gemm", begin + 2, begin + 99, number),
            call("cudaStreamSynchronize", begin + 81, begin + 99.5),
        ]

    verdict = read(loop(both)).verdict()
    assert verdict.sides == ("kernels",)
    said.within(str(verdict.caveat))


def test_the_function_with_most_of_the_hosts_time_is_named():
    def called(begin, number):
        return [
            frame("train.py(10): step", begin + 1, begin + 92),
            frame("augment.py(5): rotate", begin + 2, begin + 88),
            *host_bound(begin, number)[1:],
        ]

    events = [frame("train.py(1): main", 0, 500), *loop(called)]
    verdict = read(events).verdict()
    assert verdict.actions[0].startswith(
        "Shorten augment.py(5): rotate, or do it outside the loop: "
    )


def without_launches(script):
    return [event for event in loop(script) if event["name"] != "cudaLaunchKernel"]


def test_a_host_that_is_busy_before_work_without_launches_is_named_with_an_interval():
    verdict = read(without_launches(host_bound)).verdict()
    assert (verdict.status, verdict.sides) == ("ok", ("host",))
    assert verdict.gains["kernels"].high < verdict.gains["host"].low


def test_a_device_that_is_always_busy_needs_no_launches_to_hold_the_program_up():
    verdict = read(without_launches(device_bound)).verdict()
    assert (verdict.status, verdict.sides) == ("ok", ("kernels",))
    assert verdict.gains["host"].high <= 0.1
    assert verdict.gains["host"].high_by == "busy_stream"


def test_without_device_work_no_gain_is_promised(said):
    verdict = read([operator("aten::mm", 0, 90)]).verdict()
    assert (verdict.status, verdict.sides) == ("no_device", ())
    said(verdict.sentence)


def test_time_outside_operators_is_named_before_the_operator_that_takes_less():
    events = [operator("aten::mm", 0, 10), operator("aten::add", 95, 100)]
    sentence = read(events).verdict().sentence
    outside = sentence.index("The host is outside operators and calls for 85 % of the time; with_s")
    assert outside < sentence.index("The host is busy in aten::mm for 10 % of the time")
    events = [operator("aten::mm", 0, 1), operator("aten::add", 99.5, 100)]
    assert "aten::mm" not in read(events).verdict().sentence


def test_a_step_whose_neighbours_are_slow_says_what_the_mean_says_and_what_the_median_says(said):
    events, begin = [], 0
    for number in range(12):
        length = 600 if number and number % 2 == 0 else 100
        events.append(annotation(f"ProfilerStep#{number}", begin, begin + length))
        wait = length - 100
        if wait:
            name = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
            events.append(annotation(name, begin + 1, begin + wait))
        events += device_bound(begin + wait, 100 * number + 1)
        begin += length
    verdict = read(events).verdict()
    assert verdict.remedies[0].remedy == "loader_prefetch"
    assert verdict.sentence.startswith("The mean step takes 327 µs (11 from 100 to 600 µs); the")
    said.within(str(verdict.caveat))
    assert verdict.window.outliers == (2, 4, 6, 8, 10)


def test_one_long_step_does_not_change_the_length_and_is_said():
    events, begin = [], 0
    for number in range(12):
        length = 1_000 if number == 5 else 100
        events.append(annotation(f"ProfilerStep#{number}", begin, begin + length))
        events += device_bound(begin + length - 100, 100 * number + 1)
        begin += length
    sentence = read(events).verdict().sentence
    assert sentence.startswith("The median step takes 100 µs (1 of 11 takes 1.00 ms); ")


def test_a_part_of_the_time_gives_the_steps_completed_in_it():
    trace = read(loop(host_bound))
    whole = trace.verdict()
    start_ns = trace.steps["window_start_ns"][2]
    end_ns = trace.steps["window_end_ns"][4]
    assert trace.verdict(between=(start_ns, end_ns)).steps == whole.steps[1:]


def test_a_verdict_is_plain_data():
    verdict = read(loop(loading)).verdict()
    plain = json.loads(json.dumps(verdict.to_dict()))
    assert list(plain) == [
        "limit",
        "remedies",
        "plan",
        "gains",
        "gaps",
        "start_up",
        "steps",
        "remedy_steps",
        "window",
        "step_range_ns",
        "uncertainty",
        "reason",
        "record",
        "sentence",
        "actions",
        "caveat",
        "status",
        "sides",
        "cause",
    ]
    assert plain["remedies"][0]["changes"][0]["change"] in {"drop", "scale", "remove_wait"}


def test_changes_choose_the_time_inside_events():
    events = [
        operator("outer", 0, 40),
        operator("inner", 10, 20),
        operator("other", 40, 60),
        launch(60, 65, 1),
        kernel("gemm", 70, 80, 1),
    ]
    trace = read(events)
    path = trace.critical_path(whole=True)
    row = {name: event for event, name in trace.events.select("event", "name").iter_rows()}
    gain = lambda **what: path.what_if(longpole.Drop(**what)).gain_ns // 1_000  # noqa: E731
    assert gain(events=[row["outer"]]) == 40
    assert gain(events=[row["inner"]]) == 10
    assert gain(kind="operator", events=[row["outer"], row["other"]]) == 60
    assert gain(kind="kernel", events=[row["outer"]]) == 0
    assert path.what_if(longpole.Scale(by=0.5, events=[row["gemm"]])).gain_ns == 5_000
    with pytest.raises(ValueError, match="no event 99"):
        gain(events=[99])


def test_one_call_of_several_is_let_not_wait():
    events = [
        launch(0, 2, 1),
        kernel("first", 4, 40, 1),
        call("cudaStreamSynchronize", 3, 41, 0),
        launch(41, 43, 2),
        kernel("second", 45, 90, 2),
        call("cudaStreamSynchronize", 44, 91, 0),
        operator("rest", 91, 100),
    ]
    trace = read(events)
    path = trace.critical_path(whole=True)
    calls = trace.events.filter(trace.events["name"] == "cudaStreamSynchronize")["event"]
    both = path.what_if(longpole.RemoveWait()).gain_ns
    alone = [path.what_if(longpole.RemoveWait(events=[call])).gain_ns for call in calls]
    assert both > alone[1] > 0
    assert path.what_if(longpole.RemoveWait(events=list(calls))).gain_ns == both


@pytest.mark.parametrize("file", real_traces(SLOW_BYTES))
def test_replaying_the_changes_of_a_remedy_on_a_real_trace_gives_its_gain(file):
    if not file.is_file():
        pytest.skip(f"{file} is not here")
    trace = longpole.read_trace(file)
    if trace.window is None:
        pytest.skip("the trace has no work")
    verdict = trace.verdict()
    if verdict.gaps:
        pytest.skip("gains are those of the time apart from gaps")
    paths = [trace.critical_path(step) for step in verdict.remedy_steps] or [trace.critical_path()]
    for remedy in verdict.remedies:
        gains_ns = [path.what_if(remedy.changes).gain_ns for path in paths]
        assert sum(gains_ns) // len(paths) == remedy.gain.duration_ns, remedy


@pytest.mark.parametrize("name", ["base: random", "base: inference", "late helpers"])
def test_between_two_times_no_remedy_makes_it_longer_and_each_gain_is_of_what_if(name, tmp_path):
    file = tmp_path / "trace.json"
    run_scenario(name, 3).write(file)
    trace = longpole.read_trace(file)
    whole = longpole.choose_window(trace, whole=True)
    length_ns = whole.end_ns - whole.start_ns
    for part in range(1, 8):
        between = (whole.start_ns + part * length_ns // 9, whole.start_ns + length_ns * 8 // 9)
        path, verdict = trace.critical_path(between=between), trace.verdict(between=between)
        if verdict.steps:
            continue
        for remedy in verdict.remedies:
            changed = path.what_if(remedy.changes)
            assert 0 <= changed.gain_ns == remedy.gain.duration_ns, remedy


BEFORE_AFTER = SHARED / "traces" / "before_after"


@pytest.mark.skipif(not BEFORE_AFTER.is_dir(), reason="the shared traces are not here")
def test_the_loader_is_blamed_where_more_workers_helped():
    before = longpole.read_trace(BEFORE_AFTER / "resnet50_workers_0.json.gz").verdict()
    named = [row for row in before.remedies if row.named]
    assert (before.sides, named[0].remedy) == (("host",), "loader_workers")
    assert 0.20 <= named[0].gain.low <= named[0].gain.high <= 0.26
    after = longpole.read_trace(BEFORE_AFTER / "resnet50_workers_4.json.gz").verdict()
    assert "loader_workers" not in {row.remedy for row in after.remedies if row.named}
    assert "almost equally long" in after.sentence


TRACES = SHARED / "traces"
EXAMPLES = [
    ("h100_owlv2", ("host",)),
    ("ns_resolution", ("kernels",)),
    ("two_ranks/sampled_rank-0", ("host",)),
    ("two_ranks/sampled_rank-1", ("host",)),
    ("amd_mi250", ("host",)),
    ("event_sync_a100", ("host",)),
    ("alexnet_a100_sync", ("host",)),
]


@pytest.mark.skipif(not TRACES.is_dir(), reason="the shared traces are not here")
@pytest.mark.parametrize(("name", "sides"), EXAMPLES)
def test_real_traces_are_judged_as_their_gains_say(name, sides):
    verdict = longpole.read_trace(TRACES / f"{name}.json.gz").verdict()
    assert verdict.sides == sides
    bounds = {"blocking_calls", "stream_waits"}
    gains = [row.gain.low for row in verdict.remedies if row.remedy not in bounds]
    assert all(gain >= 0.79 * max(gains[place:]) for place, gain in enumerate(gains))
    assert all(row.gain.low <= row.gain.high for row in verdict.remedies)


@pytest.mark.skipif(not TRACES.is_dir(), reason="the shared traces are not here")
@pytest.mark.slow
def test_few_real_traces_are_inconclusive():
    files = sorted(TRACES.glob("**/*.json.gz"))
    verdicts = [longpole.read_trace(file).verdict() for file in files]
    with_work = [verdict for verdict in verdicts if verdict.status != "no_device"]
    inconclusive = [verdict for verdict in with_work if verdict.status == "inconclusive"]
    assert len(inconclusive) * 5 <= len(with_work)


def test_the_commands_speak_from_the_verdict(tmp_path, capsys):
    file = tmp_path / "trace.json"
    file.write_text(json.dumps(loop(host_bound)))
    sentence = longpole.read_trace(file).verdict().sentence
    for command in (["summary"], ["path"], ["whatif"]):
        run([command[0], str(file), *command[1:], "--format", "json"])
        answer = json.loads(capsys.readouterr().out)
        assert answer["data"]["verdict"]["sentence"] == sentence


def test_a_copy_from_pageable_memory_that_waits_for_its_turn_is_a_wait():
    builder = TraceBuilder().launch("gemm", call=(0, 5), work=(10, 500))
    copy = "Memcpy HtoD (Pageable -> Device)"
    builder.launch(copy, call=(20, 540), work=(501, 560), by="cudaMemcpyAsync")
    trace = builder.operator("aten::add", (600, 900)).read()
    [call] = longpole.blocking_calls(trace, longpole.choose_window(trace, whole=True))
    assert (call.name, call.count) == ("cudaMemcpyAsync", 1)
    found = trace.critical_path(whole=True).what_if(longpole.RemoveWait())
    assert found.gain_ns == 340_000  # the copy is the last to end


def test_a_step_name_that_no_annotation_has_is_an_error():
    trace = TraceBuilder().step(1, (0, 9)).step(2, (10, 19)).operator("a", (1, 18)).read()
    with pytest.raises(longpole.WindowError, match="nothing"):
        longpole.choose_window(trace, step_name="nothing")


def late_sync(begin, number):
    return [
        operator("aten::mm", begin + 2, begin + 200),
        launch(begin + 190, begin + 195, number),
        kernel("gemm", begin + 197, begin + 300, number),
        call("cudaStreamSynchronize", begin + 200, begin + 990),
    ]


def late_kernel(begin, number):
    return [
        operator("aten::mm", begin + 2, begin + 60),
        launch(begin + 50, begin + 55, number),
        kernel("gemm", begin + 800, begin + 900, number),
        call("cudaStreamSynchronize", begin + 60, begin + 905),
    ]


@pytest.mark.parametrize("n_steps", [3, 5])
@pytest.mark.parametrize("work", [late_sync, late_kernel])
def test_a_wait_without_a_cause_in_every_step_decides_nothing(work, n_steps):
    verdict = read(loop(work, n_steps, length=1000)).verdict()
    assert (verdict.status, verdict.sides) == ("inconclusive", ())


def test_a_loader_elsewhere_in_the_trace_does_not_change_the_advice(said):
    elsewhere = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
    events = [annotation(elsewhere, 600, 605, tid=9), *loop(loading)]
    said.within(str(read(events).verdict()))


def test_frames_of_a_folder_or_file_that_is_called_like_torch_are_named():
    for place in ("/home/user/pytorch/augment.py(3): augment", "train_torch.py(9): augment"):

        def slow(begin, number, place=place):
            return [frame(place, begin + 2, begin + 88), *host_bound(begin, number)]

        assert short_name(place, 60) in str(read(loop(slow)).verdict())
