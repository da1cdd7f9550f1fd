"""However a trace is written, packed, ordered or delivered: the same tables."""

import gzip
import io
import itertools
import json
from decimal import ROUND_HALF_EVEN, Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import longpole
from compared_tables import assert_same_tables, assert_table, rows_by_content
from strategies import microseconds, traces
from styles import COMPACT, STYLES, Number, Style, document

MIB = 1 << 20
HEADER = {"distributedInfo": {"rank": 3, "world_size": 8}, "schemaVersion": 1}


def operators(*names, **fields):
    """Make one operator a name, a microsecond apart."""
    return [
        {"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": 1, "ts": ts, "dur": 1, **fields}
        for ts, name in enumerate(names)
    ]


def argument(text, key="bytes"):
    """Read the spelling of one value as an argument of an event; give what is kept."""
    events = operators("op", args={key: Number(text)})
    table = longpole.read_trace(document(events), args=[key]).args("cpu_op")
    return None if table is None else table[key][0]


# Ways to deliver the same bytes.


class Dribble(io.RawIOBase):
    """A file that gives as many bytes at a time as it likes."""

    def __init__(self, data, sizes):
        self._data, self._sizes = io.BytesIO(data), iter(sizes)

    def read(self, size=-1):
        return self._data.read(min(size, next(self._sizes)))


def forever(sizes):
    while True:
        yield from sizes


@given(traces(), st.lists(st.integers(1, 64), min_size=1))
def test_any_split_of_a_small_file_gives_the_same_tables(events, sizes):
    data = document(events)
    split = longpole.read_trace(Dribble(data, forever(sizes)))
    assert_same_tables(split, longpole.read_trace(data))


@pytest.fixture(scope="module")
def large_file():
    """Make 5 MiB of events: several windows of the reader."""
    events = operators(*(f"aten::op {number % 500}" for number in range(45_000)), args={"bytes": 5})
    return document(events, Style(indent=" "), **HEADER)


@pytest.mark.parametrize("sizes", [[1 << 12, 1], [65_537], [MIB - 1], [MIB, 1, 1], [4 * MIB]])
def test_any_split_of_a_large_file_gives_the_same_tables(large_file, sizes):
    whole = longpole.read_trace(large_file)
    assert whole.n_events == 45_000
    assert_same_tables(longpole.read_trace(Dribble(large_file, forever(sizes))), whole)


def test_one_byte_at_a_time_gives_the_same_tables():
    data = document(operators(*"abc" * 1_000), STYLES["indented"])
    split = longpole.read_trace(Dribble(data, forever([1])))
    assert_same_tables(split, longpole.read_trace(data))


@given(traces(), st.lists(st.integers(0, 4_000), max_size=4))
def test_gzip_of_one_or_several_members_reads_like_the_plain_file(events, cuts):
    data = document(events)
    bounds = [0, *sorted(cuts), len(data)]
    members = [data[start:end] for start, end in itertools.pairwise(bounds)]
    packed = longpole.read_trace(b"".join(map(gzip.compress, members)))
    assert (packed.compression, packed.status) == ("gzip", "ok")
    assert_same_tables(packed, longpole.read_trace(data))


def test_bytes_and_path_and_file_give_the_same_tables(tmp_path, large_file):
    path = tmp_path / "whatever it is called.txt"
    path.write_bytes(large_file)
    expected = longpole.read_trace(large_file)
    assert_same_tables(longpole.read_trace(path), expected)
    with path.open("rb") as file:
        assert_same_tables(longpole.read_trace(file), expected)


# Ways to write the same events.


