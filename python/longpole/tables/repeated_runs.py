"""Repeated runs of consecutive activities of a stream, whichever operators launched them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    Numbers = NDArray[np.int64]

_FEWEST = 2


def repeated_runs(found: pl.DataFrame, least: int) -> pl.DataFrame:
    """List sequences that repeat on a stream and that several operators launched.

    A sequence is extended as long as the activity before it, or after it, is always the same: its
    parts of `least` activities all occur as often as the sequence. Occurrences do not overlap.

    Parameters
    ----------
    found
        Activities with `device`, `stream`, `start_ns`, `event`, `name`, `inside_ns`, and `around`,
        the operator that launched each.
    least
        Minimum number of activities in a sequence.

    Returns
    -------
    DataFrame
        `kernels`, `count` and `duration_ns` of each.
    """
    found = found.sort("device", "stream", "start_ns", "event")
    changes = (pl.col("around") != pl.col("around").shift()).fill_null(value=True)
    operators = found.select(changes.cum_sum())["around"].to_numpy()
    times = np.concatenate([[0], found["inside_ns"].fill_null(0).cum_sum().to_numpy()])
    names = found["name"].cast(pl.Categorical)
    kernels, counts, durations = [], [], []
    for begins, length in _runs(found, least):
        one_operator = operators[begins] == operators[begins + length - 1]
        if len(begins) >= _FEWEST and not one_operator.all():
            kernels.append(names.slice(int(begins[0]), length))
            counts.append(len(begins))
            durations.append(int((times[begins + length] - times[begins]).sum()))
    schema = {"kernels": pl.List(pl.Categorical()), "count": pl.Int64(), "duration_ns": pl.Int64()}
    return pl.DataFrame([kernels, counts, durations], schema=schema)


def _runs(found: pl.DataFrame, least: int) -> Iterator[tuple[Numbers, int]]:
    """Yield the places of each repeated run, and its length."""
    streams = found.select(pl.struct("device", "stream").rle_id().alias("id"))["id"].to_numpy()
    places, groups = _grouped(found["name"].to_physical().to_numpy(), streams, least)
    if not len(places):
        return
    order = np.argsort(groups, kind="stable")
    ends = np.cumsum(np.bincount(groups))
    following = _following(places, groups, streams, order, ends)
    bounds = np.concatenate([[0], ends])
    for group in np.setdiff1d(np.arange(len(ends)), following):
        begins = places[order[bounds[group] : bounds[group + 1]]]
        if len(begins) >= _FEWEST:
            length = least + _n_following(following, group)
            yield _apart(begins, length), length


def _grouped(names: Numbers, streams: Numbers, least: int) -> tuple[Numbers, Numbers]:
    """Return where `least` activities of one stream begin, and a number for their names."""
    if least > len(names):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    groups = _numbered(names, least)
    places = np.flatnonzero(streams[: len(groups)] == streams[least - 1 :])
    return places, _numbered(groups[places])


def _numbered(values: Numbers, length: int = 1) -> Numbers:
    """Return a number for the run of `length` values that begins at each place."""
    if length == 1:
        return np.unique(values, return_inverse=True)[1].astype(np.int64)
    half = length // 2
    halves = _numbered(values, half)
    n_places = len(values) - 2 * half + 1
    runs = _numbered(halves[:n_places] * len(values) + halves[half:])
    if length % 2 == 0:
        return runs
    return _numbered(runs[:-1] * len(values) + _numbered(values)[length - 1 :])


def _following(
    places: Numbers, groups: Numbers, streams: Numbers, order: Numbers, ends: Numbers
) -> Numbers:
    """Return the group that always begins one activity later, and never otherwise; else -1.

    No chain of them is a circle: the last place of a stream is followed by none.
    """
    at = np.full(len(streams) + 1, -1)
    at[places] = groups
    same = np.append(streams[1:] == streams[:-1], [False])
    later = np.where(same[places], at[places + 1], -1)[order]
    begins = np.concatenate([[0], ends[:-1]])
    low, high = np.minimum.reduceat(later, begins), np.maximum.reduceat(later, begins)
    count = ends - begins
    return np.where((low == high) & (low >= 0) & (count[low] == count), low, -1)


def _n_following(following: Numbers, group: int) -> int:
    count = 0
    while (group := following[group]) >= 0:
        count += 1
    return count


def _apart(begins: Numbers, length: int) -> Numbers:
    """Leave out occurrences that overlap the one before."""
    if (np.diff(begins) >= length).all():
        return begins
    apart: list[int] = []
    for begin in begins.tolist():
        if not apart or begin >= apart[-1] + length:
            apart.append(begin)
    return np.array(apart)
