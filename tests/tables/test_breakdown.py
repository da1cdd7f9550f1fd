"""How much communication and copying is hidden behind kernels."""

from __future__ import annotations

import json

import pytest

import longpole
from longpole.cli import program
from longpole.testing import TraceBuilder


def rows(builder, **options):
    trace = builder.read()
    found = longpole.breakdown(trace, longpole.choose_window(trace, **options)).row(0, named=True)
    parts = ("communication", "copy")
    return {part: (found[f"{part}_total_ns"], found[f"{part}_ns"]) for part in parts}


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
    found = longpole.breakdown(trace)
    assert set(found["communication_hidden_share"]) == set(found["copy_hidden_share"]) == {None}


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
        assert program.run(["table", path, "breakdown", "--json", *options]) == 0
        return json.loads(capsys.readouterr().out)["data"]["rows"][0]["communication_ns"]

    assert exposed_ns("--window", "first") == 5_000
    assert exposed_ns("--window", "second") == 15_000
    assert exposed_ns("--window", "5000..30000") == 8_000
    assert program.run(["table", path, "breakdown", "--window", "first", "--step", "1"]) == 2


@pytest.mark.parametrize(
    ("name", "option"), [("memory", "--sort"), ("idle --by host", "--where"), ("queue", "--peak")]
)
def test_an_option_that_a_table_does_not_take_is_refused(capsys, name, option):
    assert program.run(["table", "trace.json", *name.split(), option, "a=1"]) == 2
    told = capsys.readouterr().err
    table = name.replace("--by", "by")
    of_others = f"{option} is an option of roofline, not of {table}"
    assert f"{option} does not apply to {table}" in told or of_others in told
