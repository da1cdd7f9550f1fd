"""Timing functions: on a clock that plays a script, on this processor, on a torch of straw.

One file: the cases share their clocks.
"""

import json
import sys
from collections import Counter
from pathlib import Path

import pytest
from straw_torch import StrawTorch

from longpole.bench import (
    CpuClock,
    Effort,
    FakeClock,
    TorchClock,
    Verdict,
    best_records,
    compare,
    read_results,
)
from longpole.bench.time.clocks import ThermalEvents
from longpole.bench.time.measure import measure, measure_in_turns
from longpole.cli.bench.time import time as time_command
from longpole.errors import DeviceError, MissingDependencyError


def work(clock, *durations_ns):
    """Return a function that works so long each time, the last duration for ever."""
    remaining = list(durations_ns)

    def function():
        clock.work(remaining.pop(0) if len(remaining) > 1 else remaining[0])
        return "done"

    return function


def test_a_function_alone_gives_few_samples_and_functions_in_turns_more():
    clock = FakeClock()
    alone = measure(work(clock, 5000), key="steady", clock=clock)
    together = measure_in_turns({"a": work(clock, 5000), "b": work(clock, 5000)}, clock=clock)

    assert (alone.outcome, alone.stopped_by, alone.pair) == ("ok", "samples", "")
    assert alone.samples_ns == (5000.0,) * 25
    assert (alone.n_calls, alone.n_warm_up_calls, alone.is_settled) == (1, 10, True)
    assert [len(each.samples_ns) for each in together.values()] == [100, 100]
    assert together["a"].pair == together["b"].pair == together["a"].run


def test_calls_too_short_for_the_clock_are_timed_in_batches():
    clock = FakeClock(shortest_sample_ns=1000)
    timing = measure(work(clock, 3), clock=clock)

    assert timing.n_calls == 256
    assert set(timing.samples_ns) == {3.0}


def test_warm_up_goes_on_until_the_time_settles():
    clock = FakeClock()
    timing = measure(work(clock, *range(50_000, 5000, -1000), 5000), clock=clock)

    assert timing.is_settled
    assert timing.n_warm_up_calls > 45
    assert set(timing.samples_ns) == {5000.0}


def test_what_never_settles_is_measured_all_the_same_and_says_so():
    clock = FakeClock()
    growing = work(clock, *(1000 * 1.02**call for call in range(600)))

    timing = measure(growing, clock=clock, effort=Effort(budget_s=0.001))

    assert not timing.is_settled
    assert timing.samples_ns


def test_functions_in_turns_have_batches_of_one_size():
    clock = FakeClock(shortest_sample_ns=1000)
    timings = measure_in_turns({"a": work(clock, 3), "b": work(clock, 30)}, clock=clock)
    apart = measure_in_turns({"a": work(clock, 3), "b": work(clock, 30_000)}, clock=clock)

    assert [each.n_calls for each in timings.values()] == [256, 256]
    assert [each.n_calls for each in apart.values()] == [256, 1]


@pytest.mark.parametrize(
    ("effort", "reason"),
    [(Effort(budget_s=0.01), "budget"), (Effort(n_samples=60), "samples")],
)
def test_limits_are_kept(effort, reason):
    clock = FakeClock(noise_share=0.1)
    timing = measure(work(clock, 1_000_000), clock=clock, effort=effort)

    assert timing.stopped_by == reason
    assert len(timing.samples_ns) <= 60
    assert clock.now_ns() <= 1.2 * 1e9 * effort.budget_s


def test_in_turns_drift_falls_on_all_alike():
    records = []
    for seed in range(7):
        clock = FakeClock(noise_share=0.01, outlier_share=0.1, drift_share_per_s=0.3, seed=seed)
        timings = measure_in_turns(
            {"old": work(clock, 1e6), "new": work(clock, 1.05e6), "twin": work(clock, 1e6)},
            clock=clock,
        )
        records += [each.to_dict() for each in timings.values()]

    assert "drift" in timings["old"].summarise().warnings[0]
    slower = compare(records, records, base_key="old", new_key="new")
    assert slower.verdict is Verdict.SLOWER
    assert slower.differences[0].change == pytest.approx(0.05, abs=0.005)
    assert compare(records, records, base_key="old", new_key="twin").verdict is Verdict.SAME


