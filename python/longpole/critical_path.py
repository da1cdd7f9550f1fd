"""The chain of work and waiting that decided when a stretch of a trace was over.

`docs/critical-path.md` gives every rule. In short: from the end of a window the path is
walked back, always along what finished last; a wait is replaced by what was waited for;
the segments tile the window to the nanosecond.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from operator import index
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from longpole.wording import count, duration, share, short_names

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Iterator, Sequence

    import polars as pl

    from longpole._core import CriticalPath as CorePath
    from longpole._core import Table

__all__ = ["CriticalPath", "Detach", "Drop", "Scale", "WhatIf"]

# Which of its parts end a step or an annotation.
ENDS: Final = ("period", "last", "cpu", "gpu")

# How exactly a factor is taken: a float like 0.1 means one tenth.
MOST_DENOMINATOR: Final = 10**9

# What `explain` leaves out; the frames hold all.
SMALLEST_SHARE_TOLD: Final = 0.01
MOST_NAMES_TOLD: Final = 5

# What stands beside a name in its line, and how much of a name there is at least.
NARROWEST_LINE: Final = 52
SHORTEST_NAME: Final = 16

# What can be let not wait.
WAITING_KINDS: Final = ("sync_return", "event_wait", "queue_full")

# What the kinds mean, in the words of `explain`.
MEANINGS: Final = {
    "operator": "operators ran on the host",
    "runtime": "calls into the runtime ran on the host",
    "host_gap": "the host did something the profiler has no name for",
    "data_loading": "data was loaded",
    "kernel": "kernels computed",
    "copy": "memory was copied",
    "communication": "devices communicated",
    "launch": "launched work was on its way to an idle device",
    "clock_skew": "the clocks of host and device disagreed",
    "kernel_delay": "the device went from one piece of work to the next",
    "stream_overlap": "work waited for a neighbour on its stream to get going",
    "event_wait": "one stream had been waiting for another",
    "sync_return": "calls that had waited for the device returned",
    "queue_full": "launches that had found the queue of the device full returned",
    "handover": "the forward and the backward thread took turns",
    "graph_gap": "work of a graph started late, and nothing in the trace says why",
    "unexplained": "work started late, and nothing in the trace says why",
    "unrecorded": "calls or work waited for something that the trace does not hold",
    "before_first_event": "the time before the first event that the path leads to",
    "after_last_event": "nothing was recorded any more",
}


@dataclass(frozen=True, kw_only=True)
class Scale:
    """Multiplies the time of what is of a kind and has a matching name.

    Without a kind, it is about work: operators, calls, gaps, data loading, kernels, copies
    and communication. A kernel made faster is not launched faster.
    """

    by: float | Fraction
    kind: str | None = None
    matching: str | None = None


@dataclass(frozen=True, kw_only=True)
class Drop:
    """Lets what is of a kind and has a matching name take no time.

    What depends on it still does.
    """

    kind: str | None = None
    matching: str | None = None


@dataclass(frozen=True, kw_only=True)
class Detach:
    """Lets calls (`sync_return`, `queue_full`) or work (`event_wait`) no longer wait.

    Data that the wait protected is not considered: the gain is a bound from above.
    """

    kind: str = "sync_return"
    matching: str | None = None

    def __post_init__(self) -> None:
        """Refuse what does not wait."""
        if self.kind not in WAITING_KINDS:
            message = f"{self.kind!r} is no kind of waiting; there are {', '.join(WAITING_KINDS)}"
            raise ValueError(message)


Change = Scale | Drop | Detach


class CriticalPath:
    """The critical path of one window; made by `Trace.critical_path`.

    Frames are made on first use and kept. The column `event` is a row of `Trace.events`.
    """

    def __init__(self, core: CorePath, source: Path | None = None) -> None:
        self._core = core
        self._source = source

    @property
    def window(self) -> tuple[int, int]:
        """Where the window begins and ends, in ns."""
        return self._core.window

    @property
    def length_ns(self) -> int:
        """How long the window is."""
        start_ns, end_ns = self.window
        return end_ns - start_ns

    @property
    def status(self) -> Literal["ok", "inconclusive"]:
        """`inconclusive` where more than a tenth of the window is unexplained."""
        return "inconclusive" if self._core.is_inconclusive else "ok"

    @property
    def inferred_ns(self) -> int:
        """The time on the path that rests on a guess."""
        return self._core.inferred_ns

    @property
    def unexplained_ns(self) -> int:
        """The time on the path that nothing in the trace explains.

        It is the time of `unexplained`, `unrecorded`, `graph_gap` and `before_first_event`.
        """
        return self._core.unexplained_ns

    @property
    def doubtful_ns(self) -> int:
        """The time on the path whose certainty is `doubtful`; see `segments`."""
        return self._core.doubtful_ns

    @property
    def behind_unexplained_ns(self) -> int:
        """The time before the last unexplained segment.

        The path was followed back through that segment, so all of this time rests on it.
        """
        return self._core.behind_unexplained_ns

    @cached_property
    def segments(self) -> pl.DataFrame:
        """The path, in order of time; the segments tile the window.

        Columns: `kind`, `event` (whose time it is; null where nobody's), `name`, `lane`
        (row in `Trace.lanes`), `start_ns`, `duration_ns`, `evidence` (`order`,
        `correlation`, `recorded`, `inferred` or `none`), `certainty` (`certain`; `likely`:
        inferred; `doubtful`: inferred where other work may have been meant, or on the way
        back from a gap that nothing explains; `unknown`), `rival` (the event that may have
        been meant instead; null for none) and `busy_ns` (for unexplained time, how long
        some device was busy meanwhile; null otherwise).
        """
        return _frame(self._core.segments())

    @cached_property
    def by_kind(self) -> pl.DataFrame:
        """The time of each kind, the greatest first: `kind`, `duration_ns`, `share`, `segments`."""
        return self._grouped("kind")

    @cached_property
    def by_name(self) -> pl.DataFrame:
        """The time of each kind and name, the greatest first.

        The columns of `by_kind`, and `longest_event`: whose time the longest piece is.
        """
        import polars as pl

        longest = pl.col("event").sort_by("duration_ns", "event", descending=[True, False]).first()
        return self._grouped("kind", "name", longest_event=longest)

    @cached_property
    def slack(self) -> pl.DataFrame:
        """By how much each event may end later before the window's end moves.

        Columns: `event`, `slack_ns`; null where nothing leads from the event to that end.
        """
        return _frame(self._core.slack())

    @cached_property
    def nodes(self) -> pl.DataFrame:
        """The starts and ends of events: `node`, `time_ns`, `event`, `side`, `reached_by`.

        `reached_by` is the row in `edges` of the one that binds the node.
        """
        return _frame(self._core.nodes())

    @cached_property
    def edges(self) -> pl.DataFrame:
        """What had to happen before what: from node `source` to node `target`.

        Columns beside these: `kind`, `role` (why the edge exists), `event` (whose time it
        is), `evidence`, `lag_ns` (what it asks for at the least), `on_path`.
        """
        return _frame(self._core.edges())

    @cached_property
    def violations(self) -> pl.DataFrame:
        """Edges that would lead back in time, as disagreeing clocks make them.

        The columns of `edges` up to `evidence`, and `back_ns`, by how much.
        """
        return _frame(self._core.violations())

    @cached_property
    def counts(self) -> dict[str, int]:
        """Counts of what could not be settled, or settled with a doubt."""
        return self._core.counts()

    @cached_property
    def sync_dependencies(self) -> pl.DataFrame:
        """Who waited for whom inside the window; see `Trace.sync_dependencies`."""
        return _frame(self._core.sync_dependencies())

    def what_if(self, changes: Change | Iterable[Change]) -> WhatIf:
        """Compute how long the window would take if some things were different.

        Parameters
        ----------
        changes
            `Scale`, `Drop` and `Detach`. Their `matching` is a regular expression, found
            anywhere in the name.

        Raises
        ------
        ValueError
            A kind, pattern or factor that is none.
        TypeError
            Something that is no change.
        """
        given = [changes] if isinstance(changes, Scale | Drop | Detach) else list(changes)
        if not all(isinstance(change, Scale | Drop | Detach) for change in given):
            message = f"changes are Scale, Drop and Detach, not {changes!r}"
            raise TypeError(message)
        changed = self._core.what_if([_parts(change) for change in given])
        return WhatIf(CriticalPath(changed, self._source), self)

    def ideal(self) -> pl.DataFrame:
        """Compute what the window would take if this or that were free, the best first.

        Columns: `question`, `kind`, `name` (what it is about), `makespan_ns`, `gain_ns`,
        `gain` (as a share of the window).
        """
        import polars as pl

        answers = _frame(self._core.ideal())
        gain_ns = self.length_ns - pl.col("makespan_ns")
        return answers.with_columns(gain_ns=gain_ns, gain=gain_ns / max(self.length_ns, 1))

    def explain(self, top: int = MOST_NAMES_TOLD, *, width: int = 100) -> str:
        """Say in words what the window waited for, with the `top` names that took most of it.

        Names are shortened so that lines are hardly longer than `width`.
        The event beside a name is the one whose time the longest piece is, as a row of
        `Trace.events`.
        """
        lines = [f"{duration(self.length_ns)} passed, of which:"]
        told = [
            (time_ns, part, f"{MEANINGS[kind]} ({kind})")
            for kind, time_ns, part, _ in self.by_kind.iter_rows()
            if part >= SMALLEST_SHARE_TOLD or kind in {"unexplained", "graph_gap"}
        ]
        lines += self._rows(told)
        named = self.by_name.head(top)
        names = short_names(named["name"].to_list(), max(width - NARROWEST_LINE, SHORTEST_NAME))
        told = [
            (time_ns, part, f"{kind}: {name}" + ("" if event is None else f" (event {event})"))
            for name, (kind, _, time_ns, part, _, event) in zip(
                names, named.iter_rows(), strict=True
            )
        ]
        lines += ["", "Most of it:", *self._rows(told)] if told else []
        return "\n".join([*lines, *self._doubts()])

    def to_perfetto(
        self,
        path: str | os.PathLike[str],
        *,
        beside: str | os.PathLike[str] | None = None,
        force: bool = False,
    ) -> None:
        """Write the path as a trace for ui.perfetto.dev, with an arrow from each piece to the next.

        Parameters
        ----------
        path
            The file to write.
        beside
            The trace the path comes from. Then the file is a zip archive of both, which
            Perfetto opens as one; the trace itself is only read.
        force
            Replace the file if it is there already.

        Raises
        ------
        FileExistsError
            The file is there already and `force` is not given, or it is the trace itself.
        """
        from zipfile import ZIP_STORED, ZipFile

        overlay = self._core.perfetto()
        kept = [Path(file) for file in (self._source, beside) if file is not None]
        with _new_file(Path(path), force=force, kept=kept) as half_written:
            if beside is None:
                half_written.write_bytes(overlay)
                return
            with ZipFile(half_written, "w", ZIP_STORED) as archive:
                archive.write(beside, Path(beside).name)
                archive.writestr("critical_path.pftrace", overlay)

    def write_parquet(self, directory: str | os.PathLike[str], *, force: bool = False) -> None:
        """Write every frame into a directory, as `segments.parquet` and so on.

        Raises
        ------
        FileExistsError
            A file is there already and `force` is not given.
        """
        folder = Path(directory)
        folder.mkdir(parents=True, exist_ok=True)
        for name in ("segments", "slack", "nodes", "edges", "violations", "sync_dependencies"):
            with _new_file(folder / f"{name}.parquet", force=force) as half_written:
                getattr(self, name).write_parquet(half_written)

    def __repr__(self) -> str:
        kinds = self.by_kind.head(3).iter_rows()
        shares = ", ".join(f"{kind} {share(part)}" for kind, _, part, _ in kinds)
        return f"<longpole.CriticalPath: {duration(self.length_ns)}, {shares or 'empty'}>"

    def _grouped(self, *keys: str, **more: pl.Expr) -> pl.DataFrame:
        import polars as pl

        length_ns = max(self.length_ns, 1)
        texts = self.segments.with_columns(pl.col(keys).cast(pl.String))
        return (
            texts.group_by(*keys)
            .agg(pl.col("duration_ns").sum(), segments=pl.len().cast(pl.Int64), **more)
            .with_columns(share=pl.col("duration_ns") / length_ns)
            .select(*keys, "duration_ns", "share", "segments", *more)
            .sort("duration_ns", *keys, descending=[True, *(False for _ in keys)])
        )

    def _rows(self, told: list[tuple[int, float, str]]) -> list[str]:
        """Write shares of the window, and as the last what they leave of it."""
        rest_ns = self.length_ns - sum(time_ns for time_ns, _, _ in told)
        if rest_ns:
            told = [*told, (rest_ns, rest_ns / self.length_ns, "all else")]
        return [
            f"  {share(part):>7}  {duration(time_ns):>8}  {what}" for time_ns, part, what in told
        ]

    def _doubts(self) -> list[str]:
        doubts = []
        n_inferred, n_waits = self._waits_on_path()
        inferred = [f"{n_inferred:,} of {count(n_waits, 'wait')} on it"] if n_inferred else []
        if self.inferred_ns:
            inferred.append(f"{share(self.inferred_ns / self.length_ns)} of its time")
        if inferred:
            doubts.append(f"Inferred, for nothing recorded it: {' and '.join(inferred)}.")
        if self.counts["clock_skew"]:
            early = count(self.counts["clock_skew"], "piece")
            doubts.append(f"{early} of work began before the call that launched it.")
        if self.status == "inconclusive":
            doubts.append("So much is unexplained that this is no basis for a decision.")
        return ["", *doubts] if doubts else []

    def _waits_on_path(self) -> tuple[int, int]:
        """Count the waits that the path passes: those inferred, and all."""
        waits = self.sync_dependencies
        on_path = waits.filter(waits["on_path"])
        return int((on_path["evidence"].cast(str) == "inferred").sum()), on_path.height


class WhatIf:
    """How long a window would take, and what it would then wait for."""

    def __init__(self, changed: CriticalPath, observed: CriticalPath) -> None:
        self.critical_path = changed
        self._observed = observed

    @property
    def makespan_ns(self) -> int:
        """How long the window would take, to the last of all that may end it."""
        return self.critical_path.length_ns

    @property
    def gain_ns(self) -> int:
        """By how much it would be shorter."""
        return self._observed.length_ns - self.makespan_ns

    def __repr__(self) -> str:
        observed_ns = self._observed.length_ns
        return f"<longpole.WhatIf: {duration(observed_ns)} -> {duration(self.makespan_ns)}>"


def window_choice(
    step: int | str | None,
    annotation: str | None,
    instance: int,
    between: Sequence[int] | None,
    end: str,
) -> tuple[Any, ...]:
    """Say which window is asked for, as the core takes it."""
    if sum(choice is not None for choice in (step, annotation, between)) > 1:
        message = "step, annotation and between exclude each other"
        raise ValueError(message)
    if end not in ENDS:
        message = f"end is one of {', '.join(ENDS)}, not {end!r}"
        raise ValueError(message)
    try:
        instance = index(instance)
    except TypeError:
        message = f"instance is the number of one annotation, not {instance!r}"
        raise TypeError(message) from None
    if instance and annotation is None:
        message = "instance counts annotations; say which"
        raise ValueError(message)
    if step is not None:
        return ("step", step_number(step), end)
    if annotation is not None:
        if instance < 0:
            message = f"instance counts from 0, not {instance}"
            raise ValueError(message)
        return ("annotation", annotation, instance, "last" if end == "period" else end)
    if between is not None:
        return ("between", *_two_times(between))
    return ("whole",)


def _two_times(between: Sequence[int]) -> tuple[int, int]:
    try:
        start_ns, end_ns = map(index, between)
    except (TypeError, ValueError):
        message = f"between is two times in whole ns, not {between!r}"
        raise TypeError(message) from None
    if end_ns < start_ns:
        message = f"between ends before it starts: {between!r}"
        raise ValueError(message)
    return start_ns, end_ns


def step_number(step: int | str) -> int:
    """Read the number of a step, given as `6`, `"6"` or `"ProfilerStep#6"`."""
    number = re.fullmatch(r"(?:ProfilerStep\s*#\s*)?(-?\d+)", str(step).strip())
    if number is None:
        message = f"a step is a number or ProfilerStep#N, not {step!r}"
        raise ValueError(message)
    return int(number[1])


def _parts(change: Change) -> tuple[str, str | None, str | None, int, int]:
    match change:
        case Detach():
            return ("remove_wait", change.kind, change.matching, 1, 1)
        case Drop():
            return ("scale", change.kind, change.matching, 0, 1)
        case Scale():
            by = _factor(change.by)
            return ("scale", change.kind, change.matching, by.numerator, by.denominator)


def _factor(by: float | Fraction) -> Fraction:
    try:
        exact = by if isinstance(by, Fraction) else Fraction(str(by))
    except ValueError:
        exact = Fraction(-1)
    if not 0 <= exact <= MOST_DENOMINATOR:
        message = f"a factor lies between 0 and {MOST_DENOMINATOR:,}, not {by}"
        raise ValueError(message)
    return exact.limit_denominator(MOST_DENOMINATOR)


@contextmanager
def _new_file(path: Path, *, force: bool, kept: Sequence[Path] = ()) -> Iterator[Path]:
    """Let a file be written under another name, so that it is there as a whole or not at all.

    What is `kept` is not written over.
    """
    if path.exists() and any(other.exists() and path.samefile(other) for other in kept):
        message = f"{path} is the trace itself, which is not written over"
        raise FileExistsError(message)
    if path.exists() and not force:
        message = f"{path} is there already; force=True replaces it"
        raise FileExistsError(message)
    half_written = path.with_name(f"{path.name}.part")
    try:
        yield half_written
        half_written.replace(path)
    finally:
        half_written.unlink(missing_ok=True)


def _frame(table: Table) -> pl.DataFrame:
    """Take a table of the core over, without a copy."""
    import polars as pl

    return pl.DataFrame(table)
