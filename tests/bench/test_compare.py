"""Verdicts: what they rest on, how often they hold, and what the command makes of them.

One file: the cases share their made-up records.
"""

import json
from collections import Counter
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from longpole.bench import Difference, FakeClock, Verdict, compare, measure, save_baseline
from longpole.bench.records.samples import gather
from longpole.cli.answer.problems import Problem
from longpole.cli.bench.compare import compare as compare_command
from longpole.errors import ResultsError
from longpole.rows.statistics import Interval

STEADY = [100, 101, 99, 100, 102, 98, 101, 100]
SLOWER = [1.06 * each for each in STEADY]
MUCH_SLOWER = [1.2 * each for each in STEADY]


# One number for each run, as `compare` takes it: no change is called one in few comparisons,
# whatever the noise between runs looks like. `benches/bench_compare.py` prints the whole table.


def log_noise(shape, generator, size):
    match shape:
        case "normal":
            return generator.normal(0, 0.01, size)
        case "heavy tails":
            return 0.01 * generator.standard_t(3, size)
        case "two speeds":
            return generator.normal(0, 0.003, size) + 0.05 * (generator.random(size) < 0.4)
        case "wild runs":
            wild = np.where(generator.random(size) < 0.15, generator.exponential(0.3, size), 0)
            return generator.normal(0, 0.01, size) + wild
        case _:
            raise ValueError(shape)


SHAPES = ["normal", "heavy tails", "two speeds", "wild runs"]


def runs(logs, *, start=0.0, step=2.0, **fields):
    """Return a record for each run, begun one after the other."""
    epoch = datetime(2026, 1, 1, tzinfo=UTC)
    return [
        {
            "key": "k",
            "outcome": "ok",
            "samples_ns": [1e6 * float(np.exp(each))],
            "started_at": (epoch + timedelta(seconds=start + step * number)).isoformat(),
            **fields,
        }
        for number, each in enumerate(logs)
    ]


@pytest.mark.parametrize("shape", SHAPES)
def test_no_change_is_seldom_called_one(shape):
    generator = np.random.default_rng(7)
    found = Counter()
    for _ in range(400):
        base, new = (log_noise(shape, generator, 10) for _ in range(2))
        found[compare(runs(base), runs(new, start=1.0), gate=0.0).verdict] += 1
    assert found[Verdict.SAME] == 0
    assert found[Verdict.SLOWER] + found[Verdict.FASTER] <= 0.05 * 400 + 3 * np.sqrt(400 * 0.0475)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_change_beyond_the_gate_is_found_and_never_in_the_wrong_direction(shape):
    generator = np.random.default_rng(8)
    found = Counter()
    for _ in range(200):
        base, new = (log_noise(shape, generator, 28) for _ in range(2))
        slower = runs(new + np.log(1.1), start=1.0)
        found[compare(runs(base), slower, gate=0.03).verdict] += 1
    assert found[Verdict.FASTER] == 0
    assert found[Verdict.SLOWER] >= 190


def in_turns(numbers, sides, *, looks=(7, 14, 28)):
    """Return the records of runs in which two sides took turns, with these log changes."""
    records = []
    for number, change in enumerate(numbers):
        for side, factor in zip(sides, (1.0, np.exp(change)), strict=True):
            records += runs(
                [0.3 * (number % 3)],
                key=side,
                run=f"r{number}",
                pair=f"r{number}",
                samples_ns=[1e6 * (1 + number % 3) * each * factor for each in (1, 1.2, 0.9)],
                sampling={"looks": list(looks), "clock": "cpu"},
            )
    return records


def test_turns_cancel_what_the_whole_run_has_in_common():
    records = in_turns([0.029, 0.03, 0.031, 0.03, 0.028, 0.03, 0.032], ("old", "new"))
    (difference,) = compare(records, records, 0.01, base_key="old", new_key="new").differences
    assert (difference.verdict, difference.design) == (Verdict.SLOWER, "in turns")
    assert difference.base.spread > 0.3
    assert difference.interval == pytest.approx((np.exp(0.028) - 1, np.exp(0.032) - 1))
    assert difference.p_value == 0.015625


