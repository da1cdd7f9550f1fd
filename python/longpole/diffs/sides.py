"""One side of a comparison: the steps of a run and the work in each."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final, Literal, cast

from longpole.diffs.stacks import keys_of
from longpole.engine.question import Question
from longpole.errors import WindowError
from longpole.files.damage import blaming
from longpole.rows.frames import frame_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    import numpy as np
    import polars as pl
    from numpy.typing import NDArray

    from longpole.answer import Verdict
    from longpole.answer.answer import Answer
    from longpole.diffs.stacks import Keys
    from longpole.engine.critical_path.path import CriticalPath
    from longpole.engine.windows import Unit
    from longpole.trace.trace import Trace

# Below this share of the step, the range of its time without the profiler does not matter.
_LEAST_RANGE: Final = 0.05

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
    """A run with the steps to compare."""

    trace: Trace
    recorded: Trace
    """The same trace as recorded, if `trace` excludes the profiler's overhead."""
    answer: Answer
    """The answer about these steps."""
    unit: Unit
    steps: pl.DataFrame
    """The columns of `Trace.steps`: one row for each step, or for each repetition of GPU activities
    if the trace marks no steps; one row for the window if there are neither."""
    has_steps: bool
    """Whether there are steps or repetitions."""
    has_shapes: bool = True
    """Whether shapes are compared: not if only one side recorded them."""
    _step_paths: dict[int, CriticalPath] = field(default_factory=dict)

    @property
    def verdict(self) -> Verdict:
        """Return what limits these steps."""
        return self.answer.verdict

    @cached_property
    def events(self) -> pl.DataFrame:
        """Return the columns of `Trace.events` to compare."""
        return frame_of(self.trace.core.events(list(_EVENT_COLUMNS)))

    @cached_property
    def recorded_events(self) -> pl.DataFrame:
        """Return the same columns as recorded."""
        return frame_of(self.recorded.core.events(list(_EVENT_COLUMNS)))

    @cached_property
    def recorded_self_ns(self) -> NDArray[np.int64] | None:
        """Return each event's self time as recorded, then a 0; None if no overhead is removed."""
        import numpy as np

        if self.recorded is self.trace:
            return None
        found = self.recorded.self_times
        self_ns = np.zeros(self.recorded_events.height + 1, np.int64)
        self_ns[found["event"].to_numpy()] = found["self_ns"].fill_null(0).to_numpy()
        return self_ns

    def at(self, rows: pl.Series, **columns: str) -> pl.DataFrame:
        """Return the given columns of events at the given rows, under new names."""
        return self.events.select(**columns)[rows]

    @cached_property
    def durations_ns(self) -> NDArray[np.int64]:
        """Return the duration of each event; -1 without one."""
        return self.events["duration_ns"].fill_null(-1).to_numpy()

    @cached_property
    def keys(self) -> Keys:
        """Return the keys of events."""
        return keys_of(self.trace, self.events, has_shapes=self.has_shapes)

    @property
    def n_steps(self) -> int:
        """Return the number of steps."""
        return self.steps.height

    @cached_property
    def lengths_ns(self) -> list[int]:
        """Return the length of each step, from the end of the previous step to its own.

        If the time of a step is given, steps are scaled to have it in the mean.
        """
        lengths = self.steps["window_end_ns"] - self.steps["window_start_ns"]
        scale = 1.0 if self.given_ns is None else self.given_ns * self.n_steps / lengths.sum()
        return [round(scale * length_ns) for length_ns in lengths]

    @property
    def given_ns(self) -> int | None:
        """Return the time of a step without the profiler that was given."""
        cost = self.trace.removed_cost
        is_given = cost is not None and cost["status"] == "given" and self.has_steps
        return cost["least_step_ns"] if cost is not None and is_given else None

    @property
    def main_lane(self) -> int | None:
        """Return the thread that marks the steps; None if nothing marks them."""
        if self.unit != "step":
            return None
        lane: int | None = self.events["lane"][self.steps["event"][0]]
        return lane

    @property
    def mean_ns(self) -> float:
        """Return the mean length of a step."""
        return sum(self.lengths_ns) / self.n_steps

    @cached_property
    def recorded_lengths_ns(self) -> list[int]:
        """Return the length of each step as recorded."""
        import polars as pl

        if self.recorded is self.trace or not self.has_steps:
            return self.lengths_ns
        steps = _marked(self.recorded, self.answer.question)
        steps = steps.filter(pl.col("event").is_in(self.steps["event"].implode()))
        steps = steps.sort("start_ns")
        if steps.height < self.n_steps:  # repetitions that are only found without the profiler
            return self.lengths_ns
        return (steps["window_end_ns"] - steps["window_start_ns"]).to_list()

    @property
    def recorded_mean_ns(self) -> float:
        """Return the mean length of a step as recorded."""
        return sum(self.recorded_lengths_ns) / self.n_steps

    @property
    def range_ns(self) -> tuple[float, float] | None:
        """Return the least and the most that a mean step takes without the profiler.

        None if that is known, or about as certain as the step.
        """
        cost = self.trace.removed_cost
        if cost is None or not self.has_steps:
            return None
        step_ns, least_ns, most_ns = cost["step_ns"], cost["least_step_ns"], cost["most_step_ns"]
        if not step_ns or least_ns is None or most_ns is None:
            return None
        spread = cost["run_spread"] or 0.0
        low_ns, high_ns = least_ns * (1 - spread), most_ns * (1 + spread)
        if high_ns - low_ns < _LEAST_RANGE * step_ns:
            return None
        if cost["status"] == "measured":
            return low_ns, high_ns
        return self.mean_ns * low_ns / step_ns, self.mean_ns * high_ns / step_ns

    @property
    def timed_ns(self) -> tuple[int, ...]:
        """Return the mean steps that were timed without the profiler, unless one is given."""
        cost = self.trace.removed_cost
        if cost is None or cost["status"] == "given" or not self.has_steps:
            return ()
        return cost["timed_ns"]

    @property
    def range_source(self) -> Literal["estimated", "measured"] | None:
        """Return where the range comes from."""
        cost = self.trace.removed_cost
        if cost is None or self.range_ns is None:
            return None
        return "estimated" if cost["status"] == "estimated" else "measured"

    @property
    def is_timed(self) -> bool:
        """Whether its steps were timed without the profiler."""
        cost = self.trace.removed_cost
        return cost is not None and cost["status"] in {"measured", "given"}

    @property
    def median_row(self) -> int:
        """Return the row of the step of median length, the lower of two."""
        order = sorted(range(self.n_steps), key=lambda row: (self.lengths_ns[row], row))
        return order[(self.n_steps - 1) // 2]

    @cached_property
    def path(self) -> CriticalPath:
        """Return the critical path through all steps."""
        start_ns, end_ns = self.steps["window_start_ns"][0], self.steps["window_end_ns"][-1]
        return self._path_between((start_ns, end_ns))

    def _path_between(self, times_ns: tuple[int, int]) -> CriticalPath:
        """Return the path between two times, with the same names of steps and data loaders."""
        asked = self.answer.question.about(between=times_ns)
        return self.trace.path_of(asked, "period", "binding", times_ns)

    @property
    def account_path(self) -> CriticalPath:
        """Return the path to report: through all steps, or that of the median step."""
        return self.path if self.is_contiguous else self.step_path(self.median_row)

    @property
    def n_account(self) -> int:
        """Return the number of steps on that path."""
        return self.n_steps if self.is_contiguous else 1

    @property
    def is_contiguous(self) -> bool:
        """Whether each step begins where the previous one ended."""
        starts, ends = self.steps["window_start_ns"], self.steps["window_end_ns"]
        return bool((starts[1:] == ends[:-1]).all())

    def step_path(self, row: int) -> CriticalPath:
        """Return the critical path of one step, cached."""
        if not self.has_steps:
            return self.path
        if row not in self._step_paths:
            times_ns = (self.steps["window_start_ns"][row], self.steps["window_end_ns"][row])
            asked = self.answer.question.about(step=self.steps["step"][row])
            self._step_paths[row] = (
                self.trace.path_of(asked, "period", "binding")
                if self.unit == "step"
                else self._path_between(times_ns)
            )
        return self._step_paths[row]

    @cached_property
    def host_times_ns(self) -> list[tuple[int, int]]:
        """Return the host's start and end time in each step."""
        starts_ns = self.steps["start_ns"]
        ends_ns = starts_ns + self.steps["duration_ns"]
        # Between two steps, the host is still in the previous one.
        goes_on = self.steps["window_end_ns"] == self.steps["window_start_ns"].shift(-1)
        next_ns = starts_ns.shift(-1)
        until_ns = ends_ns.zip_with(
            ~(goes_on & (next_ns > ends_ns)).fill_null(value=False), next_ns
        )
        return list(zip(starts_ns.to_list(), until_ns.to_list(), strict=True))

    def with_steps(self, numbers: Collection[int]) -> Side:
        """Return the same run with only these steps."""
        import polars as pl

        steps = self.steps.filter(pl.col("step").is_in(list(numbers)))
        return replace(self, steps=steps, _step_paths={})

    def rows_at(self, times_ns: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the row of the step that the host was in at each time; -1 for none."""
        import numpy as np

        starts, until = np.array(self.host_times_ns).T
        rows = np.searchsorted(starts, times_ns, side="right") - 1
        is_inside = (rows >= 0) & (times_ns < until[np.maximum(rows, 0)])
        return np.where(is_inside, rows, -1)

    @cached_property
    def work(self) -> pl.DataFrame:
        """List the work of each step: `event`, `kind`, `row` (of the step), `work_ns`.

        Rows are in the order of their events.
        """
        return self.path.work(self.host_times_ns)


def one_of(column: str, values: Iterable[str]) -> pl.Expr:
    """Whether a categorical column has one of some values, without converting it to strings."""
    import polars as pl

    return pl.any_horizontal(pl.col(column) == value for value in values)


def side_of(
    trace: Trace, question: Question | None = None, steps: tuple[int, ...] | None = None
) -> Side:
    """Choose the steps of a run: those its verdict is based on.

    Parameters
    ----------
    trace
        The run.
    question
        What is asked about it; times between which it is compared count from its first event.
    steps
        Numbers of steps to use instead.

    Raises
    ------
    WindowError
        The step does not exist, or nothing has a duration.
    """
    import polars as pl

    asked = Question() if question is None else question
    if asked.between is not None:
        asked = replace(asked, between=trace.times_on_clock(asked.between))
    if steps is not None and len(steps) == 1:
        asked = replace(asked, step=steps[0])
    answer = trace.answer(asked)
    found = cast("Trace", answer.trace)
    verdict, window = answer.verdict, answer.window
    numbers = verdict.steps if steps is None else steps
    marked = _marked(found, asked).filter(pl.col("step").is_in(numbers)).sort("start_ns")
    unknown = set(numbers) - set(marked["step"])
    if steps is not None and unknown:
        message = f"the trace has no step {min(unknown)}"
        with blaming(trace.damage):
            raise WindowError(message)
    unit = verdict.window.unit
    if unit in {"step", "repetition"} and marked.height:
        return Side(found, trace, answer, unit, marked, has_steps=True)
    if window is None:
        message = "nothing in the trace has a duration"
        raise WindowError(message)
    alone = pl.DataFrame(
        {
            "step": [window.step or 0],
            "start_ns": [window.start_ns],
            "duration_ns": [window.duration_ns],
            "window_start_ns": [window.start_ns],
            "window_end_ns": [window.end_ns],
        }
    )
    return Side(found, trace, answer, window.kind, alone, has_steps=False)


def _marked(trace: Trace, question: Question) -> pl.DataFrame:
    """Return the rows of all steps or repetitions of a trace."""
    return frame_of(trace.core.steps(question.step_name, with_repetitions=True))
