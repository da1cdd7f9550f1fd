"""What is whole in a damaged trace is kept, and nothing else is."""

import gzip
import itertools
import json
import random
import re
import zlib

import pytest

import longpole
from styles import STYLES, Style, document

PLACED = ["kind", "name", "process", "thread", "start_ns", "duration_ns", "position"]
# Python's own reader refuses what these stand for, so it cannot tell what is whole.
BEYOND_PYTHON = {"trailing_comma", "invalid_escape", "invalid_number", "non_finite_number"}
ONE_LINE_EACH = Style(indent="")
# Of the places of a wrong byte; each character begins at another one.
EVERY = 4


def trace_of(n_events):
    """Make operators that no part of one can be taken for a part of another."""
    return [
        {
            "ph": "X",
            "cat": "cpu_op",
            "name": f"op {n}",
            **dict.fromkeys(["pid", "tid", "ts", "dur"], n),
            "args": {"Input Dims": [[n, n], []], "dtype": f"[{{,}}] {n}", "Ev Idx": n},
        }
        for n in range(n_events)
    ]


def ends_of_events(text):
    """Return the position after each element of the list, and that of the list's bracket."""
    at = text.index("[", text.index('"traceEvents"')) + 1
    ends = []
    while text[at := re.compile(r"[\s,]*").match(text, at).end()] == "{":
        at = json.JSONDecoder().raw_decode(text, at)[1]
        ends.append(at)
    return ends, text.index("[") + 1


@pytest.mark.parametrize("style", ["compact", "indented", "indented with tabs and CRLF"])
def test_every_cut_keeps_the_events_that_end_before_it(style):
    data = document(trace_of(4), STYLES[style], schemaVersion=1, deviceProperties=[{"id": 0}])
    whole = longpole.read_trace(data).events.select(PLACED)
    ends, first_event = ends_of_events(data.decode())
    for cut in range(first_event, len(data)):
        trace = longpole.read_trace(data[:cut])
        n_whole = sum(end <= cut for end in ends)
        assert trace.events.select(PLACED).rows() == whole.head(n_whole).rows()
        assert trace.status == "recovered"
        assert trace.diagnostics["first_offset"].to_list() == [cut]
        assert trace.diagnostics["code"][0] in {"truncated", "missing_end"}


def test_a_cut_before_the_list_is_an_error_that_names_the_place():
    data = document(trace_of(1), STYLES["spaced"], schemaVersion=1)
    for cut in range(ends_of_events(data.decode())[1]):
        with pytest.raises(longpole.TraceError) as error:
            longpole.read_trace(data[:cut])
        assert error.value.offset == cut


def test_every_cut_of_a_gzip_file_keeps_what_can_be_inflated():
    data = document(trace_of(40))
    ends, first_event = ends_of_events(data.decode())
    packed = gzip.compress(data, mtime=0)
    for cut in range(len(packed)):
        inflated = len(zlib.decompressobj(wbits=31).decompress(packed[:cut]))
        if inflated > first_event:
            trace = longpole.read_trace(packed[:cut])
            assert trace.n_events == sum(end <= inflated for end in ends)
            assert "compression_truncated" in trace.diagnostics["code"]


@pytest.mark.parametrize("wrong", '"{}[],:\\\0x', ids=repr)
@pytest.mark.parametrize("style", ["compact", "indented"])
def test_one_wrong_byte_costs_two_events_at_most(style, wrong):
    """A quote too many may swallow the next quote, which stands in the next event."""
    data = document(trace_of(4), STYLES[style])
    ends, first_event = ends_of_events(data.decode())
    for place in range(first_event + ord(wrong) % EVERY, ends[-1], EVERY):
        damaged = data[:place] + wrong.encode() + data[place + 1 :]
        trace = longpole.read_trace(damaged)
        kept = set(trace.events["name"]) & {f"op {n}" for n in range(4)}
        assert len(kept) >= 2, (place, damaged)


def test_after_any_damage_what_is_kept_stands_in_the_file_in_one_piece():
    random_numbers = random.Random(0)  # noqa: S311
    styles = itertools.cycle([STYLES["compact"], ONE_LINE_EACH, STYLES["indented"]])
    n_checked = 0
    for style in itertools.islice(styles, 500):
        damaged = _damage(document(trace_of(20), style), random_numbers)
        try:
            trace = longpole.read_trace(damaged)
        except longpole.TraceError:
            continue
        if not BEYOND_PYTHON & set(trace.diagnostics["code"]):
            kept = set(trace.events.select("name", "start_ns", "duration_ns").iter_rows())
            assert kept <= _objects(damaged)
            n_checked += 1
    assert n_checked > 150


def _damage(data, random_numbers):
    """Apply one to three faults as disks, editors and crashes make them."""
    for _ in range(random_numbers.randint(1, 3)):
        start, end = sorted(random_numbers.choices(range(len(data)), k=2))
        end = min(end, start + random_numbers.choice([1, 2, 30, 400]))
        here, piece = data[start:end], bytes(random_numbers.choices(b'{}[]",:\\0e ', k=2))
        fault = random_numbers.choice([b"", piece, here + here, here[::-1], b"\0" * len(here)])
        data = data[:start] + fault + data[end:]
    return data


def _objects(data):
    """Find the name and the times of every object that stands anywhere in the bytes."""
    text = data.decode(errors="replace")
    decoder = json.JSONDecoder(strict=False)
    found = set()
    for brace in re.finditer("{", text):
        try:
            event = decoder.raw_decode(text, brace.start())[0]
            name = event.get("name") if isinstance(event.get("name"), str) else None
            duration = _ns(event["dur"]) if event.get("ph") == "X" and "dur" in event else None
            found.add((name, _ns(event["ts"]), duration))
        except (ValueError, KeyError, TypeError):
            continue
    return found


def _ns(microseconds):
    return round(float(microseconds) * 1000)
