"""AITemplate's two profiler runners and its parser, over `longpole.bench.Runner`.

Names, arguments and the order of events are AITemplate's, so that only the import changes to `from
longpole.bench.compatible.aitemplate import ProfilerRunner`. The differences fix its failures: a
hung profiler is ended, a device is never lost, and a profiler that crashed or printed nothing
yields no result. `docs/aitemplate.md` lists every difference with its reason, and the names that
are not provided.

`extract_profile_result` parses output exactly as AITemplate does, oddities included, for programs
that rely on its answers. `longpole.bench.extract` reads the same rows without the oddities: here a
time in scientific notation loses its exponent, a row with an odd name is lost or loses its name,
and the 0 printed by a crashed kernel is the best time of all.
"""

from __future__ import annotations

import logging
import re
from concurrent.futures import wait
from dataclasses import dataclass, field
from threading import Event, Lock
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn, Protocol

from longpole.bench.records.record import Outcome
from longpole.bench.run import runner as engine
from longpole.bench.run.job import Job, Policy, parse_argv
from longpole.devices import discover, select, unlisted
from longpole.errors import LongpoleError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from concurrent.futures import Future

    from longpole.bench.records.record import Measurement, Record
    from longpole.devices import Device, Found

    class Delegate(Protocol):
        """A class that combines all results."""

        def postprocess_results(self) -> object: ...


__all__ = [
    "PROFILER_RUN_MAX_ATTEMPTS",
    "PROFILER_RUN_RETRY_DELAY_SECONDS",
    "PROF_RUNTIME_PATTERN",
    "RUNTIME_PATTERN",
    "WORKSPACE_PATTERN",
    "NotProvidedError",
    "ProfileResult",
    "ProfilerRunner",
    "Runner",
    "extract_profile_result",
    "optimization_key",
    "update_inplace",
]

NS_PER_MS: Final = 1e6
WAIT_AFTER_CANCEL_S: Final = 10.0
PROFILER_RUN_MAX_ATTEMPTS: Final = 3
PROFILER_RUN_RETRY_DELAY_SECONDS: Final = 5
_FORMAT: Final = "aitemplate"
_LOGGER: Final = logging.getLogger(__name__)

# Names of AITemplate's module that are missing here.
_NOT_PROVIDED: Final = {
    "BaseRunner": "the processes of a task are held by a guard; derive from `Runner`",
    "Task": "a task is a `longpole.bench.Job`; its results come from `Runner.pull`",
    "detect_target": "devices are found by `longpole.devices.discover`",
    "process_return": "`Runner.pull` gives pairs of an index and a result",
    "process_task": "a task is judged by its exit status, not by what it printed on stderr",
    "run_task": "a profiler is started by `longpole.bench.Runner`, under a guard",
}


class NotProvidedError(LongpoleError, ImportError):
    """A name of AITemplate's module that is not provided here."""


def __getattr__(name: str) -> NoReturn:
    if name in _NOT_PROVIDED:
        message = f"longpole does not provide AITemplate's {name}: {_NOT_PROVIDED[name]}"
        raise NotProvidedError(message)
    message = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(message)


@dataclass(frozen=True, slots=True)
class _Pushed:
    """A profiler, and whether its callback has been called."""

    cmds: Sequence[str]
    future: Future[Record]
    handed_on: Event = field(default_factory=Event)
    failures: list[BaseException] = field(default_factory=list)


