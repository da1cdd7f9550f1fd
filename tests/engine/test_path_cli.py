"""`longpole path`, `whatif` and `table`: what the user sees, and the exit codes."""

import json
import re

import pytest

import longpole
from longpole.cli.answer import exit_codes
from longpole.cli.program import run
from longpole.engine.critical_path import Drop
from longpole.testing import TraceBuilder
from real_traces import SHARED
from tiny_traces import annotation, call, kernel, launch, operator, read

WORK = ("operator", "runtime", "host_gap", "data_loading", "kernel", "copy", "communication")
WAITING = [
    *(launch(0, 2, 1), launch(3, 5, 2), call("cudaDeviceSynchronize", 10, 40)),
    *(kernel("long", 4, 35, 1), kernel("short", 7, 18, 2, stream=8), operator("after", 40, 45)),
    annotation("ProfilerStep#1", 0, 45),
]


@pytest.fixture
def trace(tmp_path):
    return written(tmp_path, WAITING)


def written(folder, events):
    path = folder / "trace.json"
    path.write_text(json.dumps({"traceEvents": events}))
    return str(path)


def answer(capsys, *arguments):
    code = run(arguments)
    return code, capsys.readouterr().out


def test_the_path_is_told_in_words(trace, capsys):
    code, out = answer(capsys, "path", trace)
    assert code == exit_codes.OK
    assert "  68.9 %  31.0 µs  ████████████████  kernel execution (kernel)" in out.splitlines()


def test_the_first_answer_with_shortened_names_says_where_they_are_whole(tmp_path, capsys):
    name = "gemm_" * 40
    trace = written(tmp_path, [launch(0, 2, 1), kernel(name, 5, 90, 1)])
    _, out = answer(capsys, "path", trace, trace)
    assert out.count("set COLUMNS=200; for all, see --json") == 1
    assert name in answer(capsys, "path", trace, "--json")[1]
    _, out = answer(capsys, "path", written(tmp_path, [launch(0, 2, 1), kernel("gemm", 5, 90, 1)]))
    assert "COLUMNS" not in out


def test_the_path_as_json_closes_to_the_nanosecond(trace, capsys):
    code, out = answer(capsys, "path", trace, "--step", "1", "--json")
    envelope = json.loads(out)
    data = envelope["data"]
    assert (code, envelope["schema"], envelope["status"]) == (0, "longpole.path/1", "ok")
    assert sum(kind["duration_ns"] for kind in data["kinds"]) == data["length_ns"] == 45_000


@pytest.mark.parametrize(
    ("options", "window", "step"),
    [
        ((), "step 1", 1),
        (("--window=all",), "whole trace", None),
        (("--step", "ProfilerStep#1"), "step 1", 1),
        (("--window", "ProfilerStep#1#0"), "annotation ProfilerStep#1 (instance 0)", None),
        (("--window", "1000..40000"), "from 1000 to 40000 ns", None),
    ],
)
def test_every_answer_names_its_window(options, window, step, trace, capsys):
    _, out = answer(capsys, "path", trace, *options)
    assert out.splitlines()[0] == f"{trace}: critical path, {window}"
    _, out = answer(capsys, "whatif", trace, "--drop", "kernel", *options)
    assert out.startswith(f"{trace}: {window}, with kernel dropped: ")
    _, out = answer(capsys, "path", trace, *options, "--json")
    scope = json.loads(out)["scope"]
    assert (scope["step"], scope["window"]) == (step, window.partition(" (the")[0])


def test_a_change_of_one_step_says_what_it_does_to_all_steps_of_the_verdict(tmp_path, capsys):
    builder = TraceBuilder()
    for number in range(1, 6):
        start, end = 100 * number, 100 * number + (310 if number == 5 else 110)
        builder.step(number, (start, start + 100)).operator("aten::mm", (start + 1, start + 99))
        builder.launch("gemm", call=(start + 50, start + 55), work=(start + 55, end))
    path = str(builder.write(tmp_path / "trace.json"))
    trace = longpole.read_trace(path)
    _, out = answer(capsys, "whatif", path, "--drop", "kernel", "--json")
    data = json.loads(out)["data"]
    assert data["share_of_steps"] == trace.gain([Drop(kind="kernel")]).value == 200 / 600
    assert data["share_of_steps"] == trace.verdict().gains["kernels"].value
    assert data["share"] == 0
    _, out = answer(capsys, "whatif", path, "--drop", "kernel")
    told = "The mean of the 4 steps that the verdict is about would take 50.0 µs (33.3 %) less."
    assert told in " ".join(out.split())
    _, out = answer(capsys, "whatif", path, "--drop", "kernel", "--window=all", "--json")
    assert json.loads(out)["data"]["share_of_steps"] is None


