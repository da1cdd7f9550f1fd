"""The server of `longpole mcp`: questions do not wait for each other, and each has limits."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import signal
import sqlite3
import sys
import time
from contextlib import closing
from pathlib import Path

import jsonschema
import pytest

import longpole
from cli.mcp_client import Client
from longpole.cli.mcp import tools
from longpole.testing import TraceBuilder
from oracles.simulator import simulate
from oracles.simulator.nsight import write_nsight
from processes import started

EXAMPLE = Path(longpole.__file__).parent / "examples/trace.json.gz"
pytestmark = [
    pytest.mark.needs("mcp"),
    pytest.mark.skipif(sys.platform != "linux", reason="reads /proc"),
]

TRACE = {"trace": "trace.json.gz"}


@pytest.fixture
def folder(tmp_path):
    inside = tmp_path / "traces"
    inside.mkdir()
    shutil.copy(EXAMPLE, inside)
    return inside


def children(process):
    listed = Path(f"/proc/{process}/task").glob("*/children")
    return [int(word) for path in listed for word in path.read_text().split()]


def test_a_slow_question_does_not_block_the_next(folder):
    with Client(folder) as client:
        client.answer("check", TRACE)
        [idle] = children(client.server.pid)
        os.kill(idle, signal.SIGSTOP)  # as slow as a question can be
        slow = client.ask("check", TRACE)
        client.wait(client.ask("summary", TRACE))
        assert slow not in client.answers
        os.kill(idle, signal.SIGCONT)
        client.wait(slow)
        assert client.answers[slow]["status"] == "ok"


def test_thirty_six_questions_at_once_are_all_answered(folder):
    wrong = ({"trace": "../x"}, {"trace": ["x"]}, {"trace": "trace.json.gz", "top": 10**30})
    asked = [
        ("summary", TRACE),
        ("table", {**TRACE, "table": "kernels"}),
        ("traces", {}),
        *(("summary", arguments) for arguments in wrong),
    ] * 6
    with Client(folder) as client:
        numbers = [client.ask(*question) for question in asked]
        client.wait(*numbers)
        answers = [client.answers[number] for number in numbers]
    assert len(answers) == 36
    assert [it["status"] for it in answers] == ["ok", "ok", "ok", "error", "error", "error"] * 6
    for (name, _), answer in zip(asked, answers, strict=True):
        jsonschema.validate(answer, tools.output_schema(name))


def test_a_question_has_a_limit_of_time(folder, said):
    with Client(folder, "--timeout", "0.001") as client:
        error = client.answer("summary", TRACE)["error"]
    assert error["code"] == "time_limit"
    said(error["message"])


def test_a_question_has_a_limit_of_memory_and_the_next_one_is_answered(folder):
    event = '{"ph":"X","name":"%d%s","cat":"cpu_op","ts":%d,"dur":1,"pid":1,"tid":1},'
    long = "n" * 3_000
    with gzip.open(folder / "names.json.gz", "wt", compresslevel=1) as file:
        file.write('{"traceEvents":[')
        file.writelines(event % (number, long, 2 * number) for number in range(200_000))
        file.write("{}]}")
    with Client(folder, "--memory-limit", "0.5") as client:
        error = client.answer("summary", {"trace": "names.json.gz"})["error"]
        assert error["code"] == "memory_limit"
        assert client.answer("summary", TRACE)["status"] == "ok"


@pytest.mark.parametrize(
    ("signal_", "hint"), [("SIGSEGV", "please report"), ("SIGKILL", "if the machine ran out")]
)
def test_a_worker_that_dies_is_not_blamed_on_memory_and_the_next_question_is_answered(
    signal_, hint, folder
):
    with Client(folder) as client:
        client.answer("check", TRACE)
        [idle] = children(client.server.pid)
        os.kill(idle, getattr(signal, signal_))
        error = client.answer("check", TRACE)["error"]
        assert error["code"] == "ended"
        assert error["message"].endswith(f"ended with {signal_}")
        assert hint in error["hint"]
        assert client.answer("check", TRACE)["status"] == "ok"


def test_a_pipe_or_device_in_the_folder_is_refused_and_blocks_nothing(folder, said):
    os.mkfifo(folder / "pipe.json")
    os.mkfifo(folder / "12_hip_api_trace.csv")
    shutil.copy(EXAMPLE, folder / "12_kernel_trace.csv.json.gz")
    (folder / "device.json").symlink_to("/dev/zero")
    with Client(folder) as client:
        piped = client.answer("summary", {"trace": "pipe.json"})["error"]
        device = client.answer("summary", {"trace": "device.json"})["error"]
        listed = client.answer("traces", {})["data"]["traces"]
        assert client.answer("check", TRACE)["status"] == "ok"
    assert piped["code"] == "not_a_regular_file"
    said(piped["message"])
    assert device["code"] == "permission_denied"
    assert "pipe.json" not in json.dumps(listed)


def test_a_name_that_is_not_unicode_ends_no_server(folder):
    shutil.copy(EXAMPLE, os.fsencode(folder) + b"/\xff.json.gz")
    with Client(folder) as client:
        names = {Path(row["path"]).name for row in client.answer("traces", {})["data"]["traces"]}
        assert names == {"trace.json.gz", "?.json.gz"}
        client.ask("summary", {"trace": "\ud800"})  # which the SDK refuses, without its number
        assert client.answer("check", TRACE)["status"] == "ok"


def test_the_processes_end_with_the_server(folder):
    with Client(folder) as client:
        client.answer("check", TRACE)
        workers = children(client.server.pid)
    assert workers
    for worker in workers:
        with pytest.raises(ProcessLookupError):
            os.kill(worker, 0)


# Asks one question many times in a process that is confined as those of the server are.
ASKS_OFTEN = """
import json, sys
from pathlib import Path
import polars
from longpole._core import confine
from longpole.cli.mcp.tools import call
from longpole.cli.mcp.worker import watch

