"""Whatever a trace holds, every command answers it: no exit 70, JSON as its schema says.

The traces are small and odd: any nesting, ids and order, and headers and arguments of any shape.
"""

from __future__ import annotations

import contextlib
import io
import json
from functools import cache

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import longpole
import strategies
from longpole.cli import program
from longpole.cli.answer import exit_codes
from longpole.cli.schema import schema_for
from longpole.tables.catalogue import views_of
from longpole.tables.questions import questions
from longpole.testing import TraceBuilder
from styles import document

COMMANDS = [
    ["summary"],
    ["summary", "--window=all"],
    ["check"],
    ["path"],
    ["path", "--window=all"],
    ["whatif"],
    ["whatif", "--drop", "kernel"],
]
ODD = st.recursive(
    st.none()
    | st.booleans()
    | st.sampled_from([0, -1, 2**31, 2**63, -(2**63), 10**30, 0.5, 1e300, -0.0])
    | st.sampled_from(["", "0", "\ud800", "a\0b", "=1+1", "x" * 300, "nan"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=6,
)
FIELDS = (
    "deviceProperties",
    "distributedInfo",
    "baseTimeNanoseconds",
    "schemaVersion",
    "traceName",
    "displayTimeUnit",
    "with_flops",
)
ARGUMENTS = (
    "correlation",
    "External id",
    "device",
    "stream",
    "Input Dims",
    "Input type",
    "Concrete Inputs",
    "Record function id",
    "Sequence number",
    "Fwd thread id",
    "Module Hierarchy",
    "Collective name",
    "Process Group Name",
    "Process Group Ranks",
    "Group size",
    "In msg nelems",
    "dtype",
    "Seq",
    "bytes",
    "Bytes",
    "Addr",
    "Total Allocated",
    "Device Id",
    "Device Type",
    "grid",
    "cuda_sync_kind",
    "wait_on_stream",
    "graph node id",
    "Ev Idx",
)
PROPERTY = {"id": ODD, "name": ODD, "totalGlobalMem": ODD, "numSms": ODD}
headers = st.fixed_dictionaries(
    {},
    optional={
        **dict.fromkeys(FIELDS, ODD),
        "deviceProperties": ODD
        | st.lists(ODD | st.fixed_dictionaries({}, optional=PROPERTY), max_size=3),
        "distributedInfo": ODD
        | st.fixed_dictionaries({}, optional=dict.fromkeys(("rank", "world_size"), ODD)),
    },
)
oddities = st.lists(st.tuples(st.integers(0, 40), st.sampled_from(ARGUMENTS), ODD), max_size=6)


def asked(command):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = program.run(command)
    return code, out.getvalue(), err.getvalue()


@cache
def validators(name):
    return [
        jsonschema.Draft202012Validator(schema_for(each, program.longpole))
        for each in ("envelope", name)
    ]


def holds(path, command, schema):
    """Ask in two formats; the answer is never an error of ours."""
    word, *rest = command
    for form in ("json", "text"):
        code, out, err = asked([word, str(path), *rest, "--format", form])
        assert code not in {exit_codes.INTERNAL, exit_codes.USAGE}, (command, err)
        out.encode()
        if form == "json":
            answer = json.loads(out)
            envelope, data = validators(schema)
            envelope.validate(answer)
            if answer["data"] is not None:
                data.validate(answer["data"])


@st.composite
def odd_traces(draw):
    events = draw(strategies.traces())
    for row, key, value in draw(oddities):
        if row < len(events):
            events[row].setdefault("args", {})[key] = value
    return document(events, **draw(headers))


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
@settings(max_examples=settings.default.max_examples // 5)
@given(content=odd_traces())
def test_every_command_answers_whatever_a_trace_holds(tmp_path_factory, command, content):
    holds(written(tmp_path_factory, content), command, command[0])


@pytest.mark.parametrize(
    "table", [(name, by) for name in sorted(questions()) for by in views_of(name)], ids=str
)
@settings(max_examples=settings.default.max_examples // 10)
@given(content=odd_traces())
def test_every_table_answers_whatever_a_trace_holds(tmp_path_factory, table, content):
    name, by = table
    words = [name, *(["--by", by] if by else [])]
    is_first = by == next(iter(views_of(name)))
    schema = f"table {name}" if is_first else f"table {name} {by}"
    holds(written(tmp_path_factory, content), ["table", *words], schema)


def written(folders, content):
    path = folders.getbasetemp() / "odd.json"
    path.write_bytes(content)
    return path


def test_a_device_that_is_no_number_ends_no_answer(tmp_path):
    event = {"ph": "X", "pid": 1, "tid": 1, "ts": 1, "cat": "cpu_op", "name": "n", "dur": 1}
    work = event | {"cat": "gpu_memcpy", "args": {"device": 0, "stream": 7, "bytes": 64}}
    path = tmp_path / "trace.json"
    path.write_bytes(document([event | {"args": {"device": []}}, work]))
    assert asked(["table", str(path), "copies"])[0] == exit_codes.OK


def test_sizes_that_are_no_numbers_end_no_answer(tmp_path):
    event = {"ph": "X", "pid": 1, "tid": 1, "ts": 1, "cat": "gpu_memcpy", "name": "n", "dur": 1}
    memory = {
        "ph": "i",
        "pid": 1,
        "tid": 1,
        "ts": 2,
        "cat": "cpu_instant_event",
        "name": "[memory]",
    }
    events = [
        event | {"args": {"device": 0, "stream": 7, "bytes": size}} for size in (64, 2**63, "many")
    ]
    events += [
        memory | {"args": {"Bytes": size, "Total Allocated": size, "Device Id": 0}}
        for size in (64, 2**63, "many")
    ]
    path = tmp_path / "trace.json"
    path.write_bytes(document(events))
    for name, code in (("copies", exit_codes.OK), ("memory", exit_codes.INCONCLUSIVE)):
        assert asked(["table", str(path), name, "--by", "time" if code == 0 else "peak"])[0] == code
    assert asked(["diff", str(path), str(path)])[0] != exit_codes.INTERNAL
    trace = longpole.read_trace(path)
    assert longpole.copies(trace).select("n_without_size", "bytes").rows() == [(2, 64)]


@pytest.mark.parametrize("size", [2**63, "many", None, [1], 0.5])
def test_a_peak_of_memory_that_is_no_number_is_not_told(tmp_path, size):
    moment = {"ph": "i", "pid": 1, "tid": 1, "ts": 1, "cat": "cpu_instant_event"}
    of_device = {"Device Type": 1, "Device Id": 0, "Bytes": 64, "Total Allocated": size}
    work = {"ph": "X", "pid": 0, "tid": 7, "ts": 1, "dur": 5, "cat": "kernel", "name": "gemm"}
    path = tmp_path / "trace.json"
    path.write_bytes(
        document(
            [
                work | {"args": {"device": 0, "stream": 7}},
                moment | {"name": "[memory]", "args": of_device},
            ]
        )
    )
    code, told, _ = asked(["summary", str(path), "--json"])
    assert code != exit_codes.INTERNAL
    assert "Memory of device 0 peaks" not in told


SHORT = st.lists(st.tuples(st.integers(0, 20), st.integers(0, 2)), min_size=2, max_size=4)
WORK = st.none() | st.tuples(st.integers(0, 20), st.integers(0, 2))


@given(SHORT, WORK)
@settings(max_examples=8)
def test_steps_of_no_length_are_drawn(tmp_path_factory, steps, work):
    builder = TraceBuilder()
    for number, (start_us, length_us) in enumerate(steps, start=1):
        builder = builder.step(number, (start_us, start_us + length_us))
    if work is not None:
        span = (work[0], sum(work))
        builder = builder.launch("gemm", call=(work[0], work[0]), work=span)
    folder = tmp_path_factory.mktemp("short")
    path = str(builder.write(folder / "trace.json"))
    page = str(folder / "page.html")
    for asked in (["report", path, "-o", page], ["diff", path, path, "--format", "html"]):
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            assert program.run(asked) != exit_codes.INTERNAL
