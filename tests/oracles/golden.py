"""Write the golden paths of the recordings in ``tests/recordings``.

    python tests/oracles/golden.py [--write]

Prints what differs and exits with 1; with ``--write`` the file is written anew. A golden path holds
no truth of its own: a change in the code that changes one is read, path by path, before it is kept.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import longpole

if TYPE_CHECKING:
    from collections.abc import Iterator

RECORDINGS: Final = Path(__file__).parents[1] / "recordings"
GOLDEN: Final = RECORDINGS / "paths.json"
N_LONGEST: Final = 3


def main() -> None:
    """Compare the golden paths with today's, or write them anew."""
    found = {file.name: golden_paths(file) for file in recordings()}
    text = json.dumps(found, indent=1) + "\n"
    if "--write" in sys.argv:
        GOLDEN.write_text(text)
    elif text != GOLDEN.read_text():
        known = json.loads(GOLDEN.read_text())
        for name in sorted(found | known):
            if found.get(name) != known.get(name):
                print(f"{name}: {json.dumps(known.get(name))} -> {json.dumps(found.get(name))}")  # noqa: T201
        sys.exit(1)


def recordings() -> list[Path]:
    """Return the recorded traces, by name."""
    return sorted(RECORDINGS.glob("*.json.gz"))


def golden_paths(file: Path) -> dict[str, Any]:
    """Return the path of the whole trace, of its default step and of its first step."""
    trace = longpole.read_trace(file)
    return {name: golden_path(trace, **window) for name, window in _windows(trace)}


def _windows(trace: longpole.Trace) -> Iterator[tuple[str, dict[str, Any]]]:
    yield "whole", {"whole": True}
    yield "default", {}
    for step in trace.steps["step"].to_list()[:1]:
        yield f"step {step}", {"step": step}


def golden_path(trace: longpole.Trace, **window: Any) -> dict[str, Any]:
    """Return a path's length, its time by kind, its longest segments, and a digest of all."""
    segments = trace.critical_path(**window).segments
    columns = ["kind", "name", "start_ns", "duration_ns"]
    rows = segments.select(columns).rows()
    by_kind: Counter[str] = Counter()
    for kind, _, _, duration_ns in rows:
        by_kind[kind] += duration_ns
    longest = sorted(rows, key=lambda row: (-row[3], row[2]))[:N_LONGEST]
    return {
        "length_ns": sum(by_kind.values()),
        "n_segments": len(rows),
        "ns_by_kind": dict(sorted(by_kind.items())),
        "longest": [[kind, name, duration_ns] for kind, name, _, duration_ns in longest],
        "digest": hashlib.sha256(json.dumps(rows).encode()).hexdigest()[:16],
    }


if __name__ == "__main__":
    main()
