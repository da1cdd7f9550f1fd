"""Records a training loop: step times without a profiler, then a trace, then times again.

A profiler slows down the program that it records, above all the host. The recorder therefore times
some steps without a profiler before and after it records a few, and stores these times in the
trace, under the key `longpole` of the JSON document. Answers about the trace can then describe the
program as it runs without a profiler.

Nothing here may break the recorded program: any failure becomes a `RecordingWarning`, and the
program continues.
"""

from __future__ import annotations

import gzip
import json
import shutil
import sys
import tempfile
import time
import warnings
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, Protocol, Self, TypeVar

from longpole.errors import RecordingWarning
from longpole.files.writing import check_free, new_file
from longpole.formats.read import read_trace

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator
    from types import TracebackType

    from longpole.trace.trace import Trace

Batch = TypeVar("Batch")

N_TIMINGS: Final = 2
"""Number of timings on each side of the recording."""

PROFILER_WARM_UP: Final = 2
"""Steps that the profiler runs without recording, because its first steps are slow."""

COMPRESSION: Final = 3
"""Compression level; low, because the program waits while its trace is compressed."""


def record(
    target: str | Path | Callable[[], object],
    path: str | Path | None = None,
    *,
    steps: int = 5,
    warm_up: int = 3,
    timed_steps: int = 5,
    stacks: bool = False,
    overwrite: bool = False,
    show: bool = True,
) -> Recorder:
    """Record a few steps of a program, and time others without the profiler.

    Parameters
    ----------
    target
        The file to write (`.json` or `.json.gz`), or a folder. The returned recorder is a context
        manager; call its `step` at the end of each step. Or a function to record, which is called
        until the trace is complete.
    path
        The file or folder to write for a function.
    steps
        Number of steps to record.
    warm_up
        Number of steps to skip at the start, in which programs compile and allocate.
    timed_steps
        Number of steps in each of two timings before the recording and two after it.
    stacks
        Whether to record Python functions, which makes the recorded steps slower.
    overwrite
        Whether to replace an existing file.
    show
        Whether to print the verdict on standard error when the trace is complete.

    Returns
    -------
    Recorder
        With the attributes `path` (the file written) and `step_time_ns`.

    Raises
    ------
    FileExistsError
        The file exists and `overwrite` is not given.
    ValueError
        A number of steps is not positive, or a function is given without a path.

    Warns
    -----
    RecordingWarning
        The trace is incomplete or could not be recorded: no profiler is installed, the program
        ended too early, the disk is full.

    Notes
    -----
    Each rank of a distributed program writes its own file, with `-rank3` before the suffix. A
    finished recorder costs one empty call per step.

    Examples
    --------
    >>> import longpole
    >>> with longpole.record("trace.json.gz") as recorder:  # doctest: +SKIP
    ...     for batch in recorder(loader):
    ...         train(batch)
    """
    if min(steps, timed_steps) < 1 or warm_up < 0:
        message = "steps and timed_steps must be at least 1, and warm_up at least 0"
        raise ValueError(message)
    plan = _Plan(steps, warm_up, timed_steps, stacks)
    if not callable(target):
        return Recorder(Path(target), plan, overwrite=overwrite, show=show)
    if path is None:
        message = "record(function, path) needs the path of the file to write"
        raise ValueError(message)
    with Recorder(Path(path), plan, overwrite=overwrite, show=show) as recorder:
        while not recorder.is_done:
            target()
            recorder.step()
    return recorder


@dataclass(frozen=True, slots=True)
class _Plan:
    """Numbers of steps, and what to record in them."""

    steps: int
    warm_up: int
    timed_steps: int
    stacks: bool

    @property
    def n_steps(self) -> int:
        """Number of steps until the trace is complete."""
        return self.warm_up + 2 * N_TIMINGS * self.timed_steps + PROFILER_WARM_UP + self.steps


