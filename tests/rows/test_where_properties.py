"""Conditions against a naive evaluation, row by row; and text that is anything at all."""

from __future__ import annotations

import math
import re

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from longpole.rows.selection import matching

NUMBERS = {"stream": st.integers(-(2**31), 2**31), "share": st.floats(allow_infinity=True)}
TEXTS = {"name": st.text("aAbß%_.'\n", max_size=4), "group": st.text("ab", max_size=2)}
TRUTHS = {"slow": st.booleans()}
COLUMNS = NUMBERS | TEXTS | TRUTHS
SCHEMA = {
    "stream": pl.Int64,
    "share": pl.Float64,
    "name": pl.Categorical,
    "group": pl.String,
    "slow": pl.Boolean,
}


def known(function):
    """Make an operation null if an operand is."""
    return lambda *values: None if None in values else function(*values)


def opaque(strategy):
    """Hide how a strategy is made, which would be too long to print."""

    @st.composite
    def drawn(draw):
        return draw(strategy)

    return drawn()


def number(value):
    """Return a number, or None for what is not a number."""
    return None if isinstance(value, float) and math.isnan(value) else value


def alike(left, right):
    """Make both numbers floats if one of them is; the computer compares them so."""
    is_float = isinstance(left, float) or isinstance(right, float)
    return (float(left), float(right)) if is_float else (left, right)


def arithmetic(symbol, left, right):
    if symbol == "/":
        return None if right == 0 else number(float(left) / float(right))
    if symbol == "%":
        return None if right == 0 else left % right
    left, right = alike(left, right)
    found = {"+": lambda: left + right, "-": lambda: left - right, "*": lambda: left * right}
    return number(found[symbol]())


def compared(symbol, left, right):
    if not isinstance(left, str):
        left, right = alike(left, right)
    return {
        "=": left == right,
        "<>": left != right,
        "<": left < right,
        ">=": left >= right,
    }[symbol]


def like(text, pattern):
    if not pattern:
        return not text
    first, rest = pattern[0], pattern[1:]
    if first == "%":
        return any(like(text[start:], rest) for start in range(len(text) + 1))
    return bool(text) and first in {"_", text[0]} and like(text[1:], rest)


def both(left, right):
    return False if False in {left, right} else None if None in {left, right} else True


def either(left, right):
    return True if True in {left, right} else None if None in {left, right} else False


def written(text):
    return "'" + text.replace("'", "''") + "'"


def of_columns(names):
    return st.sampled_from(sorted(names)).map(lambda name: (name, lambda row: row[name]))


def constant(value, text):
    return text, lambda _row: value


def operation(form, compute, *operands):
    """Write an operation; compute it from the values of its operands in a row."""
    text = form.format(*(each[0] for each in operands))
    return text, lambda row: compute(*(each[1](row) for each in operands))


def of_form(form, compute, *operands):
    return st.tuples(*operands).map(lambda found: operation(form, compute, *found))


integers = of_columns({"stream"}) | st.integers(0, 2**31).map(lambda n: constant(n, str(n)))
floats = st.floats(0, 1e300).map(lambda n: constant(n, repr(n)))


def numbers_of(parts, symbols="+-*/"):
    """Combine numbers once more."""
    return st.one_of(
        parts,
        of_form("-({})", known(lambda value: -value), parts),
        of_form("abs({})", known(abs), parts),
        *(
            of_form(
                f"({{}} {symbol} {{}})",
                known(lambda a, b, symbol=symbol: arithmetic(symbol, a, b)),
                parts,
                parts,
            )
            for symbol in symbols
        ),
    )


numbers = opaque(
    numbers_of(numbers_of(integers | floats | of_columns({"share"})) | numbers_of(integers, "+-*%"))
)
literal_texts = st.text("abAß%_.'\n", max_size=3).map(lambda text: constant(text, written(text)))
plain_texts = of_columns(TEXTS) | literal_texts
texts = opaque(
    st.one_of(
        plain_texts,
        of_form("lower({})", known(str.lower), plain_texts),
        of_form("UPPER({})", known(str.upper), plain_texts),
        of_form("coalesce({}, {})", lambda a, b: b if a is None else a, plain_texts, plain_texts),
    )
)


def with_pattern(form, compute, text, pattern):
    sentence = form.format(text[0], written(pattern))
    return sentence, lambda row: known(compute)(text[1](row), pattern)


def patterned(form, compute, patterns):
    return st.builds(with_pattern, st.just(form), st.just(compute), texts, patterns)


def listed(value, values):
    text = f"{value[0]} IN ({', '.join(map(str, values))})"
    return text, lambda row: known(lambda v: any(compared("=", v, w) for w in values))(
        value[1](row)
    )


