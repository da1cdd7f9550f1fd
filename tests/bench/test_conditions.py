"""What a sampler reads during a run, and what becomes of the samples then."""

import json

import pytest
from fake_gpu import FakeGpu

from longpole.bench import Record, compare
from longpole.bench.records.record import Outcome
from longpole.bench.run import sampler
from longpole.bench.run.conditions import Conditions, Moment, summarise_conditions
from longpole.bench.time import processes
from longpole.bench.time.clocks import FakeClock
from longpole.bench.time.commands import without_disturbed
from longpole.bench.time.gpu_clock import GpuClock
from longpole.bench.time.measure import measure_in_turns

MS = 1_000_000


class StuckDevice:
    """A device whose clock can be locked and not released."""

    def lock(self, mhz):
        pass

    def read(self):
        return [1410, [], 0, 60, 500_000]

    def release(self):
        message = "Insufficient Permissions"
        raise RuntimeError(message)


def line(at_ms, *, clock=1980, reasons="", violations=0, waited=None, thermal=None):
    fields = [clock, [each for each in reasons.split(",") if each], violations, 60, 500_000]
    return json.dumps([at_ms * MS, *fields, waited, thermal]) + "\n"


@pytest.fixture
def read(tmp_path):
    def conditions(*lines):
        path = tmp_path / "readings"
        path.write_text("".join(lines))
        return Conditions(path, 0.001)

    return conditions


def dropped(conditions, *windows_ms, alone=False):
    windows = [(begin * MS, end * MS) for begin, end in windows_ms]
    return conditions.disturbed(windows, heeds_pressure=alone)


WINDOWS = [(1, 9), (11, 19), (21, 29), (31, 39)]


@pytest.mark.parametrize(
    ("bad", "expected"),
    [
        ({"reasons": "hw_thermal_slowdown"}, [False, True, True, False]),
        ({"reasons": "sw_power_cap,hw_power_brake"}, [False, True, True, False]),
        ({"reasons": "socket_thrm"}, [False, True, True, False]),
        ({"clock": 1400}, [False, True, True, False]),
        ({"clock": 1500}, [False] * 4),
        ({"reasons": "sw_power_cap"}, [False] * 4),
        ({"reasons": "ppt_pwr"}, [False] * 4),
    ],
)
def test_a_sample_goes_for_what_was_read_around_it(read, bad, expected):
    found = read(line(0), line(10), line(20, **bad), line(30), line(40))
    assert dropped(found, *WINDOWS) == expected


@pytest.mark.parametrize("counter", ["violations", "thermal"])
def test_a_counter_that_moved_between_two_readings_counts_for_what_lies_there(read, counter):
    counts = [7, 7, 8, 8, 8]
    found = read(*(line(10 * n, **{counter: count}) for n, count in enumerate(counts)))
    assert dropped(found, *WINDOWS) == [False, True, False, False]


def test_a_window_over_several_readings_goes_for_any_of_them(read):
    found = read(line(0), line(10), line(20, reasons="hw_slowdown"), line(30), line(40))
    assert dropped(found, (1, 35), (36, 39)) == [True, False]


def test_without_readings_nothing_is_dropped(read):
    assert dropped(read(), *WINDOWS, alone=True) == [False] * 4
    assert read().summary(0, 10 * MS) == {"n_readings": 0}


def test_a_line_that_was_cut_is_no_reading(read):
    found = read("garbage\n", line(0), line(10)[:12])
    assert dropped(found, (1, 5)) == [False]
    assert [each.at_ns for each in found.moments] == [0]


def pressed(read, bad, n=20):
    """Simulate tasks that wait for a processor in some intervals of 10 ms."""
    waited_us, lines = 0, []
    for number in range(n + 1):
        lines.append(line(10 * number, waited=waited_us))
        waited_us += 9_000 if number in bad else 500
    return read(*lines), [(10 * number + 1, 10 * number + 9) for number in range(n)]


def test_a_function_alone_loses_the_samples_for_which_others_held_the_processor(read):
    found, windows = pressed(read, {3, 12})
    expected = [number in {3, 12} for number in range(20)]
    assert dropped(found, *windows, alone=True) == expected
    assert not any(dropped(found, *windows))  # in turns it is the same for all


def test_a_run_that_was_crowded_as_a_whole_keeps_its_samples_and_says_so(read):
    found, windows = pressed(read, range(0, 20, 2))
    assert not any(dropped(found, *windows, alone=True))
    assert found.summary(0, 200 * MS)["cpu_pressure"] == pytest.approx(0.475)
    assert found.summary(0, 200 * MS)["cpu_pressure_max"] == pytest.approx(0.9)


def test_throttled_turns_are_replaced_by_others(read):
    """The device slows down from 60 to 80 ms, and the sampler reads that every 5 ms."""
    gpu = FakeGpu()
    is_slow = lambda at_ns: 60 * MS <= at_ns < 80 * MS  # noqa: E731
    gpu.slowdown = lambda: 1.5 if is_slow(gpu.host_ns) else 1.0
    reasons = ("hw_thermal_slowdown" if is_slow(at * MS) else "" for at in range(0, 1000, 5))
    conditions = read(*(line(5 * n, reasons=each) for n, each in enumerate(reasons)))
    functions = {"a": lambda: gpu.kernel(5_000), "b": lambda: gpu.kernel(10_000)}
    found = measure_in_turns(functions, clock=GpuClock(gpu, "hot"), conditions=conditions)
    for key, true_ns in (("a", 5_000), ("b", 10_000)):
        assert len(found[key].samples_ns) >= 100
        assert all(each == pytest.approx(true_ns, rel=0.03) for each in found[key].samples_ns)
        assert found[key].n_dropped > 0
        assert not found[key].is_disturbed
    during = found["a"].record().sampling["during"]
    assert during["throttle_reasons"] == ["hw_thermal_slowdown"]
    assert found["a"].record().sampling["clock_mhz"] == 1980