class ProfilerRunner:
    """Runs profilers on several devices and passes their results to a delegate.

    Parameters
    ----------
    devices
        Device numbers as seen by this process, or tokens of a visibility variable. None or an empty
        list is device 0.
    postprocessing_delegate
        Its `postprocess_results()` is called once, after all callbacks.
    timeout
        Seconds that `join` waits for all profilers together.
    strict
        Make `join` raise if a profiler has no result or a callback raised, instead of logging it,
        and skip `postprocess_results`.
    """

    def __init__(
        self,
        devices: Sequence[str | int] | None,
        postprocessing_delegate: Delegate,
        timeout: float = 500,
        *,
        strict: bool = False,
    ) -> None:
        self._devices = _devices(devices)
        self._delegate = postprocessing_delegate
        self._timeout = timeout
        self._strict = strict
        self._engine: engine.Runner | None = None
        self._pushed: list[_Pushed] = []
        self._one_callback_at_a_time = Lock()

    def push(
        self, cmds: Sequence[str], process_result_callback: Callable[[ProfileResult, Any], object]
    ) -> None:
        """Start a profiler as soon as a device is free.

        Parameters
        ----------
        cmds
            The program and its arguments.
        process_result_callback
            Called with the best result and the delegate as soon as the profiler has ended, in
            another thread, one call at a time.
        """
        if self._engine is None:
            self._engine = engine.Runner(self._devices, policy=_policy(None))
        pushed = _Pushed(cmds, self._engine.submit(Job(parse_argv(cmds), format=_FORMAT)))
        self._pushed.append(pushed)
        pushed.future.add_done_callback(
            lambda future: self._hand_on(pushed, future, process_result_callback)
        )

    def join(self) -> None:
        """Wait for all profilers and their callbacks, then call the delegate.

        Raises
        ------
        RuntimeError
            The time limit was reached: all unfinished profilers are ended and listed; the callbacks
            of all others have been called. With `strict`, also if a profiler has no result: it is
            listed with the reason, and the delegate is not called.
        """
        pushed, self._pushed = self._pushed, []
        try:
            self._wait(pushed)
            for each in pushed:
                each.handed_on.wait()
            failures = [failure for each in pushed for failure in each.failures]
            if self._strict and failures:
                raise _together(failures)
            self._delegate.postprocess_results()
        finally:
            self._close()

    def _wait(self, pushed: Sequence[_Pushed]) -> None:
        futures = [each.future for each in pushed]
        _, late = wait(futures, self._timeout)
        if not late or self._engine is None:
            return
        cancelled = [each.cmds for each in pushed if each.future in late]
        unfinished = {future for future in futures if not future.done()}
        self._engine.cancel()
        wait(futures, WAIT_AFTER_CANCEL_S)
        for each in pushed:
            if each.future not in unfinished:
                each.handed_on.wait()
        message = (
            f"Profiler timed out after {self._timeout} sec. Try increasing the timeout. "
            f"Cancelled profilers: {cancelled}"
        )
        raise RuntimeError(message)

    def _hand_on(
        self,
        pushed: _Pushed,
        future: Future[Record],
        callback: Callable[[ProfileResult, Any], object],
    ) -> None:
        """Call the callback with a result, or record why there is no result; log any exception."""
        try:
            if not future.cancelled():
                result = _result(_best(pushed.cmds, future.result()))
                with self._one_callback_at_a_time:
                    callback(result, self._delegate)
        except Exception as error:  # noqa: BLE001 - callbacks of users can raise anything
            pushed.failures.append(error)
            _LOGGER.warning("%s: %s", pushed.cmds, error)
        finally:
            pushed.handed_on.set()

    def _close(self) -> None:
        """Release the devices; the next push acquires them again."""
        if self._engine is not None:
            self._engine.cancel()
            self._engine.close()
            self._engine = None


class Runner:
    """Runs profiling tasks on several devices and returns their results.

    Parameters
    ----------
    devs
        As for `ProfilerRunner`.
    op_name
        Name of what is profiled, for the log.
    timeout
        Time limit of each task in seconds.
    """

    def __init__(
        self,
        devs: Sequence[str | int] | None,
        op_name: str,
        timeout: float = 30,
    ) -> None:
        self._devices = _devices(devs)
        self._op_name = op_name
        self._timeout = timeout
        self._tasks: list[tuple[str | int, Job, set[str] | None]] = []
        self._results: list[tuple[str | int, ProfileResult | list[ProfileResult]]] | None = None

    def push(
        self, idx: str | int, cmd: str | Sequence[str], return_ops: Sequence[str] | None = None
    ) -> None:
        """Add a task.

        Parameters
        ----------
        idx
            Index to return with the result. It may occur more than once.
        cmd
            The command; it is not run in a shell.
        return_ops
            Return a list with the results of these operations, in printed order, instead of the
            best result.

        Raises
        ------
        TypeError
            `return_ops` is one name, not a list.
        """
        if isinstance(return_ops, str):
            message = "return_ops is a list of names, not one name"
            raise TypeError(message)
        wanted = None if return_ops is None else set(return_ops)
        self._tasks.append((idx, Job(parse_argv(cmd), format=_FORMAT), wanted))

    def join(self) -> None:
        """Run all tasks to completion. `pull` returns their results."""
        tasks, self._tasks = self._tasks, []
        if not tasks:
            return
        with engine.Runner(self._devices, policy=_policy(self._timeout)) as running:
            records = running.run(job for _, job, _ in tasks)
        results = self._results or []
        for (idx, _, wanted), record in zip(tasks, records, strict=True):
            if record.outcome is not Outcome.OK or record.best is None:
                fields = (self._op_name, idx, record.message, record.outcome)
                _LOGGER.warning("%s %s: %s (%s)", *fields)
            elif wanted is None:
                results.append((idx, _result(record.best)))
            else:
                found = [_result(each) for each in record.results if each.name in wanted]
                results.append((idx, found))
        self._results = results

    def pull(self) -> list[tuple[str | int, ProfileResult | list[ProfileResult]]]:
        """Return the results of the tasks that succeeded, in the order of the pushes.

        Runs tasks first that `join` has not run.
        """
        self.join()
        results, self._results = self._results or [], None
        return results

    def reset(self) -> None:
        """Drop the tasks that were not run, and the results that were not pulled."""
        self._tasks, self._results = [], None


