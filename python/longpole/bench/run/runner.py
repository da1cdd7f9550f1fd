"""Runs jobs on devices, one at a time on each, and records every attempt."""

from __future__ import annotations

import time
from collections import Counter
from concurrent.futures import as_completed
from dataclasses import dataclass, field
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any, Final, Literal, Self

from longpole.bench.records.reading import ResultsFile
from longpole.bench.records.record import Outcome
from longpole.bench.records.store import Store
from longpole.bench.run.cluster import Cluster
from longpole.bench.run.job import Policy
from longpole.bench.run.schedule import Schedule, Task
from longpole.bench.run.worker import LocalWorker
from longpole.devices import Device, Found, select
from longpole.errors import DeviceError

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
    from concurrent.futures import Future
    from pathlib import Path

    from longpole.bench.records.record import Record
    from longpole.bench.run.job import Job
    from longpole.bench.run.worker import Worker
    from longpole.devices import Provider

Engine = Literal["local", "ray"]
ENGINES: Final = ("local", "ray")


@dataclass(frozen=True, slots=True)
class Running:
    """The state of a device. `waits_for` names its current holder while it is taken."""

    id: str
    seconds: float
    waits_for: str | None


@dataclass(frozen=True, slots=True)
class Status:
    """Progress of a runner. `n_known` jobs were done by the resumed run."""

    n_jobs: int
    n_open: int
    n_known: int = 0
    outcomes: Mapping[str, int] = field(default_factory=dict)
    running: Mapping[str, Running] = field(default_factory=dict)
    quarantined: Mapping[str, str] = field(default_factory=dict)