def test_every_piece_is_a_row_of_csv(trace, capsys):
    _, out = answer(capsys, "path", trace, "--format", "csv")
    header, *rows = out.splitlines()
    assert (
        header == "path,kind,event,name,lane,start_ns,duration_ns,evidence,certainty,rival,busy_ns"
    )
    assert [row.split(",")[1] for row in rows] == [
        *("runtime", "launch", "kernel", "sync_return", "operator")
    ]


@pytest.mark.parametrize("form", ["text", "md", "csv", "json", "jsonl"])
@pytest.mark.parametrize(
    "question",
    [("path",), ("whatif",), ("whatif", "--drop", "launch")],
    ids=" ".join,
)
def test_every_answer_has_every_format(question, form, trace, capsys):
    command, *options = question
    code, out = answer(capsys, command, trace, *options, "--format", form)
    assert (code, bool(out)) == (0, True)


def test_a_changed_trace_names_its_new_long_pole(trace, capsys):
    _, out = answer(capsys, "whatif", trace, "--scale", "kernel:^long$=0.5", "--drop", ":after")
    assert "45.0 µs -> 24.5 µs, 20.5 µs (45.6 %) less" in out


@pytest.mark.parametrize("factor", ["0.5", "50%", "50 %", ".5x", "5e-1"])
def test_a_factor_is_a_number_a_percentage_or_a_multiple(factor, trace, capsys):
    _, out = answer(capsys, "whatif", trace, "--scale", f"kernel:^long$={factor}", "--json")
    (change,) = json.loads(out)["data"]["changes"]
    assert change["by"] == 0.5


@pytest.mark.parametrize(
    ("change", "hint"),
    [
        ("kernel:softmax f32", "; `kernel:softmax` selects all such kernels [change_"),
        ("copy:softmax f32", "which `longpole path --json` shows [change_"),
        ("communication", "`longpole path` lists the kinds [change_"),
    ],
)
def test_a_change_that_matches_nothing_says_what_patterns_match(change, hint, trace, capsys):
    assert run(["whatif", trace, "--drop", change]) == exit_codes.INCONCLUSIVE
    assert hint in capsys.readouterr().err


def test_a_kind_may_be_written_with_spaces(trace, capsys):
    _, out = answer(capsys, "whatif", trace, "--drop", "Sync return", "--json")
    (change,) = json.loads(out)["data"]["changes"]
    assert change["kind"] == "sync_return"


def test_without_a_change_remedies_are_ranked_and_other_changes_suggested(trace, capsys):
    code, out = answer(capsys, "whatif", trace)
    (tried,) = re.findall(
        r"add for example `(--scale \w+=50%)` or `--remedy", " ".join(out.split())
    )
    changed, out = answer(capsys, "whatif", trace, *tried.split())
    assert (code, changed) == (0, 0)
    assert " less" in out.splitlines()[0]


def test_the_usual_questions_are_ranked(trace, capsys):
    _, out = answer(capsys, "whatif", trace, "--json")
    verdict = json.loads(out)["data"]["verdict"]
    assert verdict["sides"] == ["kernels"]
    _, out = answer(capsys, "whatif", trace, "--format", "csv")
    _, best, *_ = out.splitlines()
    assert ",blocking_calls,cudaDeviceSynchronize," in best


def test_waits_are_a_table(trace, capsys):
    _, out = answer(capsys, "table", trace, "sync", "--json")
    (wait,) = json.loads(out)["data"]["rows"]
    assert (wait["source_name"], wait["target_name"]) == ("long", "cudaDeviceSynchronize")
    assert (wait["start_ns"], wait["duration_ns"]) == (10_000, 30_000)  # of what waited