def test_medians_that_differ_more_than_neighbouring_calls_are_explained():
    records = in_turns([0.03] * 7, ("old", "new"))
    (difference,) = compare(records, records, base_key="old", new_key="new").differences
    assert not any("the medians differ" in warning for warning in difference.warnings)
    for record in records:
        slowed = (1, 1, 2) if record["key"] == "old" else (1.03, 2.06, 2.06)
        record["samples_ns"] = [1e6 * each for each in slowed]
    (difference,) = compare(records, records, base_key="old", new_key="new").differences
    assert difference.change == pytest.approx(0.03)
    assert any("the medians differ by +106.0 %" in each for each in difference.warnings)


def test_one_wild_run_of_seven_takes_the_certainty_but_not_of_fourteen():
    changes = [0.03, 0.031, 0.029, 0.03, 0.032, 0.028]
    seven = in_turns([*changes, -0.5], ("old", "new"))
    fourteen = in_turns([*changes, *changes, 0.03, -0.5], ("old", "new"))
    for records, verdict in ((seven, Verdict.INCONCLUSIVE), (fourteen, Verdict.SLOWER)):
        found = compare(records, records, 0.01, base_key="old", new_key="new")
        assert found.verdict is verdict


def test_one_run_a_side_is_inconclusive_however_many_samples_it_has(said):
    records = in_turns([0.2], ("old", "new"))
    for record in records:
        record["samples_ns"] = record["samples_ns"] * 40
    (difference,) = compare(records, records, base_key="old", new_key="new").differences
    assert difference.verdict is Verdict.INCONCLUSIVE
    said.within(difference.reason)
    said.within(difference.reason)


def test_sides_apart_need_a_change_beyond_the_gate_and_alternating_ones_do_not():
    base = [0.001 * number for number in range(-5, 5)]
    new = [each + 0.021 for each in base]
    alternating = compare(runs(base), runs(new, start=1.0), gate=0.02).differences[0]
    apart = compare(runs(base), runs(new, start=1000.0), gate=0.02).differences[0]
    assert (alternating.verdict, alternating.is_interleaved) == (Verdict.SLOWER, True)
    assert (apart.verdict, apart.is_interleaved) == (Verdict.INCONCLUSIVE, False)
    assert "measured apart" in apart.reason
    far = compare(runs(base), runs([each + 0.05 for each in base], start=1000.0), gate=0.02)
    assert far.verdict is Verdict.SLOWER


def test_runs_of_two_machines_are_apart():
    base, new = ([0.0, 0.001] * 5, [0.025, 0.026] * 5)
    elsewhere = {"environment": {"host": "b"}}
    found = compare(
        runs(base, environment={"host": "a"}), runs(new, start=1.0, **elsewhere), gate=0.02
    )
    assert not found.differences[0].is_interleaved
    assert found.warnings == ("host differs: a in base, b in new",)


def test_an_inconclusive_verdict_says_what_would_tell():
    generator = np.random.default_rng(3)
    base, new = (generator.normal(0, 0.05, 10) for _ in range(2))
    (difference,) = compare(runs(base), runs(new, start=1.0)).differences
    assert difference.verdict is Verdict.INCONCLUSIVE
    assert 0.03 < difference.smallest_change < 0.15
    assert difference.runs_needed > 10
    assert f"about {difference.runs_needed} runs of each side would detect 3 %" in difference.reason


def test_a_run_that_stands_there_twice_counts_once():
    records = in_turns([0.03] * 4, ("old", "new"))
    twice = [*records, *records]
    (difference,) = compare(twice, twice, base_key="old", new_key="new").differences
    assert (difference.n_runs, difference.verdict) == (4, Verdict.INCONCLUSIVE)


