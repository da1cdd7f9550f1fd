"""Several threads that read one trace give what one thread gives."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import os
import signal
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING

import pytest
from polars.testing import assert_frame_equal

import longpole
from longpole.cli.answer import exit_codes
from longpole.cli.program import run
from processes import started

if TYPE_CHECKING:
    from pathlib import Path

N_EVENTS = 60_000  # enough bytes to be worth a second thread
MOST_BYTES = 100_000_000


@pytest.fixture(scope="module")
def large_trace() -> bytes:
    events = [event(number) for number in range(N_EVENTS)]
    return json.dumps({"traceEvents": events, "distributedInfo": {"rank": 3}}).encode()


def event(number: int) -> dict[str, object]:
    """Return launches, kernels, arrows and a begin with its end in turns."""
    start = {"ts": number * 3, "pid": 1, "tid": 1 + number % 2}
    call = {"correlation": number, "External id": number // 3}
    match number % 5:
        case 0:
            return {"ph": "X", "cat": "cuda_runtime", "name": "go", "dur": 2, **start, "args": call}
        case 1:
            args = {**call, "stream": 7, "device": 0, "est. achieved occupancy %": number / 8}
            kernel = {"ph": "X", "cat": "kernel", "name": f"gemm_{number % 97}", "dur": 2}
            return {**kernel, **start, "args": args}
        case 2:
            return {"ph": "s", "id": number, "cat": "ac2g", "name": "ac2g", **start}
        case 3:
            return {"ph": "B", "name": f"step {number}", **start, "tid": 9}
        case _:
            return {"ph": "E", **start, "tid": 9}


def assert_same(one: longpole.Trace, other: longpole.Trace) -> None:
    frames = [lambda trace: trace.events, lambda trace: trace.flows]
    frames += [lambda trace: trace.args("kernel"), lambda trace: trace.diagnostics]
    for frame in frames:
        assert_frame_equal(frame(one), frame(other))
    assert (one.rank, one.n_events, one.status) == (other.rank, other.n_events, other.status)


@pytest.mark.parametrize("threads", [None, 2, 5])
@pytest.mark.parametrize("packed", [False, True])
def test_threads_change_nothing(large_trace, threads, packed):
    source = gzip.compress(large_trace, 1) if packed else large_trace
    one = longpole.read_trace(source, threads=1)
    assert one.n_events == N_EVENTS
    assert_same(one, longpole.read_trace(source, threads=threads))


def test_threads_change_nothing_of_a_damaged_file_that_comes_through_a_pipe(large_trace):
    middle = len(large_trace) // 2
    damaged = large_trace[:middle] + b'\0"{]' + large_trace[middle:-90]
    one = longpole.read_trace(damaged, threads=1)
    assert one.status == "recovered"
    assert_same(one, longpole.read_trace(io.BytesIO(damaged), threads=3))


def test_what_progress_raises_ends_all_threads(large_trace):
    def stop(_done: int) -> None:
        raise KeyboardInterrupt

    class Slow(io.BytesIO):
        """Gives a little at a time, so that reading lasts longer than a heartbeat."""

        def read(self, size: int | None = -1) -> bytes:
            time.sleep(0.002)
            return super().read(min(size or 0, 1 << 12))

    with pytest.raises(KeyboardInterrupt):
        longpole.read_trace(Slow(large_trace * 8), threads=2, progress=stop)


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_ctrl_c_ends_a_program_whose_threads_read(large_trace, threads):
    head, rest = large_trace.split(b"[", 1)
    events = rest[: rest.rindex(b"]")] + b","
    command = [sys.executable, "-m", "longpole", "summary", "-"]
    environment = {**os.environ, "LONGPOLE_THREADS": str(threads)}
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with started(command, env=environment, **pipes) as process:
        is_read = threading.Event()

        def feed() -> None:
            """Write as many events as keep all threads at work, and leave the pipe open."""
            with contextlib.suppress(BrokenPipeError):
                process.stdin.write(head + b"[")
                for number in range(MOST_BYTES // len(events)):
                    process.stdin.write(events)
                    if number == 1:
                        is_read.set()

        feeder = threading.Thread(target=feed)
        feeder.start()
        assert is_read.wait(120)
        process.send_signal(signal.SIGINT)
        assert process.wait(120) == exit_codes.INTERRUPTED
        feeder.join(120)
        assert process.stderr.read() == b""


def test_a_number_of_threads_is_at_least_one():
    with pytest.raises(ValueError, match="threads is from 1 to 1024, not 0"):
        longpole.read_trace(b"[]", threads=0)


def test_the_environment_sets_the_number_of_threads(
    tmp_path: Path, large_trace, capsys, monkeypatch
):
    path = tmp_path / "trace.json"
    path.write_bytes(large_trace)
    answers = []
    for threads in ("1", "3"):
        monkeypatch.setenv("LONGPOLE_THREADS", threads)
        run(["summary", str(path), "--json"])
        answers.append(capsys.readouterr().out)
    assert answers[0] == answers[1]
    assert '"schema"' in answers[0]
    for wrong in ("0", "1025", "many", "9" * 30):
        monkeypatch.setenv("LONGPOLE_THREADS", wrong)
        assert run(["summary", str(path)]) == exit_codes.USAGE
        assert capsys.readouterr().err.startswith(
            f"error: LONGPOLE_THREADS is a number from 1 to 1024, not {wrong!r} [usage]\n"
        )