@pytest.mark.parametrize(
    "arguments",
    [
        ("path", "--step", "7"),
        ("path", "--step", "first"),
        ("path", "--window", "fit"),
        ("whatif", "--remedy", "tensor_cores", "--drop", "launch"),
        ("whatif", "--drop", "gemms"),
        ("whatif", "--drop", ""),
        ("whatif", "--scale", "=2"),
        ("whatif", "--scale", "kernel"),
        ("whatif", "--scale", "kernel=fast"),
        ("whatif", "--scale", "kernel=.5.5"),
        ("whatif", "--scale", "kernel=-1"),
        ("whatif", "--remove-wait", "kernel"),
        ("path", "--window", "5..1"),
        ("path", "--window", "0..99999999999999999999"),
        ("path", "--window", "5..soon"),
        ("path", "--step", "99999999999999999999"),
        ("path", "--window", ""),
        ("path", "--window", "step:one"),
        ("path", "--window=all", "--end", "cpu"),
        ("path", "--window=all", "--step", "1"),
        ("path", "--window", "1..5", "--end", "cpu"),
    ],
    ids=" ".join,
)
def test_what_makes_no_sense_is_a_usage_error(arguments, trace, capsys):
    command, *options = arguments
    assert run([command, trace, *options]) == exit_codes.USAGE
    assert "error: " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--window", "5..1"), "'5..1' ends before it starts"),
        (("--window", "5ms..1ms"), "'5ms..1ms' ends before it starts"),
        (("--window", "0..1.5"), "'1.5' is not a time; use for example 10ms"),
        (("--window", "0..soon"), "'soon' is not a time; use for example 10ms"),
        (("--window", "all", "--step", "1"), "--step and --window exclude each other"),
        (("--window=all", "--end", "cpu"), "--end applies to a step or an annotation"),
    ],
)
def test_a_usage_error_names_what_conflicts(options, sentence, trace, capsys):
    run(["path", trace, *options])
    assert sentence in capsys.readouterr().err


@pytest.mark.parametrize("command", ["summary", "path", "table kernels"])
def test_a_time_span_may_count_from_the_start_of_the_trace(command, tmp_path, capsys):
    at_us = 1_000_000
    work = [launch(at_us, at_us + 2, 1), kernel("gemm", at_us + 5, at_us + 90, 1)]
    trace = written(tmp_path, [operator("first", at_us, at_us + 100), *work])
    name, *table = command.split()
    spans = ["1000010000..1000050000", "10000..50000", "10us..0.05ms"]
    documents = [
        json.loads(answer(capsys, name, trace, *table, "--window", span, "--json")[1])
        for span in spans
    ]
    assert documents[0] == documents[1] == documents[2]
    assert documents[0]["scope"]["window_ns"] == [1_000_010_000, 1_000_050_000]
    whole = answer(capsys, name, trace, *table, "--window", "0..50us", "--json")[1]
    assert json.loads(whole)["scope"]["window_ns"] == [1_000_000_000, 1_000_050_000]


def test_a_path_that_is_mostly_unexplained_is_inconclusive(tmp_path, capsys):
    trace = written(tmp_path, [kernel("K0", 0, 10), kernel("K1", 300, 310)])
    code, out = answer(capsys, "path", trace, "--json")
    assert (code, json.loads(out)["status"]) == (exit_codes.INCONCLUSIVE, "partial")


@pytest.mark.parametrize("question", ["summary", "path", "whatif", "whatif --drop kernel"])
def test_an_inconclusive_verdict_has_one_exit_code(question, tmp_path, capsys):
    unlinked = [kernel(f"K{n}", 400 * n, 400 * n + 20) for n in range(6)]
    trace = written(tmp_path, [operator("a", 0, 10), *unlinked])
    assert longpole.read_trace(trace).verdict().status == "inconclusive"
    command, *options = question.split()
    code, out = answer(capsys, command, trace, *options, "--json")
    assert (code, json.loads(out)["status"]) == (exit_codes.INCONCLUSIVE, "partial")


