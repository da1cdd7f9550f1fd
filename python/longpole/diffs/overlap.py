"""How long communication and copies run without a concurrent kernel, in each step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from longpole.diffs.sides import one_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from longpole.diffs.sides import Side


def overlaps(side: Side, kind: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return for each step how long work of a kind runs, and how long of that kernels run too.

    Time in which several activities of the kind run counts once.
    """
    import numpy as np

    starts, ends, rows = _busy(side, kind)
    begins, stops, _ = _busy(side, "kernel")
    covered = _covered_until(begins, stops, ends) - _covered_until(begins, stops, starts)
    sums = [np.bincount(rows, each, side.n_steps) for each in (ends - starts, covered)]
    return sums[0].astype(float), sums[1].astype(float)


def _busy(side: Side, kind: str) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return the time ranges in which work of a kind runs, with the row of the step of each."""
    import numpy as np

    work = side.work.filter(one_of("kind", (kind,))).drop_nulls("event")
    events, rows = work["event"].to_numpy(), work["row"].to_numpy().astype(np.int64)
    starts = side.events["start_ns"].to_numpy()[events]
    order = np.argsort(starts, kind="stable")
    starts, rows = starts[order], rows[order]
    ends = starts + side.durations_ns[events][order].clip(min=0)
    # A range begins where all earlier ones ended.
    latest = np.maximum.accumulate(ends) if len(ends) else ends
    starts = np.maximum(starts, np.concatenate([starts[:1], latest[:-1]]))
    kept = ends > starts
    return starts[kept], ends[kept], rows[kept]


def _covered_until(
    starts: NDArray[np.int64], ends: NDArray[np.int64], times: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return how much of disjoint, sorted ranges lies before each time."""
    import numpy as np

    if not len(starts):
        return np.zeros(len(times), np.int64)
    sums = np.concatenate([[0], np.cumsum(ends - starts)])
    place = np.searchsorted(starts, times, side="right") - 1
    nearest = np.maximum(place, 0)
    part = np.minimum(times, ends[nearest]) - starts[nearest]
    return np.where(place < 0, 0, sums[nearest] + np.maximum(part, 0))
