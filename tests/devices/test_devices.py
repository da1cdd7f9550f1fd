"""Choosing devices, the devices of other vendors, and those that are not there."""

import json
import subprocess
import sys

import pytest

from longpole import devices
from longpole.cli.program import run
from longpole.devices import Device, DeviceLostError, Found, Reading, protocol
from longpole.devices.amd import parse_amd_smi_metric, parse_amd_smi_static
from longpole.devices.driverless import FakeProvider
from longpole.devices.nvidia import _parse_device, _parse_reading
from longpole.errors import DeviceError


def found(*names):
    return Found({Device(name, "nvidia", name, pci=f"0000:0{index}:00.0"): None
                  for index, name in enumerate(names)})  # fmt: skip


def uuids(chosen):
    return [device.uuid for device in chosen]


@pytest.mark.parametrize("wanted", [None, []])
def test_no_list_and_an_empty_one_mean_device_0(wanted):
    assert uuids(devices.select(wanted, found("GPU-a", "GPU-b"))) == ["GPU-a"]


def test_devices_are_chosen_by_number_uuid_or_address():
    here = found("GPU-a", "GPU-b", "GPU-c")
    assert uuids(devices.select(["2", "GPU-A", "0000:01:00.0"], here)) == [
        "GPU-c",
        "GPU-a",
        "GPU-b",
    ]
    assert uuids(devices.select(["all"], here)) == ["GPU-a", "GPU-b", "GPU-c"]


@pytest.mark.parametrize(
    ("wanted", "complaint"), [("7", "is not a device here"), ("GPU", "more than one")]
)
def test_a_name_that_fits_none_or_several_is_refused(wanted, complaint):
    with pytest.raises(DeviceError, match=complaint):
        devices.select([wanted], found("GPU-a", "GPU-b"))


def test_importing_starts_no_driver():
    program = "import sys, longpole.devices, longpole.bench; print('pynvml' in sys.modules)"
    command = [sys.executable, "-c", program]
    assert subprocess.run(command, capture_output=True, check=True).stdout == b"False\n"


def test_the_processor_is_a_device():
    ((device, provider),) = devices.select(["cpu"]).items()
    assert device.vendor == "cpu"
    assert device.memory_bytes > 0
    assert provider.read(device).utilisation_share >= 0


def test_memory_in_use_makes_a_device_look_busy():
    assert Reading().busy is None
    assert Reading(memory_used_bytes=protocol.BUSY_MEMORY_BYTES + 1).busy
    assert Reading(processes=(protocol.Process(1, None, "graphics"),)).busy is None


def test_amd_smi_is_read_in_its_old_and_its_new_form():
    gpu = {
        "gpu": 1,
        "asic": {
            "market_name": "AMD Instinct MI300X",
            "asic_serial": "0xDEADBEEF00000001",
            "target_graphics_version": "gfx942",
        },
        "bus": {"bdf": "0000:0c:00.0"},
        "driver": {"version": "6.10"},
        "vram": {"size": {"value": 196608, "unit": "MB"}},
    }
    (device,) = parse_amd_smi_static([gpu])
    assert parse_amd_smi_static({"gpu_data": [gpu]}) == [device]
    assert device == Device(
        uuid="GPU-deadbeef00000001",
        vendor="amd",
        token="1",  # noqa: S106
        index=1,
        name="AMD Instinct MI300X",
        pci="0000:0c:00.0",
        arch="gfx942",
        memory_bytes=192 << 30,
        driver="6.10",
    )


def test_what_amd_smi_does_not_know_is_unknown():
    reading = parse_amd_smi_metric(
        {
            "usage": {"gfx_activity": {"value": 3, "unit": "%"}},
            "power": {"socket_power": "N/A"},
            "clock": {"gfx_0": {"clk": {"value": 132, "unit": "MHz"}}},
            "temperature": {"edge": "N/A", "hotspot": {"value": 39, "unit": "C"}},
        }
    )
    assert reading == Reading(clock_mhz=132, temperature_c=39.0, utilisation_share=0.03)


def test_nvidia_smi_is_read_with_what_it_does_not_support():
    device = _parse_device(["0", "GPU-1", "H100", "00000000:3B:00.0", "9.0", "81559", "575.1"])
    assert (device.arch, device.pci, device.memory_bytes) == (
        "sm_90",
        "00000000:3b:00.0",
        81559 << 20,
    )
    row = ["1410", "1980", "2619", "41", "[N/A]", "7", "100", "0x0000000000000020", "[N/A]"]
    assert _parse_reading(row) == Reading(
        clock_mhz=1410,
        clock_max_mhz=1980,
        memory_clock_mhz=2619,
        temperature_c=41.0,
        utilisation_share=0.07,
        memory_used_bytes=100 << 20,
        throttle_reasons=("sw_thermal_slowdown",),
    )


def test_a_lost_device_answers_no_more():
    provider = FakeProvider(count=2, lost={1})
    first, second = provider.list_devices()
    provider.read(first)
    with pytest.raises(DeviceLostError, match="FAKE-0001 is lost"):
        provider.read(second)


def test_the_command_lists_fake_devices(tmp_path):
    command = [sys.executable, "-m", "longpole", "devices", "fake:2", "--json"]
    environ = {"LONGPOLE_LOCK_DIR": str(tmp_path), "PATH": "/usr/bin"}
    answer = subprocess.run(command, capture_output=True, check=True, env=environ)
    rows = json.loads(answer.stdout)["data"]["devices"]
    assert [(row["uuid"], row["state"], row["held_by"]) for row in rows] == [
        ("FAKE-0000", "free", None),
        ("FAKE-0001", "free", None),
    ]


def test_a_command_without_an_input_names_none(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("LONGPOLE_LOCK_DIR", str(tmp_path))
    assert run(["devices", "fake:1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["inputs"] == []
