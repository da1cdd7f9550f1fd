"""Real traces from outside the repository, if they exist."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from longpole import link_execution_trace, read_traces

SHARED = Path(__file__).parents[2] / "shared" / "data"


def real_traces(slow_bytes: int) -> list[object]:
    """List them, those above a size marked slow; one entry that skips if there are none."""
    files = sorted([*SHARED.glob("traces/**/*.json.gz"), *SHARED.glob("et_pairs/*.kineto.json.gz")])
    if not files:
        return [pytest.param(SHARED / "traces", id="none")]
    return [
        pytest.param(
            file,
            id=file.name,
            marks=[pytest.mark.slow] if file.stat().st_size > slow_bytes else [],
        )
        for file in files
    ]


# Real pairs of an execution trace and a Kineto trace, if they exist outside the repository.


FOLDER = SHARED / "et_pairs"

needs_pairs = pytest.mark.skipif(not FOLDER.exists(), reason="no real pairs beside the project")


def link(name, execution=None, **options):
    return link_execution_trace(
        FOLDER / f"{execution or name}.et.json.gz", FOLDER / f"{name}.kineto.json.gz", **options
    )


# Tiny sets of ranks with known answers, from outside the repository.


CASES = SHARED / "rank_cases.json"


def rank_cases():
    """Return the cases by name; empty if they do not exist."""
    if not CASES.exists():
        return {}
    return {case["name"]: case for case in json.loads(CASES.read_text(encoding="utf-8"))}


def read_case(case, folder):
    """Write the ranks of a case into a folder and read them as a user would."""
    for rank in case["ranks"]:
        info = {"distributedInfo": {"rank": rank["rank"]}, "traceEvents": rank["traceEvents"]}
        folder.joinpath(f"rank{rank['rank']}.json").write_text(json.dumps(info), encoding="utf-8")
    return read_traces(folder)
