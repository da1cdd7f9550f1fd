"""Writes a run as CSV: a file for each kind of record, as `rocprofv3` does, or as `rocprof` 1 or 2.

Numbers stand alone and texts in quotation marks. A copy has no size.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from .rocpd import ACCUMULATION_REGISTERS, VECTOR_REGISTERS, direction, written

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from .kineto import Record
    from .run import Run

_FILES: Final = {
    "kernel": "kernel_trace",
    "gpu_memcpy": "memory_copy_trace",
    "cuda_runtime": "hip_api_trace",
    "cuda_driver": "hsa_api_trace",
    "user_annotation": "marker_api_trace",
}
_DOMAINS: Final = {
    "cuda_runtime": "HIP_RUNTIME_API",
    "cuda_driver": "HSA_CORE_API",
    "user_annotation": "MARKER_CORE_API",
}
_FIRST_AGENT: Final = 4
"""The number of the first GPU: CPUs come before."""


def write_rocprof_csv(
    run: Run, folder: str | Path, *, prefix: str = "", guid: str | None = None
) -> dict[str, Path]:
    """Write the files of `rocprofv3`, or with a `guid` those of `rocpd convert`; give their paths.

    They are named by the process, or by another prefix.
    """
    pid = next(entry["pid"] for entry in run.events if entry["ph"] == "M")
    rows: dict[str, list[dict[str, Any]]] = {"agent_info": _agents(run.program.n_devices)}
    for number, entry in enumerate(written(run)):
        rows.setdefault(_FILES[entry["cat"]], []).append(_row(entry, pid, number))
    paths = {}
    for kind, of_kind in rows.items():
        if guid is not None:
            of_kind = [{"Guid": guid, **_as_rocpd(row)} for row in of_kind]  # noqa: PLW2901
        paths[kind] = Path(folder, f"{prefix or pid}_{kind}.csv")
        _write(of_kind, paths[kind], quoted=True)
    return paths


def write_rocprof_v1(run: Run, path: str | Path, *, timestamp: bool = True) -> None:
    """Write the kernels of a run as `rocprof --timestamp on` does, with a counter."""
    _write_old(run, path, lambda number, entry: _row_of_v1(number, entry, timestamp=timestamp))


def write_rocprof_v2(run: Run, path: str | Path) -> None:
    """Write the kernels of a run as `rocprofv2` does."""
    _write_old(run, path, _row_of_v2)


def _write_old(run: Run, path: str | Path, row: Callable[[int, Record], dict[str, Any]]) -> None:
    kernels = [entry for entry in written(run) if entry["cat"] == "kernel"]
    _write([row(number, entry) for number, entry in enumerate(kernels)], path, quoted=False)


def _write(rows: Sequence[Mapping[str, Any]], path: str | Path, *, quoted: bool) -> None:
    names = [_quoted(name) if quoted else name for name in rows[0]]
    lines = [",".join(map(_cell, row.values())) for row in rows]
    Path(path).write_text("".join(f"{line}\n" for line in [",".join(names), *lines]), "utf-8")


def _cell(value: object) -> str:
    return _quoted(value) if isinstance(value, str) else str(value)


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def _agents(n_devices: int) -> list[dict[str, Any]]:
    kinds = ["CPU"] * _FIRST_AGENT + ["GPU"] * n_devices
    return [
        {
            "Node_Id": number + 1,
            "Logical_Node_Id": number,
            "Agent_Type": kind,
            "Name": "gfx942",
            "Product_Name": "MI300X",
        }
        for number, kind in enumerate(kinds)
    ]


def _row(entry: Record, pid: object, number: int) -> dict[str, Any]:
    if entry["cat"] == "kernel":
        return _kernel(entry, number)
    if entry["cat"] == "gpu_memcpy":
        return _copy(entry)
    return {
        "Domain": _DOMAINS[entry["cat"]],
        "Function": entry["name"],
        "Process_Id": int(str(pid)),
        "Thread_Id": int(entry["tid"]),
        "Correlation_Id": entry["args"].get("correlation", number),
        **_times(entry),
    }


def _kernel(entry: Record, number: int) -> dict[str, Any]:
    args = entry["args"]
    block, grid = args["block"], args["grid"]
    return {
        "Kind": "KERNEL_DISPATCH",
        "Agent_Id": f"Agent {_FIRST_AGENT + args['device']}",
        "Queue_Id": 1,
        "Stream_Id": args["stream"],
        "Thread_Id": 1,
        "Dispatch_Id": number,
        "Kernel_Id": 7,
        "Kernel_Name": entry["name"],
        "Correlation_Id": args.get("correlation", 0),
        **_times(entry),
        "LDS_Block_Size": args["shared memory"],
        "Scratch_Size": 0,
        "VGPR_Count": VECTOR_REGISTERS,
        "Accum_VGPR_Count": ACCUMULATION_REGISTERS,
        **{f"Workgroup_Size_{axis}": block[place] for place, axis in enumerate("XYZ")},
        **{f"Grid_Size_{axis}": grid[place] * block[place] for place, axis in enumerate("XYZ")},
    }


def _copy(entry: Record) -> dict[str, Any]:
    args = entry["args"]
    ends = {"HOST": "Agent 0", "DEVICE": f"Agent {_FIRST_AGENT + args['device']}"}
    source, destination = direction(entry).split("_TO_")
    return {
        "Kind": "MEMORY_COPY",
        "Direction": f"MEMORY_COPY_{direction(entry)}",
        "Stream_Id": args["stream"],
        "Source_Agent_Id": ends[source],
        "Destination_Agent_Id": ends[destination],
        "Correlation_Id": args.get("correlation", 0),
        **_times(entry),
    }


def _times(entry: Record) -> dict[str, int]:
    start_ns = entry["start_ns"]
    return {"Start_Timestamp": start_ns, "End_Timestamp": start_ns + entry["duration_ns"]}


def _as_rocpd(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns in the case in which rocpd writes them."""
    return {"_".join(map(str.capitalize, name.split("_"))): row[name] for name in row}


