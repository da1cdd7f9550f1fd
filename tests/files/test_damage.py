"""Damage as it is seen in the wild: what is kept, and what is said.

Each case is a small sound trace, one change to its bytes, and what must come out.
"""

from __future__ import annotations

import gzip
import importlib.util
import io
import json
import tarfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import longpole
from adapters.corpus_adapter import answer
from longpole.cli.program import run
from oracles.simulator import simulate
from oracles.simulator.nsight import write_nsight

if TYPE_CHECKING:
    from collections.abc import Callable


N_EVENTS = 20


def event(number: int) -> dict[str, object]:
    return {
        "ph": "X",
        "cat": "cpu_op",
        "name": f"aten::op{number}",
        "pid": 1,
        "tid": 1,
        "ts": 100 + number * 10,
        "dur": 5.25,
        "args": {"External id": number, "Input Dims": [[number, 4], []]},
    }


def document(events: list[dict[str, object]] | None = None) -> bytes:
    """Lay a trace out as Kineto does: a few keys a line, header fields on both sides."""
    shown = [json.dumps(each) for each in (events or [event(n) for n in range(N_EVENTS)])]
    body = ",\n".join(f"  {text}" for text in shown)
    head = '{\n  "schemaVersion": 1,\n  "distributedInfo": {"rank": 3, "world_size": 8},\n'
    return f'{head}  "traceEvents": [\n{body}\n  ],\n  "traceName": "run.json"\n}}\n'.encode()


SOUND = document()
MIDDLE = SOUND.index(b'{"ph": "X", "cat": "cpu_op", "name": "aten::op10"')


def inserted(text: bytes, at: int = MIDDLE) -> bytes:
    return SOUND[:at] + text + SOUND[at:]


def replaced(old: bytes, new: bytes) -> bytes:
    """Change event 10 only."""
    return SOUND[:MIDDLE] + SOUND[MIDDLE:].replace(old, new, 1)


def with_hole(length: int = 120, fill: bytes = b"\0") -> bytes:
    """A hole from the middle of the name of event 10 into event 11."""
    start = SOUND.index(b"op10")
    return SOUND[:start] + fill * length + SOUND[start + length :]


def in_tar(data: bytes) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        entry = tarfile.TarInfo("trace.json")
        entry.size = len(data)
        archive.addfile(entry, io.BytesIO(data))
    return out.getvalue()


def flipped(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 0x10]) + data[at + 1 :]


def deep(levels: int) -> bytes:
    return replaced(b"[[10, 4], []]", b"[" * levels + b"]" * levels)


LOG_LINE = b'INFO:2026-07-01 10:11:12 4242:4242 CuptiActivityApi.cpp:200] "Completed" {stage 3}\n'


@dataclass(frozen=True)
class Case:
    """Bytes, the codes they must raise, and how many events must survive."""

    data: bytes | Callable[[], bytes]
    codes: tuple[str, ...]
    n_events: int | range = N_EVENTS


