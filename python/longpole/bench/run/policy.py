"""Time limits and retries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from longpole.devices import Busy

__all__ = ["LONGEST_S", "Policy"]

LONGEST_S = 1_000_000_000
"""The longest time limit; 30 years are as good as none."""


@dataclass(frozen=True, slots=True)
class Policy:
    """Limits and retries of a runner. All times are seconds on a monotonic clock.

    Parameters
    ----------
    timeout_s
        Time limit of a job without its own; None for no limit.
    total_timeout_s
        Time limit of all jobs together, from the first on.
    grace_s
        Time for a job to clean up between SIGTERM and SIGKILL.
    drain_s
        Time that processes left by a job may run after the job itself has ended.
    retries
        How often a failed job (by exit status or signal) is repeated. Hangs and outputs without
        results are not repeated.
    launch_attempts
        How often to try to start a job if the system refuses for a temporary reason: out of memory
        or processes, a file being written.
    launch_delay_s
        Time to wait between these attempts.
    busy
        What to do if another program uses a device when its first job is about to start: `refuse`
        the device, `wait` until it is idle, or `allow` it.
    lock_clock_mhz
        Clock to lock while jobs run on a device; None leaves it unchanged. The guard of the device
        releases it at its end, even if the runner was killed.
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
