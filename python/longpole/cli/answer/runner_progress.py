"""How a run goes, on standard error while that is a terminal."""

from __future__ import annotations

import os
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, Protocol

from longpole.wording import escape

if TYPE_CHECKING:
    from collections.abc import Iterator

    from longpole.bench import Runner, Status

__all__ = ["Writable", "show_progress"]

REFRESHES_PER_S: Final = 4
BAR_CHARACTERS: Final = 30


class Writable(Protocol):
    """Where lines go that shall stay."""

    def write(self, text: str) -> object:
        """Write a line above the progress."""
        ...


@contextmanager
def show_progress(runner: Runner, *, enabled: bool) -> Iterator[Writable]:
    """Show a bar and what each device does; give a place for lines that shall stay."""
    if not enabled or not sys.stderr.isatty() or os.environ.get("CI"):
        yield sys.stderr
        return
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    console = Console(stderr=True)
    started = time.monotonic()

    class Lines:
        """Drawn anew each time, from what the runner says then."""

        def __rich__(self) -> Text:
            elapsed_s = time.monotonic() - started
            return Text("\n".join(_lines(runner.status(), elapsed_s)), no_wrap=True)

    class Above:
        """Prints above the lines that are redrawn."""

        def write(self, text: str) -> Any:
            console.print(text.rstrip("\n"), markup=False, highlight=False)

    with Live(Lines(), console=console, refresh_per_second=REFRESHES_PER_S, transient=True):
        yield Above()


def _lines(status: Status, elapsed_s: float) -> Iterator[str]:
    done = status.n_jobs - status.n_open
    share = done / status.n_jobs if status.n_jobs else 0.0
    bar = "=" * round(share * BAR_CHARACTERS)
    left = f", {elapsed_s / share * (1 - share):.0f} s left" if share else ""
    outcomes = ", ".join(f"{count} {name}" for name, count in sorted(status.outcomes.items()))
    yield f"[{bar:<{BAR_CHARACTERS}}] {done}/{status.n_jobs}, {elapsed_s:.0f} s{left}  {outcomes}"
    for uuid, running in sorted(status.running.items()):
        waits = f" (waits for {running.waits_for})" if running.waits_for else ""
        yield escape(f"  {uuid}: {running.id}, {running.seconds:.0f} s{waits}")
    for uuid, reason in sorted(status.quarantined.items()):
        yield escape(f"  {uuid}: quarantined, {reason}")