RECOVERED = {
    "a log line among the events": Case(inserted(LOG_LINE), ("malformed_event",)),
    "log text in an array of the footer": Case(
        SOUND.replace(b'"traceName"', b'"WARNING": ["one", ' + LOG_LINE + b'],\n "traceName"'),
        ("malformed_header",),
    ),
    "a hole of zeros": Case(with_hole(), ("malformed_event",), N_EVENTS - 2),
    "a hole of ones": Case(with_hole(fill=b"\xff"), ("malformed_event",), N_EVENTS - 2),
    "a log line after the end": Case(SOUND + LOG_LINE, ("text_after_end",)),
    "two documents": Case(SOUND + SOUND, ("text_after_end",)),
    "the list of events twice": Case(
        SOUND[:-2] + b', "traceEvents": [' + json.dumps(event(99)).encode() + b"]}",
        ("repeated_trace_events",),
        N_EVENTS + 1,
    ),
    "null, a number and a text among the events": Case(
        inserted(b'null, 17, "text", [1], '), ("not_an_event",)
    ),
    "a trailing comma": Case(SOUND.replace(b"\n  ],", b",\n  ],"), ("trailing_comma",)),
    "a double comma": Case(inserted(b", "), ("extra_comma",)),
    "a missing comma": Case(
        SOUND[: MIDDLE - 4].rstrip(b",\n ") + b"\n" + SOUND[MIDDLE:], ("missing_comma",)
    ),
    "a missing list end": Case(SOUND.replace(b"\n  ],", b"\n  ,"), ("not_an_event",)),
    "unescaped quotes, even": Case(
        replaced(b'"aten::op10"', b'"my "op" 10"'), ("malformed_event",), N_EVENTS - 1
    ),
    "unescaped quotes, odd": Case(
        replaced(b'"aten::op10"', b'"my "op 10"'), ("malformed_event",), range(18, 20)
    ),
    "a lost closing quote": Case(
        replaced(b'"aten::op10"', b'"aten::op10'), ("malformed_event",), range(18, 20)
    ),
    "an event that never closes": Case(replaced(b"}}", b"}"), ("malformed_event",), range(18, 20)),
    "the head of an event, then a whole one": Case(
        inserted(b'{"ph": "X", "name": "aten::a'), ("malformed_event",), range(19, 21)
    ),
    "a raw newline in a name": Case(replaced(b"op10", b"op\n10"), ("control_character",)),
    "an unknown escape": Case(replaced(b"op10", b"C:\\cuda"), ("invalid_escape",)),
    "Latin-1 in a name": Case(replaced(b"op10", b"caf\xe9"), ("invalid_utf8",)),
    "surrogates in UTF-8": Case(replaced(b"op10", b"\xed\xa0\xbd"), ("invalid_utf8",)),
    "half a surrogate pair": Case(replaced(b"op10", b"\\ud83d"), ("lone_surrogate",)),
    "inf of printf": Case(replaced(b"5.25, ", b'5, "x": inf, '), ("non_finite_number",)),
    "NaN of Python": Case(replaced(b"[[10, 4], []]", b"NaN"), ("non_finite_number",)),
    "N/A": Case(replaced(b"[[10, 4], []]", b"N/A"), ("invalid_number",)),
    "a ts that is no number": Case(
        replaced(b'"ts": 200', b'"ts": NaN'), ("bad_timestamp",), N_EVENTS - 1
    ),
    "a ts of null": Case(replaced(b'"ts": 200', b'"ts": null'), ("bad_timestamp",), N_EVENTS - 1),
    "a negative time as old Kineto prints it": Case(
        replaced(b'"ts": 200', b'"ts": 0.-05'), ("bad_timestamp",), N_EVENTS - 1
    ),
    "deeper than the limit": Case(deep(600), ("too_deep",), N_EVENTS - 1),
    "five million brackets": Case(lambda: deep(5_000_000), ("too_deep",), N_EVENTS - 1),
    "trailing zeros behind gzip": Case(
        gzip.compress(SOUND) + b"\0" * 512, ("compression_trailing_bytes",)
    ),
    "text behind gzip": Case(gzip.compress(SOUND) + LOG_LINE, ("compression_trailing_bytes",)),
    "a wrong checksum": Case(flipped(gzip.compress(SOUND), -6), ("compression_checksum",)),
    "gzip without its trailer": Case(gzip.compress(SOUND)[:-8], ("compression_truncated",)),
    "gzip cut in its data": Case(
        lambda: gzip.compress(SOUND)[:-120], ("compression_truncated", "truncated"), range(1, 20)
    ),
    "an empty list cut open": Case(b'{"traceEvents": [', ("truncated",), 0),
}

DOUBTFUL = {
    "a negative duration": Case(replaced(b'"dur": 5.25', b'"dur": -5.25'), ("negative_duration",)),
    "a duration near 2^64 ns": Case(
        replaced(b'"dur": 5.25', b'"dur": 18446744073709551.615'), ("huge_duration",)
    ),
    "a time before the base": Case(
        replaced(b'"ts": 200', b'"ts": -0.200'), ("negative_timestamp",)
    ),
    "a kernel without a time": Case(
        replaced(
            b'"cpu_op", "name": "aten::op10", "pid": 1, "tid": 1, "ts": 200',
            b'"kernel", "name": "k", "pid": 0, "tid": 7, "ts": 0',
        ),
        ("zero_timestamp",),
    ),
    "no phase": Case(replaced(b'"ph": "X", ', b""), ("missing_phase",)),
    "an unknown phase": Case(replaced(b'"ph": "X"', b'"ph": "?"'), ("unknown_phase",)),
    "no name": Case(replaced(b'"name": "aten::op10", ', b""), ("missing_name",)),
    "a begin that never ends": Case(replaced(b'"ph": "X"', b'"ph": "B"'), ("unmatched_begin",)),
    "an end that never began": Case(
        replaced(b'"ph": "X"', b'"ph": "E"'), ("end_arguments", "unmatched_end")
    ),
    "a rank that is a path": Case(
        SOUND.replace(b'"rank": 3', b'"rank": "../../etc"'), ("bad_rank",)
    ),
}

