"""Builds that cannot share a process, timed in turns all the same.

Each build has a process of its own, alive for the whole run, and is told over a pipe when it is
its turn; the others wait. So what slows the machine down slows all of them, as for functions in
one process. What belongs to a process stays in the comparison: its memory layout, its core.
"""

from __future__ import annotations

import json
import os
import subprocess
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from longpole.bench.time.clocks import CpuClock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

__all__ = ["Build", "LockstepClock", "builds_running"]


@dataclass(frozen=True, slots=True)
class Build:
    """Where one version of a function lives.

    Parameters
    ----------
    label
        What it is called in keys.
    python
        The interpreter.
    folder
        Where its modules are looked for first.
    """

    label: str
    python: str
    folder: str

    @classmethod
    def parse(cls, text: str, python: str) -> Self:
        """Read `LABEL=PATH`, an interpreter or a folder of modules.

        Parameters
        ----------
        text
            As on the command line.
        python
            The interpreter for a folder.

        Raises
        ------
        ValueError
            It has not that form, or there is no such path.

        Examples
        --------
        >>> Build.parse("old=/", "/usr/bin/python3").folder
        '/'
        """
        label, _, path = text.partition("=")
        if not (label and path) or any(map(str.isspace, label)):
            message = f"{text!r} is not of the form LABEL=PATH"
            raise ValueError(message)
        if Path(path).is_dir():
            return cls(label, python, str(Path(path).absolute()))
        if Path(path).is_file() and os.access(path, os.X_OK):
            return cls(label, str(Path(path).absolute()), "")
        message = f"{path} is neither a folder nor an interpreter"
        raise ValueError(message)


class LockstepClock(CpuClock):
    """Wall time of batches that run in other processes; functions are those of `builds_running`."""

    def time_ns(self, function: Callable[[], object], n_calls: int) -> float:
        """Have a build run `n_calls` calls, and say how long they took."""
        if not isinstance(function, _Running):
            return super().time_ns(function, n_calls)
        return function.time_ns(n_calls)


class _Running:
    """A build in its process."""

    def __init__(self, build: Build, wanted: Mapping[str, Any]) -> None:
        script = Path(__file__).with_name("lockstep_worker.py")
        text = json.dumps({**wanted, "folder": build.folder})
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        self._process = subprocess.Popen(  # noqa: S603 - what the user named
            [build.python, str(script), text],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
        )

    def wait_until_loaded(self) -> None:
        """Wait for the module; raises what its import raised."""
        self._answer()

    def __call__(self) -> None:
        """Run one call."""
        self.time_ns(1)

    def time_ns(self, n_calls: int) -> float:
        """Run a batch."""
        if self._process.stdin is None:
            raise RuntimeError
        self._process.stdin.write(b"%d\n" % n_calls)
        self._process.stdin.flush()
        return float(self._answer()["time_ns"])

    def end(self) -> None:
        """Let the process go."""
        self._process.kill()
        self._process.communicate()

    def _answer(self) -> dict[str, Any]:
        line = self._process.stdout.readline() if self._process.stdout else b""
        if not line:
            message = f"the process of the build ended with exit status {self._process.wait()}"
            raise RuntimeError(message)
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer


@contextmanager
def builds_running(
    builds: Sequence[Build], wanted: Mapping[str, Any]
) -> Iterator[list[Callable[[], object]]]:
    """Start a process for each build; they load one after the other and end with the block.

    Parameters
    ----------
    builds
        In the order to load them in.
    wanted
        `name`, `point` and `factory`, as for `lockstep_worker`.

    Raises
    ------
    ValueError
        A build cannot load its function.
    """
    running: list[_Running] = []
    try:
        for build in builds:
            running.append(_Running(build, wanted))
            try:
                running[-1].wait_until_loaded()
            except RuntimeError as error:
                message = f"{build.label}: {wanted['name']} cannot be loaded: {error}"
                raise ValueError(message) from error
        yield list(running)
    finally:
        for each in running:
            each.end()
