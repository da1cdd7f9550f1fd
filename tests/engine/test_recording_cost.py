"""What recording cost, and the program without it."""

from __future__ import annotations

import json
import math
import random
from dataclasses import replace

import pytest

from longpole import diff, read_trace
from longpole.cli.program import run
from longpole.engine.recording_cost import (
    step_sentence,
    timing_blocks,
    timings_of,
    unknown_blocks,
    unknown_cost,
)
from longpole.tables.check import check
from longpole.testing import TraceBuilder
from longpole.words.wording import duration, duration_range
from oracles.planted_costs import found
from oracles.simulator import simulate
from oracles.simulator.losses import PlantedCosts, with_overhead
from oracles.simulator.program import (
    Busy,
    Launch,
    Program,
    Stream,
    Synchronize,
    Work,
    annotation,
    operator,
)
from real_traces import SHARED

_WRAPPERS = ("aten::t", "aten::reshape", "aten::to", "aten::detach", "aten::linear")
_STREAM = Stream(0, 7)


def _step(number, n_operators, kernel_ns):
    """Return a step of operators that each call another one, which launches a kernel."""
    work = Work("kernel", "add", kernel_ns)
    body = []
    for place in range(n_operators):
        launch = operator("aten::add", Busy(2_000), Launch((work,), _STREAM), Busy(500))
        body += [operator(_WRAPPERS[place % 5], Busy(100), launch, Busy(50)), Busy(4_000)]
    return annotation(f"ProfilerStep#{number}", *body, step=number)


def _program(kernel_ns=1_500):
    steps = [_step(number, 60, kernel_ns) for number in range(6)]
    return Program("wrappers", tuple(steps))


@pytest.fixture
def trace_of(tmp_path):
    """Run programs and read their traces."""

    def trace(program):
        simulate(program, seed=3).write(tmp_path / "trace.json")
        return read_trace(tmp_path / "trace.json")

    return trace


@pytest.mark.parametrize("operator_ns", [1_000, 3_000, 6_000])
def test_planted_costs_of_operators_are_found_within_20_percent(operator_ns, trace_of):
    costs = PlantedCosts(operator=operator_ns, call=operator_ns, annotation=2 * operator_ns)
    cost = trace_of(with_overhead(_program(), costs)).recording_cost()
    found = {row["event_class"]: row["cost_ns"] for row in cost["classes"]}
    assert found["nested_operator"] == pytest.approx(operator_ns, rel=0.2)
    assert found["outer_operator"] == pytest.approx(operator_ns, rel=0.2)


def test_the_step_without_the_profiler_is_that_of_the_program_without_it(trace_of):
    costs = PlantedCosts(operator=3_000, call=3_900, annotation=6_000)
    recorded = trace_of(with_overhead(_program(), costs))
    cost = recorded.recording_cost()
    real_ns = trace_of(_program()).verdict().window.length_ns
    assert cost["recorded_step_ns"] > 1.5 * real_ns
    assert cost["step_ns"] == pytest.approx(real_ns, rel=0.1)
    assert cost["least_step_ns"] <= real_ns <= cost["most_step_ns"]


def test_gains_without_the_profiler_are_those_of_the_program_without_it(trace_of):
    costs = PlantedCosts(operator=3_000, call=3_900, annotation=6_000)
    real = trace_of(_program(kernel_ns=4_000)).verdict().gains
    recorded = trace_of(with_overhead(_program(kernel_ns=4_000), costs))
    found = recorded.without_profiler().verdict().gains
    assert recorded.verdict().gains["host"].value > real["host"].value + 0.2
    assert found["host"].value == pytest.approx(real["host"].value, abs=0.1)
    assert found["kernels"].value == pytest.approx(real["kernels"].value, abs=0.1)


def test_a_step_that_the_kernels_limit_stays_as_long(trace_of):
    costs = PlantedCosts(operator=1_000, call=1_300, annotation=2_000)
    recorded = trace_of(with_overhead(_program(kernel_ns=60_000), costs))
    cost = recorded.recording_cost()
    assert cost["status"] == "estimated"
    assert cost["step_ns"] == pytest.approx(cost["recorded_step_ns"], rel=0.02)


def test_a_verdict_carries_the_range_of_its_step(trace_of):
    costs = PlantedCosts(operator=3_000, call=3_900, annotation=6_000)
    recorded = trace_of(with_overhead(_program(), costs))
    cost = recorded.recording_cost()
    found = recorded.without_profiler().verdict()
    assert found.step_range_ns == (cost["least_step_ns"], cost["most_step_ns"])
    assert found.step_range_ns[0] < found.window.length_ns < found.step_range_ns[1]
    assert recorded.verdict().step_range_ns is None
    assert recorded.without_profiler().verdict(whole=True).step_range_ns is None


