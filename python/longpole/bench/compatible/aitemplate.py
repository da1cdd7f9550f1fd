"""AITemplate's two profiler runners, over `longpole.bench.Runner`.

The names, the arguments and the order of events are AITemplate's, so that
`from longpole.bench.compatible.aitemplate import ProfilerRunner` is all there is to change.
What differs is what went wrong there: a hung profiler is ended, a device is
never lost, a profiler that crashed or printed nothing is no result, and what
fails is raised where somebody can catch it.
"""

from __future__ import annotations

import logging
from concurrent.futures import wait
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

from longpole.bench.compatible.profile_result import ProfileResult
from longpole.bench.records.record import Outcome
from longpole.bench.run import runner as engine
from longpole.bench.run.job import Job, parse_argv
from longpole.bench.run.policy import Policy
from longpole.devices import discover, select, unlisted

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from concurrent.futures import Future

    from longpole.bench.records.record import Measurement, Record
    from longpole.devices import Device, Found

    class Delegate(Protocol):
        """What makes something of all results together."""

        def postprocess_results(self) -> object: ...


__all__ = ["ProfileResult", "ProfilerRunner", "Runner"]

NS_PER_MS: Final = 1e6
WAIT_AFTER_CANCEL_S: Final = 10.0
_LOGGER: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Pushed:
    cmds: Sequence[str]
    callback: Callable[[ProfileResult, Any], object]
    future: Future[Record]


class ProfilerRunner:
    """Runs profilers on several devices and hands their results to a delegate.

    Parameters
    ----------
    devices
        Numbers as this process counts its devices, or tokens of a visibility
        variable. None or an empty list is device 0.
    postprocessing_delegate
        Its `postprocess_results()` is called once, after all callbacks.
    timeout
        Seconds that `join` waits for all profilers together.
    """

    def __init__(
        self,
        devices: Sequence[str | int] | None,
        postprocessing_delegate: Delegate,
        timeout: float = 500,
    ) -> None:
        self._devices = _devices(devices)
        self._delegate = postprocessing_delegate
        self._timeout = timeout
        self._engine: engine.Runner | None = None
        self._pushed: list[_Pushed] = []

    def push(
        self, cmds: Sequence[str], process_result_callback: Callable[[ProfileResult, Any], object]
    ) -> None:
        """Start a profiler as soon as a device is free.

        Parameters
        ----------
        cmds
            The program and its arguments.
        process_result_callback
            Called by `join` with the best result and the delegate, in the order of the pushes.
        """
        if self._engine is None:
            self._engine = engine.Runner(self._devices, policy=Policy(timeout_s=None))
        future = self._engine.submit(Job(parse_argv(cmds)))
        self._pushed.append(_Pushed(cmds, process_result_callback, future))

    def join(self) -> None:
        """Wait for all profilers, hand on their results, then let the delegate do its part.

        Raises
        ------
        RuntimeError
            The time was over: all profilers that were not done are ended and
            named. Or a profiler gave no result: it is named with the reason,
            after the callbacks of all others, and the delegate is not called.
        """
        pushed, self._pushed = self._pushed, []
        try:
            self._wait(pushed)
            failures = [failure for each in pushed if (failure := self._hand_on(each))]
            if failures:
                raise RuntimeError("\n".join(failures))
            self._delegate.postprocess_results()
        finally:
            self._close()

    def _wait(self, pushed: Sequence[_Pushed]) -> None:
        futures = [each.future for each in pushed]
        _, late = wait(futures, self._timeout)
        if not late or self._engine is None:
            return
        cancelled = [each.cmds for each in pushed if each.future in late]
        self._engine.cancel()
        wait(futures, WAIT_AFTER_CANCEL_S)
        message = (
            f"Profiler timed out after {self._timeout} sec. Try increasing the timeout. "
            f"Cancelled profilers: {cancelled}"
        )
        raise RuntimeError(message)

    def _hand_on(self, pushed: _Pushed) -> str | None:
        """Call back with a result, or say why there is none."""
        record = pushed.future.result()
        if record.outcome is not Outcome.OK or record.best is None:
            reason = f"{record.outcome}: {record.message}"
            return f"Failed to extract profiler result for {pushed.cmds}: {reason}"
        pushed.callback(_result(record.best), self._delegate)
        return None

    def _close(self) -> None:
        """Give the devices back; the next push takes them again."""
        if self._engine is not None:
            self._engine.cancel()
            self._engine.close()
            self._engine = None


class Runner:
    """Runs profiling tasks on several devices and gives back their results.

    Parameters
    ----------
    devs
        As for `ProfilerRunner`.
    op_name
        What is profiled, for the log.
    timeout
        Seconds for each task.
    """

    def __init__(self, devs: Sequence[str | int] | None, op_name: str, timeout: float = 30) -> None:
        self._devices = _devices(devs)
        self._op_name = op_name
        self._timeout = timeout
        self._tasks: list[tuple[str | int, Job, set[str] | None]] = []

    def push(
        self, idx: str | int, cmd: str | Sequence[str], return_ops: Sequence[str] | None = None
    ) -> None:
        """Add a task.

        Parameters
        ----------
        idx
            What the result is given back with. It may occur more than once.
        cmd
            The command. No shell sees it.
        return_ops
            Give back a list with the results of these operations, in the order
            of printing, in place of the best result.
        """
        if isinstance(return_ops, str):
            message = "return_ops is a list of names, not one name"
            raise TypeError(message)
        wanted = None if return_ops is None else set(return_ops)
        self._tasks.append((idx, Job(parse_argv(cmd)), wanted))

    def pull(self) -> list[tuple[str | int, ProfileResult | list[ProfileResult]]]:
        """Run all tasks; give the results of those that succeeded, in the order of the pushes."""
        tasks, self._tasks = self._tasks, []
        policy = Policy(timeout_s=self._timeout)
        with engine.Runner(self._devices, policy=policy) as running:
            records = running.run(job for _, job, _ in tasks)
        results: list[tuple[str | int, ProfileResult | list[ProfileResult]]] = []
        for (idx, _, wanted), record in zip(tasks, records, strict=True):
            if record.outcome is not Outcome.OK or record.best is None:
                _LOGGER.warning(
                    "%s %s: %s (%s)", self._op_name, idx, record.message, record.outcome
                )
            elif wanted is None:
                results.append((idx, _result(record.best)))
            else:
                found = [_result(each) for each in record.results if each.name in wanted]
                results.append((idx, found))
        return results


def _devices(wanted: Sequence[str | int] | None) -> Found | list[Device]:
    """Take devices as they are known here; on a machine that knows none take the bare names."""
    found = discover()
    if any(device.vendor != "cpu" for device in found):
        return select(wanted, found)
    return [unlisted(name) for name in wanted or [0]]


def _result(measurement: Measurement) -> ProfileResult:
    duration_ms = measurement.time_ns / NS_PER_MS
    return ProfileResult(measurement.name, duration_ms, measurement.workspace_bytes or 0)
