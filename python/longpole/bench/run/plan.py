"""The jobs of a run, stored with its results so that it can be resumed."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from longpole.bench.run.job import Job, read_jobs
from longpole.errors import ResultsError
from longpole.files import new_file

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

__all__ = ["Plan", "check_plan_can_be_written", "plan_path"]

_SCHEMA: Final = "longpole.bench.plan/1"


@dataclass(frozen=True, slots=True)
class Plan:
    """The jobs of a run, and its limits and devices.

    The file contains the environment variables of jobs with their values, which are needed to run
    them again. It is readable only by its owner.
    """

    jobs: tuple[Job, ...]
    given: Mapping[str, Any]

    @classmethod
    def read(cls, path: Path) -> Plan:
        """Read a plan.

        Raises
        ------
        ResultsError
            The file does not exist, or is not a plan.
        """
        try:
            fields = _fields(path)
            jobs = tuple(read_jobs(json.dumps(job) for job in fields["jobs"]))
            return cls(jobs, dict(fields["given"]))
        except FileNotFoundError:
            message = (
                f"{path} is missing; it lists the jobs to run\n"
                "hint: `longpole bench run` writes it next to the results"
            )
            raise ResultsError(message) from None
        except (ValueError, KeyError, TypeError) as error:
            message = f"{path} does not say what to run: {error}"
            raise ResultsError(message) from error

    def write(self, path: Path, *, force: bool) -> None:
        """Write the plan; with `force` replace an earlier one.

        Raises
        ------
        ResultsError
            A plan exists without `force`, or a file that is not a plan (it is left unchanged), or
            the plan cannot be written.
        """
        check_plan_can_be_written(path, force=force)
        text = json.dumps(
            {
                "schema": _SCHEMA,
                "given": dict(self.given),
                "jobs": [job.to_dict() for job in self.jobs],
            }
        )
        try:
            with new_file(path, force=force, private=True) as unfinished:
                unfinished.write_text(text, encoding="utf-8")
        except OSError as error:
            message = f"{path} cannot be written: {error.strerror or error}"
            raise ResultsError(message) from error


def plan_path(results: Path) -> Path:
    """Return the plan file of a results file; it need not exist."""
    return results.with_suffix(".plan.json")


def check_plan_can_be_written(path: Path, *, force: bool) -> None:
    """Raise if a file exists, unless it is an earlier plan and `force` is given.

    Raises
    ------
    ResultsError
        A file exists that must not be replaced.
    """
    if not (path.exists() or path.is_symlink()):
        return
    if not _is_plan(path):
        message = (
            f"{path} is not the plan of a run, so it is not replaced\n"
            "hint: choose another name for the results file; its plan has the same name"
        )
        raise ResultsError(message)
    if not force:
        message = (
            f"{path} contains the plan of another run\n"
            "hint: give another name for the results, or replace it with -f"
        )
        raise ResultsError(message)


def _is_plan(path: Path) -> bool:
    try:
        return not path.is_symlink() and _fields(path).get("schema") == _SCHEMA
    except (OSError, ValueError):
        return False


def _fields(path: Path) -> dict[str, Any]:
    fields = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(fields, dict):
        message = "it is not a JSON object"
        raise ValueError(message)  # noqa: TRY004 - as JSON that cannot be read
    return fields