def test_a_given_step_time_is_matched_exactly(trace_of):
    costs = PlantedCosts(operator=3_000, call=3_900, annotation=6_000)
    recorded = trace_of(with_overhead(_program(), costs))
    asked_ns = recorded.recording_cost()["recorded_step_ns"] * 2 // 3
    without = recorded.without_profiler(asked_ns)
    assert without.removed_cost["status"] == "given"
    assert without.verdict().window.length_ns == pytest.approx(asked_ns, abs=200)


@pytest.mark.parametrize("share", [0.3, 0.6, 1.0])
def test_a_cost_that_fits_a_given_step_lies_between_its_bounds(share, trace_of):
    costs = PlantedCosts(operator=3_000, call=3_900, annotation=6_000)
    trace = trace_of(with_overhead(_program(), costs))
    found = trace.recording_cost()
    saved_ns = found["recorded_step_ns"] - found["step_ns"]
    given = trace.recording_cost(round(found["recorded_step_ns"] - share * saved_ns))
    assert given["factor"] == pytest.approx(share, abs=0.1)
    assert all(it["least_ns"] <= it["cost_ns"] <= it["most_ns"] for it in given["classes"])


@pytest.mark.parametrize(
    ("factor", "why"), [(2, "as recorded, less than that"), (0.01, "even without any recording")]
)
def test_a_step_time_that_no_cost_explains_is_said_and_not_used(said, factor, why, trace_of):
    costs = PlantedCosts(operator=3_000, call=3_900, annotation=6_000)
    recorded = trace_of(with_overhead(_program(), costs))
    estimated = recorded.recording_cost()
    cost = recorded.recording_cost(int(estimated["recorded_step_ns"] * factor))
    assert (cost["status"], cost["step_ns"]) == ("estimated", estimated["step_ns"])
    assert why in cost["misfit"]
    said.within(cost["misfit"])


@pytest.mark.parametrize(("factor", "is_as_recorded"), [(1.09, True), (0.93, False)])
def test_a_step_time_that_almost_fits_takes_the_nearest_and_says_so(
    factor, is_as_recorded, trace_of
):
    trace = trace_of(_program(kernel_ns=60_000))
    recorded_ns = trace.recording_cost()["recorded_step_ns"]
    cost = trace.recording_cost(round(factor * recorded_ns))
    assert (cost["status"], cost["misfit"]) == ("given", None)
    assert cost["step_ns"] == pytest.approx(recorded_ns, rel=0.01)
    assert cost["step_ns"] <= recorded_ns
    told = "as recorded, the step takes" if is_as_recorded else "without any recording overhead"
    assert told in cost["nearest"]
    assert cost["nearest"] in step_sentence(cost)


