"""The guard, from the runner's end."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from longpole import _core
from longpole.bench import Outcome
from longpole.bench.run import guard_process
from longpole.bench.run.guard import Ending, Guard, GuardLostError, Order
from longpole.bench.time.workers import outcome_of


@pytest.fixture
def guard():
    guard = Guard()
    yield guard
    guard.close()


def shell(script, limit_s=10.0, grace_s=0.3):
    return Order(["/bin/sh", "-c", script], dict(os.environ), None, limit_s, grace_s, 0.2)


def run(guard, order):
    output = {"stdout": b"", "stderr": b""}

    def take(stream, chunk):
        output[stream] += chunk

    return guard.run(order, take), output


def is_alive(pid):
    try:
        return Path(f"/proc/{int(pid)}/stat").read_text().rpartition(") ")[2][0] != "Z"
    except FileNotFoundError:
        return False


def test_a_job_is_run_as_ordered(guard, tmp_path):
    order = Order(
        ["/bin/sh", "-c", 'pwd; echo "$A" "$1" >&2; exit 3', "sh", "\udcff x"],
        {"A": "b=c"},
        str(tmp_path),
        10.0,
        0.3,
        0.2,
    )
    ending, output = run(guard, order)
    assert (ending.exit_code, ending.signal, ending.stopped) == (3, None, None)
    assert output == {"stdout": f"{tmp_path}\n".encode(), "stderr": b"b=c \xff x\n"}


def test_a_job_finds_signals_as_a_program_expects_them(guard):
    _, output = run(guard, shell("grep -E 'Sig(Blk|Ign)' /proc/self/status"))
    without_those_of_the_c_library = (1 << 31) - 1
    lines = output["stdout"].splitlines()
    masks = [int(line.split()[1], 16) & without_those_of_the_c_library for line in lines]
    assert masks == [0, 0]


def test_a_job_inherits_no_descriptors(guard):
    _, output = run(guard, shell("ls /proc/self/fd"))
    assert output["stdout"].split() == [b"0", b"1", b"2", b"3"]  # the last is that of `ls`


def test_a_program_that_cannot_be_started_is_refused(guard):
    order = Order(["/nonexistent"], {}, None, 1.0, 0.1, 0.1)
    assert run(guard, order)[0] == Ending(refused=(2, "No such file or directory (os error 2)"))


def test_a_job_can_be_cancelled_from_another_thread(guard):
    timer = threading.Timer(0.2, guard.cancel)
    timer.start()
    ending, _ = run(guard, shell("sleep 30"))
    timer.join()
    assert (ending.stopped, ending.signal) == ("cancel", signal.SIGTERM)


def test_a_cancel_between_jobs_hits_none(guard):
    run(guard, shell("true"))
    guard.cancel()
    assert run(guard, shell("sleep 0.1"))[0].stopped is None


def test_a_cancel_before_the_order_is_not_lost(guard):
    ending = guard.run(shell("sleep 30"), lambda *_: None, is_cancelled=lambda: True)
    assert ending.stopped == "cancel"


def test_signals_to_the_guard_change_nothing(guard):
    said = []

    def disturb(_stream, chunk):
        said.append(chunk)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
            os.kill(guard._process.pid, number)

    ending = guard.run(shell("echo started; sleep 0.2; echo done"), disturb)
    assert (ending.exit_code, b"".join(said)) == (0, b"started\ndone\n")


def test_a_guard_that_dies_is_noticed_and_its_job_ended(guard):
    pids = []

    def take(_stream, chunk):
        pids.append(int(chunk))
        os.kill(guard._process.pid, signal.SIGKILL)

    with pytest.raises(GuardLostError, match="has died"):
        guard.run(shell("echo $$; sleep 1000"), take)
    time.sleep(0.1)
    assert not is_alive(pids[0])


def test_closing_the_guard_ends_what_runs(guard):
    pids = []

    def take(_stream, chunk):
        pids.append(int(chunk))
        threading.Thread(target=guard.close).start()

    with pytest.raises(GuardLostError):
        guard.run(shell("trap '' TERM; echo $$; while :; do sleep 100; done"), take)
    assert not is_alive(pids[0])


def test_a_guard_may_be_closed_just_before_its_reader_reads(guard):
    def take(_stream, _chunk):
        guard.close()

    with pytest.raises(GuardLostError, match="has died"):
        guard.run(shell("echo started; sleep 1000"), take)


def test_a_guard_may_be_closed_while_its_reader_is_about_to_read(guard, monkeypatch):
    closing = []
    read = os.read

    def read_late(descriptor, size):
        if closing:
            guard._process.wait()
            time.sleep(0.1)  # time enough to close the descriptor under this read
        return read(descriptor, size)

    def take(_stream, _chunk):
        closing.append(threading.Thread(target=guard.close))
        closing[0].start()

    monkeypatch.setattr(os, "read", read_late)
    with pytest.raises(GuardLostError, match="has died"):
        guard.run(shell("echo started; sleep 1000"), take)
    closing[0].join()
    assert guard._process.stdout.closed


def test_an_interrupted_runner_leaves_no_traceback_of_its_guard(tmp_path):
    removed = json.dumps({"path": str(tmp_path / "removed")})
    command = [sys.executable, guard_process.__file__, _core.__file__, removed]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_limit_of_a_job_does_not_count_its_grace(guard):
    ending, _ = run(guard, shell("trap '' TERM; sleep 60", limit_s=0.25, grace_s=0.5))
    assert (ending.stopped, ending.forced, ending.limit_s) == ("limit", True, 0.25)
    assert ending.seconds > 0.7
    assert outcome_of(ending) == (Outcome.TIMEOUT, "timed out after 0.25 s")
    cancelled = Ending(stopped="cancel", seconds=0.1)
    assert outcome_of(cancelled) == (Outcome.CANCELLED, "cancelled")
