"""Sentences below a table: what its values refer to, and what a missing or negative one means."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import polars as pl

__all__ = ["ABOVE_ALL", "legend"]

ABOVE_ALL: Final = "Shares above 100 % are sums over several devices, threads or streams."
_INSIDE_CALL: Final = "A delay below zero: the activity began before its launch call returned."
_WHOLE_DEVICE: Final = "A row without a stream is about the device as a whole."
_BANDWIDTHS: Final = (
    "bandwidth_gb_per_s is bytes over duration; mean to max are of the bandwidth over time, between"
    " its n_changes changes, also in GB/s."
)
_LAUNCHES: Final = (
    "n_short: calls that took longer than what they launched; n_slow_calls: calls above 50 µs;"
    " n_delayed: a start more than 100 µs after the call."
)
_QUEUES: Final = (
    "mean to max are of the queue's length at its count changes, in activities; time_mean is over"
    " the time of the window."
)
_NO_ANNOTATION: Final = (
    "Rows without an annotation were launched outside all annotations; those of steps do not count."
)
_STEPS: Final = (
    "period: from the end of the previous step, if there is one, to the end of this one, with its"
    " GPU activities; duration: of the annotation `ProfilerStep`, or of another one up to the next,"
    " so the last of these marks no step."
)
_AS_RECORDED: Final = "Times are as recorded, with what the profiler added."
_REPETITIONS: Final = (
    "Nothing marks steps: these are repetitions of GPU activities; to see one, --between START END"
    " with its times in this table --as-recorded."
)


def _lacks(column: str) -> Callable[[pl.DataFrame], bool]:
    return lambda rows: rows[column].null_count() > 0


def _is_negative(column: str) -> Callable[[pl.DataFrame], bool]:
    return lambda rows: bool((rows[column] < 0).any())


def _has_counts(rows: pl.DataFrame) -> bool:
    return any(bool(rows[name].max()) for name in ("n_short", "n_slow_calls", "n_delayed"))


def _always(_: pl.DataFrame) -> bool:
    return True


_LEGENDS: Final[Mapping[str, tuple[tuple[Callable[[pl.DataFrame], bool], str], ...]]] = {
    "annotated_kernels": ((_lacks("annotation"), _NO_ANNOTATION),),
    "breakdown": ((_lacks("stream"), _WHOLE_DEVICE),),
    "copy_summary": ((_always, _BANDWIDTHS),),
    "activities": ((_always, _AS_RECORDED),),
    "events": ((_always, _AS_RECORDED),),
    "idle_time": ((_lacks("stream"), _WHOLE_DEVICE),),
    "launch_summary": ((_is_negative("delay_median_ns"), _INSIDE_CALL), (_has_counts, _LAUNCHES)),
    "launch_times": ((_is_negative("delay_ns"), _INSIDE_CALL),),
    "operator_kernels": (
        (
            _is_negative("start_delay_ns"),
            "A start_delay below zero: the clocks of host and device disagree.",
        ),
    ),
    "queue_summary": ((_always, _QUEUES),),
    "steps": (
        (lambda rows: rows["step"].null_count() < rows.height, _STEPS),
        (lambda rows: rows["step"].null_count() == rows.height, _REPETITIONS),
    ),
    "violations": ((_always, _AS_RECORDED),),
}
"""For each table: when a sentence is shown below it, and the sentence."""


def legend(name: str, rows: pl.DataFrame) -> list[str]:
    """Return the sentences to show below the rows of a table.

    Examples
    --------
    >>> import polars as pl
    >>> legend("launch_times", pl.DataFrame({"delay_ns": [-5]}))
    ['A delay below zero: the activity began before its launch call returned.']
    """
    told = [text for applies, text in _LEGENDS.get(name, ()) if applies(rows)]
    largest = rows["window_share"].max() if "window_share" in rows.columns else None
    return [*([ABOVE_ALL] if isinstance(largest, float) and largest > 1 else []), *told]