def test_equal_ticks_are_not_equal_times():
    results = [{"name": "k", "time_ns": 1e6, "original": {"time": "1.0", "unit": "ms"}}]
    records = runs([0.0] * 8, samples_ns=[], results=results)
    (difference,) = compare(records, records, gate=0.03).differences
    assert difference.interval.high == pytest.approx(np.exp(0.1) - 1)
    assert difference.verdict is Verdict.INCONCLUSIVE


@pytest.mark.parametrize(
    ("base", "new", "reason"),
    [
        ({"n_dropped": 0}, {"n_dropped": 1}, "throttled unevenly: 0% of the samples dropped"),
        ({"clock_mhz": 1980}, {"clock_mhz": 1700}, "the device ran at 1980 MHz in base and 1700"),
        ({}, {"is_disturbed": True}, "10 of 10 runs in new were disturbed"),
    ],
)
def test_conditions_that_differ_make_the_verdict_abstain(base, new, reason):
    sides = [runs([0.0] * 10, sampling=base), runs([0.1] * 10, start=1.0, sampling=new)]
    (difference,) = compare(*sides).differences
    assert difference.verdict is Verdict.INCONCLUSIVE
    assert difference.reason.startswith(reason)


def test_points_of_axes_are_paired():
    records = [
        *runs([0.0] * 10, key="m:old n=1"),
        *runs([0.0] * 10, key="m:old n=2"),
        *runs([0.1] * 10, key="m:new n=2", start=1.0),
        *runs([0.0] * 10, key="m:older n=2"),
    ]
    (difference,) = compare(records, records, base_key="m:old", new_key="m:new").differences
    assert (difference.key, difference.verdict) == ("m:old n=2", Verdict.SLOWER)
    assert difference.new_key == "m:new n=2"


def test_of_many_keys_that_did_not_change_hardly_any_is_called_different():
    generator = np.random.default_rng(5)
    base = {f"k{row}": generator.lognormal(10, 0.1, 20) for row in range(300)}
    new = {key: generator.lognormal(10, 0.1, 20) for key in base}

    found = Counter(each.verdict for each in compare(base, new).differences)

    assert found[Verdict.SLOWER] + found[Verdict.FASTER] == 0


@pytest.mark.parametrize(
    ("new", "gate", "verdict"),
    [
        (SLOWER, 0.03, Verdict.SLOWER),
        (SLOWER, 0.1, Verdict.SAME),
        ([0.9 * each for each in STEADY], 0.03, Verdict.FASTER),
        (list(reversed(STEADY)), 0.03, Verdict.SAME),
        ([70, 130] * 4, 0.03, Verdict.INCONCLUSIVE),
        (STEADY[:3], 0.03, Verdict.INCONCLUSIVE),
    ],
)
def test_a_verdict_needs_certainty_and_a_change_that_matters(new, gate, verdict):
    (difference,) = compare({"k": STEADY}, {"k": new}, gate).differences

    assert difference.verdict is verdict


def test_the_gravest_verdict_stands_for_all():
    base = {"a": STEADY, "b": STEADY, "c": STEADY}
    assert compare(base, {**base, "b": MUCH_SLOWER}).verdict is Verdict.SLOWER

    assert compare(base, {**base, "b": MUCH_SLOWER, "c": [1]}).verdict is Verdict.SLOWER
    assert compare(base, {**base, "c": [1]}).verdict is Verdict.INCONCLUSIVE
    assert compare({}, base).verdict is Verdict.INCONCLUSIVE


def record(**fields):
    return {"key": "k", "outcome": "ok", "samples_ns": [100], **fields}


def records(**fields):
    return [record(samples_ns=[each], **fields) for each in STEADY]


