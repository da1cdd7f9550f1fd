"""The queue of jobs: those waiting, those waiting for a retry, and those running."""

from __future__ import annotations

import heapq
import time
from collections import deque
from concurrent.futures import Future
from dataclasses import dataclass, field
from threading import Condition
from typing import TYPE_CHECKING

from longpole.bench.records.record import Record

if TYPE_CHECKING:
    from longpole.bench.records.record import Outcome
    from longpole.bench.run.job import Job


@dataclass(eq=False, slots=True)
class Task:
    """A job in the runner. `is_known` is set if an earlier run completed it."""

    job: Job
    id: str
    digest: str
    future: Future[Record] = field(default_factory=Future)
    attempts: int = 0
    device_errors: int = 0
    is_cancelled: bool = False
    is_known: bool = False

    def begin(self) -> bool:
        """Mark the job as running. False if its future was cancelled or answered before."""
        if self.future.running():
            return True
        if self.future.done() and not self.future.cancelled():
            return False
        return self.future.set_running_or_notify_cancel()

    def record(self, outcome: Outcome, message: str, device: str | None = None) -> Record:
        """Return a record of an outcome that is known without running the job."""
        return Record(
            id=self.id,
            key=self.job.key,
            outcome=outcome,
            attempt=self.attempts,
            argv=self.job.argv,
            tags=self.job.tags,
            digest=self.digest,
            device=device,
            message=message,
        )


class Schedule:
    """The jobs of one runner, in order of submission.

    A job is open until `finish`: while it runs, it can return to the queue for a second attempt or
    because its device failed, so workers must not exit before.
    """

    def __init__(self) -> None:
        self._changed = Condition()
        self._ready: deque[Task] = deque()
        self._later: list[tuple[float, int, Task]] = []
        self._n_put = 0
        self._open: set[Task] = set()
        self._is_closed = False

    def put(self, task: Task) -> None:
        """Add a job."""
        with self._changed:
            self._open.add(task)
            self._ready.append(task)
            self._changed.notify()

    def put_back(self, task: Task, delay_s: float = 0.0) -> None:
        """Return a job to the queue, before all others or after a delay."""
        with self._changed:
            if delay_s > 0:
                self._n_put += 1  # orders jobs that are ready at the same time
                ready_at = time.monotonic() + delay_s
                heapq.heappush(self._later, (ready_at, self._n_put, task))
            else:
                self._ready.appendleft(task)
            self._changed.notify_all()

    def take(self) -> Task | None:
        """Wait for a job. None if the schedule is closed and no job is open."""
        with self._changed:
            while True:
                now = time.monotonic()
                while self._later and self._later[0][0] <= now:
                    self._ready.append(heapq.heappop(self._later)[2])
                if self._ready:
                    return self._ready.popleft()
                if self._is_closed and not self._open:
                    return None
                self._changed.wait(self._later[0][0] - now if self._later else None)

    def finish(self, task: Task) -> None:
        """Remove a finished job."""
        with self._changed:
            self._open.discard(task)
            if not self._open:
                self._changed.notify_all()

    def close(self) -> None:
        """Accept no more jobs."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()

    def hurry(self) -> None:
        """Drop cancelled tasks from the retry queue."""
        with self._changed:
            self._ready.extend(entry[2] for entry in self._later if entry[2].is_cancelled)
            self._later = [entry for entry in self._later if not entry[2].is_cancelled]
            heapq.heapify(self._later)
            self._changed.notify_all()

    def open_tasks(self) -> list[Task]:
        """List the unfinished jobs."""
        with self._changed:
            return list(self._open)
