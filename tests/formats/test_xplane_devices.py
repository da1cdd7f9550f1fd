"""The planes of devices in an XProf profile describe the devices."""

from __future__ import annotations

import pytest

import longpole
from oracles.simulator.perfetto import message, number, text

_STATS = {
    "gpu_device_name": "NVIDIA H100 80GB HBM3",
    "memory_size": 85_017_493_504,
    "core_count": 132,
    "compute_cap_major": 9,
    "compute_cap_minor": 0,
    "device_vendor": "Nvidia",
}


def _plane(name, stats):
    """Return a plane with a kernel of 1 ms, and values that describe the plane."""
    event = message(4, number(1, 1), number(2, 0), number(3, 1_000_000_000))
    line = message(3, number(1, 7), text(2, "Stream #7(Compute)"), number(3, 1_000), event)
    metadata = message(4, number(1, 1), message(2, number(1, 1), text(2, "gemm")))
    names = [
        message(5, number(1, row), message(2, number(1, row), text(2, key)))
        for row, key in enumerate(stats, 1)
    ]
    values = [
        message(6, number(1, row), text(5, it) if isinstance(it, str) else number(3, it))
        for row, it in enumerate(stats.values(), 1)
    ]
    return message(1, number(1, 3), text(2, name), line, metadata, *names, *values)


def test_a_device_has_the_name_and_the_memory_that_its_plane_states():
    host = message(1, number(1, 1), text(2, "/host:CPU"))
    trace = longpole.read_trace(host + _plane("/device:GPU:1", _STATS))
    assert trace.device_properties == {
        1: {
            "id": 1,
            "name": "NVIDIA H100 80GB HBM3",
            "totalGlobalMem": 85_017_493_504,
            "numSms": 132,
            "computeMajor": 9,
            "computeMinor": 0,
        }
    }
    assert trace.devices["name"].to_list() == ["NVIDIA H100 80GB HBM3"]


@pytest.mark.parametrize("name", ["/host:CPU", "/device:GPU:x", "/device:GPU"])
def test_other_planes_describe_no_device(name):
    host = message(1, number(1, 1), text(2, "/host:CPU"))
    assert longpole.read_trace(host + _plane(name, _STATS)).device_properties == {}


def test_a_device_without_a_known_value_is_not_described():
    plane = _plane("/device:GPU:0", {"device_vendor": "Nvidia"})
    host = message(1, number(1, 1), text(2, "/host:CPU"))
    assert longpole.read_trace(host + plane).device_properties == {}
