"""The real pynvml over a libnvidia-ml that is compiled here."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pynvml")
SOURCE = Path(__file__).with_name("fakes") / "nvml.c"
READ_ALL = """
import json
from longpole import devices
found = devices.discover()
answer = []
for device, provider in found.items():
    try:
        reading = provider.read(device)
        answer.append({**device.to_dict(), **reading.to_dict(), "busy": reading.busy})
    except devices.DeviceLostError as error:
        answer.append({**device.to_dict(), "lost": str(error)})
print(json.dumps(answer))
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler `cc` to make the library with")
    folder = tmp_path_factory.mktemp("nvml")
    target = folder / "libnvidia-ml.so.1"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", target, SOURCE], check=True)
    return folder


def run_python(library, program, *arguments, **variables):
    environ = {**os.environ, "LD_LIBRARY_PATH": str(library), **variables}
    environ.setdefault("LONGPOLE_LOCK_DIR", str(library / "locks"))
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.run(command, env=environ, capture_output=True, text=True, check=True).stdout


def read_all(library, **variables):
    return json.loads(run_python(library, READ_ALL, **variables))


def test_devices_are_known_by_uuid_with_their_state(library):
    first, second = read_all(library)
    assert first == {
        "uuid": "GPU-aaaaaaaa-0000-0000-0000-000000000000",
        "vendor": "nvidia",
        "token": "GPU-aaaaaaaa-0000-0000-0000-000000000000",
        "index": 0,
        "name": "NVIDIA Fake 100",
        "pci": "00000000:3b:00.0",
        "arch": "sm_90",
        "memory_bytes": 80 << 30,
        "driver": "575.1",
        "clock_mhz": 1410,
        "clock_max_mhz": 1980,
        "memory_clock_mhz": 2619,
        "temperature_c": 41,
        "power_w": 70.5,
        "utilisation_share": 0.0,
        "memory_used_bytes": 100 << 20,
        "busy": None,
    }
    assert second["busy"] == "used by process 4242"


def test_what_a_device_does_not_support_is_unknown_and_not_zero(library):
    assert "ecc_errors" not in read_all(library)[0]


def test_throttle_reasons_have_names(library):
    reasons = read_all(library, NVML_FAKE_THROTTLE="0x44")[0]["throttle_reasons"]
    assert reasons == ["sw_power_cap", "hw_thermal_slowdown"]


def test_a_lost_device_says_so_and_the_others_go_on(library):
    first, second = read_all(library, NVML_FAKE_LOST="1")
    assert "lost" not in first
    assert second["lost"].endswith("is lost: GPU is lost")


def test_my_first_device_is_the_first_of_the_list(library):
    (only,) = read_all(library, CUDA_VISIBLE_DEVICES="1")
    assert only["uuid"].startswith("GPU-bbbbbbbb")


def test_a_job_is_given_the_uuid(library, tmp_path):
    program = """
import json, sys
from longpole.bench import Job, Policy, Runner
job = Job(["sh", "-c", "echo $CUDA_VISIBLE_DEVICES $CUDA_DEVICE_ORDER"], format="none")
with Runner([0], results=sys.argv[1], policy=Policy(busy="allow")) as runner:
    (record,) = runner.run([job])
print(json.dumps([record.stdout_tail, record.environment["before"]["clock_mhz"]]))
"""
    path = str(tmp_path / "r.jsonl")
    answer = json.loads(run_python(library, program, path, CUDA_VISIBLE_DEVICES="1"))
    assert answer == ["GPU-bbbbbbbb-0000-0000-0000-000000000001 PCI_BUS_ID\n", 1410]


def test_the_command_lists_them(library):
    program = "from longpole.cli import main; main()"
    text = run_python(library, program, "devices", "--json")
    rows = json.loads(text)["data"]["devices"]
    assert [(row["number"], row["state"]) for row in rows] == [(0, "free"), (1, "busy")]
