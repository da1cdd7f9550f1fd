"""A run at the terminal: what was asked for, kept beside the results, and how it goes."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from longpole.bench import Outcome, Policy, Runner, fingerprint_changes, read_jobs, read_results
from longpole.cli import exit_codes
from longpole.cli.bench_progress import show_progress
from longpole.cli.listing import envelope, printable
from longpole.devices import select

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from longpole.bench import Job, Record

__all__ = ["Session", "run_session"]

SCHEMA: Final = "longpole.bench.run/1"
PLAN_SCHEMA: Final = "longpole.bench.plan/1"
LIMITS: Final = ("timeout_s", "total_timeout_s", "grace_s", "retries")
SHOWN_FAILURES: Final = 10


@dataclass(frozen=True, slots=True)
class Session:
    """A run: where its results go, its jobs, and the options it was given."""

    results: Path
    jobs: Sequence[Job]
    options: Mapping[str, Any]

    @classmethod
    def load(cls, results: Path, overrides: Mapping[str, Any]) -> Session:
        """Read what was asked for when these results were begun.

        Raises
        ------
        ValueError
            There is no such note, or it is none.
        """
        path = _plan_path(results)
        try:
            plan = json.loads(path.read_text())
        except FileNotFoundError:
            message = (
                f"{path} is missing, which says what to run\n"
                f"hint: `longpole bench run` wrote it beside {results.name}"
            )
            raise ValueError(message) from None
        jobs = list(read_jobs(json.dumps(job) for job in plan["jobs"]))
        given = {name: value for name, value in overrides.items() if value is not None}
        return cls(results, jobs, {**plan["options"], **given})

    def save(self) -> None:
        """Note what was asked for, so that the run can be resumed."""
        if self.results.exists() and self.results.stat().st_size:
            message = (
                f"{self.results} holds results already\n"
                f"hint: `longpole bench resume {self.results}`, or another name with -o, or -f"
            )
            raise ValueError(message)
        plan = {
            "schema": PLAN_SCHEMA,
            "options": {name: self.options.get(name) for name in (*LIMITS, "devices")},
            "jobs": [job.to_dict() for job in self.jobs],
        }
        path = _plan_path(self.results)
        unfinished = path.with_name(f"{path.name}.{os.getpid()}")
        unfinished.write_text(json.dumps(plan))
        unfinished.replace(path)


def run_session(session: Session, *, resume: bool) -> int:
    """Run what is to be run, show how it goes, and sum it up."""
    devices = session.options.get("devices")
    limits = {name: session.options.get(name) for name in LIMITS}
    policy = Policy(**{name: value for name, value in limits.items() if value is not None})
    warnings = _changes_since(session.results) if resume else []
    for warning in warnings:
        sys.stderr.write(f"warning: {warning}\n")
    started = time.monotonic()
    with (
        _stopped_by_signals(),
        _told_how_to_go_on(session.results),
        Runner(
            select(devices.split(",") if devices else None),
            results=session.results,
            resume=resume,
            policy=policy,
        ) as runner,
        show_progress(runner, quiet=bool(session.options.get("quiet"))) as console,
    ):
        failures = _Failures(console)
        records = runner.run(session.jobs, failures.show)
    summary = {
        "results": str(session.results),
        "n_jobs": len(records),
        "seconds": round(time.monotonic() - started, 3),
        "outcomes": dict(sorted(Counter(record.outcome for record in records).items())),
        "quarantined": runner.quarantined,
    }
    _print_summary(summary, session, warnings)
    return _exit_code(records)


class _Failures:
    """Shows the first failures as they come."""

    def __init__(self, console: Any) -> None:
        self._console = console
        self._count = 0

    def show(self, record: Record) -> None:
        """Print a line about a record that is none of a success."""
        if record.outcome is Outcome.OK:
            return
        self._count += 1
        if self._count <= SHOWN_FAILURES:
            text = f"{record.outcome}: {record.id}: {record.message}"
            self._console.write(printable(text) + "\n")
        elif self._count == SHOWN_FAILURES + 1:
            self._console.write("further failures are not shown here\n")


def _print_summary(summary: Mapping[str, Any], session: Session, warnings: Sequence[str]) -> None:
    if session.options.get("write_as") == "json":
        around = envelope(SCHEMA, [str(session.results)], warnings=warnings)
        sys.stdout.write(json.dumps({**around, "data": summary}, indent=1) + "\n")
        return
    outcomes = ", ".join(f"{count} {name}" for name, count in summary["outcomes"].items())
    lines = [f"{summary['n_jobs']} jobs in {summary['seconds']:.1f} s: {outcomes}"]
    lines += [f"quarantined {uuid}: {why}" for uuid, why in summary["quarantined"].items()]
    lines.append(f"results: {summary['results']}")
    sys.stdout.write("\n".join(map(printable, lines)) + "\n")


def _exit_code(records: Sequence[Record]) -> int:
    outcomes = {record.outcome for record in records}
    if Outcome.DEVICE_ERROR in outcomes:
        return exit_codes.MISSING
    return exit_codes.OK if outcomes <= {Outcome.OK} else exit_codes.FINDINGS


def _changes_since(results: Path) -> list[str]:
    """Say what is not as it was when the last record was written."""
    records = read_results(results).records
    earlier = next((record.environment for record in reversed(records) if record.environment), {})
    return [f"since the run began, {change}" for change in fingerprint_changes(earlier)]


@contextmanager
def _stopped_by_signals() -> Iterator[None]:
    """Let SIGTERM and SIGHUP end the run as Ctrl-C does: jobs ended, results kept."""

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
def _told_how_to_go_on(results: Path) -> Iterator[None]:
    try:
        yield
    except (KeyboardInterrupt, SystemExit):
        sys.stderr.write(
            f"interrupted; what was finished is in {results}\n"
            f"hint: go on with `longpole bench resume {results}`\n"
        )
        raise


def _plan_path(results: Path) -> Path:
    return results.with_suffix(".plan.json")
