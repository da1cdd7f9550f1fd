"""What was lost of a file is known of every file that it is converted to.

`check` finds the same losses there, and answers have the same doubt.
"""

from __future__ import annotations

import json
import random

import pytest

import longpole
from longpole.cli import program
from longpole.formats.convert.cut import cut
from longpole.formats.convert.perfetto import write_perfetto
from longpole.formats.convert.repaired import repair
from longpole.testing import TraceBuilder
from oracles.simulator import simulate
from oracles.simulator.nsight import write_nsight
from oracles.simulator.perfetto import perfetto
from oracles.simulator.rocpd import write_rocpd, write_rocprof_json
from oracles.simulator.xprof import trace_viewer, xplane

WAYS = {
    "json": lambda source, _, target: repair(source, target, force=True),
    "perfetto": lambda _, trace, target: write_perfetto(trace, target, force=True),
}


def losses(trace):
    """Return what was lost or may be wrong; without what is only spelled otherwise."""
    return sorted(tuple(row.values()) for row in trace.core.losses().to_dicts())


def status_of(trace):
    """Return the status of the verdict; None if nothing is left to answer about."""
    try:
        return trace.verdict().status
    except longpole.WindowError:
        return None


def written(run, form, path):
    """Write a run in the format of a profiler."""
    of_file = {"nsight": write_nsight, "rocpd": write_rocpd, "rocprof": write_rocprof_json}
    of_bytes = {"xprof": trace_viewer, "xplane": xplane, "perfetto": perfetto}
    if form in of_file:
        of_file[form](run, path)
    elif form in of_bytes:
        path.write_bytes(of_bytes[form](run.events))
    else:
        run.write(path)
        if form == "list":
            path.write_text(json.dumps(json.loads(path.read_bytes())["traceEvents"]), "utf-8")


def damaged(data, dice):
    """Change a few bytes, and cut the end off now and then; of a database, lose pages."""
    changed = bytearray(data)
    if data.startswith(b"SQLite"):
        page = int.from_bytes(data[16:18], "big")
        for number in dice.sample(range(1, len(data) // page), 4):
            changed[number * page : (number + 1) * page] = bytes(page)
        return bytes(changed)
    for _ in range(dice.randint(1, 3)):
        changed[dice.randrange(len(data) // 4, len(data))] = dice.choice(b'"{}],\\\0\xff 9')
    return bytes(changed[: dice.choice([None, dice.randrange(len(data) // 2, len(data))])])


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "form", ["kineto", "list", "xprof", "xplane", "perfetto", "rocprof", "nsight", "rocpd"]
)
def test_a_converted_file_has_the_losses_and_the_doubt_of_its_source(form, way, tmp_path):
    source, target = tmp_path / "source", tmp_path / "target"
    written(simulate("training", seed=1, steps=2), form, source)
    sound, dice, n_damaged = source.read_bytes(), random.Random(form), 0  # noqa: S311
    for _ in range(7):
        source.write_bytes(damaged(sound, dice))
        try:
            trace = longpole.read_trace(source)
        except longpole.TraceError:
            continue
        WAYS[way](source, trace, target)
        back = longpole.read_trace(target)
        assert losses(back) == losses(trace)
        assert (back.damage is None) == (trace.damage is None)
        n_damaged += trace.damage is not None
        if trace.damage is not None:
            assert back.damage.is_grave == trace.damage.is_grave
            assert "was converted from a file that is damaged" in back.damage.sentence
        assert status_of(back) == status_of(trace)
    assert n_damaged > 1


def test_a_trace_without_losses_says_nothing_of_them(tmp_path):
    source, target = tmp_path / "source.json", tmp_path / "target"
    text = '[{"ph":"X","cat":"cpu_op","name":"a","pid":1,"tid":1,"ts":1,"args":{"a":NaN}},]'
    source.write_text(text, encoding="utf-8")
    trace = longpole.read_trace(source)
    assert trace.status == "recovered"
    for way in WAYS.values():
        way(source, trace, target)
        assert b"longpole" not in target.read_bytes()
        assert longpole.read_trace(target).status == "ok"


def test_losses_stay_the_same_however_often_a_file_is_converted(tmp_path):
    source = tmp_path / "0.json"
    simulate("training", seed=2, steps=3).write(source)
    source.write_bytes(source.read_bytes()[:-300])
    first = longpole.read_trace(source)
    found = losses(first)
    assert [row[0] for row in found] == ["truncated"]
    for number, way in enumerate(["perfetto", "json", "json", "perfetto"], start=1):
        target = tmp_path / str(number)
        WAYS[way](source, longpole.read_trace(source), target)
        source = target
        assert losses(longpole.read_trace(source)) == found
    last = longpole.read_trace(source)
    last.save(tmp_path / "trace.longpole")
    saved = longpole.read_trace(tmp_path / "trace.longpole")
    assert losses(saved) == found
    assert saved.damage == last.damage
    assert f"(the file ends inside the trace, at byte {found[0][3]:,})" in last.damage.sentence


def test_losses_of_a_converted_file_that_is_damaged_itself_count_together(tmp_path):
    source, target = tmp_path / "source.json", tmp_path / "target.json"
    rows = [{"ph": "X", "name": str(row), "pid": 1, "tid": 1, "ts": row} for row in range(9)]
    source.write_text(json.dumps({"traceEvents": [*rows, 7]}), encoding="utf-8")
    repair(source, target)
    target.write_bytes(target.read_bytes().replace(b"\n]", b",\n8, 9]"))
    trace = longpole.read_trace(target)
    assert [row[:3] for row in losses(trace)] == [("not_an_event", "data_loss", 3)]


def test_check_says_which_file_was_damaged_and_a_step_can_be_cut(tmp_path, capsys):
    source, whole = tmp_path / "damaged.json", tmp_path / "whole.json"
    TraceBuilder().step(1, (0, 9)).step(2, (9, 20)).step(3, (20, 30)).write(source)
    source.write_bytes(source.read_bytes()[:-4])
    repair(source, whole)
    assert program.run(["check", str(whole)]) == 1
    text = "In the file before conversion: the file ends inside the trace."
    assert text in capsys.readouterr().out
    trace = longpole.read_trace(whole)
    window = longpole.choose_window(trace, 2)
    cut(trace, whole, window, tmp_path / "step.json")
    assert losses(longpole.read_trace(tmp_path / "step.json")) == losses(trace) != []
    with pytest.raises(longpole.TraceError):
        longpole.read_trace(whole, strict=True)


@pytest.mark.parametrize(
    "value",
    [
        *("7", "[]", "{}", '{"bytes": -1, "events": 1, "codes": []}'),
        *('{"bytes": 1, "events": 1, "codes": [["no_code", 1, 1, 1]]}',),
        '{"bytes": 1, "events": 1, "codes": [["truncated", "1", 1, 1]]}',
    ],
)
def test_a_field_that_is_no_list_of_losses_is_counted_as_malformed(value):
    text = (
        f'{{"traceEvents": [{{"ph":"X","name":"a","ts":1,"dur":2}}], "longpole.losses": {value}}}'
    )
    trace = longpole.read_trace(text.encode())
    assert [row[0] for row in losses(trace)] == ["malformed_header"]
    assert trace.damage is not None
    assert longpole.check(trace)
