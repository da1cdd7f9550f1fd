"""A run started from the terminal: its plan, stored with the results, and its progress."""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

from longpole.bench import Outcome, Policy, ResultsFile, Runner, fingerprint_changes
from longpole.bench.records.store import make_room
from longpole.bench.run.cluster import Cluster
from longpole.bench.run.job import Plan, check_plan_can_be_written, plan_path
from longpole.cli.answer import exit_codes
from longpole.cli.answer.live import Live, bar, is_watched
from longpole.cli.answer.problems import usage_errors
from longpole.devices import select
from longpole.report.blocks import Headline, Notes
from longpole.report.document import Document, Warned
from longpole.words.wording import count, escape

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from longpole.bench import Job, Record, Status
    from longpole.cli.ask.options import Options
    from longpole.devices import Found
    from longpole.report.blocks import Block

_SCHEMA: Final = "longpole.bench.run/1"
_LIMITS: Final = ("timeout_s", "total_timeout_s", "grace_s", "retries", "busy", "lock_clock_mhz")
_SHOWN_FAILURES: Final = 10
_RAY: Final = "ray"
_REFRESHES_PER_S: Final = 4


@dataclass(frozen=True, slots=True)
class Session:
    """A run: its results file, its jobs, and its limits and devices."""

    results: Path
    jobs: Sequence[Job]
    given: Mapping[str, Any]

    @classmethod
    def load(cls, results: Path, given: Mapping[str, Any]) -> Session:
        """Read the plan of these results.

        Raises
        ------
        ResultsError
            The plan does not exist, or is not a plan.
        """
        plan = Plan.read(plan_path(results))
        now = {name: value for name, value in given.items() if value is not None}
        return cls(results, plan.jobs, {**plan.given, **now})

    @property
    def plan(self) -> Path:
        """Path of the stored plan."""
        return plan_path(self.results)

    def make_room(self, *, force: bool) -> None:
        """Check that results and plan can be started; `force` removes results of an earlier run.

        Raises
        ------
        ResultsError
            A file exists that must not be replaced.
        """
        if not force:
            make_room(self.results, force=False)
        check_plan_can_be_written(self.plan, force=force)
        if force:
            make_room(self.results, force=True)  # only after all checks, since it removes files

    def save(self, *, force: bool) -> None:
        """Store the plan, so that the run can be resumed."""
        Plan(tuple(self.jobs), self.given).write(self.plan, force=force)

    def policy(self) -> Policy:
        """Return the limits, or the defaults."""
        limits = {name: self.given.get(name) for name in _LIMITS}
        with usage_errors():
            return Policy(**{name: value for name, value in limits.items() if value is not None})

    def devices(self) -> Found | Cluster:
        """Find the given devices, here or on every node of a Ray cluster."""
        given = self.given.get("devices") or ""
        is_ray = given == _RAY or given.startswith(f"{_RAY}:")
        listed = given.removeprefix(_RAY).removeprefix(":") if is_ray else given
        names = listed.split(",") if listed else []
        return Cluster.find(names) if is_ray else select(names)

    def open_runner(self, *, resume: bool, force: bool) -> Runner:
        """Acquire the devices and, once everything else is valid, the results file."""
        found = self.devices()
        policy = self.policy()
        if not resume:
            self.make_room(force=force)
        record_env = self.given.get("record_env") or ()
        return Runner(
            found, results=self.results, resume=resume, policy=policy, record_env=record_env
        )


@dataclass(frozen=True, slots=True)
class Summary:
    """The result of a run."""

    results: str
    """Path of the results file."""
    n_jobs: int
    n_done_before: int
    """Number of jobs that an earlier run completed."""
    duration_ns: int
    outcomes: dict[str, int]
    """Number of jobs by outcome."""
    quarantined: dict[str, str]
    """Failed devices by UUID, with the reason."""


def run_session(
    session: Session, options: Options, *, resume: bool = False, force: bool = False
) -> int:
    """Run the jobs, show the progress, and summarize the run."""
    warnings = changes_since(session.results) if resume else []
    begun = time.monotonic()
    with (
        stopped_by_signals(),
        continued_by(f"bench run --resume -o {session.results}", str(session.results)),
        session.open_runner(resume=resume, force=force) as runner,
        _show_progress(runner) as console,
    ):
        if not resume:
            session.save(force=force)
        records = runner.run(session.jobs, _Failures(console).show)
    summary = Summary(
        results=str(session.results),
        n_jobs=len(records),
        n_done_before=runner.status().n_known,
        duration_ns=round((time.monotonic() - begun) * 1e9),
        outcomes=dict(sorted(Counter(record.outcome for record in records).items())),
        quarantined=runner.quarantined,
    )
    return options.emit((_document(summary, warnings), _exit_code(records)))


