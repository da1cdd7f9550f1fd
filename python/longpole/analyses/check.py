"""What is wrong with a trace, and what that costs an analysis."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from longpole.analyses.findings import KINDS, READING_HINTS, SEVERITIES, Finding, Place
from longpole.analyses.launches_without_work import launches_without_work
from longpole.wording import duration, share

if TYPE_CHECKING:
    from collections.abc import Iterator

    from longpole.trace import Trace

__all__ = ["Finding", "Place", "check"]


def check(trace: Trace) -> tuple[Finding, ...]:
    """List what is wrong with a trace, the gravest first.

    Findings of reading come with the byte where they were found first, findings about
    events with the first event. `data_loss` and `altered` mean that the tables are not
    what the file says; a `warning` is a doubt about what it says; `info` is good to know.

    Examples
    --------
    >>> from longpole.testing import TraceBuilder
    >>> builder = TraceBuilder().launch("gemm", call=(0, 1), work=(2, 8))
    >>> trace = builder.kernel("orphan", (10, 20), correlation=9).read()
    >>> [finding.code for finding in check(trace) if finding.severity == "warning"]
    ['unlinked_device_work']
    """
    findings = [*_of_reading(trace), *_of_events(trace)]
    return tuple(sorted(findings, key=lambda finding: SEVERITIES.index(finding.severity)))


def _of_reading(trace: Trace) -> Iterator[Finding]:
    for row in trace.diagnostics.iter_rows(named=True):
        yield Finding(
            code=row["code"],
            severity=row["severity"],
            count=row["count"],
            sentence=row["sentence"],
            effect=row["effect"],
            hint=READING_HINTS.get(row["code"]),
            first=Place(offset=row["first_offset"]),
        )


def _of_events(trace: Trace) -> Iterator[Finding]:
    if trace.window is None:
        yield _found("no_timed_events")
        return
    if trace.warning_counts["device_work"]:
        yield from _links(trace)
    else:
        has_counters = (trace.events["kind"] == "counter_range").any()
        yield _found("only_counter_ranges" if has_counters else "no_device_work")
    yield from _overlaps(trace)
    yield from _clocks(trace)
    yield from _marks(trace)
    yield from _ranks(trace)


def _links(trace: Trace) -> Iterator[Finding]:
    counts = trace.warning_counts
    work = trace.launches.join(trace.events, on="event")
    unlinked = work.filter(pl.col("call").is_null())
    if counts["device_work_without_correlation"] == work.height:
        yield _found("no_correlations", unlinked)
    elif unlinked.height:
        part = share(unlinked.height / work.height)
        yield _found("unlinked_device_work", unlinked, share=part)
    idle_launches = launches_without_work(trace)
    if idle_launches.height:
        yield _found("launches_without_work", idle_launches)
    if counts["ambiguous_correlations"]:
        yield _found("ambiguous_correlations", counts["ambiguous_correlations"])
    if counts["device_work_linked_by_external_id"]:
        yield _found("linked_by_external_id", counts["device_work_linked_by_external_id"])
    if not counts["synchronization_records"]:
        yield _found("no_synchronization_records")


def _overlaps(trace: Trace) -> Iterator[Finding]:
    crossing = trace.events.join(trace.crossings, on="event")
    for category, events in _by_category(crossing):
        yield _found("crossing_events", events, category=category)
    for category, events in _by_category(_overlapping_work(trace)):
        longest = duration(events["overlap_ns"].sort()[-1])
        yield _found("overlapping_device_work", events, category=category, longest=longest)
    if trace.warning_counts["nested_by_rounding"]:
        yield _found("nested_by_rounding", trace.warning_counts["nested_by_rounding"])


def _by_category(events: pl.DataFrame) -> Iterator[tuple[str, pl.DataFrame]]:
    named = events.with_columns(pl.col("category").cast(pl.String).fill_null("uncategorised"))
    for (category,), group in named.sort("event").group_by("category", maintain_order=True):
        yield str(category), group


def _overlapping_work(trace: Trace) -> pl.DataFrame:
    end_ns = pl.col("start_ns") + pl.col("duration_ns")
    return (
        trace.events.join(trace.launches.select("event"), on="event")
        .filter(pl.col("duration_ns") >= 0, pl.col("start_ns") != 0)
        .sort("lane", "start_ns", "event")
        .with_columns(before_ns=end_ns.cum_max().shift().over("lane"))
        .with_columns(overlap_ns=pl.min_horizontal("before_ns", end_ns) - pl.col("start_ns"))
        .filter(pl.col("before_ns").is_not_null(), pl.col("overlap_ns") > 0)
    )


def _clocks(trace: Trace) -> Iterator[Finding]:
    if not trace.warning_counts["work_before_its_call"]:
        return
    calls = trace.events.select(call="event", call_start_ns="start_ns")
    linked = trace.launches.join(trace.events, on="event").join(calls, on="call")
    early = linked.filter(pl.col("start_ns") < pl.col("call_start_ns"))
    longest = duration(trace.warning_counts["largest_lead_over_its_call_ns"])
    yield _found("work_before_its_call", early, longest=longest)


def _marks(trace: Trace) -> Iterator[Finding]:
    if trace.steps.is_empty():
        yield _found("no_steps")
    operators = trace.events.filter(pl.col("kind") == "operator")
    if operators.height and operators["external_id"].null_count() == operators.height:
        yield _found("no_external_ids", operators.height)


def _ranks(trace: Trace) -> Iterator[Finding]:
    calls = trace.events.filter(pl.col("kind").cast(pl.String).is_in(["runtime", "driver"]))
    n_processes = calls["process"].n_unique()
    if n_processes > 1:
        yield _found("several_processes", n_processes)
    if trace.rank is None:
        yield _found("no_rank")


def _found(code: str, of: pl.DataFrame | int = 1, **blanks: str) -> Finding:
    """Fill in a kind of finding: with its events, or with how often it was found."""
    severity, sentence, effect, hint = KINDS[code]
    if isinstance(of, int):
        return Finding(code, severity, of, sentence.format(**blanks), effect, hint)
    event, name = of.sort("event").select("event", "name").row(0)
    first = Place(event=event, name=name)
    return Finding(code, severity, of.height, sentence.format(**blanks), effect, hint, first)
