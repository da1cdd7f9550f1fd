"""`longpole bench run`: run jobs on devices and record every result."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from longpole.cli.answer.problems import require, usage_errors
from longpole.cli.ask.files import CommandBehindDashes, OutputPath, behind_dashes
from longpole.cli.ask.numbers import COUNT
from longpole.cli.ask.options import Options, answer_options, answers, force_option, resume_option
from longpole.cli.ask.runner import runner_options

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from longpole.bench import Job
    from longpole.cli.bench.session import Session


@click.command(cls=CommandBehindDashes)
@answers("longpole.cli.bench.session:Summary")
@click.argument("jobs", metavar="[JOBS.jsonl | -- COMMAND...]", required=False)
@click.option(
    "-o",
    "--output",
    "results",
    type=OutputPath(),
    metavar="FILE",
    help="Results file to write.",
)
@force_option
@resume_option
@click.option("--key", metavar="KEY", help="Key of the results of the command after --.")
@click.option(
    "--runs",
    "repeat",
    type=COUNT,
    metavar="N",
    default=1,
    show_default=True,
    help="Number of runs of each job.",
)
@click.option(
    "--job-format",
    default="auto",
    show_default=True,
    metavar="auto|none|NAME|regex=PATTERN",
    help="Format of the results that jobs print; with `none`, the exit status decides.",
)
@runner_options
@answer_options
def run(
    *,
    jobs: str | None,
    results: str | None,
    force: bool,
    resume: bool,
    key: str | None,
    repeat: int,
    job_format: str,
    options: Options,
    **limits: Any,
) -> int:
    """Run jobs on devices, one at a time on each device, and record every result.

    JOBS.jsonl has one job per line: {"argv": ["./prof", "1024"], "key": "gemm_1024",
    "tags": {"m": 1024}, "format": "auto", "timeout_s": 20, "env": {}}. Or
    give one command after --. No shell is used.

    The exit code is 1 if a job failed; its record says why. After Ctrl-C, all finished jobs are
    on disk. --resume runs the others, and those that were cancelled or lost their device, with
    the limits and devices of the run unless you give others; name the run by JOBS.jsonl or
    its results file (-o).

    \b
    Examples:
      longpole bench run jobs.jsonl --devices 0,1 --timeout 20
      longpole bench run jobs.jsonl --resume
      longpole bench run --runs 10 --key gemm_1024 -- ./gemm_profiler 1024 1024 1024
    """
    from longpole.cli.bench.session import Session, run_session

    if resume:
        return run_session(_earlier(jobs, results, job_format, limits), options, resume=True)
    with usage_errors():
        wanted = _jobs(jobs, behind_dashes() or [], key, job_format) * repeat
    session = Session(Path(results) if results else _default_results(jobs), wanted, limits)
    for written in (session.results, session.plan):
        is_jobs = jobs and _is_same(written, Path(jobs))
        require(not is_jobs, f"{written} is the file of jobs; choose another output file with -o")
    return run_session(session, options, force=force)


def _is_same(path: Path, other: Path) -> bool:
    return path.exists() and other.exists() and path.samefile(other)


def _jobs(path: str | None, command: Sequence[str], key: str | None, job_format: str) -> list[Job]:
    from longpole.bench import Job, read_jobs

    require(bool(path) != bool(command), "give a file of jobs, or -- and a command")
    if command:
        return [Job(tuple(command), key=key or "", format=job_format)]
    with click.open_file(str(path), "rb") as lines:
        try:
            jobs = list(read_jobs(_decoded(lines), default_format=job_format))
        except ValueError as error:
            message = f"{path}: {error}"
            raise ValueError(message) from error
    require(jobs, f"{path} has no job")
    return jobs


def _decoded(lines: Iterable[bytes]) -> Iterator[str]:
    for number, line in enumerate(lines, start=1):
        try:
            yield line.decode()
        except UnicodeDecodeError as error:
            message = f"line {number}: not UTF-8 at its byte {error.start}"
            raise ValueError(message) from error


def _default_results(jobs: str | None) -> Path:
    if jobs and jobs != "-":
        return Path(Path(jobs).stem + ".results.jsonl")
    return Path(time.strftime("bench-%Y%m%d-%H%M%S.jsonl"))


def _earlier(
    jobs: str | None, results: str | None, job_format: str, limits: dict[str, Any]
) -> Session:
    """Return the run to continue.

    Raises
    ------
    click.UsageError
        It is not named, or the file of jobs has changed since it began.
    """
    from longpole.cli.bench.session import Session

    require(
        behind_dashes() is None, "--resume takes the command from the earlier run: leave -- out"
    )
    is_named = results or (jobs and jobs != "-")
    require(
        is_named, "name the run to continue by its file of jobs, or by its results file with -o"
    )
    session = Session.load(Path(results) if results else _default_results(jobs), limits)
    if jobs:
        with usage_errors():
            wanted = {(job.key, job.digest()) for job in _jobs(jobs, [], None, job_format)}
        is_same = wanted == {(job.key, job.digest()) for job in session.jobs}
        require(
            is_same,
            f"{jobs} has other jobs than the run in {session.results}: run them with another -o, "
            f"or continue with --resume -o {session.results}",
        )
    return session
