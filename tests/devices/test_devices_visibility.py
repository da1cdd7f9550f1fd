"""What "my device 1" means, and how a child is given it."""

import pytest

from longpole.devices import Device, child_changes, dev_select_flag, unlisted, visible_devices
from longpole.errors import DeviceError


def machine(vendor="nvidia", names=("H100",) * 6):
    return [
        Device(
            uuid=f"GPU-{index}{index}{index}",
            vendor=vendor,
            token=f"GPU-{index}{index}{index}" if vendor == "nvidia" else str(index),
            index=index,
            name=name,
        )
        for index, name in enumerate(names)
    ]


def seen(vendor="nvidia", **environ):
    return [device.index for device in visible_devices(machine(vendor), environ)]


@pytest.mark.parametrize(
    ("text", "indices"),
    [
        ("4,5", [4, 5]),
        ("5,4", [5, 4]),
        ("", []),
        ("0,2,-1,1", [0, 2]),
        ("0,9,1", [0]),
        ("0,0", []),
        ("GPU-33,GPU-1", [3, 1]),
        (" 2 , 3 ", [2, 3]),
    ],
)
def test_a_list_is_read_as_cuda_reads_it(text, indices):
    assert seen(CUDA_VISIBLE_DEVICES=text) == indices


def test_no_list_is_all_devices():
    assert seen() == [0, 1, 2, 3, 4, 5]


def test_an_index_among_unlike_devices_is_refused_unless_the_order_is_that_of_the_bus():
    devices = machine(names=("H100", "T4"))
    with pytest.raises(DeviceError, match="hint: set CUDA_DEVICE_ORDER=PCI_BUS_ID"):
        visible_devices(devices, {"CUDA_VISIBLE_DEVICES": "1"})
    order = {"CUDA_VISIBLE_DEVICES": "1", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
    assert visible_devices(devices, order) == devices[1:]


def test_hip_counts_in_what_rocr_leaves():
    assert seen("amd", ROCR_VISIBLE_DEVICES="3,4", HIP_VISIBLE_DEVICES="1") == [4]
    assert seen("amd", ROCR_VISIBLE_DEVICES="3", HIP_VISIBLE_DEVICES="3") == []


def test_a_child_is_given_a_uuid_in_the_order_of_the_bus():
    (_, device, *_) = machine()
    assert child_changes(device, {"CUDA_VISIBLE_DEVICES": "0,1"}) == {
        "CUDA_VISIBLE_DEVICES": "GPU-111",
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
    }


def test_a_child_below_a_list_stays_within_it():
    environ = {"CUDA_VISIBLE_DEVICES": "4,5"}
    device = unlisted(1, environ=environ)
    assert child_changes(device, environ) == {"CUDA_VISIBLE_DEVICES": "5"}
    with pytest.raises(DeviceError, match="device 2 is not visible"):
        unlisted(2, environ=environ)


def test_a_child_is_given_hip_and_no_second_variable():
    environ = {"ROCR_VISIBLE_DEVICES": "2,3", "CUDA_VISIBLE_DEVICES": "1"}
    (device,) = visible_devices(machine("amd"), environ)
    assert device.index == 3
    assert child_changes(device, environ) == {
        "HIP_VISIBLE_DEVICES": "1",
        "CUDA_VISIBLE_DEVICES": None,
    }


def test_each_vendor_has_its_variable():
    assert dev_select_flag("nvidia") == "CUDA_VISIBLE_DEVICES"
    assert dev_select_flag("amd") == "HIP_VISIBLE_DEVICES"