@pytest.mark.parametrize(
    ("new", "reason"),
    [
        ([], "no run in new succeeded"),
        ([record(outcome="timeout")], "no run in new succeeded (1 failed)"),
        (
            [record(samples_ns=[0, -1, float("nan"), float("inf"), True, None])],
            "no run in new succeeded (6 without a usable duration)",
        ),
        ([record()] * 3, "too few runs: 8 in base, 3 in new, 4 are needed"),
        (
            records(sampling={"clock": "cuda", "cache": "cold"}),
            "measured in different ways: no clock named in base, cuda clock, cold cache in new",
        ),
    ],
)
def test_what_cannot_be_compared_says_why(new, reason):
    (difference,) = compare(records(), new).differences

    assert (difference.verdict, difference.reason) == (Verdict.INCONCLUSIVE, reason)


def test_a_failed_run_never_counts_and_is_said(said):
    new = [*records(), record(outcome="signal", samples_ns=[1] * 100)]

    (difference,) = compare(records(), new).differences

    assert difference.new.median_ns == pytest.approx(100)
    said.within(difference.warnings)


def test_results_of_a_job_are_samples_by_their_names():
    results = [{"name": "tile64", "time_ns": 5.0}, {"name": "tile128", "time_ns": 4.0}]
    found = gather([{"key": "gemm", "outcome": "ok", "results": results, "seconds": 9.0}]).runs

    times_ns = {key: np.exp(each.log_times).round(9).tolist() for key, each in found.items()}
    assert times_ns == {"gemm tile64": [5.0], "gemm tile128": [4.0]}


def test_repeats_in_one_job_are_one_run():
    results = [{"name": "gemm", "time_ns": each} for each in (5.0, 9.0, 4.0)]
    found = gather([{"key": "gemm", "outcome": "ok", "results": results}]).runs["gemm"]
    assert np.exp(found.log_times) == pytest.approx([5.0])


def test_a_job_without_results_is_timed_as_a_whole():
    found = gather([{"key": "make", "outcome": "ok", "seconds": 0.5}]).runs["make"]
    assert np.exp(found.log_times) == pytest.approx([5e8])


def test_another_environment_and_keys_of_one_side_are_said():
    base = [record(device="GPU-1", environment={"libraries": {"torch": "2.9"}}), record(key="old")]
    new = [record(device="GPU-2", environment={"libraries": {"torch": "2.10"}}), record(key="x")]

    comparison = compare(base, new)

    assert comparison.warnings == (
        "only in new, so not compared: x",
        "device differs: GPU-1 in base, GPU-2 in new",
        "libraries.torch differs: 2.9 in base, 2.10 in new",
    )
    assert [each.key for each in comparison.differences] == ["k", "old"]