class Recorder:
    """Records a program whose loop calls `step` at the end of each step.

    Attributes
    ----------
    path
        The file written; None if no step has been recorded.
    step_time_ns
        Mean duration of a step without the profiler, in ns, for each timing `before` and `after`
        the recording.
    is_done
        Whether the recording is finished.
    """

    _active: Recorder | None = None

    def __init__(self, path: Path, plan: _Plan, *, overwrite: bool, show: bool) -> None:
        self.path: Path | None = None
        self.step_time_ns: dict[str, list[int]] = {"before": [], "after": []}
        self.is_done = False
        self._plan = plan
        self._overwrite = overwrite
        self._show = show
        self._n_steps = 0
        self._profiler = _profiler()
        self._path = path
        self._file = _file_of_rank(path, self._profiler)
        check_free(self._file, force=overwrite)
        self._work: Generator[None, None, None] | None = None

    def __enter__(self) -> Self:
        self._begin()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._show = self._show and error is None
        self.close()

    def __call__(self, batches: Iterable[Batch]) -> Iterator[Batch]:
        """Yield each batch of a loader, and end a step after it."""
        for batch in batches:
            yield batch
            self.step()

    def step(self) -> None:
        """End a step of the program."""
        self._n_steps += 1
        self._advance()

    def close(self) -> None:
        """Write what was recorded; does nothing once the recorder is done."""
        if self.is_done:
            return
        if self._work is not None:
            self._guarded(self._work.close)
            if self.path is None and not self.is_done:
                self._warn(
                    f"the program ended after {self._n_steps} steps, before a step was recorded; "
                    f"recording takes {self._plan.n_steps} steps with these settings"
                )
        self._finish()

    def read(self) -> Trace:
        """Read the trace that was written.

        Raises
        ------
        FileNotFoundError
            Nothing was recorded.
        """
        if self.path is None:
            message = "nothing was recorded"
            raise FileNotFoundError(message)
        return read_trace(self.path)

    def _begin(self) -> None:
        if self._work is not None or self.is_done:
            return
        if Recorder._active is not None:
            self._warn("another recorder is active in this process, so this one records nothing")
            self._finish()
        elif self._profiler is None:
            self._warn(
                "nothing is recorded, because neither torch nor jax is installed\n"
                "hint: pip install torch"
            )
            self._finish()
        else:
            Recorder._active = self
            self._work = self._recording(self._profiler)
            self._advance()

    def _advance(self) -> None:
        if self._work is None:
            self._begin()
        else:
            self._guarded(partial(self._next, self._work))

    def _next(self, work: Generator[None, None, None]) -> None:
        try:
            next(work)
        except StopIteration:
            self._finish()

    def _guarded(self, function: Callable[[], object]) -> None:
        """Call a function; an error in it ends the recording but not the program."""
        try:
            function()
        except Exception as error:  # noqa: BLE001 - an error of the recorder must not stop the program
            shown = str(error).strip().partition("\n")[0] or type(error).__name__
            kept = f"; {self.path} is complete up to there" if self.path else ""
            self._warn(f"recording failed: {shown}{kept}")
            self._finish()

    def _recording(self, profiler: _Profiler) -> Generator[None, None, None]:
        """Start and stop the timings and the profiler, one action at the end of each step."""
        for _ in range(self._plan.warm_up):
            yield
        yield from self._timing("before", profiler)
        self._file = _file_of_rank(self._path, profiler)  # ranks may not be known before
        with tempfile.TemporaryDirectory(
            dir=self._file.parent, prefix=f".{self._file.name}."
        ) as folder:
            raw = Path(folder) / "trace.json"
            try:
                profiler.start(self._plan, raw)
                for _ in range(PROFILER_WARM_UP + self._plan.steps):
                    yield
                    profiler.step()
            finally:
                profiler.stop()
                self._write(raw)
            yield from self._timing("after", profiler)
            self._write(raw, replaces=True)

    def _timing(self, side: str, profiler: _Profiler) -> Generator[None, None, None]:
        """Time some steps together, with the device idle at both ends."""
        for _ in range(N_TIMINGS):
            profiler.synchronize()
            start_ns = time.perf_counter_ns()
            for _ in range(self._plan.timed_steps):
                yield
            profiler.synchronize()
            total_ns = time.perf_counter_ns() - start_ns
            self.step_time_ns[side].append(total_ns // self._plan.timed_steps)

    def _write(self, raw: Path, *, replaces: bool = False) -> None:
        """Write the trace with the times of steps, completely or not at all."""
        if not raw.exists():
            return
        times = json.dumps({"step_time_ns": self.step_time_ns}).encode()
        with (
            new_file(self._file, force=self._overwrite or replaces) as unfinished,
            raw.open("rb") as source,
            _opened(unfinished, self._file) as target,
        ):
            target.write(_opening_brace(source, raw) + b'"longpole": ' + times + b",")
            shutil.copyfileobj(source, target, 1 << 20)
        self.path = self._file

    def _print(self) -> None:
        """Print the verdict, on the first rank."""
        is_first = self._profiler is not None and not self._profiler.rank()[0]
        if not (self._show and is_first and self.path):
            return
        from longpole.words.wording import duration_range  # imported only for printing

        times_ns = [time_ns for side in self.step_time_ns.values() for time_ns in side]
        trace = self.read()
        answer = trace.answer()
        misfit = answer.recording_cost and answer.recording_cost["misfit"]
        lines = [f"longpole: recorded {trace.steps.height} steps in {self._file}"]
        if misfit:
            lines.append(f"{misfit[0].upper()}{misfit[1:]}.")
        elif times_ns:
            took = duration_range(min(times_ns), max(times_ns))
            lines.append(f"A step takes {took} without the profiler.")
        lines.append(str(answer.verdict))
        lines.append(f"`longpole {self._file}` shows where the time went.")
        sys.stderr.write("\n  ".join(lines) + "\n")

    def _finish(self) -> None:
        if self.is_done:
            return
        self.is_done = True
        self.step = _nothing  # type: ignore[method-assign]
        if Recorder._active is self:
            Recorder._active = None
        self._guarded(self._print)

    def _warn(self, message: str) -> None:
        warnings.warn(message, RecordingWarning, stacklevel=_depth_outside())


class _Profiler(Protocol):
    """The functions of a framework's profiler that the recorder needs."""

    def start(self, plan: _Plan, path: Path) -> None:
        """Start recording; the trace is written to `path` as JSON when it is complete."""

    def step(self) -> None:
        """End a step."""

    def stop(self) -> None:
        """Stop, and write what was recorded."""

    def synchronize(self) -> None:
        """Wait until the device is idle."""

    def rank(self) -> tuple[int, int]:
        """Rank of this process and number of ranks."""


class _TorchProfiler:
    """The profiler of PyTorch."""

    def __init__(self) -> None:
        self._torch = import_module("torch")
        self._profile: Any = None

    def start(self, plan: _Plan, path: Path) -> None:
        torch = import_module("torch.profiler")
        cpu = torch.ProfilerActivity.CPU
        devices = set(torch.supported_activities()) - {cpu}
        if not self._has_device():
            message = "torch sees no GPU, so the trace has CPU activities only"
            warnings.warn(message, RecordingWarning, stacklevel=_depth_outside())
            devices = set()
        self._profile = torch.profile(
            activities=[cpu, *sorted(devices, key=str)],
            schedule=torch.schedule(wait=0, warmup=PROFILER_WARM_UP, active=plan.steps, repeat=1),
            on_trace_ready=lambda done: done.export_chrome_trace(str(path)),
            record_shapes=True,
            with_stack=plan.stacks,
            **_experimental(),
        )
        self._profile.start()

    def step(self) -> None:
        self._profile.step()

    def stop(self) -> None:
        if self._profile is not None:
            profile, self._profile = self._profile, None
            profile.stop()

    def synchronize(self) -> None:
        for name in ("cuda", "xpu"):
            device = getattr(self._torch, name, None)
            if device is not None and device.is_available() and device.is_initialized():
                device.synchronize()

    def rank(self) -> tuple[int, int]:
        distributed = self._torch.distributed
        if not (distributed.is_available() and distributed.is_initialized()):
            return 0, 1
        return int(distributed.get_rank()), int(distributed.get_world_size())

    def _has_device(self) -> bool:
        names = ("cuda", "xpu", "mtia")
        devices = (getattr(self._torch, name, None) for name in names)
        return any(device is not None and device.is_available() for device in devices)


class _JaxProfiler:
    """The profiler of JAX, which writes a folder; only the timeline in it is kept."""

    def __init__(self) -> None:
        self._jax = import_module("jax")
        self._folder: Path | None = None
        self._file = Path()
        self._annotation: Any = None
        self._number = 0
        self._n_steps = 0

    def start(self, plan: _Plan, path: Path) -> None:
        self._file = path
        self._n_steps = plan.steps
        self._number = -PROFILER_WARM_UP

    def step(self) -> None:
        self._number += 1
        if self._number == 0:
            self._folder = self._file.parent / "jax"
            self._jax.profiler.start_trace(str(self._folder))
        self._end_mark()
        if 0 <= self._number < self._n_steps:
            self._mark()

    def stop(self) -> None:
        if self._folder is None:
            return
        folder, self._folder = self._folder, None
        self._end_mark()
        self.synchronize()
        self._jax.profiler.stop_trace()
        timeline = max(folder.rglob("*.trace.json.gz"))
        with gzip.open(timeline, "rb") as source, self._file.open("wb") as target:
            shutil.copyfileobj(source, target, 1 << 20)

    def synchronize(self) -> None:
        (self._jax.device_put(0) + 1).block_until_ready()

    def rank(self) -> tuple[int, int]:
        return int(self._jax.process_index()), int(self._jax.process_count())

    def _mark(self) -> None:
        """Begin the annotation of a step."""
        self._annotation = self._jax.profiler.StepTraceAnnotation("step", step_num=self._number)
        self._annotation.__enter__()

    def _end_mark(self) -> None:
        if self._annotation is not None:
            self._annotation.__exit__(None, None, None)
            self._annotation = None


def _experimental() -> dict[str, Any]:
    """Request records of waits and operators of all threads, as far as torch supports them."""
    with suppress(ImportError):
        config = import_module("torch._C._profiler")._ExperimentalConfig  # noqa: SLF001
        for wanted in (
            {"enable_cuda_sync_events": True, "profile_all_threads": True},
            {"enable_cuda_sync_events": True},
        ):
            with suppress(TypeError):  # an older torch
                return {"experimental_config": config(**wanted)}
    return {}


def _profiler() -> _Profiler | None:
    """Return the profiler of the framework in use, or of one that is installed."""
    profilers: dict[str, Callable[[], _Profiler]] = {"torch": _TorchProfiler, "jax": _JaxProfiler}
    for name in sorted(profilers, key=lambda name: name not in sys.modules):
        with suppress(ImportError):
            return profilers[name]()
    return None


def _file_of_rank(path: Path, profiler: _Profiler | None) -> Path:
    """Return the file that this process writes."""
    file = path / "trace.json.gz" if path.is_dir() else path
    rank, n_ranks = (0, 1) if profiler is None else profiler.rank()
    if n_ranks == 1:
        return file
    stem, dot, suffix = file.name.partition(".")
    return file.with_name(f"{stem}-rank{rank}{dot}{suffix}")


def _opened(unfinished: Path, file: Path) -> IO[bytes]:
    if file.suffix == ".gz":
        return gzip.open(unfinished, "wb", compresslevel=COMPRESSION)  # type: ignore[return-value]
    return unfinished.open("wb")


def _opening_brace(source: IO[bytes], path: Path) -> bytes:
    """Read up to the opening brace of the document, which whitespace may precede."""
    blanks = b""
    while (byte := source.read(1)).isspace():
        blanks += byte
    if byte != b"{":
        message = f"the profiler wrote no JSON object to {path}"
        raise ValueError(message)
    return blanks + byte


def _nothing() -> None:
    pass


def _depth_outside() -> int:
    """Return the depth of the innermost frame outside this file, for `warnings.warn`."""
    depth, frame = 1, sys._getframe(1)  # noqa: SLF001 - `warnings` uses it too
    while frame.f_back is not None and frame.f_code.co_filename == __file__:
        depth, frame = depth + 1, frame.f_back
    return depth
