"""The paths of recorded programs stay what they were when they were last read.

``python tests/oracles/golden.py --write`` writes them anew.
"""

import json

import pytest

from oracles.golden import GOLDEN, golden_paths, recordings

PATHS = json.loads(GOLDEN.read_text())


@pytest.mark.parametrize("file", recordings(), ids=lambda file: file.name)
def test_a_recorded_program_keeps_its_paths(file):
    assert golden_paths(file) == PATHS[file.name]


def test_every_golden_path_is_that_of_a_recording():
    assert PATHS.keys() == {file.name for file in recordings()}
