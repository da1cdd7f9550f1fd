"""Warnings about the answer of a window: what the trace lacks that its figures rest on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.report.document import Warned
from longpole.tables.findings import IMPOSSIBLE_TIMES, KINDS
from longpole.trace.sweeps import event_warnings, launches_without_work
from longpole.words.wording import count, duration

if TYPE_CHECKING:
    from collections.abc import Iterator

    from longpole.engine.critical_path import CriticalPath
    from longpole.trace.trace import Trace

# Codes of events of a device that may be activities.
_UNKNOWN_TASKS: Final = frozenset({"unknown_task_type", "unknown_device_line"})
# Codes of records without a valid time.
_UNTIMED: Final = frozenset({"zero_timestamp", "negative_duration"})
# Codes of warnings about the gains and shares of a verdict.
OF_VERDICT: Final = frozenset(
    {
        *("earlier_work", "much_unexplained", "unknown_device_tasks", "untimed_records"),
        *("overlapping_device_work", "lost_device_work", *IMPOSSIBLE_TIMES),
    }
)
# Larger overlaps of activities on one stream, as a share of the window, mean wrong records.
_MUCH_OVERLAP: Final = 0.1
# If less of the work was launched before the recording, no relevant gain changes.
_MUCH_EARLIER: Final = 0.01
# A recording loses some activities at its end; if this share of all is lost, that is a warning.
_MUCH_LOST: Final = 0.1


def window_warnings(
    trace: Trace, path: CriticalPath, window_name: str, data_load: str | None
) -> Iterator[Warned]:
    """Yield the warnings about the path of a window."""
    window_name = "the whole trace" if window_name == "whole trace" else window_name
    n_works = trace.warning_counts["device_work"]
    n_launches = len(launches_without_work(trace))
    if n_launches > _MUCH_LOST * (n_launches + n_works) and n_works:
        yield Warned(
            code="lost_device_work",
            count=n_launches,
            message=(
                f"{n_launches:,} calls launched GPU activities that are not in the trace, which "
                f"has {count(n_works, 'activity', 'activities')}"
            ),
            effect="the device is busier than the answer says, at least in a part of the trace",
            hint="see `longpole check`",
        )
    elif n_launches and not n_works:
        yield Warned(
            code="no_device_work",
            count=n_launches,
            message="calls launched GPU activities, and the trace has none of them",
            effect="the answer is about the host only",
            hint="see `longpole check`",
        )
    n_earlier, earlier_ns = trace.core.earlier_work(*path.window)
    if earlier_ns > _MUCH_EARLIER * path.length_ns:
        yield Warned(
            code="earlier_work",
            count=n_earlier,
            message=(
                f"{count(n_earlier, 'GPU activity', 'GPU activities')} "
                f"({duration(earlier_ns)} of {window_name}) "
                f"{'was' if n_earlier == 1 else 'were'} most likely launched before recording "
                f"began and {'belongs' if n_earlier == 1 else 'belong'} to earlier work"
            ),
            effect="shares and gains include this time",
        )
    yield from _impossible(trace, path.length_ns)
    yield from _untimed(trace)
    n_unknown = sum(
        row["count"] for row in trace.core.diagnostics().to_dicts() if row["code"] in _UNKNOWN_TASKS
    )
    if n_unknown:
        yield Warned(
            code="unknown_device_tasks",
            count=n_unknown,
            message=(
                f"{count(n_unknown, 'task')} of the device "
                f"{'has an' if n_unknown == 1 else 'have'} unknown "
                f"{'type' if n_unknown == 1 else 'types'} and "
                f"{'does' if n_unknown == 1 else 'do'} not count as GPU activities"
            ),
            effect="the device may be busier, and the host limit less, than the answer says",
        )
    if path.status == "inconclusive":
        yield Warned(
            code="much_unexplained",
            count=1,
            message=f"more than a tenth of the path of {window_name} is unexplained",
            effect="shares of its kinds and names may be too small",
        )
    if data_load is not None and not _finds_name(trace, data_load):
        yield Warned(
            code="pattern_without_effect",
            count=1,
            message=f"no function or annotation matches --data-load {data_load!r}",
            effect="nothing counts as data loading",
        )


def _untimed(trace: Trace) -> Iterator[Warned]:
    """Yield the warning about records without a valid time, which no figure includes."""
    counts = {row["code"]: row["count"] for row in trace.core.diagnostics().to_dicts()}
    n_records = sum(counts.get(code, 0) for code in _UNTIMED)
    if n_records:
        yield Warned(
            code="untimed_records",
            count=n_records,
            message=(
                f"{count(n_records, 'record')} {'has' if n_records == 1 else 'have'} the time 0 or "
                f"{'ends' if n_records == 1 else 'end'} before the start, and "
                f"{'counts' if n_records == 1 else 'count'} in no figure"
            ),
            effect="that time may seem to be host time",
            hint="see `longpole check`",
        )


def _impossible(trace: Trace, length_ns: int) -> Iterator[Warned]:
    """Yield the warning about GPU activities with impossible times."""
    for code, category, n_events, _, _, longest_ns in event_warnings(trace):
        if code == "overlapping_device_work" and longest_ns > _MUCH_OVERLAP * length_ns:
            yield Warned(
                code=code,
                count=n_events,
                message=(
                    f"{count(n_events, 'GPU activity', 'GPU activities')} of category {category} "
                    f"{'overlaps' if n_events == 1 else 'overlap'} an earlier one of "
                    f"{'its' if n_events == 1 else 'their'} stream by up to {duration(longest_ns)}"
                ),
                effect="a stream runs one at a time, so recorded durations are most likely wrong",
            )
        if code in IMPOSSIBLE_TIMES:
            _, sentence, effect, hint = KINDS[code]
            yield Warned(
                code=code,
                count=n_events,
                message=sentence.format(longest=duration(longest_ns)),
                effect=effect,
                hint=hint,
            )


def _finds_name(trace: Trace, pattern: str) -> bool:
    import polars as pl

    may_load = pl.col("kind").cast(pl.String).is_in(["python", "annotation"])
    names = trace.events.filter(may_load).select(pl.col("name").cast(pl.String).unique())
    return names.filter(pl.col("name").str.contains(pattern)).height > 0
