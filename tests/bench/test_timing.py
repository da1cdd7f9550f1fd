"""Timing functions: on a clock that plays a script, on this processor, on a torch of straw."""

import json
import sys
from itertools import cycle
from types import SimpleNamespace

import pytest

from longpole.bench import CpuClock, Effort, FakeClock, TorchClock, Verdict, compare
from longpole.bench.time.timing import measure, measure_in_turns
from longpole.cli.bench.time import time as time_command
from longpole.errors import DeviceError, MissingDependencyError


def work(clock, *durations_ns):
    """Give a function that works so long each time, the last duration for ever."""
    remaining = list(durations_ns)

    def function():
        clock.work(remaining.pop(0) if len(remaining) > 1 else remaining[0])
        return "done"

    return function


def test_a_steady_function_is_measured_with_the_fewest_samples():
    clock = FakeClock()
    timing = measure(work(clock, 5000), key="steady", clock=clock)

    assert (timing.outcome, timing.stopped_by) == ("ok", "precision")
    assert timing.samples_ns == (5000.0,) * 50
    assert (timing.n_calls, timing.n_warm_up_calls, timing.is_settled) == (1, 10, True)


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
    assert timing.stopped_by == "budget"


def test_more_noise_takes_more_samples_and_reaches_the_same_precision():
    few, many = (
        measure(work(clock, 50_000), clock=clock)
        for clock in (FakeClock(noise_share=0.005), FakeClock(noise_share=0.05))
    )

    assert len(few.samples_ns) < len(many.samples_ns)
    assert few.stopped_by == many.stopped_by == "precision"
    assert many.summarise().precision <= 0.005


def test_noise_that_samples_do_not_cure_ends_on_its_plateau():
    clock = FakeClock(noise_share=0.001)
    durations_ns = cycle([50_000, 70_000])

    timing = measure(lambda: clock.work(next(durations_ns)), clock=clock)

    assert timing.stopped_by == "plateau"
    assert len(timing.samples_ns) < 300
    assert "two speeds" in timing.summarise().warnings[0]


@pytest.mark.parametrize(
    ("effort", "reason"),
    [(Effort(budget_s=0.01), "budget"), (Effort(max_samples=60, precision=0), "samples")],
)
def test_limits_are_kept(effort, reason):
    clock = FakeClock(noise_share=0.1)
    timing = measure(work(clock, 1_000_000), clock=clock, effort=effort)

    assert timing.stopped_by == reason
    assert len(timing.samples_ns) <= 60
    assert clock.now_ns() <= 1.2 * 1e9 * effort.budget_s


def test_in_turns_drift_falls_on_all_alike():
    clock = FakeClock(noise_share=0.01, outlier_share=0.1, drift_share_per_s=0.3)
    effort = Effort(precision=0.002)
    timings = measure_in_turns(
        {"old": work(clock, 1e6), "new": work(clock, 1.05e6), "twin": work(clock, 1e6)},
        clock=clock,
        effort=effort,
    )
    old, new, twin = (timings[key].samples_ns for key in ("old", "new", "twin"))

    assert "drift" in timings["old"].summarise().warnings[0]
    assert compare({"k": old}, {"k": new}).verdict is Verdict.SLOWER
    assert compare({"k": old}, {"k": twin}).verdict is Verdict.SAME
    assert len(old) == len(new) == len(twin)


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
    assert len(timings["sound"].samples_ns) == 50


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

    assert measure(grows, clock=clock, check=lambda count: count < 40).outcome == "wrong"


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


def test_a_timing_is_a_record_to_compare():
    clock = FakeClock(noise_share=0.01)
    records = [measure(work(clock, 5000), key="k", clock=clock).to_dict()]
    again = json.loads(json.dumps(records))

    assert compare(records, again).verdict is Verdict.SAME


class StrawTorch:
    """As much of torch as the clock asks for; a kernel takes 10 us, 12 us with cold caches."""

    def __init__(self, *, hip=None, n_devices=1):
        self.log = []
        self.now_ms = 0.0
        self.is_cold = False
        self.version = SimpleNamespace(hip=hip)
        self.int8 = "int8"
        self.cuda = SimpleNamespace(
            is_available=lambda: n_devices > 0,
            current_device=lambda: 0,
            get_device_properties=lambda _: SimpleNamespace(name="Straw", L2_cache_size=50 << 20),
            synchronize=lambda: self.log.append("synchronize"),
            Event=lambda enable_timing: StrawEvent(self, enable_timing),
        )

    def empty(self, n_bytes, *, dtype, device):
        assert (n_bytes, dtype, device) == (256 << 20, "int8", "cuda")
        return SimpleNamespace(zero_=self.flush)

    def flush(self):
        self.log.append("flush")
        self.now_ms += 0.1
        self.is_cold = True

    def kernel(self):
        self.log.append("kernel")
        self.now_ms += 0.012 if self.is_cold else 0.010
        self.is_cold = False