SOUND_VARIANTS = {
    "as it is": SOUND,
    "a byte order mark": b"\xef\xbb\xbf" + SOUND,
    "Windows line ends": SOUND.replace(b"\n", b"\r\n"),
    "an array": json.dumps([event(n) for n in range(N_EVENTS)]).encode(),
    "an empty object at the end": SOUND.replace(b"\n  ],", b",\n {}  ],"),
    "header after the events": SOUND.replace(b'  "schemaVersion": 1,\n', b""),
    "surrogate pairs": replaced(b"op10", b"\\ud83d\\ude00"),
    "an escaped NUL": replaced(b"op10", b"a\\u0000b"),
    "integers beyond 64 bits": replaced(b"[[10, 4], []]", b"184467440737095516160"),
    "equal keys": replaced(b'"name": "aten::op10"', b'"name": "x", "name": "aten::op10"'),
    "exponents": replaced(b'"ts": 200', b'"ts": 2.00e+2'),
    "numbers in quotes": replaced(b'"ts": 200', b'"ts": "200"'),
    "arguments that are no object": replaced(b'"args": {', b'"args": null, "x": {'),
    "gzip": gzip.compress(SOUND),
    "gzip in members": gzip.compress(SOUND[:700]) + gzip.compress(b"") + gzip.compress(SOUND[700:]),
}

UNREADABLE = {
    "nothing": (b"", "empty", "empty"),
    "blanks": (b" \n\t", "empty", "blank"),
    "gzip of nothing": (gzip.compress(b""), "empty", "empty"),
    "cut before the events": (SOUND[:40], "truncated", "traceEvents"),
    "one brace": (b"{", "truncated", "traceEvents"),
    "an object without events": (b'{"a": 1}', "no_trace_events", "traceEvents"),
    "events that are an object": (b'{"traceEvents": {}}', "trace_events_not_an_array", "array"),
    "an execution trace": (
        b'{"schema": "1.0.1", "pid": 7, "nodes": [{"id": 1}]}',
        "other_kind_of_file",
        "execution",
    ),
    "a memory timeline": (b"[[-1, 1, 37888, 7], [2, 1, 512, 7]]", "other_kind_of_file", "memory"),
    "an HTML page": (b"<!DOCTYPE html><html></html>", "other_kind_of_file", "HTML"),
    "a Git LFS pointer": (
        b"version https://git-lfs.github.com/spec/v1\n",
        "other_kind_of_file",
        "LFS",
    ),
    "bzip2": (b"BZh91AY&SY", "other_kind_of_file", "bzip2"),
    "six bytes of zstd": (b"\x28\xb5\x2f\xfd\x00\x00", "compression", "zstd"),
    "ten bytes of xz": (b"\xfd7zXZ\0\0\x04\xe6\xd6", "compression", "xz"),
    "UTF-16": ('{"traceEvents": []}'.encode("utf-16"), "other_kind_of_file", "UTF-16"),
    "UTF-16 without a mark": (
        '{"traceEvents": []}'.encode("utf-16-le"),
        "other_kind_of_file",
        "UTF-16",
    ),
    "gzip in gzip": (gzip.compress(gzip.compress(SOUND)), "other_kind_of_file", "inside another"),
    "a tar in gzip": (gzip.compress(in_tar(SOUND)), "other_kind_of_file", "tar"),
    "a zip": (b"PK\x03\x04" + b"\0" * 60, "other_kind_of_file", "zip"),
    "a pickle": (b"\x80\x04\x95\x1e\x00", "other_kind_of_file", "pickle"),
    "a log": (b"hello world\n", "unknown_format", "not JSON"),
    "six bytes of gzip": (gzip.compress(SOUND)[:6], "compression", "gzip"),
}


def read(case: Case) -> longpole.Trace:
    return longpole.read_trace(case.data() if callable(case.data) else case.data)


