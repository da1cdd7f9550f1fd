"""Print the predictions for recorded programs next to the measurements.

``python tests/oracles/gpu_truth.py [NAME ...]`` reads `../shared/data/gpu` next to the repository.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, Final

from longpole import read_trace

GPU: Final = Path(__file__).parents[3] / "shared" / "data" / "gpu"

# The remedies that name the cause of each program.
MENDING: Final[dict[str, tuple[str, ...]]] = {
    "loader": ("loader_workers",),
    "launches": ("cuda_graph",),
    "kernels": ("tensor_cores",),
    "pageable": ("pinned_copies",),
    "optimizer": ("optimizer_loop",),
    "hostwork": ("python_between_operators", "recurring_call"),
    "decode": ("round_trip",),
    "masks": ("small_copies",),
    "allocator": ("allocation",),
    "download": ("pinned_copies",),
    "attention": ("fused_attention",),
    "transposes": ("layout_copies",),
    "gil": ("interpreter_lock",),
}

Row = dict[str, Any]


def rows(names: list[str]) -> list[Row]:
    """Read the programs, or those of some names, with what the verdict says of each."""
    truth = [json.loads(line) for line in (GPU / "truth.jsonl").read_text().splitlines()]
    return [_row(program) for program in truth if not names or program["name"] in names]


def _row(program: Row) -> Row:
    name = program["name"]
    found = {
        side: read_trace(GPU / "programs" / f"{name}.{side}.json.gz").verdict()
        for side in ("before", "after")
    }
    return {
        "name": name,
        "measured": program["gain"],
        "before": found["before"],
        "still_named": [
            row.remedy
            for row in found["after"].remedies
            if row.named and row.remedy in MENDING[name]
        ],
    }


def _line(row: Row) -> str:
    measured, least, most = (f"{100 * gain:.1f}" for gain in row["measured"])
    named = [remedy for remedy in row["before"].remedies if remedy.named]
    first = ", ".join(
        f"{it.remedy} {100 * it.gain.low:.1f}..{100 * it.gain.high:.1f}" for it in named[:2]
    )
    is_named = any(it.remedy in MENDING[row["name"]] for it in named[:2])
    text = "named" if is_named else "NOT NAMED"
    still = f"; after: {', '.join(row['still_named'])}" if row["still_named"] else ""
    return f"{row['name']:11} {measured} ({least} - {most})  {text:9}  {first}{still}"


if __name__ == "__main__":
    for found in rows(sys.argv[1:]):
        print(_line(found))
        for action in found["before"].actions:
            print(f"    {action}")
