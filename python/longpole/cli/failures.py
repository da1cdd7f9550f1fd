"""What the command says when it cannot go on: one sentence, a hint, an exit code."""

from __future__ import annotations

import functools
import sys
from typing import TYPE_CHECKING, ParamSpec

import click

from longpole.cli import exit_codes

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["answer_failures", "complain"]

P = ParamSpec("P")


def answer_failures(verb: Callable[P, int]) -> Callable[P, int]:
    """Turn what a verb raises into a message and an exit code, unless `--debug` was given."""

    @functools.wraps(verb)
    def answered(*args: P.args, **kwargs: P.kwargs) -> int:
        from longpole.errors import DeviceError, LongpoleError, MissingDependencyError

        if click.get_current_context().find_root().params.get("debug"):
            return verb(*args, **kwargs)
        try:
            return verb(*args, **kwargs)
        except BrokenPipeError:
            raise
        except (DeviceError, MissingDependencyError) as error:
            return complain("missing", str(error), exit_codes.MISSING)
        except ValueError as error:
            return complain("usage", str(error), exit_codes.USAGE)
        except OSError as error:
            message = f"{error.filename}: {error.strerror}" if error.filename else str(error)
            return complain("file", message, exit_codes.UNREADABLE)
        except LongpoleError as error:
            return complain("file", str(error), exit_codes.UNREADABLE)

    return answered


def complain(code: str, message: str, exit_code: int) -> int:
    """Print an error and give its exit code."""
    sys.stderr.write(f"error[{code}]: {message}\n")
    return exit_code