@pytest.mark.parametrize(
    "question", ["summary", "path", "whatif", "whatif --drop kernel", "table segments"]
)
def test_one_long_gap_beside_a_verdict_is_a_warning_and_no_exit_code(question, tmp_path, capsys):
    launches = [launch(2 * n, 2 * n + 2, n + 1) for n in range(10)]
    starts = [*range(100, 919, 91), 1_320]
    kernels = [kernel("gemm", at, at + 90, n + 1) for n, at in enumerate(starts)]
    trace = written(tmp_path, [*launches, *kernels])
    command, *options = question.split()
    code, out = answer(capsys, command, trace, *options, "--window=all", "--json")
    document = json.loads(out)
    assert (code, document["status"]) == (exit_codes.OK, "partial")
    assert [warning["code"] for warning in document["warnings"]] == ["much_unexplained"]


def test_the_summary_says_as_the_path_does_that_much_is_unexplained(said, tmp_path, capsys):
    launches = [launch(2 * n, 2 * n + 2, n + 1) for n in range(10)]
    starts = [*range(100, 919, 91), 1_320]
    kernels = [kernel("gemm", at, at + 90, n + 1) for n, at in enumerate(starts)]
    trace = written(tmp_path, [*launches, *kernels])
    _, out = answer(capsys, "summary", trace, "--window=all")
    said.within(out)
    _, out = answer(
        capsys, "summary", written(tmp_path, [*launches, *kernels[:-1]]), "--window=all"
    )
    assert "is unexplained" not in out


def test_a_trace_without_work_gets_one_sentence(said, tmp_path, capsys):
    code, out = answer(capsys, "path", written(tmp_path, []))
    assert code == exit_codes.INCONCLUSIVE
    said.within(out)


@pytest.mark.parametrize("question", [("path",), ("whatif",), ("summary",)], ids=" ".join)
def test_a_window_of_no_length_gets_one_sentence(question, tmp_path, capsys):
    command, *options = question
    trace = written(tmp_path, [operator("a", 5, 5), kernel("b", 5, 5)])
    code, out = answer(capsys, command, trace, *options)
    assert code == exit_codes.INCONCLUSIVE
    assert out.endswith(" is 0 ns long, so nothing can be measured\n")


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (("--drop", "kernel:zzz"), exit_codes.INCONCLUSIVE),
        (("--drop", "copy"), exit_codes.INCONCLUSIVE),
        (("--drop", "kernel:^long$"), exit_codes.OK),
        (("--scale", ":zzz=2"), exit_codes.INCONCLUSIVE),
        (("--remove-wait", "sync_return:zzz"), exit_codes.INCONCLUSIVE),
        (("--remove-wait", "sync_return:Device"), exit_codes.OK),
        (("--remove-wait", "event_wait"), exit_codes.INCONCLUSIVE),
    ],
    ids=str,
)
def test_a_change_of_nothing_is_said(change, code, trace, capsys):
    found = run(["whatif", trace, *change])
    warned = "nothing in the trace matches" in capsys.readouterr().err
    assert (found, warned) == (code, code != 0)
    _, out = answer(capsys, "whatif", trace, *change, "--json")
    assert bool(json.loads(out)["warnings"]) == (code != 0)


def test_a_name_that_matches_another_kind_gets_that_kind(tmp_path, capsys):
    trace = tmp_path / "trace.json"
    builder = TraceBuilder().python("$train.py:5 loss", (0, 90)).operator("aten::mm", (20, 40))
    builder.launch("gemm", call=(25, 30), work=(35, 95)).write(trace)
    for name in ("loss", "$train.py:5 loss"):
        assert run(["whatif", str(trace), "--scale", f"operator:{name}=50%"]) != exit_codes.OK
        warned = capsys.readouterr().err
        [kind] = re.findall(r"`(host_gap:[^`]*)` matches", warned)
        assert run(["whatif", str(trace), "--scale", f"{kind}=50%"]) == exit_codes.OK


def test_a_change_without_a_kind_is_about_work():
    path = read(WAITING).critical_path(whole=True)
    each = path.what_if([Drop(kind=kind) for kind in WORK])
    assert path.what_if(Drop()).makespan_ns == each.makespan_ns < path.length_ns


def test_only_what_gains_is_listed(trace, capsys):
    _, out = answer(capsys, "whatif", trace)
    lines = re.findall(r"(?<!\S)(\d+)\. .*?saves (\S.*?) \(event", " ".join(out.split()))
    assert [number for number, _ in lines] == [str(row) for row in range(1, len(lines) + 1)]
    assert lines
    assert not any(gain.startswith("0 ") for _, gain in lines)


