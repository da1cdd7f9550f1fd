"""Overlap of an Ascend profile, computed anew and compared with the files of the tool."""

from __future__ import annotations

import json
import random
import sqlite3
from typing import TYPE_CHECKING

import pytest

import longpole
from ascend_profiles import AscendBuilder, late_peer, write_database
from longpole.cli.program import run
from longpole.errors import TraceError
from longpole.formats.read import read_trace
from longpole.tables.ascend_overlap import overlaps_by_step
from longpole.testing import TraceBuilder

if TYPE_CHECKING:
    from pathlib import Path

    import polars as pl


def rows(frame: pl.DataFrame) -> dict[str, tuple[int, int | None]]:
    chosen = frame.select("quantity", "recomputed_ns", "recorded_ns").iter_rows()
    return {quantity: (ours, theirs) for quantity, ours, theirs in chosen}


def written(folder: Path, step_trace_time: str | None = None) -> Path:
    late_peer().write(folder / "trace_view.json")
    if step_trace_time is not None:
        (folder / "step_trace_time.csv").write_text(step_trace_time)
    return folder / "trace_view.json"


def test_what_the_tool_wrote_stands_beside_what_follows_from_the_events(tmp_path: Path) -> None:
    text = "Device_id,Step,Computing,Communication\n0,7,50.25,800.0\n"
    found = longpole.ascend_overlap(read_trace(written(tmp_path, text)))
    assert rows(found) == {
        "computing_ns": (50_000, 50_250),
        "communication_ns": (800_000, 800_000),
        "not_overlapped_ns": (800_000, None),
        "overlapped_ns": (0, None),
        "free_ns": (30_000, None),
        "stage_ns": (880_000, None),
    }
    assert found.row(0, named=True)["difference_ns"] == -250
    assert set(found["source"].drop_nulls()) == {"step_trace_time.csv"}


def test_without_files_the_track_of_the_tool_is_compared(tmp_path: Path) -> None:
    builder = AscendBuilder().task("MatMul", (0, 10), 1).overlap_track("Computing", (0, 9), 0)
    found = longpole.ascend_overlap(read_trace(builder.write(tmp_path / "msprof_1.json")))
    assert rows(found)["computing_ns"] == (10_000, 9_000)
    assert found["source"][0] == "Overlap Analysis"


def test_results_beside_a_database_are_compared(tmp_path: Path) -> None:
    path = write_database(tmp_path / "ascend_pytorch_profiler_1.db")
    with sqlite3.connect(tmp_path / "analysis.db") as results:
        results.execute("CREATE TABLE StepTraceTime (step TEXT, computing NUMERIC, free TEXT)")
        results.execute("INSERT INTO StepTraceTime VALUES ('3', 5.005, 'none')")
    results.close()
    found = rows(longpole.ascend_overlap(read_trace(path)))
    assert found["computing_ns"] == (5_005, 5_005)
    assert found["free_ns"][1] is None


def test_a_file_that_is_no_step_trace_is_one_clear_error(tmp_path: Path) -> None:
    trace = read_trace(written(tmp_path, "a,b\n1,2\n"))
    with pytest.raises(TraceError, match="none of the columns of step_trace_time"):
        longpole.ascend_overlap(trace)


def test_a_trace_without_device_work_has_no_overlap() -> None:
    assert longpole.ascend_overlap(AscendBuilder().step(1, (0, 9)).read()).is_empty()


def test_a_rank_that_computes_longer_than_the_fastest_is_slow(tmp_path: Path) -> None:
    for rank, length in ((0, 100), (1, 104), (2, 106)):
        builder = AscendBuilder(rank).step(1, (0, 200)).launch("MatMul", (1, 2), (3, 3 + length), 9)
        output = tmp_path / f"rank{rank}_ascend_pt" / "ASCEND_PROFILER_OUTPUT"
        builder.write(output / "trace_view.json")
    found = longpole.ascend_ranks(tmp_path)
    assert found.select("rank", "slow").rows() == [(0, False), (1, False), (2, True)]
    assert found["waiting_ns"].null_count() == 3


