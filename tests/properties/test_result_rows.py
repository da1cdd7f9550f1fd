"""Whatever stands in a results file, its rows are records, damaged or foreign: nothing else."""

from __future__ import annotations

import json
import random

import pytest

from longpole.bench import Measurement, Outcome, Record
from longpole.bench.records.reading import ResultsFile, parse_record, row_kind
from longpole.bench.records.record import LONGEST_NS
from longpole.bench.records.store import Store
from longpole.cli.program import run
from longpole.report.document import FORMATS

VALUES = [
    None, True, -1, 0, 10**30, 10**400, 2**63, 1e300, 1e400, float("nan"), -0.0,
    "", "\ud800", "a\0b", "1.5",
    [], {}, [[]], {"schema": "longpole.bench.record/1"}, ["a", 1],
]  # fmt: skip
TOKENS = [b"{", b"}", b"[", b"]", b'"', b"\\", b"null", b"NaN", b"1e999", b"\xff", b"\0", b"\n"]


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    path = tmp_path_factory.mktemp("rows") / "r.jsonl"
    best = Measurement("gemm", 1.5e6, 64, {"time": "1.5"})
    with Store(path) as store:
        store.append(Record(id="a", key="a", outcome=Outcome.OK, results=(best,), best=best))
        store.append(Record(id="b", key="b", outcome=Outcome.TIMEOUT, argv=("x",), tags={"m": 1}))
    return path.read_bytes().splitlines()


def with_another_value(row, chance):
    """Replace one value, at any depth, by one that it should not be."""
    fields = json.loads(row)
    at = fields
    while True:
        keys = list(at) if isinstance(at, dict) else range(len(at))
        key = chance.choice(list(keys))
        inner = at[key]
        if not (isinstance(inner, dict | list) and inner and chance.random() < 0.6):
            at[key] = chance.choice(VALUES)
            return json.dumps(fields).encode()
        at = inner


def with_other_bytes(row, chance):
    found = bytearray(row)
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(found) + 1)
        found[at : at + chance.randint(0, 9)] = chance.choice(TOKENS)
    return bytes(found)


def mutant(rows, seed):
    chance = random.Random(seed)  # noqa: S311 (to be repeated)
    change = chance.choice([with_another_value, with_other_bytes])
    return change(chance.choice(rows), chance)


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-1e999"])
def test_a_number_that_json_cannot_hold_is_none_and_the_row_is_kept(rows, number):
    row = rows[0].replace(b'"stderr_bytes": 0', f'"stderr_bytes": {number}'.encode())
    assert row != rows[0]
    record = parse_record(row)
    json.dumps(record.to_dict(), allow_nan=False)
    assert record.best == parse_record(rows[0]).best


@pytest.mark.parametrize(
    "n_rows", [pytest.param(3_000, id="few"), pytest.param(200_000, marks=pytest.mark.slow)]
)
def test_a_row_is_a_record_with_times_that_can_be_or_it_is_none(rows, tmp_path, n_rows):
    path = tmp_path / "mutants.jsonl"
    with path.open("wb") as file:
        for seed in range(n_rows):
            row = mutant(rows, seed)
            row_kind(row)
            record = parse_record(row)
            for each in () if record is None else (*record.results, record.best):
                assert each is None or 0 < each.time_ns <= LONGEST_NS, seed
            file.write(row + b"\n")
    found = ResultsFile(path)
    finals = list(found.final_records())
    assert 0 < len(finals) <= found.n_records
    assert found.n_skipped > 0


NUMBERS = [-1, 0, 0.5, 2**63, 10**30, 10**400, 1e300, 1e308, -1e308, True]
FORMS = [("--by", by, "--format", form) for by in ("job", "key", "attempt") for form in FORMATS]


def places(value, path=()):
    """Yield the paths to all numbers and missing values in a document."""
    if isinstance(value, dict | list):
        pairs = value.items() if isinstance(value, dict) else enumerate(value)
        for key, inner in pairs:
            yield from places(inner, (*path, key))
    elif not isinstance(value, str):
        yield path


def test_results_with_any_number_in_any_place_are_shown_in_every_form(rows, tmp_path, capsys):
    path = tmp_path / "r.jsonl"
    chance = random.Random(1)  # noqa: S311 (to be repeated)
    for row in rows:
        for place in places(json.loads(row)):
            fields = json.loads(row)
            at = fields
            for key in place[:-1]:
                at = at[key]
            at[place[-1]] = chance.choice(NUMBERS)
            path.write_text(json.dumps(fields))
            asked = ["bench", "compare", str(path), *chance.choice(FORMS)]
            assert run(asked) in {0, 3, 4}, (place, at[place[-1]], asked, capsys.readouterr().err)
