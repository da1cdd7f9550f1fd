"""`longpole table`: the list, one table, its condition, its window, how much is printed."""

from __future__ import annotations

import csv
import inspect
import io
import json
import re
from pathlib import Path

import polars as pl
import pytest

import longpole
from longpole.cli import program
from longpole.cli.answer.table import tables
from longpole.report.document import table_of
from longpole.tables.catalogue import question, views_of
from longpole.tables.questions import TABLES, questions
from longpole.testing import TraceBuilder
from longpole.words.wording import short_name

VIEWS = [(name, by) for name in sorted(questions()) for by in views_of(name)]


@pytest.fixture
def trace(tmp_path):
    builder = TraceBuilder().step(1, (0, 100)).annotation("forward", (0, 40))
    builder.operator("aten::linear", (0, 40)).operator("aten::mm", (1, 39))
    for number in range(3):
        start = 10 * number
        builder.launch(f"gemm{number}", call=(start + 2, start + 4), work=(start + 5, start + 12))
    builder.launch("Memcpy HtoD (Pageable -> Device)", call=(41, 50), work=(42, 48), stream=9)
    builder.launch("ncclDevKernel_AllReduce", call=(50, 52), work=(55, 90), stream=11)
    return str(builder.kernel("unlinked", (91, 95)).write(tmp_path / "trace.json"))


@pytest.fixture
def longpole_table(capsys, trace):
    def run(*arguments):
        code = program.run(["table", trace, *map(str, arguments)])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


def test_without_a_name_the_tables_are_listed_with_a_sentence_each(longpole_table):
    code, out, _ = longpole_table("--format", "csv")
    rows = [*csv.DictReader(io.StringIO(out))]
    listed = {row["table"]: row["sentence"] for row in rows}
    of_ascend = {"ascend_overlap", "collective_waits", "communication_links"}
    assert (code, listed) == (
        0,
        {name: text for name, text in tables().items() if name not in of_ascend},
    )
    assert {"breakdown", "idle", "segments"} <= set(listed)
    assert {row["table"]: row["by"] for row in rows}["queue"] == "stream, time, full"


def test_every_table_is_listed_once_and_has_a_declared_function_in_a_file_of_its_name():
    listed = [name for group in TABLES.values() for name in group]
    assert len(listed) == len(set(listed))
    folder = Path(longpole.__file__).parent / "tables"
    declared = {file.stem for file in folder.glob("*.py") if "\n@table(" in file.read_text("utf-8")}
    assert declared == set(listed) == set(questions())
    assert [name for name in declared if not hasattr(question(name), "declared")] == []


@pytest.mark.parametrize(
    ("kernel_us", "operator_us", "second"), [(900, 10, "Kernels"), (10, 900, "Host")]
)
def test_the_tables_about_what_limits_the_trace_come_first(
    tmp_path, capsys, kernel_us, operator_us, second
):
    builder = TraceBuilder().operator("aten::mm", (0, operator_us))
    builder.launch("gemm", call=(1, 3), work=(operator_us, operator_us + kernel_us))
    path = builder.write(tmp_path / "trace.json")
    code = program.run(["table", str(path), "--json"])
    groups = dict.fromkeys(row["group"] for row in rows_of(capsys.readouterr().out))
    assert (code, [*groups][:2]) == (0, ["Where did the step go", second])
    assert [*groups][-1] == "The trace itself"


def test_without_a_trace_the_tables_are_listed_too(capsys):
    assert program.run(["table"]) == 0
    assert "idle" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("table", "printed", "column"),
    [
        ("kernels", "duration", "duration_ns"),
        ("operators", "host self", "self_ns"),
        ("operators", "device total", "device_ns"),
        ("modules", "share_of_device", "share_of_device"),
        ("kernels", "time", "duration_ns"),
        ("operators", "self time", "self_ns"),
    ],
)
def test_rows_are_sorted_by_a_column_as_it_is_printed(longpole_table, table, printed, column):
    code, out, _ = longpole_table(table, "--json", "--sort", printed)
    _, expected, _ = longpole_table(table, "--json", "--sort", column)
    assert (code, rows_of(out)) == (0, rows_of(expected))


def test_every_printed_column_can_be_sorted_by(longpole_table):
    for name in ("kernels", "idle", "breakdown", "operators"):
        _, out, _ = longpole_table(name)
        head = next(line for line in out.splitlines()[2:] if line.strip())
        for title in re.split(r" {2,}", head.strip()):
            assert longpole_table(name, "--sort", title)[0] == 0, (name, title)