def test_a_folder_without_a_profile_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="missing"):
        longpole.ascend_ranks(tmp_path / "missing")
    (tmp_path / "trace.json").write_text("{}")
    with pytest.raises(TraceError, match="no timeline of an Ascend profile"):
        longpole.ascend_ranks(tmp_path)


def test_links_sum_up_what_tasks_moved_between_ranks() -> None:
    builder = AscendBuilder().step(1, (0, 100))
    for number in (1, 2):
        span = (10 * number, 10 * number + 2)
        args = {"src rank": 0, "dst rank": 3, "size(Byte)": 4000, "link type": "HCCS"}
        builder.part("Memcpy", span, 2, 3, **args)
    found = longpole.communication_links(builder.read())
    assert found.rows() == [(0, 3, "HCCS", 2, 8000, 4000, 2.0)]


def covered(spans: list[tuple[int, int]], first: int, last: int) -> set[int]:
    """List the nanoseconds of a stretch in which a span is open."""
    return {at for start, end in spans for at in range(max(start, first), min(end, last))}


@pytest.mark.parametrize("seed", range(12))
def test_steps_are_what_counting_every_nanosecond_gives(seed: int) -> None:
    draw = random.Random(seed)  # noqa: S311 - no secret
    builder = AscendBuilder()
    work: list[tuple[int, str, int, int]] = []
    for step in range(1, 4):
        begin = 300 * step
        builder.step(step, (begin / 1000, (begin + 280) / 1000))
        for number in range(5):
            call, length = begin + draw.randrange(270), draw.randrange(1, 90)
            start = call + draw.randrange(200)
            place = 10 * step + number
            builder.call("Node@launch", (call / 1000, (call + 1) / 1000), place)
            span = (start / 1000, (start + length) / 1000)
            kind = draw.choice(["compute", "communicate"])
            if kind == "compute":
                builder.task("MatMul", span, place)
            else:
                builder.collective(f"hcom_allReduce__5_{place}_1", span, place)
            work.append((step, kind, start, start + length))
    found = overlaps_by_step(builder.read())
    assert list(found) == [1, 2, 3]
    for step, quantities in found.items():
        first = min(start for own, _, start, _ in work if own == step)
        last = max(end for own, _, _, end in work if own == step)
        of_kind = {
            kind: covered([row[2:] for row in work if row[1] == kind], first, last)
            for kind in ("compute", "communicate")
        }
        computing, communicating = of_kind["compute"], of_kind["communicate"]
        assert quantities == {
            "computing_ns": len(computing),
            "communication_ns": len(communicating),
            "not_overlapped_ns": len(communicating - computing),
            "overlapped_ns": len(communicating & computing),
            "free_ns": last - first - len(communicating | computing),
            "stage_ns": last - first,
        }


def test_the_tracks_of_several_steps_are_compared_step_by_step() -> None:
    builder = AscendBuilder().step(1, (0, 50)).step(2, (50, 100))
    for place, start in ((1, 5), (2, 60)):
        builder.launch("MatMul", (start, start + 1), (start + 2, start + 12), place)
        builder.overlap_track("Computing", (start + 2, start + 11 + place), 0)
    found = longpole.ascend_overlap(builder.read(), where="quantity = 'computing_ns'")
    assert found["difference_ns"].to_list() == [0, -1000]


def test_tables_of_ascend_profiles_are_listed_for_these_alone(tmp_path, capsys):
    builder = AscendBuilder().task("MatMul", (0, 10), 1).overlap_track("Computing", (0, 9), 0)
    other = TraceBuilder().launch("gemm", call=(0, 1), work=(2, 12))
    for name, written, is_listed in (("ascend", builder, True), ("other", other, False)):
        path = written.write(tmp_path / f"{name}.json")
        assert run(["table", str(path), "--json"]) == 0
        listed = [row["table"] for row in json.loads(capsys.readouterr().out)["data"]["rows"]]
        for table in ("ascend_overlap", "collective_waits", "communication_links"):
            assert (table in listed) == is_listed
