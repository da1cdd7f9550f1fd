"""The critical path of one window, and its length after changes."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from longpole.engine.critical_path.changes import Change, parts_of
from longpole.files.writing import new_file, new_files
from longpole.report.blocks import Notes
from longpole.report.paths import KindTotal, NameTotal, path_blocks
from longpole.rows.frames import frame_of, typed
from longpole.words.wording import duration, operator_name, share

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Sequence

    import polars as pl

    from longpole._core import CriticalPath as CorePath
    from longpole.files.damage import Damage
    from longpole.report.blocks import Block

    OperatorsOf = Callable[[Sequence[int]], list[tuple[int, str | None, str | None] | None]]

_TOP: Final = 10
_FRAMES: Final = ("segments", "slack", "nodes", "edges", "violations", "sync_dependencies")


class CriticalPath:
    """The critical path of one window; returned by `Trace.critical_path`.

    Frames are computed on first use and cached. The column `event` is a row of `Trace.events`.
    """

    def __init__(
        self,
        core: CorePath,
        source: Path | None = None,
        damage: Damage | None = None,
        operators_of: OperatorsOf | None = None,
        *,
        times: str = "as recorded",
        recorded: Callable[[], str | None] = lambda: None,
    ) -> None:
        self._core = core
        self._source = source
        self._damage = damage
        self._operators_of = operators_of
        self.times: Final = times
        self._recorded = recorded

    @property
    def window(self) -> tuple[int, int]:
        """Start and end of the window, in ns."""
        return self._core.window

    @property
    def length_ns(self) -> int:
        """Length of the window."""
        start_ns, end_ns = self.window
        return end_ns - start_ns

    @property
    def damage(self) -> Damage | None:
        """Damage of the trace; see `Trace.damage`."""
        return self._damage

    @property
    def status(self) -> Literal["ok", "inconclusive"]:
        """`inconclusive` if more than a tenth of the window is unexplained.

        Half of `undecided_ns` counts as unexplained.
        """
        return "inconclusive" if self._core.is_inconclusive else "ok"

    @property
    def core(self) -> CorePath:
        """The path as an object of the compiled core."""
        return self._core

    @property
    def inferred_ns(self) -> int:
        """Time on the path whose cause is inferred, not recorded."""
        return self._core.inferred_ns

    @property
    def unexplained_ns(self) -> int:
        """Time on the path that nothing in the trace explains.

        The sum of `unexplained`, `unrecorded`, `graph_gap` and `before_first_event`.
        """
        return self._core.unexplained_ns

    @property
    def doubtful_ns(self) -> int:
        """Time on the path with the certainty `doubtful`; see `segments`."""
        return self._core.doubtful_ns

    @property
    def undecided_ns(self) -> int:
        """Time before a choice that the trace does not decide.

        In a CUDA graph that the trace launches once or twice, a node may have waited for either of
        two nodes that ended at the same time. The path follows one of them.
        """
        return self._core.undecided_ns

    @property
    def clock_shifts(self) -> tuple[tuple[int | None, int | None, int], ...]:
        """Devices whose clock disagrees with the host clock: device number, time and shift in ns.

        The path uses the timestamps of such a device plus the shift; `Trace.events` keeps those of
        the file. A clock that jumps has several shifts, each from a recorded time on; the time of
        the first is None.
        """
        return tuple(self._core.clock_shifts)

    @property
    def behind_unexplained_ns(self) -> int:
        """Time before the last unexplained segment.

        The path was followed back through that segment, so all of this time depends on it.
        """
        return self._core.behind_unexplained_ns

    @cached_property
    def segments(self) -> pl.DataFrame:
        """The path in time order; the segments tile the window.

        Columns: `kind`, `event` (null if the time is not that of an event), `name`, `lane` (row in
        `Trace.lanes`), `start_ns`, `duration_ns`, `evidence` (`order`, `correlation`, `recorded`,
        `replayed`, `inferred` or `none`), `certainty` (`certain`; `likely`: inferred; `doubtful`:
        inferred if another event is also possible, before an unexplained gap, or if the clocks of
        host and device do not show which of two ways is the path; `unknown`), `rival` (the other
        possible event; null for none) and `busy_ns` (for unexplained time, how long any device was
        busy during it; null otherwise).
        """
        return frame_of(self._core.segments())

    def kernel_segments(self) -> pl.DataFrame:
        """Return `event` and `duration_ns` of the parts of the path in which a kernel ran."""
        return frame_of(self._core.kernel_segments())

    @cached_property
    def by_kind(self) -> pl.DataFrame:
        """Time by kind, largest first: `kind`, `duration_ns`, `share`, `count`."""
        import polars as pl

        numbers = {"duration_ns": pl.Int64, "share": pl.Float64, "count": pl.Int64}
        return typed(pl.DataFrame(self.kind_totals, schema={"kind": pl.String, **numbers}))

    @cached_property
    def by_name(self) -> pl.DataFrame:
        """Time by kind and name, largest first.

        The columns of `by_kind`, and `longest_event`: the event of the longest segment.
        """
        import polars as pl

        words = {"kind": pl.String, "name": pl.String}
        numbers = {"duration_ns": pl.Int64, "share": pl.Float64, "count": pl.Int64}
        schema = {**words, **numbers, "longest_event": pl.UInt32}
        return typed(pl.DataFrame(self.name_totals, schema=schema))

    @cached_property
    def kind_totals(self) -> list[KindTotal]:
        """Return the rows of `by_kind` as plain values."""
        return [
            KindTotal(
                kind=row["kind"],
                duration_ns=row["duration_ns"],
                share=row["share"],
                count=row["count"],
            )
            for row in self._totals(by_name=False)
        ]

    @cached_property
    def name_totals(self) -> list[NameTotal]:
        """Return the rows of `by_name` as plain values."""
        return self._totals(by_name=True)

    def operators_of(self, events: Sequence[int]) -> list[str | None]:
        """Return the operator that launched each GPU activity, with its input shapes."""
        found = self._operators_of(events) if self._operators_of else [None] * len(events)
        return [operator_name(*operator[1:]) if operator else None for operator in found]

    @property
    def waits(self) -> tuple[int, int]:
        """Waits for GPU activities on the path: number inferred, and total number."""
        return self._core.waits_on_path()

    @cached_property
    def slack(self) -> pl.DataFrame:
        """How much later each event can end without moving the end of the window.

        Columns: `event`, `slack_ns`; null if no dependency leads from the event to the end.
        """
        return frame_of(self._core.slack())

    @cached_property
    def nodes(self) -> pl.DataFrame:
        """Starts and ends of events: `node`, `time_ns`, `event`, `side`, `reached_by`.

        `reached_by` is the row in `edges` of the edge that determines the time of the node.
        """
        return frame_of(self._core.nodes())

    @cached_property
    def edges(self) -> pl.DataFrame:
        """Dependencies from node `source` to node `target`.

        Further columns: `kind`, `role` (why the edge exists), `event` (the event whose time it is),
        `evidence`, `minimum_latency_ns`, `on_path`.
        """
        return frame_of(self._core.edges())

    def work(self, steps: Sequence[tuple[int, int]]) -> pl.DataFrame:
        """Sum the work of each event in each step: `event`, `kind`, `row` of the step, `work_ns`.

        Waiting is not work: for a blocking call, only the time outside the wait counts. `steps` are
        the times at which the host entered and left each step, in order.
        """
        return frame_of(self._core.work(steps))

    @cached_property
    def violations(self) -> pl.DataFrame:
        """Edges that lead back in time because the clocks disagree.

        The columns of `edges` up to `evidence`, and `back_ns`, the time by which each edge leads
        back.
        """
        return frame_of(self._core.violations())

    @cached_property
    def counts(self) -> dict[str, int]:
        """Counts of each kind of uncertainty in the graph."""
        return self._core.counts()

    @cached_property
    def sync_dependencies(self) -> pl.DataFrame:
        """Which call or stream waited for which in the window; see `Trace.sync_dependencies`."""
        return frame_of(self._core.sync_dependencies())

    def sync_dependencies_in(self, span: tuple[int, int]) -> pl.DataFrame:
        """Return the waits that end between two times, in ns, also outside the window."""
        return frame_of(self._core.sync_dependencies(span))

    def what_if(self, changes: Change | Iterable[Change]) -> WhatIf:
        """Compute the length of the window after hypothetical changes.

        Parameters
        ----------
        changes
            Changes of type `Scale`, `Drop`, `Replace`, `Insert` and `RemoveWait`. Their `matching`
            is a regular expression, found anywhere in the name.

        Raises
        ------
        ValueError
            A kind, pattern or factor is invalid.
        TypeError
            Something in `changes` is not a change.
        """
        changed = self._core.what_if([parts_of(change) for change in _listed(changes)])
        path = CriticalPath(
            changed,
            self._source,
            self._damage,
            self._operators_of,
            times=self.times,
            recorded=self._recorded,
        )
        return WhatIf(path, self)

    def gains_ns(self, sets: Iterable[Iterable[Change]]) -> list[int]:
        """Compute how much shorter the window is after each of several sets of changes.

        These are the values of `what_if(changes).gain_ns`. Many are computed together, which is
        faster, and they have no paths.

        Raises
        ------
        ValueError, TypeError
            As for `what_if`.
        """
        rows = [[parts_of(change) for change in _listed(changes)] for changes in sets]
        return [self.length_ns - length_ns for length_ns in self._core.lengths_ns(rows)]

    def n_chosen(self, changes: Change | Iterable[Change]) -> list[int]:
        """Count the graph edges that each change applies to; 0 if it changes nothing.

        Raises
        ------
        ValueError, TypeError
            As for `what_if`.
        """
        return self._core.n_chosen([parts_of(change) for change in _listed(changes)])

    def explain(self, top: int = 5, *, width: int = 100) -> str:
        """Describe what the window waited for, with the `top` names that took the most time.

        Lines are at most `width` characters long; names are shortened to fit. The event next to a
        name is the one with the longest segment, a row of `Trace.events`.
        """
        from longpole.report.text import Terminal, text

        return text(self._blocks(top), Terminal(width))

    def to_perfetto(
        self,
        path: str | os.PathLike[str],
        *,
        beside: str | os.PathLike[str] | None = None,
        counters: bytes = b"",
        force: bool = False,
    ) -> None:
        """Write the path as a trace for ui.perfetto.dev, with arrows between its segments.

        Parameters
        ----------
        path
            The file to write.
        beside
            The trace of the path. If given, the output is a zip archive of both, which Perfetto
            opens as one. The trace itself is only read.
        counters
            Counter tracks to write as well, from `longpole.counter_tracks`.
        force
            Replace the file if it exists.

        Raises
        ------
        FileExistsError
            The file exists and `force` is not given, or it is the trace itself.
        """
        from zipfile import ZIP_STORED, ZipFile

        pieces = [*self._core.perfetto(), counters]
        inputs = [Path(file) for file in (self._source, beside) if file is not None]
        with new_file(Path(path), force=force, inputs=inputs) as unfinished:
            if beside is None:
                with unfinished.open("wb") as file:
                    file.writelines(pieces)
                return
            with ZipFile(unfinished, "w", ZIP_STORED) as archive:
                archive.write(beside, Path(beside).name)
                archive.writestr("critical_path.pftrace", b"".join(pieces))

    def write_parquet(self, directory: str | os.PathLike[str], *, force: bool = False) -> None:
        """Write all frames to a directory, as `segments.parquet` and so on.

        Raises
        ------
        FileExistsError
            A file exists and `force` is not given.
        """
        folder = Path(directory)
        folder.mkdir(parents=True, exist_ok=True)
        files = [folder / f"{name}.parquet" for name in _FRAMES]
        with new_files(files, force=force) as unfinished:
            for name, file in zip(_FRAMES, unfinished, strict=True):
                getattr(self, name).write_parquet(file)

    def _repr_html_(self) -> str:
        from longpole.report.html import html

        return html(self._blocks(_TOP))

    def __repr__(self) -> str:
        kinds = self.kind_totals[:3]
        shares = ", ".join(f"{row['kind']} {share(row['share'])}" for row in kinds)
        length = f"{duration(self.length_ns)} {self.times}"
        return f"<longpole.CriticalPath: {length}, {shares or 'empty'}>"

    def _blocks(self, top: int) -> list[Block]:
        recorded = self._recorded()
        return [*path_blocks(self, top), *([Notes([recorded])] if recorded else [])]

    def _totals(self, *, by_name: bool) -> list[NameTotal]:
        length_ns = max(self.length_ns, 1)
        return [
            NameTotal(
                kind=kind,
                name=name,
                duration_ns=duration_ns,
                share=duration_ns / length_ns,
                count=count,
                longest_event=longest_event,
            )
            for kind, name, duration_ns, count, longest_event in self._core.totals(by_name=by_name)
        ]


class WhatIf:
    """The length and the critical path of a window after a change."""

    def __init__(self, changed: CriticalPath, observed: CriticalPath) -> None:
        self.critical_path = changed
        self._observed = observed

    @property
    def makespan_ns(self) -> int:
        """Length of the window up to the last event that can end it."""
        return self.critical_path.length_ns

    @property
    def gain_ns(self) -> int:
        """How much shorter the window would be."""
        return self._observed.length_ns - self.makespan_ns

    def gain_in(self, other: CriticalPath) -> int:
        """Return how much shorter another step or annotation of the trace would be, in ns.

        The whole trace is recomputed once for all steps and annotations.

        Raises
        ------
        ValueError
            The paths belong to two traces, a window was given by two times, or the other one begins
            before this one, which begins where it was recorded.
        """
        return other.length_ns - self.critical_path.core.length_in(other.core)

    def __repr__(self) -> str:
        observed_ns = self._observed.length_ns
        return f"<longpole.WhatIf: {duration(observed_ns)} -> {duration(self.makespan_ns)}>"


def _listed(changes: Change | Iterable[Change]) -> list[Change]:
    given = [changes] if isinstance(changes, Change) else list(changes)
    if not all(isinstance(change, Change) for change in given):
        message = f"changes are Scale, Drop, Replace, Insert and RemoveWait, not {changes!r}"
        raise TypeError(message)
    return given
