"""The command line, from the user's seat: exit codes, formats, streams, errors."""

from __future__ import annotations

import csv
import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from longpole.cli import program
from longpole.cli.answer import exit_codes, live
from longpole.report.blocks import Column, Table
from longpole.report.text import Terminal, text
from longpole.testing import TraceBuilder
from longpole.words.wording import escape
from processes import started

LONGPOLE = (sys.executable, "-m", "longpole")
ENVELOPE = [
    "schema",
    "tool",
    "inputs",
    "scope",
    "status",
    "abstains_because",
    "warnings",
    "data",
    "truncated",
    "error",
]


@pytest.fixture
def trace(tmp_path):
    builder = (
        TraceBuilder()
        .header(distributedInfo={"rank": 3})
        .step(1, (0, 100))
        .operator("aten::mm", (0, 60))
        .launch("gemm", call=(60, 65), work=(66, 100))
    )
    return str(builder.write(tmp_path / "trace.json.gz"))


@pytest.fixture
def longpole(capsys, monkeypatch):
    """Run the command in this process: exit code, stdout, stderr."""
    for name in ("LONGPOLE_FORMAT", "NO_COLOR", "FORCE_COLOR", "CLICOLOR_FORCE"):
        monkeypatch.delenv(name, raising=False)

    def run(*arguments):
        code = program.run([str(argument) for argument in arguments])
        return (code, *capsys.readouterr())

    return run


def test_a_table_that_is_not_there_is_answered_with_the_one_that_was_meant(capsys, said):
    assert program.run(["table", "trace.json", "kernel"]) == exit_codes.USAGE
    said.within(capsys.readouterr().err)
    assert program.run(["table", "trace.json", "zzz"]) == exit_codes.USAGE
    said.within(capsys.readouterr().err)


def test_a_condition_chooses_rows_or_what_is_added_up_as_the_help_says(longpole, tmp_path, said):
    builder = TraceBuilder()
    for number, length in enumerate((10, 10, 50)):
        start = 100 * number
        builder.launch("gemm", call=(start, start + 2), work=(start + 5, start + 5 + length))
    path = str(builder.write(tmp_path / "trace.json.gz"))
    ask = ("--window=all", "--where", "duration_ns > 20000", "--json")

    def rows(table):
        return json.loads(longpole("table", path, table, *ask)[1])["data"]["rows"]

    assert [row["duration_ns"] for row in rows("activities")] == [50_000]
    # All three take 70 us together: the condition is about single activities.
    assert [row["count"] for row in rows("kernels")] == [1]
    sentence = " ".join(longpole("table", "--help")[1].split())
    said.within(sentence)


def test_a_file_alone_means_summary(longpole, trace):
    assert longpole(trace) == longpole("summary", trace)
    assert longpole("--format", "json", trace) == longpole("summary", trace, "--format", "json")


def test_the_sentence_stands_first(longpole, trace):
    code, out, err = longpole("summary", trace)
    lines = out.splitlines()
    assert (code, err) == (exit_codes.OK, "")
    assert lines[0] == f"{trace}: step 1, rank 3"
    sentence = " ".join(line.strip() for line in lines[2:6])
    assert sentence.startswith("The step takes 100 µs; the host limits it (up to 66 %).")


@pytest.mark.parametrize("width", [80, 100, 120])
@pytest.mark.parametrize("idle_us", [1, 100])
def test_no_line_is_wider_than_the_terminal(longpole, tmp_path, monkeypatch, width, idle_us):
    name = "void at::native::" + "very_long_kernel_name<" * 40
    builder = TraceBuilder().operator(f"aten::{name}", (0, idle_us))
    builder.launch(name, call=(idle_us, idle_us + 1), work=(idle_us + 1, idle_us + 30))
    monkeypatch.setenv("COLUMNS", str(width))
    _, out, _ = longpole(builder.write(tmp_path / "a.json"))
    assert max(map(len, out.splitlines()[1:])) <= width


