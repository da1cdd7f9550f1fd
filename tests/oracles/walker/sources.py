"""Sound inputs of every reader, small, as the programs write them that longpole reads."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import longpole
from ascend_profiles import late_peer, write_database
from bench.printed import DOCUMENTS, TEXTS
from formats.convert.simulated_pairs import execution_trace_of
from longpole.bench import Measurement, Outcome, Record
from longpole.bench.records.store import Store
from longpole.cli import program
from longpole.formats.ascend.columns import LAYOUTS
from longpole.testing import TraceBuilder
from mindspore_files import cpu_profile, host_file, host_line, pipeline
from oracles.simulator.nsight import write_nsight
from oracles.simulator.perfetto import perfetto, torch_perfetto
from oracles.simulator.rocpd import write_rocpd, write_rocprof_json
from oracles.simulator.rocprof_csv import write_rocprof_csv, write_rocprof_v1, write_rocprof_v2
from oracles.simulator.run import Run, simulate
from oracles.simulator.xprof import trace_viewer, xplane

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True)
class Source:
    """An input: a file or a folder, what it is asked about as, and the files that are damaged."""

    reader: str
    kind: str
    path: Path

    @property
    def files(self) -> list[Path]:
        """The files that may be damaged, relative to the input; of a file, itself."""
        if self.path.is_file():
            return [self.path.relative_to(self.path.parent)]
        inside = sorted(path for path in self.path.rglob("*") if path.is_file())
        return [path.relative_to(self.path) for path in inside]


def write_sources(folder: Path) -> list[Source]:
    """Write an input for each reader."""
    run = simulate("inference", seed=1, steps=1, shapes=True, python_frames=True)
    return [
        *_kineto(folder / "kineto", run),
        *_of_other_profilers(folder / "others", run),
        *_rocm(folder / "rocm", run),
        *_ascend(folder / "ascend"),
        *_ranks(folder / "ranks"),
        *_beside(folder / "beside"),
        *_pairs(folder / "pairs", run),
        *_tuning(folder / "tuning"),
        *_results(folder / "results"),
        *_printed(folder / "printed"),
        *_mindspore(folder / "mindspore"),
    ]


_LARGEST: Final = 1 << 17
_KINDS: Final = {".et": "chakra", ".db": "trace", ".toml": None, ".py": None, ".md": None}


def found_sources(folder: Path) -> list[Source]:
    """Find more inputs: the small files of a folder, as traces or by how they are called."""
    found = []
    for path in sorted(folder.rglob("*")):
        kind = "dumps" if "nccl_trace" in path.name else _KINDS.get(path.suffix, "trace")
        if "memory" in path.name:
            kind = "memory"
        if kind and path.is_file() and 0 < path.stat().st_size < _LARGEST:
            found.append(Source(f"{folder.name} {kind}", kind, path))
    return found


def _text(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def _bytes(path: Path, content: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def _training(n_steps: int = 2) -> TraceBuilder:
    """Return a trace by hand with most kinds of events, and arguments that analyses read."""
    builder = TraceBuilder()
    shapes = {"Input Dims": [[8, 8], [8, 8]], "Input type": ["c10::Half", "c10::Half"]}
    collective = {"Collective name": "allreduce", "dtype": "Float", "In msg nelems": 1024}
    for step in range(n_steps):
        at, number = 1_000 * step, 10 * step
        builder.step(step + 1, (at, at + 900))
        builder.python("train.py(3): step", (at + 1, at + 890))
        builder.operator("aten::mm", (at + 5, at + 60), **shapes, **{"Sequence number": step})
        builder.launch("sm80_gemm_f16_tn", call=(at + 10, at + 20), work=(at + 30, at + 300))
        builder.call("cudaMemcpyAsync", (at + 100, at + 120), correlation=number + 5_000)
        builder.copy(
            "Memcpy HtoD (Pageable -> Device)", (at + 301, at + 320), correlation=number + 5_000
        )
        builder.operator("nccl:all_reduce", (at + 130, at + 180), **collective)
        builder.launch(
            "ncclDevKernel_AllReduce", call=(at + 140, at + 150), work=(at + 330, at + 600)
        )
        builder.call("cudaDeviceSynchronize", (at + 200, at + 610))
        memory = {"Bytes": 512, "Total Allocated": 1024, "Total Reserved": 4096, "Device Id": 0}
        memory |= {"Device Type": 1, "Addr": 4096}
        builder.event(
            ph="i", cat="cpu_instant_event", name="[memory]", pid=1, tid=1, ts=at + 7, args=memory
        )
        builder.event(ph="C", cat="", name="GPU 0 Utilization", pid=0, ts=at + 7, args={"GPU": 0.5})
        builder.annotation("data loading", (at + 700, at + 880))
    return builder


def _kineto(folder: Path, run: Run) -> list[Source]:
    folder.mkdir(parents=True)
    run.write(folder / "kineto.json")
    simulate("graphed", seed=2, steps=1).write(folder / "graphed.json")
    _training().write(folder / "by_hand.json")
    document = json.loads((folder / "kineto.json").read_bytes())
    _bytes(
        folder / "packed.json.gz", gzip.compress((folder / "by_hand.json").read_bytes(), mtime=0)
    )
    events = [event for event in document["traceEvents"] if event.get("ph") == "X"]
    _text(folder / "array.json", json.dumps(events[:40]))
    _bytes(folder / "viewer.trace.json", trace_viewer(run.events))
    longpole.read_trace(folder / "by_hand.json").save(folder / "saved.longpole")
    longpole.read_trace(folder / "kineto.json").save(folder / "of_kineto.longpole")
    names = {"kineto": "kineto", "graphed": "kineto", "by_hand": "kineto", "packed": "kineto gzip"}
    names |= {"array": "chrome", "viewer": "XProf viewer", "saved": "saved", "of_kineto": "saved"}
    return [
        Source(names[path.name.partition(".")[0]], "trace", path)
        for path in sorted(folder.iterdir())
    ]


def _of_other_profilers(folder: Path, run: Run) -> list[Source]:
    folder.mkdir(parents=True)
    write_nsight(run, folder / "nsight.sqlite")
    return [
        Source("nsys", "trace", folder / "nsight.sqlite"),
        Source("XProf", "trace", _bytes(folder / "a.xplane.pb", xplane(run.events))),
        Source("perfetto", "trace", _bytes(folder / "perfetto.pftrace", perfetto(run.events))),
        Source(
            "torch perfetto",
            "trace",
            _bytes(folder / "torch.pftrace", torch_perfetto(run.events, watts=[99.5, 120])),
        ),
    ]


def _rocm(folder: Path, run: Run) -> list[Source]:
    (folder / "csv").mkdir(parents=True)
    write_rocpd(run, folder / "rocpd.db")
    write_rocprof_json(run, folder / "rocprof.json")
    write_rocprof_csv(run, folder / "csv")
    write_rocprof_v1(run, folder / "results.csv")
    write_rocprof_v2(run, folder / "results_v2.csv")
    csv = next(path for path in sorted(folder.rglob("*kernel_trace.csv")))
    return [
        Source("rocpd", "trace", folder / "rocpd.db"),
        Source("rocprof json", "trace", folder / "rocprof.json"),
        Source("rocprof csv", "trace", csv),
        Source("rocprof csv folder", "trace", csv.parent),
        Source("rocprof csv 1", "trace", folder / "results.csv"),
        Source("rocprof csv 2", "trace", folder / "results_v2.csv"),
    ]


_COMMUNICATION: Final = {
    "Communication Time Info": {
        "Start Timestamp(us)": 1736408883000120.5,
        "Elapse Time(ms)": 0.8,
        "Transit Time(ms)": 0.2,
        "Wait Time(ms)": 0.6,
        "Synchronization Time(ms)": 0.5,
        "Idle Time(ms)": 0.1,
        "Wait Time Ratio": 0.75,
        "Synchronization Time Ratio": 0.6,
    },
    "Communication Bandwidth Info": {
        "HCCS": {"Transit Size(MB)": 28.5, "Transit Time(ms)": 1.5, "Bandwidth(GB/s)": 19.0}
    },
}
_LINK: Final = {
    "0-1": {"Transport Type": "HCCS", "Transit Size(MB)": 28.5, "Transit Time(ms)": 1.5},
    "1-1": {"Transport Type": "LOCAL", "Transit Size(MB)": 2.5, "Transit Time(ms)": 0.5},
}


def _ascend(folder: Path) -> list[Source]:
    profile = folder / "rank0_ascend_pt"
    output = profile / "ASCEND_PROFILER_OUTPUT"
    late_peer().write(output / "trace_view.json")
    cells = {
        "text": "MatMul",
        "integer": "50",
        "number": "1.5",
        "microseconds": "1736408883000100.5",
    }
    for layout in LAYOUTS:
        header = ",".join(column.names[0] for column in layout.columns)
        row = ",".join(cells[column.kind] for column in layout.columns)
        _text(output / f"{layout.name}.csv", f"{header}\n{row}\n{row}\n{row}\n")
    collective = {"hcom_allReduce__586_0_1@1752": _COMMUNICATION}
    _text(
        output / "communication.json", json.dumps({"step7": {"p2p": {}, "collective": collective}})
    )
    matrix = {"step7": {"p2p": {}, "collective": {"allReduce-top1@1752": _LINK}}}
    _text(output / "communication_matrix.json", json.dumps(matrix))
    _text(
        profile / "profiler_info_0.json", json.dumps({"rank_id": 0, "config": {}, "start_info": {}})
    )
    _text(profile / "profiler_metadata.json", json.dumps({"distributed_args": {"world_size": 2}}))
    timeline = late_peer().write(folder / "one" / "trace_view.json")
    database = write_database(folder / "ascend_pytorch_profiler_0.db")
    export = late_peer().write(
        folder / "PROF_1_2_x" / "mindstudio_profiler_output" / "msprof_1.json"
    )
    for layout in LAYOUTS[:4]:
        text = (output / f"{layout.name}.csv").read_text()
        _text(export.parent / f"{layout.name}_1.csv", text)
    return [
        Source("Ascend profile", "trace", profile),
        Source("Ascend timeline", "trace", timeline),
        Source("Ascend database", "trace", database),
        Source("msprof", "trace", folder / "PROF_1_2_x"),
    ]


def _ranks(folder: Path) -> list[Source]:
    for rank in range(2):
        builder = _training()
        text = json.loads(builder.to_bytes())
        text["distributedInfo"] = {"rank": rank, "world_size": 2, "backend": "nccl"}
        _text(folder / "traces" / f"rank{rank}.json", json.dumps(text))
        _text(folder / "dumps" / f"nccl_trace_rank_{rank}", json.dumps(_dump(rank)))
    return [
        Source("ranks", "ranks", folder / "traces"),
        Source("flight recorder", "dumps", folder / "dumps"),
    ]


def _dump(rank: int) -> dict[str, Any]:
    entry = {
        "record_id": 1,
        "pg_id": 0,
        "process_group": ["0", "default_pg"],
        "collective_seq_id": 1,
        "p2p_seq_id": 0,
        "op_id": 1,
        "profiling_name": "nccl:all_reduce",
        "input_sizes": [[10, 4]],
        "input_dtypes": ["Float"],
        "output_sizes": [[10, 4]],
        "output_dtypes": ["Float"],
        "state": "completed",
        "is_p2p": False,
        "time_created_ns": 1_000,
        "frames": [{"name": "step", "filename": "train.py", "line": 3}],
    }
    later = {"record_id": 2, "collective_seq_id": 2, "state": "started", "time_created_ns": 2_000}
    sent = {"record_id": 3, "is_p2p": True, "profiling_name": "nccl:send 0->1", "p2p_seq_id": 1}
    entries = [*[entry, entry | later][: 2 - rank], entry | sent]
    groups = {"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1]"}}
    return {"version": "2.10", "rank": rank, "pg_config": groups, "entries": entries}


def _beside(folder: Path) -> list[Source]:
    """Write what is asked about with a trace: memory and vocabularies."""
    memory = [[1_000 * n, n % 3, 512 * n - 100, n % 8] for n in range(40)]
    vocabulary = (
        '[api]\ndevice_synchronize = "^acmeDrain"\n[kernels]\ncommunication = ["^ring_(send)"]\n'
        '[categories]\nkernel = "^acme_device$"\n[data_loading]\nfunctions = "fetch_batch"\n'
    )
    return [
        Source("memory timeline", "memory", _text(folder / "memory.raw.json", json.dumps(memory))),
        Source(
            "memory snapshot", "memory", _text(folder / "snapshot.json", json.dumps(_snapshot()))
        ),
        Source("vocabulary", "vocabulary", _text(folder / "names.toml", vocabulary)),
    ]


def _snapshot() -> dict[str, Any]:
    frames = [{"filename": "train.py", "line": 3, "name": "step"}]
    blocks = [
        {"address": 7 + n, "size": 8, "requested_size": 6, "state": state, "frames": frames}
        for n, state in enumerate(("active_allocated", "inactive", "active_pending_free"))
    ]
    segment = {"device": 0, "address": 7, "total_size": 64, "stream": 0, "segment_type": "small"}
    alloc = {"action": "alloc", "addr": 7, "size": 8, "stream": 0, "time_us": 5, "frames": frames}
    events = [
        alloc | {"action": action, "time_us": 5 + n}
        for n, action in enumerate(
            ("segment_alloc", "alloc", "free_requested", "free_completed", "oom")
        )
    ]
    return {
        "segments": [segment | {"blocks": blocks}],
        "device_traces": [events, [alloc]],
        "allocator_settings": {"max_split_size": -1},
    }


def _pairs(folder: Path, run: Run) -> list[Source]:
    folder.mkdir()
    pair = folder / "pair"
    pair.mkdir()
    run.write(pair / "kineto.json")
    document = json.loads((pair / "kineto.json").read_bytes())
    _text(pair / "et.json", json.dumps(execution_trace_of(document)))
    words = ["--et", str(pair / "et.json"), str(pair / "kineto.json")]
    _silently("convert", *words, "-o", str(folder / "rank.0.et"))
    return [
        Source("execution trace", "pair", pair),
        Source("Chakra", "chakra", folder / "rank.0.et"),
    ]


def _silently(*words: str) -> None:
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        code = program.run(words)
    if code:
        message = f"{' '.join(words)} ended with {code}"
        raise RuntimeError(message)


_TASK: Final = """\
constraints = ["a * b <= 64"]
[parameters]
a = [1, 2, 4, 8]
b = { range = [1, 9, 2] }
c = ["x", "y"]
[candidate]
command = ["true", "{a}", "{b}", "{c}"]
timeout_s = 5
[reference]
file = "expected.txt"
lines = "^sum"
relative = 1e-3
[objective]
format = "regex=(?P<op>[a-z]+): (?P<time_us>[0-9.]+) us"
goal = "min"
"""
_T1: Final = {
    "ConfigurationSpace": {
        "TuningParameters": [
            {"Name": "b", "Type": "int", "Values": "[16,32]", "Default": 16},
            {"Name": "u", "Values": "range(1,5)"},
            {"Name": "v", "Values": [1, 2]},
        ],
        "Conditions": [{"Expression": "b*u<=64", "Parameters": ["b", "u"]}],
    },
    "KernelSpecification": {"KernelName": "k", "GlobalSize": {"X": "b"}},
}
_TRITON: Final = """\
import triton
@triton.autotune(configs=[triton.Config({'B': 64}, num_warps=4)], key=['n'])
@triton.jit
def gemm(x): pass
"""


def _tuning(folder: Path) -> list[Source]:
    task = json.dumps(
        {
            "parameters": {"a": [1, 2], "b": {"powers_of_two": [1, 64]}},
            "constraints": ["a < b"],
            "candidate": {"command": "true {a} {b}", "build": "true {a}"},
            "baseline": {"a": 1, "b": 2},
            "objective": {"format": "aitemplate"},
        }
    )
    _text(folder / "t1/t1.json", json.dumps(_T1))
    _text(folder / "t1/task.toml", 'parameters = "t1.json"\n[candidate]\ncommand = "true {b}"\n')
    _text(folder / "triton/kernels.py", _TRITON)
    triton = 'parameters = "kernels.py:gemm"\n[candidate]\ncommand = "true {B}"\n'
    _text(folder / "triton/task.toml", triton)
    validators = "Validator,PT_VERSION,2.9.1\nValidator,GCN_ARCH_NAME,gfx1100\n"
    scaled = "ScaledGemmTunableOp_Float8_e4m3fn_Float8_e5m2_BFloat16_TN"
    rows = [
        "GemmTunableOp_Half_TN,tn_64_8_8_ld_8_8_64,Gemm_Rocblas_1,0.5",
        "GemmStridedBatchedTunableOp_float_NN,nn_1_2_3_B_4_ld_1_3_1,Default,1.5",
        f"{scaled},tn_64_64_64_ld_64_64_64_rw_0_bias_None,Gemm_Hipblaslt_7,0.25",
        "GemmAndBiasTunableOp_BFloat16_TN,tn_64_8_8_ld_8_8_64,Gemm_Hipblaslt_1,0.5",
    ]
    _text(folder / "tunable/tunableop_results0.csv", validators + "\n".join(rows) + "\n")
    untuned = "".join(row.rsplit(",", 2)[0] + "\n" for row in rows)
    _text(folder / "tunable/tunableop_untuned0.csv", untuned)
    return [
        Source("tune task", "task", _text(folder / "task.toml", _TASK)),
        Source("tune task json", "task", _text(folder / "task.json", task)),
        Source("Kernel Tuner T1", "task", folder / "t1"),
        Source("Triton configurations", "task", folder / "triton"),
        Source("TunableOp", "tunableop", folder / "tunable"),
    ]


def _results(folder: Path) -> list[Source]:
    folder.mkdir()
    for name in ("base", "new"):
        with Store(folder / f"{name}.results.jsonl") as store:
            for number in range(6):
                best = Measurement("gemm", 1.5e6 + number * 1e3, 64, {"time": "1.5"})
                fields: dict[str, Any] = {"tags": {"m": number % 2}, "argv": ("x", "--m")}
                store.append(
                    Record(
                        id=f"a#{number}",
                        key="a",
                        outcome=Outcome.OK,
                        results=(best,),
                        best=best,
                        **fields,
                    )
                )
            store.append(Record(id="b", key="b", outcome=Outcome.TIMEOUT, argv=("x",)))
    return [Source("results", "results", folder)]


def _printed(folder: Path) -> list[Source]:
    for name, text in {**TEXTS, **DOCUMENTS}.items():
        _text(folder / f"{name}.log", text)
    return [Source("printed", "printed", path) for path in sorted(folder.iterdir())]


_ITERATOR: Final = "0 0 1 5 100\n0 1 1 5 101\n1 0 1 9 120\n"


def _mindspore(folder: Path) -> list[Source]:
    cpu = cpu_profile(folder / "cpu", steps=2)
    host_file(
        cpu, host_line(mark=0, time_us=5), host_line(mark=1, time_us=9), host_line("F", 2, 12)
    )
    pipeline(cpu, [(0, "Batch", 4, None, [1, 2, 3]), (1, "Map", 2, [0], None)], cpu={0: 50, 1: 10})
    _text(cpu / "dataset_iterator_profiling_0.txt", _ITERATOR)
    gpu = folder / "gpu"
    name = "Default/network/conv1-Conv2d/Conv2D-op1"
    start = 1_600_695_893_274_662_206
    at = [start + 700_000 * n for n in range(3)]
    clock = "host_monotonic_raw_time(ns): "
    fields = "op_occurrences,op_total_time(us),op_avg_time(us),total_proportion"
    files = {
        "activity_execute_timestamp_0.txt": f"sgemm;17;{at[0]};103.003\nsgemm;17;{at[1]};99.5\n",
        "gpu_op_execute_timestamp_0.txt": f"{name};GpuOps;"
        + "".join(f"{t},128.7 " for t in at)
        + "\n",
        "cpu_op_execute_timestamp_0.txt": "Default/Cast-op7;HostCpuOps;56579936551328,0.012,0 \n",
        "gpu_framework_0.txt": "Conv2D;Conv2D-op1;0;input_1:[32, 1, 32, 32];input_2:[6, 1, 5];\n",
        "start_time_0.txt": f"{clock}56579931060630\ngpu_start_time(ns): {start}\n",
        "step_trace_profiling_0.txt": "".join(
            f"{op} " + "".join(f"{t + late},{t + late + 9_000} " for t in at) + "\n"
            for op, late in (
                (name, 0),
                (f"Gradients/{name}", 50_000),
                ("Default/Momentum-op6", 90_000),
            )
        ),
        "gpu_op_type_info_0.csv": "op_type,type_occurrences,total_time(us),total_proportion,"
        "avg_time(us)\nConv2D,4,514.8,0.26,128.7\n",
        "gpu_op_detail_info_0.csv": f"op_side,op_type,op_name,op_full_name,{fields},"
        "cuda_activity_cost_time(us),cuda_activity_call_count\n"
        f"Device,Conv2D,Conv2D-op1,{name},4,514.848,128.712,0.265658,411.878,4\n",
        "gpu_activity_data_0.csv": "name,type,op_full_name,stream_id,block_dim,grid_dim,"
        "occurrences,total_duration(us),avg_duration(us),max_duration(us),min_duration(us)\n"
        f'"sgemm",cuLaunchKernel,{name},17,"256,1,1","8,4,1",4,411.878,102.97,103.575,102.212\n',
        "dataset_iterator_profiling_0.txt": _ITERATOR,
    }
    for file, text in files.items():
        _text(gpu / file, text)
    return [Source("MindSpore CPU", "mindspore", cpu), Source("MindSpore GPU", "mindspore", gpu)]