comparisons = opaque(
    st.one_of(
        of_columns(TRUTHS),
        *(
            of_form(
                f"{{}} {symbol} {{}}",
                known(lambda a, b, symbol=symbol: compared(symbol, a, b)),
                kind,
                kind,
            )
            for symbol in ("=", "<>", "<", ">=")
            for kind in (numbers, texts)
        ),
        of_form("{} IS NULL", lambda value: value is None, numbers | texts),
        of_form("{} IS NOT NULL", lambda value: value is not None, texts),
        of_form(
            "{} BETWEEN {} AND {}",
            lambda value, low, high: both(
                known(lambda a, b: compared(">=", a, b))(value, low),
                known(lambda a, b: compared(">=", a, b))(high, value),
            ),
            numbers,
            numbers,
            numbers,
        ),
        st.builds(listed, integers, st.lists(st.integers(-5, 5), min_size=1, max_size=4)),
        patterned("{} LIKE {}", like, st.text("ab%_.'\n", max_size=4)),
        patterned(
            "{} NOT LIKE {}",
            lambda text, pattern: not like(text, pattern),
            st.text("ab%_", max_size=4),
        ),
        patterned(
            "{} REGEXP {}",
            lambda text, pattern: re.search(pattern, text) is not None,
            st.sampled_from(["^a", "a|b", "[ab]+", "(?i)A", ".b", "x*", "%"]),
        ),
        patterned("contains({}, {})", lambda text, part: part in text, st.text("ab%_", max_size=2)),
        patterned("starts_with({}, {})", str.startswith, st.text("ab_", max_size=2)),
        patterned("ends_with({}, {})", str.endswith, st.text("ab_", max_size=2)),
    )
)
conditions = st.recursive(
    comparisons,
    lambda inner: st.one_of(
        of_form("({} AND {})", both, inner, inner),
        of_form("({} or {})", either, inner, inner),
        of_form("NOT ({})", known(lambda value: not value), inner),
    ),
    max_leaves=6,
)
rows_of_frames = st.lists(
    st.fixed_dictionaries({name: st.none() | values for name, values in COLUMNS.items()}),
    max_size=6,
)


@given(rows_of_frames, conditions)
def test_a_condition_keeps_the_rows_for_which_it_holds(rows, condition):
    text, holds = condition
    cleaned = [
        {name: number(value) for name, value in row.items()} | {"row": place}
        for place, row in enumerate(rows)
    ]
    frame = pl.DataFrame(rows, schema=SCHEMA).with_row_index("row")
    expected = [row["row"] for row in cleaned if holds(row) is True]
    assert matching(frame, text)["row"].to_list() == expected


WORDS = st.sampled_from(
    [
        "name",
        "stream",
        "share",
        "slow",
        "nme",
        "(",
        ")",
        ",",
        "=",
        "<>",
        "<",
        ">=",
        "+",
        "-",
        "*",
        "/",
        "%",
        "AND",
        "OR",
        "NOT",
        "IN",
        "LIKE",
        "ILIKE",
        "REGEXP",
        "BETWEEN",
        "IS",
        "NULL",
        "TRUE",
        "'a'",
        "'%'",
        "'('",
        "'\\w{90}'",
        "7",
        "0",
        "1.5",
        "1e999",
        "9999999999999999999999",
        "abs(",
        "lower(",
        "length(",
        "coalesce(",
        "contains(",
        "lpad(",
        "read_csv(",
        "SELECT",
        "FROM",
        '"name"',
        '"',
        "'",
        ";",
        "--",
        "/*",
        "^.*$",
        "\x00",
        "�",
        "é",
    ]
)
ANYTHING = st.text(max_size=30) | st.lists(WORDS, max_size=12).map(" ".join)


def answer(frame, text):
    """Return the rows of a condition, or the error."""
    try:
        return matching(frame, text)
    except ValueError as error:
        return error


@given(ANYTHING)
def test_any_text_is_a_condition_or_the_one_error(text):
    frame = pl.DataFrame(
        {"name": ["a", None], "stream": [7, None], "share": [0.5, None], "slow": [True, None]}
    )
    found = answer(frame, text)
    if isinstance(found, pl.DataFrame):
        assert found.height <= 2
        return
    assert type(found) is ValueError
    assert re.fullmatch(r"invalid condition .+, at character \d+: .+", str(found))
    assert (found.__cause__, found.__context__) == (None, None)


@pytest.mark.parametrize(
    "text",
    [
        "(" * 5_000,
        "stream = " + "-" * 9_000 + "7 OR",
        "NOT " * 4_000 + "slow AND",
        " OR ".join(f"stream = {number}" for number in range(1_500)),
        "stream " + "+ 1 " * 4_000 + "= 7",
        "abs(" * 3_000 + "stream",
        "name LIKE '" + "%a_" * 6_000 + "' OR name REGEXP '\\w{500}'",
        "x" * 30_000,
        "name REGEXP '((a{50}){50}){50}'",
    ],
)
def test_a_condition_of_any_size_is_answered_with_one_sentence(text):
    frame = pl.DataFrame({"name": ["a"], "stream": [7], "slow": [True]})
    with pytest.raises(ValueError, match=r"^invalid condition ") as raised:
        matching(frame, text)
    assert len(str(raised.value)) < 1_000
