"""Which part of a trace stands for the rest: steps, annotations, repetitions, all of it."""

import json
import re

import polars as pl
import pytest

import longpole
from longpole.cli.program import run
from longpole.engine.windows import Window, choose_window
from longpole.testing import TraceBuilder
from tiny_traces import annotation, call, kernel, launch, operator, read


def iterations(starts, mark, *, length=90, name="gemm"):
    """Launch a kernel in each of some iterations, and mark them."""
    events = []
    for number, start in enumerate(starts):
        events += mark(number, start, start + length)
        events += [
            launch(start + 10, start + 15, number + 1),
            kernel(name.format(number), start + 20, start + 40, number + 1),
        ]
    return events


def scope(events, **choice):
    window = longpole.choose_window(read(events), **choice)
    return window.kind, window.step, (window.start_ns // 1_000, window.end_ns // 1_000)


def step(number, start, end):
    return [annotation(f"ProfilerStep#{number}", start, end)]


def test_the_step_of_median_length_with_a_predecessor_stands_for_the_rest():
    events = iterations([0, 100, 200, 300], step)
    assert scope(events) == ("step", 1, (90, 190))


def test_a_step_that_lost_its_kernels_ends_the_run():
    events = iterations([0, 100, 200, 300, 400], step)
    events = [
        event for event in events if event["args"].get("correlation") != 3 or "dur" not in event
    ]
    kept = [
        event
        for event in events
        if not (event["cat"] == "kernel" and event["args"]["correlation"] == 3)
    ]
    verdict = read(kept).verdict()
    assert 2 not in verdict.steps


def test_an_empty_step_at_the_end_is_not_complete():
    events = iterations([0, 100, 200], step)
    events += step(3, 300, 301)
    assert read(events).verdict().steps == (1, 2)


def test_steps_that_were_over_with_the_one_before_tell_nothing():
    events = iterations([0, 100, 200, 300], step)
    events += [launch(50, 55, 9), kernel("long", 60, 195, 9, stream=20)]
    lost = [event for event in events if event["args"].get("correlation") != 3 or is_launch(event)]
    assert read(lost).verdict().steps == (3,)


def is_launch(event):
    return event["cat"] == "cuda_runtime"


@pytest.mark.parametrize(
    ("name", "first"),
    [
        ("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 100),
        ("execute_context_{}", 100),
        ("step[TEXT] bs=4", 100),
        ("Optimizer.zero_grad#SGD.zero_grad", 100),
    ],
)
def test_annotations_that_come_regularly_mark_the_steps(name, first):
    def mark(number, start, _):
        return [annotation(name.format(number), start, start + 5)]

    events = [*iterations([0, 100, 200, 300, 400], mark), operator("rest", 450, 460)]
    kind, number, (start, end) = scope(events)
    assert (kind, number, start, end - start) == ("step", 1, first, 100)


def test_the_end_of_the_optimizer_ends_an_iteration():
    def mark(_, start, __):
        return [annotation("Optimizer.step#SGD.step", start + 50, start + 80)]

    events = iterations([0, 100, 200, 300, 400], mark)
    assert scope(events)[2] == (180, 280)


def test_annotations_that_nobody_knows_mark_nothing_unless_they_are_named():
    def mark(number, start, _):
        return [annotation(f"stage {number}", start, start + 5)]

    events = iterations([0, 100, 230, 300, 440], mark, name="gemm_{}")
    assert scope(events)[0] == "trace"
    assert scope(events, step_name="^stage")[:2] == ("step", 1)


def test_an_annotation_inside_another_of_its_name_begins_no_step():
    def mark(number, start, _):
        inner = [annotation(f"stage {number}", start + at, start + at + 2) for at in (2, 6)]
        return [annotation(f"stage {number}", start, start + 10), *inner]

    events = iterations([0, 100, 230, 300, 440], mark, name="gemm_{}")
    steps = longpole.steps(read(events), step_name="^stage")
    assert steps["start_ns"].diff().drop_nulls().to_list() == [100_000, 130_000, 70_000]


def repeated_work():
    events, number = [], 0
    for start in range(0, 2_000, 100):
        for place, name in enumerate(("gemm", "relu", "norm")):
            number += 1
            at = start + 20 * place
            events += [launch(at, at + 5, number), kernel(name, at + 7, at + 17, number)]
    return events


def test_work_that_repeats_is_not_called_a_step():
    events = repeated_work()
    trace = read(events)
    window = longpole.choose_window(trace)
    assert (window.kind, window.step) == ("repetition", None)
    assert trace.verdict().sentence.startswith("The median repetition takes 100 µs; ")
    assert trace.steps.is_empty()


def test_work_repeats_without_recorded_launches_too():
    trace = read([event for event in repeated_work() if event["cat"] == "kernel"])
    window = longpole.choose_window(trace)
    assert (window.kind, window.duration_ns) == ("repetition", 100_000)


def test_what_repeats_in_a_small_part_of_a_trace_without_launches_is_not_the_program():
    kernels = [event for event in repeated_work() if event["cat"] == "kernel"]
    later = kernel("gemm", 9_000, 9_050, 999)
    assert longpole.choose_window(read([*kernels, later])).kind == "trace"


def test_a_trace_without_any_marks_is_answered_as_a_whole():
    events = [launch(0, 5, 1), kernel("gemm", 7, 50, 1), call("cudaDeviceSynchronize", 6, 60)]
    assert scope(events) == ("trace", None, (0, 60))


def test_steps_that_are_a_small_part_of_a_trace_say_so(said):
    events = repeated_work()
    alone = longpole.choose_window(read(events))
    said(alone.reason)
    late = [launch(19_000, 19_005, 1_000), kernel("save", 19_010, 20_000, 1_000)]
    window = longpole.choose_window(read(events + late))
    assert window.reason == f"{alone.reason}; the repetitions used cover 9 % of the trace"


def bulk(n_start_up, gap):
    """Return kernels of new names, a few of them a long time before the rest."""
    events = []
    for number in range(200):
        at = 10 * number + (gap if number >= n_start_up else 0)
        events += [launch(at, at + 2, number + 1), kernel(f"k{number}", at + 3, at + 9, number + 1)]
    return events


def test_a_trace_without_iterations_says_where_most_of_its_activities_lie():
    trace = read(bulk(10, 50_000))
    window = longpole.choose_window(trace)
    assert window.kind == "trace"
    shown = re.fullmatch(
        r"the trace marks no iterations; (\d+) % of its GPU activities lie in (\d+) % of its time: "
        r"to analyse only these, add --window (\d+)\.\.(\d+)",
        window.reason,
    )
    share, of_time, start_ns, end_ns = map(int, shown.groups())
    assert (share, of_time) == (90, 3)
    inside = trace.events.filter(
        (pl.col("kind") == "kernel") & pl.col("start_ns").is_between(start_ns, end_ns)
    )
    assert inside.height == 180
    part = longpole.choose_window(trace, between=(start_ns, end_ns))
    assert longpole.kernels(trace, part)["count"].sum() == 180


def test_activities_all_over_a_trace_have_no_bulk(said):
    said(longpole.choose_window(read(bulk(0, 0))).reason)
    said(longpole.choose_window(read(bulk(10, 300))).reason)


def test_the_steps_of_two_ranks_in_one_file_do_not_mix():
    events = iterations([0, 100, 200], step)
    other = [{**event, "pid": event["pid"] + 10} for event in iterations([40, 140], step)]
    trace = read([*events, *other])
    assert trace.verdict().steps == (1, 2)


@pytest.mark.parametrize(
    ("lengths", "clause"),
    [
        ((100, 100, 100), ""),
        ((100, 101, 100), ""),
        ((100, 140, 120), "the shorter of 2 of 3 steps"),
    ],
)
def test_a_headline_says_how_a_step_was_chosen_only_where_steps_differ(lengths, clause):
    events, begin = [], 0
    for number, length in enumerate(lengths):
        events += step(number, begin, begin + length)
        events += [operator("aten::mm", begin + 1, begin + length - 1)]
        begin += length
    window = longpole.choose_window(read(events))
    assert window.reason == (clause or "the median of 2 of 3 steps")
    assert window.clause == clause
    assert "clause" not in longpole.summary(read(events)).to_dict()["window"]


def test_an_annotation_names_itself_and_the_activities_that_end_it():
    name = "execute_context_0(0)_generation_2(2)"
    events = [annotation(name, 0, 50), launch(10, 15, 1), kernel("gemm", 20, 90, 1)]
    window = longpole.choose_window(read(events))
    assert window.title == f'one annotation ("{name}" and the GPU activities launched in it)'
    within = [annotation(name, 0, 95), launch(10, 15, 1), kernel("gemm", 20, 90, 1)]
    assert longpole.choose_window(read(within)).title == f'one annotation ("{name}")'


def test_no_sentence_shows_the_identifier_of_a_unit(tmp_path, capsys):
    events = [
        part
        for start in range(0, 800, 10)
        for part in (
            operator("aten::item", start, start + 9),
            launch(start, start + 2, start + 1),
            kernel("gemm", start + 3, start + 6, start + 1),
            call("cudaStreamSynchronize", start + 2, start + 8),
        )
    ]
    file = tmp_path / "trace.json"
    file.write_text(json.dumps({"traceEvents": events}))
    for command in ("summary", "whatif", "path"):
        run([command, str(file), "--window", "+100us..+700us"])
        said = capsys.readouterr().out
        assert said
        assert "time_range" not in said


def test_a_time_range_without_a_request_is_named_by_its_times():
    assert Window("time_range", None, 3, 9, "").name == "from 3 to 9 ns"


@pytest.mark.parametrize("longest", range(4))
def test_of_groups_of_repetitions_the_one_with_most_device_time_is_shown(longest):
    builder, at = TraceBuilder(), 0
    for group, name in enumerate(("copy", "fill", "transpose", "gemm")):
        for _ in range(20):
            length = 60 if group == longest else 10
            builder.launch(name, call=(at, at + 2), work=(at + 3, at + 3 + length))
            at += length + 5
    trace = builder.read()
    window = choose_window(trace)
    assert (window.kind, window.duration_ns) == ("repetition", 65_000)


@pytest.mark.parametrize(("output_us", "kind"), [(5_000, "trace"), (50, "step")])
def test_layers_of_one_pass_are_no_steps_if_most_device_time_is_outside_of_them(output_us, kind):
    builder, at = TraceBuilder(), 100
    for layer in range(4):
        builder.annotation(f"Layer_{layer}", (at, at + 98))
        builder.launch("gemm", call=(at + 2, at + 4), work=(at + 5, at + 95))
        at += 100
    builder.launch("output", call=(at, at + 2), work=(at + 3, at + 3 + output_us))
    builder.annotation("forward", (90, at + 10 + output_us))
    assert choose_window(builder.read()).kind == kind