class StrawEvent:
    def __init__(self, torch, enable_timing):
        assert enable_timing
        self.torch = torch

    def record(self):
        self.torch.log.append("event")
        self.at_ms = self.torch.now_ms

    def elapsed_time(self, end):
        return end.at_ms - self.at_ms


@pytest.mark.parametrize(
    ("cache", "duration_ns", "log"),
    [
        ("cold", 24_000, ["flush", "event", "kernel", "event"] * 2 + ["synchronize"]),
        (
            "hot",
            20_000,
            ["flush", "kernel", "event", "kernel", "kernel", "event", "synchronize"],
        ),
    ],
)
def test_events_time_the_device_with_the_caches_as_asked(monkeypatch, cache, duration_ns, log):
    torch = StrawTorch()
    monkeypatch.setitem(sys.modules, "torch", torch)
    clock = TorchClock(cache)

    assert clock.time_ns(torch.kernel, 2) == pytest.approx(duration_ns)
    assert torch.log == log
    assert (clock.name, clock.device, clock.cache) == ("cuda", "Straw", cache)


def test_hot_and_cold_times_are_never_compared(monkeypatch):
    torch = StrawTorch(hip="6.2")
    monkeypatch.setitem(sys.modules, "torch", torch)
    effort = Effort(max_samples=50)
    cold, hot = (
        measure(torch.kernel, key="k", clock=TorchClock(cache), effort=effort).to_dict()
        for cache in ("cold", "hot")
    )

    (difference,) = compare([cold], [hot]).differences

    assert difference.reason == (
        "measured in different ways: hip clock, cold cache in base, hip clock, hot cache in new"
    )


def test_without_torch_or_a_device_the_clock_says_what_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingDependencyError, match="hint: pip install"):
        TorchClock("hot")

    monkeypatch.setitem(sys.modules, "torch", StrawTorch(n_devices=0))
    with pytest.raises(DeviceError, match="no device"):
        TorchClock("hot")


@pytest.fixture
def kernels(tmp_path, monkeypatch):
    """Stand beside a module with functions to time."""
    (tmp_path / "some_kernels.py").write_text(
        "LIMIT = 5\n"
        "def total(n, scale=1): return sum(range(n)) * scale\n"
        "def broken(n): raise ValueError(n)\n"
        "def leaving(n): raise SystemExit(n)\n"
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
    return time_command.main(["--budget-s", "0.05", *arguments], standalone_mode=False)


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
    assert json.loads(capsys.readouterr().out)["data"]["outcome"] == "ok"


def test_a_function_that_raises_is_a_finding_and_the_others_go_on(kernels, capsys):
    assert run(f"{kernels}:broken", f"{kernels}:total", "--axis", "n=10") == 1

    broken, _, total, *_ = capsys.readouterr().out.splitlines()
    assert broken == f"{kernels}:broken n=10: ValueError: 10 (raised)"
    assert total.startswith(f"{kernels}:total n=10: ")


@pytest.mark.parametrize("factory", [[], ["--factory"]])
def test_a_function_that_ends_the_program_has_raised(kernels, capsys, factory):
    assert run(f"{kernels}:leaving", *factory, "--axis", "n=0") == 1
    assert capsys.readouterr().out == f"{kernels}:leaving n=0: SystemExit: 0 (raised)\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["total"], "not of the form MODULE:FUNC"),
        (["no_such_module:total"], "cannot be found"),
        (["some_kernels:nothing"], "cannot be found"),
        (["some_kernels:LIMIT"], "is no function"),
        (["leaves_at_once:total"], "cannot be imported: SystemExit: 0"),
        (["some_kernels:total", "--budget-s", "nan"], "no number of seconds"),
        (["some_kernels:total", "--budget-s", "inf"], "no number of seconds"),
        (["some_kernels:total", "--axis", "n"], "not of the form NAME=VALUE"),
        (["some_kernels:total", "--cache", "hot"], "needs --clock torch"),
        (["some_kernels:total", "--clock", "torch"], "needs --cache"),
    ],
)
@pytest.mark.usefixtures("kernels")
def test_wrong_use_is_named(arguments, message):
    with pytest.raises(Exception, match=message):
        run(*arguments)


def test_an_output_is_not_written_over_unless_told(kernels, tmp_path):
    (tmp_path / "out.jsonl").write_text("mine")
    arguments = [f"{kernels}:total", "--axis", "n=10", "-o", "out.jsonl"]

    for force in ([], ["-f"]):
        with pytest.raises(Exception, match="holds no record"):
            run(*arguments, *force)
        assert (tmp_path / "out.jsonl").read_text() == "mine"