@pytest.mark.parametrize("name", RECOVERED)
def test_what_is_whole_is_kept_and_the_damage_is_named(name: str) -> None:
    case = RECOVERED[name]
    trace = read(case)
    expected = case.n_events if isinstance(case.n_events, range) else [case.n_events]
    assert trace.status == "recovered"
    assert set(case.codes) <= set(trace.diagnostics["code"])
    assert trace.n_events in expected
    assert invented(trace) == set()


@pytest.mark.parametrize("name", DOUBTFUL)
def test_a_doubt_is_counted_and_alters_nothing(name: str) -> None:
    case = DOUBTFUL[name]
    trace = read(case)
    assert (trace.status, trace.diagnostics["code"].to_list()) == ("ok", list(case.codes))
    assert trace.n_events == case.n_events


@pytest.mark.parametrize("name", SOUND_VARIANTS)
def test_a_sound_file_raises_no_alarm(name: str) -> None:
    trace = longpole.read_trace(SOUND_VARIANTS[name])
    assert trace.status == "ok"
    assert set(trace.diagnostics["severity"]) <= {"info"}
    assert trace.n_events == N_EVENTS


@pytest.mark.parametrize("name", UNREADABLE)
def test_what_is_no_trace_is_named_for_what_it_is(name: str) -> None:
    data, code, word = UNREADABLE[name]
    with pytest.raises(longpole.TraceError, match=word) as caught:
        longpole.read_trace(data)
    assert caught.value.code == code
    assert caught.value.hint


@pytest.mark.parametrize("name", RECOVERED)
def test_strict_reading_refuses_damage_with_its_place(name: str) -> None:
    data = RECOVERED[name].data
    with pytest.raises(longpole.TraceError) as caught:
        longpole.read_trace(data() if callable(data) else data, strict=True)
    assert caught.value.offset >= 0


def invented(trace: longpole.Trace) -> set[tuple[str, int]]:
    """Events that are none of those that were written: heads and tails put together."""
    known = {(f"aten::op{n}", (100 + n * 10) * 1000) for n in [*range(N_EVENTS), 99]}
    found = {
        (str(name), start) for name, start in trace.events.select("name", "start_ns").iter_rows()
    }
    altered = {(name, start) for name, start in found if start == 200_000}
    return found - known - altered


@pytest.mark.parametrize("field", ['"name":"run"', '"id" : 3', '"cat":["a"],"args":{}'])
def test_a_header_field_named_like_a_key_of_events_is_no_damage(field):
    event = '{"ph":"X","name":"a","pid":1,"tid":1,"ts":1,"dur":2}'
    trace = longpole.read_trace(f'{{"traceEvents":[{event}]\n,{field}}}'.encode())
    assert (trace.status, trace.events.height) == ("ok", 1)
    assert trace.metadata == json.loads(f"{{{field}}}")


def test_a_hole_never_joins_two_events() -> None:
    for length in range(20, 400, 7):
        for fill in (b"\0", b"\xff"):
            trace = longpole.read_trace(with_hole(length, fill))
            assert {name for name, _ in invented(trace)} == set()


def test_an_object_inside_a_damaged_event_is_no_event() -> None:
    inner = b'"args": {"list": [{"ph": "X", "name": "inner", "ts": 1, "dur": 1}, '
    inner += b'{"ph": "X", "name": "inner", "ts": 2, "dur": 1}], "note": '
    trace = longpole.read_trace(
        replaced(b'"aten::op10"', b'"a"b"').replace(b'"args": {', inner, 11)
    )
    assert "inner" not in trace.events["name"].cast(str).to_list()


def test_a_rank_inside_an_event_is_not_the_rank_of_the_trace() -> None:
    data = replaced(b'"External id": 10', b'"distributedInfo": {"rank": 5}, "rank": 5')
    assert longpole.read_trace(data).rank == 3


def test_a_bomb_costs_no_memory() -> None:
    """Half a gigabyte of blanks between two events, in half a megabyte of gzip."""
    compressor = zlib.compressobj(9, wbits=31)
    parts = [compressor.compress(SOUND[:MIDDLE])]
    parts += [compressor.compress(b" " * (1 << 20)) for _ in range(512)]
    parts += [compressor.compress(SOUND[MIDDLE:]), compressor.flush()]
    assert longpole.read_trace(b"".join(parts)).n_events == N_EVENTS