class ThrottledClock(FakeClock):
    """A clock that reads throttling during some of the samples."""

    def __init__(self, share):
        super().__init__()
        self.share = share
        self.n_read = 0

    def is_undisturbed(self):
        self.n_read += 1
        return self.n_read % 100 >= self.share * 100


def test_a_turn_with_a_throttled_sample_is_dropped_and_taken_again():
    clock = ThrottledClock(0.1)
    timings = measure_in_turns({"a": work(clock, 5000), "b": work(clock, 5000)}, clock=clock)
    a, b = timings.values()
    assert (len(a.samples_ns), len(b.samples_ns)) == (100, 100)
    assert a.n_dropped == b.n_dropped > 0
    assert not a.is_disturbed


def test_a_run_that_is_throttled_too_often_is_disturbed_and_said(said):
    clock = ThrottledClock(0.9)
    records = [
        measure(work(clock, each), key="k", clock=clock).to_dict()
        for each in [5000] * 4 + [9000] * 4
    ]
    assert all(record["sampling"]["is_disturbed"] for record in records)
    (difference,) = compare(records[:4], records[4:]).differences
    assert difference.verdict is Verdict.INCONCLUSIVE
    said(difference.reason)


def test_a_function_that_raises_has_no_time_and_stops_no_other():
    clock = FakeClock()
    calls = iter(range(30))

    def fails_later():
        clock.work(5000)
        next(calls)

    timings = measure_in_turns(
        {"at once": lambda: 1 // 0, "later": fails_later, "sound": work(clock, 5000)}, clock=clock
    )

    assert [each.outcome for each in timings.values()] == ["raised", "raised", "ok"]
    assert timings["at once"].message.startswith("ZeroDivisionError")
    assert timings["later"].samples_ns == ()
    assert timings["later"].summarise() is None
    assert len(timings["sound"].samples_ns) == 100


@pytest.mark.parametrize(
    ("check", "outcome"),
    [
        (lambda result: result == "done", "ok"),
        (lambda result: None, "ok"),  # noqa: ARG005
        (lambda result: result == "else", "wrong"),
        (lambda result: result.missing, "wrong"),
    ],
)
def test_a_wrong_result_has_no_time(check, outcome):
    clock = FakeClock()

    assert measure(work(clock, 5000), clock=clock, check=check).outcome == outcome


def test_the_result_after_the_last_sample_is_checked_too():
    clock = FakeClock()
    results = []

    def grows():
        clock.work(5000)
        results.append(1)
        return len(results)

    assert measure(grows, clock=clock, check=lambda count: count < 30).outcome == "wrong"


def test_no_time_at_all_is_no_result():
    timing = measure(lambda: None, clock=FakeClock())

    assert (timing.outcome, timing.samples_ns) == ("no_time", ())


def test_a_script_plays_the_same_way_every_time():
    first, second = (
        measure(work(clock, 5000), clock=clock)
        for clock in (FakeClock(noise_share=0.1, seed=4), FakeClock(noise_share=0.1, seed=4))
    )

    assert first.samples_ns == second.samples_ns


def test_the_processor_is_timed():
    numbers = list(range(20_000))
    timing = measure(lambda: sum(numbers), clock=CpuClock(), effort=Effort(budget_s=1))

    assert timing.outcome == "ok"
    assert 1e3 < timing.summarise().median_ns < 1e8
    assert (timing.clock, timing.cache) == ("cpu", None)


def test_a_timing_is_a_record_to_compare(said):
    clock = FakeClock(noise_share=0.01)
    records = [measure(work(clock, 5000), key="k", clock=clock).to_dict()]
    again = json.loads(json.dumps(records))

    (difference,) = compare(records, again).differences
    assert difference.base.n_runs == 1
    said(difference.reason)


@pytest.mark.parametrize(
    ("cache", "duration_ns"), [("cold", 12_000), ("hot", 10_000), ("graph", 10_000)]
)
def test_torch_times_the_device_with_the_caches_as_asked(monkeypatch, cache, duration_ns):
    torch = StrawTorch()
    monkeypatch.setitem(sys.modules, "torch", torch)
    clock = TorchClock(cache)
    monkeypatch.setattr(clock._library, "now_ns", torch.gpu.now_ns)

    assert clock.time_ns(torch.kernel, 40) == pytest.approx(40 * duration_ns, rel=0.03)
    assert (clock.name, clock.device, clock.cache) == ("cuda", "Straw", cache)


def test_hot_and_cold_times_are_never_compared(monkeypatch, said):
    torch = StrawTorch(hip="6.2")
    monkeypatch.setitem(sys.modules, "torch", torch)
    effort = Effort(n_samples=50)
    cold, hot = (
        measure(torch.kernel, key="k", clock=TorchClock(cache), effort=effort).to_dict()
        for cache in ("cold", "hot")
    )

    (difference,) = compare([cold], [hot]).differences

    said(difference.reason)


def test_without_torch_or_a_device_the_clock_says_what_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingDependencyError, match="hint: pip install"):
        TorchClock("hot")

    monkeypatch.setitem(sys.modules, "torch", StrawTorch(n_devices=0))
    with pytest.raises(DeviceError, match="no device"):
        TorchClock("hot")


