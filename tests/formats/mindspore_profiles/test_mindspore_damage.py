"""Damaged files: every cut, bad bytes and odd fields give findings or one clear error."""

from __future__ import annotations

import json

import pytest

import longpole
from longpole.errors import TraceError
from longpole.mindspore import offline_analyse, timeline_events
from mindspore_files import copied, cpu_profile, given, host_file, host_line, pipeline, write

FOLDERS = [
    ("ms200_cpu_graph",),
    ("ms2100_cpu_graph_new",),
    ("ms200_minddata",),
    ("mindinsight_text",),
    ("synthetic", "gpu_async"),
    ("synthetic", "gpu_sync"),
]
READ = (
    "activity_execute_timestamp",
    "cpu_framework",
    "cpu_ms_memory_record",
    "cpu_op_detail_info",
    "cpu_op_execute_timestamp",
    "dataset_iterator_profiling",
    "device_queue_profiling",
    "flops",
    "gpu_activity_data",
    "gpu_framework",
    "gpu_op_detail_info",
    "gpu_op_execute_timestamp",
    "host_info",
    "minddata_cpu_utilization",
    "output_timeline_data",
    "pipeline_profiling",
    "start_time",
    "step_trace_profiling",
    "step_trace_raw",
)


def is_sound(folder):
    """Analyse a profile; what is raised must say what, where and why."""
    problems = []
    for analyse in (offline_analyse, timeline_events):
        try:
            found = analyse(folder)
        except TraceError as error:
            problems.append(error.code if error.path else "no_path")
        else:
            if isinstance(found, bytes):
                longpole.read_trace(found, strict=True)
                problems += [each["code"] for each in json.loads(found)["findings"]]
            else:
                json.dumps(found.to_dict(), allow_nan=False)
            ranks = getattr(found, "ranks", ())
            problems += [each.code for rank in ranks for each in rank.findings]
    assert "no_path" not in problems
    return problems


def made(folder):
    """Make a small profile that has a file of every kind that is not in the others."""
    cpu_profile(folder)
    host_file(folder, *(host_line("E", n % 2, 10 + n, memory=5) for n in range(8)))
    pipeline(
        folder, [(0, "BatchOp", 1, [1], [3] * 10), (1, "MapOp", 1, [], [4] * 10)], {0: 5, 1: 9}
    )
    write(folder / "device_queue_profiling_0.txt", *(f"0 0 {n} 1 {n}" for n in range(9)))
    write(folder / "flops_0.txt", "full_op_name,MFLOPs,GFLOPS", *("a,1,2" for _ in range(5)))
    return folder


def files_of(folder):
    files = [
        path
        for path in sorted(folder.rglob("*"))
        if path.stem.removesuffix("_detail_time").rpartition("_")[0] in READ
    ]
    for path in files:
        lines = path.read_bytes().splitlines(keepends=True)
        path.write_bytes(b"".join(lines[:25]))
    return files


@pytest.mark.parametrize("step", [9, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", [None, *FOLDERS], ids=str)
def test_a_file_cut_anywhere_is_no_crash(name, step, tmp_path):
    folder = made(tmp_path / "p") if name is None else copied(given(*name), tmp_path / "p")
    for path in files_of(folder):
        whole = path.read_bytes()
        for percent in range(0, 100, step):
            cut = whole[: len(whole) * percent // 100]
            path.write_bytes(cut)
            problems = is_sound(folder)
            if path.suffix == ".txt" and cut and not cut.endswith(b"\n"):
                assert problems, (path.name, percent)
        path.write_bytes(whole)


ODD = {
    "bad bytes": b"\xff\xfe\xfa",
    "a spreadsheet's stamp": b"1.69512E+15",
    "not recorded": b"N/A",
    "a number without end": b"9" * 400,
    "infinite": b"inf",
    "nothing": b"",
    "a null": b"\x00",
    "a quote": b'"',
    "a minus": b"-5",
    "a huge power": b"1e400",
    "a large power": b"1e290",
}


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize(
    "name",
    [None, *(pytest.param(each, marks=pytest.mark.slow) for each in (FOLDERS[0], *FOLDERS[4:]))],
    ids=str,
)
def test_odd_fields_are_no_crash(name, odd, tmp_path):
    folder = made(tmp_path / "p") if name is None else copied(given(*name), tmp_path / "p")
    for path in files_of(folder):
        whole = path.read_bytes()
        for separator in (b",", b";", b" ", b":"):
            fields = whole.split(separator)
            for place in {1, len(fields) // 2, len(fields) - 2} & set(range(len(fields))):
                changed = [*fields[:place], ODD[odd], *fields[place + 1 :]]
                path.write_bytes(separator.join(changed))
                is_sound(folder)
        path.write_bytes(b"\xef\xbb\xbf" + whole)
        problems = is_sound(folder)
        if path.suffix == ".csv":
            assert "byte_order_mark" in problems
        path.write_bytes(whole)
