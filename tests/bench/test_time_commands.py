"""`longpole bench time -- COMMAND`: whole processes, in turns, in blocks."""

import os
import shutil
import sys
from pathlib import Path

import pytest
from timed import answered, time

from longpole.bench import compare, read_results
from longpole.bench.time import command_worker

pytestmark = [pytest.mark.real_time, pytest.mark.usefixtures("empty_folder")]


def records(path="out.jsonl"):
    return read_results(path).records


def test_a_command_behind_two_dashes_is_timed(capsys):
    code, found = answered(capsys, "-o", "out.jsonl", "--", "sleep", "0.02")
    [row] = found["functions"]
    assert (code, row["key"], row["n_runs"]) == (0, "sleep 0.02", 2)
    assert 20e6 < row["median_ns"] < 2e9
    for record in records():
        assert (record.key, record.outcome, record.pair) == ("sleep 0.02", "ok", "")
        assert record.argv == ("sleep", "0.02")
        assert record.sampling["clock"] == "process"
        assert record.sampling["n_warm_up_calls"] == 1
    assert len({record.run for record in records()}) == 2


def test_commands_take_turns_and_are_compared_with_the_first(capsys):
    commands = ["-c", "sleep 0.01", "-c", "sleep 0.05"]
    code, found = answered(capsys, *commands, "-o", "out.jsonl", processes=7, budget="1.5")
    [difference] = found["differences"]
    assert (code, difference["verdict"], difference["design"]) == (0, "slower", "in turns")
    assert (difference["key"], difference["new_key"]) == ("sleep 0.01", "sleep 0.05")
    again = compare("out.jsonl", "out.jsonl", base_key="sleep 0.01", new_key="sleep 0.05")
    assert again.differences[0].verdict == "slower"
    by_run = {}
    for record in records():
        by_run.setdefault(record.pair, []).append(len(record.samples_ns))
    assert all(len(counts) == 2 and counts[0] == counts[1] for counts in by_run.values())


def test_a_large_difference_shortens_the_later_runs_and_an_equal_pair_does_not(capsys):
    for pair, is_large in ((("0.02", "0.08"), True), (("0.02", "0.0201"), False)):
        words = [word for length in pair for word in ("-c", f"sleep {length}")]
        _, found = answered(capsys, *words, "-o", f"{is_large}.jsonl", processes=7, budget="7")
        warm_ups = [each.sampling["n_warm_up_calls"] for each in records(f"{is_large}.jsonl")]
        assert warm_ups == [1, 1] + [0 if is_large else 1] * 12
        assert [row["n_runs"] for row in found["functions"]] == [7, 7]
        for row in found["functions"]:
            assert row["min_ns"] <= row["median_ns"] <= row["max_ns"]
            assert isinstance(row["median_ns"], int)


def test_the_processor_time_and_the_memory_are_those_of_the_command(capsys):
    held = "x = bytearray(200 << 20); x[::4096] = b'1' * len(x[::4096])"
    code, found = answered(capsys, "--", sys.executable, "-S", "-c", held, processes=1)
    [row] = found["functions"]
    assert code == 0
    assert 200 << 20 < row["peak_rss_bytes"] < 300 << 20
    assert 0 < row["user_ns"] + row["system_ns"] < 3 * row["median_ns"]
    _, small = answered(capsys, "--", "true", processes=1)
    assert small["functions"][0]["peak_rss_bytes"] is None  # less than what starts it


@pytest.mark.parametrize(
    ("arguments", "outcome", "message"),
    [
        (["--", "sh", "-c", "echo so it is >&2; exit 3"], "nonzero", "exit status 3: so it is"),
        (["--", "sh", "-c", "kill -SEGV $$"], "signal", "ended by SIGSEGV"),
        (["--", "no_such_program"], "not_started", "no program no_such_program in"),
        (["--timeout", "0.2", "--", "sleep", "60"], "timeout", "timed out after 0.2 s"),
        (
            ["--prepare", "exit 7", "--", "true"],
            "not_started",
            "--prepare ended with exit status 7",
        ),
        (["--shell", "sh", "-c", ":"], None, ""),
    ],
)
def test_a_command_that_fails_has_no_time_and_says_why(arguments, outcome, message, capsys):
    code = time("-o", "out.jsonl", *arguments, processes=1)
    [record] = records()
    if outcome is None:  # an empty command takes as long as the shell alone, more or less
        assert record.outcome in {"no_time", "ok"}
        return
    assert (code, record.outcome, record.samples_ns) == (1, outcome, ())
    assert message in record.message
    assert message in capsys.readouterr().out


def test_one_that_fails_does_not_end_the_others(capsys):
    code, found = answered(capsys, "-c", "true", "-c", "false")
    assert code == 1
    assert [row["n_runs"] for row in found["functions"]] == [2, 0]
    assert found["differences"][0]["verdict"] == "inconclusive"


def test_a_failure_can_be_ignored(capsys):
    code, found = answered(capsys, "--ignore-failure", "--", "false")
    assert (code, found["functions"][0]["n_runs"]) == (0, 2)


def test_what_prepares_and_cleans_up_runs_as_often_as_it_should(tmp_path):
    hooks = [
        argument
        for name in ("setup", "prepare", "cleanup")
        for argument in (f"--{name}", f"echo {name[0]} >> log")
    ]
    assert time(*hooks, "-o", "out.jsonl", "--warm-up", "2", "--", "true") == 0
    log = (tmp_path / "log").read_text().splitlines()
    # A busy machine spoils samples, which are dropped and counted.
    n_executions = sum(
        len(record.samples_ns) + record.sampling["n_dropped"] + 2 for record in records()
    )
    assert log == ["s", *n_executions * ["p"], "c"]


