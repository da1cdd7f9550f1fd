"""Additions by index that wait for each other: the trace, the gain and the sentence."""

from __future__ import annotations

from kernel_steps import kernel, named, steps, tensors

TARGET, INDEX = ("float", 16, 64), ("long int", 1048576)
SOURCE, OTHER = ("float", 1048576, 64), ("float", 1048576, 64)


def adding(duration_us: float, target: tuple[str, int, int] = TARGET):
    """Return a kernel that adds 268 MB by index."""
    inputs = tensors(target, ("Scalar",), INDEX, SOURCE, ("Scalar",))
    return kernel("aten::index_add_", "indexFuncLargeIndex", duration_us, **inputs)


def test_additions_to_few_rows_gain_what_memory_allows(said):
    [found, *_] = steps([adding(10_000)]).read().verdict().remedies
    # 545 MB at 80 % of 2,039 GB/s take 334 us; at the least two passes
    assert (found.remedy, found.name) == ("contended_atomics", "aten::index_add_")
    assert abs(found.gain.low - (1 - 2 * 0.0334)) < 0.01, found
    assert abs(found.gain.high - (1 - 0.0334)) < 0.01, found
    said(found.evidence)


def test_additions_that_memory_limits_are_left_alone():
    assert "contended_atomics" not in named(steps([adding(1_001, OTHER)]))


def test_additions_at_a_third_of_the_bandwidth_wait_for_each_other():
    assert "contended_atomics" in named(steps([adding(1_100)]))