def test_times_at_the_end_of_the_range_are_read_and_analysed() -> None:
    events = [{**event(n), "ts": -4611686018427386 + n} for n in range(N_EVENTS)]
    trace = longpole.read_trace(document(events))
    widest = (-(2**63), 2**63 - 1)
    assert trace.status == "ok"
    assert trace.events["start_ns"].min() == -4611686018427386000
    assert trace.critical_path(between=widest).segments["duration_ns"].min() >= 0
    assert trace.gaps(*widest).height == trace.busy(*widest).height == 0


@pytest.mark.parametrize("time", ["0", "-4611686018427387.903", "4611686018427387.903"])
def test_an_event_decades_away_from_the_others_is_left_out_and_counted(time: str) -> None:
    """A profiler writes 0, or another clock, for a time that it does not know."""
    now = 1_712_195_495_506_763
    events = [{**event(n), "ts": now + 10 * n} for n in range(N_EVENTS)]
    text = document(events).replace(f'"ts": {now + 100}'.encode(), f'"ts": {time}'.encode())
    trace = longpole.read_trace(text)
    assert dict(trace.diagnostics.select("code", "count").iter_rows())["far_timestamp"] == 1
    assert trace.events.height == N_EVENTS - 1
    assert trace.critical_path().length_ns < 1_000_000
    [finding] = [it for it in longpole.check(trace) if it.code == "far_timestamp"]
    assert (finding.severity, finding.first) == ("data_loss", None)
    with pytest.raises(longpole.TraceError) as caught:
        longpole.read_trace(text, strict=True)
    assert caught.value.code in {"far_timestamp", "negative_timestamp"}


def test_a_time_beyond_the_range_costs_its_event_only() -> None:
    trace = longpole.read_trace(replaced(b'"ts": 200', b'"ts": 9223372036854775.807'))
    assert trace.diagnostics["code"].to_list() == ["bad_timestamp"]
    assert trace.n_events == N_EVENTS - 1


# The corpus of damaged and odd traces outside the repository, if it exists.


CORPUS = Path(__file__).parents[3] / "shared" / "corpus"
MANIFEST = CORPUS / "manifest.json"
CASES = json.loads(MANIFEST.read_bytes())["entries"] if MANIFEST.exists() else []

pytestmark = pytest.mark.skipif(not CASES, reason="no corpus of damaged traces at ../shared/corpus")


# The checker leaves files to the garbage collector.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["file"])
def test_a_case_of_the_corpus_is_answered_as_it_asks(case, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    files = [str(CORPUS / name) for name in case.get("files", [case["file"]])]
    answered = json.loads(json.dumps(answer(case["stage"], files)))
    assert checker().check(case, answered, str(tmp_path)) == []


def checker():
    spec = importlib.util.spec_from_file_location("check_corpus", CORPUS / "check_corpus.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("share", [0.2, 0.5, 0.8, 0.95])
def test_a_cut_file_of_messages_says_how_much_is_missing_at_least(share, tmp_path, capsys):
    (tmp_path / "trace.json").write_bytes(document([event(n) for n in range(400)]))
    path = tmp_path / "trace.perfetto-trace"
    assert run(["convert", str(tmp_path / "trace.json"), "-o", str(path)]) == 0
    whole = path.read_bytes()
    told = []
    for at in range(int(share * len(whole)), int(share * len(whole)) + 40):
        path.write_bytes(whole[:at])
        [row] = longpole.read_trace(path).diagnostics.to_dicts() or [{"skipped_bytes": 0}]
        assert row["skipped_bytes"] <= len(whole) - at
        told.append(row["skipped_bytes"])
    assert max(told) > 0
    path.write_bytes(whole[: int(share * len(whole)) + told.index(max(told))])
    capsys.readouterr()
    run(["check", str(path)])
    assert f", at least {max(told)} B of it missing" in capsys.readouterr().out


@pytest.mark.parametrize("share", [0.3, 0.6, 0.9])
def test_a_cut_database_says_how_much_of_it_there_is(share, tmp_path):
    path = tmp_path / "trace.sqlite"
    write_nsight(simulate("training", seed=1, steps=2), path)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(share * len(whole))])
    said = f"{int(share * len(whole))} of {len(whole)} bytes are in the file, so it was cut"
    with pytest.raises(longpole.TraceError, match=said):
        longpole.read_trace(path)
