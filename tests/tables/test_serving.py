"""The iterations of inference servers: what marks them, their times, and what is said of them."""

from __future__ import annotations

import gzip
import json
import statistics
from decimal import Decimal
from itertools import groupby, pairwise
from operator import itemgetter
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import longpole
from longpole.cli import program
from longpole.testing import TraceBuilder
from real_traces import SHARED

GIVEN = SHARED / "open_answers"
needs_given = pytest.mark.skipif(not GIVEN.is_dir(), reason="needs ../shared/data/open_answers")
LAUNCH = "cudaGraphLaunch"


def decode(builder: TraceBuilder, at: float, name: str = "step[DECODE bs=8]") -> TraceBuilder:
    """Add a decode step: 40 us on the host, launched after 20, 58 us on the device."""
    builder.annotation(name, (at, at + 40))
    return builder.launch("model", call=(at + 20, at + 30), work=(at + 32, at + 90), by=LAUNCH)


def steps(*starts: float) -> TraceBuilder:
    builder = TraceBuilder()
    for at in starts:
        decode(builder, at)
    return builder


def test_waits_of_the_device_are_split_by_where_the_host_was():
    # The device is done at 90; the host begins the next step at 130 and launches until 160.
    row = longpole.steps(steps(0, 130).read(), by="iteration").row(1, named=True)
    assert (row["scheduler_wait_ns"], row["launch_wait_ns"]) == (40_000, 30_000)
    assert (row["length_ns"], row["gap_ns"], row["replay_ns"]) == (130_000, 72_000, 58_000)
    assert (row["before_launch_ns"], row["launch_delay_ns"]) == (20_000, 12_000)


def test_a_kind_has_its_own_figures_and_the_one_with_most_time_comes_first():
    builder = steps(0, 100, 200, 300)
    decode(builder, 400, "step[EXTEND bs=2 toks=100]")
    decode(builder, 500)
    decoding, prefilling = longpole.serving(builder.read()).kinds
    assert (decoding["kind"], prefilling["kind"]) == ("decode", "prefill")
    assert (decoding["count"], prefilling["count"]) == (5, 1)
    rates = ("decode_tokens_per_second", "prefill_tokens_per_second")
    assert [decoding[rate] for rate in rates] == [80_000, 0]
    assert [prefilling[rate] for rate in rates] == [0, 1_000_000]


def served(kinds, *, tokens=4, pause=20):
    """Run iterations of vLLM: decode steps of 4 requests (60 us), and prompts (200 us)."""
    builder, at = TraceBuilder(), 0
    for kind in kinds:
        length = 60 if kind == "D" else 200
        of_prompts, decoded = {"D": (0, tokens), "P": (1, 0), "M": (1, 4)}[kind]
        requests = 4 if decoded else 0
        prompts = f"context_{of_prompts}({100 * of_prompts})"
        builder.annotation(f"execute_{prompts}_generation_{requests}({decoded})", (at, at + 30))
        work = (at + 8, at + 8 + length)
        builder.launch("model", call=(at + 2, at + 6), work=work, by=LAUNCH)
        at += length + pause
    return builder


def test_a_token_takes_from_one_iteration_that_decodes_to_the_next():
    found = longpole.serving(served("DDPDD").read())
    assert (found.time_per_output_token_ns, found.longest_output_token_ns) == (80_000, 300_000)
    assert (found.n_delayed, found.time_to_first_token_ns) == (1, 208_000)


@pytest.mark.parametrize(
    ("kinds", "tokens", "expected"),
    [
        ("D", 4, (None, None, 0, None)),
        ("DD", 4, (80_000, 80_000, 0, None)),
        ("DMD", 4, (150_000, 220_000, 1, 208_000)),
        ("PP", 4, (None, None, 0, 208_000)),
        ("DDD", 12, (None, None, 0, None)),  # speculative decoding: several tokens in a step
    ],
)
def test_times_of_tokens_are_those_that_the_marks_show(kinds, tokens, expected):
    found = longpole.serving(served(kinds, tokens=tokens).read())
    assert expected == (
        found.time_per_output_token_ns,
        found.longest_output_token_ns,
        found.n_delayed,
        found.time_to_first_token_ns,
    )