def test_json_stands_in_an_envelope_with_stable_keys(longpole, trace):
    code, out, _ = longpole("summary", trace, "--json")
    document = json.loads(out)
    assert code == exit_codes.OK
    assert list(document) == ENVELOPE
    assert document["schema"] == "longpole.summary/1"
    assert document["inputs"][0]["path"] == trace
    assert document["inputs"][0]["rank"] == 3
    assert document["scope"]["step"] == 1
    assert document["data"]["devices"][0]["launch_bound_share"] == 0.65
    assert document["truncated"]["kernels"] == {"shown": 1, "total": 1}


def test_json_keeps_names_whole(longpole, tmp_path):
    name = "k\x1b[31m" + "x" * 500
    path = TraceBuilder().launch(name, call=(0, 1), work=(1, 9)).write(tmp_path / "a.json")
    _, out, _ = longpole("--json", path)
    assert json.loads(out)["data"]["kernels"][0]["name"] == name


def test_several_traces_are_an_array_in_json_and_lines_in_jsonl(longpole, trace):
    _, out, _ = longpole("summary", trace, trace, "--format", "json")
    assert [list(document) for document in json.loads(out)] == [ENVELOPE, ENVELOPE]
    _, out, _ = longpole("summary", trace, trace, "--format", "jsonl")
    assert [list(json.loads(line)) for line in out.splitlines()] == [ENVELOPE, ENVELOPE]


