"""How much communication and copying is hidden behind kernels."""

from __future__ import annotations

import json

import pytest

import longpole
from longpole.cli import program
from longpole.testing import TraceBuilder


def rows(builder, **options):
    trace = builder.read()
    found = longpole.overlap(trace, longpole.choose_window(trace, **options))
    return {row.activity: (row.duration_ns, row.exposed_ns) for row in found.rows}


def test_communication_beside_a_kernel_is_hidden_and_the_rest_is_exposed():
    builder = (
        TraceBuilder()
        .launch("gemm", call=(0, 1), work=(1, 30))
        .launch("ncclDevKernel_AllReduce", call=(1, 2), work=(20, 60), stream=9)
        .launch("Memcpy DtoH", call=(2, 3), work=(50, 80), stream=11)
    )
    assert rows(builder) == {"communication": (40_000, 30_000), "copy": (30_000, 20_000)}


def test_a_step_counts_only_what_runs_in_it():
    builder = (
        TraceBuilder()
        .step(1, (0, 20))
        .launch("gemm", call=(0, 1), work=(1, 20))
        .step(2, (20, 60))
        .launch("ncclDevKernel_AllReduce", call=(21, 22), work=(30, 60))
    )
    assert rows(builder, step=1)["communication"] == (0, 0)
    assert rows(builder, step=2)["communication"] == (30_000, 30_000)


def test_where_nothing_is_communicated_no_share_is_made_up():
    trace = TraceBuilder().launch("gemm", call=(0, 1), work=(1, 30)).read()
    assert {row.hidden_share for row in longpole.overlap(trace).rows} == {None}


def test_the_command_looks_at_an_annotation_or_between_two_times(capsys, tmp_path):
    path = str(
        TraceBuilder()
        .annotation("first", (0, 10))
        .launch("ncclDevKernel_AllReduce", call=(1, 2), work=(3, 8))
        .annotation("second", (20, 40))
        .launch("ncclDevKernel_AllReduce", call=(21, 22), work=(25, 40))
        .write(tmp_path / "trace.json")
    )

    def exposed_ns(*options):
        assert program.run(["table", path, "overlap", "--json", *options]) == 0
        rows = json.loads(capsys.readouterr().out)["data"]["rows"]
        return next(row["exposed_ns"] for row in rows if row["activity"] == "communication")

    assert exposed_ns("--annotation", "first") == 5_000
    assert exposed_ns("--annotation", "second") == 15_000
    assert exposed_ns("--between", "5000", "30000") == 8_000
    assert program.run(["table", path, "overlap", "--annotation", "first", "--whole"]) == 2


@pytest.mark.parametrize(("name", "option"), [("overlap", "--sort"), ("mfu", "--top")])
def test_an_option_that_a_table_with_figures_does_not_take_is_refused(capsys, name, option):
    assert program.run(["table", "trace.json", name, option, "1"]) == 2
    assert f"{option} does not apply to {name}" in capsys.readouterr().err
