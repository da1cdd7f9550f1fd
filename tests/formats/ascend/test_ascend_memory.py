"""Memory of Ascend profiles: allocations by operator, and totals of components."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

import polars as pl
import pytest

import longpole
from ascend_profiles import late_peer, write_database
from longpole.formats.ascend.memory import recorded_memory
from longpole.formats.ascend.tables import read_ascend_table
from longpole.formats.read import read_trace
from mindspore_files import given

if TYPE_CHECKING:
    from pathlib import Path

MIB = 1 << 20
OPERATORS = (
    "Name,Size(KB),Allocation Time(us),Release Time(us),Allocation Total Allocated(MB),"
    "Allocation Total Reserved(MB),Release Total Allocated(MB),Release Total Reserved(MB),"
    "Stream Ptr,Device Type\n"
    "aten::mm,2048.0,1736408883000100.000\t,1736408883000300.000\t,12.0,20.0,10.0,20.0,77,NPU:0\n"
    "aten::add,1024.0,1736408883000200.000\t,,13.0,20.0,,,77,NPU:0\n"
    "cann::trans_0,512.0,1736408883000210.000\t,1736408883000220.000\t,0.5,1.0,0.0,1.0,,NPU:0\n"
    "broken,many,1736408883000100.000\t,,N/A,,,,77,NPU:0\n"
)
RECORD = (
    "Component,Timestamp(us),Total Allocated(MB),Total Reserved(MB),Device Type\n"
    "APP,1736408883000000.000\t,,90.0,NPU:0\n"
    "PTA,1736408883000100.000\t,12.0,20.0,NPU:0\n"
    "PTA+GE,1736408883000100.000\t,12.0,21.0,NPU:0\n"
    "WORKSPACE,1736408883000100.000\t,3.0,4.0,NPU:0\n"
    "WORKSPACE,1736408883000150.000\t,4.0,4.0,NPU:0\n"
)


def profile(folder: Path, **files: str) -> longpole.Trace:
    """Write a timeline and its memory files, and read it."""
    for name, text in files.items():
        (folder / f"{name}.csv").write_text(text)
    return read_trace(late_peer().write(folder / "trace_view.json"))


def test_allocations_have_operators_and_the_totals_of_their_component(tmp_path: Path) -> None:
    trace = profile(tmp_path, operator_memory=OPERATORS, memory_record=RECORD)
    found = longpole.memory(trace)
    rows = found.devices.select("device", "start_bytes", "peak_bytes", "end_bytes").rows()
    assert rows == [
        ("npu:0", 10 * MIB, 13 * MIB, 10 * MIB),
        ("npu:0 GE", 0, MIB // 2, 0),
        ("npu:0 WORKSPACE", 3 * MIB, 4 * MIB, 4 * MIB),
    ]
    owners = found.at_peak.filter(pl.col("device") == "npu:0").select("operator", "n_bytes")
    assert owners.rows() == [("aten::mm", 2 * MIB), ("aten::add", MIB), (None, 10 * MIB)]
    assert found.devices["unused_bytes"].to_list()[0] == 7 * MIB


def test_totals_stand_in_for_allocations_that_were_not_recorded(tmp_path: Path) -> None:
    found = longpole.memory(profile(tmp_path, memory_record=RECORD))
    assert found.devices["device"].to_list() == ["npu:0 PTA", "npu:0 WORKSPACE"]


def test_a_profile_without_memory_says_how_to_record_it(tmp_path: Path) -> None:
    [note] = longpole.memory(profile(tmp_path)).blocks()
    assert "profile_memory=True" in note.text


@pytest.mark.parametrize("text", ["", "Name\n", "a,b\n1,2\n", "\x00\xff", "Name,Size(KB)\nx,1e400"])
def test_damaged_files_are_an_error_or_nothing(tmp_path: Path, text: str) -> None:
    trace = profile(tmp_path, operator_memory=text)
    if not text.startswith("Name"):
        with pytest.raises(longpole.TraceError, match="operator_memory"):
            longpole.memory(trace)
    else:
        assert longpole.memory(trace).devices.is_empty()


def test_a_database_gives_the_same(tmp_path: Path) -> None:
    path = write_database(tmp_path / "ascend_pytorch_profiler_0.db")
    base = 1_736_408_883_000_000_000
    columns = (
        "name INTEGER, size INTEGER, allocationTime INTEGER, releaseTime INTEGER, "
        "allocationTotalAllocated INTEGER, allocationTotalReserved INTEGER, "
        "releaseTotalAllocated INTEGER, releaseTotalReserved INTEGER, streamPtr INTEGER, "
        "deviceId INTEGER"
    )
    with sqlite3.connect(path) as database:
        database.execute(f"CREATE TABLE OP_MEMORY ({columns})")
        row = (7, 2 * MIB, base + 100_000, base + 300_000, 12 * MIB, 20 * MIB, 10 * MIB, 20 * MIB)
        database.execute("INSERT INTO OP_MEMORY VALUES (?,?,?,?,?,?,?,?,77,0)", row)
    database.close()
    found = longpole.memory(read_trace(path))
    assert found.devices.select("device", "peak_bytes").rows() == [("npu:0", 12 * MIB)]
    assert found.at_peak["operator"].to_list() == ["aten::mm", None]


def test_the_peak_of_a_real_profile_is_that_of_its_record() -> None:
    folder = given("ascend_level1_text", "rank0_ascend_pt", "ASCEND_PROFILER_OUTPUT")
    record = read_ascend_table(folder / "memory_record.csv").frame
    for component, device in (("PTA", "npu:0"), ("GE", "npu:0 GE")):
        peak = record.filter(component=component)["allocated_mb"].max()
        found = longpole.memory(read_trace(folder)).devices.filter(device=device)
        assert found["peak_bytes"].to_list() == [round(peak * MIB)]


def test_0_mb_is_nothing_and_not_unknown(tmp_path: Path) -> None:
    record = RECORD.partition("\n")[0] + "\n"
    for time, total in ((100, 10), (110, 0), (120, 4)):
        record += f"WORKSPACE,1736408883000{time}.000\t,{total}.0,{total}.0,NPU:0\n"
    profile(tmp_path, memory_record=record)
    found = recorded_memory(tmp_path / "trace_view.json")
    assert found is not None
    assert found.events["allocated_bytes"].to_list() == [10 * MIB, 0, 4 * MIB]
    assert found.events["n_bytes"].to_list() == [0, -10 * MIB, 4 * MIB]
