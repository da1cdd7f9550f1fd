"""Bandwidths of copies: as recorded, or from bytes and times."""

from __future__ import annotations

import pytest

import longpole
from longpole.testing import TraceBuilder


def copies(*rates, size=8_000):
    builder = TraceBuilder()
    for number, rate in enumerate(rates):
        args = {"device": 0, "stream": 7, "bytes": size, "memory bandwidth (GB/s)": rate}
        place = {"ph": "X", "cat": "gpu_memcpy", "pid": 0, "tid": 7, "args": args}
        builder.event(name="Memcpy HtoD", ts=10 * number, dur=2, **place)
    return builder.read()


@pytest.mark.parametrize("rate", [1e308, -1e308, -1, 1e7, 1e300])
def test_a_bandwidth_that_no_device_reaches_is_computed_from_bytes(rate):
    found = longpole.copies(copies(rate, rate, 5.0), by="time")
    assert found["bandwidth_gb_per_s"].to_list() == [4.0, 0.0, 4.0, 0.0, 5.0, 0.0]


def test_a_size_that_no_device_copies_has_no_bandwidth():
    assert longpole.copies(copies(1e308, size=2**63 - 1), by="time").is_empty()
    assert longpole.copies(copies(1e308, size=2**63 - 1)).height == 1
