"""Runs the attempts of jobs on a device, with its lease and its guard."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from longpole.bench.records.environment import fingerprint, variables_on_record
from longpole.bench.records.reading import fastest
from longpole.bench.records.record import Outcome, Record
from longpole.bench.run.conditions import Sampling, is_disturbed
from longpole.bench.run.guard import Ending, Guard, GuardLostError, Order
from longpole.bench.run.output import (
    NO_RESULTS,
    Found,
    Judgement,
    Output,
    judge,
    launch_can_pass,
    signal_name,
)
from longpole.devices import DeviceLostError, Lease, child_changes, wait_until_idle
from longpole.errors import DeviceError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from pathlib import Path

    from longpole.bench.run.job import Job, Policy
    from longpole.bench.run.schedule import Task
    from longpole.devices import Device, Provider

KEPT_TAIL_BYTES: Final = 4096
CAN_BE_RETRIED: Final = frozenset({Outcome.NONZERO, Outcome.SIGNAL})


class Tried(NamedTuple):
    """The result of an attempt: its record, the fault of the device, and the delay before a retry.

    `retry_s` is the delay before the next attempt; None if this was the last.
    """

    record: Record
    trouble: str | None
    retry_s: float | None


class Worker(Protocol):
    """Runs jobs on one device, on any machine. `LocalWorker` documents the methods."""

    device: Device
    waits_for: str | None
    deadline: float | None

    def open(self) -> None: ...  # noqa: D102
    def attempt(self, task: Task) -> Tried: ...  # noqa: D102
    def cancel(self, task: Task) -> None: ...  # noqa: D102
    def kill(self) -> None: ...  # noqa: D102
    def close(self) -> None: ...  # noqa: D102


def worker_lost(task: Task, reason: str, device: Device, policy: Policy) -> Tried:
    """Report that the worker of a device has died. The job is retried."""
    again = task.attempts < policy.launch_attempts and not task.is_cancelled
    record = task.record(Outcome.GUARD_LOST, reason, device.uuid)
    delay_s = policy.launch_delay_s if again else None
    return Tried(replace(record, is_final=not again), None, delay_s)


def device_lost(task: Task, reason: str, device: Device) -> Tried:
    """Report that a device must not be used any more. The job goes to another one."""
    record = task.record(Outcome.DEVICE_ERROR, reason, device.uuid)
    delay_s = None if task.is_cancelled else 0.0
    return Tried(replace(record, is_final=task.is_cancelled), reason, delay_s)


@dataclass(frozen=True, slots=True)
class Attempt:
    """What is known when a job has ended, before its outcome is determined."""

    ending: Ending
    output: Output
    found: Found
    started_at: str
    limited_by_total: bool
    device_lost: str | None
    environment: Mapping[str, Any]


class LocalWorker:
    """Runs jobs on a device of this machine."""

    def __init__(
        self,
        device: Device,
        provider: Provider | None,
        *,
        policy: Policy,
        lock_folder: Path | None,
        record_env: Collection[str] = (),
    ) -> None:
        self.device = device
        self.waits_for: str | None = None
        self.deadline: float | None = None
        self._provider = provider
        self._policy = policy
        self._lock_folder = lock_folder
        self._record_env = record_env
        self._is_ours = False
        self._guard: Guard | None = None
        self._sampling: Sampling | None = None
        self._held: Lease | None = None

    def open(self) -> None:
        """Join the queue for the device.

        Raises
        ------
        DeviceError
            Its lock cannot be used.
        """
        self._held = Lease(self.device.uuid, self._lock_folder, parent=self.device.parent)

    def close(self) -> None:
        """Release the guard and its job, then the device."""
        self.kill()
        held, self._held = self._held, None
        if held is not None:
            held.close()

    def cancel(self, _: Task) -> None:
        """End the current job."""
        guard = self._guard
        if guard is not None:
            guard.cancel()

    def kill(self) -> None:
        """Release the guard and its job."""
        guard, self._guard = self._guard, None
        if guard is not None:
            guard.close()

    def attempt(self, task: Task) -> Tried:
        """Run the job once."""
        lease = self._held
        if lease is None:
            return device_lost(task, "the device was given back", self.device)
        if not self._take_turn(task, lease):
            return Tried(self._untried(task), None, None)
        if reason := self._occupied(task):
            lease.release()
            return device_lost(task, reason, self.device)
        task.attempts += 1
        try:
            attempt = self._run_job(task, lease)
        except GuardLostError as error:
            self._guard = None
            return worker_lost(task, str(error), self.device, self._policy)
        except DeviceLostError as error:
            return device_lost(task, str(error), self.device)
        finally:
            lease.release()
        judgement = self._judge(task, attempt)
        delay_s = self._delay_before_retry(task, attempt.ending, judgement)
        record = self._record(task, attempt, judgement, is_final=delay_s is None)
        return Tried(record, judgement.device_trouble, delay_s)

    def _judge(self, task: Task, attempt: Attempt) -> Judgement:
        expects_result = task.job.format != NO_RESULTS
        ending, output, found = attempt.ending, attempt.output, attempt.found
        judgement = judge(ending, output, found, expects_result=expects_result)
        if attempt.limited_by_total and judgement.outcome is Outcome.TIMEOUT:
            return replace(judgement, outcome=Outcome.CANCELLED, message=self._out_of_time())
        if judgement.outcome is Outcome.DEVICE_ERROR:
            return _blame(task, judgement)
        if attempt.device_lost and judgement.outcome is not Outcome.OK:
            judgement = replace(
                judgement, outcome=Outcome.DEVICE_ERROR, message=attempt.device_lost
            )
        return replace(judgement, device_trouble=judgement.device_trouble or attempt.device_lost)

    def _take_turn(self, task: Task, lease: Lease) -> bool:
        def is_over() -> bool:
            return task.is_cancelled or self._is_out_of_time()

        def still_waiting() -> bool:
            self.waits_for = lease.holder()
            return is_over()

        try:
            return not is_over() and lease.acquire(still_waiting)
        finally:
            self.waits_for = None

    def _occupied(self, task: Task) -> str | None:
        """Return a message if others use the device before its first job, otherwise None."""
        if self._is_ours:
            return None
        try:
            wait_until_idle(
                self.device,
                self._provider,
                self._policy.busy,
                lambda: task.is_cancelled or self._is_out_of_time(),
            )
        except DeviceError as error:
            return str(error)
        self._is_ours = True
        return None

    def _run_job(self, task: Task, lease: Lease) -> Attempt:
        job = task.job
        guard, sampling = self._ready(lease)
        changes = child_changes(self.device, os.environ)
        limit_s, limited_by_total = self._limit(job)
        output = Output(job.format)
        before = self._read_device()  # do not give a job to a lost device
        sampling.clear()
        began_ns = time.perf_counter_ns()
        started_at = datetime.now(UTC).isoformat()
        ending = guard.run(
            self._order(job, changes, limit_s), output.take, lambda: task.is_cancelled
        )
        during = sampling.conditions().summary(began_ns, time.perf_counter_ns())
        found = output.finish(died=ending.exit_code != 0 or ending.stopped is not None)
        after, lost = self._look_again()
        environment = {
            **fingerprint(),
            "device": self.device.to_dict(),
            "settings": self._settings,
            "before": before,
            "during": during,
            "after": after,
            "changed": variables_on_record({**job.env, **changes}, self._record_env),
        }
        return Attempt(ending, output, found, started_at, limited_by_total, lost, environment)

    def _order(self, job: Job, changes: Mapping[str, str | None], limit_s: float | None) -> Order:
        return Order(
            argv=job.argv,
            env=_environment(job, changes),
            folder=job.folder,
            limit_s=limit_s,
            grace_s=self._policy.grace_s,
            drain_s=self._policy.drain_s,
        )

    def _ready(self, lease: Lease) -> tuple[Guard, Sampling]:
        """Return the guard of the device and its sampling; both are created again after a loss."""
        if self._guard is None or self._sampling is None:
            self._sampling = Sampling(self.device, self._provider, self._policy.lock_clock_mhz)
            self._guard = Guard(lease.filenos(), self._sampling)
        return self._guard, self._sampling

    @cached_property
    def _settings(self) -> dict[str, str]:
        """Return the settings of the device, read once because reading them is slow."""
        return {} if self._provider is None else self._provider.settings(self.device)

    def _limit(self, job: Job) -> tuple[float | None, bool]:
        """Return the time limit of a job, and whether the limit of the whole run shortens it."""
        own_s = job.timeout_s if job.timeout_s is not None else self._policy.timeout_s
        if self.deadline is None:
            return own_s, False
        left_s = max(0.0, self.deadline - time.monotonic())
        return (left_s, True) if own_s is None or left_s < own_s else (own_s, False)

    def _is_out_of_time(self) -> bool:
        return self.deadline is not None and time.monotonic() >= self.deadline

    def _out_of_time(self) -> str:
        return f"the limit of {self._policy.total_timeout_s:g} s for all jobs was reached"

    def _read_device(self) -> dict[str, Any] | None:
        """Read clocks and temperature if that is fast; None if unknown."""
        if self._provider is None or not self._provider.reads_fast:
            return None
        return self._provider.read(self.device).to_dict()

    def _look_again(self) -> tuple[dict[str, Any] | None, str | None]:
        """Read the device after a job; return the reason if it does not respond."""
        try:
            return self._read_device(), None
        except DeviceLostError as error:
            return None, str(error)

    def _delay_before_retry(self, task: Task, ending: Ending, judgement: Judgement) -> float | None:
        """Return the delay before the next attempt; None if this was the last."""
        policy = self._policy
        if task.is_cancelled or judgement.outcome is Outcome.CANCELLED:
            return None
        if judgement.outcome is Outcome.DEVICE_ERROR:
            return 0.0 if judgement.device_trouble else None  # on another device
        if launch_can_pass(ending) and task.attempts < policy.launch_attempts:
            return policy.launch_delay_s
        if judgement.outcome in CAN_BE_RETRIED and task.attempts <= policy.retries:
            return 0.0
        return None

    def _untried(self, task: Task) -> Record:
        reason = self._out_of_time() if self._is_out_of_time() else "cancelled before it began"
        return task.record(Outcome.CANCELLED, reason, self.device.uuid)

    def _record(
        self, task: Task, attempt: Attempt, judgement: Judgement, *, is_final: bool
    ) -> Record:
        ending, output, found = attempt.ending, attempt.output, attempt.found
        is_sound = judgement.outcome is Outcome.OK
        return replace(
            task.record(judgement.outcome, judgement.message, self.device.uuid),
            is_final=is_final,
            exit_code=ending.exit_code,
            signal=signal_name(ending.signal) if ending.signal else None,
            results=found.results,
            best=fastest((*found.results, *found.fastest_omitted)) if is_sound else None,
            omitted=found.omitted,
            unparsed=found.unparsed,
            unstable=judgement.unstable,
            strays=ending.strays,
            started_at=attempt.started_at,
            seconds=ending.seconds,
            stdout_bytes=output.stdout.n_bytes,
            stderr_bytes=output.stderr.n_bytes,
            stdout_tail=output.stdout.text(KEPT_TAIL_BYTES),
            stderr_tail=output.stderr.text(KEPT_TAIL_BYTES),
            environment=attempt.environment,
            sampling=_sampling_of(attempt),
        )


def _sampling_of(attempt: Attempt) -> dict[str, Any]:
    """Return the conditions of the job that comparisons use."""
    during = attempt.environment["during"]
    return {
        "clock_mhz": during.get("clock_mhz"),
        "cpu_pressure": during.get("cpu_pressure"),
        "is_disturbed": is_disturbed(during),
    }


def _blame(task: Task, judgement: Judgement) -> Judgement:
    """Attribute a fault to the device, or to the job if a second device reports it too.

    This keeps a broken job from disabling one device after the other.
    """
    task.device_errors += 1
    return judgement if task.device_errors == 1 else replace(judgement, device_trouble=None)


def _environment(job: Job, changes: Mapping[str, str | None]) -> dict[str, str]:
    wanted = {**os.environ, **job.env, **changes}
    return {name: value for name, value in wanted.items() if value is not None}
