"""A device at work: one thread, one worker, one job at a time."""

from __future__ import annotations

import time
from threading import Thread
from typing import TYPE_CHECKING

from longpole.errors import DeviceError

if TYPE_CHECKING:
    from typing import Protocol

    from longpole.bench.records.record import Record
    from longpole.bench.run.schedule import Schedule, Task
    from longpole.bench.run.worker import Worker
    from longpole.devices import Device

    class Journal(Protocol):
        """The notifications of a slot to its runner."""

        def write(self, record: Record) -> None: ...
        def quarantine(self, device: Device, reason: str) -> None: ...
        def fail(self, error: BaseException) -> None: ...
        def leave(self) -> None: ...


__all__ = ["Slot"]


class Slot(Thread):
    """Passes jobs to the worker of one device until none is left or the device fails."""

    def __init__(self, worker: Worker, *, schedule: Schedule, journal: Journal) -> None:
        super().__init__(name=f"longpole {worker.device.uuid}", daemon=True)
        self.device = worker.device
        self.task: Task | None = None
        self.task_since: float | None = None
        self._worker = worker
        self._schedule = schedule
        self._journal = journal

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
            self._give_up_device(str(reason))
        except BaseException as error:  # noqa: BLE001 - handed to who waits for results
            self._journal.fail(error)
        finally:
            self._worker.close()
            self._journal.leave()

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
            self._journal.write(record)
            if trouble:
                self._give_up_device(trouble)
            self._settle(task, record, delay_s)
        except BaseException as error:
            self._journal.fail(error)
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

    def _give_up_device(self, reason: str) -> None:
        self._journal.quarantine(self.device, reason)