def _policy(timeout_s: float | None) -> Policy:
    """Return AITemplate's limits, and its retries if the system refuses to start a process."""
    return Policy(
        timeout_s=timeout_s,
        launch_attempts=PROFILER_RUN_MAX_ATTEMPTS,
        launch_delay_s=PROFILER_RUN_RETRY_DELAY_SECONDS,
    )


def _best(cmds: Sequence[str], record: Record) -> Measurement:
    if record.outcome is Outcome.OK and record.best is not None:
        return record.best
    message = f"Failed to extract profiler result for {cmds}: {record.outcome}: {record.message}"
    raise RuntimeError(message)


def _together(failures: Sequence[BaseException]) -> BaseException:
    """Combine exceptions into one: the first of a callback, else all reasons."""
    own = next((each for each in failures if not isinstance(each, RuntimeError)), None)
    return own or RuntimeError("\n".join(map(str, failures)))


def _devices(wanted: Sequence[str | int] | None) -> Found | list[Device]:
    """Find the devices by name; on a machine without known devices, use the bare names."""
    found = discover()
    if any(device.vendor != "cpu" for device in found):
        return select(wanted, found)
    return [unlisted(name) for name in wanted or [0]]


def _result(measurement: Measurement) -> ProfileResult:
    duration_ms = measurement.time_ns / NS_PER_MS
    return ProfileResult(measurement.name, duration_ms, measurement.workspace_bytes or 0)


# Unanchored, and `\d` matches the digits of any script, as in AITemplate.
PROF_RUNTIME_PATTERN: Final = re.compile(r"OP:([a-zA-Z0-9_]+),TIME:([\d\.]+),WS:([\d]+)")
RUNTIME_PATTERN: Final = re.compile(r"TIME:([\d\.]+)")
WORKSPACE_PATTERN: Final = re.compile(r"WS:([\d]+)")


class ProfileResult(NamedTuple):
    """An operation, its time in milliseconds as printed, and its workspace in bytes."""

    op_config: str
    duration: float
    workspace: int


def extract_profile_result(
    stdout: str, return_ops: Iterable[str] | None = None
) -> tuple[ProfileResult | list[ProfileResult], bool]:
    r"""Find the fastest row, or all rows of some operations, as AITemplate does.

    Parameters
    ----------
    stdout
        What the profiler printed.
    return_ops
        The operations to list. By default the fastest row is returned, or the first of several
        equally fast ones.

    Returns
    -------
    tuple
        The fastest row, or the list of rows in printed order; and whether this failed. Only the
        flag shows a failure: the returned row then has no operation name and the time 0. If the
        output has a time and a workspace but no row, these are returned, never in a list.

    Examples
    --------
    >>> extract_profile_result("OP:slow,TIME:2.5,WS:0\nOP:fast,TIME:0.5,WS:64\n")
    (ProfileResult(op_config='fast', duration=0.5, workspace=64), False)
    """
    try:
        return _extract(stdout, return_ops), False
    except Exception:  # noqa: BLE001 - text and arguments can be wrong in any way
        return ProfileResult("", 0, 0), True


def optimization_key(result: Sequence[str]) -> float:
    """Return the time of a row, by which results are ordered.

    Examples
    --------
    >>> optimization_key(("gemm", "1.5", "0"))
    1.5
    """
    return float(result[1])


def update_inplace(d: dict[str, str], new_d: Mapping[str, str]) -> dict[str, str]:
    """Update a dictionary and return it.

    Examples
    --------
    >>> update_inplace({"a": "1"}, {"b": "2"})
    {'a': '1', 'b': '2'}
    """
    d.update(new_d)
    return d


def _extract(stdout: str, return_ops: Iterable[str] | None) -> ProfileResult | list[ProfileResult]:
    rows = PROF_RUNTIME_PATTERN.findall(stdout)
    if not rows:
        time, workspace = RUNTIME_PATTERN.findall(stdout)[0], WORKSPACE_PATTERN.findall(stdout)[0]
        return _parsed_result("", time, workspace)
    if return_ops is None:
        return _parsed_result(*min(rows, key=optimization_key))
    wanted = set(return_ops)
    return [_parsed_result(*row) for row in rows if row[0] in wanted]


def _parsed_result(operation: str, time: str, workspace: str) -> ProfileResult:
    return ProfileResult(operation, float(time), int(workspace))
