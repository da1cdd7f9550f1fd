"""CPU time and memory of the offline answers about MindSpore profiles, as they grow.

The profile of a small network on the CPU and the step trace of a GPU are repeated, one copy
behind the other in time, until they have the number of operator runs that is asked for. Each
answer runs in a process of its own; its memory is that of the whole process. MindSpore 2.0's own
`analyse()` takes 13.15 s of CPU time and 800 MB for 90,000 runs of the same network.

    python benches/bench_mindspore.py --data ../shared/data/mindspore --runs 9000 90000 360000
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

_MEASURED = "--measured"
_COUNTED = 24
"""Runs of each operator in the profile that is repeated."""


def main() -> None:
    """Print the cost of each answer at each size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", required=True, type=Path)
    parser.add_argument("--runs", nargs="+", type=int, default=[9_000, 90_000, 360_000])
    arguments = parser.parse_args()
    print("answer            runs  cpu_s  peak_MB")
    for runs in arguments.runs:
        with tempfile.TemporaryDirectory() as folder:
            _repeat_operators(arguments.data / "ms200_cpu_graph/prof/profiler", runs, Path(folder))
            _repeat_steps(arguments.data / "synthetic/gpu_async", runs, Path(folder))
            for answer in _ANSWERS:
                command = [sys.executable, __file__, _MEASURED, answer, folder]
                cost = subprocess.check_output(command, text=True).strip()
                print(f"{answer:14s} {runs:7d}  {cost}", flush=True)


def _repeat_operators(source: Path, runs: int, target: Path) -> None:
    lines = (source / "cpu_op_execute_timestamp_0.txt").read_text().splitlines()
    parsed = [line.split(";") for line in lines]
    copies = max(1, round(runs / (_COUNTED * len(parsed))))
    stamps = [int(word.split(",")[0]) for parts in parsed for word in parts[2].split()]
    period = max(stamps) - min(stamps) + 1_000_000
    with (target / "cpu_op_execute_timestamp_0.txt").open("w") as file:
        for name, label, times in parsed:
            words = [word.partition(",") for word in times.split()]
            file.write(f"{name};{label};")
            for copy in range(copies):
                shift = copy * period
                file.writelines(f"{int(start) + shift},{rest} " for start, _, rest in words)
            file.write("\n")
    launches = (source / "cpu_framework_0.txt").read_text()
    (target / "cpu_framework_0.txt").write_text(launches * copies)
    header, *rows = (source / "cpu_op_detail_info_0.csv").read_text().splitlines()
    scaled = [header, *(_scaled(row.split(","), copies) for row in rows)]
    (target / "cpu_op_detail_info_0.csv").write_text("\n".join(scaled) + "\n")


def _scaled(row: list[str], copies: int) -> str:
    row[4:6] = [str(int(row[4]) * copies), f"{float(row[5]) * copies:g}"]
    return ",".join(row)


def _repeat_steps(source: Path, runs: int, target: Path) -> None:
    """Repeat the steps; each stands for eight runs of operators."""
    lines = (source / "step_trace_profiling_0.txt").read_text().splitlines()
    steps = [[word.split(",") for word in line.split()] for line in lines]
    period = int(steps[-1][3][1]) - int(steps[0][0][1]) + 100_000
    with (target / "step_trace_profiling_0.txt").open("w") as file:
        for copy in range(max(1, runs // 8 // len(steps))):
            for step in steps:
                words = [
                    ",".join([word[0], *(str(int(time) + copy * period) for time in word[1:])])
                    for word in step
                ]
                file.write(" ".join(words) + "\n")


def _op_analyse(folder: Path) -> None:
    from longpole.formats.mindspore.operators import op_analyse

    op_analyse(folder, ["MatMul", "Conv2D", "ApplyMomentum"])


def _step_trace(folder: Path) -> None:
    from longpole.formats.mindspore.step_trace import read_step_trace
    from longpole.formats.mindspore.tables import steps_text

    steps_text(read_step_trace(folder / "step_trace_profiling_0.txt"))


def _timeline(folder: Path) -> None:
    from longpole.formats.mindspore.timeline import timeline_events

    timeline_events(folder)


def _offline(folder: Path) -> None:
    from longpole.formats.mindspore.offline import offline_analyse

    with tempfile.TemporaryDirectory() as output:
        offline_analyse(folder, output=Path(output) / "out")


_ANSWERS = {
    "op_analyse": _op_analyse,
    "step_trace": _step_trace,
    "timeline": _timeline,
    "offline": _offline,
}


def _measure(answer: str, folder: Path) -> None:
    before = time.process_time()
    _ANSWERS[answer](folder)
    cpu_s = time.process_time() - before
    # ru_maxrss would count what the process had before it became this program.
    status = Path("/proc/self/status").read_text(encoding="ascii")
    peak = int(status.partition("VmHWM:")[2].split()[0]) / 1024
    print(f"{cpu_s:.3f}  {peak:.0f}")


if __name__ == "__main__":
    if _MEASURED in sys.argv:
        _measure(sys.argv[2], Path(sys.argv[3]))
    else:
        main()