def test_a_step_time_like_those_of_the_file_is_not_called_another_programs(tmp_path):
    path = tmp_path / "trace.json"
    simulate(_program(kernel_ns=60_000), seed=3).write(path)
    trace = _with_measured_steps(path, 0.5)
    [given_ns, *_] = timings_of(trace.core.header).all_ns
    told = "like the steps that were timed when it was recorded"
    misfit = trace.recording_cost(given_ns)["misfit"]
    assert told in misfit
    assert misfit.endswith("which were slower")
    longer = _with_measured_steps(path, 1.5)
    misfit = longer.recording_cost(timings_of(longer.core.header).all_ns[0])["misfit"]
    assert told in misfit
    assert misfit.endswith("which were faster")
    assert "another machine" in trace.recording_cost(given_ns // 2)["misfit"]


@pytest.mark.parametrize("seed", range(4))
def test_no_bound_exceeds_the_recorded_step_and_whole_microseconds_tell_less(seed, tmp_path):
    dice = random.Random(f"bounds {seed}")  # noqa: S311 - no secret
    costs = PlantedCosts(operator=dice.randint(1_500, 5_000), call=4_000, annotation=6_000)
    program = with_overhead(_program(kernel_ns=dice.choice((1_500, 9_000, 60_000))), costs)
    simulate(program, seed=seed).write(tmp_path / "trace.json")
    exact = read_trace(tmp_path / "trace.json").recording_cost()
    document = json.loads((tmp_path / "trace.json").read_text())
    for event in document["traceEvents"]:
        if "dur" in event:
            end = math.floor(event["ts"] + event["dur"])
            event["ts"] = math.floor(event["ts"])
            event["dur"] = end - event["ts"]
    whole = read_trace(json.dumps(document).encode()).recording_cost()
    assert (exact["status"], whole["status"], whole["step_ns"]) == ("estimated", "unknown", None)
    assert exact["least_step_ns"] <= exact["step_ns"] <= exact["most_step_ns"]
    for cost in (exact, whole):
        assert cost["most_step_ns"] <= cost["recorded_step_ns"]
    assert whole["least_step_ns"] <= exact["step_ns"]
    assert "whole microseconds" in whole["reason"]


def test_an_unknown_cost_is_said_on_the_first_screen_where_it_may_matter(said):
    builder = TraceBuilder()
    for number in range(4):
        at_us = 100 * number
        builder.step(number, (at_us, at_us + 90))
        for place in range(3):
            begin = at_us + 30 * place
            builder.operator("aten::mm", (begin, begin + 20))
            builder.launch("gemm", call=(begin + 8, begin + 16), work=(begin + 16, begin + 18))
    cost = builder.read().recording_cost()
    assert (cost["status"], cost["step_ns"]) == ("unknown", None)
    assert cost["least_step_ns"] < 0.9 * cost["recorded_step_ns"]
    said.within(str(unknown_blocks(cost)))
    cost.update(least_step_ns=cost["recorded_step_ns"])
    assert unknown_blocks(cost) == []


def test_step_times_that_were_measured_at_recording_count(tmp_path):
    costs = PlantedCosts(operator=3_000, call=3_900, annotation=6_000)
    simulate(with_overhead(_program(), costs), seed=3).write(tmp_path / "recorded.json")
    text = json.loads((tmp_path / "recorded.json").read_text())
    step_ns = read_trace(json.dumps(text).encode()).recording_cost()["recorded_step_ns"] * 3 // 4
    text["longpole"] = {"step_time_ns": {"before": [step_ns - 900], "after": [step_ns + 900]}}
    cost = read_trace(json.dumps(text).encode()).recording_cost()
    assert cost["status"] == "measured"
    assert cost["step_ns"] == pytest.approx(step_ns, abs=200)
    assert (cost["least_step_ns"], cost["most_step_ns"]) == (step_ns - 900, step_ns + 900)
    assert ", as measured (" in step_sentence(cost)


def test_python_answers_say_whose_times_they_use_where_the_profiler_matters(trace_of):
    costs = PlantedCosts(operator=3_000, call=3_900, annotation=6_000)
    recorded = trace_of(with_overhead(_program(), costs))
    told, without = recorded.verdict(), recorded.without_profiler()
    hint = "Commands answer for that program, and so does `trace.without_profiler()`."
    assert str(told).endswith(hint)
    assert hint in recorded.critical_path().explain().replace("\n", " ")
    assert hint not in str(without.verdict()) + without.critical_path().explain()
    assert repr(recorded).endswith(", times as recorded>")
    assert " as recorded, " in repr(recorded.critical_path())
    assert repr(without).endswith(", times without the profiler>")
    assert " without the profiler, " in repr(without.critical_path())


def test_a_verdict_of_the_kernels_does_not_mention_the_profiler(trace_of):
    costs = PlantedCosts(operator=1_000, call=1_300, annotation=2_000)
    assert trace_of(with_overhead(_program(kernel_ns=60_000), costs)).verdict().recorded is None


def test_a_trace_of_few_operators_keeps_its_times_and_says_why():
    trace = TraceBuilder().launch("gemm", call=(0, 10), work=(10, 100)).read()
    cost = trace.recording_cost()
    assert (cost["status"], cost["step_ns"]) == ("unknown", None)
    assert "too few operators" in cost["reason"]
    same = trace.without_profiler()
    assert repr(same).endswith(", times as recorded>")
    assert same.events["start_ns"].to_list() == trace.events["start_ns"].to_list()


def test_events_keep_their_rows_their_nesting_and_the_length_of_device_work(trace_of):
    costs = PlantedCosts(operator=3_000, call=3_900, annotation=6_000)
    recorded = trace_of(with_overhead(_program(), costs))
    without = recorded.without_profiler()
    assert without.events["name"].to_list() == recorded.events["name"].to_list()
    assert without.events["parent"].to_list() == recorded.events["parent"].to_list()
    is_kernel = recorded.events["kind"].cast(str) == "kernel"
    lengths = [it.events["duration_ns"].filter(is_kernel).to_list() for it in (recorded, without)]
    assert lengths[0] == lengths[1]


@pytest.mark.skipif(not SHARED.is_dir(), reason="the recordings of ../shared are not here")
@pytest.mark.parametrize("name", ["attention.before", "kernels.before", "transposes.before"])
def test_recordings_that_kernels_limit_change_by_2_percent_at_the_most(name):
    cost = read_trace(SHARED / "gpu" / "programs" / f"{name}.json.gz").recording_cost()
    if cost["status"] != "unknown":
        assert cost["step_ns"] == pytest.approx(cost["recorded_step_ns"], rel=0.02)


def test_a_gain_lies_between_its_bounds_with_the_least_and_the_most_cost(trace_of):
    costs = PlantedCosts(operator=3_000, call=3_900, annotation=6_000)
    [real, *_] = trace_of(_program(kernel_ns=4_000)).verdict().remedies
    recorded = trace_of(with_overhead(_program(kernel_ns=4_000), costs))
    [found, *_] = recorded.without_profiler().verdict().remedies
    assert found.remedy == real.remedy == "cuda_graph"
    assert "recording_cost" in {found.gain.low_by, found.gain.high_by}
    assert found.gain.low <= real.gain.value <= found.gain.high
    assert found.gain.low < found.gain.value < found.gain.high


def _with_measured_steps(path, *factors):
    """Write step times without a profiler, as factors of the recorded step, to a trace."""
    recorded_ns = read_trace(path).recording_cost()["recorded_step_ns"]
    document = json.loads(path.read_text())
    times = [round(factor * recorded_ns) for factor in factors]
    document["longpole"] = {"step_time_ns": {"before": times, "after": times}}
    path.write_text(json.dumps(document))
    return read_trace(path)


@pytest.mark.parametrize(
    ("factors", "is_misfit"),
    [([0.98], False), ([1.08], False), ([1.5], True), ([0.7, 1.05], False)],
)
def test_timed_steps_are_said_whether_they_fit_or_not(factors, is_misfit, tmp_path, capsys):
    path = tmp_path / "trace.json"
    simulate(_program(kernel_ns=60_000), seed=3).write(path)
    cost = _with_measured_steps(path, *factors).recording_cost()
    timed = duration_range(min(cost["timed_ns"]), max(cost["timed_ns"]))
    assert (cost["status"], cost["misfit"] is not None) == ("estimated", is_misfit)
    if is_misfit:
        assert "the speed of the program may have changed meanwhile" in cost["misfit"]
    for command in ("summary", "path", "whatif", "check"):
        run([command, str(path)])
        shown = " ".join(capsys.readouterr().out.split())
        told = f"that were timed without the profiler took {timed}, which does not fit"
        assert (told in shown) == is_misfit
        assert (f"imed without the profiler: {timed}" in shown) != is_misfit


def test_the_range_of_a_gain_covers_every_timed_step_down_to_its_kernels(tmp_path):
    path = tmp_path / "trace.json"
    costs = PlantedCosts(operator=3_000, call=3_900, annotation=6_000)
    simulate(with_overhead(_program(kernel_ns=4_000), costs), seed=3).write(path)
    alike, spread = (_with_measured_steps(path, *it) for it in ([0.8], [0.7, 0.8, 0.9]))
    narrow, wide = (trace.without_profiler() for trace in (alike, spread))
    assert wide.removed_cost["step_ns"] == narrow.removed_cost["step_ns"]
    ends = [spread.without_profiler(it) for it in sorted(wide.removed_cost["timed_ns"])[::5]]
    [usual, found, *at_ends] = (it.verdict().remedies[0] for it in (narrow, wide, *ends))
    assert {it.remedy for it in (usual, found, *at_ends)} == {"cuda_graph"}
    assert found.gain.value == usual.gain.value
    assert found.gain.low == min(it.gain.low for it in (usual, *at_ends)) < usual.gain.low
    # What remains of the step is no shorter than its 60 kernels of 4 us.
    most = max(1 - 60 * 4_000 / it.removed_cost["step_ns"] for it in (wide, *ends))
    for_all = max(it.gain.high for it in (usual, *at_ends))
    assert found.gain.high == pytest.approx(min(for_all, most), abs=0.01)
    assert found.gain.low_by == "recording_cost"
    host = wide.verdict().gains["host"]
    for_all = max(it.verdict().gains["host"].high for it in (narrow, *ends))
    assert host.high == pytest.approx(min(for_all, most), abs=0.01)
    both = wide.after_remedies(["cuda_graph"])
    assert (both.gain.low, both.gain.high) == (found.gain.low, found.gain.high)


def _launching_steps():
    """Build steps without operators, so that the cost of recording is unknown."""
    builder = TraceBuilder()
    for number in range(4):
        at_us = 100 * number
        builder.step(number, (at_us, at_us + 90))
        builder.launch("gemm", call=(at_us, at_us + 10), work=(at_us + 10, at_us + 90))
    return builder


@pytest.mark.parametrize(("factor", "is_said"), [(1.05, False), (2, True)])
def test_measured_steps_are_compared_with_recorded_ones_if_the_cost_is_unknown(factor, is_said):
    builder = _launching_steps()
    document = json.loads(builder.to_bytes())
    recorded_ns = builder.read().verdict().window.length_ns
    document["longpole"] = {"step_time_ns": {"before": [factor * recorded_ns], "after": []}}
    trace = read_trace(json.dumps(document).encode())
    cost = trace.recording_cost()
    assert cost["status"] == "unknown"
    assert "too few operators" in cost["reason"]
    told = "may have changed meanwhile" in str(timing_blocks(cost))
    assert (told, cost["misfit"] is not None) == (is_said, is_said)
    sentence = trace.without_profiler().verdict().sentence
    assert (f"(timed without the profiler: {duration(cost['timed_ns'][0])})" in sentence) != is_said


def _recorded_with_waits(kernel_ns, path):
    """Record steps that each wait for their kernels."""
    steps = _program(kernel_ns).main
    waiting = tuple(replace(step, body=(*step.body, Synchronize())) for step in steps)
    costs = PlantedCosts(operator=1_000, call=1_300, annotation=2_000)
    simulate(with_overhead(Program("waits", waiting), costs), seed=3).write(path)


@pytest.mark.parametrize("factor", [0.99, 1.0])
def test_a_measured_step_that_needs_impossible_costs_is_not_used(factor, tmp_path):
    path = tmp_path / "trace.json"
    _recorded_with_waits(30_000, path)
    estimated = read_trace(path).recording_cost()
    assert estimated["status"] == "estimated"
    cost = _with_measured_steps(path, factor).recording_cost()
    assert cost == estimated | {"timed_ns": cost["timed_ns"]}
    assert len(cost["timed_ns"]) == 2


@pytest.mark.parametrize("factor", [0.98, 1.05])
def test_a_measured_step_of_the_host_is_used_if_the_estimate_says_otherwise(factor, tmp_path):
    path = tmp_path / "trace.json"
    _recorded_with_waits(12_000, path)
    recorded_ns = read_trace(path).recording_cost()["recorded_step_ns"]
    cost = _with_measured_steps(path, factor).recording_cost()
    assert cost["status"] == "measured"
    assert cost["step_ns"] == pytest.approx(min(factor, 1) * recorded_ns, rel=0.001)


def test_a_trace_without_steps_has_no_median(said):
    told = step_sentence(_cost_of(unit="trace"))
    assert told.startswith("Without the profiler the trace takes about 43.0 ms (estimated 38.0 to ")
    said.within(step_sentence(_cost_of(unit="step")))


def _cost_of(unit):
    cost = unknown_cost("") | {"unit": unit, "status": "estimated"}
    times = {"recorded_step_ns": 98_000_000, "step_ns": 43_000_000}
    return cost | times | {"least_step_ns": 38_000_000, "most_step_ns": 51_000_000}


# Costs of recording that were planted in programs of many shapes are found.


SEEDS = 6


def test_planted_costs_are_found_and_the_step_lies_in_its_interval(tmp_path):
    rows = [found(seed, tmp_path) for seed in range(SEEDS)]
    for event_class in ("outer_operator", "nested_operator", "launch", "annotation"):
        assert all(row.is_found(event_class) for row in rows), event_class
    assert all(row.is_bounded("python_function") for row in rows)
    assert sum(row.is_inside for row in rows) >= 0.8 * SEEDS


@pytest.mark.parametrize(
    ("after_ns", "is_said"), [([33_000, 37_000], True), ([23_000, 26_000], False)]
)
def test_a_speed_that_changed_while_recording_is_said_wherever_it_matters(after_ns, is_said):
    builder = _launching_steps()
    document = json.loads(builder.to_bytes())
    document["longpole"] = {"step_time_ns": {"before": [22_000, 24_000], "after": after_ns}}
    trace = read_trace(json.dumps(document).encode())
    told = "speed changed while it was recorded: without the profiler, its step took 23.0 µs before"
    shown = str(timing_blocks(trace.recording_cost()))
    plain = read_trace(builder.to_bytes())
    of_both, of_base = (str(diff(trace, other).blocks()[-1]) for other in (trace, plain))
    assert told in shown or not is_said
    assert (of_both.count(told), of_base.count(f"Of the base: the program's {told}")) == (
        (1, 1) if is_said else (0, 0)
    )
    assert ("speed_changed" in {found.code for found in check(trace)}) == is_said
