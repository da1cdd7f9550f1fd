"""Sentences of verdicts say what is true of a trace that holds little, and what to do about it."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

import longpole
from longpole.answer.blocks import ranked
from longpole.answer.gains import n_words
from longpole.cli import program
from longpole.remedies.gains import _gain
from longpole.report.text import text
from longpole.testing import TraceBuilder
from longpole.words.wording import whole_percent
from real_traces import SHARED

TRACES = SHARED / "traces"
RECORDINGS = Path(__file__).parents[1] / "recordings"


def waiting(builder: TraceBuilder, start: float, end: float) -> TraceBuilder:
    """Make the thread wait for the device."""
    return builder.call("cudaDeviceSynchronize", (start, end))


def loops(n_steps: int = 5, length: int = 1_000) -> TraceBuilder:
    """Steps that load data, compute on the host, and launch one kernel."""
    builder = TraceBuilder()
    for number in range(n_steps):
        begin = number * length
        builder.step(number, (begin, begin + length))
        name = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
        builder.annotation(name, (begin + 1, begin + 450))
        builder.operator("aten::mm", (begin + 450, begin + 900))
        call, work = (begin + 890, begin + 895), (begin + 900, begin + 920)
        builder.launch("gemm", call=call, work=work)
        waiting(builder, begin + 900, begin + 925)
    return builder


def beside(name: str) -> longpole.Trace:
    """Record steps whose host is slow while one long kernel runs on a stream of its own."""
    builder = loops()
    for number in range(5):
        begin = 1_000 * number
        builder.launch(name, call=(begin + 1, begin + 3), work=(begin + 5, begin + 400), stream=9)
    return builder.read()


def test_what_can_be_done_is_listed_by_what_it_surely_saves():
    verdict = loops().read().verdict()
    gains = [row.gain.low for row in verdict.remedies if row.remedy != "blocking_calls"]
    assert all(gain >= 0.79 * max(gains[place:]) for place, gain in enumerate(gains))
    assert "DataLoader" in verdict.actions[0]
    assert len(verdict.actions) <= 3
    assert "(event " in verdict.actions[0]


def test_waits_that_gain_more_than_any_work_are_listed_first(said):
    builder = TraceBuilder()
    for number in range(8):
        begin = 100 * number
        builder.step(number, (begin, begin + 100)).operator("aten::mm", (begin + 1, begin + 30))
        builder.launch("gemm", call=(begin + 26, begin + 28), work=(begin + 31, begin + 62))
        builder.call("cudaStreamSynchronize", (begin + 31, begin + 64))
        call, work = (begin + 65, begin + 66), (begin + 67, begin + 96)
        builder.launch("ncclDevKernel_AllReduce_Sum_f32", call=call, work=work, stream=9)
        builder.call("cudaStreamSynchronize", (begin + 67, begin + 98))
    verdict = builder.read().verdict()
    said.within(verdict.sentence)
    assert verdict.to_dict()["limit"] == {"kind": "waits"}
    assert verdict.sides == ("waits",)
    work = max(gain.value for side, gain in verdict.gains.items() if side != "waits")
    assert verdict.gains["waits"].value > work
    assert verdict.actions[0].startswith("Do not wait for the GPU")


def test_a_function_that_loads_data_is_no_remedy_of_its_own():
    builder = TraceBuilder()
    for number in range(3):
        begin = number * 1_000
        builder.step(number, (begin, begin + 1_000))
        name = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
        builder.annotation(name, (begin + 1, begin + 800))
        builder.python("<built-in function zoom_shift>", (begin + 2, begin + 790))
        builder.launch("gemm", call=(begin + 890, begin + 895), work=(begin + 900, begin + 920))
        waiting(builder, begin + 900, begin + 925)
    verdict = builder.read().verdict()
    assert verdict.remedies[0].remedy == "loader_workers"
    assert not any("zoom_shift" in line for line in verdict.actions)


def test_a_ranked_remedy_saves_what_the_verdict_says():
    verdict = loops().read().verdict()
    [best, *_] = verdict.remedies
    [line, *_] = ranked(verdict.remedies).items
    _, _, saves = best.saves
    where = f"(event {best.events[0]})"
    assert line == f"{best.remedy}: {saves} {where}. {best.advice}: {best.evidence}."
    assert f"{best.advice}: {best.evidence}; {saves} {where}." in verdict.actions


@pytest.mark.parametrize(
    ("kernel", "told"),
    [
        (
            "ncclDevKernel_AllReduce_Sum_f32",
            "Communication takes 40 %",
        ),
        (
            "gemm",
            "Kernels take 42 %",
        ),
        (
            "Memcpy HtoD (Pinned -> Device)",
            "Memory copies take 40 %",
        ),
    ],
)
def test_what_keeps_a_device_busy_without_holding_up_anything_is_told(kernel, told):
    verdict = beside(kernel).verdict()
    assert verdict.sides == ("host",)
    assert str(verdict.caveat).startswith(f"{told} of step 1; shortening ")
    assert "alone saves" in str(verdict.caveat)


def test_what_takes_little_of_the_time_is_not_told():
    assert "shortening" not in str(loops().read().verdict())


def test_launches_without_gpu_activities_ask_for_another_recording(said):
    trace = TraceBuilder().call("cudaLaunchKernel", (0, 90), correlation=1).read()
    verdict = trace.verdict()
    assert (verdict.status, verdict.sides) == ("no_device", ())
    said.within(verdict.sentence)
    assert "ProfilerActivity" not in verdict.sentence
    assert verdict.record is not None
    assert "no other profiler" in verdict.record


def test_counters_are_the_reason_where_they_replace_gpu_activities(said):
    builder = TraceBuilder().call("cudaLaunchKernel", (0, 90), correlation=1)
    counters = {"ph": "X", "cat": "cuda_profiler_range", "pid": 0, "tid": 0, "ts": 0, "dur": 9}
    verdict = builder.event(name="gemm", **counters).read().verdict()
    said.within(verdict.sentence)
    said(verdict.record)


def test_collectives_of_the_cpu_are_told_where_nothing_else_is_recorded(said):
    builder = TraceBuilder().step(1, (0, 100)).annotation("gloo:all_reduce", (10, 90), thread=2)
    sentence = builder.read().verdict().sentence
    said.within(sentence)
    said.within(sentence)


def test_a_step_that_outlives_the_recording_promises_nothing(said):
    frame = {"ph": "X", "cat": "Trace", "pid": "Spans", "tid": "PyTorch Profiler", "ts": 0}
    builder = TraceBuilder().launch("gemm", call=(1, 2), work=(3, 5)).step(1, (0, 1_000))
    verdict = builder.event(name="PyTorch Profiler (0)", dur=40, **frame).read().verdict()
    said.within(verdict.sentence)
    assert "without operators" not in verdict.sentence
    said(verdict.record)
    shown = builder.event(name="PyTorch Profiler (1)", dur=1_000, **frame).read().verdict()
    assert "the profiler stopped" not in shown.sentence


def test_a_busy_gpu_after_the_recording_is_what_limits(said):
    frame = {"ph": "X", "cat": "Trace", "pid": "Spans", "tid": "PyTorch Profiler", "ts": 0}
    builder = TraceBuilder().launch("gemm", call=(1, 2), work=(3, 995)).step(1, (0, 30))
    verdict = builder.event(name="PyTorch Profiler (0)", dur=40, **frame).read().verdict()
    said.within(verdict.sentence)
    assert verdict.actions[0].startswith("gemm takes over 99 % of the time")


def test_unlinked_work_is_counted_as_in_the_table(said):
    builder = TraceBuilder().launch("gemm", call=(1, 2), work=(3, 5))
    for number in range(1, 4):
        builder.kernel("orphan", (400 * number, 400 * number + 2), correlation=900 + number)
    verdict = builder.read().verdict()
    assert verdict.status == "inconclusive"
    said.within(verdict.sentence)
    said.within(verdict.sentence)
    assert verdict.record is not None
    assert verdict.record.startswith("the whole program, if this trace was cut or sampled")


def test_one_repetition_is_not_counted():
    builder = TraceBuilder()
    for number in range(12):
        at = 20 * number
        builder.launch("ab"[number % 2], call=(at, at + 2), work=(at + 3, at + 18))
    sentence = builder.read().verdict().sentence
    assert sentence.startswith("The median repetition takes 40.0 µs")


def test_a_share_is_nothing_or_all_only_where_it_is():
    shares = [0.0, 0.001, 0.5, 0.997, 1.0]
    texts = ["0 %", "less than 1 %", "50 %", "over 99 %", "100 %"]
    assert [whole_percent(share) for share in shares] == texts


def at_hand() -> list[object]:
    """List traces and profiles from outside the repository; large ones are slow."""
    patterns = (
        *("traces/**/*.json.gz", "open_answers/*.json.gz", "et_pairs/**/*.kineto.json.gz"),
        *("formats/*", "mindspore/*", "mindspore/*/rank*", "mindspore/*/*/timeline/msprof*.json"),
        "../corpus/*.json",
    )
    found = {file for pattern in patterns for file in SHARED.glob(pattern)}
    marks = {file: [pytest.mark.slow] * (file.stat().st_size > 200_000) for file in found}
    return [
        pytest.param(file, marks=marks[file], id="/".join(file.parts[-2:]))
        for file in sorted(found)
    ]


def answered(file: Path) -> longpole.Verdict | None:
    """Return the verdict on a file, unless it is not a trace with work."""
    try:
        return longpole.read_trace(file).verdict()
    except longpole.LongpoleError:
        return None


# What a clause of its own says; a name of an event may stand twice.
CLAUSES = re.compile(r"[;:.,(] | \(")


@pytest.mark.skipif(not TRACES.is_dir(), reason="the shared traces are not here")
@pytest.mark.parametrize("file", at_hand())
def test_a_verdict_has_four_lines_at_most_and_says_nothing_twice(file):
    verdict = answered(file)
    if verdict is None:
        pytest.skip("no trace with work in it")
    assert len(verdict.actions) <= 4
    assert all(n_words(line) <= 50 for line in verdict.actions)
    split = CLAUSES.split(str(verdict))
    # Two lines may save the same.
    clauses = [it for it in split if n_words(it) > 4 and not it.startswith("then saves")]
    assert sorted(set(clauses)) == sorted(clauses)
    assert not re.search(r"up to (nothing|less)|saves nothing \(", str(verdict))


def gaps(n_gaps: int, *, length: int = 400) -> TraceBuilder:
    """Launch ten kernels at once, with long gaps before the last of them."""
    builder, begin = TraceBuilder(), 100
    for number in range(10):
        begin += length if number >= 10 - n_gaps else 0
        call = (2 * number, 2 * number + 2)
        builder.launch("gemm", call=call, work=(begin, begin + 90))
        begin += 91
    return builder


def test_one_gap_is_named_and_the_rest_is_answered(said):
    verdict = gaps(1).read().verdict(whole=True)
    assert (verdict.status, verdict.sides) == ("ok", ("kernels",))
    assert verdict.sentence.startswith("Without one gap of 401 µs before gemm, in which ")
    said.within(verdict.sentence)
    assert verdict.gains["kernels"].value > 0.8
    assert verdict.sentence.count(" takes 1.01 ms, recomputed;") == 1
    # Ten kernels of 90 us: the share is of the same 1.01 ms.
    assert verdict.actions[0].startswith("gemm takes 89 % of the time (10 kernels; ")


def test_answers_about_the_time_with_a_gap_say_so(tmp_path, capsys):
    path = str(gaps(1).write(tmp_path / "trace.json"))
    told = "the 1.41 ms with the gap of 401 µs that the verdict leaves out."
    assert program.run(["summary", path, "--window=all"]) == 0
    assert f"Shares in tables are of {told}" in " ".join(capsys.readouterr().out.split())
    program.run(["whatif", path, "--window=all", "--scale", "kernel=0.5"])
    assert f"The change is computed for {told}" in " ".join(capsys.readouterr().out.split())
    program.run(["report", path, "--window=all", "-o", str(tmp_path / "report.html")])
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert told[4:-1] in page
    path = str(gaps(0).write(tmp_path / "without.json"))
    assert program.run(["summary", path, "--window=all"]) == 0
    assert "Shares in tables" not in capsys.readouterr().out


@pytest.mark.parametrize(("second_us", "is_named"), [(95, True), (40, False)])
def test_a_second_kernel_is_named_if_it_takes_nearly_as_long(second_us, is_named):
    builder, begin = TraceBuilder(), 20
    for number in range(4):
        for name, took in (("experts_up", 100), ("experts_down", second_us)):
            call = (number, number + 0.4)
            builder.launch(name, call=call, work=(begin, begin + took))
            begin += took
    [told] = builder.read().verdict(whole=True).actions
    assert told.startswith("experts_up takes ")
    assert (", and experts_down " in told) == is_named


@pytest.mark.parametrize(
    ("host", "told"),
    [
        (
            None,
            "the trace shows no GPU activity (likely work launched before it begins, or",
        ),
        (
            TraceBuilder.operator,
            "the host is in load and no device is busy (likely set-up on first use), the trace",
        ),
        (
            TraceBuilder.call,
            "no device is busy (likely for earlier work, or set-up on first",
        ),
    ],
)
def test_a_gap_before_the_first_activity_may_be_work_from_before_the_recording(host, told):
    builder = TraceBuilder()
    for number in range(10):
        call, begin = (2 * number, 2 * number + 2), 500 + 91 * number
        builder = builder.launch("gemm", call=call, work=(begin, begin + 90))
    if host is not None:
        name = "load" if host is TraceBuilder.operator else "cudaStreamSynchronize"
        builder = host(builder, name, (22, 490))
    assert told in builder.read().verdict(whole=True).sentence


def test_time_that_is_unexplained_in_many_places_leaves_the_answer_open_or_bounded():
    verdict = gaps(6).read().verdict(whole=True)
    assert "Without one gap" not in verdict.sentence
    assert verdict.gains["kernels"].low < verdict.gains["kernels"].high


EXPERT = {
    "qwen_h100": ("ok", "kernels"),
    "gemm_loop_mi300": ("ok", "kernels"),
    "graph_gaps": ("ok", "kernels"),
    "vllm_decode_full": ("ok", "kernels"),
    "sglang_decode": ("ok", "kernels"),
    "sampled": ("inconclusive", None),
}


@pytest.mark.skipif(not TRACES.is_dir(), reason="the shared traces are not here")
@pytest.mark.parametrize("name", EXPERT)
def test_what_an_expert_answers_is_answered(name):
    trace = longpole.read_trace(SHARED / "open_answers" / f"{name}.json.gz")
    verdict = trace.answer().verdict
    assert (verdict.status, next(iter(verdict.sides), None)) == EXPERT[name]


def busy(n_steps: int = 3) -> TraceBuilder:
    """Steps in which the host only launches one long kernel."""
    builder = TraceBuilder()
    for number in range(n_steps):
        begin = 1_000 * number
        builder.step(number, (begin, begin + 1_000))
        builder.launch("gemm", call=(begin + 1, begin + 5), work=(begin + 6, begin + 990))
        waiting(builder, begin + 6, begin + 992)
    return builder


def test_a_verdict_without_a_remedy_says_so_once():
    verdict = busy().read().verdict()
    assert verdict.status == "ok"
    assert not any(row.is_listed for row in verdict.remedies)
    assert text(verdict.blocks()).count("No remedy that longpole knows saves 2 % or more.") == 1
    assert "No remedy" not in text(loops().read().verdict().blocks())


def test_an_inconclusive_verdict_does_not_say_that_no_remedy_was_found():
    builder = TraceBuilder()
    for number in range(4):
        builder.kernel("gemm", (1_000 * number, 1_000 * number + 100), device=0, stream=7)
    verdict = builder.read().verdict()
    assert verdict.status == "inconclusive"
    assert "No remedy" not in text(verdict.blocks())


def test_a_gain_that_depends_on_missing_records_says_so():
    [row, *_] = loops().read().verdict().remedies
    missing = "depending on what the trace does not show"
    gains = {
        (0.0, "unexplained_time"): True,
        (0.0, "recorded"): False,
        (0.3, "unexplained_time"): False,
    }
    for (low, high_by), is_open in gains.items():
        shown = replace(row, gain=_gain((0, low, (low, 0.5, "recorded", high_by), [])))
        assert (missing in text([ranked([shown])]).replace("\n  ", " ")) == is_open


def test_where_no_side_alone_limits_the_first_two_are_told_with_what_both_gain(said):
    trace = longpole.read_trace(RECORDINGS / "decode.after.json.gz")
    value, note = trace.verdict().limited_by
    assert value == "no single side"
    said(note)
    said.within(trace.verdict().sentence)
