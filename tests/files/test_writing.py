"""Files are written completely or not at all, and nothing is left of a run that was killed."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import time

import polars as pl
import pytest

from longpole.bench.records.store import Store
from longpole.errors import ResultsError
from longpole.files.writing import new_file, new_files

FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
KILLED = """
import os, signal, sys
from pathlib import Path
from longpole.files.writing import new_file
with new_file(Path(sys.argv[1])) as unfinished:
    unfinished.write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("error", [FULL, pl.exceptions.ComputeError(os.strerror(errno.ENOSPC))])
def test_a_full_disk_is_told_with_the_file(error, tmp_path):
    with pytest.raises(OSError, match="No space left") as caught, new_file(tmp_path / "a.csv"):
        raise error
    assert (caught.value.errno, caught.value.filename) == (errno.ENOSPC, str(tmp_path / "a.csv"))
    assert names(tmp_path) == []


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")  # noqa: PTH110
def test_parquet_on_a_full_disk_is_told_with_the_file(tmp_path):
    with pytest.raises(OSError, match="No space left") as caught, new_file(tmp_path / "a.parquet"):
        pl.DataFrame({"a": range(9)}).write_parquet("/dev/full")
    assert caught.value.filename == str(tmp_path / "a.parquet")


def test_several_files_are_written_all_or_none(tmp_path):
    paths = [tmp_path / name for name in ("a", "b")]
    with pytest.raises(KeyError), new_files(paths) as unfinished:
        raise KeyError(unfinished[0].write_text("1"))
    assert names(tmp_path) == []
    with new_files(paths) as unfinished:
        for file in unfinished:
            file.write_text("1")
    assert names(tmp_path) == ["a", "b"]
    with pytest.raises(FileExistsError), new_files([tmp_path / "c", tmp_path / "a"]):
        pass
    assert names(tmp_path) == ["a", "b"]


@pytest.mark.skipif(os.name != "posix", reason="uses signals and locks")
def test_the_unfinished_file_of_a_killed_run_is_removed_by_the_next(tmp_path):
    subprocess.run([sys.executable, "-c", KILLED, str(tmp_path / "a")], check=False)
    [left] = tmp_path.iterdir()
    assert left.name.endswith(".part")
    os.utime(left, (time.time() - 3_600,) * 2)
    other = tmp_path / ".b.1.part"
    other.write_text("of another program")
    with new_file(tmp_path / "a") as unfinished:
        os.utime(unfinished, (time.time() - 3_600,) * 2)
        with new_file(tmp_path / "a"):  # the first one is still being written
            assert unfinished.exists()
            (tmp_path / "a").unlink(missing_ok=True)
        (tmp_path / "a").unlink()
    assert names(tmp_path) == [".b.1.part", "a"]


def test_no_empty_results_file_is_left(tmp_path):
    Store(tmp_path / "results.jsonl").close()
    assert names(tmp_path) == []
    (tmp_path / "empty.jsonl").touch()
    Store(tmp_path / "empty.jsonl").close()
    assert names(tmp_path) == ["empty.jsonl"]


def test_no_results_are_written_through_a_link_that_leads_nowhere(tmp_path):
    (tmp_path / "link.jsonl").symlink_to(tmp_path / "nowhere.jsonl")
    with pytest.raises(ResultsError, match="a link to a file that does not exist"):
        Store(tmp_path / "link.jsonl")
    assert names(tmp_path) == ["link.jsonl"]
