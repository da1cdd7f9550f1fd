"""Figures that a device cannot reach are marked below their table."""

from __future__ import annotations

import pytest

from longpole.cli.program import run
from longpole.testing import TraceBuilder

H100 = [{"id": 0, "name": "NVIDIA H100 80GB HBM3", "totalGlobalMem": 85_000_000_000}]


def copied(name, n_bytes, tmp_path):
    builder = TraceBuilder().header(deviceProperties=H100)
    builder.launch(name, call=(0, 1), work=(2, 12), n_bytes=n_bytes)
    return str(builder.write(tmp_path / "trace.json"))


@pytest.mark.parametrize(
    ("name", "gigabytes_per_s", "is_marked"),
    [
        ("Memcpy DtoD (Device -> Device)", 1_600, False),
        ("Memcpy DtoD (Device -> Device)", 1_700, True),
        ("Memcpy HtoD (Pinned -> Device)", 3_300, False),
        ("Memcpy HtoD (Pinned -> Device)", 3_400, True),
    ],
)
def test_a_copy_faster_than_memory_is_marked(name, gigabytes_per_s, is_marked, tmp_path, capsys):
    path = copied(name, gigabytes_per_s * 10_000, tmp_path)
    for by in ("direction", "time"):
        assert run(["table", path, "copies", "--by", by]) == 0
        told = capsys.readouterr().out
        assert (f"{name[:11]} of device 0 exceeds its memory bandwidth" in told) == is_marked


def test_tables_of_gpu_activities_say_that_recorded_times_cannot_be_right(tmp_path, capsys):
    told = {}
    for work in ((4_920, 7_920), (500, 3_500)):
        builder = TraceBuilder()
        for begin in range(100, 60_000, 10_000):
            builder.step(begin // 10_000, (begin, begin + 9_940))
            ran = work if begin == 30_100 else (4_920, 7_920)
            ran = tuple(begin + at for at in ran)
            builder.launch("gemm", call=(begin + 4_900, begin + 4_910), work=ran)
        path = str(builder.write(tmp_path / f"{work[0]}.json"))
        for table in ("kernels", "breakdown", "roofline", "events"):
            assert run(["table", path, table]) == 0
            told[work[0], table] = "cannot be right" in capsys.readouterr().out
    assert {key for key, is_told in told.items() if is_told} == {
        (500, "kernels"),
        (500, "breakdown"),
        (500, "roofline"),
    }
