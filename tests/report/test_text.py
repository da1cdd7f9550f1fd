"""Answers as text: what a terminal of some width shows."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from longpole.report.blocks import Column, Sentence, Table
from longpole.report.text import Terminal, text
from longpole.words.wording import duration, memory_size, share

NAME = "kernel_of_my_own_with_a_name_that_says_what_it_does_in_256x128_tiles_" * 3
FIGURES = [(f"figure {number}", "count") for number in range(9)]


def shown_name(width, n_figures):
    columns = (Column("name", "name"), *(Column(*each) for each in FIGURES[:n_figures]))
    table = Table(columns, [(NAME, *([7] * n_figures))])
    titles, line, *_ = text([table], Terminal(width)).splitlines()
    return len(titles.split()), line.split("  ")[0]


def test_a_name_takes_the_width_that_the_shown_columns_leave():
    for n_figures in (0, 3, 9):
        found = [shown_name(width, n_figures) for width in range(20, 300)]
        assert [n_columns for n_columns, _ in found] == sorted(n_columns for n_columns, _ in found)
        for n_columns in {n_columns for n_columns, _ in found}:
            lengths = [len(name) for n_shown, name in found if n_shown == n_columns]
            assert lengths == sorted(lengths)
            assert lengths[0] >= 24
        assert lengths[-1] > 150


def test_a_paragraph_stays_readable_where_a_table_takes_all_of_the_width():
    words = "word " * 100
    lines = text([Sentence(words)], Terminal(300)).splitlines()
    assert 110 < max(map(len, lines)) <= 120


def test_a_narrow_table_drops_columns_of_zeros_first_and_keeps_one_that_tells():
    columns = [Column("device"), *(Column(name, "share") for name in ("busy", "comm", "idle"))]
    table = Table(columns, [("device 0", 0.67, 0.0, 0.33), ("device 1", 0.5, 0, 0.5)])
    titles = {
        width: text([table], Terminal(width)).splitlines()[0].split() for width in (34, 26, 5)
    }
    assert titles == {
        34: ["device", "busy", "comm", "idle"],
        26: ["device", "busy", "idle"],
        5: ["device", "busy"],
    }


def test_a_table_that_is_too_wide_leaves_columns_out_and_names_them():
    columns = (
        Column("kernel", "name"),
        Column("count", "count"),
        Column("std", "duration"),
        Column("mean", "duration"),
        Column("delay", "duration"),
        Column("unknown", "number"),
        Column("sorted", "count", is_needed=True),
    )
    table = Table(columns, [("gemm", 1_000, 2_000, 3_000, 4_000, None, 5_000)])
    shown = {width: text([table], Terminal(width)) for width in (57, 56, 47, 38, 29, 10)}
    assert "do not fit" not in shown[57]
    titles = {width: answer.splitlines()[0].split() for width, answer in shown.items()}
    assert titles[56] == ["kernel", "count", "std", "mean", "delay", "sorted"]
    assert titles[47] == ["kernel", "count", "mean", "delay", "sorted"]
    assert titles[38] == ["kernel", "count", "delay", "sorted"]
    assert titles[29] == ["kernel", "count", "sorted"]
    assert titles[10] == ["kernel", "sorted"]
    assert shown[38].endswith("Columns that do not fit: std, mean,\nunknown.")
    for width in (56, 47, 38, 29):
        assert max(map(len, shown[width].splitlines())) <= width


@given(
    quantities=st.lists(
        st.one_of(
            st.integers(0, 10**12).map(duration),
            st.floats(0, 1).map(share),
            st.integers(0, 10**12).map(memory_size),
        ),
        min_size=1,
    ),
    width=st.integers(20, 120),
)
def test_no_line_ends_between_a_number_and_its_unit(quantities, width):
    sentence = "The step takes " + ", then ".join(quantities) + "."
    lines = text([Sentence(sentence)], Terminal(width)).splitlines()
    assert " ".join(lines) == sentence
    assert not [line for line in lines if line[-1].isdigit()]
    assert max(map(len, lines)) <= width