def test_the_kinds_that_are_told_and_all_others_sum_to_the_whole(trace, capsys):
    _, out = answer(capsys, "path", trace, "--top", "2")
    bars = [line.split()[0] for line in out.splitlines() if "█" in line or "all other" in line]
    assert sum(map(float, bars)) == pytest.approx(100, abs=0.2)
    titles, first, second = out.split("\n\n")[3].splitlines()
    assert titles.split() == ["share", "time", "count", "kind", "name", "event"]
    assert first.split()[-3:] == ["kernel", "long", "3"]
    assert second.split()[-3:] == ["operator", "after", "5"]


def test_a_table_without_rows_has_its_columns_in_csv(trace, capsys):
    code, out = answer(capsys, "table", trace, "copies", "--format", "csv")
    assert code == 0
    assert out.startswith("path,")
    assert out.count("\n") == 1


def test_csv_has_its_header_also_where_the_first_trace_has_no_rows(trace, tmp_path, capsys):
    (tmp_path / "empty").mkdir()
    empty = written(tmp_path / "empty", [])
    _, out = answer(capsys, "path", empty, trace, "--format", "csv")
    assert out.startswith("path,kind,event,")


def test_what_was_lost_of_a_trace_is_said_beside_the_answer(tmp_path, capsys):
    damaged = tmp_path / "cut.json"
    damaged.write_text((tmp_path / written(tmp_path, WAITING)).read_text()[:-60])
    for options in ([], ["--format", "md"], ["--format", "csv"]):
        assert run(["path", str(damaged), *options]) == exit_codes.INCONCLUSIVE
        text = capsys.readouterr()
        assert text.err.startswith(f"warning: {damaged}: ")
        assert "warning" not in text.out
    run(["path", str(damaged), "--json"])
    text = capsys.readouterr()
    assert (json.loads(text.out)["status"], text.err) == ("partial", "")


def test_launches_without_any_work_are_said(said, tmp_path, capsys):
    trace = written(tmp_path, [launch(0, 2, 1), operator("A", 2, 30)])
    assert run(["path", trace]) == exit_codes.OK
    said.within(capsys.readouterr().err)


def test_a_pattern_that_finds_nothing_is_said(said, trace, capsys):
    assert run(["path", trace, "--data-load", "zzz"]) == exit_codes.OK
    said.within(capsys.readouterr().err)


def test_a_bad_pattern_is_told_in_one_line(said, trace, capsys):
    assert run(["path", trace, "--data-load", "("]) == exit_codes.USAGE
    first, *_ = capsys.readouterr().err.splitlines()
    said(first)


def test_of_several_traces_each_is_answered(trace, tmp_path, capsys):
    (tmp_path / "other").mkdir()
    other = written(tmp_path / "other", [operator("A", 0, 5)])
    code, out = answer(capsys, "path", trace, other, trace, "--step", "1", "--json")
    assert code == exit_codes.USAGE
    assert [found["status"] for found in json.loads(out)] == ["ok", "error", "ok"]
    assert json.loads(out)[1]["error"]["path"] == other


def test_an_answer_carries_its_question(trace, capsys):
    _, out = answer(capsys, "whatif", trace, "--scale", "kernel:long=0.5", "--json")
    data = json.loads(out)["data"]
    what = {"kind": "kernel", "matching": "long", "by": 0.5, "time_ns": None}
    assert data["changes"] == [{"change": "scale", **what, "events": None, "time_ranges": None}]
    assert data["share"] == pytest.approx(data["gain_ns"] / data["length_ns"])
    _, out = answer(capsys, "whatif", trace, "--scale", "kernel:long=0.5", "--format", "csv")
    header, row = out.splitlines()
    assert header == "path,window,changes,length_ns,makespan_ns,gain_ns,share"
    assert "kernel:long x 0.5" in row


