"""Candidates timed one after the other in a single process on a device.

Tuners try thousands of candidates, and a fresh process for each costs seconds for imports and a
context. Here one process times all of them, under the guard of the device, which is leased
meanwhile. A candidate that crashes the process, hangs, or breaks its context affects only itself:
the next one gets a new process.
"""

from __future__ import annotations

import json
import os
import queue
import tempfile
import threading
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

from longpole.bench.records.environment import fingerprint
from longpole.bench.records.record import Outcome, Record
from longpole.bench.run.guard import Ending, GuardLostError
from longpole.bench.run.output import Tail
from longpole.bench.time.targets import key_of
from longpole.bench.time.workers import IMPORT_S, device_in_use, guard_of, outcome_of, worker_order

if TYPE_CHECKING:
    from collections.abc import Mapping

    from longpole.bench.reference import Reference
    from longpole.bench.run.guard import Order, Stream
    from longpole.bench.time.workers import DeviceInUse
    from longpole.devices import Busy

_END_S: Final = 60.0


class Candidates:
    """A process on a device that times candidates.

    Parameters
    ----------
    clock
        `cpu`, `torch`, `cupti`, or the name `MODULE:FUNC` of a function that
        makes a clock.
    cache
        Cache state before each call on a device: `cold`, `hot` or `graph`.
    busy
        What to do if another program uses the device.
    lock_clock_mhz
        Clock to lock the device at; None leaves it unchanged.
    timeout_s
        Time limit of one candidate, from its request to its answer.

    Raises
    ------
    DeviceError
        The device does not exist, or another program uses it.

    Examples
    --------
    >>> with Candidates() as candidates:
    ...     record = candidates.time("statistics:median", {"data": [3, 1, 2]})
    >>> record.outcome.value, len(record.samples_ns) >= 25
    ('ok', True)
    """

    def __init__(
        self,
        *,
        clock: str = "cpu",
        cache: str | None = None,
        busy: Busy | None = None,
        lock_clock_mhz: int | None = None,
        timeout_s: float = 60.0,
    ) -> None:
        self._clock, self._cache, self._timeout_s = clock, cache, timeout_s
        self._process: _Process | None = None
        with ExitStack() as stack:
            self._device = stack.enter_context(device_in_use(clock, busy, lock_clock_mhz))
            self._resources = stack.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the process and release the device."""
        self._drop()
        self._resources.close()

    def time(
        self,
        name: str,
        point: Mapping[str, Any] | None = None,
        *,
        factory: bool = False,
        key: str | None = None,
        n_samples: int | None = None,
        budget_s: float = 5.0,
        reference: Reference | None = None,
        folder: str = "",
        config: tuple[str, str] | None = None,
    ) -> Record:
        """Time a candidate.

        Parameters
        ----------
        name
            The function, as `MODULE:FUNC`.
        point
            Its arguments, as JSON values.
        factory
            Whether it returns the function to time.
        key
            Key for comparisons; by default the name and the arguments.
        n_samples, budget_s
            As for `Effort`.
        reference
            Expected result. The outcome of any other result is `wrong`.
        folder
            Folder of the reference file.
        config
            An autotuned Triton kernel, as `MODULE:KERNEL`, and the label of its configuration.

        Returns
        -------
        Record
            With `samples_ns` if it is `ok`; otherwise the outcome says what happened.
        """
        key = key_of(name, point or {}) if key is None else key
        request = {
            "name": name,
            "point": dict(point or {}),
            "factory": factory,
            "key": key,
            "n_samples": n_samples,
            "budget_s": budget_s,
            "reference": None if reference is None else asdict(reference),
            "folder": folder,
            "config": config,
        }
        try:
            process = self._process or _Process(self._clock, self._cache, self._device)
            self._process = process
            answer = process.ask(request, self._timeout_s)
        except GuardLostError as error:
            answer = {"outcome": Outcome.GUARD_LOST, "message": str(error), "is_usable": False}
        if not answer.pop("is_usable", True):
            self._drop()
        return _record(key, answer)

    def _drop(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.close()


class _Process:
    """One process and its guard, until a candidate breaks it."""

    def __init__(self, clock: str, cache: str | None, device: DeviceInUse | None) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="longpole-candidates-")
        pipe = Path(self._folder.name, "requests")
        os.mkfifo(pipe, 0o600)
        self._requests = os.open(pipe, os.O_RDWR)  # does not wait for the other end
        self._answers: queue.Queue[dict[str, Any] | Ending | GuardLostError] = queue.Queue()
        self._line = b""
        self._stderr = Tail()
        self._guard, sampling = guard_of(device)
        readings = [sampling.path, sampling.interval_s]
        wanted = {"requests": str(pipe), "clock": clock, "cache": cache, "readings": readings}
        order = worker_order(wanted, None, device)
        self._thread = threading.Thread(target=self._run, args=(order,), daemon=True)
        self._thread.start()
        self._is_ready = False

    def ask(self, request: dict[str, Any], timeout_s: float) -> dict[str, Any]:
        """Time a candidate; the answer says whether the process can continue."""
        if not self._is_ready:
            first = self._next(IMPORT_S)
            if "ready" not in first:
                return first
            self._is_ready = True
        line = json.dumps(request).encode() + b"\n"
        os.write(self._requests, line)
        return self._next(timeout_s)

    def close(self) -> None:
        """End the process."""
        self._guard.cancel()
        self._thread.join(_END_S)
        self._guard.close()
        os.close(self._requests)
        self._folder.cleanup()

    def _run(self, order: Order) -> None:
        try:
            self._answers.put(self._guard.run(order, self._take))
        except GuardLostError as error:
            self._answers.put(error)

    def _take(self, stream: Stream, chunk: bytes) -> None:
        if stream == "stderr":
            self._stderr.feed(chunk)
            return
        *lines, self._line = (self._line + chunk).split(b"\n")
        for line in lines:
            self._answers.put(json.loads(line))

    def _next(self, timeout_s: float) -> dict[str, Any]:
        try:
            answer = self._answers.get(timeout=timeout_s)
        except queue.Empty:
            message = f"timed out after {timeout_s:g} s"
            return {"outcome": Outcome.TIMEOUT, "message": message, "is_usable": False}
        if isinstance(answer, GuardLostError):
            raise answer
        return answer if isinstance(answer, dict) else self._ended(answer)

    def _ended(self, ending: Ending) -> dict[str, Any]:
        """Report how the process ended while a candidate was timed."""
        outcome, how = outcome_of(ending)
        message = ": ".join(filter(None, [how, self._stderr.telling_line()]))
        return {"outcome": outcome, "message": message, "is_usable": False}


def _record(key: str, answer: dict[str, Any]) -> Record:
    if "id" in answer:
        return Record.from_dict(answer)
    outcome = Outcome(answer["outcome"])
    return Record(
        id=key, key=key, outcome=outcome, message=answer["message"], environment=fingerprint()
    )
