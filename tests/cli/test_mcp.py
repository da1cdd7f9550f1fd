"""`longpole mcp` answers what the commands answer, shortened, about named folders only."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

import longpole
from kernel_steps import capture, kernel, replays, tensors
from longpole.cli import program
from longpole.cli.mcp import tools
from longpole.cli.mcp.bounds import MOST_BYTES, bounded, size_of, visible
from longpole.testing import TraceBuilder

EXAMPLES = Path(longpole.__file__).parent / "examples"
CALLS = {
    "traces": {},
    "summary": {"trace": "trace.json.gz"},
    "path": {"trace": "trace.json.gz", "step": 3},
    "whatif": {"trace": "trace.json.gz", "drop": ["data_loading"]},
    "table": {"trace": "trace.json.gz", "table": "kernels", "where": "stream = 7"},
    "check": {"trace": "trace.json.gz"},
    "diff": {"base": "trace.json.gz", "new": "after.json.gz", "gate": "5%"},
    "ranks": {"traces": "ranks", "step": 1},
}


@pytest.fixture
def folder(tmp_path):
    """Write the traces of the demo into a folder, and a secret next to it."""
    (tmp_path / "traces/ranks").mkdir(parents=True)
    for example in EXAMPLES.iterdir():
        place = "traces/ranks" if example.name.startswith("rank") else "traces"
        shutil.copy(example, tmp_path / place)
    shutil.copy(EXAMPLES / "trace.json.gz", tmp_path / "secret.json.gz")
    return tmp_path / "traces"


def printed(capsys, *words):
    program.run([*map(str, words), "--json"])
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("name", tools.TOOLS)
def test_an_answer_is_as_its_schema_says_and_short(folder, name):
    answer = tools.call(name, CALLS[name], [folder])
    jsonschema.validate(CALLS[name], tools.input_schema(name))
    jsonschema.validate(answer, tools.output_schema(name))
    assert answer["status"] == "ok"
    assert size_of(answer) <= MOST_BYTES


def test_a_trace_of_a_capture_is_a_file_of_the_folders(tmp_path):
    (tmp_path / "own").mkdir()
    kernels = [kernel("aten::mm", "gemm", 2_000, **tensors(("float", 64, 64), ("float", 64, 64)))]
    replays(kernels).write(tmp_path / "own/replay.json")
    for path in ("own/captured.json", "secret.json"):
        capture(kernels).write(tmp_path / path)
    asked = {"trace": "replay.json", "capture_trace": ["captured.json"]}
    answer = tools.call("summary", asked, [tmp_path / "own"])
    assert answer["data"]["verdict"]["actions"][0].startswith("aten::mm takes")
    asked["capture_trace"] = [str(tmp_path / "secret.json")]
    assert tools.call("summary", asked, [tmp_path / "own"])["status"] == "error"


def test_the_summary_of_a_memory_timeline_is_as_its_schema_says(tmp_path):
    (tmp_path / "timeline.raw.json").write_text("[[-1, 1, 100, 0], [5, 2, 50, 7]]")
    answer = tools.call("summary", {"trace": "timeline.raw.json"}, [tmp_path])
    jsonschema.validate(answer, tools.output_schema("summary"))
    assert (answer["data"]["table"], answer["status"]) == ("memory", "ok")


def test_a_tool_tells_what_the_command_prints(folder, capsys):
    answer = tools.call("summary", CALLS["summary"], [folder])
    evidence = answer.pop("evidence")
    shown = printed(capsys, "summary", folder / "trace.json.gz")
    assert answer["data"]["verdict"]["sentence"] == shown["data"]["verdict"]["sentence"]
    events = longpole.read_trace(folder / "trace.json.gz").events
    assert evidence
    for row in evidence:
        found = events.row(row["event"], named=True)
        assert (row["name"], row["duration_ns"]) == (found["name"], found["duration_ns"])


def test_the_first_event_of_each_remedy_is_among_the_evidence(folder):
    answer = tools.call("summary", CALLS["summary"], [folder])
    shown = {row["event"] for row in answer["evidence"]}
    remedies = [one for one in answer["data"]["verdict"]["remedies"] if one["named"]]
    assert remedies
    assert {one["events"][0] for one in remedies} <= shown


@pytest.mark.parametrize("path", ["../secret.json.gz", "link.json.gz", "linked", "with_link"])
def test_no_file_outside_the_folders_is_read(folder, path):
    (folder / "link.json.gz").symlink_to(folder.parent / "secret.json.gz")
    (folder / "linked").symlink_to(folder.parent)
    (folder / "with_link").mkdir()
    (folder / "with_link/rank0.json.gz").symlink_to(folder.parent / "secret.json.gz")
    for name, file in (("summary", "trace"), ("ranks", "traces")):
        answer = tools.call(name, {file: path}, [folder])
        assert answer["error"]["code"] == "permission_denied"
        assert answer["data"] is None


@pytest.mark.parametrize("path", ["/etc/passwd", "/etc/there_is_none", "s3://bucket/x", "-", "*"])
def test_what_is_no_file_of_the_folders_is_refused(folder, path):
    answer = tools.call("summary", {"trace": path}, [folder])
    inside = path in {"s3://bucket/x", "-", "*"}
    assert answer["error"]["code"] == ("file_not_found" if inside else "permission_denied")


def test_a_condition_with_a_query_is_refused_with_its_place(folder, said):
    where = "name IN (SELECT column_1 FROM read_csv('/etc/passwd'))"
    asked = {"trace": "trace.json.gz", "table": "kernels", "where": where}
    error = tools.call("table", asked, [folder])["error"]
    assert error["code"] == "usage"
    said.within(error["message"])


def test_options_cannot_be_smuggled_in(folder):
    asked = {"trace": "trace.json.gz", "table": "kernels", "where": "--format=csv"}
    assert tools.call("table", asked, [folder])["status"] == "error"
    wrong = tools.call("summary", {"trace": "trace.json.gz", "vocabulary": "/etc/passwd"}, [folder])
    assert "unknown argument 'vocabulary'" in wrong["error"]["message"]


def test_long_lists_and_texts_are_shortened_and_counted(tmp_path):
    builder = TraceBuilder()
    for number in range(400):
        builder.launch(
            "k" * 5_000 + str(number), call=(number, number + 1), work=(number, number + 1)
        )
    builder.write(tmp_path / "trace.json.gz")
    asked = {"trace": "trace.json.gz", "table": "activities", "top": 400}
    answer = tools.call("table", asked, [tmp_path])
    assert answer["truncated"]["rows"]["total"] == 400
    assert answer["truncated"]["rows"]["shown"] == len(answer["data"]["rows"]) >= 2
    assert size_of(answer) <= MOST_BYTES


@pytest.mark.parametrize(
    "data",
    [
        {"rows": [{"name": "k" * 5_000} for _ in range(400)]},
        {"rows": [[["\u4e00" * 5_000] * 20] * 20] * 20},
        {f"key {number}": "x" * 100 for number in range(5_000)},
        {"name": "x" * 10_000_000},
    ],
    ids=["rows", "nested lists", "keys", "a text"],
)
def test_no_answer_is_longer_than_its_limit(data):
    envelope = {"data": data, "truncated": None, "status": "ok", "error": None, "evidence": []}
    answer = bounded(envelope, 50)
    assert size_of(answer) <= MOST_BYTES
    assert answer["truncated"] or answer["error"]["code"] == "too_long"


def test_the_files_are_listed(folder):
    rows = tools.call("traces", {}, [folder])["data"]["traces"]
    assert {Path(row["path"]).name for row in rows} == {each.name for each in EXAMPLES.iterdir()}


def test_an_unknown_tool_is_answered_with_those_there_are(folder, said):
    said.within(tools.call("delete", {}, [folder])["error"]["message"])


def test_an_agent_sees_every_character_of_a_name(tmp_path):
    builder = TraceBuilder().launch("gemm\U000e0041\u202e", call=(0, 1), work=(1, 9))
    builder.write(tmp_path / "a.json")
    asked = {"trace": "a.json", "table": "kernels"}
    [row] = visible(tools.call("table", asked, [tmp_path]))["data"]["rows"]
    assert row["name"] == "gemm\\U000e0041\\u202e"


CLIENT = """
import json, sys
import anyio
from mcp import Client, StdioServerParameters, stdio_client

