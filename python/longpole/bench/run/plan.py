"""What a run was asked to do, kept beside its results so that it can be resumed."""

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
    """The jobs of a run, and the limits and devices it was given.

    The file holds the environment variables of jobs with their values, without which they
    could not be run again. It can be read by its owner only.
    """

    jobs: tuple[Job, ...]
    given: Mapping[str, Any]

    @classmethod
    def read(cls, path: Path) -> Plan:
        """Read a plan.

        Raises
        ------
        ResultsError
            There is no such file, or it holds no plan.
        """
        try:
            fields = _fields(path)
            jobs = tuple(read_jobs(json.dumps(job) for job in fields["jobs"]))
            return cls(jobs, dict(fields["given"]))
        except FileNotFoundError:
            message = (
                f"{path} is missing, which says what to run\n"
                "hint: `longpole bench run` writes it beside the results"
            )
            raise ResultsError(message) from None
        except (ValueError, KeyError, TypeError) as error:
            message = f"{path} does not say what to run: {error}"
            raise ResultsError(message) from error

    def write(self, path: Path, *, force: bool) -> None:
        """Write the plan; with `force` in place of an earlier one.

        Raises
        ------
        ResultsError
            There is a plan already and no `force`, or a file that is no plan. It is left as
            it is. Or the plan cannot be written.
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
    """Give the file of the plan of some results; it need not exist."""
    return results.with_suffix(".plan.json")


def check_plan_can_be_written(path: Path, *, force: bool) -> None:
    """Refuse to write over anything but, with `force`, an earlier plan.

    Raises
    ------
    ResultsError
        Something is there that is not to be replaced.
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
            f"{path} holds the plan of another run\n"
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
