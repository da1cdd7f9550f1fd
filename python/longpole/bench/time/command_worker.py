"""One run of commands: a process that executes them in turns and writes a row for each.

Started as a script with one argument, its configuration as JSON. It imports only the standard
library to stay small, since the system reports the memory of the starting process for a command
that needs less. Times are those of the whole process, from its start until it is reaped.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import resource
import signal
import sys
import time
from statistics import fmean, median
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

_MOST_TURNS = 100
_SHELL_STARTS = 10
_KIB = 1024


class Subject:
    """A command while it is being timed."""

    def __init__(self, name: str, argv: list[str]) -> None:
        self.name, self.argv, self.program = name, argv, _found(argv[0])
        self.outcome, self.message, self.exit_code = "ok", "", 0
        self.samples: list[Sample] = []
        self.n_warm_up = 0

    def fail(self, outcome: str, message: str) -> None:
        """Mark as failed and discard the measurements."""
        self.outcome, self.message = outcome, message


class Sample:
    """One execution: its times in nanoseconds, and its peak memory."""

    def __init__(self, pid: int, began_ns: int, limit_s: float) -> None:
        with _limit(pid, limit_s) as passed:
            _, self.status, usage = os.wait4(pid, 0)
            ended_ns = time.perf_counter_ns()
        self.window = (began_ns, ended_ns)
        self.wall_ns = ended_ns - began_ns
        self.is_timeout = bool(passed)
        self.user_ns, self.system_ns = usage.ru_utime * 1e9, usage.ru_stime * 1e9
        self.peak_rss_bytes = usage.ru_maxrss * _KIB


def main(text: str) -> int:
    """Time the requested commands.

    The fields of the JSON object: `commands` (name and arguments), `shell` (its arguments),
    `n_warm_up`, `prepare`, `timeout_s`, `allows_failure`, `budget_s`, `seed`.
    """
    rows = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    wanted = json.loads(text)
    began_at = time.time()
    subjects = [Subject(name, argv) for name, argv in wanted["commands"]]
    order = list(subjects)
    random.Random(wanted["seed"]).shuffle(order)  # noqa: S311 - an order, not a secret
    shell_ns = _shell_ns(wanted["shell"])
    for subject in order:
        for _ in range(wanted["n_warm_up"]):
            _execute(subject, wanted, keep=False)
    before = time.monotonic(), _waited_s()
    _take_turns(order, wanted)
    pressure = _pressure(*before)
    with rows:
        rows.writelines(
            json.dumps(_row(each, shell_ns, began_at, pressure)) + "\n" for each in subjects
        )
    return 0


def _take_turns(order: list[Subject], wanted: dict[str, Any]) -> None:
    """Execute all commands in turns, forwards and backwards, until the budget is used up."""
    deadline = time.monotonic() + wanted["budget_s"]
    for turn in range(_MOST_TURNS):
        alive = [each for each in order if each.outcome == "ok"]
        for subject in alive if turn % 2 == 0 else alive[::-1]:
            _execute(subject, wanted, keep=True)
        if time.monotonic() >= deadline:
            return


def _execute(subject: Subject, wanted: dict[str, Any], *, keep: bool) -> None:
    if subject.outcome != "ok" or not _prepared(subject, wanted["prepare"]):
        return
    if subject.program is None or wanted["prepare"]:
        subject.program = _found(subject.argv[0])
    try:
        sample = _run(subject.argv, wanted["timeout_s"], subject.program)
    except FileNotFoundError:
        subject.fail("not_started", _missing(subject.argv[0], subject.program))
        return
    except OSError as error:
        subject.fail("not_started", f"{subject.argv[0]}: {error.strerror or error}")
        return
    subject.n_warm_up += not keep
    subject.exit_code = os.waitstatus_to_exitcode(sample.status)
    if sample.is_timeout:
        subject.fail("timeout", f"timed out after {wanted['timeout_s']:g} s")
    elif subject.exit_code and not wanted["allows_failure"]:
        subject.fail(*_failure(subject.exit_code))
    elif keep:
        subject.samples.append(sample)


def _missing(name: str, program: str | None) -> str:
    """Return why a program could not be started: the system has one error for both."""
    if program is not None and os.path.exists(program):  # noqa: PTH110 - the process must stay small
        return f"the interpreter that {name} names in its first line does not exist"
    where = "" if os.sep in name else " in a folder of PATH"
    return f"there is no program {name}{where}"


def _found(name: str) -> str | None:
    """Return the path of a program, so that its search is not timed; None if there is none."""
    if os.sep in name:
        return name
    paths = (os.path.join(folder, name) for folder in os.get_exec_path())  # noqa: PTH118 - as above
    return next((path for path in paths if os.access(path, os.X_OK)), None)


def _failure(exit_code: int) -> tuple[str, str]:
    if exit_code > 0:
        return "nonzero", f"ended with exit status {exit_code}"
    return "signal", f"ended by {signal.Signals(-exit_code).name}"


def _prepared(subject: Subject, command: str | None) -> bool:
    """Run the untimed shell command before an execution, which is not started if it fails."""
    if command is None:
        return True
    status = os.waitstatus_to_exitcode(_run(["sh", "-c", command], None).status)
    if status:
        subject.fail("not_started", f"--prepare ended with exit status {status}: {command}")
    return not status


def _run(argv: list[str], limit_s: float | None, program: str | None = None) -> Sample:
    """Execute a command without input; its output is discarded."""
    nothing = [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_RDWR, 0) for fd in (0, 1)]
    began_ns = time.perf_counter_ns()
    start = os.posix_spawnp if program is None else os.posix_spawn
    pid = start(program or argv[0], argv, os.environ, file_actions=nothing, setpgroup=0)
    return Sample(pid, began_ns, limit_s or 0.0)


@contextlib.contextmanager
def _limit(pid: int, seconds: float) -> Iterator[list[bool]]:
    """Kill a process and its process group when its time is up."""
    passed: list[bool] = []

    def kill(_number: int, _frame: object) -> None:
        passed.append(True)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)

    signal.signal(signal.SIGALRM, kill)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield passed
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def _shell_ns(shell: list[str] | None) -> float | None:
    """Measure the time of a shell that does nothing."""
    if shell is None:
        return None
    program = _found(shell[0])
    return median(_run([*shell, ""], None, program).wall_ns for _ in range(_SHELL_STARTS))


def _waited_s() -> float | None:
    """Return how long tasks of all programs together have waited for a CPU."""
    try:
        with open("/proc/pressure/cpu", encoding="ascii") as counters:  # noqa: PTH123 - the process must stay small
            return int(counters.readline().rpartition("total=")[2]) / 1e6
    except (OSError, ValueError):
        return None


def _pressure(begin_s: float, waited_s: float | None) -> float | None:
    """Return the fraction of the time since then in which tasks waited."""
    now_s = _waited_s()
    if waited_s is None or now_s is None:
        return None
    return min(1.0, max(0.0, now_s - waited_s) / max(1e-9, time.monotonic() - begin_s))


def _row(
    subject: Subject, shell_ns: float | None, began_at: float, pressure: float | None
) -> dict[str, Any]:
    # An execution faster than the shell's own start-up time counts as 0, not as negative.
    walls = [max(1.0, sample.wall_ns - (shell_ns or 0)) for sample in subject.samples]
    if walls and median(walls) <= 1.0:
        subject.fail(
            "no_time", "it takes no longer than the shell that starts it: leave out --shell"
        )
    is_ok = subject.outcome == "ok" and bool(walls)
    # The system reports at least the memory of this process when it started the command.
    floor_bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _KIB
    peak_bytes = max((sample.peak_rss_bytes for sample in subject.samples), default=0)
    return {
        "name": subject.name,
        "outcome": subject.outcome,
        "message": subject.message,
        "exit_code": subject.exit_code,
        "samples_ns": walls if is_ok else [],
        "windows": [sample.window for sample in subject.samples],
        "user_ns": fmean(each.user_ns for each in subject.samples) if is_ok else None,
        "system_ns": fmean(each.system_ns for each in subject.samples) if is_ok else None,
        "peak_rss_bytes": peak_bytes if peak_bytes > floor_bytes else None,
        "peak_rss_floor_bytes": floor_bytes,
        "shell_ns": shell_ns,
        "cpu_pressure": pressure,
        "n_warm_up": subject.n_warm_up,
        "began_at": began_at,
        "step_ns": time.get_clock_info("perf_counter").resolution * 1e9,
    }


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1]))
