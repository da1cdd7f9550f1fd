"""`longpole convert`: tables as files of other programs, whole or not at all."""

from __future__ import annotations

import json

import polars as pl
import pytest

import longpole
from longpole.cli import program
from longpole.formats.convert.flame import flame, folded
from longpole.testing import TraceBuilder

READERS = {
    ".parquet": pl.read_parquet,
    ".arrow": pl.read_ipc,
    ".csv": pl.read_csv,
    ".jsonl": pl.read_ndjson,
}


@pytest.fixture
def trace(tmp_path):
    builder = TraceBuilder().step(1, (0, 40)).step(2, (40, 80))
    for start in (0, 40):
        builder.operator("aten::mm", (start, start + 20))
        builder.launch("gemm", call=(start + 1, start + 5), work=(start + 6, start + 30))
    return builder.write(tmp_path / "trace.json.gz")


def convert(*arguments):
    return program.run(["convert", *map(str, arguments)])


@pytest.mark.parametrize("suffix", READERS)
def test_every_format_holds_what_the_table_holds(trace, suffix):
    output = trace.with_suffix(suffix)
    assert convert(trace, "-o", output, "--table", "kernels", "--step", 2) == 0
    read = longpole.read_trace(trace)
    expected = longpole.kernels(read, longpole.choose_window(read, 2))
    texts = expected.with_columns(pl.col(pl.Categorical).cast(pl.String)).to_dicts()
    found = READERS[suffix](output).with_columns(pl.col(pl.Categorical).cast(pl.String))
    assert found.to_dicts() == texts


def test_without_a_table_all_events_are_written(trace, capsys):
    output = trace.with_suffix(".parquet")
    assert convert(trace, "-o", output, "--json") == 0
    assert json.loads(capsys.readouterr().out)["data"]["rows"] == 8
    events = longpole.read_trace(trace, args="ids").events
    assert pl.read_parquet(output)["start_ns"].to_list() == events["start_ns"].to_list()
    assert convert(trace, "-f", "-o", output, "--step", 2, "--where", "kind = 'kernel'") == 0
    assert pl.read_parquet(output)["start_ns"].to_list() == [46_000]


@pytest.mark.parametrize("table", ["segments --by event", "kernels --by operator"])
def test_tables_of_the_path_and_with_lists_are_written(trace, table):
    output = trace.with_suffix(".csv")
    assert convert(trace, "-o", output, "--table", *table.split()) == 0
    assert pl.read_csv(output).height > 0


@pytest.mark.parametrize(
    ("table", "told"),
    [
        ("queue --by stack", "--by of queue is one of stream, time, full, not 'stack'"),
        ("gaps --by time", "gaps has one kind of rows; leave out --by"),
    ],
)
def test_a_kind_of_rows_that_a_table_does_not_have_is_refused(trace, capsys, table, told):
    assert convert(trace, "-o", trace.with_suffix(".csv"), "--table", *table.split()) == 2
    assert told in capsys.readouterr().err


def test_a_file_is_replaced_only_on_request_and_the_trace_never(trace, capsys):
    output = trace.with_suffix(".csv")
    output.write_text("mine")
    assert convert(trace, "-o", output) != 0
    assert output.read_text() == "mine"
    assert convert(trace, "-o", output, "-f") == 0
    copy = trace.rename(trace.with_suffix(".csv"))
    before = copy.read_bytes()
    assert convert(copy, "-o", copy, "-f") != 0
    assert copy.read_bytes() == before
    assert "never replaced" in capsys.readouterr().err


def test_another_ending_is_an_error_of_usage(trace, capsys):
    assert convert(trace, "-o", trace.with_suffix(".xlsx")) == 2
    assert "--output ends in .parquet, .arrow, .csv, .jsonl" in capsys.readouterr().err


@pytest.mark.parametrize("time", ["host", "device", "path"])
def test_a_flame_graph_shows_the_time_that_was_asked_for(trace, time):
    window = longpole.choose_window(longpole.read_trace(trace), 2)
    expected = list(flame(longpole.read_trace(trace), window, time=time))
    output = trace.with_suffix(".folded")
    assert convert(trace, "-o", output, "--time", time, "--step", 2) == 0
    assert output.read_text(encoding="utf-8") == "".join(folded(expected))
    output = trace.with_suffix(".speedscope.json")
    assert convert(trace, "-o", output, "--time", time, "--step", 2) == 0
    profile = json.loads(output.read_text(encoding="utf-8"))["profiles"][0]
    assert profile["endValue"] == sum(ns for _, ns in expected) > 0


@pytest.mark.parametrize(
    ("suffix", "options", "wrong"),
    [
        (".csv", ["--time", "host"], "--time has no meaning for a table"),
        (".folded", ["--where", "stream = 7"], "--where has no meaning for a flame graph"),
        (".longpole", ["--table", "kernels"], "--table has no meaning for all tables"),
    ],
)
def test_an_option_without_a_meaning_is_an_error_of_usage(trace, suffix, options, wrong, capsys):
    assert convert(trace, "-o", trace.with_suffix(suffix), *options) == 2
    assert wrong in capsys.readouterr().err
