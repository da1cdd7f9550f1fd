"""Offline tuning on several GPUs that survives the death of a worker.

The GEMMs of all files are divided into batches of about the same cost; each GPU has one worker at a
time. Complete lines written by a worker are kept however it ended, and the rest of its batch goes
to the next one. A GEMM that ends a worker before its first result is reported and left out.
"""

from __future__ import annotations

import glob
import math
import shlex
import sys
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from longpole.bench.records.record import Outcome, Record
from longpole.bench.run.job import Job, Policy
from longpole.bench.run.runner import Runner
from longpole.bench.tunableop.difference import loaded
from longpole.bench.tunableop.environment import environment
from longpole.bench.tunableop.merge import merge
from longpole.bench.tunableop.names import RESULTS, full_name
from longpole.bench.tunableop.parts import spans
from longpole.bench.tunableop.records import (
    Source,
    TunableFile,
    in_order,
    read,
    render_validators,
)
from longpole.bench.tunableop.untuned import costs, gather_untuned, share_out, untuned_file
from longpole.bench.tunableop.worker import REFUSED
from longpole.devices import Found, discover, select
from longpole.errors import DeviceError, ResultsError
from longpole.files.writing import check_free
from longpole.words.data import Data

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping, Sequence

    from longpole.bench.tunableop.inputs import Key

WORKER: Final = (sys.executable, "-m", "longpole.bench.tunableop.worker")
"""The worker that tunes with torch."""

# Some libraries try thousands of solutions for a GEMM: a batch takes minutes.
_TIMEOUT_S: Final = 1800.0
_BATCH: Final = 32

_SKIPPED: Final = (
    "torch does not tune this GEMM offline, because m, n or k is 1: tune it online, with "
    "PYTORCH_TUNABLEOP_TUNING=1 in the program"
)

# If this many workers per GPU have returned no result, none will.
_MOST_BARREN: Final = 3


@dataclass(frozen=True, slots=True)
class Failure(Data):
    """A GEMM that could not be tuned, and why."""

    operator: str
    parameters: str
    reason: str


@dataclass(frozen=True, slots=True)
class Tuning:
    """The result of tuning: the file for each GPU, and the GEMMs without a result.

    `n_known` of the `n_gemms` were tuned by the resumed run, or have a row in the known results.
    """

    file: TunableFile
    outputs: list[Path]
    failures: list[Failure]
    n_gemms: int
    n_known: int = 0


def tune(
    recorded: str | Sequence[str | os.PathLike[str]],
    *,
    gpus: int | Sequence[str | int] | None = None,
    filename: str | os.PathLike[str] = RESULTS,
    worker: str | Sequence[str] = WORKER,
    timeout_s: float | None = _TIMEOUT_S,
    batch_size: int = _BATCH,
    variables: Mapping[str, str] | None = None,
    reuse: Sequence[Source] = (),
    resume: bool = False,
    force: bool = False,
    on_record: Callable[[Record], object] | None = None,
) -> Tuning:
    """Tune the GEMMs of recorded files, on several GPUs at once.

    Parameters
    ----------
    recorded
        The recorded files: a list, or a pattern, which must contain `?` or `*`. A `?` matches one
        character: with ten or more GPUs, use `*`.
    gpus
        Number of GPUs, or which ones, as for `longpole.devices.select`; all by default.
    filename
        Name of the results without an ordinal. With `results.csv`, the files are
        `results_full0.csv`, `results_full1.csv` and so on, one copy per GPU, and the folder
        `results_tuning`, from which the run can be resumed.
    worker
        The command for a batch, called with the file of its GEMMs and the file to write. It has to
        append complete lines, validators first and then a row for each GEMM, in file order. Exit
        status 5 means that it cannot tune anything here.
    timeout_s
        Time limit of a batch; None for no limit.
    batch_size
        Maximum number of GEMMs per worker.
    variables
        Additional environment variables of the workers.
    reuse
        Results files of the same validators: GEMMs that have a row in one of them are not tuned
        again, and the output has all of their rows.
    resume
        Continue an earlier run; GEMMs that failed are retried.
    force
        Replace output files.
    on_record
        Called with the record of each worker when it ends.

    Raises
    ------
    ValueError
        The pattern has no wildcard, or a number is out of range.
    FileExistsError
        An output file exists, or the folder of an earlier run with results.
    ResultsError
        No GEMM was recorded or could be tuned, or the versions have changed since the run began
        or since `reuse` was tuned.
    DeviceError
        A GPU does not exist, or no worker can tune here.
    """
    devices = _devices(gpus)
    paths = _matching(recorded) if isinstance(recorded, str) else recorded
    keys = _recorded(recorded, paths)
    inputs = [*map(Path, paths)]
    outputs = [full_name(filename, ordinal) for ordinal in range(len(devices))]
    for output in outputs:
        check_free(output, force=force, inputs=inputs)
    before = merge(reuse, conflict="first").file if len(reuse) > 1 else read(*reuse or [b""])
    folder = _Folder.open(work_folder(filename), resume=resume)
    tuned = folder.tuned() | loaded(before).keys()
    run = _Run(
        folder,
        argv=tuple(shlex.split(worker) if isinstance(worker, str) else worker),
        env={**environment("tune"), **(variables or {})},
        timeout_s=timeout_s,
        on_record=on_record,
    )
    todo = {key: cost for key, cost in keys.items() if key not in tuned}
    run.all_of(_batches(todo, len(devices), batch_size), devices)
    file = folder.merged(keys, before)
    for output in outputs:
        file.write(output, force=force, inputs=inputs)
    failures = sorted(run.failures, key=lambda failed: (failed.operator, failed.parameters))
    return Tuning(file, outputs, failures, len(keys), len(keys.keys() & tuned))


