"""Rows of profilers, however the bytes come."""

import pytest

from longpole.bench.rows import open_extractor


def found(*chunks, ended_well=True):
    extractor = open_extractor("auto")
    for chunk in chunks:
        extractor.feed(chunk)
    extraction = extractor.finish(ended_well=ended_well)
    return [(each.name, each.time_ns) for each in extraction.results], extraction.unparsed


TEXT = (
    b"noise\nOP:a::b<1,2>,TIME:1e-05,WS:0\r\n 50%\rOP:b,TIME:2.5E+01,WS:18446744073709551616\nend"
)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 64, 1000])
def test_any_cut_gives_the_same_rows(size):
    chunks = [TEXT[start : start + size] for start in range(0, len(TEXT), size)]
    assert found(*chunks) == ([("a::b<1,2>", 10.0), ("b", 25e6)], 0)


@pytest.mark.parametrize(
    "time", ["nan", "inf", "0", "0.000", "-1", "1.2.3", "0,5", "\u0661.\u0665", ""]
)
def test_what_is_no_time_is_counted_and_never_a_result(time):
    assert found(f"OP:a,TIME:{time},WS:0\n".encode()) == ([], 1)


def test_a_last_line_counts_only_when_its_end_was_meant():
    assert found(b"OP:a,TIME:0.7,WS:0")[0] == [("a", 0.7e6)]
    assert found(b"OP:a,TIME:0.7,WS:0", ended_well=False) == ([], 1)


def test_a_line_without_end_is_given_up_and_the_next_is_read():
    long_line = [b"x" * 65536] * 40
    assert found(*long_line, b"OP:no,TIME:1,WS:0\nOP:yes,TIME:1,WS:0\n") == ([("yes", 1e6)], 0)


def test_an_unknown_format_is_refused():
    with pytest.raises(ValueError, match="unknown format 'odd'"):
        open_extractor("odd")
