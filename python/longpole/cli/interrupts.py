"""Delays Ctrl-C while a module is imported.

An interrupt during an import, or in extensions that import others on first use (polars imports
numpy), would end in a traceback or a panic.
"""

from __future__ import annotations

import signal
import sys
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from types import FrameType

__all__ = ["delay_interrupts"]

_IMPORTS: Final = "<frozen importlib._bootstrap>"
_AGAIN_S: Final = 0.01


def delay_interrupts() -> None:
    """Make Ctrl-C raise `KeyboardInterrupt` only when no import is in progress."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGALRM, _interrupt)
        signal.signal(signal.SIGINT, _interrupt)


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Raise `KeyboardInterrupt`, or try again soon."""
    if _is_importing(frame):
        signal.setitimer(signal.ITIMER_REAL, _AGAIN_S)
    else:
        signal.default_int_handler(number, frame)


def _is_importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename == _IMPORTS:
            return True
        frame = frame.f_back
    return "longpole.cli.program" not in sys.modules
