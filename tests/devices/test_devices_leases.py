"""Who may use a device, and when."""

import os
import subprocess
import sys
import threading
import time
from itertools import pairwise

import pytest

from longpole.devices import Lease, lock_folder
from longpole.errors import DeviceError
from processes import started

HOLD = """
import sys, time
from pathlib import Path
from longpole.devices import Lease
lease = Lease("GPU-1", Path(sys.argv[1]))
lease.acquire()
print("held", flush=True)
time.sleep(60)
"""


def soon():
    """Return up after a moment."""
    deadline = time.monotonic() + 0.1
    return lambda: time.monotonic() > deadline


def test_a_device_has_one_holder(tmp_path):
    with Lease("GPU-1", tmp_path) as first, Lease("GPU-1", tmp_path) as second:
        assert first.acquire()
        assert not second.acquire(soon())
        assert second.current_holder().startswith(f"process {os.getpid()} (")
        first.release()
        assert second.current_holder() is None
        assert second.acquire()


def test_devices_do_not_wait_for_one_another(tmp_path):
    with Lease("GPU-1", tmp_path) as first, Lease("GPU-2", tmp_path) as second:
        assert first.acquire()
        assert second.acquire(soon())


def test_a_holder_that_is_killed_leaves_no_lock(tmp_path):
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    with (
        started(command, stdout=subprocess.PIPE) as process,
        Lease("GPU-1", tmp_path) as lease,
    ):
        assert process.stdout.readline() == b"held\n"
        assert not lease.acquire(soon())
        process.kill()
        process.wait()
        assert lease.acquire(soon())


@pytest.mark.real_time
def test_two_that_want_a_device_all_the_time_alternate(tmp_path):
    turns = []

    def work(name):
        with Lease("GPU-1", tmp_path) as lease:
            for _ in range(10):
                lease.acquire()
                turns.append(name)
                time.sleep(0.02)
                lease.release()

    threads = [threading.Thread(target=work, args=(name,)) for name in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    both_there = turns[1:-1]
    changes = sum(left != right for left, right in pairwise(both_there))
    assert changes > len(both_there) / 2


@pytest.mark.parametrize("make", [os.symlink, os.link])
def test_a_link_is_not_followed(tmp_path, make):
    victim = tmp_path / "victim"
    victim.write_text("precious")
    make(victim, tmp_path / "GPU-1.lock")
    with pytest.raises(DeviceError, match="is not used"):
        Lease("GPU-1", tmp_path)
    assert victim.read_text() == "precious"


def test_a_uuid_never_becomes_a_path(tmp_path):
    with Lease("../../etc/passwd", tmp_path):
        assert [path.name for path in tmp_path.iterdir() if path.suffix == ".lock"]


def test_files_can_be_used_by_all_users(tmp_path):
    with Lease("GPU-1", tmp_path):
        assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o666}


def test_the_folder_can_be_chosen(tmp_path, monkeypatch):
    monkeypatch.setenv("LONGPOLE_LOCK_DIR", str(tmp_path / "locks"))
    assert lock_folder() == tmp_path / "locks"


def test_instances_of_a_device_are_leased_beside_each_other_and_keep_out_the_whole(tmp_path):
    whole = Lease("GPU-1", tmp_path)
    first = Lease("MIG-1", tmp_path, parent="GPU-1")
    second = Lease("MIG-2", tmp_path, parent="GPU-1")
    rival = Lease("MIG-1", tmp_path, parent="GPU-1")
    with whole, first, second, rival:
        assert first.acquire()
        assert second.acquire(lambda: True)
        assert not rival.acquire(lambda: True)
        assert not whole.acquire(lambda: True)
        first.release()
        assert not whole.acquire(lambda: True)
        second.release()
        assert whole.acquire(lambda: True)
        assert not first.acquire(lambda: True)
        whole.release()
        assert rival.acquire(lambda: True)
        assert len(rival.filenos()) == 2
