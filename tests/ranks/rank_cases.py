"""Tiny sets of ranks with known answers, from outside the repository."""

from __future__ import annotations

import json

from longpole import read_traces
from real_traces import SHARED

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
