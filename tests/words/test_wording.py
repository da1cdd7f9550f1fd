"""Quantities and names in words: what is written stays true, and fits."""

import re
from typing import get_args

from hypothesis import given
from hypothesis import strategies as st

from longpole.report.blocks import Column, Type, shown
from longpole.words import wording
from longpole.words.wording import (
    change,
    count,
    duration,
    escape,
    memory_size,
    number,
    share,
    short_name,
    short_names,
    whole_percent,
)

NANOSECONDS = {"s": 1e9, "ms": 1e6, "µs": 1e3, "ns": 1}


@given(st.integers(1, 10**15))
def test_a_duration_is_right_to_three_digits(nanoseconds):
    number, unit = duration(nanoseconds).split()
    written = float(number.replace(",", "")) * NANOSECONDS[unit]
    assert abs(written - nanoseconds) <= 0.0051 * nanoseconds
    assert unit == "s" or float(number) < 1000


@given(st.floats(0, 1))
def test_a_share_is_nothing_or_all_only_when_it_is(part):
    assert (share(part) == "0 %") == (part == 0)
    assert (share(part) == "100 %") == (part == 1)


@given(st.text(), st.integers(12, 100))
def test_a_short_name_fits_and_cannot_act(name, width):
    short = short_name(name, width)
    assert 0 < len(short) <= max(width, len("(empty name)"))
    assert short == escape(short)


@given(st.lists(st.text(min_size=1), max_size=8), st.integers(12, 100))
def test_names_are_shortened_each_in_its_place(names, width):
    short = short_names(names, width)
    assert len(short) == len(names)
    assert all(len(text) <= width for text in short)


@given(st.lists(st.integers(0, 10**7), min_size=1, max_size=9), st.integers(12, 80), st.booleans())
def test_a_number_is_shown_whole_or_not_at_all(numbers, width, is_kernel):
    sign = "x" if is_kernel else ", "
    name = f"aten::convolution [{sign.join(map(str, numbers))}]"
    others = [name.replace("[", f"[{number}{sign}") for number in (3, 77)]
    for short in [short_name(name, width), *short_names([name, *others], width)]:
        kept = set(re.findall(r"\d+", short.replace("…", " … ")))
        assert kept <= {*map(str, numbers), "3", "77"}


@given(st.floats() | st.integers() | st.integers(300, 5000).map(lambda digits: 10**digits))
def test_every_number_has_words(value):
    for form in (duration, share, change, whole_percent, count, number, memory_size):
        assert form(value)
        assert form(-value)
    for kind in get_args(Type):
        assert shown(Column("value", kind), value)


def test_each_name_is_shortened_a_few_times_however_many_are_alike(monkeypatch):
    cleaned = []
    clean = wording._clean
    monkeypatch.setattr(wording, "_clean", lambda name: cleaned.append(name) or clean(name))
    plain = [f"gemm_{'x' * 200}_{number:03}_{'y' * 200}" for number in range(200)]
    templates = [f"void my::k<{'Pair<int>, ' * 30}F{number:03}>(int*)" for number in range(200)]
    for names in (plain, templates):
        cleaned.clear()
        assert len({*short_names(names, 40)}) == len(names)
        assert len(cleaned) <= 4 * len(names)