def work_folder(filename: str | os.PathLike[str]) -> Path:
    """Return the folder with the batches of a run.

    Examples
    --------
    >>> work_folder("out/results%d.csv").as_posix()
    'out/results_tuning'
    """
    path = Path(filename)
    return path.with_name(f"{path.stem.replace('%d', '')}_tuning")


@dataclass
class _Folder:
    """The files of a run: a pair for each started batch."""

    path: Path
    n_batches: int = 0

    @classmethod
    def open(cls, path: Path, *, resume: bool) -> _Folder:
        begun = sorted(path.glob("batch*.untuned.csv"))
        if begun and not resume and not cls(path).tuned():
            cls(path).clear()
            begun = []
        if begun and not resume:
            message = (
                f"{path} contains an earlier run, which is not overwritten\n"
                "hint: continue it (`--resume`, or resume=True), or move it away"
            )
            raise FileExistsError(message)
        path.mkdir(parents=True, exist_ok=True)
        return cls(path, len(begun))

    def clear(self) -> None:
        """Remove the files of a run that has ended without a result."""
        for pattern in ("batch*.untuned.csv", "batch*.results.csv*", "attempts*"):
            for path in self.path.glob(pattern):
                path.unlink()

    def begin(self, keys: Sequence[Key]) -> tuple[str, Path, Path]:
        """Write the GEMMs of a batch; return its name, that file, and the one for results."""
        self.n_batches += 1
        name = f"batch{self.n_batches:04d}"
        untuned = self.path / f"{name}.untuned.csv"
        untuned_file(keys).write(untuned)
        return name, untuned, self.results(name)

    def results(self, name: str) -> Path:
        return self.path / f"{name}.results.csv"

    def tuned(self) -> set[Key]:
        """Return the GEMMs that earlier workers have tuned."""
        return {line.key for file in self._written() for line in file.lines}

    def merged(self, keys: Mapping[Key, int], known: TunableFile) -> TunableFile:
        """Merge the known results and those of all workers for the requested GEMMs."""
        files = [file for file in self._written() if file.count("result")]
        if not files and not known.count("result"):
            message = f"nothing was tuned; the attempts are in {self.path / 'attempts.jsonl'}"
            raise ResultsError(message)
        parts = [known] if known.text else []
        parts += [merge(files).file] if files else []
        # The known row of a GEMM that a resumed run has tuned as well is kept.
        merged = merge(parts, conflict="first").file
        wanted = keys.keys() | loaded(known).keys()
        rows = (line.text + b"\n" for line in merged.lines if line.key in wanted)
        return TunableFile(b"".join([render_validators(in_order(merged.validators)), *rows]))

    def _written(self) -> list[TunableFile]:
        return [whole_lines(path) for path in sorted(self.path.glob("batch*.results.csv"))]


def whole_lines(path: Path) -> TunableFile:
    """Return the validators and results in the complete lines of a file.

    An incomplete last line may lack digits, and is left out.
    """
    if not path.exists():
        return TunableFile(b"")
    file = read(path)
    outline = file.outline
    is_kept = outline["kind"].is_in(["validator", "result"]) & (outline["ending"] != "nothing")
    kept = spans([file.text], outline.filter(is_kept))
    return TunableFile(b"".join(line + b"\n" for line in kept), path)


