"""What is kept and found of what a job prints."""

import pytest

from longpole.bench.run.output import Output, Tail, check_format

TEXT = b"noise\nOP:a::b<1,2>,TIME:1e-05,WS:0\r\n 50%\rOP:b,TIME:2.5E+01,WS:64\nend\n"


def found(*chunks, died=False):
    output = Output("auto")
    for chunk in chunks:
        output.take("stdout", chunk)
    answer = output.finish(died=died)
    return [(each.name, each.time_ns) for each in answer.results], answer.unparsed


@pytest.mark.parametrize("size", [1, 2, 7, 64, 1000])
def test_any_cut_gives_the_same_results(size):
    chunks = [TEXT[start : start + size] for start in range(0, len(TEXT), size)]
    assert found(*chunks) == ([("a::b<1,2>", 10.0), ("b", 25e6)], 0)


@pytest.mark.parametrize("time", ["nan", "inf", "0", "0.000", "-1", "1.2.3", "0,5"])
def test_what_cannot_be_chosen_is_counted_and_no_result(time):
    assert found(f"OP:a,TIME:{time},WS:0\n".encode()) == ([], 1)


def test_the_last_line_of_what_died_is_no_result():
    assert found(b"OP:a,TIME:0.7,WS:0")[0] == [("a", 0.7e6)]
    assert found(b"OP:a,TIME:0.7,WS:0", died=True) == ([], 1)


def test_results_are_not_looked_for_on_stderr_nor_where_none_are_expected():
    on_stderr, unexpected = Output("auto"), Output("none")
    on_stderr.take("stderr", TEXT)
    unexpected.take("stdout", TEXT)
    assert on_stderr.finish(died=False).results == unexpected.finish(died=False).results == ()


def test_of_a_flood_the_end_is_kept():
    tail = Tail()
    for number in range(10_000):
        tail.feed(b"%09d\n" % number * 10)
    assert tail.n_bytes == 1_000_000
    assert len(tail.text()) == 64 << 10
    assert tail.text(10) == "000009999\n"


def test_the_telling_line_speaks_of_the_error():
    tail = Tail()
    tail.feed(b"a.c:1: error: no x\n  ^\nnote: once\n\n")
    assert tail.telling_line() == "a.c:1: error: no x"


def test_an_unknown_format_is_refused():
    check_format("none")
    check_format("regex=(?P<op>[a-z]+) (?P<time_us>[0-9.]+)")
    with pytest.raises(ValueError, match="odd"):
        check_format("odd")
