"""Times extraction against Python's `re`, in one run, on text made here.

    python benches/bench_extract.py [--megabytes 64] [--repeats 5]

Sparse is a log of which one line in fifty is a row, dense one of rows only. All
figures are bytes of text for each second of CPU, the best of several.
"""

from __future__ import annotations

import argparse
import random
import re
import time
from typing import TYPE_CHECKING, Final

from longpole import bench

if TYPE_CHECKING:
    from collections.abc import Callable

# Patterns for seven of the formats that are looked for, as one would write them for `re`.
PATTERNS: Final = [
    rb"OP:([a-zA-Z0-9_]+),TIME:([\d\.]+),WS:([\d]+)",
    rb"^\s*Runtime:\s+([\d.eE+-]+)\s+ms",
    rb"^\d+,\w+,\w+,(\w+),\w+,\w+,(?:[^,\n]*,){2,40}?([\d.]+),[\d.]+,[\d.]+$",
    rb"^\s*([NTC],[NTC],(?:[^,\n]+,){8,40})\s*([\d.eE+-]+)$",
    rb"^\s*(\d+)\s+(\d+)\s+(\w+)\s+(\w+)\s+(-?\d+)\s+([\d.]+)\s+([\d.]+)\s+([\d.]+)\s+(\S+)",
    rb'^"(\d+)",.*"(?:Duration|gpu__time_duration\.sum)","(\w+)","([\d.,]+)"',
    rb"^--Solution name:\s+(\S+)",
]
WORDS: Final = (
    "loading",
    "kernel",
    "tile",
    "stage",
    "warp",
    "epilogue",
    "shape",
    "done",
    "of",
    "cache",
)


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--megabytes", type=int, default=64)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    for name, share in (("sparse", 0.02), ("dense", 1.0)):
        text = _log(options.megabytes * 1_000_000, share)
        rows = _measured(text, options.repeats)
        for what, speed in rows.items():
            ratio = rows["longpole, all formats"] / speed
            print(f"{name:7} {what:24} {speed / 1e9:7.2f} GB/s {ratio:8.2f}x")


def _measured(text: bytes, repeats: int) -> dict[str, float]:
    """Bytes a second of each way."""
    compiled = [re.compile(pattern, re.MULTILINE) for pattern in PATTERNS]
    ways: dict[str, Callable[[], object]] = {
        "longpole, all formats": lambda: bench.extract(text),
        "longpole, one format": lambda: bench.extract(text, format="aitemplate"),
        "longpole, a pattern": lambda: bench.extract(text, format=f"regex={OWN_PATTERN}"),
        "re, one pattern": lambda: compiled[0].findall(text),
        "re, seven patterns": lambda: [pattern.findall(text) for pattern in compiled],
    }
    return {what: len(text) / _least_seconds(way, repeats) for what, way in ways.items()}


OWN_PATTERN: Final = r"OP:(?P<operation>\w+),TIME:(?P<time_ms>[\d.]+),WS:(?P<workspace>\d+)"


def _least_seconds(way: Callable[[], object], repeats: int) -> float:
    spent = []
    for _ in range(repeats):
        start = time.process_time()
        way()
        spent.append(time.process_time() - start)
    return min(spent)


def _log(n_bytes: int, share: float) -> bytes:
    """Lines as profilers print them, of which this share are rows."""
    random_ = random.Random(0)  # noqa: S311 - the same log every time
    lines = [_row(random_) if random_.random() < share else _noise(random_) for _ in range(20_000)]
    block = ("\n".join(lines) + "\n").encode()
    return block * (n_bytes // len(block) + 1)


def _row(random_: random.Random) -> str:
    tile = f"{random_.choice((64, 128, 256))}x{random_.choice((64, 128))}"
    milliseconds, workspace = random_.uniform(0.001, 5), random_.randrange(4096)
    return f"OP:cutlass_h16816gemm_{tile}_tn_align_8,TIME:{milliseconds:.6g},WS:{workspace}"


def _noise(random_: random.Random) -> str:
    words = " ".join(random_.choices(WORDS, k=random_.randrange(4, 14)))
    return f"[{random_.randrange(100_000):>8}] {words} {random_.random():.4f}"


if __name__ == "__main__":
    main()