def code_of(name, by):
    """Whether the trace records neither memory nor shapes."""
    return 4 if (name, by) in {("memory", "peak"), ("roofline", "type")} else 0


def asked(name, by, *arguments):
    return getattr(longpole, name)(*arguments, **({} if by is None else {"by": by}))


def words(name, by):
    return [name, *([] if by is None else ["--by", by])]


@pytest.mark.parametrize(("name", "by"), VIEWS)
def test_a_table_is_what_its_function_answers(longpole_table, trace, name, by):
    read = longpole.read_trace(trace)
    answer = asked(name, by, read, longpole.choose_window(read))
    data = {"rows": answer.to_dicts()} if isinstance(answer, pl.DataFrame) else answer.to_dict()
    code, out, err = longpole_table(*words(name, by), "--json")
    assert (code, err) == (code_of(name, by), "")
    assert json.loads(out)["data"] == {"table": name, "by": by, **data}


@pytest.mark.parametrize("name", sorted(questions()))
def test_the_default_of_by_is_the_first_kind_of_rows(name):
    parameter = inspect.signature(question(name)).parameters.get("by")
    assert (parameter and parameter.default) == next(iter(views_of(name)))


@pytest.mark.parametrize("name", [name for name, by in VIEWS if by])
def test_a_kind_of_rows_that_a_table_does_not_have_is_an_error(longpole_table, name):
    with pytest.raises(ValueError, match=r'^by is "\w+".* or "\w+", not \'none\'$'):
        asked(name, "none", TraceBuilder().read())
    assert longpole_table(name, "--by", "none")[0] == 2


def test_an_option_of_another_kind_of_rows_is_refused(longpole_table):
    with pytest.raises(ValueError, match='max_length does not apply to by="time"'):
        longpole.queue(TraceBuilder().read(), by="time", max_length=3)
    _, _, err = longpole_table("kernels", "--shapes")
    assert "--shapes is an option of operators, not of kernels" in err
    _, _, err = longpole_table("gaps", "--by", "time")
    assert "--by is an option of " in err


@pytest.mark.parametrize("order", [("{}", "kernels"), ("kernels", "{}")])
def test_the_name_of_a_table_may_stand_before_or_after_the_trace(trace, capsys, order):
    told = [order if command is None else (command, *order) for command in ("table", None)]
    if order[0] == "kernels":
        told = told[:1]
    program.run(["table", trace, "kernels", "--json"])
    expected = rows_of(capsys.readouterr().out)
    for each in told:
        assert program.run([*(word.format(trace) for word in each), "--json"]) == 0
        assert rows_of(capsys.readouterr().out) == expected
    assert program.run([trace, "--json", "kernels"]) == 0
    assert rows_of(capsys.readouterr().out) == expected


