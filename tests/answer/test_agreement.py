"""One question has one answer, whatever is asked for it; a planted contradiction is found."""

from __future__ import annotations

import pytest

from oracles.agreement import WINDOWS, disagreements
from oracles.contradictions import CONTRADICTIONS
from oracles.rerun import varied_program

SEEDS = 1
LONG_SEEDS = 400


@pytest.mark.parametrize(
    "seeds", [range(SEEDS), pytest.param(range(SEEDS, LONG_SEEDS), marks=pytest.mark.slow)], ids=len
)
def test_every_surface_gives_the_same_answer(seeds, tmp_path):
    answered = 0
    for seed in seeds:
        path = tmp_path / f"{seed}.json"
        varied_program(seed).write(path)
        for window in WINDOWS:
            wrong = disagreements(path, window)
            assert not wrong, (seed, window)
            answered += wrong is not None
        path.unlink()
    assert answered > 3 * len(seeds)


@pytest.fixture(scope="module")
def a_trace(tmp_path_factory):
    path = tmp_path_factory.mktemp("agreement") / "trace.json"
    varied_program(0).write(path)
    return path


def planted():
    """List the contradictions; every twelfth is tried in the fast tests."""
    for place, what in enumerate(CONTRADICTIONS):
        yield pytest.param(what, marks=[pytest.mark.slow] if place % 12 else [])


@pytest.mark.parametrize("what", [*planted()])
def test_a_contradiction_is_found(what, a_trace, monkeypatch):
    CONTRADICTIONS[what](monkeypatch)
    found = (disagreements(a_trace, window) for window in WINDOWS)
    assert any(found)
