"""Progress of a run on standard error, if that is a terminal."""

from __future__ import annotations

import sys
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, Protocol

from longpole.cli.answer.live import Live, bar, is_watched
from longpole.wording import escape

if TYPE_CHECKING:
    from collections.abc import Iterator

    from longpole.bench import Runner, Status

__all__ = ["Writable", "show_progress"]

REFRESHES_PER_S: Final = 4


class Writable(Protocol):
    """A stream for permanent lines."""

    def write(self, text: str) -> object:
        """Write a line above the progress."""
        ...


@contextmanager
def show_progress(runner: Runner, *, enabled: bool) -> Iterator[Writable]:
    """Show a bar and the state of each device; yield a stream for permanent lines."""
    if not (enabled and is_watched()):
        yield sys.stderr
        return
    live, started = Live(), time.monotonic()
    done = threading.Event()

    def redraw() -> None:
        while not done.wait(1 / REFRESHES_PER_S):
            with lock:
                live.show(list(_lines(runner.status(), time.monotonic() - started)))

    class Above:
        """Writes above the redrawn lines."""

        def write(self, text: str) -> None:
            with lock:
                live.write_above(text)

    lock = threading.Lock()
    thread = threading.Thread(target=redraw, daemon=True)
    thread.start()
    try:
        yield Above()
    finally:
        done.set()
        thread.join()
        live.clear()


def _lines(status: Status, elapsed_s: float) -> Iterator[str]:
    done = status.n_jobs - status.n_open
    share = done / status.n_jobs if status.n_jobs else 0.0
    left = f", {elapsed_s / share * (1 - share):.0f} s left" if share else ""
    outcomes = ", ".join(f"{count} {name}" for name, count in sorted(status.outcomes.items()))
    yield f"{bar(share)} {done}/{status.n_jobs}, {elapsed_s:.0f} s{left}  {outcomes}"
    for uuid, running in sorted(status.running.items()):
        waits = f" (waits for {running.waits_for})" if running.waits_for else ""
        yield escape(f"  {uuid}: {running.id}, {running.seconds:.0f} s{waits}")
    for uuid, reason in sorted(status.quarantined.items()):
        yield escape(f"  {uuid}: quarantined, {reason}")
