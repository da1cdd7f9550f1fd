"""Profiles of Ascend and MindSpore, written as traces."""

from __future__ import annotations

import pytest

from ascend_profiles import late_peer, write_database
from longpole import choose_window, read_trace
from longpole.cli import program
from longpole.formats.convert.cut import cut
from longpole.formats.convert.repaired import repair
from mindspore_files import cpu_profile


@pytest.fixture(params=["database", "text", "mindspore"])
def profile(request, tmp_path):
    folder = tmp_path / "in"
    if request.param == "database":
        folder.mkdir()
        return write_database(folder / "ascend_pytorch_profiler_1.db")
    if request.param == "text":
        late_peer().write(folder / "rank3_ascend_pt/ASCEND_PROFILER_OUTPUT/trace_view.json")
    else:
        cpu_profile(folder, rank=1)
    return folder


def events(trace):
    return trace.events.drop("position").rows()


def test_a_profile_becomes_a_trace_with_its_rank(profile, tmp_path):
    output = tmp_path / "trace.json.gz"
    trace = read_trace(profile)
    assert trace.rank is not None
    assert repair(profile, output) == trace.n_events
    written = read_trace(output, strict=True)
    assert (written.rank, events(written)) == (trace.rank, events(trace))


def test_a_stretch_of_a_profile_becomes_a_trace(profile, tmp_path):
    trace = read_trace(profile)
    window = choose_window(trace, whole=True)
    n_written = cut(trace, profile, window, tmp_path / "part.json")
    part = read_trace(tmp_path / "part.json", strict=True)
    assert set(part.events["name"].cast(str)) == set(trace.events["name"].cast(str))
    assert (part.rank, part.n_events) == (trace.rank, n_written)


def test_no_file_of_a_profile_is_replaced(profile, tmp_path, capsys):
    folder = tmp_path / "in"
    before = {file: file.read_bytes() for file in folder.rglob("*") if file.is_file()}
    for file, data in before.items():
        output = file.with_suffix(".csv") if file.suffix == ".txt" else file
        output.write_bytes(data)
        table = ["--table", "events"] if output.suffix == ".csv" else []
        assert program.run(["convert", str(profile), "-fo", str(output), *table]) != 0
        assert output.read_bytes() == data
        if profile.is_dir():
            assert "never replaced" in capsys.readouterr().err