def test_without_tokens_or_a_device_no_time_of_a_token_is_told():
    mixed = TraceBuilder()
    for at in (0, 100, 200):
        decode(mixed, at, "step[MIXED bs=8]")
    silent = TraceBuilder()
    for at in (0, 100, 200):
        silent.annotation("step[DECODE bs=8]", (at, at + 40))
    for builder in (mixed, silent):
        found = longpole.serving(builder.read())
        assert (found.time_per_output_token_ns, found.time_to_first_token_ns) == (None, None)


@given(st.text("DMP", min_size=1, max_size=12), st.integers(0, 50))
@settings(deadline=None, max_examples=30)
def test_times_of_tokens_add_up_to_the_time_between_decodes(kinds, pause):
    found = longpole.serving(served(kinds, pause=pause).read())
    rows = longpole.steps(served(kinds, pause=pause).read(), by="iteration")
    ends = rows.filter(pl.col("kind") != "prefill")["end_ns"].to_list()
    gaps = [end - start for start, end in pairwise(ends)]
    if found.time_per_output_token_ns is None:
        assert "D" not in kinds or not gaps
        return
    assert found.time_per_output_token_ns == statistics.median(gaps)
    assert found.longest_output_token_ns == max(gaps)
    assert found.n_delayed <= len(gaps)


def test_the_summary_tells_the_times_of_tokens(tmp_path, capsys, said):
    path = served("DDPDD").write(tmp_path / "trace.json")
    assert program.run(["summary", str(path)]) == 0
    told = " ".join(capsys.readouterr().out.split())
    said.within(told)
    said.within(told)


def test_the_verdict_is_over_iterations_of_one_kind(said):
    builder = TraceBuilder()
    for number in range(9):
        at = 100 * number
        name = "step[EXTEND bs=1 toks=9]" if number == 4 else "step[DECODE bs=8]"
        decode(builder, at, name)
    trace = builder.read()
    assert trace.verdict().steps == (1, 2, 3)
    said.within(trace.verdict().reason)


def test_of_few_iterations_the_longest_is_the_window(said):
    said.within(steps(0).read().verdict().reason)
    said.within(steps(0, 100).read().verdict().reason)


def test_the_scheduler_is_blamed_where_the_device_waits_between_iterations(said):
    builder = TraceBuilder()
    for at in range(0, 600, 100):
        builder.annotation("execute_context_0(0)_generation_4(4)", (at, at + 30))
        builder.launch("model", call=(at + 2, at + 6), work=(at + 8, at + 36), by=LAUNCH)
    sentence = longpole.serving(builder.read()).sentence
    said(sentence)


def test_without_a_graph_the_launches_are_blamed(said):
    builder = TraceBuilder()
    for at in range(0, 600, 100):
        builder.annotation("step[DECODE bs=4]", (at, at + 99))
        for launch in range(at, at + 90, 30):
            builder.launch("gemm", call=(launch + 20, launch + 29), work=(launch + 29, launch + 31))
    said.within(longpole.serving(builder.read()).sentence)


def test_a_busy_device_leaves_only_the_kernels():
    builder = TraceBuilder()
    for at in range(0, 600, 100):
        builder.annotation("step[DECODE bs=4]", (at, at + 20))
        builder.launch("gemm", call=(at + 2, at + 4), work=(at + 105, at + 203), by=LAUNCH)
    shown = longpole.serving(builder.read()).sentence
    assert shown.endswith(
        "busy 98 % of the time, so only shorter kernels can shorten them: gemm has 100 %."
    )


def test_a_call_that_blocks_for_no_recorded_reason_is_named(said):
    builder = TraceBuilder()
    for at in range(0, 6000, 1000):
        builder.annotation("step[DECODE bs=4]", (at, at + 999))
        builder.launch("gemm", call=(at + 2, at + 4), work=(at + 900, at + 990), by=LAUNCH)
        builder.call("cudaStreamSynchronize", (at + 10, at + 898))
    shown = longpole.serving(builder.read()).sentence
    said.within(shown)


def test_a_slow_iteration_is_compared_with_the_median_of_its_kind(said):
    builder = steps(0, 100, 200, 300)
    builder.annotation("step[DECODE bs=64]", (400, 440))
    builder.launch("model", call=(420, 430), work=(432, 590), by=LAUNCH)
    slow = longpole.serving(builder.read()).slowest[0]
    assert (slow["iteration"], slow["length_ns"], slow["median_ns"]) == (4, 200_000, 100_000)
    said(slow["why"])


