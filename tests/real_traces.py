"""Real traces from outside the repository, if they exist."""

from __future__ import annotations

from pathlib import Path

import pytest

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
