"""`longpole bench run`: jobs from a file, or one command, on devices."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from longpole.cli.failures import answer_failures

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from longpole.bench import Job

__all__ = ["run", "runner_options"]


class RunCommand(click.Command):
    """Keeps what stands behind `--` apart: it is a command, never a file of jobs."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Cut the arguments at the first `--`."""
        ctx.meta["command"] = []
        if "--" in args:
            middle = args.index("--")
            args, ctx.meta["command"] = args[:middle], args[middle + 1 :]
        return super().parse_args(ctx, args)


def runner_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that `run` and `resume` share."""
    options = [
        click.option(
            "--devices",
            metavar="LIST",
            help="0,2 or UUIDs or `all`, `cpu`, `fake:N`.  [default: 0, the first visible]",
        ),
        click.option("--timeout", "timeout_s", type=float, help="Seconds a job may take.  [60]"),
        click.option("--total-timeout", "total_timeout_s", type=float, help="Seconds for all."),
        click.option("--grace", "grace_s", type=float, help="Seconds between TERM and KILL.  [5]"),
        click.option("--retries", type=int, help="Further attempts at a job that failed.  [0]"),
        click.option("--quiet", is_flag=True, help="Show no progress."),
        click.option(
            "--to",
            "write_as",
            type=click.Choice(["text", "json"]),
            default="text",
            help="How to print the summary.  [default: text]",
        ),
    ]
    for option in reversed(options):
        function = option(function)
    return function


@click.command(cls=RunCommand)
@click.argument("jobs", metavar="[JOBS.jsonl | -- COMMAND...]", required=False)
@click.option("-o", "--results", metavar="FILE", help="Where to write results.")
@click.option("-f", "--force", is_flag=True, help="Replace results that are there.")
@click.option("--repeat", default=1, show_default=True, help="Run every job so many times.")
@click.option(
    "--format",
    "format_name",
    default="auto",
    metavar="auto|none|NAME",
    help="How results are printed; `none`: the exit status decides.  [default: auto]",
)
@runner_options
@answer_failures
def run(
    jobs: str | None,
    *,
    results: str | None,
    force: bool,
    repeat: int,
    format_name: str,
    **options: Any,
) -> int:
    r"""Run jobs on devices, one at a time on each, and write down every result.

    JOBS.jsonl holds one job a line: {"argv": ["./prof", "1024"], "key": "gemm_1024",
    "tags": {"m": 1024}, "format": "auto", "timeout_s": 20, "env": {}}. Or give one
    command behind --. No shell is used.

    Exit code 1 means that a job failed; its record says why. After Ctrl-C what is
    finished is on disk: see `longpole bench resume`.

    \b
    Examples:
      longpole bench run jobs.jsonl --devices 0,1 --timeout 20
      longpole bench run --repeat 10 -- ./gemm_profiler 1024 1024 1024
    """
    from longpole.cli.bench_session import Session, run_session

    command = click.get_current_context().meta["command"]
    wanted = _jobs(jobs, command, format_name) * repeat
    path = Path(results) if results else _default_results(jobs)
    if force:
        path.unlink(missing_ok=True)
    session = Session(path, wanted, options)
    session.save()
    return run_session(session, resume=False)


def _jobs(path: str | None, command: Sequence[str], format_name: str) -> list[Job]:
    from longpole.bench import Job, open_extractor, read_jobs

    open_extractor(format_name)
    if bool(path) == bool(command):
        message = "give a file of jobs, or -- and a command"
        raise ValueError(message)
    if command:
        return [Job(tuple(command), format=format_name)]
    with click.open_file(str(path), encoding="utf-8") as lines:
        jobs = list(read_jobs(lines, default_format=format_name))
    if not jobs:
        message = f"{path} holds no job"
        raise ValueError(message)
    return jobs


def _default_results(jobs: str | None) -> Path:
    if jobs and jobs != "-":
        return Path(Path(jobs).stem + ".results.jsonl")
    return Path(time.strftime("bench-%Y%m%d-%H%M%S.jsonl"))
