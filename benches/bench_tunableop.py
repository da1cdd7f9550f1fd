"""Times the commands of `longpole tunableop` on large files, and reads their memory.

    python benches/bench_tunableop.py [--rows 500000]

Each command is a process of its own. The figures are its processor time and its peak memory.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

COMMANDS = {
    "show": ["show", "first0.csv"],
    "show as CSV": ["show", "first0.csv", "--format", "csv"],
    "show as JSON": ["show", "first0.csv", "--json"],
    "check": ["check", "first0.csv"],
    "merge of one file": ["merge", "first0.csv", "-o", "merged0.csv", "-f"],
    "merge of two files": ["merge", "first0.csv", "second0.csv", "-o", "merged0.csv", "-f"],
    "split": ["split", "first0.csv", "--parts", "4", "-f"],
    "diff": ["diff", "first0.csv", "second0.csv"],
    "speedup": ["speedup", "first0.csv", "second0.csv"],
    "coverage": ["coverage", "untuned0.csv", "first0.csv"],
    "untuned": ["untuned", "untuned0.csv", "--without", "second0.csv"],
    "pin of one row": ["pin", "first0.csv", "--parameters", "^nn_1_1_", "-o", "p0.csv", "-f"],
    "unpin of all rows": ["unpin", "first0.csv", "--operator", ".", "-o", "p0.csv", "-f"],
}
FINDINGS = 1
"""Exit code of a command that found differences."""


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=500_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        _write(Path(folder, "first0.csv"), options.rows, seed=1)
        _write(Path(folder, "second0.csv"), options.rows, seed=2)
        _write_untuned(Path(folder, "untuned0.csv"), Path(folder, "first0.csv"))
        for name, command in COMMANDS.items():
            cpu_s, peak_bytes = _measured(command, folder)
            print(f"{name:20} {cpu_s:6.1f} s  {peak_bytes >> 20:6} MiB")


def _write(path: Path, n_rows: int, *, seed: int) -> None:
    """Write a file of distinct GEMMs; files of other seeds have other solutions for them."""
    chosen = random.Random(seed)  # noqa: S311 - sizes, not a secret
    with path.open("w", encoding="utf-8") as file:
        file.write("Validator,PT_VERSION,2.9.1\nValidator,GCN_ARCH_NAME,gfx942\n")
        for number in range(n_rows):
            m, n, k = 1 + number % 997, 1 + number // 997, 64
            layout = ("NN", "TN", "NT")[number % 3]
            gemm = f"{layout.lower()}_{m}_{n}_{k}_ld_{k}_{k}_{m}"
            solution = f"Gemm_Hipblaslt_{chosen.randrange(1000)},{chosen.random():.6f}"
            file.write(f"GemmTunableOp_BFloat16_{layout},{gemm},{solution}\n")


def _write_untuned(path: Path, results: Path) -> None:
    """Write the GEMMs of a results file without their solutions."""
    rows = results.read_text(encoding="utf-8").splitlines()[2:]
    text = "".join(f"{','.join(row.split(',')[:2])}\n" for row in rows)
    path.write_text(text, encoding="utf-8")


def _measured(command: list[str], folder: str) -> tuple[float, int]:
    """Return the seconds of processor time and the peak memory of a command."""
    argv = [sys.executable, "-m", "longpole", "tunableop", *command]
    process = subprocess.Popen(argv, cwd=folder, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in {0, FINDINGS}:
        sys.exit(f"{' '.join(command)} ended with exit status {process.returncode}")
    return used.ru_utime + used.ru_stime, used.ru_maxrss << 10


if __name__ == "__main__":
    main()