class Runner:
    """A pool of devices that runs jobs.

    Every attempt is on disk before the next one begins on the same device. A device that fails is
    no longer used and is reported, and its job goes to another. No process of a job outlives the
    runner, even if the runner is killed.

    May be used from several threads, and again after a run. Leaving the `with` block waits for all
    jobs; leaving it by an exception ends them.

    Parameters
    ----------
    devices
        The result of `longpole.devices.select`, or the names it accepts, or devices. None is device
        0.
    engine
        Where the devices are: `local` for this machine, `ray` for every node of a Ray cluster.
        Device names are then searched on each node, and None is every GPU of the cluster. The
        programs and folders of jobs have to exist there.
    results
        The file to append records to. None keeps them in memory only.
    resume
        Continue a results file: decided jobs are not run again.
    policy
        Limits and retries.
    lock_folder
        Folder of device locks; by default the one shared by all runners of this machine.
    record_env
        Names of environment variables of jobs whose values may be recorded. Of all others, except a
        few that are not secret, only the name and a digest are recorded.

    Raises
    ------
    DeviceError
        A device does not exist, or Ray does not start.
    MissingDependencyError
        Ray is not installed.
    ResultsError
        The results file cannot be written, is in use, or already contains results.

    Examples
    --------
    >>> from longpole.bench import Job, Runner
    >>> with Runner(["cpu"]) as runner:
    ...     records = runner.run([Job(["echo", "OP:gemm,TIME:1.5,WS:0"], key="gemm")])
    >>> records[0].outcome, records[0].best.time_ns
    (<Outcome.OK: 'ok'>, 1500000)
    """

    def __init__(
        self,
        devices: Found | Cluster | Sequence[Device | str | int] | None = None,
        *,
        engine: Engine = "local",
        results: str | os.PathLike[str] | None = None,
        resume: bool = False,
        policy: Policy | None = None,
        lock_folder: Path | None = None,
        record_env: Collection[str] = (),
    ) -> None:
        self._policy = policy or Policy()
        how = {"policy": self._policy, "lock_folder": lock_folder, "record_env": record_env}
        self._workers = _workers(devices, engine, **how)
        self._mutex = Lock()
        self._schedule = Schedule()
        self._slots: list[Slot] = []
        self._ids: set[str] = set()
        self._repetitions: Counter[str] = Counter()
        self._outcomes: Counter[str] = Counter()
        self._n_jobs = 0
        self._n_known = 0
        self._n_working = 0
        self._is_closed = False
        self._quarantined: dict[Device, str] = {}
        self._error: BaseException | None = None
        self._store = None if results is None else Store(results, resume=resume)
        self._decided = ResultsFile(results).decided() if results is not None and resume else {}

    @property
    def quarantined(self) -> dict[str, str]:
        """The devices that failed, by UUID, and why."""
        with self._mutex:
            return {device.uuid: reason for device, reason in self._quarantined.items()}

    def submit(self, job: Job) -> Future[Record]:
        """Submit a job; its future returns the record of its last attempt.

        A job with a known key is a repetition. The future of a job that the results file has
        decided is done already; if no device is left, the record says so.
        """
        return self._submit(job).future

    def run(
        self, jobs: Iterable[Job], on_record: Callable[[Record], object] | None = None
    ) -> list[Record]:
        """Run jobs to completion, and return their last records in the order of the jobs.

        Parameters
        ----------
        jobs
            The jobs to run.
        on_record
            Called in this thread with each record of this run, in order of completion, after it is
            on disk. An exception ends these jobs and is raised here.
        """
        tasks: list[Task] = []
        try:
            tasks.extend(self._submit(job) for job in jobs)
            for future in as_completed([task.future for task in tasks if not task.is_known]):
                record = future.result()
                if on_record is not None:
                    on_record(record)
        except BaseException:
            self._cancel(tasks)
            raise
        return [task.future.result() for task in tasks]

    def cancel(self) -> None:
        """End running jobs and drop waiting ones. Records on disk are kept."""
        self._cancel(self._schedule.open_tasks())

    def close(self) -> None:
        """Wait for all jobs and release the devices. The runner accepts no more jobs."""
        with self._mutex:
            self._is_closed = True
        self._schedule.close()
        try:
            for slot in self._slots:
                slot.join()
        except BaseException:
            for slot in self._slots:
                slot.kill()
            raise
        finally:
            if self._store is not None:
                self._store.close()

    def status(self) -> Status:
        """Return the progress of the runner, for a progress line."""
        now = time.monotonic()
        running = {}
        for slot in self._slots:
            task, since = slot.task, slot.task_since
            if task is not None and since is not None:
                running[slot.device.uuid] = Running(task.id, now - since, slot.waits_for)
        with self._mutex:
            outcomes = dict(self._outcomes)
        n_open = len(self._schedule.open_tasks())
        return Status(self._n_jobs, n_open, self._n_known, outcomes, running, self.quarantined)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self.cancel()
        self.close()

    def write(self, record: Record) -> None:
        """Write an attempt to disk. Called by the slots."""
        if self._store is not None and record.attempt:
            self._store.append(record)
        if record.is_final:
            with self._mutex:
                self._outcomes[record.outcome] += 1

    def quarantine(self, device: Device, reason: str) -> None:
        """Stop using a device. Called by the slots."""
        with self._mutex:
            self._quarantined.setdefault(device, reason)

    def fail(self, error: BaseException) -> None:
        """End everything: results cannot be written, or longpole has an internal error.

        Called by the slots.
        """
        with self._mutex:
            self._error = self._error or error
        tasks = self._schedule.open_tasks()
        for task in tasks:
            if not task.future.running() and not task.future.done():
                task.future.set_exception(error)
        self._cancel(tasks)

    def leave(self) -> None:
        """Note that a slot has ended. Called by the slots."""
        with self._mutex:
            self._n_working -= 1
        if not self._n_working:
            self._strand()

    def _submit(self, job: Job) -> Task:
        with self._mutex:
            if self._error is not None:
                raise self._error
            if self._is_closed:
                message = "the runner is closed and takes no more jobs"
                raise RuntimeError(message)
            task = Task(job, self._name(job.key), job.digest())
            self._n_jobs += 1
            known = self._decided.get((task.id, task.digest))
            if known is not None:
                self._outcomes[known.outcome] += 1
                self._n_known += 1
        if known is not None:
            task.is_known = True
            task.future.set_result(known)
            return task
        self._schedule.put(task)
        self._start_slots()
        if not self._n_working:
            self._strand()  # the last device has failed
        return task

    def _name(self, key: str) -> str:
        """Return a unique id for each repetition of a key."""
        while True:
            self._repetitions[key] += 1
            count = self._repetitions[key]
            name = key if count == 1 else f"{key}#{count}"
            if name not in self._ids:
                self._ids.add(name)
                return name

    def _start_slots(self) -> None:
        """Start the devices with the first job, so that without jobs none is taken."""
        with self._mutex:
            if self._slots:
                return
            total_s = self._policy.total_timeout_s
            deadline = None if total_s is None else time.monotonic() + total_s
            for worker in self._workers:
                worker.deadline = deadline
                self._slots.append(Slot(worker, self._schedule, self))
            self._n_working = len(self._slots)
            for slot in self._slots:
                slot.start()

    def _cancel(self, tasks: Iterable[Task]) -> None:
        for task in tasks:
            task.is_cancelled = True
            task.future.cancel()
            for slot in self._slots:
                slot.cancel(task)
        self._schedule.hurry()

    def _strand(self) -> None:
        """Complete the futures of jobs for which no device is left."""
        for task in self._schedule.open_tasks():
            if task.begin() and not task.future.done():
                record = task.record(Outcome.DEVICE_ERROR, self._no_device_left())
                with self._mutex:
                    self._outcomes[record.outcome] += 1
                task.future.set_result(record)
            self._schedule.finish(task)

    def _no_device_left(self) -> str:
        reasons = [f"{uuid}: {why}" for uuid, why in self.quarantined.items()]
        return "no device is left; " + "; ".join(reasons)


