"""Ranks read by Ray: the same answer as with threads, and what became of a worker that died."""

from __future__ import annotations

import os
import signal
import stat
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from polars.testing import assert_frame_equal
from ray_stand_ins import PicklingRay, StuckRay

import longpole
from longpole import Scale, read_traces
from longpole.devices.clusters import started_ray
from longpole.errors import RanksError
from longpole.jobs.engines import Lost, run
from oracles.simulator.ranks import write_ranks
from oracles.simulator.ranks_programs import random_ranks

# On a busy machine, Ray needs a minute and more for new workers.
WAIT_S = 240
pytestmark = pytest.mark.timeout(900)
needs_proc = pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="finds readers in /proc")


@pytest.fixture
def folder(tmp_path):
    run = random_ranks(3, n_ranks=4, pattern="data", n_stragglers=1, n_steps=2)
    write_ranks(run.job, run.job.times_ns(), run.clocks, tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def ray():
    import ray

    # What Ray starts ends with the thread that started it: not with that of a test.
    started_ray(RanksError, 4)
    yield ray
    ray.shutdown()


def assert_same(one, other):
    for table in ("ranks", "calls", "members", "clocks"):
        assert_frame_equal(getattr(one, table), getattr(other, table))
    assert_frame_equal(one.path(), other.path())
    assert one.late_ranks() == other.late_ranks()
    change = {1: [Scale(by=0.5, kind="kernel")]}
    assert one.what_if(change) == other.what_if(change)


class Piped:
    """The last rank of a folder as a pipe: whoever reads it waits, and can be killed."""

    def __init__(self, folder):
        self.path = folder / "rank3.json"
        self.content = self.path.read_bytes()
        self.path.unlink()
        os.mkfifo(self.path)

    def reader(self):
        """Wait for a reader; give its process and the end that feeds it."""
        until = time.monotonic() + WAIT_S
        while time.monotonic() < until:
            try:
                feed = os.open(self.path, os.O_WRONLY | os.O_NONBLOCK)
            except OSError:
                time.sleep(0.02)
                continue
            while time.monotonic() < until:
                process = self.process()
                if process is not None:
                    return process, feed
                time.sleep(0.02)
            os.close(feed)
        pytest.fail("nobody reads the rank")

    def process(self):
        for link in Path("/proc").glob("[0-9]*/fd/*"):
            try:
                is_it = link.readlink() == self.path and int(link.parts[2]) != os.getpid()
            except OSError:
                continue
            if is_it:
                return int(link.parts[2])
        return None

    def kill_reader(self):
        process, feed = self.reader()
        os.kill(process, signal.SIGKILL)
        until = time.monotonic() + WAIT_S
        while self.process() == process and time.monotonic() < until:
            time.sleep(0.01)
        os.close(feed)

    def feed(self):
        """Pass the trace to the reader, and leave it as a file for later readers."""
        _, feed = self.reader()
        os.set_blocking(feed, True)
        with os.fdopen(feed, "wb") as file:
            file.write(self.content)
        whole = self.path.with_suffix(".whole")
        whole.write_bytes(self.content)
        whole.replace(self.path)

    @contextmanager
    def read(self, files, **how):
        """Read in a thread, so that a failing test leaves no writer waiting for the pipe."""
        with ThreadPoolExecutor(1) as pool:
            reading = pool.submit(read_traces, files, **how)
            try:
                yield reading
            finally:
                while not reading.done():
                    if stat.S_ISFIFO(self.path.stat().st_mode):
                        os.close(os.open(self.path, os.O_RDWR))
                    time.sleep(0.1)


def assert_survives_one_kill(folder, workers):
    expected = read_traces(folder)
    files = sorted(folder.iterdir())
    piped = Piped(folder)
    with piped.read(files, engine="ray", workers=workers) as reading:
        piped.kill_reader()
        piped.feed()
        ranks = reading.result(WAIT_S)
    assert_same(expected, ranks)


@needs_proc
@pytest.mark.needs("ray")
def test_a_rank_whose_worker_dies_each_time_is_named_and_the_rest_is_answered(folder, ray, said):
    assert ray
    files = sorted(folder.iterdir())
    piped = Piped(folder)
    with piped.read(files, engine="ray", workers=4) as reading:
        for _ in range(3):
            piped.kill_reader()
        ranks = reading.result(WAIT_S)
    assert ranks.rank_numbers == (0, 1, 2)
    [finding] = [it for it in ranks.findings if it.kind == "unreadable rank"]
    assert "rank3.json" in finding.message
    said.within(finding.message)


@needs_proc
@pytest.mark.needs("ray")
def test_ray_gives_the_same_answer_though_one_of_four_workers_is_killed(folder, ray):
    assert ray
    assert_survives_one_kill(folder, workers=4)


@needs_proc
@pytest.mark.needs("ray")
def test_a_rank_that_ray_does_not_finish_in_time_is_named_and_the_rest_is_answered(
    folder, ray, said
):
    assert ray
    files = sorted(folder.iterdir())
    assert_same(read_traces(files), read_traces(files, engine="ray", workers=4))
    piped = Piped(folder)
    with piped.read(files, engine="ray", workers=4, timeout_s=15) as reading:
        _, feed = piped.reader()
        ranks = reading.result(WAIT_S)
        os.close(feed)
    assert ranks.rank_numbers == (0, 1, 2)
    [finding] = [it for it in ranks.findings if it.kind == "unreadable rank"]
    assert "rank3.json" in finding.message
    said.within(finding.message)
    assert_same(read_traces(files[:3]), ranks)


def test_workers_that_get_copies_give_the_same_answer_as_threads(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", PicklingRay())
    assert_same(read_traces(folder), read_traces(folder, engine="ray", workers=2))


@pytest.mark.parametrize(
    ("stuck", "left"), [((2,), {2}), ((1, 4), {1, 4}), ((0, 1, 2), {0, 1, 2, 3, 4, 5})]
)
def test_what_ray_never_finishes_does_not_hold_up_what_it_does(monkeypatch, stuck, left):
    ray = StuckRay(*stuck)
    monkeypatch.setitem(sys.modules, "ray", ray)
    found = run("ray", lambda item: item * 10, range(6), workers=3, timeout_s=7)
    assert {at for at, it in enumerate(found) if isinstance(it, Lost)} == left
    assert {it.reason for it in found if isinstance(it, Lost)} == {
        "the Ray cluster finished no rank for 7 s"
    }
    assert all(it == at * 10 for at, it in enumerate(found) if at not in left)
    assert sorted(ray.cancelled) == sorted(stuck)


@pytest.mark.parametrize("n_failures", [1, 2])
def test_ray_is_started_a_second_time_and_then_given_up(monkeypatch, n_failures):
    ray = StuckRay()
    started = []

    def init(**_):
        started.append(1)
        if len(started) <= n_failures:
            message = "The current node timed out during startup"
            raise Exception(message)  # noqa: TRY002 - as Ray does

    ray.is_initialized, ray.init, ray.shutdown = lambda: False, init, lambda: None
    monkeypatch.setitem(sys.modules, "ray", ray)
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    if n_failures == 1:
        assert run("ray", str, [3], workers=1) == ["3"]
    else:
        with pytest.raises(RanksError, match=r"did not start.*timed out"):
            run("ray", str, [3], workers=1)
    assert len(started) == 2


@pytest.mark.needs("fsspec")
def test_addresses_are_opened_by_fsspec(folder):
    there = read_traces(f"file://{folder}")
    assert_frame_equal(read_traces(folder).calls, there.calls)
    assert_frame_equal(read_traces(folder).path(), there.path())
    chosen = read_traces(f"file://{folder}/rank[01].json")
    assert chosen.rank_numbers == (0, 1)


def test_an_engine_that_is_not_there_is_an_error(folder):
    with pytest.raises(ValueError, match="no engine"):
        read_traces(folder, engine="abacus")


def test_a_reduced_rank_is_the_same_in_another_process(folder):
    import pickle

    reduced = read_traces(folder)._reduced(0)
    again = pickle.loads(pickle.dumps(reduced))  # noqa: S301 - what was just made
    assert (again.rank, again.n_bytes) == (reduced.rank, reduced.n_bytes)
    with pytest.raises(ValueError, match="not a rank"):
        longpole._core.unpack_rank(b"something else")
