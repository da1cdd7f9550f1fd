"""The text files next to a timeline, valid and damaged."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from longpole.errors import TraceError
from longpole.formats.ascend.tables import read_ascend_table

if TYPE_CHECKING:
    from pathlib import Path

    from longpole.formats.ascend.tables import AscendTable

KERNELS = (
    "Step Id,Name,Type,Accelerator Core,Start Time(us),Duration(us),Wait Time(us),Input Shapes\r\n"
    '50,MatMul_1,MatMul,AI_CORE,1736408883704643.212\t,53.741,0,"""32,3;64"""\r\n'
    "50,Cast_2,Cast,AI_VECTOR_CORE,1736408883704801.156\t,6.54,N/A,\r\n"
)


def read(tmp_path: Path, text: str | bytes, name: str = "kernel_details.csv") -> AscendTable:
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_ascend_table(path)


def codes(table: AscendTable) -> list[tuple[str, int, int]]:
    return [(found.code, found.count, found.line) for found in table.findings]


def test_times_are_exact_nanoseconds_and_cells_without_a_value_null(tmp_path: Path) -> None:
    table = read(tmp_path, KERNELS)
    assert table.findings == ()
    assert table.frame.select("name", "start_ns", "duration_ns", "wait_ns").rows() == [
        ("MatMul_1", 1_736_408_883_704_643_212, 53_741, 0),
        ("Cast_2", 1_736_408_883_704_801_156, 6_540, None),
    ]
    assert table.frame["input_shapes"].to_list() == ["32,3;64", None]


def test_columns_are_found_by_any_of_their_names_wherever_they_stand(tmp_path: Path) -> None:
    text = "Task Duration(us),Op Name,aic_mac_ratio,Task Start Time(us),Device_id\n2,a,0.5,1,3\n"
    table = read(tmp_path, text, "op_summary_20240101.csv")
    row = table.frame.row(0, named=True)
    assert (row["name"], row["start_ns"], row["duration_ns"]) == ("a", 1_000, 2_000)
    assert (row["aic_mac_ratio"], row["device"]) == (0.5, "3")


def test_a_byte_order_mark_is_no_part_of_the_first_name(tmp_path: Path) -> None:
    assert read(tmp_path, b"\xef\xbb\xbf" + KERNELS.encode()).frame["step"].to_list() == [50, 50]


def test_stamps_that_a_spreadsheet_rounded_are_refused_not_guessed(
    tmp_path: Path, said: Any
) -> None:
    table = read(tmp_path, KERNELS.replace("1736408883704643.212\t", "1.73641E+15"))
    assert codes(table) == [("rounded_stamp", 1, 2)]
    assert table.frame["start_ns"].to_list() == [None, 1_736_408_883_704_801_156]
    said.within(table.findings[0].message)


@pytest.mark.parametrize(
    ("from_", "to", "code"),
    [
        ("Duration(us)", "Dauer(us)", "missing_column"),
        ("53.741", "fast", "bad_number"),
        (",53.741,0,", ",53.741\r\n#", "short_row"),
        ("6.54,N/A,", "6.54,N/A,,surplus", "long_row"),
        ('"""32', '""32', "unclosed_quote"),
    ],
)
def test_damage_is_found_and_costs_a_cell(tmp_path: Path, from_: str, to: str, code: str) -> None:
    table = read(tmp_path, KERNELS.replace(from_, to, 1))
    assert code in {found.code for found in table.findings}
    assert table.frame.height >= 1


def test_bad_utf8_is_replaced_and_said(tmp_path: Path) -> None:
    table = read(tmp_path, KERNELS.encode().replace(b"MatMul_1", b"Mat\xffMul"))
    assert codes(table) == [("invalid_utf8", 1, 2)]


def test_a_file_cut_anywhere_raises_no_surprise(tmp_path: Path) -> None:
    whole = KERNELS.encode()
    for end in range(len(whole)):
        try:
            table = read(tmp_path, whole[:end])
        except TraceError:
            continue
        assert table.frame.height <= 2


def test_files_that_are_no_table_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="no table of an Ascend profile"):
        read(tmp_path, "a,b\n", "notes.csv")
    with pytest.raises(TraceError, match="none of the columns of kernel_details"):
        read(tmp_path, "a,b\n1,2\n")