class _Failures:
    """Shows the first failures as they occur."""

    def __init__(self, console: Writable) -> None:
        self._console = console
        self._count = 0

    def show(self, record: Record) -> None:
        """Print a line about a record that is not a success."""
        if record.outcome is Outcome.OK:
            return
        self._count += 1
        if self._count <= _SHOWN_FAILURES:
            message = record.message.replace("\nhint: ", "; ")
            said = f"{record.outcome}: {record.id}: {message}"
            self._console.write(escape(said) + "\n")
        elif self._count == _SHOWN_FAILURES + 1:
            self._console.write("further failures are not shown here\n")


def _document(summary: Summary, warnings: Sequence[Warned]) -> Document:
    return Document(
        schema=_SCHEMA,
        input={"path": summary.results},
        warnings=warnings,
        data=summary,
        blocks=lambda: _summary_blocks(summary),
        records=lambda: [{"outcome": name, "n_jobs": n} for name, n in summary.outcomes.items()],
    )


def _summary_blocks(summary: Summary) -> list[Block]:
    outcomes = ", ".join(f"{number} {name}" for name, number in summary.outcomes.items())
    seconds = summary.duration_ns / 1e9
    before = f" ({count(summary.n_done_before)} done before)" if summary.n_done_before else ""
    headline = f"{count(summary.n_jobs, 'job')}{before} in {seconds:.1f} s: {outcomes}"
    notes = [f"quarantined {uuid}: {why}" for uuid, why in summary.quarantined.items()]
    return [Headline(headline), Notes([*notes, f"results: {summary.results}"])]


def _exit_code(records: Sequence[Record]) -> int:
    outcomes = {record.outcome for record in records}
    if Outcome.DEVICE_ERROR in outcomes:
        return exit_codes.MISSING
    return exit_codes.OK if outcomes <= {Outcome.OK} else exit_codes.FINDINGS


def changes_since(results: Path) -> list[Warned]:
    """Print and return warnings about changes since the last record was written."""
    earlier: Mapping[str, Any] = {}
    for record in ResultsFile(results).records():
        earlier = record.environment or earlier
    warnings = [
        Warned(
            "environment_changed",
            1,
            f"since the run began, {change}",
            "do not compare results from before and after",
        )
        for change in fingerprint_changes(earlier)
    ]
    for warned in warnings:
        sys.stderr.write(f"warning: {escape(warned.message)}\n")
    return warnings


@contextmanager
def stopped_by_signals() -> Iterator[None]:
    """Make SIGTERM and SIGHUP end the run as Ctrl-C does: jobs ended, results kept."""

    def stop(number: int, _frame: object) -> None:
        sys.exit(128 + number)

    wanted = (signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, stop) for number in wanted}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def continued_by(command: str, kept: str = "") -> Iterator[None]:
    """Print which command continues an interrupted run, and where its finished jobs are."""
    try:
        yield
    except (KeyboardInterrupt, SystemExit):
        where = f"; finished jobs are in {kept}" if kept else ""
        sys.stderr.write(f"interrupted{where}\nhint: continue with `longpole {command}`\n")
        raise


class Writable(Protocol):
    """A stream for lines that stay on the screen above the progress bar."""

    def write(self, text: str) -> object:
        """Write a line above the progress."""
        ...


@contextmanager
def _show_progress(runner: Runner) -> Iterator[Writable]:
    """Show a bar and the state of each device; yield a stream for permanent lines."""
    if not is_watched():
        yield sys.stderr
        return
    live, started = Live(), time.monotonic()
    done = threading.Event()

    def redraw() -> None:
        while not done.wait(1 / _REFRESHES_PER_S):
            with lock:
                live.show(list(_lines(runner.status(), time.monotonic() - started)))

    class Above:
        """Writes above the redrawn lines."""

        def write(self, text: str) -> None:
            with lock:
                live.write_above(text)

    lock = threading.Lock()
    thread = threading.Thread(target=redraw, daemon=True)
    thread.start()
    try:
        yield Above()
    finally:
        done.set()
        thread.join()
        live.clear()


def _lines(status: Status, elapsed_s: float) -> Iterator[str]:
    done = status.n_jobs - status.n_open
    share = done / status.n_jobs if status.n_jobs else 0.0
    left = f", {elapsed_s / share * (1 - share):.0f} s left" if share else ""
    outcomes = ", ".join(f"{count} {name}" for name, count in sorted(status.outcomes.items()))
    yield f"{bar(share)} {done}/{status.n_jobs}, {elapsed_s:.0f} s{left}  {outcomes}"
    for uuid, running in sorted(status.running.items()):
        waits = f" (waits for {running.waits_for})" if running.waits_for else ""
        yield escape(f"  {uuid}: {running.id}, {running.seconds:.0f} s{waits}")
    for uuid, reason in sorted(status.quarantined.items()):
        yield escape(f"  {uuid}: quarantined, {reason}")
