"""A program that ran: its records, its truth, and how to run it again with a change."""

from __future__ import annotations

import gc
import gzip
import io
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from .changes import Change, Changes
from .engine import simulate as simulate_timeline
from .facts import facts_of
from .kineto import Recording, record
from .losses import Losses, hide
from .machine import Machine
from .programs import graphed, inference, training
from .random_programs import random_program
from .text import event, head, plain_number, tail
from .truth import Truth, truth_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from .kineto import Record
    from .program import Program
    from .timeline import Timeline

PROGRAMS: dict[str, Callable[..., Program]] = {
    "training": training,
    "inference": inference,
    "graphed": graphed,
    "random": random_program,
}


def simulate(
    program: Program | str,
    *,
    seed: int = 0,
    machine: Machine | None = None,
    changes: Sequence[Change] = (),
    losses: Losses | None = None,
    python_frames: bool = False,
    shapes: bool = False,
    **options: Any,
) -> Run:
    """Run a program.

    Parameters
    ----------
    program
        A program, or the name of one: `training`, `inference`, `graphed` or `random`.
    seed
        Of the noise, and of the program where it is named.
    machine
        What it runs on; its own seed is replaced.
    changes
        What is different from the program as it is written.
    losses
        What the profiler fails to write down.
    python_frames
        Whether the profiler saw Python functions.
    shapes
        Whether it noted the shapes of tensors.
    **options
        For a program that is named, what it takes: `steps`, `layers` and so on.

    Examples
    --------
    >>> run = simulate("training", seed=1, steps=2)
    >>> [window.name for window in run.truth.windows]
    ['trace', 'step 0', 'step 1', 'step 1 period']
    """
    if isinstance(program, str):
        program = PROGRAMS[program](seed, **options)
    machine = replace(machine or Machine(), seed=seed)
    return Run(program, machine, changes, losses=losses, python_frames=python_frames, shapes=shapes)


class Run:
    """One run of a program on a machine."""

    def __init__(
        self,
        program: Program,
        machine: Machine,
        changes: Sequence[Change] = (),
        *,
        losses: Losses | None = None,
        python_frames: bool = False,
        shapes: bool = False,
    ) -> None:
        self.program = program
        self.machine = machine
        self.changes = tuple(changes)
        self.losses = losses or Losses()
        self.python_frames = python_frames
        self.shapes = shapes

    @cached_property
    def timeline(self) -> Timeline:
        """What happened."""
        changes = Changes(self.changes)
        with _without_collection():
            timeline = simulate_timeline(
                self.program, self.machine, changes, record_python=self.python_frames
            )
        hide(timeline, self.losses, self.machine.seed)
        return timeline

    @cached_property
    def recording(self) -> Recording:
        """What the profiler made of it."""
        timeline = self.timeline
        with _without_collection():
            return record(self.program, self.machine, timeline, shapes=self.shapes)

    @property
    def events(self) -> list[Record]:
        """The records, in the order in which Kineto writes them now, with synchronisation."""
        return self.recording.records

    @cached_property
    def truth(self) -> Truth:
        """What is true of it."""
        timeline, position = self.timeline, self.recording.position
        offsets_ns = map(self.machine.clock_offset_ns, range(self.program.n_devices))
        with _without_collection():
            return truth_of(timeline, position, tuple(offsets_ns))

    def again(self, changes: Sequence[Change]) -> Run:
        """Return the run of the same program, with the same noise, but for some changes."""
        return Run(
            self.program,
            self.machine,
            changes,
            losses=self.losses,
            python_frames=self.python_frames,
            shapes=self.shapes,
        )

    def what_if(self, changes: Sequence[Change]) -> dict[str, int]:
        """Return how long each window takes, in nanoseconds, when something is changed."""
        windows = self.again(changes).truth.windows
        return {window.name: window.duration_ns for window in windows}

    def write(
        self,
        path: str | Path,
        *,
        sync_records: bool = True,
    ) -> list[int]:
        """Write the trace.

        Parameters
        ----------
        path
            The file; it is written anew, compressed where its name ends so.
        sync_records
            Whether there are `cuda_sync` events.

        Returns
        -------
        list of int
            The order: what stands at each position of the file, as a position in `events`.
        """
        order = order_of(self.events, sync_records=sync_records)
        facts = facts_of(self.program, shapes=self.shapes)
        texts = (event(self.events[position], plain_number) for position in order)
        with opened(path) as file:
            file.write(head(facts) + ",".join(texts) + tail(facts))
        return order


def order_of(records: Sequence[Record], *, sync_records: bool) -> list[int]:
    """Return which records are written, by position."""
    return [
        position
        for position, entry in enumerate(records)
        if sync_records or entry.get("cat") != "cuda_sync"
    ]


@contextmanager
def _without_collection() -> Iterator[None]:
    """Keep the collector from looking for garbage where none is made: it took most of the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@contextmanager
def opened(path: str | Path) -> Iterator[IO[str]]:
    """Open a file to write a trace to, compressed where its name ends so.

    The same content gives the same bytes: no name and no time go into a gzip header.
    """
    target = Path(path)
    if target.suffix != ".gz":
        with target.open("w", encoding="utf-8", newline="\n") as file:
            yield file
        return
    with (
        target.open("wb") as raw,
        gzip.GzipFile("", "wb", 6, raw, mtime=0) as packed,
        io.TextIOWrapper(packed, encoding="utf-8", newline="\n") as file,
    ):
        yield file