def test_functions_mark_iterations_where_nothing_is_annotated():
    builder = TraceBuilder()
    for at, mode in ((0, "decode"), (100, "decode"), (200, "extend")):
        builder.python("sglang/srt/managers/scheduler.py(9): run_batch", (at, at + 40))
        builder.python(
            f"sglang/srt/model_executor/model_runner.py(8): forward_{mode}", (at + 1, at + 39)
        )
        builder.launch("model", call=(at + 20, at + 30), work=(at + 32, at + 90), by=LAUNCH)
    found, rows = longpole.serving(builder.read()), longpole.steps(builder.read(), by="iteration")
    assert (found.servers, found.mark) == (("SGLang",), "python_function")
    assert rows["kind"].to_list() == ["decode", "decode", "prefill"]
    assert rows["requests"].to_list() == [None] * 3


def test_graphs_in_pieces_are_one_iteration():
    builder = TraceBuilder()
    for at in range(0, 600, 100):
        for place, name in enumerate(("embed", "layer", "layer", "layer", "head")):
            call = (at + 10 * place, at + 10 * place + 2)
            work = (at + 10 * place + 3, at + 10 * place + 9)
            builder.launch(name, call=call, work=work, by=LAUNCH)
    found = longpole.serving(builder.read())
    assert found.mark == "graph_launch"
    assert longpole.steps(builder.read(), by="iteration")["n_graph_launches"].to_list() == [5] * 6
    assert [kind["scheduler_share"] for kind in found.kinds] == [None]


def test_sampling_counts_once_and_is_unknown_where_nothing_records_it():
    builder = steps(0, 100)
    assert longpole.steps(builder.read(), by="iteration")["sampling_ns"].to_list() == [None, None]
    builder.python("nn.Module: Sampler_0", (50, 70)).python("sampler.py(3): sample", (51, 60))
    assert longpole.steps(builder.read(), by="iteration")["sampling_ns"].to_list() == [20_000, 0]


def test_marks_of_empty_batches_and_inside_others_are_no_iterations():
    builder = steps(0, 100)
    builder.annotation("execute_context_0(0)_generation_0(0)", (95, 99))
    builder.annotation("execute_context_0(0)_generation_8(8)", (199, 241))
    decode(builder, 200)
    rows = longpole.steps(builder.read(), by="iteration")
    assert rows["start_ns"].to_list() == [0, 100_000, 199_000]
    assert rows["server"].to_list() == ["SGLang"] * 3


def test_a_single_launch_of_a_graph_tells_nothing_of_the_host(said):
    builder = TraceBuilder().launch("m", call=(0, 10), work=(12, 50), by="hipGraphLaunch")
    said(longpole.serving(builder.read()).sentence)


def test_a_trace_of_no_server_says_so(said):
    found = longpole.serving(TraceBuilder().operator("aten::mm", (0, 9)).read())
    assert (found.mark, found.kinds) == (None, ())
    said.within(found.sentence)


def test_the_capture_beside_a_trace_names_the_nodes(tmp_path):
    capture = TraceBuilder().call("cudaStreamBeginCapture", (0, 1)).operator("aten::mm", (2, 9))
    capture.call("cudaLaunchKernel", (3, 5), correlation=9).call("cudaStreamEndCapture", (10, 11))
    capture.write(tmp_path / "rank0.capture.json.gz")
    path = steps(0, 100, 200).write(tmp_path / "rank0.json.gz")
    assert [it["operator"] for it in longpole.serving(path).kernels] == ["aten::mm"]
    alone = longpole.read_trace(path, capture_traces=[])
    assert [it["operator"] for it in longpole.serving(alone).kernels] == [None]


# The given traces, counted by hand from the raw file


def raw(name: str) -> list[dict[str, Any]]:
    with gzip.open(GIVEN / f"{name}.json.gz") as file:
        events = json.load(file, parse_float=Decimal)["traceEvents"]
    return [event for event in events if event.get("ph") == "X"]


def ns(us: Decimal) -> int:
    return int(1000 * us)


