"""Programs recorded on a GPU, slow and mended, with the gain that was measured."""

from __future__ import annotations

import pytest

from oracles.gpu_truth import GPU, MENDING, rows

pytestmark = pytest.mark.skipif(not GPU.exists(), reason="the recorded programs are not here")

# Those whose cause lies in kernels have no remedy yet.
NAMED = sorted({*MENDING} - {"attention", "kernels", "transposes"})


@pytest.mark.parametrize("name", NAMED)
def test_the_cause_is_named_in_the_first_two_lines(name: str):
    [row] = rows([name])
    named = [remedy.remedy for remedy in row["before"].remedies if remedy.named][:2]
    assert {*named} & {*MENDING[name]}, named
    assert row["still_named"] == []