@pytest.mark.parametrize("width", [60, 80, 120])
def test_lines_are_hardly_wider_than_the_terminal(width, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(width))
    name = "void at::native::" + "very_long_kernel_name<" * 40
    trace = written(tmp_path, [launch(0, 2, 1), kernel(name, 4, 40, 1), operator(name, 2, 30)])
    _, out = answer(capsys, "path", trace)
    lines = out.split("\n\n")[1].splitlines()
    assert max(map(len, lines)) <= max(width, 70)


def test_slack_is_listed_with_what_has_least_of_it_first(trace, capsys):
    _, out = answer(capsys, "table", trace, "segments", "--by", "event", "--format", "jsonl")
    rows = json.loads(out)["data"]["rows"]
    slack = [row["slack_ns"] for row in rows if row["slack_ns"] is not None]
    assert slack == sorted(slack)
    assert {"kind", "name", "start_ns", "duration_ns"} <= rows[0].keys()


@pytest.mark.parametrize(("n_lost", "is_told"), [(1, False), (4, True)])
def test_launches_without_their_kernels_are_told_if_they_are_many(
    n_lost, is_told, tmp_path, capsys
):
    lost = [launch(2 * number, 2 * number + 1, 100 + number) for number in range(n_lost)]
    kept = [
        it
        for number in range(12)
        for it in (
            launch(20 + 10 * number, 21 + 10 * number, 1 + number),
            kernel("gemm", 22 + 10 * number, 31 + 10 * number, 1 + number),
        )
    ]
    _, out = answer(capsys, "summary", written(tmp_path, [*lost, *kept]))
    told = f"{n_lost} calls launched GPU activities that are not in the trace, which has 12"
    assert (told in " ".join(out.split())) == is_told


def test_work_from_before_the_recording_is_no_gain_that_is_named_without_a_word(
    tmp_path, capsys, said
):
    earlier = [kernel("old", 0, 20), kernel("old", 20, 40)]
    recorded = [launch(10, 12, 1), kernel("gemm", 41, 90, 1)]
    trace = written(tmp_path, [*earlier, *recorded, annotation("ProfilerStep#1", 0, 90)])
    _, out = answer(capsys, "whatif", trace, "--json")
    [warning] = [row for row in json.loads(out)["warnings"] if row["code"] == "earlier_work"]
    assert (warning["count"], "(40.0 µs of step 1)" in warning["message"]) == (2, True)
    _, out = answer(capsys, "summary", trace)
    printed = " ".join(out.split())
    said.within(printed)
    said.within(printed)
    later = [kernel("late", 90, 99), annotation("ProfilerStep#1", 0, 99)]
    _, out = answer(capsys, "path", written(tmp_path, [*recorded, *later]), "--json")
    assert "earlier_work" not in out


@pytest.mark.parametrize(
    ("change", "kernels"),
    [
        ("kernel:gemm=0.5", ["nvjet_sm90_tst_128x64_64x8_1x2_h_bz_NTT", "volta_sgemm_64x64_nt"]),
        (":gemm=0.5", ["nvjet_sm90_tst_128x64_64x8_1x2_h_bz_NTT", "volta_sgemm_64x64_nt"]),
        ("kernel:sgemm=0.5", ["volta_sgemm_64x64_nt"]),
    ],
)
def test_the_name_of_a_family_selects_its_kernels(change, kernels, tmp_path, capsys):
    names = [
        "nvjet_sm90_tst_128x64_64x8_1x2_h_bz_NTT",
        "volta_sgemm_64x64_nt",
        "void softmax<gemm>(int)",
    ]
    builder = TraceBuilder()
    for place, name in enumerate(names):
        start = 100 * place
        builder.launch(name, call=(place, place + 1), work=(start + 10, start + 110))
    trace = str(builder.write(tmp_path / "trace.json"))
    code, out = answer(capsys, "whatif", trace, "--scale", change, "--json")
    data = json.loads(out)["data"]
    assert code == 0
    assert data["gain_ns"] == 50_000 * len(kernels)


@pytest.mark.skipif(not SHARED.is_dir(), reason="the shared traces are not here")
def test_the_documented_example_finds_the_products_of_an_h100(said, capsys):
    trace = str(SHARED / "gpu" / "programs" / "kernels.before.json.gz")
    code, out = answer(capsys, "whatif", trace, "--scale", "kernel:gemm=0.5")
    assert code == 0
    said.within(" ".join(out.split()))
