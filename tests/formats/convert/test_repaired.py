"""A damaged trace that was written back whole is sound, and holds what could be read.

`test_losses.py` is about what it says was lost.
"""

from __future__ import annotations

import gzip
import json
import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

import longpole
from longpole.cli import program
from longpole.formats.convert.repaired import repair
from longpole.testing import TraceBuilder
from real_traces import real_traces
from strategies import traces
from styles import STYLES, document

FRAMES = ("events", "flows", "counters", "asynchronous", "metadata_events", "lanes")
POSITIONS = ("position", "last_position")
SPELLINGS = {
    "control_character",
    "invalid_escape",
    "invalid_number",
    "invalid_utf8",
    "lone_surrogate",
    "non_finite_number",
    "trailing_comma",
}
"""Findings that may stand in a list or a header field, which are kept as they are spelled."""


def without_losses(data):
    """Leave out what a file says was lost of another one."""
    return re.sub(rb',\n"longpole\.losses": \{[^}]*\}', b"", data)


def is_repaired(data, folder):
    """Repair bytes; check that what is written is sound and gives the same tables."""
    source, output = folder / "damaged.json", folder / "whole.json"
    source.write_bytes(data)
    damaged = longpole.read_trace(source)
    n_written = repair(source, output, force=True)
    assert longpole.read_trace(without_losses(output.read_bytes()), strict=True).status == "ok"
    whole = longpole.read_trace(output)
    assert n_written == whole.n_events == damaged.n_events
    for name in FRAMES:
        before, after = getattr(damaged, name), getattr(whole, name)
        kept = [column for column in before.columns if column not in POSITIONS]
        assert before.select(kept).equals(after.select(kept)), name
    assert damaged.categories == whole.categories
    facts = ("rank", "format", "phases", "base_time_ns")
    assert all(getattr(damaged, fact) == getattr(whole, fact) for fact in facts)
    json.loads(output.read_bytes())
    if not SPELLINGS & set(damaged.diagnostics["code"]):
        whole.metadata.pop("longpole.losses", None)
        assert damaged.metadata == whole.metadata
        for category in damaged.categories:
            assert damaged.args(category).equals(whole.args(category))


@given(events=traces(), style=st.sampled_from(sorted(STYLES)), seed=st.integers(0, 1 << 32))
def test_whatever_the_damage_what_was_read_is_written(events, style, seed, tmp_path_factory):
    data = document(events, STYLES[style], distributedInfo={"rank": 2}, note="x\ty")
    choice = random.Random(seed)  # noqa: S311 (no secret)
    damaged = bytearray(data)
    for _ in range(choice.randint(0, 3)):
        damaged[choice.randrange(len(data))] = choice.choice(b'"{}[],:\\\0x\xff 9n')
    damaged = damaged[: choice.choice([None, choice.randrange(len(data))])]
    try:
        longpole.read_trace(bytes(damaged))
    except longpole.TraceError:
        return
    is_repaired(bytes(damaged), tmp_path_factory.mktemp("repaired"))


@pytest.mark.parametrize(
    "text",
    [
        b'[{"ph":"X","name":"a\xff","pid":1,"tid":1,"ts":1,"dur":NaN,"args":{"bytes":inf}},]',
        b'{"traceEvents":[{"ph":"X","name":"a\tb","ts":1,"dur":2,}{"ph":"X","ts":"x"}],"a":[1,],}',
        b'{"traceEvents":[{"name":"\\q\\ud800","ph":"X","ts":1,"dur":2}],"traceEvents":[7,{}]}',
        b'\xef\xbb\xbf[{"ph":"B","name":"a","pid":1,"tid":1,"ts":1},{"ph":"X","name":"cut',
    ],
)
def test_each_kind_of_damage_is_mended(text, tmp_path):
    is_repaired(text, tmp_path)


@pytest.mark.parametrize("path", real_traces(slow_bytes=100_000))
def test_a_real_trace_that_was_cut_off_is_whole_again(path, tmp_path):
    if not path.is_file():
        pytest.skip(f"no {path}")
    data = gzip.decompress(path.read_bytes())
    is_repaired(data[: len(data) * 2 // 3], tmp_path)
    is_repaired(data, tmp_path)


def test_the_command_writes_all_without_a_window(tmp_path, capsys):
    path = TraceBuilder().step(1, (0, 9)).step(2, (9, 20)).write(tmp_path / "trace.json")
    damaged = tmp_path / "damaged.json"
    damaged.write_bytes(path.read_bytes()[:-30])
    output = tmp_path / "whole.json.gz"
    assert program.run(["convert", str(damaged), "-o", str(output), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["status"] == "partial"
    whole = longpole.read_trace(output)
    assert answer["data"]["rows"] == whole.n_events == longpole.read_trace(damaged).n_events
    assert output.read_bytes()[:2] == b"\x1f\x8b"
    assert program.run(["convert", str(damaged), "-fo", str(damaged)]) != 0
    assert "never replaced" in capsys.readouterr().err
