"""What operators cost by shape, compared with MindSpore's own answer to it."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from hypothesis import given as for_all
from hypothesis import strategies as st

from longpole.mindspore import ProfileError, op_analyse
from mindspore_files import DETAIL, cpu_profile, given, write


def rows(path, *names, **options):
    found = op_analyse(path, list(names), **options).rows
    return [(row.op_type, row.input_shapes, row.n_runs, row.total_ns) for row in found]


def test_runs_and_times_are_those_that_mindspore_answers():
    folder = given("ms200_cpu_graph")
    expected = json.loads((folder / "op_analyse_expected.json").read_text())
    kinds = [name for name in expected if not name.startswith("__")]
    assert len(kinds) == 13
    for kind in kinds:
        theirs = [(row["op_occurrences"], row["op_total_time(us)"]) for row in expected[kind][kind]]
        ours = [(row.n_runs, row.total_ns / 1000) for row in op_analyse(folder, kind).rows]
        assert sum(runs for runs, _ in ours) == sum(runs for runs, _ in theirs)
        assert sum(us for _, us in ours) == pytest.approx(sum(us for _, us in theirs), rel=1e-3)


def test_times_are_by_shape_and_sum_up_to_the_detail_file():
    folder = given("ms200_cpu_graph")
    found = op_analyse(folder, "MatMul")
    assert [(row.input_shapes, row.total_ns) for row in found.rows] == [
        ("input_1:[8, 10];input_2:[8, 4, 16, 16]", 279_937),
        ("input_1:[8, 10];input_2:[10, 1024]", 127_589),
    ]
    # MindSpore rounds in milliseconds, to 156.1 us.
    assert 156_121 in op_analyse(folder, "ApplyMomentum").frame()["total_ns"].to_list()
    detail = (folder / "prof/profiler/cpu_op_detail_info_0.csv").read_text().splitlines()
    kinds = {line.split(",")[1] for line in detail[1:]}
    total_ms = sum(float(line.split(",")[5]) for line in detail[1:])
    frame = op_analyse(folder, sorted(kinds)).frame()
    assert frame["total_ns"].sum() == round(total_ms * 1e6)


@pytest.mark.parametrize("launch", ["gpu_async", "gpu_sync"])
def test_runs_on_a_gpu_are_those_of_the_operators(launch):
    folder = given("synthetic", launch)
    names = ["Conv2D", "MatMul"]
    expected = (folder / "expected_op_analyse.json").read_text()
    found = {row.op_type: row for row in op_analyse(folder, names).rows}
    # MindSpore says 24: the runs of the type, for each of its kernels.
    assert found["MatMul"].n_runs == 12
    kernels_us = json.loads(expected)["MatMul"][0]["op_total_time(us)"]
    assert found["MatMul"].kernels_ns == round(1000 * kernels_us)


def two_shapes(folder, launches):
    """Run `Mul-op0` with two shapes in turn: 3 runs of 100, 200 and 400 us."""
    cpu_profile(folder)
    write(
        folder / "cpu_op_execute_timestamp_0.txt",
        "Default/net-Net/Mul-op0;HostCpuOps;3000,0.4,0 1000,0.1,0 2000,0.2,0 ",
    )
    write(folder / "cpu_framework_0.txt", *launches)
    return folder


def test_an_operator_with_several_shapes_is_told_apart_by_the_order_of_its_runs(tmp_path):
    launches = [f"Mul;Mul-op0;1;input_1:[{n}];" for n in (8, 4, 8)]
    two_shapes(tmp_path, launches)
    assert rows(tmp_path, "Mul") == [
        ("Mul", "input_1:[8]", 2, 500_000),
        ("Mul", "input_1:[4]", 1, 200_000),
    ]


def test_times_by_shape_are_unknown_where_launches_are_missing(tmp_path):
    two_shapes(tmp_path, [f"Mul;Mul-op0;1;input_1:[{n}];" for n in (8, 4)])
    found = op_analyse(tmp_path, "Mul")
    assert [row.total_ns for row in found.rows] == [None, None]
    assert [row.mean_ns for row in found.rows] == [None, None]
    assert "shapes_not_told_apart" in {each.code for each in found.findings}


def test_a_name_that_is_not_there_is_a_finding_and_the_others_are_answered(tmp_path):
    cpu_profile(tmp_path)
    found = op_analyse(tmp_path, ["Mul", "Nope"])
    assert [row.asked for row in found.rows] == ["Mul"]
    assert [(each.code, each.detail) for each in found.findings] == [("unknown_operator", "Nope")]
    with pytest.raises(ProfileError, match="none of the operators"):
        op_analyse(tmp_path, "cpu")  # MindSpore takes the side for a name


@pytest.mark.parametrize(
    ("name", "device"), [(3, None), ("", None), ([], None), (["Mul", 3], None), ("Mul", "0")]
)
def test_arguments_of_another_type_are_type_errors(tmp_path, name, device):
    with pytest.raises(TypeError):
        op_analyse(cpu_profile(tmp_path), name, device)


def test_one_of_several_devices_is_to_be_named(tmp_path):
    cpu_profile(tmp_path, 0)
    cpu_profile(tmp_path, 1, steps=5)
    with pytest.raises(ProfileError, match="the devices with operators are 0, 1"):
        op_analyse(tmp_path, "Mul")
    assert op_analyse(tmp_path, "Mul", 1).rows[0].n_runs == 5
    with pytest.raises(ProfileError) as caught:
        op_analyse(tmp_path, "Mul", 7)
    assert caught.value.code == "no_such_rank"


def test_a_file_of_a_pair_that_is_missing_is_an_error(tmp_path):
    cpu_profile(tmp_path)
    (tmp_path / "cpu_framework_0.txt").unlink()
    with pytest.raises(ProfileError, match="no file cpu_framework_0"):
        op_analyse(tmp_path, "Mul")


def test_newer_profiles_have_one_short_name_for_two_operators():
    found = op_analyse(given("ms2100_cpu_graph_new"), "MatMul")
    # MatMul-op0 ran in the forward and in the backward part, with another shape in each.
    assert [row.n_runs for row in found.rows] == [3, 3, 3]
    assert sum(row.total_ns or 0 for row in found.rows) == pytest.approx(16_326_900, abs=100)


FULL_NAMES = [f"{scope}/Mul-op{n}" for scope in ("Default", "Gradients/Default") for n in (0, 1)]
RUNS = st.lists(
    st.tuples(st.sampled_from(FULL_NAMES), st.sampled_from("abc"), st.integers(1, 999)),
    min_size=1,
    max_size=20,
)


@for_all(RUNS)
def test_runs_and_times_by_shape_are_those_of_the_program(tmp_path_factory, runs):
    folder = tmp_path_factory.mktemp("runs")
    short = {name: name.rpartition("/")[2] for name in FULL_NAMES}
    launches = [f"Mul;{short[name]};1;{shape};" for name, shape, _ in runs]
    write(folder / "cpu_framework_0.txt", *launches)
    by_name, expected = {}, {}
    for place, (name, shape, time_ns) in enumerate(runs):
        by_name.setdefault(name, []).append((1000 * place, time_ns))
        count, total_ns = expected.get(shape, (0, 0))
        expected[shape] = (count + 1, total_ns + time_ns)
    write(
        folder / "cpu_op_execute_timestamp_0.txt",
        *(
            f"{name};HostCpuOps;" + "".join(f"{start},{ns / 1e6:g},0 " for start, ns in times)
            for name, times in by_name.items()
        ),
    )
    details = (
        f"Host,Mul,{short[name]},{name},{len(times)},{sum(ns for _, ns in times) / 1e6:g},0,0,D,1"
        for name, times in by_name.items()
    )
    write(folder / "cpu_op_detail_info_0.csv", DETAIL, *details)
    found = op_analyse(folder, "Mul").rows
    assert {row.input_shapes: (row.n_runs, row.total_ns) for row in found} == expected
    assert all(one.total_ns >= other.total_ns for one, other in pairwise(found))
