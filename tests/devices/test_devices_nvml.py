"""The real pynvml over a libnvidia-ml that is compiled here."""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from processes import started

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


def environment(library, **variables):
    environ = {**os.environ, "LD_LIBRARY_PATH": str(library), **variables}
    environ.setdefault("LONGPOLE_LOCK_DIR", str(library / "locks"))
    return environ


def run_python(library, program, *arguments, **variables):
    environ = environment(library, **variables)
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
        "parent": None,
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


def test_settings_are_told_in_words(library):
    program = """
import json
from longpole import devices
(device, provider), *_ = devices.discover().items()
print(json.dumps(provider.settings(device)))
"""
    assert json.loads(run_python(library, program)) == {
        "power_limit": "700 W",
        "persistence": "on",
        "compute_mode": "default",
        "mig": "off",
        "ecc": "on",
        "cuda_driver": "12.8",
    }


def test_a_partitioned_device_is_listed_as_its_instances(library, said):
    found = read_all(library, NVML_FAKE_MIG="1")
    whole = "GPU-aaaaaaaa-0000-0000-0000-000000000000"
    assert [(each["index"], each["uuid"][:12], each["parent"]) for each in found] == [
        (0, "MIG-11111111", whole),
        (1, "MIG-22222222", whole),
        (2, "GPU-bbbbbbbb", None),
    ]
    said(found[0]["name"])
    (only,) = read_all(library, NVML_FAKE_MIG="1", CUDA_VISIBLE_DEVICES="MIG-22222222")
    assert only["uuid"] == "MIG-22222222-0000-0000-0000-000000000000"
    assert only["token"] == only["uuid"]


JOB = """
import json, sys
from longpole.bench import Job, Policy, Runner
policy = Policy(lock_clock_mhz=int(sys.argv[2]) if len(sys.argv) > 2 else None)
with Runner([0], results=sys.argv[1], policy=policy) as runner:
    (record,) = runner.run([Job(["sh", "-c", "SCRIPT"], format="none")])
print(json.dumps(record.to_dict()))
"""


def test_what_happens_to_a_device_during_a_job_is_read_by_the_guard(library, tmp_path):
    marker = tmp_path / "throttled"
    # Neither a reading before nor one after the job would see it.
    script = f"sleep 1; touch {marker}; sleep 0.5; rm {marker}; sleep 1"
    program = JOB.replace("SCRIPT", script)
    variables = {"NVML_FAKE_THROTTLE_FILE": str(marker)}
    record = json.loads(run_python(library, program, str(tmp_path / "r.jsonl"), **variables))
    during = record["environment"]["during"]
    assert "throttle_reasons" not in record["environment"]["after"]
    assert during["throttle_reasons"] == ["hw_thermal_slowdown"]
    assert during["n_readings"] > 20
    assert 0.02 < during["throttled_share"] < 0.6
    assert (during["clock_mhz"], during["power_max_w"]) == (1410, 70.5)
    assert record["sampling"]["clock_mhz"] == 1410
    assert record["environment"]["settings"]["persistence"] == "on"


def test_a_clock_is_locked_for_the_jobs_and_released(library, tmp_path):
    log = tmp_path / "log"
    program = JOB.replace("SCRIPT", "sleep 0.1")
    path = str(tmp_path / "r.jsonl")
    record = json.loads(run_python(library, program, path, "1410", NVML_FAKE_LOG=str(log)))
    assert record["outcome"] == "ok"
    assert log.read_text().splitlines() == ["lock 1410 1410", "release"]


@pytest.mark.parametrize("victim", ["runner", "guard"])
def test_a_locked_clock_is_released_after_kill_9(library, tmp_path, victim):
    log = tmp_path / "log"
    program = JOB.replace("SCRIPT", "sleep 30")
    command = [sys.executable, "-c", program, str(tmp_path / "r.jsonl"), "1410"]
    environ = environment(library, NVML_FAKE_LOG=str(log))
    with started(command, env=environ, stdout=subprocess.PIPE) as process:
        wait_for(lambda: log.exists() and log.read_text() == "lock 1410 1410\n")
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        if victim == "runner":
            process.kill()
        else:
            (guard,) = [pid for task in children.parents[1].iterdir() for pid in child_pids(task)]
            os.kill(guard, 9)
        wait_for(lambda: "release" in log.read_text())


def child_pids(task):
    return [int(pid) for pid in (task / "children").read_text().split()]


def wait_for(condition):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_clock_that_cannot_be_locked_is_an_error_and_nothing_runs(library, tmp_path, said):
    code = "from longpole.cli import main; main()"
    jobs = ["bench", "run", "--lock-clock", "1410", "-o", str(tmp_path / "r.jsonl")]
    command = [sys.executable, "-c", code, *jobs, "--", "touch", str(tmp_path / "ran")]
    environ = environment(library)
    found = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
    assert not (tmp_path / "ran").exists()
    printed = found.stdout + found.stderr
    said.within(printed)
    assert found.returncode == 5
