"""A worker for tests: writes results as torch 2.10 does, and fails where the sizes say so.

`m` of a GEMM decides: 13 crashes before its row is written, 17 hangs, 19 is left out; 23
crashes in the middle of its row, the first time only.
"""

import os
import signal
import sys
import time
from pathlib import Path

HEADER = "Validator,PT_VERSION,2.10.0\nValidator,GCN_ARCH_NAME,fake\n"


def main(untuned, results, folder):
    rows = Path(untuned).read_text(encoding="utf-8").splitlines()
    with Path(results).open("a", encoding="utf-8") as file:
        if not file.tell():
            file.write(HEADER)
            file.flush()
        for row in rows:
            m = int(row.split(",")[1].split("_")[1])
            line = f"{row},Gemm_Fake_{os.environ['LONGPOLE_FAKE_DEVICE']},{m / 1000}\n"
            file.write(trouble(m, line, Path(folder)) or "")
            file.flush()
            if m == 23 and dies_now(Path(folder)):
                os.kill(os.getpid(), signal.SIGKILL)


def trouble(m, line, folder):
    """Return what is written of the line."""
    if m == 13:
        os.kill(os.getpid(), signal.SIGSEGV)
    if m == 17:
        time.sleep(600)
    if m == 19:
        return ""
    if m == 23 and not (folder / "died-once").exists():
        return line[: len(line) // 2]
    return line


def dies_now(folder):
    """Return True the first time only."""
    marker = folder / "died-once"
    if marker.exists():
        return False
    marker.touch()
    return True


if __name__ == "__main__":
    main(*sys.argv[2:], sys.argv[1])