def test_turns_in_which_the_processor_was_too_hot_are_dropped(tmp_path):
    counter = tmp_path / "package_throttle_count"
    counter.write_text("7\n")
    calls = []

    def heat():
        calls.append(1)
        if len(calls) % 50 == 0:
            counter.write_text(f"{7 + len(calls)}\n")

    clock = CpuClock(shortest_sample_ns=1, thermal=ThermalEvents(str(counter)))
    timing = measure(heat, key="heat", clock=clock, effort=Effort(n_samples=100, budget_s=5))
    assert timing.n_dropped > 0
    assert len(timing.samples_ns) >= 100
    assert not timing.is_disturbed
    calm = measure(lambda: None, key="calm", clock=CpuClock(thermal=ThermalEvents(str(counter))))
    assert calm.n_dropped == 0


def test_how_long_work_waited_for_a_processor_is_on_record(monkeypatch):
    share = measure(lambda: sum(range(100)), key="sum").record().sampling["cpu_pressure"]
    assert share is None or 0 <= share <= 1
    monkeypatch.setattr("longpole.bench.run.sampler._PRESSURE", "/nonexistent")
    assert measure(lambda: None, key="none").cpu_pressure is None


@pytest.fixture
def kernels(tmp_path, monkeypatch):
    """Create a module with functions to time."""
    (tmp_path / "some_kernels.py").write_text(
        "LIMIT = 5\n"
        "def total(n, scale=1): return sum(range(n)) * scale\n"
        "def broken(n): raise ValueError(n)\n"
        "def leaving(n): raise SystemExit(n)\n"
        "def twice(n): return sum(range(n)) + sum(range(n))\n"
        "def dying(): import os; os.kill(os.getpid(), 11)\n"
        "def chatty(): print('{}')\n"
        "def prepared(n):\n"
        "    numbers = list(range(n))\n"
        "    return lambda: sum(numbers)\n"
    )
    (tmp_path / "leaves_at_once.py").write_text("raise SystemExit(0)\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", ["", *sys.path])
    yield "some_kernels"
    sys.modules.pop("some_kernels", None)


def run(*arguments):
    short = ["--budget", "0.05", "--runs", "1"]
    return time_command.main([*short, *arguments], standalone_mode=False)


def test_each_run_is_a_process_of_its_own_and_a_row_says_which(kernels, tmp_path):
    names = [f"{kernels}:total", f"{kernels}:twice"]
    assert run(*names, "--axis", "n=10", "--runs", "3", "-o", "out.jsonl") == 0
    rows = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]

    assert len({row["run"] for row in rows}) == 3
    assert Counter(row["key"] for row in rows) == {f"{name} n=10": 3 for name in names}
    for row in rows:
        assert row["pair"] == row["run"]
        assert row["sampling"]["looks"] == [3]
        assert (row["sampling"]["clock"], row["outcome"]) == ("cpu", "ok")
        assert {"host", "boot", "libraries"} <= row["environment"].keys()
    best = next(iter(best_records(read_results("out.jsonl").records).values()))
    assert best.best.time_ns > 0


