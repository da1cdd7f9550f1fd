"""Exported files of Ascend devices: operators, shapes, counters and steps."""

from __future__ import annotations

import csv
import json
import sqlite3
from contextlib import closing

import pytest

from longpole.cli.program import run
from longpole.mindspore import ProfileError, offline_analyse, op_analyse
from mindspore_files import case, cpu_profile, given, write

KERNELS = (
    "Name,Type,OP State,Accelerator Core,Start Time(us),Duration(us),Input Shapes,aic_mac_ratio",
    'a,MatMul,static,AI_CORE,1.000,30,"""4,4;4,4""",0.5',
    'b,MatMul,dynamic,AI_CORE,40.000,10,"""8,8;8,8""",0.9',
    'c,Cast,static,AI_VECTOR_CORE,60.000,10,"""4,4""",0',
    "d,allReduce,N/A,HCCL,70.000,900,N/A,N/A",
)


def exported(folder, name="kernel_details.csv", lines=KERNELS):
    """Write one file into an exported folder of rank 3."""
    output = folder / "rank-3_20250101_ascend_ms/ASCEND_PROFILER_OUTPUT"
    output.mkdir(parents=True, exist_ok=True)
    return write(output / name, *lines)


def test_operators_shapes_counters_and_conversions_follow_from_kernels(tmp_path):
    exported(tmp_path)
    [device] = offline_analyse(tmp_path).devices
    assert device.rank == 3
    matmul, cast = device.operators  # a collective does not compute
    assert (matmul.type, matmul.core, matmul.n_runs) == ("MatMul", "AI_CORE", 2)
    assert (matmul.total_ns, matmul.min_ns, matmul.max_ns) == (40_000, 10_000, 30_000)
    assert (matmul.share, device.conversion_share) == (0.8, 0.2)
    assert cast.type == "Cast"
    shapes = [(each.type, each.input_shapes, each.n_dynamic) for each in device.shapes]
    assert shapes == [("MatMul", "4,4;4,4", 0), ("Cast", "4,4", 0), ("MatMul", "8,8;8,8", 1)]
    [metric] = device.metrics
    assert (metric.metric, metric.mean) == ("aic_mac_ratio", pytest.approx(0.6))


def test_an_exported_prof_folder_is_analysed():
    [device] = offline_analyse(case("14_exported_PROF") / "data").devices
    assert [(op.type, op.total_ns) for op in device.operators] == [
        ("Conv2D", 35_500),
        ("ReLU", 5_500),
    ]
    [step] = device.steps
    assert (step.number, step.total_ns, step.fp_and_bp_ns) == (1, 60_000, 40_000)
    assert (step.refresh_ns, step.data_wait_ns, step.reduce_ns) == (10_000, 0, 3_000)
    assert device.operations == 102_200


