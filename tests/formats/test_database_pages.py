"""Damaged pages of databases, which SQLite reads without an error: fewer rows, or other ones."""

import sqlite3
from contextlib import closing
from itertools import pairwise

import pytest

from longpole import read_trace
from longpole.cli import program
from oracles.simulator import simulate
from oracles.simulator.nsight import write_nsight
from oracles.simulator.rocpd import write_rocpd

WRITERS = {"nsight": write_nsight, "rocpd": write_rocpd}
# Small pages give trees of three levels.
PAGE = 512
INTERIOR, LEAF = 5, 13
READ = ("StringIds", "CUPTI_ACTIVITY_KIND_", "NVTX_EVENTS", "rocpd_")


@pytest.fixture(scope="module", params=WRITERS)
def intact(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("intact") / "profile.db"
    WRITERS[request.param](simulate("training", seed=1, steps=2), path)
    return rewritten(path, PAGE).read_bytes()


@pytest.fixture
def database(intact, tmp_path):
    path = tmp_path / "profile.db"
    path.write_bytes(intact)
    return path


def rewritten(path, page, auto_vacuum=0, statements=""):
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(f"PRAGMA page_size = {page}")
        connection.execute(f"PRAGMA auto_vacuum = {auto_vacuum}")
        connection.execute("VACUUM")
        connection.executescript(statements)
    return path


def number(whole, at, n_bytes):
    return int.from_bytes(whole[at : at + n_bytes], "big")


def below(whole, page):
    """Return the places of the numbers of the pages below one."""
    header = PAGE * (page - 1)
    cells = [header + 12 + 2 * cell for cell in range(number(whole, header + 3, 2))]
    return [*(header + number(whole, cell, 2) for cell in cells), header + 8]


def tree(whole, page):
    """Yield a page and all below it."""
    yield page
    if whole[PAGE * (page - 1)] == INTERIOR:
        for place in below(whole, page):
            yield from tree(whole, number(whole, place, 4))


def trees(path, names):
    """Return the pages of all tables whose names begin so."""
    with closing(sqlite3.connect(path)) as connection:
        tables = connection.execute("SELECT name, rootpage FROM sqlite_schema WHERE rootpage > 0")
        roots = [root for name, root in tables if name.startswith(names)]
    return [page for root in roots for page in tree(path.read_bytes(), root)]


def pages_read(path, kind):
    """Return the pages of one kind, with two cells or more, of the tables that are read."""
    whole, pages = path.read_bytes(), trees(path, READ)
    starts = {page: PAGE * (page - 1) for page in pages}
    return [
        page for page, at in starts.items() if whole[at] == kind and number(whole, at + 3, 2) > 1
    ]


def found(path):
    return {row["code"]: row for row in read_trace(path).diagnostics.to_dicts()}


@pytest.mark.parametrize("kept", [lambda n: n // 2, lambda n: n - 1])
@pytest.mark.parametrize("kind", [LEAF, INTERIOR])
def test_another_number_of_cells_is_found_in_every_page(kind, kept, database):
    whole = database.read_bytes()
    pages = pages_read(database, kind)
    assert len(pages) > (20 if kind == LEAF else 3)
    for page in pages:
        damaged = bytearray(whole)
        place = PAGE * (page - 1) + 3
        damaged[place : place + 2] = kept(number(whole, place, 2)).to_bytes(2, "big")
        database.write_bytes(damaged)
        assert "damaged_page" in found(database), page


def test_two_pages_in_each_others_place_are_found(database):
    whole = database.read_bytes()
    for one, other in pairwise(pages_read(database, LEAF)):
        damaged = bytearray(whole)
        first, second = (slice(PAGE * (page - 1), PAGE * page) for page in (one, other))
        damaged[first], damaged[second] = whole[second], whole[first]
        database.write_bytes(damaged)
        assert "damaged_page" in found(database), (one, other)


def test_a_page_that_nothing_names_is_found_at_its_place(database):
    whole = bytearray(database.read_bytes())
    parent = pages_read(database, INTERIOR)[-1]
    [*_, last] = below(whole, parent)
    lost = number(whole, last, 4)
    [first, *_] = below(whole, parent)
    whole[last : last + 4] = whole[first : first + 4]
    database.write_bytes(whole)
    row = found(database)["damaged_page"]
    # The lost page, and the one that is named twice.
    assert row["count"] == 2
    twice = number(whole, first, 4)
    assert row["first_offset"] == PAGE * (min(lost, twice) - 1)


def test_a_table_that_the_schema_lost_is_found(database):
    whole = bytearray(database.read_bytes())
    header = 100
    kind, n_cells = whole[header], number(whole, header + 3, 2)
    assert kind == INTERIOR
    whole[header + 3 : header + 5] = (n_cells - 1).to_bytes(2, "big")
    database.write_bytes(whole)
    assert "damaged_page" in found(database)


def test_an_answer_without_the_last_row_of_a_table_is_in_doubt(database, capsys):
    before = read_trace(database).events.height
    whole = bytearray(database.read_bytes())
    page = trees(database, ("CUPTI_ACTIVITY_KIND_KERNEL", "rocpd_kernel_dispatch"))[-1]
    whole[PAGE * (page - 1) + 4] -= 1
    database.write_bytes(whole)
    assert read_trace(database).events.height == before - 1
    assert read_trace(database).damage.is_grave
    assert program.run(["summary", str(database)]) == 4
    text = " ".join(capsys.readouterr().out.split())
    assert f"(a page of the database is damaged, at byte {PAGE * (page - 1):,}" in text


CHANGES = """
CREATE TABLE other (name TEXT PRIMARY KEY, size INTEGER) WITHOUT ROWID;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300)
  INSERT INTO other SELECT printf('%.*c', 1 + i * 37 % 900, 'x') || i, i FROM n;
CREATE TABLE long (value TEXT);
INSERT INTO long SELECT name || name || name || name FROM other;
CREATE INDEX of_long ON long (value);
DELETE FROM other WHERE size % 3 > 0;
DELETE FROM long WHERE rowid % 2 > 0;
"""


@pytest.mark.parametrize("auto_vacuum", [0, 1, 2])
@pytest.mark.parametrize("page", [512, 4096, 65536])
def test_no_page_of_an_intact_database_is_taken_for_damaged(page, auto_vacuum, database):
    with closing(sqlite3.connect(database)) as connection:
        rows = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall()
    changes = [
        f"""DELETE FROM "{name}" WHERE rowid % 5 = 2;
        ALTER TABLE "{name}" ADD COLUMN more DEFAULT 3;
        UPDATE "{name}" SET more = printf('%.*c', rowid * 7 % 600, 'z') WHERE rowid % 3 = 1;"""  # noqa: S608 - names of this file
        for (name,) in rows
    ]
    rewritten(database, page, auto_vacuum, CHANGES + "".join(changes))
    with closing(sqlite3.connect(database)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    codes = set(found(database))
    assert "missing_rows" in codes
    assert not codes & {"damaged_page", "damaged_table"}


def test_who_wants_the_first_records_does_not_wait_for_all_pages(database):
    page = pages_read(database, LEAF)[-1]
    whole = bytearray(database.read_bytes())
    whole[PAGE * (page - 1) + 4] -= 1
    database.write_bytes(whole)
    codes = read_trace(database, max_events=3).diagnostics["code"].to_list()
    assert codes == ["limit_reached"]
