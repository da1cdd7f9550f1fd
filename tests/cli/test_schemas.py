"""Every JSON answer is what its schema in the package says."""

from __future__ import annotations

import gzip
import json
import re
from functools import cache
from pathlib import Path
from typing import get_args

import click
import jsonschema
import pytest

from longpole.answer import advice
from longpole.cli import program
from longpole.cli.answer import exit_codes
from longpole.cli.answer.table import tables
from longpole.cli.schema import schema_for, schema_names
from longpole.devices.driverless import FakeProvider
from longpole.devices.protocol import Process, Reading
from longpole.remedies.sides import Cause
from longpole.report.document import AbstentionCode
from longpole.testing import TraceBuilder
from mindspore_files import cpu_profile
from real_traces import SHARED
from tiny_traces import kernel, launch, operator

UNLINKED = [operator("a", 0, 10), *(kernel("K", 400 * n, 400 * n + 20) for n in range(6))]
EMPTY = [operator("a", 5, 5), kernel("b", 5, 5)]
LAUNCHED = [launch(0, 2, 1), kernel("K", 3, 10, 1)]
NAMES = schema_names(program.longpole)
GEMM = {"argv": ["sh", "-c", "echo OP:gemm,TIME:0.25,WS:0"], "key": "gemm", "tags": {"m": 64}}
FAILING = {"argv": ["sh", "-c", "exit 3"], "key": "bad"}


@cache
def validator(name):
    schema = schema_for(name.replace(".", " "), program.longpole)
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


@pytest.fixture
def answers(tmp_path, monkeypatch, capsys):
    """Ask in JSON; give the answers, each checked against both of its schemas."""
    monkeypatch.chdir(tmp_path)

    def ask(name, *arguments):
        words = name.split(".")
        # The name of a table stands behind the traces.
        if "table" in words:
            _, *names = words
            command = ["table", *arguments, *names[:1], *(f"--by={word}" for word in names[1:])]
        else:
            command = [*words, *arguments]
        code = program.run([*map(str, command), "--json"])
        found = json.loads(capsys.readouterr().out)
        documents = found if isinstance(found, list) else [found]
        for document in documents:
            validator("envelope").validate(document)
            answered = "table" if "table" in words else name
            is_profile = document["schema"] == "longpole.mindspore/1"
            assert document["schema"] == f"longpole.{answered}/1" or is_profile
            if document["data"] is not None:
                validator("mindspore" if is_profile else name).validate(document["data"])
        reasons = [reason for document in documents for reason in document["abstains_because"]]
        is_open = code == exit_codes.INCONCLUSIVE
        is_open |= any(document["status"] == "abstained" for document in documents)
        assert bool(reasons) == is_open
        return documents

    return ask


@pytest.fixture
def trace(tmp_path):
    builder = (
        TraceBuilder()
        .header(distributedInfo={"rank": 3})
        .step(1, (0, 100))
        .python("data.py(7): load", (0, 20))
        .operator("aten::mm", (20, 60))
        .launch("gemm", call=(60, 65), work=(66, 90))
        .launch("ncclDevKernel_AllReduce", call=(66, 68), work=(80, 95), stream=9)
        .call("cudaDeviceSynchronize", (70, 99))
        .kernel("orphan", (2, 9), device=1)
    )
    return builder.write(tmp_path / "trace.json.gz")


