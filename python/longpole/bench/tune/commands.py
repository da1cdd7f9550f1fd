"""Candidates that are commands: built once, run as jobs, with checked output."""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from longpole.bench.records.record import Outcome
from longpole.bench.reference import read_numbers
from longpole.bench.run.guard import run_once
from longpole.bench.run.job import Job
from longpole.bench.run.output import NO_RESULTS, Tail
from longpole.bench.time.targets import find_function
from longpole.bench.time.workers import order
from longpole.bench.tune.sources import digest_of, environment_digest, program_files
from longpole.bench.tune.space import label_of
from longpole.bench.tune.task import Command, filled

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from longpole.bench.records.record import Record
    from longpole.bench.run.guard import Stream
    from longpole.bench.run.runner import Runner
    from longpole.bench.tune.space import Point
    from longpole.bench.tune.task import Task

_QUOTED: Final = 300
_IN_TURNS: Final = " in turns"

# A run that takes this many times as long as the fastest so far, or as the baseline, is ended.
_SLOW: Final = 10.0
_SHORTEST_LIMIT_S: Final = 0.5


class Commands:
    """Runs candidates as jobs of a runner.

    Parameters
    ----------
    task
        The task to tune; its candidate is a `Command`.
    runner
        Runs the jobs; it knows the jobs decided by an earlier search.
    decided
        Ids and digests of the jobs that no longer need a program.
    n_at_once
        Number of jobs that the runner can run at the same time.
    timeout_s
        Time limit of a run and of a build, if the candidate has none.
    is_final
        Whether these are the runs of finalists, which have separate keys and the full time limit.
    record_env
        Names of variables that the user records, and that therefore matter.
    """

    def __init__(
        self,
        task: Task,
        runner: Runner,
        *,
        decided: Mapping[tuple[str, str], Record],
        n_at_once: int = 1,
        timeout_s: float | None = None,
        is_final: bool = False,
        record_env: Collection[str] = (),
    ) -> None:
        assert isinstance(task.candidate, Command)  # noqa: S101 - only created for such candidates
        self._task, self._command = task, task.candidate
        self._runner, self._decided = runner, decided
        self._n_at_once, self._is_final = n_at_once, is_final
        self._environment = environment_digest(also=record_env)
        self._earlier = {name for name, _ in decided}
        self.n_outdated = 0
        self._longest_s = (
            timeout_s if task.candidate.timeout_s is None else task.candidate.timeout_s
        )
        self._counts: dict[str, int] = {}
        self._fastest_s: float | None = None
        self._baseline_s: float | None = None

    def run(self, points: Sequence[Point]) -> list[Record]:
        """Run each point once; return the records in the order of the points."""
        records: list[Record] = []
        for start in range(0, len(points), self._n_at_once):
            records += self._run_together(points[start : start + self._n_at_once])
        return records

    def turns(
        self, points: Sequence[Point], number: int, n_turns: int, run_s: float
    ) -> list[list[Record]]:
        """Run the points one after another in several rounds, each until it fails.

        The order is random, and reversed in every second round.
        """
        del run_s  # it was divided into turns
        places = list(range(len(points)))
        random.Random(number).shuffle(places)  # noqa: S311 - an order, not a secret
        found: list[list[Record]] = [[] for _ in points]
        for turn in range(n_turns):
            for place in places if turn % 2 == 0 else places[::-1]:
                if not found[place] or found[place][-1].outcome is Outcome.OK:
                    found[place] += self.run([points[place]])
        return found

    @property
    def n_known(self) -> int:
        """Return the number of runs of an earlier search."""
        return self._runner.status().n_known

    def _run_together(self, points: Sequence[Point]) -> Iterator[Record]:
        jobs = [self._prepared(point) for point in points]
        futures = [(job, self._runner.submit(job)) for job, _ in jobs]
        for (job, fault), (_, future) in zip(jobs, futures, strict=True):
            record = self._checked(job, future.result(), fault)
            self._note_time(record)
            yield record

    def _prepared(self, point: Point) -> tuple[Job, str]:
        """Return the job of a point's next run and its program, or why there is none."""
        key = label_of(point) + (_IN_TURNS if self._is_final else "")
        count = self._counts[key] = self._counts.get(key, 0) + 1
        output = self._folder / "outputs" / f"{_digest([key, count])}"
        job = self._job(point, key, output)
        name = key if count == 1 else f"{key}#{count}"
        known = self._decided.get((name, job.digest()))
        if known is not None:
            return job, ""
        self.n_outdated += name in self._earlier
        output.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileNotFoundError):
            output.unlink()
        return job, self._build(point)

    def _job(self, point: Point, key: str, output: Path) -> Job:
        program = self._program(point)
        values = {**point, "program": str(program), "output": str(output)}
        argv = filled(self._command.command, values)
        tags = {
            "point": dict(point),
            "sources": self._sources,
            "program": self._program_digest(argv),
            "environment": self._environment,
        }
        if self._task.reference is not None:
            tags["reference"] = self._task.reference.digest(self._task.folder)
        if self._has_output:
            tags["output"] = str(output)
        return Job(
            argv,
            key=key,
            tags=tags,
            format=self._task.objective.job_format,
            timeout_s=self._limit_s(point),
            folder=str(self._task.folder.resolve()),
        )

    def _limit_s(self, point: Point) -> float | None:
        """Limit a screening run to the time that a candidate that can still win needs."""
        usual_s = self._usual_s()
        is_exempt = self._is_final or point == self._task.start or self._command.timeout_s
        if is_exempt or usual_s is None:
            return self._longest_s
        slow_s = max(_SHORTEST_LIMIT_S, _SLOW * usual_s)
        return slow_s if self._longest_s is None else min(self._longest_s, slow_s)

    def _usual_s(self) -> float | None:
        """Return the time of which a run may take a multiple; None if time does not count.

        A program that prints its time may need longer to set up than the fastest takes in all: it
        is measured by the baseline.
        """
        objective = self._task.objective
        if objective.metric != "time":
            return None
        return self._fastest_s if objective.format == NO_RESULTS else self._baseline_s

    def _checked(self, job: Job, record: Record, fault: str) -> Record:
        """Mark a run with a wrong result as failed."""
        if fault:
            return self._rewritten(record, Outcome.NOT_STARTED, f"the build failed: {fault}")
        if record.outcome is not Outcome.OK:
            return record
        if wrong := self._wrong(job, record):
            return self._rewritten(record, Outcome.WRONG, wrong)
        return record

    def _note_time(self, record: Record) -> None:
        if record.outcome is not Outcome.OK or record.seconds is None:
            return
        self._fastest_s = min(record.seconds, self._fastest_s or record.seconds)
        if record.key == label_of(self._task.start):
            self._baseline_s = max(record.seconds, self._baseline_s or 0.0)

    def _rewritten(self, record: Record, outcome: Outcome, message: str) -> Record:
        found = replace(record, outcome=outcome, message=message, best=None)
        if (record.outcome, record.message) != (outcome, message):
            self._runner.write(found)
        return found

    def _wrong(self, job: Job, record: Record) -> str:
        reference, output = self._task.reference, job.tags.get("output")
        if reference is None:
            if output is not None:
                Path(output).unlink(missing_ok=True)
            return ""
        is_known = (record.id, record.digest) in self._decided
        if output is None:
            return reference.fault(reference.printed(record.stdout_tail), self._expected)
        path = Path(output)
        if not path.exists():
            # The output of an earlier search's run was removed after the check.
            return "" if is_known else "it wrote no output"
        try:
            return reference.fault(read_numbers(path, reference.dtype), self._expected)
        except (ValueError, OSError) as error:
            return f"its output cannot be read: {error}"
        finally:
            path.unlink()

    @cached_property
    def _expected(self) -> Any:
        reference = self._task.reference
        assert reference is not None  # noqa: S101 - only called if there is a reference
        folder = self._task.folder
        if reference.file is not None and not self._has_output:
            text = (folder / reference.file).read_text(encoding="utf-8", errors="replace")
            return reference.printed(text)
        return reference.expected(folder, find_function)

    @cached_property
    def _has_output(self) -> bool:
        return "{output}" in str(self._command.command)

    @cached_property
    def _folder(self) -> Path:
        return (self._task.folder / ".longpole" / "tune").resolve()

    @cached_property
    def _sources(self) -> str:
        """Return a digest of the files that determine what is run."""
        contents = hashlib.sha256()
        for name in self._command.sources:
            contents.update((self._task.folder / name).read_bytes())
            contents.update(b"\0")
        return contents.hexdigest()[:16]

    def _program_digest(self, argv: Sequence[str]) -> str:
        """Return a digest of the program and of the files that the command and its build name."""
        folder = self._task.folder.resolve()
        build = self._command.build or ()
        words = build.split() if isinstance(build, str) else list(build)
        named = tuple(word for word in words if word != "{program}")
        found = program_files(argv, folder, self._folder)
        if named:
            found += program_files(named, folder, self._folder)
        files = tuple(dict.fromkeys(found))
        if files not in self._digests:
            self._digests[files] = digest_of(files)
        return self._digests[files]

    @cached_property
    def _digests(self) -> dict[tuple[Path, ...], str]:
        return {}

    def _program(self, point: Point) -> Path | None:
        if self._command.build is None:
            return None
        argv = filled(self._command.build, {**point, "program": "{program}"})
        return self._folder / "programs" / _digest([argv, self._sources, _identity(argv[0])])

    def _build(self, point: Point) -> str:
        """Build the program of a point unless it exists; return why that failed."""
        program = self._program(point)
        if program is None or program.exists() or self._command.build is None:
            return ""
        program.parent.mkdir(parents=True, exist_ok=True)
        unfinished = program.with_suffix(f".{os.getpid()}")
        argv = filled(self._command.build, {**point, "program": str(unfinished)})
        fault = _built(argv, self._task.folder, self._longest_s)
        if not fault and not unfinished.exists():
            fault = "it wrote no {program}"
        if not fault:
            unfinished.replace(program)
        return fault


def _built(argv: Sequence[str], folder: Path, limit_s: float | None) -> str:
    """Run a build under a guard; return how it failed."""
    said = Tail()

    def take(_stream: Stream, chunk: bytes) -> None:
        said.feed(chunk)

    ending = run_once(order(argv, os.environ, limit_s, str(folder.resolve())), take)
    if ending.refused is not None:
        return ending.refused[1]
    if ending.stopped is not None:
        return f"not done after {ending.seconds or 0:.0f} s"
    if ending.exit_code != 0:
        return said.telling_line()[-_QUOTED:] or f"exit status {ending.exit_code}"
    return ""


def _identity(program: str) -> list[Any]:
    """Distinguish compilers with the same name."""
    found = shutil.which(program)
    if found is None:
        return [program]
    state = Path(found).resolve().stat()
    return [found, state.st_size, state.st_mtime_ns]


def _digest(parts: Any) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:20]