@pytest.fixture
def written(tmp_path, monkeypatch):
    """Write results, and stand where baselines are kept."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("LONGPOLE_BASELINES", raising=False)

    def write(name, samples_ns):
        rows = [json.dumps(record(samples_ns=[each])) + "\n" for each in samples_ns]
        (tmp_path / name).write_text("".join(rows))
        return name

    return write


def run(command, *arguments):
    """Run a command, and answer what it raises, as the program does."""
    try:
        return command.main(list(arguments), standalone_mode=False)
    except Exception as error:  # noqa: BLE001
        problem = Problem.of(error)
        problem.show()
        return problem.exit_code


def test_the_exit_code_says_the_verdict(written):
    base = written("base.jsonl", STEADY)
    slower = written("slower.jsonl", SLOWER)
    few = written("few.jsonl", STEADY[:3])

    assert run(compare_command, base, base) == 0
    assert run(compare_command, base, slower) == 1
    assert run(compare_command, slower, base) == 0
    assert run(compare_command, base, slower, "--gate", "12%") == 0
    assert run(compare_command, base, few) == 4
    assert run(compare_command, few, few) == 4
    assert run(compare_command, base, "nowhere") == 3


def test_a_half_written_last_line_costs_only_itself(written, tmp_path, capsys, said):
    base = written("base.jsonl", STEADY)
    with (tmp_path / "base.jsonl").open("a") as file:
        file.write('{"key": "k", "samples_')

    assert run(compare_command, base, written("new.jsonl", STEADY[::-1])) == 0
    said.within(capsys.readouterr().out)


def test_a_file_without_records_is_unreadable(written, tmp_path, capsys, said):
    base = written("base.jsonl", STEADY)
    (tmp_path / "text").write_text("hello\n")

    assert run(compare_command, base, "text") == 3
    said(capsys.readouterr().err)


def test_text_is_a_table_with_what_is_open_below(written, capsys):
    assert run(compare_command, written("base.jsonl", STEADY), written("few.jsonl", [100])) == 4

    assert capsys.readouterr().out.splitlines() == [
        "base.jsonl to few.jsonl: 1 inconclusive (gate 3.0 %, confidence 95.0 %)",
        "",
        "  verdict       key  change  interval    base     new  runs  measured",
        "  inconclusive  k         -         -  100 ns  100 ns     1  apart",
        "",
        "  k: too few runs: 8 in base, 1 in new, 4 are needed",
    ]


def test_json_holds_all_that_is_known(written, capsys):
    base, new = written("base.jsonl", STEADY), written("new.jsonl", SLOWER)

    assert run(compare_command, base, new, "--json") == 1
    envelope = json.loads(capsys.readouterr().out)

    assert (envelope["schema"], envelope["status"]) == ("longpole.bench.compare/1", "ok")
    assert envelope["inputs"] == [{"base": "base.jsonl", "new": "new.jsonl"}]
    assert envelope["data"]["verdict"] == "slower"
    (row,) = envelope["data"]["differences"]
    assert (row["verdict"], round(row["base"]["median_ns"])) == ("slower", 100)
    assert row["interval"]["low"] > 0.03


def test_a_key_can_break_neither_terminal_nor_table(tmp_path, capsys):
    path = tmp_path / "odd.jsonl"
    path.write_text(json.dumps(record(key="a|b\x1b[31m<i>")) + "\n")

    for form in ("text", "md", "csv"):
        run(compare_command, str(path), str(path), "--format", form)
        written = capsys.readouterr().out
        assert "\x1b" not in written
        assert form != "md" or r"a\|b\\x1b\[31m&lt;i>" in written


def test_a_baseline_is_found_by_its_name_and_kept_until_told(written, tmp_path):
    base, new = written("base.jsonl", STEADY), written("new.jsonl", SLOWER)

    assert run(compare_command, base, base, "--save", "main") == 0
    assert run(compare_command, "main", new) == 1
    assert run(compare_command, base, base, "--save", "main") == 2
    with pytest.raises(FileExistsError):
        save_baseline("main", new)
    assert run(compare_command, "main", base) == 0
    assert run(compare_command, base, new, "--save", "main", "--force") == 1
    assert run(compare_command, "main", new) == 0
    assert [each.name for each in (tmp_path / ".longpole/baselines").iterdir()] == ["main.jsonl"]


@pytest.mark.parametrize("name", ["../main", "", ".hidden", "a/b", "x" * 101])
def test_a_baseline_cannot_be_named_out_of_its_folder(written, name):
    with pytest.raises(ValueError, match="not a valid baseline name"):
        save_baseline(name, written("base.jsonl", STEADY))


def test_a_run_without_success_is_no_baseline(tmp_path, monkeypatch):
    monkeypatch.setenv("LONGPOLE_BASELINES", str(tmp_path))
    path = tmp_path / "failed.jsonl"
    path.write_text(json.dumps(record(outcome="timeout")) + "\n")

    with pytest.raises(ResultsError, match="no run in"):
        save_baseline("main", path)


def crowded(key, times_ns, pressure, day):
    """Return runs that were measured while others waited for the processors."""
    return [
        {
            "key": key,
            "outcome": "ok",
            "samples_ns": [time_ns],
            "started_at": f"2026-01-{day:02d}T00:{number:02d}:00+00:00",
            "sampling": {"clock": "cpu", "cpu_pressure": pressure},
        }
        for number, time_ns in enumerate(times_ns)
    ]


def test_sides_apart_on_a_crowded_machine_are_not_compared(said):
    base = crowded("gemm", range(1000, 1010), 0.0, day=1)
    slower = range(1200, 1210)
    assert compare(base, crowded("gemm", slower, 0.1, day=2)).verdict == Verdict.SLOWER
    assert compare(base, crowded("gemm", slower, None, day=2)).verdict == Verdict.SLOWER
    [difference] = compare(base, crowded("gemm", slower, 0.5, day=2)).differences
    assert difference.verdict == Verdict.INCONCLUSIVE
    said.within(difference.reason)


def test_sides_that_alternate_are_compared_on_a_crowded_machine():
    base = crowded("gemm", range(1000, 1010), 0.9, day=1)
    assert compare(base, crowded("gemm", range(1200, 1210), 0.9, day=1)).verdict == Verdict.SLOWER


def sessions(offsets, *, hours=5, start=0.0, time_ns=100.0):
    """Seven runs a session, close to one another; sessions lie some percent apart."""
    return [
        {
            "key": "k",
            "outcome": "ok",
            "run": f"{start}-{session}-{run}",
            "samples_ns": [time_ns * (1 + offset) * (1 + 0.001 * (run % 3))],
            "started_at": datetime.fromtimestamp(
                1e9 + start + 3600 * hours * session + 10 * run, UTC
            ).isoformat(),
        }
        for session, offset in enumerate(offsets)
        for run in range(7)
    ]


def test_runs_of_several_sessions_count_as_one_number_a_session(said):
    """Sessions differ by more than what is looked for: 28 runs a side do not make it certain."""
    base = sessions([0.00, 0.06, -0.05, 0.03])
    new = sessions([0.07, 0.01, 0.09, 0.02], start=7200.0)
    (difference,) = compare(base, new, 0.0).differences
    assert difference.verdict == "inconclusive"
    assert difference.n_runs == 4
    said.within(difference.warnings)
    slower = sessions([0.20, 0.26, 0.15, 0.23], start=7200.0)
    assert compare(base, slower, 0.03).differences[0].verdict == "slower"


def test_runs_of_one_session_are_runs():
    base, new = sessions([0.0]), sessions([0.2], start=100.0)
    (difference,) = compare(base, new).differences
    assert (difference.n_runs, difference.verdict) == (7, "slower")
    assert not any("sessions" in warning for warning in difference.warnings)


def test_two_timings_are_compared(said):
    clock = FakeClock()
    old = measure(lambda: clock.work(1000), clock=clock, key="old")
    new = measure(lambda: clock.work(1200), clock=clock, key="new")
    found = compare(old, new)
    assert [(each.key, each.new_key) for each in found.differences] == [("old", "new")]
    assert found.differences[0].base.median_ns == pytest.approx(1000)
    said.within(found.differences[0].reason)
    assert repr(old).startswith("Timing('old', 1.00 µs, ")
    assert len(repr(old)) < 60


@pytest.mark.parametrize(
    ("verdict", "interval", "gate", "expected"),
    [
        ("slower", (0.04, 0.06), 0.03, True),
        ("slower", (0.02, 0.06), 0.03, None),
        ("slower", (0.01, 0.02), 0.03, False),
        ("inconclusive", (-0.01, 0.06), 0.03, None),
        ("inconclusive", (0.04, 0.06), 0.03, None),
        ("inconclusive", None, 0.03, None),
        ("faster", (-0.09, -0.06), 0.03, False),
    ],
)
def test_a_gate_is_passed_or_failed_by_the_whole_interval(verdict, interval, gate, expected):
    given = None if interval is None else Interval(*interval)
    difference = Difference("a", Verdict(verdict), "", interval=given)
    assert difference.is_beyond(gate) is expected
