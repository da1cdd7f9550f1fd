"""Delays Ctrl-C while a module is imported, or while polars runs.

An interrupt during an import would end in a traceback. One in Python code that the Rust code of
polars calls would end in a panic.
"""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from types import FrameType

_IMPORTS: Final = "<frozen importlib._bootstrap>"
_POLARS: Final = f"{os.sep}polars{os.sep}"
_AGAIN_S: Final = 0.01
_HAS_TIMERS: Final = hasattr(signal, "setitimer")


def delay_interrupts() -> None:
    """Make Ctrl-C raise `KeyboardInterrupt` only outside imports and calls of polars."""
    if _HAS_TIMERS and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        with suppress(ValueError):  # not in the main thread
            signal.signal(signal.SIGALRM, _interrupt)
            signal.signal(signal.SIGINT, _interrupt)


def stop_at_interrupts() -> bool:
    """Make Ctrl-C end the process without a message: the command has answered.

    Returns
    -------
    bool
        Whether an interrupt was still delayed.
    """
    if not _HAS_TIMERS or signal.getsignal(signal.SIGINT) is not _interrupt:
        return False
    left_s, _ = signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return left_s > 0


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Raise `KeyboardInterrupt`, or try again after a short time."""
    if _must_wait(frame):
        signal.setitimer(signal.ITIMER_REAL, _AGAIN_S)
    else:
        signal.default_int_handler(number, frame)


def _must_wait(frame: FrameType | None) -> bool:
    while frame is not None:
        file = frame.f_code.co_filename
        if file == _IMPORTS or _POLARS in file:
            return True
        frame = frame.f_back
    return "longpole.cli.program" not in sys.modules