def test_nothing_is_timed_if_the_setup_fails(capsys, tmp_path, said):
    hooks = ["--setup", "echo no rule to make it; exit 2", "--cleanup", "touch log"]
    assert time(*hooks, "--", "true") == 2
    printed = capsys.readouterr().err
    assert "--setup ended with exit status 2" in printed
    said.within(printed)
    assert not (tmp_path / "log").exists()


def test_a_failed_cleanup_spoils_no_time(capsys):
    code, found = answered(capsys, "--cleanup", "exit 7", "--", "true", processes=1)
    assert (code, found["functions"][0]["n_runs"]) == (1, 1)
    assert time("--cleanup", "exit 7", "--", "true", processes=1) == 1
    assert "--cleanup ended with exit status 7" in "".join(capsys.readouterr())


def test_options_of_commands_are_refused_for_functions(capsys):
    assert time("statistics:median", "--prepare", "true") == 2
    assert "--ignore-failure are for commands" in capsys.readouterr().err


def test_a_shell_is_used_only_where_it_is_asked_for(capsys, tmp_path, said):
    command = "sleep 0.03; echo done | tee -a log"
    assert time("-c", command) == 2
    said.within(capsys.readouterr().err)
    code, found = answered(capsys, "-c", command, "--shell", "sh", "-o", "out.jsonl")
    assert code == 0
    assert found["functions"][0]["median_ns"] > 25e6
    assert all(record.sampling["shell_ns"] > 0 for record in records())
    said(records()[0].sampling["clock"])
    assert "done" in (tmp_path / "log").read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "give functions as MODULE:FUNC, or a command"),
        (["--"], "no command after --"),
        (["some:function", "--", "true"], "give functions as MODULE:FUNC, or a command"),
        (["-c", "true", "--axis", "n=1"], "--axis and --factory are for functions"),
        (["-c", "true", "--clock", "torch", "--cache", "hot"], "--clock torch is for functions"),
        (["-c", ""], "the command is empty"),
    ],
)
def test_wrong_use_is_named(arguments, message, capsys):
    assert time(*arguments) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("form", ["text", "csv", "md", "html", "jsonl"])
def test_commands_side_by_side_are_written_in_every_format(form, capsys):
    assert time("-c", "true", "-c", "sleep 0.01", "--format", form) == 0
    said = capsys.readouterr().out
    assert "sleep 0.01" in said
    if form == "csv":
        assert said.splitlines()[0].split(",")[:2] == ["key", "median_ns"]
    if form == "text":
        assert "true -> sleep 0.01" in said


def test_a_single_word_behind_two_dashes_is_a_script_for_the_shell(capsys):
    code, found = answered(capsys, "--shell", "sh", "--", "sleep 0.05 && true", processes=1)
    assert (code, found["functions"][0]["key"]) == (0, "sleep 0.05 && true")
    code, _ = answered(capsys, "--shell", "sh", "--", "sleep", "0.05", processes=1)
    assert code == 0


def test_the_same_command_twice_is_an_a_a_comparison(capsys):
    code, found = answered(capsys, "-c", "true", "-c", "true", processes=1)
    assert code == 0
    assert [each["key"] for each in found["functions"]] == ["true", "true #2"]
    assert [each["new_key"] for each in found["differences"]] == ["true #2"]


def test_commands_can_be_named(capsys):
    words = ("-n", "old", "-c", "true", "-n", "new", "-c", "true")
    code, found = answered(capsys, *words, "-o", "out.jsonl", processes=1)
    assert (code, [each["key"] for each in found["functions"]]) == (0, ["old", "new"])
    assert [each.argv for each in records()] == [("true",), ("true",)]
    for wrong in (("-n", "a", "-c", "true", "-c", "true"), ("-n", "a", "-n", "a", *words[4:])):
        assert time(*wrong, processes=1) == 2


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("no-such-program x", "there is no program no-such-program in a folder of PATH"),
        ("./no-such-program", "there is no program ./no-such-program"),
        ("./no-interpreter", "the interpreter that ./no-interpreter names"),
    ],
)
def test_a_missing_program_is_said_as_that(command, message, capsys):
    Path("no-interpreter").write_text("#!/no/such/interpreter\n")
    Path("no-interpreter").chmod(0o700)
    code, found = answered(capsys, "-c", command, processes=1)
    assert code == 1
    assert found["functions"][0]["message"].startswith(message)


def test_the_search_of_path_is_not_timed(monkeypatch):
    folders = os.pathsep.join([f"/no/such/folder/{n}" for n in range(50)] + [os.environ["PATH"]])
    monkeypatch.setenv("PATH", folders)
    subject = command_worker.Subject("true", ["true"])
    assert subject.program == shutil.which("true")
    calls = []
    monkeypatch.setattr(os, "posix_spawnp", lambda *_, **__: calls.append("searched"))
    command_worker._execute(subject, {"prepare": None, "timeout_s": 9}, keep=True)
    assert (calls, len(subject.samples)) == ([], 1)


def test_a_program_that_a_preparation_makes_is_found(capsys):
    prepare = "printf '#!/bin/sh\\n' > made && chmod +x made"
    code, found = answered(capsys, "--prepare", prepare, "-c", "./made", processes=1)
    assert (code, found["functions"][0]["message"]) == (0, "")
