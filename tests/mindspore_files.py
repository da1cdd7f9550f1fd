"""Small MindSpore profiles by hand, and real ones from outside the repository."""

from __future__ import annotations

import json
import shutil

import pytest

from real_traces import SHARED

DATA = SHARED / "mindspore"
HEADER = (
    "tid,pid,parent_pid,module_name,event,stage,level,start_end,custom_info,"
    "memory_usage(kB),time_stamp(us)"
)
DETAIL = (
    "op_side,op_type,op_name,full_op_name,op_occurrences,op_total_time(ms),op_avg_time(ms),"
    "total_proportion,subgraph,pid"
)


def given(*parts):
    """Return a real file or folder; skip if it does not exist."""
    path = DATA.joinpath(*parts)
    if not path.exists():
        pytest.skip(f"no {path}")
    return path


def case(name):
    """Return a profile that represents a kind of input; skip if it does not exist."""
    path = SHARED / "cases" / "mindspore" / name
    if not path.exists():
        pytest.skip(f"no {path}")
    return path


def host_line(event="E", mark=0, time_us=0, **more):
    """Write a line of `host_info`; every field but these has a plain default."""
    fields = {"module": "GPU", "stage": "S", "level": 1, "custom": "", "memory": 0, "tid": 7}
    fields |= more
    start = f"{fields['tid']},2,1,{fields['module']},{event},{fields['stage']},{fields['level']}"
    return f"{start},{mark},{fields['custom']},{fields['memory']},{time_us}"


def host_file(folder, *lines, header=HEADER):
    """Write `host_info_0.csv`."""
    path = folder / "host_info_0.csv"
    path.write_text("".join(f"{line}\n" for line in (header, *lines)), encoding="utf-8")
    return path


def cpu_profile(folder, rank=0, steps=3):
    """Write the profile of two operators on the CPU: Mul of 100 us, Add of 50 us, each 1 ms."""
    folder.mkdir(parents=True, exist_ok=True)
    names = {"Mul-op0": 0.1, "Add-op1": 0.05}
    starts = {name: [1_000_000 * (2 * n + k) for n in range(steps)] for k, name in enumerate(names)}
    write(
        folder / f"cpu_op_execute_timestamp_{rank}.txt",
        *(
            f"Default/net-Net/{name};HostCpuOps;"
            + "".join(f"{start},{names[name]},0 " for start in starts[name])
            for name in names
        ),
    )
    write(
        folder / f"cpu_op_detail_info_{rank}.csv",
        DETAIL,
        *(
            f"Host,{name.split('-')[0]},{name},Default/net-Net/{name},{steps},{steps * time:g},"
            f"{time},0.5,Default,1"
            for name, time in names.items()
        ),
    )
    lines = ["Mul;Mul-op0;1;input_1:[8];input_2:[8];", "Add;Add-op1;1;input_1:[8];input_2:[];"]
    write(folder / f"cpu_framework_{rank}.txt", *lines * steps)
    return folder


def write(path, *lines):
    """Write lines, each with its end."""
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def pipeline(folder, ops, cpu=None):
    """Write a data pipeline: `ops` are (id, type, workers, children, queue samples or None)."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = [
        {
            "op_id": op_id,
            "op_type": kind,
            "num_workers": workers,
            "children": children,
            "metrics": None
            if samples is None
            else {"output_queue": {"length": 10, "size": samples}},
        }
        for op_id, kind, workers, children, samples in ops
    ]
    document = {"sampling_interval": 10, "op_info": rows}
    (folder / "pipeline_profiling_0.json").write_text(json.dumps(document))
    if cpu is not None:
        uses = [
            {
                "op_id": op_id,
                "metrics": {"sys_utilization": [0] * 10, "user_utilization": [percent] * 10},
            }
            for op_id, percent in cpu.items()
        ]
        document = {"cpu_processor_num": 4, "op_info": uses}
        (folder / "minddata_cpu_utilization_0.json").write_text(json.dumps(document))
    return folder


def copied(folder, target):
    """Copy a real profile to a place that can be written to."""
    shutil.copytree(folder, target, copy_function=shutil.copyfile)
    for path in (target, *target.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    return target