def _workers(
    devices: Found | Cluster | Sequence[Device | str | int] | None, engine: Engine, **how: Any
) -> list[Worker]:
    if engine not in ENGINES:
        message = f"no engine {engine!r}; there are {', '.join(ENGINES)}"
        raise ValueError(message)
    if isinstance(devices, Cluster):
        return [*devices.workers(**how)]
    if engine == "ray":
        names = [each.uuid if isinstance(each, Device) else str(each) for each in devices or ()]
        return [*Cluster.find(names).workers(**how)]
    return [LocalWorker(device, provider, **how) for device, provider in _choose(devices).items()]


def _choose(
    devices: Found | Sequence[Device | str | int] | None,
) -> Mapping[Device, Provider | None]:
    if isinstance(devices, Found):
        chosen: dict[Device, Provider | None] = dict(devices)
    else:
        names = [each for each in devices or () if not isinstance(each, Device)]
        chosen = {each: None for each in devices or () if isinstance(each, Device)}
        if names or not chosen:
            chosen.update(select(names))
    if not chosen:
        message = "there is no device to run on"
        raise DeviceError(message)
    return chosen


class Slot(Thread):
    """Passes jobs to the worker of one device until none is left or the device fails."""

    def __init__(self, worker: Worker, schedule: Schedule, runner: Runner) -> None:
        super().__init__(name=f"longpole {worker.device.uuid}", daemon=True)
        self.device = worker.device
        self.task: Task | None = None
        self.task_since: float | None = None
        self._worker = worker
        self._schedule = schedule
        self._runner = runner

    @property
    def waits_for(self) -> str | None:
        """Current holder of the device, until it is free."""
        return self._worker.waits_for

    def run(self) -> None:
        """Work until no job is left."""
        try:
            self._worker.open()
            while (task := self._schedule.take()) is not None:
                if not self._work(task):
                    break
        except DeviceError as reason:
            self._runner.quarantine(self.device, str(reason))
        except BaseException as error:  # noqa: BLE001 - passed on to the callers that wait for results
            self._runner.fail(error)
        finally:
            self._worker.close()
            self._runner.leave()

    def cancel(self, task: Task) -> None:
        """End the current job if it is this one."""
        if self.task is task:
            self._worker.cancel(task)

    def kill(self) -> None:
        """End the running job."""
        self._worker.kill()

    def _work(self, task: Task) -> bool:
        """Make one attempt. False if the device must not be used any more."""
        self.task, self.task_since = task, time.monotonic()
        try:
            if not task.begin():
                self._schedule.finish(task)
                return True
            record, trouble, delay_s = self._worker.attempt(task)
            self._runner.write(record)
            if trouble:
                self._runner.quarantine(self.device, trouble)
            self._settle(task, record, delay_s)
        except BaseException as error:
            self._runner.fail(error)
            if not task.future.done():
                task.future.set_exception(error)
            self._schedule.finish(task)
            raise
        finally:
            self.task = self.task_since = None
        return trouble is None

    def _settle(self, task: Task, record: Record, delay_s: float | None) -> None:
        if delay_s is not None:
            self._schedule.put_back(task, delay_s)
        else:
            task.future.set_result(record)
            self._schedule.finish(task)
