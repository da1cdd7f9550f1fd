"""The runner's side of a guard: sends orders, receives output and exit states.

`rust/longpole-guard` describes the other side, and why there is one.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import struct
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Final, Literal

from longpole.bench.run.sampler import release_clock
from longpole.errors import DeviceError, LongpoleError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from longpole.bench.run.conditions import Sampling

Stream = Literal["stdout", "stderr"]

HEADER: Final = struct.Struct("<cI")
READ_BYTES: Final = 1 << 16
STREAMS: Final[Mapping[bytes, Stream]] = {b"o": "stdout", b"e": "stderr"}

# The guard gives up on a process a minute after SIGKILL; a guard that is silent for longer than
# that after the limit is broken itself.
SILENCE_S: Final = 90.0
FAREWELL_S: Final = 5.0


class GuardLostError(LongpoleError):
    """The guard of a device has died or does not answer."""


@dataclass(frozen=True, slots=True)
class Order:
    """What a guard should run. `env` is the whole environment of the job."""

    argv: Sequence[str]
    env: Mapping[str, str]
    folder: str | None
    limit_s: float | None
    grace_s: float
    drain_s: float


@dataclass(frozen=True, slots=True)
class Ending:
    """How a job ended.

    `refused` is set if the system did not start it: the error number and its text. `stopped`: it
    was told to end. `forced`: that required SIGKILL. `limit_s`: the limit that ended it; `seconds`
    also counts the time between SIGTERM and its end.
    """

    exit_code: int | None = None
    signal: int | None = None
    stopped: Literal["limit", "cancel"] | None = None
    forced: bool = False
    limit_s: float | None = None
    seconds: float | None = None
    strays: tuple[str, ...] = ()
    unkillable: tuple[str, ...] = ()
    refused: tuple[int, str] | None = None


class Guard:
    """A guard process, which runs one job at a time.

    Parameters
    ----------
    leases
        File descriptors of the leases that the guard shares.
    sampling
        What to read while jobs run; nothing by default. The file of readings is removed when the
        guard ends.

    Raises
    ------
    GuardLostError
        The system does not start the guard.
    DeviceError
        The clock cannot be locked.
    """

    def __init__(self, leases: Sequence[int] = (), sampling: Sampling | None = None) -> None:
        self._sampling = sampling
        text = "" if sampling is None else sampling.text
        try:
            self._process = subprocess.Popen(  # noqa: S603
                [*_guard_command(), text, *map(str, leases)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                bufsize=0,
                pass_fds=leases,
                start_new_session=True,  # Ctrl-C on the terminal is meant for the runner alone
            )
        except OSError as error:
            message = f"the guard of the device cannot be started: {error}"
            raise GuardLostError(message) from error
        self._mutex = Lock()
        self._reading = Lock()
        self._number = 0
        self._pending = b""
        self._job_pid: int | None = None
        if sampling is not None:
            self._wait_for_lock(sampling)

    def _wait_for_lock(self, sampling: Sampling) -> None:
        try:
            sampling.wait_for_lock()
        except DeviceError:
            self.close()
            raise

    def run(
        self,
        order: Order,
        take: Callable[[Stream, bytes], None],
        is_cancelled: Callable[[], bool] = lambda: False,
    ) -> Ending:
        """Run a job to its end, and pass on its output.

        Raises
        ------
        GuardLostError
            The guard is broken. SIGKILL has been sent to the rest of the job.
        """
        self._number += 1
        self._send(b"r", _order_fields(self._number, order))
        if is_cancelled():
            self.cancel()
        limit_s = None if order.limit_s is None else order.limit_s + order.grace_s + SILENCE_S
        try:
            ending = self._follow(take, limit_s)
        except GuardLostError:
            self.kill()
            raise
        return replace(ending, limit_s=order.limit_s) if ending.stopped == "limit" else ending

    def cancel(self) -> None:
        """End the current job, if any. Its end is reported as usual."""
        with contextlib.suppress(GuardLostError):
            self._send(b"c", [str(self._number).encode()])

    def close(self) -> None:
        """Release the guard, and end everything that still runs."""
        with self._mutex, contextlib.suppress(OSError):
            if self._process.stdin:
                self._process.stdin.close()
        try:
            self._process.wait(FAREWELL_S)
        except subprocess.TimeoutExpired:
            return  # it waits for a process that cannot be killed
        if self._process.stdout:
            with self._reading:  # another thread may be about to read and will see the end soon
                self._process.stdout.close()
        if self._sampling is not None and self._process.returncode != 0:
            self._undo(self._sampling)

    def _undo(self, sampling: Sampling) -> None:
        """Undo what the guard would have undone at its end, if it was killed before."""
        if sampling.lock_mhz is not None:
            release_clock(sampling.text)
        sampling.remove()

    def kill(self) -> None:
        """Kill a broken guard and the process group of its job."""
        self._process.kill()
        if self._job_pid is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._job_pid, signal.SIGKILL)
        self.close()

    def _follow(self, take: Callable[[Stream, bytes], None], limit_s: float | None) -> Ending:
        for kind, body in self._frames(limit_s):
            if kind in STREAMS:
                take(STREAMS[kind], body)
            elif kind == b"s":
                self._job_pid = int(body[:-1])
            else:
                self._job_pid = None
                return _refusal(body) if kind == b"f" else _ending(body)
        message = "the guard of the device has died"
        raise GuardLostError(message)

    def _frames(self, limit_s: float | None) -> Iterator[tuple[bytes, bytes]]:
        deadline = None if limit_s is None else time.monotonic() + limit_s
        unread, start = self._pending, 0
        while True:
            while len(unread) - start >= HEADER.size:
                kind, length = HEADER.unpack_from(unread, start)
                end = start + HEADER.size + length
                if end > len(unread):
                    break
                self._pending = b""
                yield kind, unread[start + HEADER.size : end]
                start = end
            chunk = self._read(deadline)
            if not chunk:
                return
            unread, start = unread[start:] + chunk, 0

    def _read(self, deadline: float | None) -> bytes:
        with self._reading:
            if self._process.stdout is None or self._process.stdout.closed:
                return b""
            descriptor = self._process.stdout.fileno()
            if deadline is not None:
                poll = select.poll()
                poll.register(descriptor, select.POLLIN)
                if not poll.poll(max(0.0, deadline - time.monotonic()) * 1000):
                    message = "the guard of the device does not answer"
                    raise GuardLostError(message)
            return os.read(descriptor, READ_BYTES)

    def _send(self, kind: bytes, fields: Sequence[bytes]) -> None:
        body = b"".join(field + b"\0" for field in fields)
        frame = memoryview(HEADER.pack(kind, len(body)) + body)
        try:
            with self._mutex:
                while frame and self._process.stdin:
                    frame = frame[self._process.stdin.write(frame) :]
        except (OSError, ValueError) as error:
            message = "the guard of the device has died"
            raise GuardLostError(message) from error


def run_once(order: Order, take: Callable[[Stream, bytes], None]) -> Ending:
    """Run a single job under a guard of its own.

    Raises
    ------
    GuardLostError
        The guard does not start, or is broken.
    """
    guard = Guard()
    try:
        return guard.run(order, take)
    finally:
        guard.close()


def _guard_command() -> list[str]:
    core = find_spec("longpole._core")
    if core is None or core.origin is None:
        message = "the extension module of longpole is missing"
        raise GuardLostError(message)
    script = Path(__file__).with_name("guard_process.py")
    return [sys.executable, "-I", "-S", str(script), core.origin]


def _order_fields(number: int, order: Order) -> list[bytes]:
    limit = b"" if order.limit_s is None else _milliseconds(order.limit_s)
    return [
        str(number).encode(),
        limit,
        _milliseconds(order.grace_s),
        _milliseconds(order.drain_s),
        os.fsencode(order.folder or ""),
        str(len(order.argv)).encode(),
        *map(os.fsencode, order.argv),
        *(os.fsencode(f"{name}={value}") for name, value in order.env.items()),
    ]


def _milliseconds(seconds: float) -> bytes:
    return str(max(0, round(seconds * 1000))).encode()


def _refusal(body: bytes) -> Ending:
    number, text, _ = body.decode("utf-8", "replace").split("\0")
    return Ending(refused=(int(number), text))


def _ending(body: bytes) -> Ending:
    pairs = [field.partition("=") for field in body.decode("utf-8", "replace").split("\0") if field]
    fields = {name: value for name, _, value in pairs}
    stopped = fields.get("stopped")
    return Ending(
        exit_code=int(fields["exit_code"]) if "exit_code" in fields else None,
        signal=int(fields["signal"]) if "signal" in fields else None,
        stopped="limit" if stopped == "limit" else "cancel" if stopped else None,
        forced="forced" in fields,
        seconds=int(fields["wall_ns"]) / 1e9,
        strays=tuple(value for name, _, value in pairs if name == "stray"),
        unkillable=tuple(value for name, _, value in pairs if name == "unkillable"),
    )