@dataclass
class _Run:
    """The batches of one run, and their results."""

    folder: _Folder
    argv: tuple[str, ...]
    env: Mapping[str, str]
    timeout_s: float | None
    on_record: Callable[[Record], object] | None
    failures: list[Failure] = field(default_factory=list)
    n_tuned: int = 0
    n_barren: int = 0

    def all_of(self, batches: list[list[Key]], devices: Found) -> None:
        """Run batches until each GEMM has a result or a failure."""
        if not batches:
            return
        attempts = self.folder.path / "attempts.jsonl"
        policy = Policy(timeout_s=self.timeout_s)
        with Runner(devices, results=attempts, resume=attempts.exists(), policy=policy) as runner:
            running: dict[Future[Record], tuple[str, list[Key]]] = {}
            waiting = batches
            while running or waiting:
                for batch in waiting:
                    name, future = self._submit(runner, batch)
                    running[future] = name, batch
                done, _ = wait(running, return_when=FIRST_COMPLETED)
                waiting = []
                for future in done:
                    rest = self._settle(future.result(), *running.pop(future))
                    waiting.extend([rest] if rest else [])
                if self._is_hopeless(len(devices)):
                    self._give_up([*waiting, *(batch for _, batch in running.values())])
                    runner.cancel()
                    return

    def _submit(self, runner: Runner, batch: list[Key]) -> tuple[str, Future[Record]]:
        name, untuned, results = self.folder.begin(batch)
        argv = (*self.argv, str(untuned.resolve()), str(results.resolve()))
        return name, runner.submit(Job(argv, key=name, format="none", env=self.env))

    def _settle(self, record: Record, name: str, batch: list[Key]) -> list[Key]:
        """Record the result of a worker, and return the GEMMs left for another one."""
        if self.on_record is not None:
            self.on_record(record)
        tuned = {line.key for line in whole_lines(self.folder.results(name)).lines}
        rest = [key for key in batch if key not in tuned]
        self.n_tuned += len(batch) - len(rest)
        if not rest:
            return []
        reason = _reason(record)
        if record.outcome is Outcome.OK and self.argv == WORKER:
            skipped = [key for key in rest if _is_skipped_by_torch(key)]
            self.failures += [Failure(*key, _SKIPPED) for key in skipped]
            rest = [key for key in rest if key not in skipped]
        if record.exit_code == REFUSED:
            message = f"the worker cannot tune here: {reason}"
            raise DeviceError(message)
        if record.outcome in {Outcome.OK, Outcome.DEVICE_ERROR, Outcome.CANCELLED}:
            self.failures += [Failure(*key, reason) for key in rest]
            return []
        if tuned:
            return rest  # retried first, it fails again if it is the cause
        self.n_barren += 1
        self.failures.append(Failure(*rest[0], reason))
        return rest[1:]

    def _is_hopeless(self, n_devices: int) -> bool:
        return not self.n_tuned and self.n_barren >= _MOST_BARREN * n_devices

    def _give_up(self, batches: list[list[Key]]) -> None:
        reason = f"not tried: {self.n_barren} workers before it failed without any result"
        self.failures += [Failure(*key, reason) for batch in batches for key in batch]


def _reason(record: Record) -> str:
    """Return a one-line reason why a worker did not tune all of its GEMMs."""
    if record.outcome is Outcome.OK:
        return "the worker ended without a result for it"
    return f"{record.outcome}: {record.message}" if record.message else str(record.outcome)


def _is_skipped_by_torch(key: Key) -> bool:
    """Whether torch tunes a GEMM only online, since it cannot make its operands from the sizes."""
    row = untuned_file([key]).untuned.row(0, named=True)
    if 1 not in {row["m"], row["n"], row["k"]}:
        return False
    if row["operation"] == "GemmStridedBatched":
        return True
    is_made = row["layout"] == "NN" or (row["layout"][1] == "T" and row["m"] == 1)
    return row["operation"] == "Gemm" and not is_made


def _devices(gpus: int | Sequence[str | int] | None) -> Found:
    """Choose the GPUs; a number `n` selects the first `n`."""
    if gpus is None:
        return select(["all"])
    if not isinstance(gpus, int):
        return select(list(gpus))
    found = discover()
    if not 1 <= gpus <= len(found):
        message = f"there are {len(found)} devices here: 1 to {len(found)} can be used, not {gpus}"
        raise ValueError(message)
    return Found(dict(list(found.items())[:gpus]))


def _recorded(recorded: object, paths: Sequence[str | os.PathLike[str]]) -> dict[Key, int]:
    """Collect the GEMMs of all files, with their costs."""
    keys = costs(gather_untuned(paths))
    if not keys:
        message = f"no GEMM is recorded in {recorded}: {len(paths)} files found"
        raise ResultsError(message)
    return keys


def _matching(pattern: str) -> Sequence[str]:
    if not any(wildcard in pattern for wildcard in "?*"):
        message = f"the pattern of the recorded files must hold ? or *, and {pattern!r} does not"
        raise ValueError(message)
    return sorted(glob.glob(pattern))  # noqa: PTH207 - torch accepts such patterns too


def _batches(costs: Mapping[Key, int], n_devices: int, batch_size: int) -> list[list[Key]]:
    """Divide the GEMMs so that every device has work and no batch takes too long."""
    if batch_size < 1:
        message = f"batch_size must be at least 1, not {batch_size}"
        raise ValueError(message)
    n_batches = min(len(costs), max(n_devices, math.ceil(len(costs) / batch_size)))
    return share_out(costs, n_batches) if costs else []