def test_an_existing_path_wins_over_the_name_of_a_table(trace, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("kernels").write_bytes(Path(trace).read_bytes())
    assert program.run([trace, "kernels", "--format", "csv"]) == 0
    assert "kernels," in capsys.readouterr().out
    assert program.run(["kernels", "gaps", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["data"]["table"] == "gaps"
    assert program.run([trace, "--window", "forward", "steps"]) == 0
    assert "steps" in capsys.readouterr().out


@pytest.mark.parametrize(("name", "by"), VIEWS)
def test_a_table_is_printed_in_every_format(longpole_table, name, by):
    for form in ("text", "md", "csv", "html", "jsonl"):
        code, out, err = longpole_table(*words(name, by), "--format", form)
        has_rows = form != "csv" or code_of(name, by) == 0
        assert (code, err, bool(out)) == (code_of(name, by), "", has_rows)


@pytest.mark.parametrize(
    ("name", "own"),
    [
        ("operators", {"--shapes", "--capture-trace"}),
        ("queue", {"--by"}),
        ("segments", {"--by", "--end", "--data-load"}),
        ("graph_kernels", {"--capture-trace"}),
        (None, set()),
    ],
)
def test_the_help_of_a_table_has_its_options_and_no_others(name, own, capsys):
    assert program.run(["table", *([name] if name else []), "--help"]) == 0
    told = set(capsys.readouterr().out.partition("Options:")[2].split())
    of_one = {"--by", "--shapes", "--end", "--data-load", "--capture-trace", "--peak", "--around"}
    assert told & of_one == own
    assert {"--where", "--sort", "--top", "--step"} <= told


@pytest.mark.parametrize(("name", "by"), VIEWS)
def test_without_an_event_every_question_has_an_empty_answer(name, by):
    answer = asked(name, by, TraceBuilder().read())
    rows = answer if isinstance(answer, pl.DataFrame) else answer.records()
    assert len(rows) == 0


@pytest.mark.parametrize(("name", "by"), VIEWS)
def test_an_empty_answer_has_the_columns_and_types_of_a_full_one(trace, name, by):
    empty = asked(name, by, TraceBuilder().read())
    answer = asked(name, by, longpole.read_trace(trace))
    if isinstance(answer, pl.DataFrame):
        assert empty.schema == answer.schema


def test_top_is_the_number_of_rows_of_every_table_in_every_format(longpole_table):
    for name in ("operators", "kernels"):
        _, out, _ = longpole_table(name, "--top", 2, "--json")
        assert len(rows_of(out)) == 2
        assert json.loads(out)["truncated"]["rows"]["shown"] == 2
        _, out, _ = longpole_table(name, "--top", 2, "--format", "csv")
        assert len([*csv.DictReader(io.StringIO(out))]) == 2


def rows_of(out):
    return json.loads(out)["data"]["rows"]


def test_a_condition_says_which_activities_count(longpole_table):
    _, out, _ = longpole_table("kernels", "--json", "--where", "name LIKE 'gemm%' AND stream = 7")
    assert [row["name"] for row in rows_of(out)] == ["gemm0", "gemm1", "gemm2"]
    _, out, _ = longpole_table("segments", "--json", "--where", "event IS NULL")
    assert {row["event"] for row in rows_of(out)} <= {None}
    _, out, _ = longpole_table("segments", "--by", "event", "--json", "--where", "name = 'gemm1'")
    assert [row["name"] for row in rows_of(out)] == ["gemm1"]


@pytest.mark.parametrize("condition", ["nme = 1", "name LIKE", "stream", "1"])
def test_a_condition_that_is_none_is_an_error_of_usage(longpole_table, condition):
    code, out, err = longpole_table("kernels", "--where", condition)
    assert (code, out) == (2, "")
    assert condition in err


def test_a_window_may_be_a_time_an_annotation_or_a_step(longpole_table):
    for options, end_ns in [
        (("--window", "0..8000"), 8_000),
        (("--window", "forward"), 40_000),
        (("--step", 1), 100_000),
    ]:
        _, out, _ = longpole_table("breakdown", "--json", *options)
        assert json.loads(out)["scope"]["window_ns"] == [0, end_ns]
        assert rows_of(out)[0]["window_ns"] == end_ns


def test_what_is_about_the_path_alone_is_refused(longpole_table):
    code, _, err = longpole_table("kernels", "--step", 1, "--end", "gpu")
    assert code == 2
    assert "--end is an option of segments, sync, not of kernels" in err


def test_the_rest_of_a_long_table_is_announced(longpole_table, said):
    _, out, _ = longpole_table("kernels", "--top", 2)
    said.within(out)
    _, out, _ = longpole_table("kernels", "--top", 2, "--json")
    assert json.loads(out)["truncated"] == {"rows": {"shown": 2, "total": 6}}


def test_json_is_ascii_whatever_the_names_are(tmp_path, capsys):
    name = 'kérnel\x1b\u2028\U0001f600"\\'
    path = TraceBuilder().launch(name, call=(0, 1), work=(1, 9)).write(tmp_path / "a.json")
    for form in ("json", "jsonl"):
        program.run(["table", str(path), "kernels", "--format", form])
        out = capsys.readouterr().out
        assert out.isascii()
        assert rows_of(out)[0]["name"] == name


def test_a_step_that_the_profiler_drew_on_a_stream_is_not_what_a_kernel_belongs_to(tmp_path):
    ranges = [("ProfilerStep#1", 0, 100), ("forward", 10, 30)]
    drawn = [event(name, "gpu_user_annotation", (0, 7), start, end) for name, start, end in ranges]
    kernels = [event("a", "kernel", (0, 7), 12, 20), event("b", "kernel", (0, 7), 50, 60)]
    step = [event("ProfilerStep#1", "user_annotation", (1, 1), 0, 100)]
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"traceEvents": [*step, *drawn, *kernels]}))
    trace = longpole.read_trace(path)
    found = longpole.kernels(trace, longpole.choose_window(trace, whole=True), by="annotation")
    assert sorted(found.select("name", "annotation").rows()) == [("a", "forward"), ("b", None)]


