"""Inputs that once caused an internal error, or took unbounded time or memory.

They lie beside the repository, with what they did; each is answered or refused now, in ten seconds
of CPU time and a gigabyte.
"""

from __future__ import annotations

import random
import shutil

import pytest

from longpole.testing import TraceBuilder
from oracles.walker import Source, Walk
from real_traces import SHARED

CASES = SHARED / "cases"
NAMES = {
    "ascenddb": "ascend_pytorch_profiler_0.db",
    "dumps": "nccl_trace_rank_0",
    "dump": "nccl_trace_rank_0",
    "roccsv": "31415_kernel_trace.csv",
    "rocprof1csv": "results.csv",
    "rocpd": "ascend_pytorch_profiler_0.db",
    "packed": "trace.json.gz",
    "saved": "trace.longpole",
    "xplane": "a.xplane.pb",
    "t1": "t1.json",
    "t1ok.json": "t1.json",
    "step_trace_profiling_0.txt": "step_trace_profiling_0.txt",
}
"""How files are called that are known by their name."""
KINDS = {
    "nccl_trace_rank_0": "dumps",
    "dump-types": "dumps",
    "t1.json": "task",
    "task.toml": "task",
    "ms": "mindspore",
    "step_trace_profiling_0.txt": "mindspore",
}
"""As what an input is asked about that is not a trace."""
TASKS = {
    "t1.json": 'parameters = "t1.json"\n[candidate]\ncommand = "true {b}"\n',
}


def inputs():
    found = [path for name in ("hostile", "mutated") for path in sorted((CASES / name).glob("*"))]
    return [path for path in found if path.suffix not in {".tsv", ".py"}]


def source_of(path, folder):
    """Copy an input under a name that its reader knows, with what it is read with."""
    if path.is_dir():
        shutil.copytree(path, folder / path.name, copy_function=shutil.copyfile)
        return Source(path.name, KINDS.get(path.name, "trace"), folder / path.name)
    name = NAMES.get(path.name, NAMES.get(path.name.partition("-")[0], path.name))
    name = "task.toml" if path.suffix == ".toml" else name
    kind = KINDS.get(name, "trace")
    kind = "chakra" if path.suffix == ".et" else "memory" if name.startswith("memory") else kind
    inner = folder / "input"
    inner.mkdir()
    shutil.copyfile(path, inner / name)
    if name in TASKS:
        (inner / "task.toml").write_text(TASKS[name])
    is_folder = kind in {"task", "mindspore"}
    return Source(path.name, kind, inner if is_folder else inner / name)


def escapes(source, folder, n_questions):
    trace = TraceBuilder().operator("a", (0, 5)).write(folder / "trace.json")
    walk = Walk([source], folder, 0, trace)
    walk.ask(source, source.path, random.Random(source.reader), n_questions)  # noqa: S311
    return walk.escapes


pytestmark = pytest.mark.skipif(not CASES.exists(), reason="needs ../shared/data/cases")


@pytest.mark.parametrize("path", inputs(), ids=lambda path: path.name)
def test_an_input_that_escaped_once_is_answered_or_refused(tmp_path, path):
    assert escapes(source_of(path, tmp_path), tmp_path, 2) == []


@pytest.mark.slow
@pytest.mark.parametrize("path", inputs(), ids=lambda path: path.name)
def test_an_input_that_escaped_once_is_answered_or_refused_by_every_command(tmp_path, path):
    assert escapes(source_of(path, tmp_path), tmp_path, None) == []
