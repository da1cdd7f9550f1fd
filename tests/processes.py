"""Processes of tests end with their test, whatever happens in it."""

from __future__ import annotations

import subprocess
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def started(command: list[Any], **options: Any) -> Iterator[subprocess.Popen[Any]]:
    """Start a process, and kill it at the end unless it has ended by itself.

    `with subprocess.Popen(...)` waits at its end instead: without limit, if what follows fails.
    """
    process = subprocess.Popen(command, **options)
    try:
        yield process
    finally:
        process.kill()
        for pipe in (process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()
        process.wait()
        if process.stdin is not None:
            with suppress(BrokenPipeError):
                process.stdin.close()