def test_csv_is_one_table_with_one_header(longpole, trace):
    _, out, _ = longpole("summary", trace, trace, "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(out)))
    kernels = [row for row in rows if row["section"] == "kernel"]
    assert [(row["name"], row["duration_ns"]) for row in kernels] == [("gemm", "34000")] * 2


@pytest.mark.parametrize(
    "name", ["=cmd()", "+1", "-1", "@x", "\t=1", " =1", "\uff1d1", "\uff20x", "\ufe621"]
)
def test_no_cell_of_csv_is_a_formula(longpole, tmp_path, name):
    path = TraceBuilder().launch(name, call=(0, 1), work=(1, 9)).write(tmp_path / "a.json")
    _, out, _ = longpole(path, "--format", "csv")
    cells = [row["name"] for row in csv.DictReader(io.StringIO(out))]
    assert "'" + escape(name) in cells
    longpole("convert", path, "--table", "kernels", "-o", tmp_path / "kernels.csv")
    [row] = csv.DictReader(io.StringIO((tmp_path / "kernels.csv").read_text(encoding="utf-8")))
    assert row["name"] == "'" + escape(name)


def test_markdown_lets_no_name_act(longpole, tmp_path):
    path = TraceBuilder().launch("<b>|`x", call=(0, 1), work=(1, 9)).write(tmp_path / "a.json")
    _, out, _ = longpole(path, "--format", "md")
    assert "&lt;b>\\|\\`x" in out


def test_the_format_can_stand_in_the_environment(longpole, trace, monkeypatch):
    monkeypatch.setenv("LONGPOLE_FORMAT", "jsonl")
    assert json.loads(longpole(trace)[1])["status"] == "ok"


def test_what_moves_a_terminal_is_shown_and_not_sent(longpole, tmp_path):
    name = "evil\x1b]0;owned\x07\u202egnp"
    path = TraceBuilder().launch(name, call=(0, 1), work=(1, 9)).write(tmp_path / "a.json")
    for command in ("summary", "check"):
        _, out, _ = longpole(command, path)
        assert "\x1b" not in out
        assert "\u202e" not in out


def test_colours_are_for_terminals_unless_asked_for(longpole, trace, monkeypatch):
    assert "\x1b[" not in longpole(trace)[1]
    assert "\x1b[1m" in longpole(trace, "--color", "always")[1]
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b[1m" in longpole(trace)[1]
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[" not in longpole(trace)[1]


def test_names_that_differ_still_do_when_they_are_short():
    names = [f"cutlass::Kernel2<{'x' * 50}_{suffix}>" for suffix in ("nn", "tn")]
    table = Table([Column("kernel", "name"), Column("time")], [(name, "1 ms") for name in names])
    _, *lines = text([table], Terminal(width=50)).splitlines()
    assert max(map(len, lines)) <= 50
    assert lines[0] != lines[1]


def test_an_ascii_terminal_gets_ascii():
    assert Terminal(encoding="ascii").encodable("46.8 µs · 漢") == "46.8 us - \\u6f22"


def test_a_step_that_is_not_there_is_a_usage_error(longpole, trace, said):
    code, _, err = longpole("summary", trace, "--step", 7)
    assert code == exit_codes.USAGE
    said.within(err)


def test_a_missing_file_is_one_sentence_and_exit_3(longpole):
    assert longpole("missing.json") == (
        exit_codes.UNREADABLE,
        "",
        "error: missing.json: no such file [file_not_found]\n",
    )


READERS = (
    *("summary", "check", "path", "whatif", "table", "diff", "ranks"),
    *("report -o out.html", "convert -o out.json", "chakra check", "tune"),
    *("bench compare", "bench extract", "summary --vocabulary"),
)


@pytest.mark.parametrize("command", READERS)
def test_an_input_that_cannot_be_read_has_one_exit_code(command, longpole, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    secret = tmp_path / "secret.json"
    secret.write_bytes(bytes(100))
    secret.chmod(0)
    name = [str(secret), *(["kernels"] if command == "table" else [])]
    others = [str(secret)] if command in ("summary --vocabulary", "diff", "bench compare") else []
    is_root = os.access(secret, os.R_OK)
    code = longpole(*command.split(), *name, *others)[0]
    # Root can read it: then the option itself must not ask whether it may be read.
    monkeypatch.setattr(os, "access", lambda *_: False)
    again = longpole(*command.split(), *name, *others)[0]
    assert code == again
    assert is_root or code == exit_codes.UNREADABLE


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b'{"schema": "1.1", "pid": 1, "nodes": []}', "execution trace"),
        (b'[[1, "create", 512, 0], [2, "delete", 512, 0]]', "memory timeline"),
        (b"<!DOCTYPE html><html></html>", "HTML"),
        (b"", "empty"),
        (b"BZh91AY&SY rest", "bzip2"),
    ],
)
def test_a_file_of_another_kind_is_refused_by_name(longpole, tmp_path, content, kind):
    path = tmp_path / "other"
    path.write_bytes(content)
    for command in ("summary", "check"):
        code, out, err = longpole(command, path)
        assert (code, out) == (exit_codes.UNREADABLE, "")
        assert kind in err
        assert "\nhint: " in err
        assert "Traceback" not in err


def test_in_json_an_error_is_json_too(longpole):
    code, out, err = longpole("summary", "missing.json", "--json")
    document = json.loads(out)
    assert (code, document["status"], list(document)) == (exit_codes.UNREADABLE, "error", ENVELOPE)
    assert document["error"]["code"] == "file_not_found"
    assert err.startswith("error: ")


def test_a_usage_error_is_json_too(longpole):
    code, out, _ = longpole("summary", "--format", "json", "--bogus")
    assert (code, json.loads(out)["error"]["code"]) == (exit_codes.USAGE, "usage")


def test_one_bad_trace_does_not_keep_the_others_from_being_answered(longpole, trace):
    code, out, err = longpole("summary", "missing.json", trace)
    assert code == exit_codes.UNREADABLE
    assert out.startswith(f"{trace}: step 1")
    assert "missing.json" in err


def test_nothing_to_measure_is_inconclusive(longpole, tmp_path):
    path = TraceBuilder().write(tmp_path / "empty.json")
    assert longpole(path)[0] == exit_codes.INCONCLUSIVE
    code, out, _ = longpole(path, "--json")
    assert (code, json.loads(out)["status"]) == (exit_codes.INCONCLUSIVE, "abstained")


@pytest.mark.parametrize(
    ("wrong", "right"),
    [("sumary", "summary"), ("chekc", "check"), ("idle", "longpole TRACE idle")],
)
def test_a_verb_with_a_slip_is_guessed(longpole, wrong, right):
    code, _, err = longpole(wrong, "x")
    assert code == exit_codes.USAGE
    assert f"did you mean `{right}`?" in err


def test_check_fails_on_loss_and_in_strict_mode_on_warnings(longpole, tmp_path, trace):
    doubtful = TraceBuilder().kernel("orphan", (10, 20)).write(tmp_path / "doubtful.json")
    lost = tmp_path / "lost.json"
    lost.write_bytes(doubtful.read_bytes()[:-9])
    assert longpole("check", trace)[0] == exit_codes.OK
    assert longpole("check", doubtful)[0] == exit_codes.OK
    assert longpole("check", doubtful, "--strict")[0] == exit_codes.FINDINGS
    assert longpole("check", lost)[0] == exit_codes.FINDINGS


def test_check_answers_in_every_format(longpole, tmp_path):
    path = TraceBuilder().kernel("orphan", (10, 20)).write(tmp_path / "a.json")
    document = json.loads(longpole("check", path, "--json")[1])
    codes = [finding["code"] for finding in document["data"]["findings"]]
    assert codes[0] == "zero_correlations"
    assert document["data"]["counts"]["warning"] == 1
    rows = csv.DictReader(io.StringIO(longpole("check", path, "--format", "csv")[1]))
    assert [row["code"] for row in rows] == codes
    assert "zero\\_correlations: " in longpole("check", path, "--format", "md")[1]
    assert "1 warning, 2 notes" in longpole("check", path)[1].splitlines()[0]


def test_a_damaged_file_is_summarised_and_said_to_be_partial(longpole, tmp_path, trace, said):
    damaged = tmp_path / "damaged.json.gz"
    damaged.write_bytes(Path(trace).read_bytes()[:-4])
    code, out, _ = longpole(damaged, "--json")
    document = json.loads(out)
    assert (code, document["status"]) == (exit_codes.OK, "partial")
    assert document["warnings"][0]["code"] == "compression_truncated"
    said.within(longpole(damaged)[1])


def test_a_trace_can_come_through_a_pipe(trace):
    done = subprocess.run(
        [*LONGPOLE, "-"], input=Path(trace).read_bytes(), capture_output=True, check=True
    )
    assert done.stdout.startswith(b"stdin: step 1")


def test_a_reader_that_leaves_is_no_error(trace):
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run([*LONGPOLE, trace], stdout=writer, stderr=subprocess.PIPE, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (exit_codes.OK, b"")


def test_a_reader_that_leaves_a_usage_error_gets_no_traceback(trace):
    reader, writer = os.pipe()
    os.close(reader)
    command = [*LONGPOLE, "whatif", trace, "--drop", "", "--format", "json"]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, check=False, text=True)
    os.close(writer)
    assert done.returncode == exit_codes.USAGE
    assert done.stderr.startswith("error: ")
    assert "Traceback" not in done.stderr


def test_ctrl_c_ends_with_130_and_without_a_word():
    with started(
        [*LONGPOLE, "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        # More than a pipe holds: once it is written, the program has begun to read.
        process.stdin.write(b'{"traceEvents": [' + b" " * (1 << 20))
        process.stdin.flush()
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        assert process.wait(120) == exit_codes.INTERRUPTED
        assert process.stderr.read() == b""


def test_a_traceback_is_for_those_who_ask(trace, monkeypatch, longpole):
    def fail(*_args, **_kwargs):
        raise ZeroDivisionError("by design")  # noqa: EM101, TRY003

    monkeypatch.setattr("longpole.cli.summary.summarise", fail)
    code, _, err = longpole(trace)
    assert code == exit_codes.INTERNAL
    assert "Traceback" not in err
    assert "Traceback" in longpole(trace, "--debug")[2]


@pytest.mark.parametrize("arguments", [["--help"], ["summary", "--help"], ["check", "--help"]])
def test_help_shows_examples(longpole, arguments):
    code, out, _ = longpole(*arguments)
    assert code == exit_codes.OK
    assert "  Examples:\n" in out
    assert max(map(len, out.splitlines())) <= 80


@pytest.mark.parametrize("code", ["import longpole", "import longpole.cli.program"])
def test_importing_brings_nothing_heavy(code):
    heavy = "{'polars', 'numpy', 'rich', 'torch', 'asyncio'}"
    script = f"{code}; import sys; print({heavy} & set(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout == "set()\n"


@pytest.mark.parametrize("form", ["text", "json"])
@pytest.mark.parametrize(
    "command",
    [["summary"], ["path"], ["whatif"], ["whatif", "--drop", "kernel"], ["check"]],
    ids=" ".join,
)
def test_answers_in_text_and_json_do_not_wait_for_polars(trace, command, form):
    script = (
        "import sys; from longpole.cli.program import run; "
        f"code = run({[*command, str(trace), '--format', form]!r}); "
        "print(code, 'polars' in sys.modules, file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout
    assert done.stderr.splitlines()[-1].endswith(" False")


@pytest.mark.parametrize(
    ("command", "expected"), [("table", "1"), ("bench", None), ("tunableop", None)]
)
def test_only_commands_without_jobs_of_their_own_forbid_numpy_its_threads(command, expected):
    script = (
        "import os; from longpole.cli.program import run; "
        f"run([{command!r}, '--help']); print(os.environ.get('OPENBLAS_NUM_THREADS'))"
    )
    environment = {name: text for name, text in os.environ.items() if "OPENBLAS" not in name}
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    )
    assert done.stdout.splitlines()[-1] == str(expected)


@pytest.mark.parametrize(("is_terminal", "is_ci"), [(True, False), (True, True), (False, False)])
def test_a_bar_moves_only_where_somebody_watches(trace, monkeypatch, is_terminal, is_ci):
    monkeypatch.setattr("sys.stderr", io.StringIO())
    monkeypatch.setattr("sys.stderr.isatty", lambda: is_terminal)
    monkeypatch.setattr("longpole.cli.answer.live._PATIENCE_SECONDS", 0)
    monkeypatch.setenv("CI", "1" if is_ci else "")
    with live.reading(trace) as show:
        if show:
            show(1_000_000)
    assert (show is not None) == (is_terminal and not is_ci)
    assert ("trace.json.gz" in sys.stderr.getvalue()) == (show is not None)


def test_a_folder_with_one_trace_is_that_trace(tmp_path, capsys):
    path = (
        TraceBuilder().launch("gemm", call=(0, 10), work=(10, 100)).write(tmp_path / "rank0.json")
    )
    tmp_path.joinpath("how.json").write_text('{"how": "recorded on one node"}')
    assert program.run(["summary", str(path), "--json"]) == 0
    expected = json.loads(capsys.readouterr().out)
    for arguments in (["summary", str(tmp_path), "--json"], ["--json", str(tmp_path)]):
        assert program.run(arguments) == 0
        answer = json.loads(capsys.readouterr().out)
        assert answer["data"] == expected["data"]
    assert program.run(["diff", str(tmp_path), str(path)]) == 0


def test_a_folder_with_several_traces_says_how_to_ask(tmp_path, capsys):
    for name in ("a.json", "b.json"):
        TraceBuilder().launch("gemm", call=(0, 10), work=(10, 100)).write(tmp_path / name)
    assert program.run(["summary", str(tmp_path)]) != 0
    assert "a.json, b.json" in (said := capsys.readouterr().err)
    assert "longpole ranks" in said