def event(name, category, place, start_us, end_us):
    process, thread = place
    return {
        "ph": "X",
        "name": name,
        "cat": category,
        "pid": process,
        "tid": thread,
        "ts": start_us,
        "dur": end_us - start_us,
        "args": {"device": 0, "stream": 7} if process == 0 else {},
    }


def test_the_time_of_a_kernel_is_not_titled_as_its_name():
    frame = pl.DataFrame({"kernel": ["gemm"], "kernel_ns": [5], "operator_name": ["mm"]})
    titles = [column.title for column in table_of(frame.with_columns(operator_ns=1)).columns]
    assert titles == ["kernel", "kernel time", "operator_name", "operator time"]


def test_each_kernel_of_a_sequence_is_named_as_it_is_alone():
    names = [
        "Memset (Device)",
        "sm80_xmma_fprop_implicit_gemm_tf32f32_tf32f32_f32_nhwckrsc_nhwc_tile",
    ]
    [[shown]] = table_of(pl.DataFrame({"kernels": [names]})).rows
    assert shown == " -> ".join(map(short_name, names))
    assert "tf32" in shown


def test_rows_are_sorted_before_they_are_cut(longpole_table):
    columns = ("activities", "--json", "--top", "2", "--sort")
    _, out, _ = longpole_table(*columns, "duration_ns")
    assert [row["name"] for row in rows_of(out)] == ["ncclDevKernel_AllReduce", "gemm0"]
    _, out, _ = longpole_table(*columns, "name")
    assert [row["name"][:6] for row in rows_of(out)] == ["Memcpy", "gemm0"]
    _, out, _ = longpole_table(
        *words("segments", "event"), "--json", "--top", "1", "--sort", "duration_ns"
    )
    assert rows_of(out)[0]["duration_ns"] == 100_000


def test_what_is_not_known_is_sorted_last(longpole_table):
    _, out, _ = longpole_table("activities", "--json", "--sort", "delay_ns")
    assert rows_of(out)[-1]["name"] == "unlinked"


def test_a_column_that_is_not_there_is_an_error_that_names_those_that_are(longpole_table, said):
    code, _, err = longpole_table("breakdown", "--sort", "duration")
    assert code == 2
    said.within(err)
    _, _, err = longpole_table("operators", "--sort", "duration")
    said.within(err)


def test_steps_are_listed_all_unless_a_window_is_asked_for(capsys, tmp_path):
    builder = TraceBuilder()
    for number in range(4):
        start = 100 * number
        builder.step(number, (start, start + 90)).operator("aten::mm", (start, start + 80))
    path = str(builder.write(tmp_path / "steps.json"))
    assert program.run(["table", path, "steps", "--json"]) == 0
    assert [row["step"] for row in rows_of(capsys.readouterr().out)] == [0, 1, 2, 3]
    assert program.run(["table", path, "steps", "--json", "--window", "0..80000"]) == 0
    assert [row["step"] for row in rows_of(capsys.readouterr().out)] == [0]
    output = tmp_path / "steps.csv"
    assert program.run(["convert", path, "--table", "steps", "-o", str(output)]) == 0
    assert len(output.read_text().splitlines()) == 1 + 4


def test_a_table_without_a_row_is_an_answer(longpole_table):
    code, _, err = longpole_table("activities", "--where", "name = 'none'")
    assert (code, err) == (0, "")


def test_a_backward_pass_counts_under_the_annotation_of_its_forward_operators():
    forward = {"Sequence number": 7, "Fwd thread id": 0}
    backward = {"Sequence number": 7, "Fwd thread id": 1}
    trace = (
        TraceBuilder()
        .annotation("model", (0, 40))
        .operator("aten::mm", (5, 30), **forward)
        .launch("gemm", call=(10, 12), work=(20, 50))
        .operator("MmBackward0", (100, 140), thread=2, **backward)
        .launch("gemm", call=(110, 112), work=(120, 170), thread=2)
        .launch("fill", call=(150, 152), work=(180, 190), thread=2)
        .read()
    )
    found = longpole.kernels(trace, longpole.choose_window(trace, whole=True), by="annotation")
    columns = ("annotation", "is_backward", "name", "duration_ns")
    assert set(found.select(columns).rows()) == {
        ("model", False, "gemm", 30_000),
        ("model", True, "gemm", 50_000),
        (None, False, "fill", 10_000),
    }


def test_an_empty_table_says_why(longpole_table, said):
    said.within(longpole_table("kernels", "--where", "name = 'x'")[1])
    said.within(longpole_table("graph_kernels")[1])