@pytest.mark.parametrize(
    ("name", "options"),
    [("summary", ()), ("path", ()), ("whatif", ()), ("check", ())],
)
def test_an_answer_about_a_damaged_trace_is_as_its_schema_says(answers, trace, name, options):
    damaged = trace.with_name("cut.json")
    text = gzip.decompress(trace.read_bytes())
    damaged.write_bytes(text[: len(text) // 2])
    [document] = answers(name, damaged, *options)
    assert document["status"] == "partial"


@pytest.mark.parametrize(
    ("question", "events", "code"),
    [
        ("summary", [], "no_work"),
        ("path", [], "no_work"),
        ("path", EMPTY, "empty_window"),
        ("summary", EMPTY, "empty_window"),
        ("summary", UNLINKED, "unlinked"),
        ("path", UNLINKED, "unlinked"),
        ("whatif", UNLINKED, "unlinked"),
        ("whatif --drop kernel:none --window all", LAUNCHED, "change_without_effect"),
        ("table.memory", LAUNCHED, "no_rows"),
        ("diff b.json", LAUNCHED, "noise"),
        ("ranks", LAUNCHED, "no_calls"),
    ],
)
def test_an_answer_that_abstains_says_why_by_a_code(answers, tmp_path, question, events, code):
    more = [*events, operator("more", 10, 40)]
    for name, given in (("a.json", events), ("b.json", more)):
        (tmp_path / name).write_text(json.dumps({"traceEvents": given}))
    name, *options = question.split()
    [document] = answers(name, "a.json", *options)
    assert [reason["code"] for reason in document["abstains_because"]] == [code]


def test_every_code_of_an_abstention_is_explained():
    page = (Path(__file__).parents[2] / "docs" / "exit-codes.md").read_text()
    rows = [line for line in page.splitlines() if line.startswith("| `")]
    named = {code for line in rows for code in re.findall(r"`(\w+)`", line.split("|")[1])}
    assert set(get_args(AbstentionCode)) <= named


def test_every_cause_of_a_missing_verdict_is_a_code_with_a_sentence():
    core = Path(__file__).parents[2] / "rust/longpole-core/src/path/remedies/uncertainty.rs"
    of_core = set(re.findall(r'Self::\w+ => "(\w+)"', core.read_text()))
    assert of_core <= set(get_args(Cause)) <= set(get_args(AbstentionCode))
    # A verdict that is withheld has a sentence of its own; see `answer/withheld.py`.
    withheld = {"damaged", "impossible_times"}
    assert set(advice._CAUSES) | withheld == set(get_args(Cause))


def test_a_damaged_trace_is_a_code_of_its_own(answers, trace):
    damaged = trace.with_name("cut.json")
    damaged.write_bytes(gzip.decompress(trace.read_bytes())[:-300])
    [document] = answers("path", damaged, "--window=all")
    assert document["abstains_because"] == [{"code": "damaged", "where": "whole trace"}]


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("summary", ()),
        ("check", ()),
        ("path", ()),
        ("path", ("--window=all",)),
        ("table.operators", ()),
        ("table.operators", ("--shapes", "--where", "name = 'gemm'")),
        ("table.modules.path", ("--annotations", "Profiler")),
        ("table.functions", ("--top", "1")),
        ("table.roofline", ("--peak", "fp32=20", "--peak", "bandwidth=900")),
        ("table.roofline.type", ("--peak", "fp32=20")),
        ("table.memory", ("--window=all",)),
        ("convert", ("-o", "path.pftrace")),
        ("convert", ("-o", "kernels.parquet", "--table", "kernels")),
        ("whatif", ()),
        (
            "whatif",
            ("--scale", "kernel:gemm=0.5", "--drop", "launch", "--remove-wait", "queue_full"),
        ),
    ],
    ids=str,
)
def test_an_answer_about_a_trace_is_as_its_schema_says(answers, trace, name, options):
    [document] = answers(name, trace, *options)
    assert document["data"] is not None


def test_an_answer_about_ranks_is_as_its_schema_says(answers, tmp_path):
    for rank, start in enumerate((10, 60)):
        builder = TraceBuilder().header(distributedInfo={"rank": rank, "world_size": 2})
        builder.operator("aten::mm", (0, start))
        builder.launch("ncclDevKernel_AllReduce", call=(start, start + 3), work=(start + 5, 100))
        builder.write(tmp_path / f"rank{rank}.json.gz")
    (tmp_path / "rank2.json").write_text("no trace", encoding="utf-8")
    [document] = answers("ranks", tmp_path)
    assert document["status"] == "partial"
    assert [late["rank"] for late in document["data"]["late_ranks"]] == [1]