def test_a_run_that_is_throttled_throughout_is_disturbed(read):
    gpu = FakeGpu()
    slow = (line(5 * n, reasons="hw_slowdown") for n in range(2000))
    functions = {"a": lambda: gpu.kernel(5_000)}
    found = measure_in_turns(functions, clock=GpuClock(gpu, "hot"), conditions=read(*slow))["a"]
    assert found.is_disturbed
    assert found.samples_ns == ()


def test_turns_of_commands_are_dropped_for_all_of_them(read):
    conditions = read(line(0), line(10), line(20, reasons="hw_slowdown"), line(30), line(40))
    windows = [(1 * MS, 4 * MS), (12 * MS, 14 * MS), (31 * MS, 33 * MS)]
    later = [(begin + 4 * MS, end + 4 * MS) for begin, end in windows]
    rows = [
        {"name": "a", "samples_ns": [1, 2, 3], "windows": windows},
        {"name": "b", "samples_ns": [4, 5, 6], "windows": later},
        {"name": "failed", "samples_ns": [], "windows": []},
    ]
    a, b, failed = without_disturbed(rows, conditions)
    assert (a["samples_ns"], b["samples_ns"], failed["samples_ns"]) == ([1, 3], [4, 6], [])
    assert a["n_dropped"] == 1


def record(run, *, is_disturbed=False, **sampling):
    values = {"is_disturbed": is_disturbed, "clock": "fake", "cache": None, **sampling}
    samples = (500.0,) if is_disturbed else (100.0 + run % 3,)
    return Record(
        f"k run {run}", "k", Outcome.OK, run=str(run), samples_ns=samples, sampling=values
    )


def test_a_disturbed_run_is_made_again_and_counts_for_nothing(monkeypatch, said):
    made = []

    def run(_campaign, _place, _point, number):
        made.append(number)
        yield record(len(made), is_disturbed=len(made) in {2, 3})

    monkeypatch.setattr(processes, "_run", run)
    campaign = processes.Campaign(names=["m:f"], n_processes=7)
    found = list(processes.time_in_processes(campaign))
    assert made == ["0", "1", "1.1", "1.2", "2", "3", "4", "5", "6"]
    assert [each.sampling.get("is_repeated", False) for each in found].count(True) == 2
    rows = [each.to_dict() for each in found]
    (difference,) = compare(rows, rows).differences
    assert difference.base.n_runs == 7
    assert difference.base.median_ns < 110
    said.within(difference.warnings)


def test_a_run_that_stays_disturbed_is_kept_after_the_third_time(monkeypatch):
    def run(_campaign, _place, _point, number):
        yield record(int(number.partition(".")[0]), is_disturbed=True)

    monkeypatch.setattr(processes, "_run", run)
    found = list(processes.time_in_processes(processes.Campaign(names=["m:f"], n_processes=1)))
    assert [each.sampling.get("is_repeated", False) for each in found] == [True, True, False]


def test_sides_at_different_clocks_are_not_compared_and_told_in_cycles(said):
    base = [record(run, clock_mhz=1980).to_dict() for run in range(8)]
    new = [
        {**record(run, clock_mhz=1320).to_dict(), "samples_ns": [153 + 1.53 * (run % 3)]}
        for run in range(8)
    ]
    (difference,) = compare(base, new).differences
    assert difference.verdict == "inconclusive"
    said(difference.reason)


def test_a_function_is_timed_with_readings_of_the_machine(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    campaign = processes.Campaign(names=["math:pi.hex"], n_processes=1, budget_s=1)
    (found,) = processes.time_in_processes(campaign)
    assert found.outcome == "ok"
    assert found.sampling["during"]["n_readings"] >= 1


def test_a_summary_leaves_out_what_was_never_read():
    assert summarise_conditions([Moment(0), Moment(10)]) == {
        "n_readings": 2,
        "throttled_share": 0.0,
    }


def test_functions_in_virtual_time_need_no_readings():
    clock = FakeClock()
    found = measure_in_turns({"a": lambda: clock.work(500)}, clock=clock)["a"]
    assert found.record().sampling["during"] == {}


@pytest.mark.parametrize("device", [StuckDevice(), None], ids=["the library refuses", "no library"])
def test_a_clock_that_stays_locked_is_not_kept_quiet(device, tmp_path, monkeypatch, capsys, said):
    path = tmp_path / "readings"
    path.touch()
    wanted = {"path": str(path), "interval_s": 0.01, "vendor": "nvidia", "uuid": "GPU-7", "pci": ""}
    text = json.dumps({**wanted, "binding": None, "reasons": {}, "lock_mhz": 1410})
    monkeypatch.setattr(sampler, "_device", lambda _: StuckDevice())
    reading = sampler.Sampler(text)
    reading._device = device
    reading.close()
    sentence = capsys.readouterr().err
    said.within(sentence)
    assert "nvidia-smi --reset-gpu-clocks" in sentence
    monkeypatch.setattr(sampler, "_device", lambda _: device)
    sampler.release_clock(text)
    assert capsys.readouterr().err == sentence
