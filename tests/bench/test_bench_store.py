"""Results on disk, whatever happens."""

import json
import resource
import subprocess
import sys

import pytest

from longpole.bench import Measurement, Outcome, Record, read_results
from longpole.bench.records.store import Store
from longpole.errors import ResultsError

FILL = """
import resource, sys
from longpole.bench import Outcome, Record
from longpole.bench.records.store import Store
from longpole.errors import ResultsError
resource.setrlimit(resource.RLIMIT_FSIZE, (1500, 1500))
store = Store(sys.argv[1])
try:
    while True:
        store.append(Record("a", "a", Outcome.OK))
except ResultsError as error:
    print(error)
"""


def record(name="a", **fields):
    return Record(id=name, key=name, outcome=Outcome.OK, **fields)


def test_what_is_written_is_read(tmp_path):
    results = (Measurement("gemm", 1.5e6, 64, {"time": "1.5"}),)
    written = record(results=results, best=results[0], argv=("a", "b"), tags={"m": 1})
    with Store(tmp_path / "r.jsonl") as store:
        store.append(written)
    stored = read_results(tmp_path / "r.jsonl")
    assert (stored.records, stored.skipped) == ((written,), 0)


def test_a_row_that_was_cut_is_no_record_and_does_not_spoil_the_next(tmp_path):
    path = tmp_path / "r.jsonl"
    with Store(path) as store:
        store.append(record("a"))
    with path.open("a") as file:
        file.write('{"id": "b", "outc')
    assert [each.id for each in read_results(path).records] == ["a"]
    with Store(path, resume=True) as store:
        store.append(record("c"))
    assert [json.loads(line)["id"] for line in path.read_text().splitlines()] == ["a", "c"]


@pytest.mark.parametrize("resume", [False, True])
def test_a_text_that_is_no_cut_row_is_left_as_it_is(tmp_path, resume):
    path = tmp_path / "notes.txt"
    path.write_text("my notes")
    with pytest.raises(ResultsError, match="no record of a run"):
        Store(path, resume=resume)
    assert path.read_text() == "my notes"


def test_results_are_not_overwritten(tmp_path):
    path = tmp_path / "r.jsonl"
    with Store(path) as store:
        store.append(record())
    with pytest.raises(ResultsError, match="holds results already"):
        Store(path)


def test_two_runners_do_not_share_a_file(tmp_path):
    with Store(tmp_path / "r.jsonl"), pytest.raises(ResultsError, match="another runner"):
        Store(tmp_path / "r.jsonl")


def test_rows_of_others_are_counted(tmp_path):
    path = tmp_path / "r.jsonl"
    path.write_text('{"x": 1}\n[]\nnonsense\n{"id":"a","key":"a","outcome":"odd"}\n')
    assert read_results(path) == type(read_results(path))((), 4)


@pytest.mark.skipif(not hasattr(resource, "RLIMIT_FSIZE"), reason="the system limits no file size")
def test_a_full_disk_is_an_error_and_leaves_whole_rows(tmp_path):
    path = tmp_path / "r.jsonl"
    command = [sys.executable, "-c", FILL, str(path)]
    answer = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "cannot be written: " in answer.stdout
    assert "rescued-1.jsonl" in answer.stdout
    text = path.read_text()
    assert text.endswith("\n")
    assert all(json.loads(line)["id"] == "a" for line in text.splitlines())
