"""One side of a comparison: the steps of a run, and the work that was done in each."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from longpole.analyses.diff.stacks import keys_of
from longpole.damage import blaming
from longpole.errors import WindowError
from longpole.frames import frame_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy as np
    import polars as pl
    from numpy.typing import NDArray

    from longpole.analyses.diff.stacks import Keys
    from longpole.critical_path.path import CriticalPath
    from longpole.trace import Trace
    from longpole.verdict import Verdict
    from longpole.verdict.parts import Unit

__all__ = ["Side", "one_of", "side_of"]

# What is done, not waited for: the kinds of edges whose length is work.
_WORK: Final = (
    "operator",
    "runtime",
    "host_gap",
    "data_loading",
    "kernel",
    "copy",
    "communication",
)
_WORK_ROLES: Final = ("thread_order", "device_work")
_NOT_LAUNCHED: Final = -2
_EVENT_COLUMNS: Final = (
    "event",
    "kind",
    "name",
    "start_ns",
    "duration_ns",
    "parent",
    "depth",
    "lane",
    "stream",
)


@dataclass(frozen=True)
class Side:
    """A run, and the steps of it that are compared."""

    trace: Trace
    verdict: Verdict
    unit: Unit
    steps: pl.DataFrame
    """The columns of `Trace.steps`; one row for the window where there are no steps."""
    has_steps: bool
    _step_paths: dict[int, CriticalPath] = field(default_factory=dict)

    @cached_property
    def events(self) -> pl.DataFrame:
        """Give the columns of `Trace.events` that are compared."""
        return frame_of(self.trace.core.events(list(_EVENT_COLUMNS)))

    def at(self, rows: pl.Series, **columns: str) -> pl.DataFrame:
        """Give some columns of events, by new names, at some rows."""
        return self.events.select(**columns)[rows]

    @cached_property
    def durations_ns(self) -> NDArray[np.int64]:
        """Give how long each event took; -1 where it has no duration."""
        return self.events["duration_ns"].fill_null(-1).to_numpy()

    @cached_property
    def keys(self) -> Keys:
        """Give the keys of events."""
        return keys_of(self.trace, self.events)

    @property
    def n_steps(self) -> int:
        """How many steps there are."""
        return self.steps.height

    @cached_property
    def lengths_ns(self) -> list[int]:
        """Give how long each step took, from the end of the step before to its own."""
        return list((self.steps["window_end_ns"] - self.steps["window_start_ns"]).to_list())

    @property
    def mean_ns(self) -> float:
        """Give how long a step takes on average."""
        return sum(self.lengths_ns) / self.n_steps

    @property
    def median_row(self) -> int:
        """Give the row of the step of median length, the lower of two."""
        order = sorted(range(self.n_steps), key=lambda row: (self.lengths_ns[row], row))
        return order[(self.n_steps - 1) // 2]

    @cached_property
    def path(self) -> CriticalPath:
        """Give the critical path through all steps."""
        return self._path_of_all()

    def _path_of_all(self) -> CriticalPath:
        start_ns, end_ns = self.steps["window_start_ns"][0], self.steps["window_end_ns"][-1]
        return self.trace.critical_path(between=(start_ns, end_ns))

    @property
    def account_path(self) -> CriticalPath:
        """Give the path that the account is about: through all steps, or of the median one."""
        return self.path if self.is_contiguous else self.step_path(self.median_row)

    @property
    def n_account(self) -> int:
        """How many steps that path goes through."""
        return self.n_steps if self.is_contiguous else 1

    @property
    def is_contiguous(self) -> bool:
        """Whether each step begins where the one before ended."""
        starts, ends = self.steps["window_start_ns"], self.steps["window_end_ns"]
        return bool((starts[1:] == ends[:-1]).all())

    def step_path(self, row: int) -> CriticalPath:
        """Give the critical path of one step; it is kept."""
        if not self.has_steps:
            return self.path
        if row not in self._step_paths:
            self._step_paths[row] = self.trace.critical_path(step=self.steps["step"][row])
        return self._step_paths[row]

    def rows_at(self, times_ns: NDArray[np.int64]) -> NDArray[np.int64]:
        """Give the row of the step in which the host was at these times; -1 for none."""
        import numpy as np

        starts = self.steps["start_ns"].to_numpy()
        ends = starts + self.steps["duration_ns"].to_numpy()
        rows = np.searchsorted(starts, times_ns, side="right") - 1
        # Between two steps the host is still on its way from the one before.
        is_next = (self.steps["window_start_ns"][1:] == self.steps["window_end_ns"][:-1]).to_numpy()
        until = np.append(
            np.where(is_next, np.maximum(ends[:-1], starts[1:]), ends[:-1]), ends[-1:]
        )
        is_inside = (rows >= 0) & (times_ns < until[np.maximum(rows, 0)])
        return np.where(is_inside, rows, -1)

    @cached_property
    def work(self) -> pl.DataFrame:
        """List the work of each step: `event`, `kind`, `row` (of the step), `work_ns`.

        Waiting is not work: of a call that waits, only what it does itself counts. Rows are in
        the order of their events.
        """
        import numpy as np
        import polars as pl

        # The frames of the whole graph are large: they are not kept with the path.
        path = self._path_of_all()
        edges = path.edges.filter(one_of("kind", _WORK), one_of("role", _WORK_ROLES))
        edges = edges.select("source", "event", "kind", "minimum_latency_ns")
        times_ns = path.nodes["time_ns"].gather(edges["source"]).to_numpy()
        del path
        rows = self.rows_at(times_ns)
        events = edges["event"].fill_null(self.events.height).to_numpy().astype(np.int64)
        rows = np.where(self._launched[events] == _NOT_LAUNCHED, rows, self._launched[events])
        kinds = edges["kind"].to_physical().to_numpy().astype(np.int64)
        place = (events * (kinds.max(initial=0) + 1) + kinds) * self.n_steps + rows
        order = np.argsort(place, kind="stable")
        order = order[rows[order] >= 0]
        firsts = np.flatnonzero(np.diff(place[order], prepend=-1))
        work_ns = edges["minimum_latency_ns"].to_numpy()[order]
        found = order[firsts]
        return edges.select("event", "kind")[found].with_columns(
            row=pl.Series(rows[found]),
            work_ns=np.add.reduceat(work_ns, firsts) if len(firsts) else work_ns,
        )

    @cached_property
    def _launched(self) -> NDArray[np.int64]:
        """Give the row of the step in which each event was launched, where its call is known."""
        import numpy as np

        calls = self.trace.launches.select("event", "call").drop_nulls()
        starts_ns = self.events["start_ns"].gather(calls["call"]).to_numpy()
        rows = np.full(self.events.height + 1, _NOT_LAUNCHED)  # the last one is of no event
        rows[calls["event"].to_numpy()] = self.rows_at(starts_ns)
        return rows


def one_of(column: str, values: Iterable[str]) -> pl.Expr:
    """Test a column of categories without making texts of it."""
    import polars as pl

    return pl.any_horizontal(pl.col(column) == value for value in values)


def side_of(trace: Trace, steps: tuple[int, ...] | None = None, **window: Any) -> Side:
    """Choose the steps of a run: those that its verdict rests on.

    Parameters
    ----------
    trace
        The run.
    steps
        The numbers of steps to take instead.
    **window
        `step_name` and `data_load`, as for `Trace.verdict`.

    Raises
    ------
    WindowError
        The trace has no such step, or nothing with a duration.
    """
    import polars as pl

    verdict = trace.verdict(steps[0] if steps and len(steps) == 1 else None, **window)
    numbers = verdict.steps if steps is None else steps
    marked = trace.steps.filter(pl.col("step").is_in(numbers)).sort("start_ns")
    unknown = set(numbers) - set(marked["step"])
    if steps is not None and unknown:
        message = f"the trace has no step {min(unknown)}"
        with blaming(trace.damage):
            raise WindowError(message)
    if verdict.window.unit == "step" and marked.height:
        return Side(trace, verdict, "step", marked, has_steps=True)
    unit, number, start_ns, end_ns, _ = trace.scope()
    alone = pl.DataFrame(
        {
            "step": [number or 0],
            "start_ns": [start_ns],
            "duration_ns": [end_ns - start_ns],
            "window_start_ns": [start_ns],
            "window_end_ns": [end_ns],
        }
    )
    kind: Any = unit
    return Side(trace, verdict, kind, alone, has_steps=False)
