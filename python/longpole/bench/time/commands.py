"""Commands timed as whole processes: the configuration of a run, and its rows as records."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from subprocess import DEVNULL, STDOUT
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from longpole.bench.records.environment import fingerprint
from longpole.bench.records.record import Measurement, Outcome, Record
from longpole.bench.run.conditions import is_disturbed_by
from longpole.bench.run.job import parse_argv
from longpole.bench.run.output import TAIL_BYTES, Tail

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from longpole.bench.run.conditions import Conditions

_SPARE_EXECUTIONS = 3


@dataclass(frozen=True, slots=True)
class CommandPlan:
    """How commands are executed.

    Parameters
    ----------
    shell
        Shell that starts them, such as `("sh", "-c")`; None for no shell.
    n_warm_up
        Number of untimed executions in each run.
    setup, cleanup
        A `sh` command to run once, before the first run and after the last.
    prepare
        A `sh` command to run before each execution, untimed.
    timeout_s
        Time limit of one execution.
    allows_failure
        Whether executions with a non-zero exit status count.
    texts
        Commands by their names; a name that is missing is the command itself.
    """

    shell: tuple[str, ...] | None = None
    n_warm_up: int = 1
    setup: str | None = None
    prepare: str | None = None
    cleanup: str | None = None
    timeout_s: float = 600.0
    allows_failure: bool = False
    texts: Mapping[str, str] = field(default_factory=dict)

    def argv_of(self, name: str) -> list[str]:
        """Return the arguments of a command.

        Raises
        ------
        ValueError
            The command is empty, or needs a shell and has none.
        """
        text = self.texts.get(name, name)
        if self.shell is not None:
            return [*self.shell, text]
        return list(parse_argv(text))

    def limit_s(self, names: Sequence[str], budget_s: float) -> float:
        """Return the time limit of a run."""
        executions = (self.n_warm_up + _SPARE_EXECUTIONS) * len(names)
        return budget_s + self.timeout_s * executions


def failure_of(option: str, command: str | None) -> str:
    """Run the `sh` command of `--setup` or `--cleanup`; return why it failed, or ""."""
    if command is None:
        return ""
    # A file, not a pipe, which a server that the command starts would keep open.
    with TemporaryFile() as printed:
        ended = subprocess.run(  # noqa: S603 - the user's own command
            ["sh", "-c", command],  # noqa: S607
            stdin=DEVNULL,
            stdout=printed,
            stderr=STDOUT,
            check=False,
        )
        printed.seek(max(0, printed.seek(0, os.SEEK_END) - TAIL_BYTES))
        said = Tail()
        said.feed(printed.read())
    why = f"{option} ended with exit status {ended.returncode}: {command}"
    return ": ".join(filter(None, [why, said.telling_line()])) if ended.returncode else ""


def command_argv(plan: CommandPlan, names: Sequence[str], budget_s: float, seed: str) -> list[str]:
    """Return the process that executes commands in turns."""
    wanted = {
        "commands": [(name, plan.argv_of(name)) for name in names],
        "shell": plan.shell,
        "n_warm_up": plan.n_warm_up,
        "prepare": plan.prepare,
        "timeout_s": plan.timeout_s,
        "allows_failure": plan.allows_failure,
        "budget_s": budget_s,
        "seed": seed,
    }
    script = Path(__file__).with_name("command_worker.py")
    return [sys.executable, "-I", "-S", str(script), json.dumps(wanted)]


def without_disturbed(
    rows: Sequence[dict[str, Any]], conditions: Conditions
) -> list[dict[str, Any]]:
    """Drop the turns taken in bad conditions, and count them."""
    alive = [row for row in rows if row["samples_ns"]]
    windows = [
        (min(begin for begin, _ in turn), max(end for _, end in turn))
        for turn in zip(*(row["windows"] for row in alive), strict=False)
    ]
    drops = conditions.disturbed(windows, heeds_pressure=len(rows) == 1)
    kept = [place for place, is_dropped in enumerate(drops) if not is_dropped]
    during = conditions.summary(windows[0][0], windows[-1][1]) if windows else {}
    found = []
    for row in rows:
        samples_ns = [row["samples_ns"][place] for place in kept] if row in alive else []
        values = {"n_dropped": sum(drops), "during": during}
        found.append({**row, "samples_ns": samples_ns, **values})
    return found


def command_records(
    plan: CommandPlan, rows: Sequence[dict[str, Any]], stderr_line: str
) -> Iterator[Record]:
    """Yield the records of a run from the output of its process."""
    run = uuid4().hex[:12]
    for row in rows:
        outcome = Outcome(row["outcome"])
        said = stderr_line if outcome in {Outcome.NONZERO, Outcome.SIGNAL} else ""
        samples_ns = tuple(row["samples_ns"])
        yield Record(
            id=f"{row['name']} run {run}",
            key=row["name"],
            outcome=outcome,
            argv=tuple(plan.argv_of(row["name"])),
            message=": ".join(filter(None, [row["message"], said])),
            exit_code=row["exit_code"],
            best=Measurement(row["name"], median(samples_ns)) if samples_ns else None,
            started_at=datetime.fromtimestamp(row["began_at"], UTC).isoformat(),
            environment=fingerprint(),
            run=run,
            pair=run if len(rows) > 1 else "",
            samples_ns=samples_ns,
            sampling=_sampling(plan, row),
        )


def _sampling(plan: CommandPlan, row: dict[str, Any]) -> dict[str, Any]:
    fields = (
        "step_ns",
        "user_ns",
        "system_ns",
        "peak_rss_bytes",
        "peak_rss_floor_bytes",
        "shell_ns",
        "cpu_pressure",
    )
    return {
        "clock": "process"
        if plan.shell is None
        else f"process started by {shlex.join(plan.shell)}",
        "cache": None,
        "n_calls": 1,
        "n_warm_up_calls": row["n_warm_up"],
        "n_dropped": row["n_dropped"],
        "is_disturbed": is_disturbed_by(row["n_dropped"], len(row["samples_ns"])),
        "clock_mhz": row["during"].get("clock_mhz"),
        "during": row["during"],
        **{name: row[name] for name in fields},
    }
