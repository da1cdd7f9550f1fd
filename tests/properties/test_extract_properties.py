"""What must hold of extraction whatever is printed, and however it is cut into chunks."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longpole import bench

names = st.text(
    st.characters(codec="utf-8", exclude_categories=("C", "Z")), min_size=1, max_size=30
).filter(lambda name: "OP:" not in name and "TIME:" not in name and not name.endswith(","))
times = st.floats(min_value=1e-7, max_value=1e7).map(lambda value: f"{value:.6g}")
sizes = st.integers(min_value=0, max_value=2**62)

# Lines of which none begins, continues or resembles a row of any format.
noise = st.one_of(
    st.text(st.characters(codec="utf-8", exclude_characters='\n\r,=#"'), max_size=60)
    .map(str.strip)
    .filter(lambda line: not re.match(r"TIME:|WS:|OP:|\d", line)),
    st.sampled_from(
        [
            "",
            "[rank0] 12% done",
            "TIME is short, OP: none",
            "node:1:2 [0] NCCL INFO Channel 00 : 0 1",
        ]
    ),
)


@st.composite
def aitemplate_rows(draw):
    name, printed, workspace = draw(names), draw(times), draw(sizes)
    return [f"OP:{name},TIME:{printed},WS:{workspace}"], [("aitemplate", name, printed)]


@st.composite
def aitemplate_pairs(draw):
    printed, workspace = draw(times), draw(sizes)
    return [f"TIME:{printed}", f"WS:{workspace}"], [("aitemplate", None, printed)]


@st.composite
def rocblas_rows(draw):
    printed = draw(times)
    lines = [
        "transA,transB,M,N,K,alpha,lda,rocblas-Gflops,us",
        f"N,T,{draw(sizes)},8,8,1,8, 10.5, {printed}",
    ]
    return lines, [("rocblas", None, printed)]


@st.composite
def hipblaslt_rows(draw):
    printed = draw(times)
    header = [f"c{number}" for number in range(draw(st.sampled_from([20, 31, 45])))]
    lines = [
        f"[{draw(st.integers(0, 9))}]:transA,{','.join(header)},hipblaslt-Gflops,us",
        f"    T,{','.join('7' for _ in header)},5.5, {printed}",
    ]
    return lines, [("hipblaslt", None, printed)]


@st.composite
def nccl_tables(draw):
    printed = draw(st.lists(times, min_size=2, max_size=2))
    lines = [
        "#  size  count  type  redop  root  time  algbw  busbw #wrong  time  algbw  busbw #wrong",
        f"  {draw(sizes)}  8  float  sum  -1  {printed[0]} 1.0 2.0 0  {printed[1]} 1.0 2.0 N/A",
        "# Avg bus bandwidth    : 2.0",
    ]
    return lines, [("nccl", None, time) for time in printed]


@st.composite
def cutlass_blocks(draw):
    printed = draw(times)
    operation = draw(st.from_regex(r"[a-z][a-z0-9_]{0,30}", fullmatch=True))
    lines = [
        "=============================",
        "  Problem ID: 1",
        f"       Operation: {operation}",
        "          Status: Success",
        f"         Runtime: {printed}  ms",
        "            Math: 1.5 GFLOP/s",
    ]
    return lines, [("cutlass", operation, printed)]


blocks = st.one_of(
    aitemplate_rows(),
    aitemplate_pairs(),
    rocblas_rows(),
    hipblaslt_rows(),
    nccl_tables(),
    cutlass_blocks(),
)


@st.composite
def logs(draw):
    lines, expected = [], []
    for printed, rows in draw(st.lists(blocks, max_size=6)):
        for line in printed:
            lines += [*draw(st.lists(noise, max_size=2)), line]
        expected += rows
    lines += draw(st.lists(noise, max_size=2))
    ends = draw(
        st.lists(st.sampled_from(["\n", "\r\n", "\r"]), min_size=len(lines), max_size=len(lines))
    )
    text = "".join(line + end for line, end in zip(lines, ends, strict=True))
    return text.encode(), expected


def told(found):
    return [(row.format, row.operation, row.printed_time) for row in found.measurements]


@given(logs())
def test_rendered_rows_extract_to_themselves_under_noise(log):
    text, expected = log
    found = bench.extract(text)
    assert sorted(told(found), key=str) == sorted(expected, key=str)
    assert all(row.status == "ok" for row in found.measurements)


@given(logs(), st.data())
def test_chunks_make_no_difference(log, data):
    text, _ = log
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=20)))
    extractor = bench.Extractor()
    for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True):
        extractor.feed(text[start:end])
    in_pieces, whole = extractor.finish(), bench.extract(text)
    assert in_pieces.records.equals(whole.records, null_equal=True)
    assert in_pieces.fields.equals(whole.fields)
    assert in_pieces.rejected.equals(whole.rejected)


@given(logs(), st.data())
def test_a_death_anywhere_invents_nothing(log, data):
    text, expected = log
    found = bench.extract(text[: data.draw(st.integers(0, len(text)))], died=True)
    sound = [
        told
        for told, row in zip(told(found), found.measurements, strict=True)
        if row.status == "ok"
    ]
    assert set(sound) <= set(expected)


@given(st.binary(max_size=2000), st.booleans())
def test_any_bytes_are_taken(text, died):
    found = bench.extract(text, died=died)
    assert found.n_bytes == len(text)


FRAGMENTS = ["t=", "1", "2.5", "e-3", " us", "=", "t", "\n", "inf", "-", "x"]


@given(st.lists(st.sampled_from(FRAGMENTS), max_size=40).map("".join))
def test_a_pattern_finds_what_python_finds(text):
    pattern = r"t=(?P<time_us>-?[0-9.]+(?:e-?[0-9]+)?|inf)"
    found = bench.extract(text.encode(), format=f"regex={pattern}")
    by_python = re.findall(pattern, text, re.ASCII)
    is_number = [printed for printed in by_python if printed.count(".") < 2]
    assert [row.printed_time for row in found.measurements] == is_number
    assert sum(found.rejected_counts.values()) == len(by_python) - len(is_number)


def _seconds(text, format_name):
    """Return the minimum of several measurements, as any disturbance makes one longer."""
    rounds, spent = 1, 0.0
    while spent < 0.02:
        rounds *= 2
        spent = _seconds_of_rounds(text, format_name, rounds)
    return min(_seconds_of_rounds(text, format_name, rounds) for _ in range(7)) / rounds


def _seconds_of_rounds(text, format_name, rounds):
    start = time.process_time()
    for _ in range(rounds):
        bench.extract(text, format=format_name)
    return time.process_time() - start


# Python's `re` takes minutes for thirty letters of the first text, four times as long
# for each two letters more.
@pytest.mark.slow
@pytest.mark.parametrize(
    ("format_name", "unit"),
    [
        (r"regex=^(?:\s*\w+\s*:?)+\|(?P<time_us>\d+)$", b"a"),
        (r"regex=(?:a|aa)+(?P<time_us>\d)", b"a"),
        ("auto", b"OP:"),
        ("auto", b"TIME:"),
        ("auto", b" ,TIME:"),
        ("auto", b"9"),
        ("auto", b"\r"),
        ("auto", b"transA,"),
        ("auto", b'"ID","'),
    ],
)
def test_time_grows_with_the_length_only(format_name, unit):
    once, twice = (
        _seconds(b"OP:TIME:" + unit * (length // len(unit)) + b"\n", format_name)
        for length in (400_000, 800_000)
    )
    assert twice <= 2.5 * once
