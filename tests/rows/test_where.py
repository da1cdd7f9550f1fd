"""What a condition means, and what is said about one that means nothing."""

from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import longpole
from longpole.rows.selection import matching, sorted_by
from longpole.rows.selection.grammar import KEYWORDS
from longpole.tables.catalogue import gives_frame, views_of
from longpole.tables.questions import questions

ROWS = pl.DataFrame(
    {
        "name": ["gemm", "add", None, "x%y_z"],
        "stream": [7, 8, 9, None],
        "group": ["0", "1", "2", "3"],
        "slow": [True, None, False, True],
        "share": [1.5, 2.0, float("nan"), None],
        "shapes": [[1], [2], [], None],
        "nothing": [None, None, None, None],
    },
    schema_overrides={"name": pl.Categorical},
)


def kept(condition, rows=ROWS):
    return "".join(matching(rows, condition)["group"])


@pytest.mark.parametrize(
    ("condition", "groups"),
    [
        ("name LIKE 'g%' AND stream = 7", "0"),
        ("name like '%d%' or stream is null", "13"),
        ("name ILIKE 'G_MM'", "0"),
        ("name NOT LIKE 'g%'", "13"),
        ("name REGEXP '^(g|a)'", "01"),
        ("contains(name, '%y_') AND ends_with(name, 'z')", "3"),
        ("stream IN (7, -9, 9.0)", "02"),
        ("stream NOT IN (7)", "12"),
        ("stream BETWEEN 7 AND 8 OR slow", "013"),
        ("NOT slow", "2"),
        ("NOT NOT slow", "03"),
        ("slow = true", "03"),
        ("\"group\" = '2' OR group == '3'", "23"),
        ("2 + 3 * 2 = 10 OR stream <> 7", "12"),
        ("stream - 1 - 1 = 5", "0"),
        ("-stream % 4 = 1", "0"),
        ("stream / 0 = 1 OR stream / 2 = 3.5", "0"),
        ("share < 2", "0"),
        ("share IS NULL", "23"),
        ("shapes IS NOT NULL AND nothing IS NULL", "012"),
        ("nothing = 1 OR nothing = 'a' OR nothing", ""),
        ("coalesce(stream, -1) = -1 OR coalesce(name, 'none') = 'none'", "23"),
        ("LENGTH(upper(name)) = 4 AND abs(-stream) = 7", "0"),
        ("stream + 9223372036854775807 > 9223372036854775807", "012"),
        ("(stream - 7) * 18446744073709551615 > 18446744073709551614", "12"),
        ("1 = 1", "0123"),
        ("name = 'it''s'", ""),
    ],
)
def test_a_condition_keeps_rows(condition, groups):
    assert kept(condition) == groups


@pytest.mark.parametrize(
    ("condition", "told"),
    [
        ("nme = 'gemm'", "at character 1: there is no column 'nme' (did you mean name?)"),
        ("stream = 7 AND", "at character 15: expected a column, a number, a text in single quotes"),
        ("name = 'gemm", "at character 8: a text has no closing quote"),
        ("stream = '7'", "at character 8: stream is a number and '7' is a text"),
        ("stream LIKE '7%'", "at character 1: a text is needed here, and stream is a number"),
        ("stream", "at character 1: this is a number, not a condition; compare it"),
        ("7 < stream < 9", "at character 12: expected AND, OR or the end, found '<'"),
        ("stream = NULL", "at character 10: expected a column, a number, a text"),
        ("shapes = 1", "at character 8: shapes is a list, which can only be compared with IS NULL"),
        ("lenght(name) = 1", "no function 'lenght' (did you mean length?); there are lower, upper"),
        ("lpad(name, 2000000000) = 'x'", "at character 1: there is no function 'lpad'"),
        ("starts_with(name)", "at character 1: starts_with takes 2 arguments, not 1"),
        ("name REGEXP '('", "at character 6: invalid regular expression: unclosed group"),
        ("share % 2 = 1", "at character 7: % needs integers"),
        ("slow < true", "at character 6: truth values have no order"),
        ("stream IN (1, 'a')", "at character 8: stream is a number and 'a' is a text"),
        (
            "stream = 1 OR " * 300 + "slow",
            "it has more than 200 operations; shorten it, e.g. with IN",
        ),
    ],
)
def test_an_invalid_condition_is_told_its_place_and_the_reason(condition, told):
    with pytest.raises(ValueError, match=r"^invalid condition ") as raised:
        matching(ROWS, condition)
    assert told in str(raised.value)


def test_an_unknown_column_is_answered_with_the_columns():
    with pytest.raises(ValueError, match=r"the columns are name, stream, .*; strings need quotes"):
        matching(ROWS, "naem = gemm")


def test_a_frame_without_rows_has_no_rows_for_any_condition():
    for condition in ("stream = 7", "1 = 1", "name LIKE 'g%' OR slow"):
        assert_frame_equal(matching(ROWS.clear(), condition), ROWS.clear())


def test_what_is_no_condition_is_a_wrong_type():
    with pytest.raises(TypeError, match="where is a text or an expression of polars, not int"):
        matching(ROWS, 7)


def test_names_from_a_trace_are_not_patterns():
    rows = pl.DataFrame({"^.*$": [1, 2], "*": [4, 3]})
    assert matching(rows, '"^.*$" = 2').rows() == [(2, 3)]
    assert sorted_by(rows, "^.*$").rows() == [(2, 3), (1, 4)]


def test_no_column_of_a_table_needs_quotes():
    trace = longpole.read_trace(Path(longpole.__file__).parent / "examples/trace.json.gz")
    tables = [
        getattr(longpole, name)(trace, **({"by": by} if by else {}))
        for name in questions()
        for by in views_of(name)
        if gives_frame(name, by)
    ]
    columns = {column for table in tables for column in table.columns}
    assert {"name", "group", "start_ns"} <= columns
    assert not {column.upper() for column in columns} & KEYWORDS