async def main():
    words = ["-m", "longpole", "mcp", sys.argv[1]]
    server = StdioServerParameters(command=sys.executable, args=words)
    async with Client(stdio_client(server)) as client:
        listed = await client.list_tools()
        answers = {}
        for name, arguments in json.loads(sys.argv[2]).items():
            answer = await client.call_tool(name, arguments)
            answers[name] = [answer.is_error, answer.structured_content["status"]]
        refused = await client.call_tool("summary", {"trace": "/etc/passwd"})
    print(json.dumps([[tool.name for tool in listed.tools], answers, refused.is_error]))

anyio.run(main)
"""


@pytest.mark.needs("mcp")
def test_the_client_of_the_sdk_gets_answers(folder):
    asked = [sys.executable, "-c", CLIENT, str(folder), json.dumps(CALLS)]
    done = subprocess.run(asked, capture_output=True, text=True, check=False, env=os.environ.copy())
    assert done.returncode == 0, done.stderr
    names, answers, refused = json.loads(done.stdout)
    assert names == list(tools.TOOLS)
    assert answers == {name: [False, "ok"] for name in CALLS}
    assert refused


def test_without_the_sdk_the_extra_is_named(folder, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "mcp", None)
    monkeypatch.delitem(sys.modules, "longpole.cli.mcp.server", raising=False)
    assert program.run(["mcp", str(folder)]) == 5
    assert "pip install 'longpole[mcp]'" in capsys.readouterr().err


def test_the_guide_is_the_page_for_agents(capsys):
    assert program.run(["guide"]) == 0
    page = Path(__file__).parents[2] / "python/longpole/cli/guide.md"
    assert capsys.readouterr().out == page.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "given",
    [
        {"window": ["0..20000", "--capture-trace=/etc/passwd"]},
        {"window": {"all": True}},
        {"table": "--help"},
        {"trace": "trace\0.json.gz"},
    ],
)
def test_an_argument_of_another_form_is_refused(folder, given):
    asked = {"trace": "trace.json.gz", "table": "kernels", **given}
    assert tools.call("table", asked, [folder])["status"] == "error"


def test_a_linked_folder_is_looked_into(folder):
    (folder / "real").mkdir()
    (folder / "real/rank0.json.gz").symlink_to(folder.parent / "secret.json.gz")
    (folder / "set").mkdir()
    (folder / "set/linked").symlink_to(folder / "real")
    answer = tools.call("ranks", {"traces": "set"}, [folder])
    assert answer["error"]["code"] == "permission_denied"


@pytest.mark.parametrize(
    ("tool", "given", "message"),
    [
        ("table", {"table": ["x"]}, "'table' must be a string, not [\"x\"]"),
        ("table", {"top": 10**30}, f"'top' must be from 1 to {2**63 - 1}, not {10**30}"),
        ("table", {"top": 0}, f"'top' must be from 1 to {2**63 - 1}, not 0"),
        ("table", {"top": True}, "'top' must be an integer, not true"),
        ("table", {"trace": {}}, "'trace' must be a string, not {}"),
        ("table", {"step": None}, "'step' must be a string or a number, not null"),
        ("table", {"window": [1]}, "'window' must be a string or a number, not [1]"),
        ("table", {"where": "x" * 20_000}, "'where' must be shorter than 10,000 characters, not"),
        (
            "whatif",
            {"drop": "data_loading"},
            "'drop' must be a list of at most 100 elements, each a",
        ),
        (
            "whatif",
            {"drop": [1, {}]},
            "'drop' must be a list in which each element is a string or a",
        ),
        ("traces", {"folder": "/etc"}, "unknown argument 'folder'; traces takes no arguments"),
    ],
)
def test_an_argument_of_another_type_is_refused_in_a_sentence(folder, tool, given, message):
    asked = {**CALLS[tool], **given}
    answer = tools.call(tool, asked, [folder])
    assert answer["error"]["code"] == "usage"
    assert answer["error"]["message"].startswith(message)
    if "unknown" not in message and "shorter" not in message:
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(asked, tools.input_schema(tool))


def test_the_largest_number_of_rows_is_all_of_them(folder):
    asked = {"trace": "trace.json.gz", "table": "kernels", "top": 10**9}
    assert tools.call("table", asked, [folder])["status"] == "ok"