def span_ns(event: dict[str, Any]) -> tuple[int, int]:
    return ns(event["ts"]), ns(event["ts"]) + ns(event["dur"])


def busy_ns(spans: list[tuple[int, int]]) -> int:
    total = behind = 0
    for start, end in sorted(spans):
        total += max(end - max(start, behind), 0)
        behind = max(behind, end)
    return total


def counted(name: str) -> dict[str, Any]:
    """Count the only iteration of a trace: what is launched by which call, and when."""
    events = raw(name)
    mark = max(
        (event for event in events if event["cat"] == "user_annotation"), key=itemgetter("dur")
    )
    number = lambda event: event.get("args", {}).get("correlation")  # noqa: E731
    calls = {number(event): event for event in events if event["cat"] == "cuda_runtime"}
    works = [event for event in events if event["cat"] in ("kernel", "gpu_memcpy")]
    own = [event for event in works if calls[number(event)]["ts"] >= mark["ts"]]
    (graph,) = [event for event in events if event["name"] == "hipGraphLaunch"]
    nodes = [span_ns(event) for event in works if number(event) == number(graph)]
    first, last = min(start for start, _ in nodes), max(end for _, end in nodes)
    return {
        "requests": int(mark["name"].split("_generation_")[1].split("(")[0]),
        "decode_tokens": int(mark["name"].split("_generation_")[1].split("(sq")[1].split("sk")[0]),
        "host_ns": ns(mark["dur"]),
        "before_launch_ns": ns(graph["ts"]) - ns(mark["ts"]),
        "replay_ns": last - first,
        "replay_busy_ns": busy_ns(nodes),
        "launch_delay_ns": first - ns(graph["ts"]),
        "device_ns": busy_ns([span_ns(event) for event in own]),
        "n_graph_launches": 1,
        "n_launches": len([event for event in calls.values() if "Launch" in event["name"]]),
        "kernels": sorted(event["name"] for event in own),
    }


@needs_given
@pytest.mark.parametrize("name", ["vllm_decode_full", "sglang_decode"])
@pytest.mark.parametrize("with_capture", [False, True])
def test_given_traces_agree_with_a_count_by_hand(name, with_capture):
    captures = None if with_capture else []
    trace = longpole.read_trace(GIVEN / f"{name}.json.gz", capture_traces=captures)
    found, expected = longpole.serving(trace), counted(name)
    [row] = longpole.steps(trace, by="iteration").to_dicts()
    assert (found.n_iterations, row["kind"]) == (1, "decode")
    n_of_name = [(key, len([*names])) for key, names in groupby(expected.pop("kernels"))]
    counts: dict[str, int] = {}
    for kernel in found.kernels:
        counts[kernel["name"]] = counts.get(kernel["name"], 0) + kernel["count"]
    # Names that the compiler mangled are shown as they are in the source.
    plain = [(key, number) for key, number in n_of_name if not key.startswith("_Z")]
    assert [(key, counts[key]) for key, _ in plain] == plain
    assert sum(counts.values()) == sum(number for _, number in n_of_name)
    for key, value in expected.items():
        assert row[key] == value, key
    assert (found.kernels[0]["operator"] is not None) == with_capture


@needs_given
@pytest.mark.parametrize("path", sorted(GIVEN.glob("*.json.gz")), ids=lambda path: path.name)
def test_the_sentence_about_a_given_trace_is_short(path):
    found = longpole.serving(longpole.read_trace(path, capture_traces=[]))
    assert len(found.sentence.split()) <= 60


@needs_given
def test_the_server_of_a_given_trace_is_told_by_the_mark_inside():
    assert longpole.serving(GIVEN / "sglang_decode.json.gz").servers == ("SGLang",)
    assert longpole.serving(GIVEN / "vllm_decode_full.json.gz").servers == ("vLLM",)


