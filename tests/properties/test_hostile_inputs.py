"""Inputs that once caused an internal error, or took unbounded time or memory.

They lie beside the repository, with what they did; each is answered or refused now.
"""

from __future__ import annotations

import contextlib
import random
import shutil

import pytest

from longpole.bench.tune import read_cache
from oracles.walker import asked, questions_about
from real_traces import SHARED

CASES = SHARED / "cases"
NAMES = {
    "ascenddb": "ascend_pytorch_profiler_0.db",
    "dumps": "nccl_trace_rank_0",
    "roccsv": "31415_kernel_trace.csv",
    "rocprof1csv": "results.csv",
    "rocpd": "ascend_pytorch_profiler_0.db",
    "packed": "trace.json.gz",
    "saved": "trace.longpole",
    "xplane": "a.xplane.pb",
}
"""How files are called that are known by their name."""
OTHERS = {".toml", ".py", ".tsv"}


def inputs():
    folders = ("hostile", "hostile/hip", "hostile/ms", "hostile/dump-types", "mutated")
    found = [path for folder in folders for path in sorted((CASES / folder).glob("*"))]
    return [path for path in found if path.suffix not in OTHERS]


def ended(tmp_path, source, n=None):
    """Ask about a copy under a name that its reader knows; return what escaped."""
    if source.is_dir():
        path = tmp_path / source.name
        shutil.copytree(source, path)
    else:
        path = tmp_path / NAMES.get(source.name.partition("-")[0], source.name)
        shutil.copyfile(source, path)
    chance = random.Random(source.name)  # noqa: S311 - which questions, not secrets
    if source.name.startswith(("ktcache", "kernel-tuner")):
        with contextlib.suppress(ValueError):
            read_cache(path)
    all_asked = [
        (question, asked(question)) for question in questions_about(path, tmp_path, chance, n)
    ]
    return [(" ".join(question[:1] + question[2:]), what) for question, what in all_asked if what]


pytestmark = pytest.mark.skipif(not CASES.exists(), reason="needs ../shared/data/cases")


@pytest.mark.parametrize("source", inputs(), ids=lambda path: path.name)
def test_an_input_that_escaped_once_is_answered_or_refused(tmp_path, source):
    assert ended(tmp_path, source, n=2) == []


@pytest.mark.slow
@pytest.mark.parametrize("source", inputs(), ids=lambda path: path.name)
def test_an_input_that_escaped_once_is_answered_or_refused_by_every_command(tmp_path, source):
    assert ended(tmp_path, source) == []