def test_the_collectives_of_an_iteration_are_added_up(tmp_path, capsys, said):
    columns = "Iteration ID,Iteration Time(us)" + 2 * ",Reduce Start(us),Reduce Duration(us)"
    exported(tmp_path, "step_trace_1.csv", (columns, "1,60,10,3.5,20,2", "2,60,10,4,N/A,N/A"))
    [device] = offline_analyse(tmp_path).devices
    assert [step.reduce_ns for step in device.steps] == [5_500, 4_000]
    exported(tmp_path, lines=(*KERNELS, "e,Unique,static,AI_CPU,90.000,50,4,0"))
    assert run([str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert "collectives" in printed
    said.within(printed)


def test_operators_from_kernels_equal_those_of_the_exporter(tmp_path):
    source = given("ascend_level1_text", "rank0_ascend_pt", "ASCEND_PROFILER_OUTPUT")
    target = tmp_path / "r0_ascend_ms/ASCEND_PROFILER_OUTPUT"
    target.mkdir(parents=True)
    (target / "kernel_details.csv").write_bytes((source / "kernel_details.csv").read_bytes())
    [device] = offline_analyse(tmp_path).devices
    found = {(op.type, op.core): op for op in device.operators}
    with (source / "op_statistic.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(found)
    for row in rows:
        op = found[row["OP Type"], row["Core Type"]]
        assert op.n_runs == int(row["Count"])
        assert op.max_ns == round(1000 * float(row["Max Time(us)"]))
        assert op.total_ns == pytest.approx(1000 * float(row["Total Time(us)"]), abs=op.n_runs)
        assert 100 * op.share == pytest.approx(float(row["Ratio(%)"]), abs=0.001)


def test_of_several_exports_the_newest_is_read_with_a_warning(tmp_path):
    exported(tmp_path, "op_summary_20250101000000.csv", KERNELS[:2])
    exported(tmp_path, "op_summary_20250102000000.csv")
    [device] = offline_analyse(tmp_path).devices
    assert sum(op.n_runs for op in device.operators) == 3
    [finding] = device.findings
    assert (finding.code, finding.count) == ("several_exports", 1)


def test_a_damaged_table_costs_that_table(tmp_path):
    exported(tmp_path)
    exported(tmp_path, "step_trace_time.csv", ["nothing,known", "1,2"])
    [device] = offline_analyse(tmp_path).devices
    assert len(device.operators) == 2
    [finding] = device.findings
    assert (finding.code, finding.file) == ("unknown_format", "step_trace_time.csv")


def test_text_files_and_exported_files_of_one_profile_are_both_analysed(tmp_path, capsys):
    exported(tmp_path)
    cpu_profile(tmp_path / "rank-3_20250101_ascend_ms/FRAMEWORK", 3)
    assert run(["summary", str(tmp_path)]) == 0
    offline_analyse(tmp_path, output=tmp_path / "out")
    text = capsys.readouterr().out
    assert "Mul" in text
    assert "rank 3, device" in text
    assert "20 % of the time" in text
    header, first, *_ = (tmp_path / "out/device_operators_3.csv").read_text().splitlines()
    assert header == "type,core,n_runs,total_ns,min_ns,max_ns,share"
    assert first == "MatMul,AI_CORE,2,40000,10000,30000,0.8"


def test_a_folder_that_was_not_exported_is_an_error_with_the_remedy(tmp_path):
    (tmp_path / "PROF_000001_20230818095800_ABCDEFGH/device_0/data").mkdir(parents=True)
    with pytest.raises(ProfileError) as caught:
        offline_analyse(tmp_path)
    assert caught.value.code == "needs_export"
    assert "msprof --export=on" in caught.value.hint


DATABASES = "ascend_level1_db", "rank1_ascend_pt"


def rows_of(path, statement):
    """Return the rows of a statement in a database, without writing next to it."""
    with closing(sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)) as connection:
        return connection.execute(statement).fetchall()


def test_the_tables_of_a_database_are_those_of_a_query():
    folder = given(*DATABASES)
    path = folder / "ASCEND_PROFILER_OUTPUT/ascend_pytorch_profiler_1.db"
    [device] = offline_analyse(folder).devices
    assert device.rank == 1
    expected = rows_of(
        path,
        "SELECT s.value, k.value, count(*), sum(endNs - startNs), min(endNs - startNs), "
        "max(endNs - startNs) FROM COMPUTE_TASK_INFO c JOIN TASK t USING (globalTaskId) "
        "JOIN STRING_IDS s ON s.id = c.opType JOIN STRING_IDS k ON k.id = c.taskType "
        "GROUP BY 1, 2",
    )
    found = [
        (op.type, op.core, op.n_runs, op.total_ns, op.min_ns, op.max_ns) for op in device.operators
    ]
    assert sorted(found) == sorted(expected)
    shapes = rows_of(path, "SELECT count(DISTINCT inputShapes) FROM COMPUTE_TASK_INFO")
    assert len({shape.input_shapes for shape in device.shapes}) == shapes[0][0]
    [(mean,)] = rows_of(
        path,
        "SELECT sum(p.value * (endNs - startNs)) / sum(endNs - startNs) FROM TASK_PMU_INFO p "
        "JOIN COMPUTE_TASK_INFO c USING (globalTaskId) JOIN TASK t USING (globalTaskId) "
        "JOIN STRING_IDS s ON s.id = c.opType JOIN STRING_IDS m ON m.id = p.name "
        "WHERE s.value = 'MatMulV2' AND m.value = 'aic_mac_ratio'",
    )
    [metric] = [
        each.mean
        for each in device.metrics
        if (each.type, each.metric) == ("MatMulV2", "aic_mac_ratio")
    ]
    assert metric == pytest.approx(mean)


def test_steps_of_a_database_are_those_of_its_analysis():
    [device] = offline_analyse(given(*DATABASES)).devices
    [step] = device.steps
    assert (step.number, step.computing_ns, step.not_overlapped_ns, step.free_ns) == (
        50,
        8_915_634,
        94_556_050,
        25_840_499,
    )


def test_a_damaged_database_costs_its_tables_alone(tmp_path):
    source = given(*DATABASES) / "ASCEND_PROFILER_OUTPUT"
    target = tmp_path / "r1_ascend_ms/ASCEND_PROFILER_OUTPUT"
    target.mkdir(parents=True)
    (target / "analysis.db").write_bytes((source / "analysis.db").read_bytes())
    (target / "ascend_mindspore_profiler_1.db").write_bytes(b"SQLite format 3\0 and no more")
    [device] = offline_analyse(tmp_path).devices
    assert (device.rank, len(device.steps), device.operators) == (1, 1, [])
    assert [finding.code for finding in device.findings] == ["malformed_database"]


STEPS = (
    "Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free",
    *(f"{number},10,5,0,5,{number}" for number in (4, 5, 6)),
)


def test_chosen_steps_alone_are_in_the_table_of_steps(tmp_path, capsys, said):
    exported(tmp_path)
    exported(tmp_path, "step_trace_time.csv", STEPS)
    [device] = offline_analyse(tmp_path, step_list=[5, 6]).devices
    assert [(step.number, step.free_ns) for step in device.steps] == [(5, 5_000), (6, 6_000)]
    assert len(device.operators) == 2
    assert run(["summary", str(tmp_path), "--step", "9", "--json"]) == 0
    [warned] = json.loads(capsys.readouterr().out)["warnings"]
    assert warned["message"].endswith("none of the steps 9 to 9 is there")
    said(warned["effect"])


def test_op_analyse_reads_exported_files_of_one_device_of_several(tmp_path):
    exported(tmp_path)
    found = op_analyse(tmp_path, ["MatMul", "ReLU"])
    assert [(row.op_side, row.input_shapes, row.n_runs, row.total_ns) for row in found.rows] == [
        ("device", "4,4;4,4", 1, 30_000),
        ("device", "8,8;8,8", 1, 10_000),
    ]
    assert [each.code for each in found.findings] == ["unknown_operator"]
    other = tmp_path / "rank-4_20250101_ascend_ms/ASCEND_PROFILER_OUTPUT"
    other.mkdir(parents=True)
    write(other / "kernel_details.csv", *KERNELS[:2])
    with pytest.raises(ProfileError, match="the devices with operators are 3, 4"):
        op_analyse(tmp_path, "MatMul")
    assert [row.n_runs for row in op_analyse(tmp_path, "MatMul", 4).rows] == [1]
    with pytest.raises(ProfileError, match="none of the operators is in the profile"):
        op_analyse(tmp_path, "ReLU", 4)
