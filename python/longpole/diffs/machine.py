"""Whether the machine or its load changed between two recordings, by the speed of unchanged code.

An operator that both sides call equally often from the same place does the same host work. If most
of these operators take longer, the CPU was slower or busier.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from longpole.engine.critical_path.changes import Scale
from longpole.words.data import Data

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

    from longpole.diffs.sides import Side
    from longpole.engine.critical_path.changes import Change, WorkKind

# If the ratio differs from 1 by less than this, the machine counts as unchanged.
_ALIKE: Final = 0.10

# With fewer operators, nothing is concluded about the machine.
_FEWEST: Final = 8

# Kinds of work that a faster CPU speeds up.
HOST_KINDS: Final[tuple[WorkKind, ...]] = ("operator", "runtime", "host_gap", "data_loading")

# Recording a Python function costs less than this (PyTorch 2 with stacks: 0.2 to 2 us).
_MOST_OF_FUNCTION_NS: Final = 3_000

_NUMBERS: Final = r"\d+"


@dataclass(frozen=True, slots=True)
class Machine(Data):
    """Times of operators called alike on both sides: new divided by base."""

    ratio: float
    """Median over operators."""
    low: float
    """Lower quartile."""
    high: float
    """Upper quartile."""
    n_operators: int
    """Number of operators compared, distinct by name and caller."""

    @property
    def differs(self) -> bool:
        """Whether the machine, or its load, changed."""
        return not 1 / (1 + _ALIKE) <= self.ratio <= 1 + _ALIKE


class Threads(NamedTuple):
    """Medians like those of a machine, of threads that changed in opposite ways."""

    of_steps: float
    """Of the thread that runs the steps."""
    others: float


def has_python(side: Side) -> bool:
    """Whether Python functions are recorded."""
    return bool((side.events["kind"] == "python").any())


def most_of_python_ns(side: Side) -> float:
    """Return the most that recording Python functions may have cost in a mean step.

    Only functions on the thread of the steps count.
    """
    functions = side.events.filter(side.events["kind"] == "python")
    if functions.is_empty():
        return 0.0
    if side.main_lane is not None:
        functions = functions.filter(functions["lane"] == side.main_lane)
    rows = side.rows_at(functions["start_ns"].to_numpy())
    return _MOST_OF_FUNCTION_NS * float((rows >= 0).sum()) / side.n_steps


def machine_of(base: Sequence[Side], new: Sequence[Side]) -> Machine | Threads | None:
    """Compare the unchanged operators of both sides, each with one trace of every run.

    None if there are too few. Of threads if those of the thread that runs the steps became slower
    and those of other threads faster, or the other way round: a machine changes all threads alike.
    """
    import polars as pl

    sides = [_of_runs([_self_times(side) for side in runs]) for runs in (base, new)]
    both = sides[0].join(sides[1], on=["name", "caller", "is_main"], suffix="_new")
    both = both.filter((pl.col("count") - pl.col("count_new")).abs() < _HALF)
    if both.height < _FEWEST:
        return None
    parts = [rows for rows in both.partition_by("is_main") if rows.height >= _FEWEST]
    middles = {bool(rows["is_main"][0]): _quartiles(rows)[1] for rows in parts}
    are_opposite = bool(middles) and min(middles.values()) < 1 < max(middles.values())
    low, middle, high = _quartiles(both)
    found = Machine(middle, low, high, both.height)
    return Threads(middles[True], middles[False]) if are_opposite and found.differs else found


def _of_runs(runs: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Return the median of the self times of each operator over all runs."""
    import polars as pl

    if len(runs) == 1:
        return runs[0]
    found = pl.concat(runs).group_by("name", "caller", "is_main")
    each = found.agg(pl.col("self_ns").median(), pl.col("count").median())
    return each.sort("name", "caller", "is_main")


def _quartiles(both: pl.DataFrame) -> tuple[float, float, float]:
    """Return the quartiles of the ratios of operators, weighted by how often they are called."""
    import numpy as np

    ratios = (both["self_ns_new"] / both["self_ns"]).to_numpy()
    order = np.argsort(ratios, kind="stable")
    weights = both["count"].to_numpy()[order].cumsum()
    low, middle, high = (
        float(ratios[order][np.searchsorted(weights, share * weights[-1])])
        for share in (0.25, 0.5, 0.75)
    )
    return low, middle, high


_HALF: Final = 0.5


def _self_times(side: Side) -> pl.DataFrame:
    """Return each operator's median self time and number per step, by name, caller and thread.

    `is_main` is whether the thread is that of the steps.

    Times are as recorded, since recording overhead is work of the CPU too.
    """
    import numpy as np
    import polars as pl

    recorded = side.recorded
    # Each name is read once, not once per event.
    plain = pl.col("name").cast(pl.String).str.replace_all(_NUMBERS, "#")
    events = side.recorded_events.select("event", "parent", "kind", "name")
    names = events.select("name").unique().with_columns(plain=plain)
    events = events.join(names, on="name", how="left", maintain_order="left")
    operators = events.filter(pl.col("kind") == "operator")
    rows = side.rows_at(side.events["start_ns"].to_numpy()[operators["event"].to_numpy()])
    operators = operators.filter(pl.Series(np.asarray(rows) >= 0))
    callers = events.select(parent="event", caller="plain")
    lanes = side.recorded_events["lane"]
    is_main = lanes[operators["event"]].eq_missing(side.main_lane)
    operators = operators.with_columns(is_main=is_main)
    return (
        operators.select("event", "parent", "is_main", name="plain")
        .join(callers, on="parent", how="left")
        .join(recorded.self_times, on="event")
        .group_by("name", pl.col("caller").fill_null(""), "is_main")
        .agg(pl.col("self_ns").median(), count=pl.len() / side.n_steps)
        .filter(pl.col("self_ns") > 0)
        .sort("name", "caller", "is_main")
    )


def mean_on_one_machine_ns(side: Side, machine: Machine) -> float:
    """Return the mean step of the new side as if it had run on the base's machine."""
    by = round(1 / machine.ratio, 9)
    changes: list[Change] = [Scale(by=by, kind=kind) for kind in HOST_KINDS]
    path = side.account_path
    return max(0.0, side.mean_ns - path.what_if(changes).gain_ns / side.n_account)