def test_the_table_lists_all_iterations(tmp_path, capsys):
    path = steps(*range(0, 1000, 100)).write(tmp_path / "trace.json")
    assert program.run(["table", str(path), "steps", "--by", "iteration", "--format", "csv"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 11


def summarised(path, capsys, *options):
    """Return the part of a summary about a server, in JSON and as text."""
    assert program.run(["summary", str(path), *options, "--json"]) in (0, 4)
    data = json.loads(capsys.readouterr().out)["data"]
    program.run(["summary", str(path), *options])
    return data["serving"], " ".join(capsys.readouterr().out.split())


def test_the_summary_of_a_server_has_what_is_said_of_its_iterations(tmp_path, capsys, said):
    builder = steps(*range(0, 500, 100))
    decode(builder, 530)
    path = builder.write(tmp_path / "trace.json")
    found, text = summarised(path, capsys, "--top", "9")
    alone = longpole.serving(path)
    assert found == alone.to_dict()
    assert alone.sentence in text
    said.within(text)
    assert summarised(path, capsys, "--window", "0..200us")[0] is None


@needs_given
@pytest.mark.parametrize("name", ["sglang_decode", "vllm_decode_full"])
def test_the_summary_of_a_given_trace_has_the_same_figures(name, capsys):
    path = GIVEN / f"{name}.json.gz"
    found, text = summarised(path, capsys, "--top", "999")
    assert found == longpole.serving(path).to_dict()
    assert found["sentence"] in text
    shorter, _ = summarised(path, capsys, "--top", "3")
    assert shorter["kernels"] == found["kernels"][:3]
    assert shorter["n_kernels"] == len(found["kernels"])


def test_launches_of_graphs_mark_iterations_where_no_step_is_marked(tmp_path, capsys, said):
    def launches(builder):
        for at in range(0, 600, 100):
            call, work = (at + 2, at + 6), (at + 8, at + 36)
            builder.launch("model", call=call, work=work, by=LAUNCH)
        return builder

    unmarked = launches(TraceBuilder()).write(tmp_path / "unmarked.json")
    found, text = summarised(unmarked, capsys)
    assert (found["mark"], found["n_iterations"]) == ("graph_launch", 6)
    said.within(text)
    marked = TraceBuilder()
    for number in range(3):
        marked.step(number, (200 * number, 200 * number + 190))
    path = launches(marked).write(tmp_path / "marked.json")
    assert summarised(path, capsys)[0] is None
    assert summarised(path, capsys, "--window=all")[0]["mark"] == "graph_launch"


def between_iterations(*frames: str, pause: int = 60) -> TraceBuilder:
    """Run decode steps with Python functions, one in another, between them."""
    builder = TraceBuilder()
    for at in range(0, 6 * (90 + pause), 90 + pause):
        decode(builder, at)
        for depth, name in enumerate(frames):
            builder.python(name, (at + 45 + depth, at + 85 + pause - depth))
    return builder


def test_what_the_host_does_between_iterations_is_named_as_the_cause(said):
    found = longpole.serving(between_iterations("schedule", "pack", pause=100).read())
    assert [row["name"] for row in found.between] == ["schedule", "pack"]
    assert found.between[0]["share"] == pytest.approx(140 / 150)
    said.within(found.sentence)
    unknown = longpole.serving(between_iterations(pause=100).read())
    assert unknown.between == ()
    said.within(unknown.sentence)


def test_a_loop_around_all_iterations_is_no_cause():
    builder = between_iterations(pause=100).python("event_loop", (-5, 2_000))
    assert longpole.serving(builder.read()).between == ()


def test_the_answer_is_about_steps_that_decode_and_their_tokens():
    answer = longpole.summary(between_iterations("schedule", pause=100).read(), whole=False)
    assert answer.verdict.sentence.startswith(
        "The median decode step of 8 requests (one token each) takes 190 µs"
    )


@pytest.mark.parametrize(("kinds", "is_planned"), [("DDDDDD", True), ("DPDPDPDD", False)])
def test_the_plan_gives_the_time_per_token_unless_prompts_come_between(kinds, is_planned):
    builder, at = TraceBuilder(), 0
    for kind in kinds:
        builder.annotation(
            "step[DECODE bs=8]" if kind == "D" else "step[EXTEND bs=1 toks=9]", (at, at + 90)
        )
        builder.launch("model", call=(at + 20, at + 30), work=(at + 32, at + 82))
        builder.call("cudaDeviceSynchronize", (at + 31, at + 85))
        at += 92
    found = longpole.summary(builder.read())
    plan, planned_ns = found.verdict.plan, found.serving.planned_output_token_ns
    assert plan.then_ns is not None
    assert planned_ns == ((plan.then_ns[0], plan.length_ns) if is_planned else None)
