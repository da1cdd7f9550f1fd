"""How long to wait, and how often to try."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from longpole.devices import Busy

__all__ = ["LONGEST_S", "Policy"]

LONGEST_S = 1_000_000_000
"""The longest time that can be asked for; 30 years are as good as no limit."""


@dataclass(frozen=True, slots=True)
class Policy:
    """Limits and retries of a runner. All times are seconds on a clock that never jumps.

    Parameters
    ----------
    timeout_s
        How long a job may take that has no limit of its own; None is no limit.
    total_timeout_s
        How long all jobs together may take, from the first on.
    grace_s
        How long a job has to clean up between SIGTERM and SIGKILL.
    drain_s
        How long what a job left behind may go on after the job itself has ended.
    retries
        How often a job that failed (by exit status or signal) is run again.
        Neither a hang nor an output without results gets better by itself.
    launch_attempts
        How often to try to start a job when the system refuses for a reason
        that can pass: no memory, no process to spare, a file being written.
    launch_delay_s
        How long to wait in between.
    busy
        What to do with a device that somebody else uses when the first job is to begin
        there: `refuse` it, `wait` until it is idle, or `allow` it.
    lock_clock_mhz
        The clock at which a device is held while jobs run on it; None leaves it alone. The guard
        of the device lets it go at its end, even where the runner was killed.
    """

    timeout_s: float | None = 60.0
    total_timeout_s: float | None = None
    grace_s: float = 5.0
    drain_s: float = 0.3
    retries: int = 0
    launch_attempts: int = 3
    launch_delay_s: float = 5.0
    busy: Busy = "refuse"
    lock_clock_mhz: int | None = None

    def __post_init__(self) -> None:
        for name in ("timeout_s", "total_timeout_s"):
            value = getattr(self, name)
            if value is not None and not 0 < value <= LONGEST_S:
                message = f"{name} must be above 0 and at most {LONGEST_S:,} s, not {value!r}"
                raise ValueError(message)
        if self.busy not in {"refuse", "wait", "allow"}:
            message = f"busy must be refuse, wait or allow, not {self.busy!r}"
            raise ValueError(message)
        for name in ("grace_s", "drain_s", "launch_delay_s"):
            value = getattr(self, name)
            if not 0 <= value <= LONGEST_S:
                message = f"{name} must be 0 to {LONGEST_S:,} s, not {value!r}"
                raise ValueError(message)
