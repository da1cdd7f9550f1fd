"""A trace cut to a step is a sound, smaller trace with the same path."""

from __future__ import annotations

import gzip
import json

import polars as pl
import pytest

import longpole
from longpole.cli import program
from longpole.formats.convert.cut import cut
from longpole.testing import TraceBuilder
from oracles.simulator import simulate
from oracles.simulator.nsight import write_nsight
from oracles.simulator.rocpd import write_rocprof_json
from oracles.simulator.rocprof_csv import write_rocprof_csv
from real_traces import SHARED

REAL = [("ns_resolution", 103), ("amd_mi250", 1), ("two_ranks/sampled_rank-0", 552)]


def path_of(trace, step):
    segments = trace.critical_path(step).segments.select("kind", "name", "start_ns", "duration_ns")
    return segments.with_columns(pl.col(pl.Categorical).cast(pl.String))


def steps(n):
    """Build steps of 100 us whose kernels run 30 us later than they are launched."""
    builder = TraceBuilder().header(distributedInfo={"rank": 3}, traceName="mine")
    for number in range(n):
        start = 100 * number
        builder.step(number, (start, start + 100))
        builder.operator("aten::mm", (start + 10, start + 30))
        builder.launch("gemm", call=(start + 20, start + 25), work=(start + 50, start + 120))
    return builder


@pytest.fixture
def small(tmp_path):
    path = steps(6).write(tmp_path / "trace.json.gz")
    trace = longpole.read_trace(path)
    output = tmp_path / "small.json.gz"
    n_written = cut(trace, path, longpole.choose_window(trace, 3), output)
    return trace, longpole.read_trace(output), n_written, output


def test_a_cut_is_smaller_and_sound(small):
    trace, cut_down, n_written, output = small
    assert n_written == cut_down.n_events < trace.n_events
    longpole.read_trace(output, strict=True)
    json.loads(gzip.decompress(output.read_bytes()))


def test_the_step_and_the_one_before_are_whole_and_no_other_is_marked(small):
    trace, cut_down, _, _ = small
    assert cut_down.steps["step"].to_list() == [2, 3]
    whole = longpole.choose_window(trace, 3)
    window = longpole.choose_window(cut_down, 3)
    assert (window.start_ns, window.end_ns) == (whole.start_ns, whole.end_ns)
    assert path_of(cut_down, 3).equals(path_of(trace, 3))


def test_what_stands_beside_the_events_is_kept(small):
    trace, cut_down, _, _ = small
    assert cut_down.metadata == trace.metadata
    assert cut_down.rank == 3


@pytest.mark.parametrize(("name", "step"), REAL)
def test_the_path_of_a_step_of_a_real_trace_is_the_same(name, step, tmp_path):
    source = SHARED / f"traces/{name}.json.gz"
    if not source.exists():
        pytest.skip(f"no {source}")
    trace = longpole.read_trace(source)
    output = tmp_path / "small.json.gz"
    n_written = cut(trace, source, longpole.choose_window(trace, step), output)
    cut_down = longpole.read_trace(output, strict=True)
    assert cut_down.n_events == n_written <= trace.n_events
    assert path_of(cut_down, step).equals(path_of(trace, step))
    one, other = (longpole.choose_window(each, step) for each in (trace, cut_down))
    assert longpole.breakdown(cut_down, other).equals(longpole.breakdown(trace, one))


def csv_of_rocprof(run, path):
    """Write the files of `rocprofv3`, of which `path` is one."""
    prefix, _ = path.name.split("_kernel")
    write_rocprof_csv(run, path.parent, prefix=prefix)


@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("run.sqlite", write_nsight),
        ("1_results.json", write_rocprof_json),
        ("1_kernel_trace.csv", csv_of_rocprof),
    ],
)
def test_a_step_of_another_profiler_is_written_as_it_was_read(name, write, tmp_path):
    source, output = tmp_path / name, tmp_path / "step.json.gz"
    write(simulate("training", seed=3, steps=4), source)
    trace = longpole.read_trace(source)
    step = trace.steps["step"][2]
    assert program.run(["convert", str(source), "--step", str(step), "-o", str(output)]) == 0
    cut_down = longpole.read_trace(output, strict=True)
    assert 0 < cut_down.n_events < trace.n_events
    assert path_of(cut_down, step).equals(path_of(trace, step))


def test_a_damaged_trace_is_not_cut(tmp_path):
    path = tmp_path / "trace.json"
    path.write_bytes(steps(3).to_bytes()[:-40])
    trace = longpole.read_trace(path)
    with pytest.raises(ValueError, match="a damaged trace cannot be cut"):
        cut(trace, path, longpole.choose_window(trace, 1), tmp_path / "small.json")
    assert not (tmp_path / "small.json").exists()


def test_events_that_begin_and_end_apart_are_not_cut(tmp_path):
    builder = steps(3).event(ph="B", name="a", pid=1, tid=1, ts=0)
    path = builder.event(ph="E", name="a", pid=1, tid=1, ts=5).write(tmp_path / "trace.json")
    trace = longpole.read_trace(path)
    with pytest.raises(ValueError, match="separate begin and end events"):
        cut(trace, path, longpole.choose_window(trace, 1), tmp_path / "small.json")


def test_the_command_cuts_by_a_window_alone(tmp_path, capsys):
    path = str(steps(4).write(tmp_path / "trace.json"))
    output = str(tmp_path / "small.json")
    assert program.run(["convert", path, "--step", "2", "-o", output]) == 0
    assert longpole.read_trace(output).steps["step"].to_list() == [1, 2]
    assert program.run(["convert", path, "-o", output, "--where", "stream = 7"]) == 2
    assert "--where has no meaning for a trace" in capsys.readouterr().err
    assert program.run(["convert", path, "--step", "2", "-f", "-o", path]) != 0
    assert "never replaced" in capsys.readouterr().err