def test_a_large_change_is_told_after_seven_runs(kernels, capsys):
    names = [f"{kernels}:total", f"{kernels}:twice"]
    arguments = [*names, "--axis", "n=2000", "--budget", "1", "-o", "out.jsonl", "--json"]
    assert time_command.main(arguments, standalone_mode=False) == 0
    (difference,) = json.loads(capsys.readouterr().out)["data"]["differences"]
    assert (difference["verdict"], difference["design"]) == ("slower", "in turns")
    assert difference["n_runs"] in {7, 14, 28}
    again = compare("out.jsonl", "out.jsonl", base_key=names[0], new_key=names[1])
    assert again.differences[0].interval == pytest.approx(tuple(difference["interval"].values()))


def test_results_files_can_be_joined(kernels):
    arguments = [f"{kernels}:total", "--axis", "n=10", "-o"]
    assert (run(*arguments, "one.jsonl"), run(*arguments, "more.jsonl")) == (0, 0)
    joined = Path("one.jsonl").read_bytes() + Path("more.jsonl").read_bytes()
    Path("all.jsonl").write_bytes(joined)
    assert len(read_results("all.jsonl").records) == 2


def test_a_process_that_dies_is_a_record_and_says_how(kernels, capsys):
    assert run(f"{kernels}:dying", "-o", "out.jsonl") == 1
    (record,) = read_results("out.jsonl").records
    assert (record.outcome, record.samples_ns) == ("signal", ())
    assert "SIGSEGV" in record.message
    assert "SIGSEGV" in capsys.readouterr().out


def test_what_a_function_prints_is_no_row(kernels):
    assert run(f"{kernels}:chatty", "-o", "out.jsonl") == 0
    assert len(read_results("out.jsonl").records) == 1


def test_every_point_of_the_axes_is_timed_and_written(kernels, tmp_path):
    axes = ["--axis", "n=10,20", "--axis", "scale=1,0.5"]

    assert run(f"{kernels}:total", *axes, "-o", "out.jsonl") == 0

    lines = (tmp_path / "out.jsonl").read_text().splitlines()
    assert [json.loads(line)["key"] for line in lines] == [
        f"{kernels}:total n={n} scale={scale}" for n in (10, 20) for scale in (1, 0.5)
    ]
    assert compare("out.jsonl", "out.jsonl").verdict in {Verdict.SAME, Verdict.INCONCLUSIVE}


def test_a_factory_is_not_timed_itself(kernels, capsys):
    assert run(f"{kernels}:prepared", "--factory", "--axis", "n=10", "--json") == 0
    assert json.loads(capsys.readouterr().out)["data"]["functions"][0]["n_runs"] == 1


def test_a_function_that_raises_is_a_finding_and_the_others_go_on(kernels, capsys):
    assert run(f"{kernels}:broken", f"{kernels}:total", "--axis", "n=10") == 1

    broken, total, *_ = filter(None, capsys.readouterr().out.splitlines())
    assert broken == f"{kernels}:broken n=10: ValueError: 10"
    assert total.startswith(f"{kernels}:total n=10: ")


@pytest.mark.parametrize("factory", [[], ["--factory"]])
def test_a_function_that_ends_the_program_has_raised(kernels, capsys, factory):
    assert run(f"{kernels}:leaving", *factory, "--axis", "n=0") == 1
    assert capsys.readouterr().out == f"{kernels}:leaving n=0: SystemExit: 0\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["total"], "not of the form MODULE:FUNC"),
        (["no_such_module:total"], "cannot be found"),
        (["some_kernels:nothing"], "cannot be found"),
        (["some_kernels:LIMIT"], "is not a function"),
        (["leaves_at_once:total"], "cannot be imported: SystemExit: 0"),
        (["some_kernels:total", "--budget", "nan"], "is not a number"),
        (["some_kernels:total", "--budget", "inf"], "is not a number"),
        (["some_kernels:total", "--axis", "n"], "not of the form NAME=VALUE"),
        (["some_kernels:total", "--cache", "hot"], "needs --clock torch"),
    ],
)
@pytest.mark.usefixtures("kernels")
def test_wrong_use_is_named(arguments, message):
    with pytest.raises(Exception, match=message):
        run(*arguments)