folder, name, arguments, number = json.loads(sys.argv[1])
confine([folder])
watch()
for _ in range(number):
    print(json.dumps(call(name, arguments, [Path(folder)])), flush=True)
"""


def asked_often(folder, arguments, number, meanwhile):
    """Ask for a table many times, and do something again and again meanwhile."""
    words = json.dumps([str(folder), "table", arguments, number])
    with (folder.parent / "answers.jsonl").open("w+b") as answers:
        command = [sys.executable, "-c", ASKS_OFTEN, words]
        with started(command, stdout=answers) as process:
            while process.poll() is None:
                meanwhile()
        assert process.returncode == 0
        answers.seek(0)
        return answers.read().splitlines()


def trace_with(kernel, path):
    TraceBuilder().launch(kernel, call=(0, 1), work=(2, 9)).write(path)


def swap(path, places):
    """Replace a path by links to two places in turns."""
    for number, place in enumerate(places):
        link = path.with_name(f"{path.name}.{number}.link")
        link.symlink_to(place)
        link.replace(path)


KERNELS = """"Kind","Agent_Id","Queue_Id","Kernel_Id","Kernel_Name","Correlation_Id",\
"Start_Timestamp","End_Timestamp"
"KERNEL_DISPATCH",1,1,1,"gemm",1,100,200
"""
CALLS = """"Domain","Function","Process_Id","Thread_Id","Correlation_Id",\
"Start_Timestamp","End_Timestamp"
"HIP_RUNTIME_API","SECRET",7,7,1,10,20
"""


def the_file(inside, outside):
    trace_with("public", inside.parent / "public.json")
    shutil.copy(inside.parent / "public.json", inside / "real.json")
    trace_with("SECRET", outside / "trace.json")
    swapped = inside / "trace.json"
    return swapped, [inside / "real.json", outside / "trace.json"], "trace.json"


def a_folder_on_the_way(inside, outside):
    (inside / "real").mkdir()
    trace_with("public", inside / "real/trace.json")
    trace_with("SECRET", outside / "trace.json")
    return inside / "way", [inside / "real", outside], "way/trace.json"


def the_calls_of_rocprof(inside, outside):
    (inside / "7_kernel_trace.csv").write_text(KERNELS)
    (inside / "real.csv").write_text(CALLS.replace("SECRET", "public"))
    (outside / "7_hip_api_trace.csv").write_text(CALLS)
    swapped = inside / "7_hip_api_trace.csv"
    return swapped, [inside / "real.csv", outside / "7_hip_api_trace.csv"], "7_kernel_trace.csv"


def a_folder_of_ascend(inside, outside):
    for place, name in ((inside / "real", "public"), (outside, "SECRET")):
        (place / "ASCEND_PROFILER_OUTPUT").mkdir(parents=True)
        trace_with(name, place / "ASCEND_PROFILER_OUTPUT/trace_view.json")
    return inside / "way", [inside / "real", outside], "way"


def a_database(inside, outside):
    for path, name in ((inside / "real.sqlite", "public"), (outside / "trace.sqlite", "SECRET")):
        write_nsight(simulate("training", seed=1, steps=1), path)
        with closing(sqlite3.connect(path)) as database:
            database.execute("UPDATE StringIds SET value = value || ' ' || ?", (name,))
            database.commit()
    swapped = inside / "trace.sqlite"
    return swapped, [inside / "real.sqlite", outside / "trace.sqlite"], "trace.sqlite"


LAYOUTS = [the_file, a_folder_on_the_way, the_calls_of_rocprof, a_folder_of_ascend, a_database]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_link_that_is_swapped_during_a_question_gives_nothing_from_outside(tmp_path, layout):
    inside, outside = tmp_path / "traces", tmp_path / "outside"
    inside.mkdir()
    outside.mkdir()
    swapped, places, trace = layout(inside, outside)
    asked = {"trace": trace, "table": "events", "window": "all"}
    swap(swapped, places[:1])
    [seen] = asked_often(inside, asked, 1, lambda: time.sleep(0.01))
    assert b"public" in seen
    answers = asked_often(inside, asked, 200, lambda: swap(swapped, places))
    assert len(answers) == 200
    assert not any(b"SECRET" in answer for answer in answers)
    statuses = {json.loads(answer)["status"] for answer in answers}
    assert statuses == {"ok", "error"}, "both the file inside and the link were met"


@pytest.mark.parametrize("layout", LAYOUTS)
def test_without_confinement_the_link_would_be_followed(tmp_path, layout):
    inside, outside = tmp_path / "traces", tmp_path / "outside"
    inside.mkdir()
    outside.mkdir()
    swapped, places, trace = layout(inside, outside)
    swap(swapped, places[1:])
    events = longpole.read_trace(inside / trace).events
    assert "SECRET" in " ".join(events["name"].to_list())


HOSTILE = Path(__file__).parents[3] / "shared/data/cases/hostile"


@pytest.mark.slow
@pytest.mark.skipif(not HOSTILE.is_dir(), reason="needs the hostile inputs next to the project")
def test_every_hostile_input_is_answered_and_the_server_lives():
    with Client(HOSTILE, "--timeout", "60", "--memory-limit", "1") as client:
        listed = client.answer("traces", {})["data"]["traces"]
        numbers = [client.ask("summary", {"trace": row["path"]}) for row in listed]
        numbers += [client.ask("summary", {"trace": str(path)}) for path in HOSTILE.iterdir()]
        client.wait(*numbers)
        for number in numbers:
            jsonschema.validate(client.answers[number], tools.output_schema("summary"))


ODD = {
    "a link to itself": {"trace": "self"},
    "not a number": {"trace": "trace.json.gz", "step": float("nan")},
    "a NUL": {"trace": "trace\0.json.gz"},
    "a step of 5,000 digits": {"trace": "trace.json.gz", "step": 10**4_200},
    "a large top": {"trace": "trace.json.gz", "top": 2**63 - 1},
}


def test_an_odd_argument_is_answered_with_a_code_and_the_worker_lives(folder):
    (folder / "self").symlink_to("self")
    with Client(folder) as client:
        answers = {name: client.answer("summary", odd) for name, odd in ODD.items()}
        deep = '{"trace": "trace.json.gz", "step": ' + "[" * 3_000 + "]" * 3_000 + "}"
        answers["a deep list"] = client.answer_text("summary", deep)
        half = '{"trace": "trace.json.gz", "window": "a\\ud800"}'
        answers["half of a surrogate pair"] = client.answer_text("summary", half)
        codes = {name: (answer["error"] or {}).get("code") for name, answer in answers.items()}
        assert codes == {
            "a link to itself": "file_not_found",
            "not a number": "usage",
            "a NUL": "usage",
            "a step of 5,000 digits": "usage",
            "a large top": "usage",
            "a deep list": "usage",
            "half of a surrogate pair": "no_such_window",
        }
        assert client.answer("summary", TRACE)["status"] == "ok"
