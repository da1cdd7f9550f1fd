"""Errors for profiles that cannot be read, each with a hint."""

from __future__ import annotations

import os

from longpole.errors import TraceError


def profile_error(path: str | os.PathLike[str], reason: str, code: str, hint: str) -> TraceError:
    """Return the error for a profile, located at its first byte."""
    error = TraceError(f"{os.fspath(path)}: {reason}")
    error.code, error.hint, error.path, error.offset = code, hint, os.fspath(path), 0
    return error


def not_exported(path: str | os.PathLike[str], folder: str | os.PathLike[str]) -> TraceError:
    """Return the error for raw files of the collector, which only its own exporter can read."""
    reason = "binary data of the Ascend collector, which longpole does not read"
    hint = (
        f"export it with `msprof --export=on --output={os.fspath(folder)}`, or with analyse() of "
        "torch_npu.profiler or mindspore.profiler, and give the folder again"
    )
    return profile_error(path, reason, "not_exported", hint)