@pytest.mark.parametrize("style", STYLES.values(), ids=STYLES)
@settings(max_examples=settings.default.max_examples // 4)
@given(events=traces())
def test_every_style_of_writing_gives_the_same_tables(style, events):
    styled = longpole.read_trace(document(events, style))
    compact = longpole.read_trace(document(events, COMPACT))
    assert styled.status == "ok"
    assert_table(styled.events, compact.events.rows())
    assert rows_by_content(styled) == rows_by_content(compact)


@given(traces(brackets=False), st.randoms(use_true_random=False))
def test_the_order_of_the_events_changes_nothing(events, random):
    shuffled = random.sample(events, len(events))
    found = rows_by_content(longpole.read_trace(document(shuffled)))
    assert found == rows_by_content(longpole.read_trace(document(events)))


@given(
    st.lists(st.tuples(st.integers(0, 60), st.sampled_from("BE")), unique_by=lambda pair: pair[0]),
    st.randoms(use_true_random=False),
)
def test_begins_and_ends_are_paired_in_order_of_time_not_of_the_file(points, random):
    events = [
        {"ph": phase, "cat": "cpu_op", "name": f"at {ts}", "pid": 1, "tid": 1, "ts": ts}
        for ts, phase in points
    ]
    shuffled = random.sample(events, len(events))
    found = rows_by_content(longpole.read_trace(document(shuffled)))
    assert found == rows_by_content(longpole.read_trace(document(events)))


def test_events_of_the_same_time_are_told_apart_by_what_they_are():
    calls = [_launch(tid=1), _launch(tid=2)]
    kernels = [_kernel("k1", stream=7), _kernel("k2", stream=8)]
    annotations = [_step(1, dur=20), _step(1, dur=30), _step(2, dur=5)]
    expected, *others = (
        rows_by_content(longpole.read_trace(document([*one, *two, *three])))
        for one in itertools.permutations(calls)
        for two in itertools.permutations(kernels)
        for three in itertools.permutations(annotations)
    )
    assert all(other == expected for other in others)


def _launch(tid):
    place = {"cat": "cuda_runtime", "name": "launch", "pid": 1, "tid": tid}
    return {"ph": "X", **place, "ts": 1, "dur": 2, "args": {"correlation": 1}}


def _kernel(name, stream):
    args = {"device": 0, "stream": stream, "correlation": 1}
    place = {"cat": "kernel", "name": name, "pid": 0, "tid": stream}
    return {"ph": "X", **place, "ts": 9, "dur": 2, "args": args}


def _step(number, dur):
    place = {"cat": "user_annotation", "name": f"ProfilerStep#{number}", "pid": 1, "tid": 1}
    return {"ph": "X", **place, "ts": 3, "dur": dur}


def test_an_end_needs_no_more_than_a_time_and_a_track():
    track = {"pid": 0, "tid": 7}
    begin = {"ph": "B", "cat": "kernel", "name": "k", **track, "ts": 1, "args": {"stream": 7}}
    trace = longpole.read_trace(document([begin, {"ph": "E", **track, "ts": 5}]))
    assert trace.events["duration_ns"].to_list() == [4_000]


@pytest.mark.parametrize("style", ["compact", "indented", "keys in another order"])
def test_the_facts_of_the_header_are_found_before_and_behind_the_events(style):
    for header in [HEADER, dict(reversed(HEADER.items()))]:
        trace = longpole.read_trace(document(operators("a"), STYLES[style], **header))
        assert (trace.rank, trace.world_size, trace.format) == (3, 8, "kineto-json")


# Values.


@given(st.text(), st.booleans())
def test_any_text_is_read_as_it_was_meant(text, ascii_only):
    style = Style(ascii_only=ascii_only)
    trace = longpole.read_trace(document(operators(text, args={"dtype": text}), style))
    assert trace.status == "ok"
    assert trace.events["name"].to_list() == [text]
    assert trace.args("cpu_op")["dtype"].to_list() == [text]


@pytest.mark.parametrize(
    ("spelling", "text"),
    [
        (r'"\u00e9\n\t\r\b\f\/\"\\"', 'é\n\t\r\b\f/"\\'),
        (r'"\ud83d\ude00"', "😀"),
        (r'"\uD83D\uDE00\u0000"', "😀\0"),
        ('"😀 \u2028 \x7f"', "😀 \u2028 \x7f"),
    ],
)
def test_escapes_are_the_characters_they_stand_for(spelling, text):
    assert argument(spelling, "dtype") == text == json.loads(spelling)


@pytest.mark.parametrize("spelling", [r'"a\ud800b"', r'"a\udc00b"', r'"a\udc00\ud800b"'])
def test_half_of_a_surrogate_pair_is_replaced_and_counted(spelling):
    replaced = "\N{REPLACEMENT CHARACTER}" * spelling.count(r"\u")
    trace = longpole.read_trace(document([{**operators("a")[0], "name": Number(spelling)}]))
    assert trace.events["name"].to_list() == [f"a{replaced}b"]
    assert trace.diagnostics.select("code", "count").rows() == [("lone_surrogate", 1)]
    assert trace.status == "recovered"


@given(st.integers(-(2**63) + 1, 2**63 - 1))
def test_integers_of_64_bits_are_exact(number):
    assert argument(str(number)) == number


@pytest.mark.parametrize("number", [2**63, 2**64 - 1, 2**64, -(2**63) - 1])
def test_integers_beyond_64_bits_keep_their_digits(number):
    assert str(argument(str(number))) == str(number)


def test_a_key_is_what_it_spells():
    event = rb'[{"\u0070h":"X","n\u0061me":"n","t\u0073":1,"d\u0075r":2,"args":{"k\u00e9y":3}}]'
    trace = longpole.read_trace(event, args=["kéy"])
    assert trace.events.select("name", "start_ns", "duration_ns").rows() == [("n", 1_000, 2_000)]
    assert trace.args(None)["kéy"].to_list() == [3]


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_other_numbers_are_the_nearest_double(number):
    assert argument(repr(number)) == number


numerals = st.builds(
    "{}{}{}{}".format,
    st.sampled_from(["", "-"]),
    st.integers(0, 10**15),
    st.just("") | st.integers(0, 10**9).map(lambda digits: f".{digits:05}"),
    st.just("") | st.integers(-25, 3).map(lambda power: f"e{power:+}") | st.just("E0"),
)


@given(numerals, st.booleans())
def test_times_are_exact_in_any_spelling(numeral, quoted):
    """Digits finer than a nanosecond round half to even, as `Decimal` does it."""
    written = numeral if quoted else Number(numeral)
    trace = longpole.read_trace(document([{**operators("a")[0], "ts": written, "dur": 0}]))
    exact = (Decimal(numeral) * 1000).to_integral_value(ROUND_HALF_EVEN)
    if abs(exact) < 2**63:
        assert trace.events["start_ns"].to_list() == [int(exact)]
    else:
        assert trace.diagnostics["code"].to_list() == ["bad_timestamp"]


@given(st.integers(-(10**18), 10**18), st.integers(0, 2**53 - 1))
def test_nanoseconds_survive_the_way_through_a_file(start_ns, duration_ns):
    times = {"ts": microseconds(start_ns), "dur": microseconds(duration_ns)}
    events = longpole.read_trace(document([{**operators("a")[0], **times}])).events
    assert events.select("start_ns", "duration_ns").rows() == [(start_ns, duration_ns)]


# What to keep, and when to stop.

KERNEL = {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 1, "dur": 1}


@pytest.mark.parametrize(
    ("args", "columns"),
    [
        ("ids", ["event", "context"]),
        ("default", ["event", "context", "grid"]),
        (["mine"], ["event", "context", "mine"]),
        ([], ["event", "context"]),
    ],
)
def test_args_says_which_arguments_are_kept(args, columns):
    given_args = {"device": 0, "stream": 7, "context": 1, "grid": [1, 1, 1], "mine": "x"}
    trace = longpole.read_trace(document([{**KERNEL, "args": given_args}]), args=args)
    assert trace.args("kernel").columns == columns
    assert trace.events.select("device", "stream").rows() == [(0, 7)]


@given(traces(), st.sampled_from(["ids", ["bytes"], []]))
def test_what_is_kept_beside_them_does_not_change_the_events(events, args):
    data = document(events)
    fewer, default = longpole.read_trace(data, args=args), longpole.read_trace(data)
    for name in ["events", "launches", "self_times", "steps", "flows", "counters"]:
        assert_table(getattr(fewer, name), getattr(default, name).rows())


@given(traces(), st.integers(1, 12))
def test_a_limit_of_events_keeps_the_first(events, limit):
    limited = longpole.read_trace(document(events), max_events=limit)
    assert_same_tables(limited, longpole.read_trace(document(events[:limit])))


def test_a_limit_of_bytes_keeps_what_is_whole_before_it():
    data = document(operators(*"abcd"))
    end_of_second = data.index(b"}", data.index(b'"b"')) + 1
    for limit, names in [(end_of_second - 1, ["a"]), (end_of_second, ["a", "b"])]:
        trace = longpole.read_trace(data, max_bytes=limit)
        assert trace.events["name"].to_list() == names
        assert trace.diagnostics.select("code", "first_offset").rows() == [("limit_reached", limit)]


def test_a_limit_that_is_not_reached_is_not_mentioned():
    data = document(operators(*"abcd"))
    for limits in [{"max_bytes": len(data)}, {"max_events": 4}, {"max_events": 5}]:
        assert longpole.read_trace(data, **limits).status == "ok"