def _row_of_v1(number: int, entry: Record, *, timestamp: bool) -> dict[str, Any]:
    args, times = entry["args"], _times(entry)
    row = {"Index": number, "KernelName": entry["name"], "gpu-id": args["device"]}
    row |= {"queue-id": args["stream"], "queue-index": number, "pid": 1, "tid": 1}
    row |= _sizes(entry, "grd", "wgr", "lds") | {"scr": 0, "vgpr": 8, "sgpr": 16}
    row |= {"fbar": 0, "sig": "0x0", "obj": "0x7f8e", "WriteSize": 2.5}
    if not timestamp:
        return row
    begin_ns, end_ns = times.values()
    return row | {
        "DispatchNs": begin_ns - 1,
        "BeginNs": begin_ns,
        "EndNs": end_ns,
        "CompleteNs": end_ns + 1,
    }


def _row_of_v2(number: int, entry: Record) -> dict[str, Any]:
    args = entry["args"]
    row = {"Dispatch_ID": number, "GPU_ID": args["device"], "Queue_ID": args["stream"]}
    row |= {"PID": 1, "TID": 1, **_sizes(entry, "Grid_Size", "Workgroup_Size", "LDS_Per_Workgroup")}
    row |= {"Scratch_Per_Workitem": 0, "Arch_VGPR": 8, "Kernel_Name": entry["name"]}
    return row | _times(entry) | {"Correlation_ID": args.get("correlation", 0)}


def _sizes(entry: Record, grid: str, block: str, shared: str) -> dict[str, int]:
    """Return the products over the dimensions: the older versions have no others."""
    args = entry["args"]
    n_threads = args["block"][0] * args["block"][1] * args["block"][2]
    n_blocks = args["grid"][0] * args["grid"][1] * args["grid"][2]
    return {grid: n_blocks * n_threads, block: n_threads, shared: args["shared memory"]}
