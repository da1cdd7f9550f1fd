"""AMD devices through a binding `amdsmi` that answers as the real one does."""

import json
import os
import subprocess
import sys

import pytest

BINDING = """
import os

class AmdSmiException(Exception): pass
class AmdSmiClkType: GFX, MEM = "gfx", "mem"
class AmdSmiTemperatureType: HOTSPOT = "hotspot"
class AmdSmiTemperatureMetric: CURRENT = "current"
class AmdSmiDevPerfLevel: AUTO = "auto"

def _is_hot(): return os.path.exists(os.environ.get("AMD_FAKE_HOT", "/nonexistent"))
def _note(text):
    with open(os.environ["AMD_FAKE_LOG"], "a") as log: log.write(text + chr(10))

def amdsmi_init(): pass
def amdsmi_get_processor_handles(): return ["first", "second"]
def amdsmi_get_gpu_device_bdf(handle):
    return {"first": "0000:0C:00.0", "second": "0000:22:00.0"}[handle]
def amdsmi_get_gpu_asic_info(handle):
    serial = "0x00000000DEADBEEF" if handle == "first" else "N/A"
    return {"market_name": "MI300X", "asic_serial": serial, "target_graphics_version": "gfx942"}
def amdsmi_get_gpu_driver_info(handle): return {"driver_version": "6.8.5"}
def amdsmi_get_gpu_vram_usage(handle): return {"vram_total": 196608, "vram_used": 300}
def amdsmi_get_clock_info(handle, kind):
    if kind == "mem": return {"clk": 1300, "max_clk": 1300}
    return {"clk": 900 if _is_hot() else 2100, "max_clk": 2100}
def amdsmi_get_power_info(handle): return {"current_socket_power": 550, "power_limit": 750}
def amdsmi_get_power_cap_info(handle): return {"power_cap": 750_000_000}
def amdsmi_get_temp_metric(handle, sensor, metric): return 66
def amdsmi_get_gpu_activity(handle): return {"gfx_activity": 3}
def amdsmi_get_gpu_total_ecc_count(handle): raise AmdSmiException("not supported")
def amdsmi_get_gpu_compute_partition(handle): return "SPX"
def amdsmi_get_gpu_memory_partition(handle): return "NPS1"
def amdsmi_get_gpu_process_list(handle):
    return [{"name": "python", "pid": 77, "mem": 1 << 20}] if handle == "second" else []
def amdsmi_get_violation_status(handle):
    return {"active_ppt_pwr": True, "active_socket_thrm": _is_hot(), "acc_socket_thrm": 5,
            "acc_vr_thrm": "N/A"}
def amdsmi_set_gpu_perf_determinism_mode(handle, mhz): _note(f"lock {handle} {mhz}")
def amdsmi_set_gpu_perf_level(handle, level): _note(f"release {handle} {level}")
"""
READ_ALL = """
import json
from longpole import devices
found = devices.discover()
print(json.dumps([
    {**device.to_dict(), **provider.read(device).to_dict(), "settings": provider.settings(device)}
    for device, provider in found.items()
]))
"""


TASK = """
[parameters]
seconds = [0.3, 0.15]
[candidate]
command = "sleep {seconds}"
[objective]
metric = "energy"
"""


@pytest.fixture
def environ(tmp_path):
    (tmp_path / "amdsmi").mkdir()
    (tmp_path / "amdsmi" / "__init__.py").write_text(BINDING)
    return {
        **os.environ,
        "PYTHONPATH": str(tmp_path),
        "LONGPOLE_LOCK_DIR": str(tmp_path / "locks"),
        "AMD_FAKE_LOG": str(tmp_path / "log"),
        "AMD_FAKE_HOT": str(tmp_path / "hot"),
    }


def run(environ, program, *arguments):
    command = [sys.executable, "-c", program, *arguments]
    found = subprocess.run(command, env=environ, capture_output=True, text=True, check=True)
    return json.loads(found.stdout)


def test_devices_are_known_with_their_state(environ):
    first, second = run(environ, READ_ALL)
    assert first == {
        "uuid": "GPU-00000000deadbeef",
        "vendor": "amd",
        "token": "0",
        "index": 0,
        "name": "MI300X",
        "pci": "0000:0c:00.0",
        "arch": "gfx942",
        "memory_bytes": 192 << 30,
        "driver": "6.8.5",
        "parent": None,
        "clock_mhz": 2100,
        "clock_max_mhz": 2100,
        "memory_clock_mhz": 1300,
        "temperature_c": 66,
        "power_w": 550,
        "utilisation_share": 0.03,
        "memory_used_bytes": 300 << 20,
        "throttle_reasons": ["ppt_pwr"],
        "settings": {
            "power_limit": "750 W",
            "compute_partition": "SPX",
            "memory_partition": "NPS1",
        },
    }
    assert second["uuid"] == "AMD-0000:22:00.0"
    assert [each["pid"] for each in second["processes"]] == [77]


def test_heat_during_a_job_is_read_and_a_locked_clock_is_released(environ, tmp_path):
    program = """
import json, sys
from longpole.bench import Job, Policy, Runner
with Runner([0], results=sys.argv[1], policy=Policy(lock_clock_mhz=1900)) as runner:
    (record,) = runner.run([Job(["sh", "-c", sys.argv[2]], format="none")])
print(json.dumps(record.to_dict()))
"""
    heats = f"sleep 1; touch {tmp_path}/hot; sleep 0.5; rm {tmp_path}/hot; sleep 1"
    record = run(environ, program, str(tmp_path / "r.jsonl"), heats)
    during = record["environment"]["during"]
    assert during["throttle_reasons"] == ["ppt_pwr", "socket_thrm"]
    assert (during["clock_min_mhz"], during["clock_mhz"]) == (900, 2100)
    assert during["throttled_share"] > 0.02
    log = (tmp_path / "log").read_text().splitlines()
    assert log == ["lock first 1900", "release first auto"]


def test_a_binding_without_its_library_is_no_device(environ, tmp_path):
    text = 'print("Unable to find libamd_smi.so")\nraise KeyError("libamd_smi.so")\n'
    (tmp_path / "amdsmi" / "__init__.py").write_text(text)
    (only,) = run(environ, READ_ALL)
    assert only["vendor"] != "amd"


def test_a_search_for_the_least_energy_reads_the_power_in_both_stages(environ, tmp_path):
    (tmp_path / "task.toml").write_text(TASK)
    results = tmp_path / "out.jsonl"
    command = [sys.executable, "-m", "longpole", "tune", str(tmp_path / "task.toml"), "--json"]
    command += ["--devices", "0", "--runs", "1", "--budget", "0.5", "-o", str(results)]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)["data"]
    assert found["winner"]["label"] == "seconds=0.15"
    seconds = {
        record["key"]: record["seconds"]
        for record in map(json.loads, results.read_text().splitlines())
    }
    for each in found["candidates"]:
        assert each["value"] == pytest.approx(550 * seconds[each["label"]])  # watts as read
    assert found["winner"]["n_runs"] >= 7
