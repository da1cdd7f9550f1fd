"""The faults that a long check plants are still there to be planted."""

from __future__ import annotations

import pytest

from oracles import mutations


@pytest.mark.parametrize("fault", mutations.FAULTS, ids=lambda fault: fault.name)
def test_the_text_of_a_fault_stands_once(fault):
    file = mutations.ROOT / fault.path
    assert file.read_text(encoding="utf-8").count(fault.text) == 1
