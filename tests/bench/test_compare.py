"""Verdicts: what they rest on, how often they hold, and what the command makes of them."""

import json
from collections import Counter

import numpy as np
import pytest

from longpole.bench import Verdict, compare, save_baseline
from longpole.bench.records.samples import gather
from longpole.cli.answer.problems import Problem
from longpole.cli.bench.baseline import baseline as baseline_command
from longpole.cli.bench.compare import compare as compare_command
from longpole.errors import ResultsError

STEADY = [100, 101, 99, 100, 102, 98, 101, 100]
SLOWER = [1.05 * each for each in STEADY]


def noisy(generator, n_samples, factor=1.0, *, drift=None):
    """Draw times with noise of 1 %, one wild sample in ten, and drift."""
    noise = generator.lognormal(0, 0.01, n_samples)
    wild = np.where(generator.random(n_samples) < 0.1, 1 + generator.exponential(0.5, n_samples), 1)
    return 1e6 * factor * noise * wild * (1 if drift is None else drift)


DRIFTS = {
    "none": lambda _, n: (np.ones(n), np.ones(n)),
    "rising alike, as in turns": lambda _, n: (np.linspace(1, 1.03, n),) * 2,
    "wandering alike, as in turns": lambda generator, n: (
        (np.exp(np.cumsum(generator.normal(0, 0.002, n))),) * 2
    ),
    "swinging apart": lambda generator, n: tuple(
        1 + 0.01 * np.sin(np.linspace(0, 2 * np.pi, n) + phase)
        for phase in generator.uniform(0, 2 * np.pi, 2)
    ),
    "rising on, one side after the other": lambda _, n: (
        np.linspace(1, 1.01, n),
        np.linspace(1.01, 1.02, n),
    ),
}


def verdicts(drift, factor, *, n_samples, n_runs):
    """Count what is said of so many simulated comparisons."""
    generator = np.random.default_rng(2024)
    found = Counter()
    for _ in range(n_runs):
        base_drift, new_drift = DRIFTS[drift](generator, n_samples)
        base = noisy(generator, n_samples, drift=base_drift)
        new = noisy(generator, n_samples, factor, drift=new_drift)
        found[compare({"k": base}, {"k": new}).verdict] += 1
    return found


@pytest.mark.parametrize("drift", DRIFTS)
def test_three_percent_are_found_and_nothing_is_not(drift):
    found = verdicts(drift, 1.03, n_samples=200, n_runs=100)
    assert found[Verdict.SLOWER] >= 95

    found = verdicts(drift, 1.0, n_samples=200, n_runs=100)
    assert found[Verdict.SLOWER] + found[Verdict.FASTER] <= 5


@pytest.mark.slow
@pytest.mark.parametrize("n_samples", [50, 200])
@pytest.mark.parametrize("drift", DRIFTS)
def test_three_percent_are_found_and_nothing_is_not_in_a_thousand_runs(drift, n_samples):
    found = verdicts(drift, 1.03, n_samples=n_samples, n_runs=1000)
    assert found[Verdict.SLOWER] >= 950

    found = verdicts(drift, 1.0, n_samples=n_samples, n_runs=1000)
    assert found[Verdict.SLOWER] + found[Verdict.FASTER] <= 50


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
        (STEADY[:5], 0.03, Verdict.INCONCLUSIVE),
    ],
)
def test_a_verdict_needs_certainty_and_a_change_that_matters(new, gate, verdict):
    (difference,) = compare({"k": STEADY}, {"k": new}, gate).differences

    assert difference.verdict is verdict


def test_the_gravest_verdict_stands_for_all():
    base = {"a": STEADY, "b": STEADY, "c": STEADY}

    assert compare(base, {**base, "b": SLOWER, "c": [1]}).verdict is Verdict.SLOWER
    assert compare(base, {**base, "c": [1]}).verdict is Verdict.INCONCLUSIVE
    assert compare({}, base).verdict is Verdict.INCONCLUSIVE


def record(**fields):
    return {"key": "k", "outcome": "ok", "samples_ns": STEADY, **fields}


@pytest.mark.parametrize(
    ("new", "reason"),
    [
        ([], "no run in new succeeded"),
        ([record(outcome="timeout")], "no run in new succeeded (1 failed)"),
        (
            [record(samples_ns=[0, -1, float("nan"), float("inf"), True, None])],
            "no run in new succeeded (6 without a usable duration)",
        ),
        (
            [record(samples_ns=STEADY[:3])],
            "too few samples: 8 in base, 3 in new, 6 are needed on each side",
        ),
        (
            [record(clock="cuda", cache="cold")],
            "measured in different ways: no clock named in base, cuda clock, cold cache in new",
        ),
    ],
)
def test_what_cannot_be_compared_says_why(new, reason):
    (difference,) = compare([record()], new).differences

    assert (difference.verdict, difference.reason) == (Verdict.INCONCLUSIVE, reason)


