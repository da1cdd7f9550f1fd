"""Candidates that are calls of a Python function: screened in one process, finals in turns."""

from __future__ import annotations

import hashlib
import json
import sys
from contextlib import ExitStack
from dataclasses import replace
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from longpole.bench.records.store import Store
from longpole.bench.run.job import LONGEST_S
from longpole.bench.time.candidates import Candidates
from longpole.bench.time.processes import ALONE, Campaign, time_in_processes
from longpole.bench.tune.sources import digest_of, environment_digest, imported_files
from longpole.bench.tune.space import label_of
from longpole.bench.tune.task import Function

if TYPE_CHECKING:
    import os
    from collections.abc import Collection, Mapping, Sequence

    from longpole.bench.records.record import Record
    from longpole.bench.tune.space import Point
    from longpole.bench.tune.task import Task
    from longpole.devices import Busy

SCREENING_S: Final = 0.2


class Functions:
    """Times candidates in processes of their own, and writes a record of each run.

    Parameters
    ----------
    task
        The task to tune; its candidate is a `Function`.
    results
        The file to append records to.
    decided
        Records decided by an earlier search, by id and digest.
    busy, lock_clock_mhz
        As for `Candidates`.
    timeout_s
        Time limit of a candidate without its own.
    record_env
        Names of variables that the user records, and that therefore matter.
    """

    def __init__(
        self,
        task: Task,
        results: str | os.PathLike[str],
        *,
        decided: Mapping[tuple[str, str], Record],
        busy: Busy | None = None,
        lock_clock_mhz: int | None = None,
        timeout_s: float | None = None,
        record_env: Collection[str] = (),
    ) -> None:
        assert isinstance(task.candidate, Function)  # noqa: S101 - only created for such candidates
        self.n_known = self.n_outdated = 0
        self._environment = environment_digest(also=record_env)
        self._earlier = {name for name, _ in decided}
        self._task, self._function, self._decided = task, task.candidate, decided
        self._busy, self._lock = busy, lock_clock_mhz
        own_s = task.candidate.timeout_s
        self._timeout_s = (timeout_s or LONGEST_S) if own_s is None else own_s
        self._counts: dict[str, int] = {}
        self._candidates: Candidates | None = None
        self._folder = str(task.folder.resolve())
        if self._folder not in sys.path:
            sys.path.insert(0, self._folder)
        with ExitStack() as stack:
            self._store = stack.enter_context(Store(results, resume=True))
            self._resources = stack.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._candidates is not None:
            self._candidates.close()
        self._resources.close()

    def run(self, points: Sequence[Point]) -> list[Record]:
        """Time each point once; return the records in the order of the points."""
        return [self._run(point) for point in points]

    def turns(
        self, points: Sequence[Point], number: int, n_turns: int, run_s: float
    ) -> list[list[Record]]:
        """Time all points in turns in a fresh process."""
        del n_turns  # the process fits them into its time
        labels = [label_of(point) for point in points]
        ids = [f"{label} in turns, run {number}" for label in labels]
        digest = self._digest({"turns": labels})
        known = [self._decided.get((each, digest)) for each in ids]
        if all(known):
            self.n_known += len(known)
            return [[each] for each in known if each is not None]
        found = list(time_in_processes(self._campaign(points, number, run_s)))
        return [
            [self._written(record, name, label, digest, point)]
            for record, name, label, point in zip(found, ids, labels, points, strict=True)
        ]

    def _run(self, point: Point) -> Record:
        label, digest = label_of(point), self._digest(point)
        count = self._counts[label] = self._counts.get(label, 0) + 1
        name = label if count == 1 else f"{label}#{count}"
        known = self._decided.get((name, digest))
        if known is not None:
            self.n_known += 1
            return known
        self.n_outdated += name in self._earlier
        record = self._process.time(
            self._function.function,
            {} if self._function.configs else point,
            factory=self._function.factory,
            key=label,
            budget_s=SCREENING_S,
            reference=self._task.reference,
            folder=self._folder,
            config=(self._function.configs, _config_of(point)) if self._function.configs else None,
        )
        return self._written(record, name, label, digest, point)

    def _written(self, record: Record, name: str, key: str, digest: str, point: Point) -> Record:
        found = replace(record, id=name, key=key, digest=digest, tags={"point": dict(point)})
        self._store.append(found)
        return found

    @property
    def _process(self) -> Candidates:
        if self._candidates is None:
            self._candidates = Candidates(
                clock=self._function.clock,
                cache=self._function.cache,
                busy=self._busy,
                lock_clock_mhz=self._lock,
                timeout_s=self._timeout_s,
            )
        return self._candidates

    def _campaign(self, points: Sequence[Point], number: int, run_s: float) -> Campaign:
        configs = self._function.configs
        label = _config_of if configs else label_of
        by_name = {f"{self._function.function}@{label(point)}": point for point in points}
        return Campaign(
            list(by_name),
            arguments={} if configs else by_name,
            configs=configs,
            factory=self._function.factory,
            clock=self._function.clock,
            cache=self._function.cache,
            n_processes=1,
            budget_s=run_s * ALONE,
            seed=number,
            busy=self._busy,
            lock_clock_mhz=self._lock,
            reference=self._task.reference,
            folder=self._folder,
        )

    def _digest(self, told: Mapping[str, object]) -> str:
        reference = self._task.reference
        right = None if reference is None else reference.digest(self._task.folder)
        parts = [
            *(self._function.function, self._source, dict(told), self._function.cache, right),
            self._environment,
        ]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]

    @cached_property
    def _source(self) -> str:
        """Return a digest of the function's module and of the modules that it imports."""
        module = self._function.function.partition(":")[0]
        try:
            spec = find_spec(module)
        except (ImportError, ValueError):
            return ""
        file = Path(str(spec and spec.origin))
        return digest_of([file, *imported_files([file], Path(self._folder))])


def _config_of(point: Point) -> str:
    """Return the name of a Triton configuration, as in `longpole bench time --configs`.

    Examples
    --------
    >>> _config_of({"BLOCK": 128, "num_warps": 4})
    'BLOCK=128,num_warps=4'
    """
    return ",".join(f"{name}={value}" for name, value in point.items())
