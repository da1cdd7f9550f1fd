"""Real pairs of an execution trace and a Kineto trace, if they exist outside the repository."""

from __future__ import annotations

import pytest

from longpole import link_execution_trace
from real_traces import SHARED

FOLDER = SHARED / "et_pairs"

needs_pairs = pytest.mark.skipif(not FOLDER.exists(), reason="no real pairs beside the project")


def link(name, execution=None, **options):
    return link_execution_trace(
        FOLDER / f"{execution or name}.et.json.gz", FOLDER / f"{name}.kineto.json.gz", **options
    )