def test_a_comparison_is_as_its_schema_says(answers, trace):
    [document] = answers("diff", trace, trace)
    assert document["data"]["verdict"] == "neutral"


def test_a_report_that_was_written_is_as_its_schema_says(answers, trace):
    [document] = answers("report", trace, "-o", "report.html")
    assert "timeline" in document["data"]["sections"]


def test_the_list_of_tables_is_as_its_schema_says(answers, trace):
    [document] = answers("table", trace)
    listed = {row["table"] for row in document["data"]["rows"]}
    assert listed == {*tables()} - {"ascend_overlap", "collective_waits", "communication_links"}


OF_TABLES = [name.replace(" ", ".") for name in NAMES if name.startswith("table ")]


@pytest.mark.parametrize("name", OF_TABLES)
def test_a_table_is_as_its_schema_says(answers, trace, name):
    [document] = answers(name, trace)
    assert name.startswith(f"table.{document['data']['table']}")


@pytest.mark.parametrize("most_bytes", [1.5e4, pytest.param(1e9, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", ["summary", "path", *OF_TABLES])
def test_answers_about_real_traces_are_as_their_schema_says(answers, name, most_bytes):
    traces = sorted((SHARED / "traces").glob("*.json.gz"))
    traces = [trace for trace in traces if trace.stat().st_size < most_bytes]
    if not traces:
        pytest.skip(f"no traces in {SHARED / 'traces'}")
    assert len(answers(name, *traces)) == len(traces)


def test_an_answer_that_is_none_is_as_the_envelope_says(answers, tmp_path):
    empty = TraceBuilder().write(tmp_path / "empty.json")
    assert [found["data"] for found in answers("summary", empty, "missing.json")] == [None, None]


@pytest.mark.parametrize("remedy", ["round_trip", "recurring_call"])
def test_the_answer_about_one_remedy_is_as_its_schema_says(answers, trace, remedy):
    [document] = answers("whatif", trace, "--remedy", remedy)
    assert all(row["remedy"] == remedy for row in document["data"]["remedies"])


def test_remedies_are_explained_as_the_schema_says(answers):
    [document] = answers("whatif", "--remedy", "tensor_cores")
    assert len(document["data"]["explained"][0]["measured"]) == 2


def test_the_devices_are_as_their_schema_says(answers):
    [document] = answers("devices", "fake:2")
    assert len(document["data"]["devices"]) == 2


def test_everything_that_is_read_of_a_device_is_in_the_schema(answers, monkeypatch):
    process = Process(pid=7, memory_bytes=1 << 30, kind="compute")
    reading = Reading(1500, 1980, 2619, 40.0, 70.5, 0.5, 1 << 30, ("sw_power_cap",), 0, (process,))
    monkeypatch.setattr(FakeProvider, "read", lambda *_: reading)
    [document] = answers("devices", "fake:1")
    [device] = document["data"]["devices"]
    assert device.keys() > reading.to_dict().keys()


def test_the_answers_of_bench_are_as_their_schemas_say(answers, tmp_path):
    (tmp_path / "jobs.jsonl").write_text(f"{json.dumps(GEMM)}\n{json.dumps(FAILING)}\n")
    (tmp_path / "profiler.log").write_text("OP:a,TIME:0.25,WS:0\nOP:b,TIME:1.2.3,WS:0\n")
    [ran] = answers("bench.run", "jobs.jsonl", "--devices", "cpu")
    assert ran["data"]["outcomes"] == {"nonzero": 1, "ok": 1}
    [jobs] = answers("bench.compare", "jobs.results.jsonl", "--by", "job")
    assert len(jobs["data"]["records"]) == 2
    [best] = answers("bench.compare", "jobs.results.jsonl")
    assert best["data"]["best"][0]["name"] == "gemm"
    assert answers("bench.extract", "profiler.log")[0]["data"]["rejected"]
    assert answers("bench.compare", "jobs.results.jsonl", "jobs.results.jsonl")


def test_timings_are_as_their_schema_says(answers, tmp_path, monkeypatch):
    (tmp_path / "timed.py").write_text("def good():\n    pass\n\ndef bad():\n    raise OSError\n")
    monkeypatch.syspath_prepend(tmp_path)
    limits = ("--budget", "0.05", "--runs", "2")
    [found] = answers("bench.time", "timed:good", "timed:bad", *limits)
    assert found["status"] == "abstained"
    assert [row["n_runs"] for row in found["data"]["functions"]] == [2, 0]
    [alone] = answers("bench.time", "timed:good", *limits)
    assert alone["status"] == "ok"


def test_the_answers_of_a_search_are_as_their_schema_says(answers, tmp_path):
    (tmp_path / "task.toml").write_text(
        "[parameters]\ns = [0.01, 0.02]\n[candidate]\ncommand = 'sleep {s}'\n"
    )
    limits = ("--devices", "cpu", "--budget", "0.05", "--runs", "1")
    [found] = answers("tune", "task.toml", *limits)
    assert found["data"]["winner"]["point"] == {"s": 0.01}


def test_a_script_that_was_written_is_as_its_schema_says(answers, tmp_path):
    inputs = {"Input Dims": [[2, 3]], "Input type": ["float"]}
    TraceBuilder().operator("aten::relu", (0, 20), **inputs).write(tmp_path / "op.json")
    [written] = answers("repro", "op.json", "0", "-o", "op.py")
    assert written["data"]["operator"] == "aten::relu"


def test_an_answer_about_a_mindspore_profile_is_as_its_schema_says(answers, tmp_path):
    [_, document] = answers("summary", cpu_profile(tmp_path / "profile"))
    assert document["data"]["ranks"][0]["operators"]
    [*_, document] = answers("check", tmp_path / "profile")
    assert document["schema"] == "longpole.mindspore/1"
    for folder in ("ms200_cpu_graph", "synthetic/gpu_async", "ms200_minddata", "mindinsight_text"):
        if (SHARED / "mindspore" / folder).is_dir():
            *_, document = answers("summary", SHARED / "mindspore" / folder)
            assert document["data"]["ranks"]


def test_a_schema_refuses_what_is_not_in_it():
    schema = validator("table.gaps")
    known = {"table": "gaps", "by": None, "rows": []}
    assert schema.is_valid(known)
    assert not schema.is_valid(known | {"more": 1})
    assert not schema.is_valid(known | {"rows": [{"device": 0}]})


@pytest.mark.parametrize("name", NAMES)
def test_a_schema_is_printed(name, capsys):
    assert program.run(["schema", *name.split()]) == 0
    assert json.loads(capsys.readouterr().out)["$id"] == f"longpole.{name.replace(' ', '.')}/1"


def test_every_command_that_answers_has_a_schema(capsys):
    program.run(["schema"])
    listed = capsys.readouterr().out.splitlines()
    assert listed == NAMES
    without = {"completion", "schema", "chakra show", "guide", "mcp"}
    # `longpole ranks` answers about dumps with `dumps`, `longpole FOLDER` with `mindspore`.
    others = {"envelope", "dumps", "mindspore"}
    others |= {name for name in NAMES if name.startswith("table ")}
    assert set(commands(program.longpole)) - without == set(listed) - others


def commands(group, *before):
    """Return the names of all commands, those of groups with the group in front."""
    for name in group.list_commands(None):
        command = group.get_command(None, name)
        if isinstance(command, click.Group):
            yield from commands(command, *before, name)
        else:
            yield " ".join([*before, name])


def test_a_schema_that_is_not_there_is_a_usage_error(capsys, said):
    assert program.run(["schema", "sumary"]) == 2
    said.within(capsys.readouterr().err)
