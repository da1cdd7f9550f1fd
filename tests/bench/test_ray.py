"""A runner on several nodes: the same records, whoever dies."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from longpole.bench import Job, Policy, Runner, read_results
from longpole.bench.run.cluster import Cluster, Here, _places
from longpole.devices import Device
from longpole.errors import DeviceError, MissingDependencyError
from processes import started

# On a busy machine, Ray needs a minute and more for new workers.
pytestmark = pytest.mark.timeout(600)
needs_ray = pytest.mark.needs("ray")
WAIT_S = 240
QUICK = Policy(launch_delay_s=0.1)

DRIVER = """
import sys
from pathlib import Path
from longpole.bench import Job, Policy, Runner

results, log, locks = sys.argv[1:]
jobs = [
    Job(["sh", "-c", f"echo {n} >> {log}; sleep 0.5; echo OP:a,TIME:{n + 1},WS:0"], key=f"job{n}")
    for n in range(12)
]
with Runner(
    ["fake:1"], engine="ray", results=results, resume=Path(results).exists(),
    lock_folder=Path(locks), policy=Policy(launch_delay_s=0.1),
) as runner:
    runner.run(jobs)
"""


@pytest.fixture(scope="module")
def cluster():
    """Two nodes, each with a GPU that is not there."""
    import ray
    from ray.cluster_utils import Cluster as Nodes

    nodes = Nodes()
    for _ in range(2):
        nodes.add_node(num_cpus=1, num_gpus=1, include_dashboard=False)
    ray.init(address=nodes.address, log_to_driver=False, logging_level="ERROR")
    yield nodes
    ray.shutdown()
    nodes.shutdown()


def jobs_that_log(n_jobs, log):
    return [
        Job(
            ["sh", "-c", f"echo {n} >> {log}; sleep 0.3; echo OP:a,TIME:{n + 1},WS:0"],
            key=f"job{n}",
        )
        for n in range(n_jobs)
    ]


@needs_ray
def test_every_node_works_and_one_file_holds_the_records(cluster, tmp_path):
    assert cluster
    results = tmp_path / "results.jsonl"
    jobs = jobs_that_log(8, tmp_path / "log")
    with Runner(["fake:1"], engine="ray", results=results, lock_folder=tmp_path) as runner:
        records = runner.run(jobs)
    assert [record.key for record in records] == [job.key for job in jobs]
    assert [record.best.time_ns for record in records] == [(n + 1) * 10**6 for n in range(8)]
    assert len({record.device for record in records}) == 2
    assert {record.id for record in read_results(results).records} == {job.key for job in jobs}


@needs_ray
def test_a_node_and_an_actor_that_die_lose_nothing(cluster, tmp_path):
    node = cluster.add_node(num_cpus=1, num_gpus=1, include_dashboard=False)
    results, n_done = tmp_path / "results.jsonl", 0

    def kill_as_it_goes(_):
        nonlocal n_done
        n_done += 1
        if n_done == 5:
            cluster.remove_node(node, allow_graceful=False)
        if n_done == 10:
            os.kill(actors()[0], signal.SIGKILL)

    with Runner(
        ["fake:1"], engine="ray", results=results, lock_folder=tmp_path, policy=QUICK
    ) as runner:
        records = runner.run(jobs_that_log(24, tmp_path / "log"), kill_as_it_goes)
        assert len(runner.quarantined) == 1
    assert {record.outcome for record in records} == {"ok"}
    written = read_results(results).records
    final = Counter(record.id for record in written if record.is_final)
    assert final == dict.fromkeys((f"job{n}" for n in range(24)), 1)
    lost = [record for record in written if not record.is_final]
    assert {record.outcome for record in lost} == {"device_error", "guard_lost"}
    ran = Counter((tmp_path / "log").read_text().split())
    assert sum(ran.values()) <= 24 + len(lost)


def actors():
    """Return the processes of the actors; Ray names them after their class."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if b"ray::DeviceActor" in (folder / "cmdline").read_bytes():
                found.append(int(folder.name))
        except OSError:
            continue
    return found


@needs_ray
def test_a_driver_that_is_killed_repeats_nothing_that_is_recorded(cluster, tmp_path):
    results, log = tmp_path / "results.jsonl", tmp_path / "log"
    command = [sys.executable, "-c", DRIVER, str(results), str(log), str(tmp_path)]
    env = {**os.environ, "RAY_ADDRESS": cluster.address}
    with started(command, env=env):
        wait_for(lambda: results.exists() and len(read_results(results).records) >= 4)
    recorded = {record.id.removeprefix("job") for record in read_results(results).records}
    subprocess.run(command, env=env, check=True, timeout=WAIT_S)
    written = read_results(results).records
    assert Counter(record.id for record in written) == dict.fromkeys(
        (f"job{n}" for n in range(12)), 1
    )
    ran = Counter(log.read_text().split())
    assert {ran[name] for name in recorded} == {1}
    assert sorted(ran) == sorted(map(str, range(12)))


def wait_for(condition):
    deadline = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@needs_ray
def test_limits_hold_and_a_cancelled_job_ends(cluster, tmp_path):
    assert cluster
    with Runner(["fake:1"], engine="ray", lock_folder=tmp_path) as runner:
        (late,) = runner.run([Job("sleep 60", format="none", timeout_s=0.3)])
        assert late.outcome == "timeout"
        future = runner.submit(Job("sleep 60", key="long", format="none"))
        wait_for(future.running)
        runner.cancel()
        assert future.result(timeout=WAIT_S).outcome == "cancelled"


def test_devices_that_are_called_alike_on_two_nodes_are_told_apart():
    boards = [Device(uuid, "amd", "0", 0, "MI") for uuid in ("AMD-0000:22:00.0", "GPU-0f")]
    nodes = [{"NodeID": f"{name * 20}", "Resources": {"GPU": 2}} for name in "ab"]
    found = [Here(boards, set()), Here([boards[0]], set())]
    places = list(_places(nodes, found, ["all"]))
    assert [place.device.uuid for place in places] == [
        *("AMD-0000:22:00.0-aaaaaaaaaaaa", "GPU-0f", "AMD-0000:22:00.0-bbbbbbbbbbbb")
    ]
    assert [place.name for place in places] == [  # what the node itself calls them
        *("AMD-0000:22:00.0", "GPU-0f", "AMD-0000:22:00.0")
    ]


@needs_ray
def test_a_node_that_dies_while_it_is_asked_has_no_devices(cluster):
    node = cluster.add_node(num_cpus=1, num_gpus=1, include_dashboard=False)
    assert len(Cluster.find(["fake:1"]).places) == 3
    cluster.remove_node(node, allow_graceful=False)
    assert len(Cluster.find(["fake:1"]).places) == 2


@needs_ray
def test_a_device_that_no_node_has_is_named(cluster):
    assert cluster
    with pytest.raises(DeviceError, match="no node of the Ray cluster has GPU-nowhere"):
        Runner(["fake:1", "GPU-nowhere"], engine="ray")
    with pytest.raises(DeviceError, match="has a GPU; nodes: "):
        Runner(engine="ray")


def test_without_ray_it_is_said_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'longpole\[ray\]'"):
        Runner(["fake:1"], engine="ray")


def test_there_are_two_engines():
    with pytest.raises(ValueError, match="no engine 'slurm'; there are local, ray"):
        Runner(["cpu"], engine="slurm")
