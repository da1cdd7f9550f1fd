"""What folders of profiles hold, and what is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ascend_profiles import AscendBuilder, late_peer, write_database
from longpole.ascend.layout import only_timeline, rank_of, timelines
from longpole.errors import TraceError
from longpole.read import read_trace
from longpole.traces.sources import find_sources

if TYPE_CHECKING:
    from pathlib import Path


def two_ranks(folder: Path) -> Path:
    for rank in (0, 1):
        inside = folder / f"host_{rank}_ascend_pt"
        AscendBuilder(rank).step(1, (0, 9)).write(
            inside / "ASCEND_PROFILER_OUTPUT" / "trace_view.json"
        )
        (inside / f"profiler_info_{rank + 4}.json").write_text("{}")
    return folder


def test_each_rank_is_a_folder_and_numbered_by_its_profiler_info(tmp_path: Path) -> None:
    found = find_sources(two_ranks(tmp_path))
    assert [source.named_rank for source in found] == [4, 5]


def test_a_folder_of_several_ranks_is_no_single_trace(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="a directory with 2 timelines") as raised:
        read_trace(two_ranks(tmp_path))
    assert raised.value.code == "several_timelines"
    assert raised.value.hint is not None
    assert "longpole ranks" in raised.value.hint


def test_the_timeline_goes_before_the_database(tmp_path: Path) -> None:
    output = tmp_path / "ASCEND_PROFILER_OUTPUT"
    late_peer().write(output / "trace_view.json")
    write_database(output / "ascend_pytorch_profiler_3.db")
    assert only_timeline(tmp_path).path.name == "trace_view.json"
    (output / "trace_view.json").unlink()
    assert only_timeline(tmp_path).rank == 3


@pytest.mark.parametrize(
    ("name", "rank"),
    [
        ("ascend_pytorch_profiler_12.db", 12),
        ("ascend_mindspore_profiler_1.db", 1),
        ("msprof_3_2_1.json", 3),
        ("rank7_ascend_ms/ASCEND_PROFILER_OUTPUT/trace_view.json", 7),
        ("trace_view.json", None),
        ("rank3.json", None),
    ],
)
def test_names_tell_the_rank(tmp_path: Path, name: str, rank: int | None) -> None:
    assert rank_of(tmp_path / name) == rank


@pytest.mark.parametrize("name", ["PROF_000001_20240101_ABC", "JOBABCDEF"])
def test_what_the_collector_wrote_is_refused_with_how_to_export_it(
    tmp_path: Path, name: str
) -> None:
    (tmp_path / name / "device_0" / "data").mkdir(parents=True)
    for folder in (tmp_path, tmp_path / name):
        with pytest.raises(TraceError, match="binary data of the Ascend collector") as raised:
            read_trace(folder)
        assert raised.value.code == "not_exported"
        assert "msprof --export=on" in (raised.value.hint or "")


def test_the_export_beside_binary_data_is_read(tmp_path: Path) -> None:
    late_peer().write(
        tmp_path / "PROF_1_2_x" / "mindstudio_profiler_output" / "msprof_20240101.json"
    )
    (tmp_path / "PROF_1_2_x" / "device_0").mkdir()
    assert [found.path.name for found in timelines(tmp_path)] == ["msprof_20240101.json"]


def test_other_folders_are_refused_as_before(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError):
        read_trace(tmp_path)