def test_a_failed_run_never_counts_and_is_said():
    new = [record(), record(outcome="signal", samples_ns=[1] * 100)]

    (difference,) = compare([record()], new).differences

    assert difference.new.median_ns == 100
    assert "new: left out (1 failed)" in difference.warnings


def test_results_of_a_job_are_samples_by_their_names():
    results = [{"name": "tile64", "time_ns": 5.0}, {"name": "tile128", "time_ns": 4.0}]
    runs = gather([{"key": "gemm", "outcome": "ok", "results": results, "seconds": 9.0}]).runs

    assert {key: each.samples_ns for key, each in runs.items()} == {
        "gemm tile64": [5.0],
        "gemm tile128": [4.0],
    }


def test_a_job_without_results_is_timed_as_a_whole():
    assert gather([{"key": "make", "outcome": "ok", "seconds": 0.5}]).runs["make"].samples_ns == [
        5e8
    ]


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
        (tmp_path / name).write_text(json.dumps(record(samples_ns=list(samples_ns))) + "\n")
        return name

    return write


def run(command, *arguments):
    """Run a verb, and answer what it raises, as the program does."""
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
    assert run(compare_command, base, slower, "--gate", "10%") == 0
    assert run(compare_command, base, few) == 4
    assert run(compare_command, few, few) == 4
    assert run(compare_command, base, "nowhere") == 3


def test_a_half_written_last_line_costs_only_itself(written, tmp_path, capsys):
    base = written("base.jsonl", STEADY)
    with (tmp_path / "base.jsonl").open("a") as file:
        file.write('{"key": "k", "samples_')

    assert run(compare_command, base, written("new.jsonl", STEADY[::-1])) == 0
    assert "base: lines that are no records: 1" in capsys.readouterr().out


def test_a_file_without_records_is_unreadable(written, tmp_path, capsys):
    base = written("base.jsonl", STEADY)
    (tmp_path / "text").write_text("hello\n")

    assert run(compare_command, base, "text") == 3
    assert capsys.readouterr().err == "error: text holds no record of a measurement [results]\n"


def test_text_is_a_table_with_what_is_open_below(written, capsys):
    assert run(compare_command, written("base.jsonl", STEADY), written("few.jsonl", [100])) == 4

    assert capsys.readouterr().out.splitlines() == [
        "base.jsonl to few.jsonl: 1 inconclusive (gate 3.0 %, confidence 95.0 %)",
        "",
        "  verdict       key  change  interval    base     new",
        "  inconclusive  k         -         -  100 ns  100 ns",
        "",
        "  k: too few samples: 8 in base, 1 in new, 6 are needed on each side",
    ]


def test_json_holds_all_that_is_known(written, capsys):
    base, new = written("base.jsonl", STEADY), written("new.jsonl", SLOWER)

    assert run(compare_command, base, new, "--json") == 1
    envelope = json.loads(capsys.readouterr().out)

    assert (envelope["schema"], envelope["status"]) == ("longpole.bench.compare/1", "ok")
    assert envelope["inputs"] == [{"base": "base.jsonl", "new": "new.jsonl"}]
    assert envelope["data"]["verdict"] == "slower"
    (row,) = envelope["data"]["differences"]
    assert (row["verdict"], row["base"]["median_ns"]) == ("slower", 100)
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

    assert run(baseline_command, "main", base) == 0
    assert run(compare_command, "main", new) == 1
    with pytest.raises(FileExistsError):
        save_baseline("main", new)
    assert run(compare_command, "main", base) == 0
    assert run(baseline_command, "main", new, "--force") == 0
    assert run(compare_command, "main", new) == 0
    assert [each.name for each in (tmp_path / ".longpole/baselines").iterdir()] == ["main.jsonl"]


@pytest.mark.parametrize("name", ["../main", "", ".hidden", "a/b", "x" * 101])
def test_a_baseline_cannot_be_named_out_of_its_folder(written, name):
    with pytest.raises(ValueError, match="names no baseline"):
        save_baseline(name, written("base.jsonl", STEADY))


def test_a_run_without_success_is_no_baseline(tmp_path, monkeypatch):
    monkeypatch.setenv("LONGPOLE_BASELINES", str(tmp_path))
    path = tmp_path / "failed.jsonl"
    path.write_text(json.dumps(record(outcome="timeout")) + "\n")

    with pytest.raises(ResultsError, match="no run in"):
        save_baseline("main", path)
