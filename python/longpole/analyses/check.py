"""What is wrong with a trace, and what that costs an analysis."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from longpole.analyses.window import LAUNCHING_NAMES
from longpole.wording import count, duration, share

if TYPE_CHECKING:
    from collections.abc import Iterator

    import polars as pl

    from longpole.trace import Trace

__all__ = ["SEVERITIES", "Finding", "Place", "check"]

Severity = Literal["info", "warning", "altered", "data_loss"]

SEVERITIES: Final[tuple[Severity, ...]] = ("data_loss", "altered", "warning", "info")
"""From the gravest."""

_READING_HINTS: Final = {
    "truncated": "the program ended, or the disk was full, while the trace was written",
    "missing_end": "the program ended while the trace was written",
    "gzip_truncated": "copy the file again; the profiler may have been stopped while it wrote",
    "gzip_corrupt": "copy the file again",
    "gzip_checksum": "copy the file again",
    "limit_reached": "raise max_bytes or max_events",
    "unmatched_begin": "these ranges were still open when the profiler stopped",
    "zero_timestamp": "newer drivers and profilers lose fewer times; record again",
}


@dataclass(frozen=True, slots=True)
class Place:
    """Where something was found first: a byte of the uncompressed file, or an event."""

    offset: int | None = None
    event: int | None = None
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """One kind of thing that is wrong, or good to know, with how often it was found."""

    code: str
    severity: Severity
    count: int
    sentence: str
    effect: str
    hint: str | None = None
    first: Place | None = None

    def to_dict(self) -> dict[str, Any]:
        """Give everything as plain values, in a fixed order."""
        return asdict(self)


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
            row["code"],
            row["severity"],
            row["count"],
            row["sentence"],
            row["effect"],
            _READING_HINTS.get(row["code"]),
            Place(offset=row["first_offset"]),
        )


def _of_events(trace: Trace) -> Iterator[Finding]:
    if trace.window is None:
        yield Finding(
            "no_timed_events",
            "warning",
            1,
            "no timed event: nothing has a time and a duration",
            "there is nothing to analyse",
            "record at least one step between the start and the stop of the profiler",
        )
        return
    yield from _links(trace)
    yield from _overlaps(trace)
    yield from _clocks(trace)
    yield from _marks(trace)
    yield from _ranks(trace)


def _links(trace: Trace) -> Iterator[Finding]:
    doubts = trace.doubts
    n_work = doubts["device_work"]
    if not n_work:
        yield _no_device_work(trace)
        return
    unlinked = trace.launches.join(trace.events, on="event")
    unlinked = unlinked.filter(unlinked["call"].is_null())
    if doubts["device_work_without_correlation"] == n_work:
        yield Finding(
            "no_correlations",
            "warning",
            n_work,
            "no work on a device has a correlation number",
            "nothing says which call launched what: no launch delays, no launch-bound share",
            "record with a newer profiler; External ids name the operators where there are any",
            _first(unlinked),
        )
    elif doubts["unlinked_device_work"]:
        part = share(doubts["unlinked_device_work"] / n_work)
        yield Finding(
            "unlinked_device_work",
            "warning",
            doubts["unlinked_device_work"],
            f"work on a device whose launching call is not in the trace ({part} of it)",
            "its launch delay, its operator and its step are unknown",
            "record from before the first launch, with the CPU activity on",
            _first(unlinked),
        )
    yield from _launches_without_work(trace)
    yield from _doubtful_links(trace)


def _no_device_work(trace: Trace) -> Finding:
    if (trace.events["kind"] == "counter_range").any():
        return Finding(
            "only_counter_ranges",
            "info",
            1,
            "kernels are recorded as counter ranges only, without their own times",
            "analyses see the CPU side and the counters",
            "record once more without counters for the timeline",
        )
    return Finding(
        "no_device_work",
        "info",
        1,
        "no work on a device is recorded",
        "analyses see the CPU side only",
        "to see the device, record with activities=[CPU, CUDA]",
    )


def _launches_without_work(trace: Trace) -> Iterator[Finding]:
    import polars as pl

    launched = trace.launches["call"].implode()
    calls = trace.events.filter(
        pl.col("kind").cast(pl.String).is_in(["runtime", "driver"]),
        pl.col("name").cast(pl.String).str.contains(LAUNCHING_NAMES),
        ~pl.col("event").is_in(launched),
    )
    # A runtime call on top of the driver's: one of the two has the work.
    outer = trace.events.filter(pl.col("event").is_in(launched)).select("parent", "event")
    related = pl.concat([outer["parent"].drop_nulls(), outer["event"]]).implode()
    calls = calls.filter(
        ~pl.col("event").is_in(related), ~pl.col("parent").is_in(related).fill_null(value=False)
    )
    if calls.height:
        yield Finding(
            "launches_without_work",
            "warning",
            calls.height,
            "launch calls whose kernel is not in the trace",
            "the device looks less busy than it was, unless a graph was being captured",
            "keep the profiler on until the device is done (torch.cuda.synchronize)",
            _first(calls),
        )


def _doubtful_links(trace: Trace) -> Iterator[Finding]:
    doubts = trace.doubts
    if doubts["ambiguous_correlations"]:
        yield Finding(
            "ambiguous_correlations",
            "warning",
            doubts["ambiguous_correlations"],
            "work with a correlation number that several calls have",
            "the nearest call before the work is taken for its launch",
        )
    if doubts["device_work_linked_by_external_id"]:
        yield Finding(
            "linked_by_external_id",
            "info",
            doubts["device_work_linked_by_external_id"],
            "work that is linked to its operator by External id only",
            "its operator is a guess, its launching call is unknown",
        )
    if not doubts["synchronization_records"]:
        yield Finding(
            "no_synchronization_records",
            "info",
            1,
            "no record says who waited for whom on the device",
            "waits must be inferred from blocking calls",
            "record with experimental_config=_ExperimentalConfig(enable_cuda_sync_events=True)",
        )


def _overlaps(trace: Trace) -> Iterator[Finding]:
    crossing = trace.events.join(trace.crossings, on="event").sort("event")
    for category, events in _by_category(crossing):
        yield Finding(
            "crossing_events",
            "warning",
            events.height,
            f"events of {category} that overlap another of their thread by a part: they begin "
            "inside and end outside",
            "they count as beside each other; who called whom is a guess there",
            None,
            _first(events),
        )
    for category, events in _by_category(_overlapping_work(trace)):
        longest = duration(events["overlap_ns"].sort()[-1])
        yield Finding(
            "overlapping_device_work",
            "warning",
            events.height,
            f"events of {category} that begin before earlier work of their stream has ended (they "
            f"overlap by up to {longest})",
            "busy time counts the overlap once; times of single kernels may be too long",
            "normal with programmatic dependent launch; else the profiler's times are in doubt",
            _first(events),
        )
    if trace.doubts["nested_by_rounding"]:
        yield Finding(
            "nested_by_rounding",
            "info",
            trace.doubts["nested_by_rounding"],
            "events that end up to 1 µs behind the one that encloses them",
            "none; it is taken for rounding",
        )


def _by_category(events: pl.DataFrame) -> Iterator[tuple[str, pl.DataFrame]]:
    import polars as pl

    named = events.with_columns(pl.col("category").cast(pl.String).fill_null("uncategorised"))
    for (category,), group in named.group_by("category", maintain_order=True):
        yield str(category), group


def _overlapping_work(trace: Trace) -> pl.DataFrame:
    import polars as pl

    end_ns = pl.col("start_ns") + pl.col("duration_ns")
    return (
        trace.events.join(trace.launches.select("event"), on="event")
        .filter(pl.col("duration_ns") >= 0, pl.col("start_ns") != 0)
        .sort("lane", "start_ns", "event")
        .with_columns(before_ns=end_ns.cum_max().shift().over("lane"))
        .with_columns(overlap_ns=pl.min_horizontal("before_ns", end_ns) - pl.col("start_ns"))
        .filter(pl.col("before_ns").is_not_null(), pl.col("overlap_ns") > 0)
        .sort("event")
    )


def _clocks(trace: Trace) -> Iterator[Finding]:
    import polars as pl

    doubts = trace.doubts
    if not doubts["work_before_its_call"]:
        return
    calls = trace.events.select(call="event", call_start_ns="start_ns")
    early = (
        trace.launches.join(trace.events, on="event")
        .join(calls, on="call", maintain_order="left")
        .filter(pl.col("start_ns") < pl.col("call_start_ns"))
    )
    lead = duration(doubts["largest_lead_over_its_call_ns"])
    yield Finding(
        "work_before_its_call",
        "warning",
        doubts["work_before_its_call"],
        f"work that begins before the call that launched it, by up to {lead}",
        "the clocks of host and device disagree by at least that much",
        "times are kept as recorded; compare host and device times with care",
        _first(early),
    )


def _marks(trace: Trace) -> Iterator[Finding]:
    import polars as pl

    if trace.steps.is_empty():
        yield Finding(
            "no_steps",
            "info",
            1,
            "the trace marks no steps",
            "analyses are about the whole trace",
            "give the profiler a schedule and call `profiler.step()` after each iteration",
        )
    operators = trace.events.filter(pl.col("kind") == "operator")
    if operators.height and operators["external_id"].null_count() == operators.height:
        yield Finding(
            "no_external_ids",
            "info",
            operators.height,
            "no operator has an External id",
            "device work without a launching call cannot be given to its operator",
        )


def _ranks(trace: Trace) -> Iterator[Finding]:
    import polars as pl

    calls = trace.events.filter(pl.col("kind").cast(pl.String).is_in(["runtime", "driver"]))
    processes = calls["process"].cast(pl.String).unique().sort().to_list()
    if len(processes) > 1:
        yield Finding(
            "several_processes",
            "warning",
            len(processes),
            f"calls of {count(len(processes), 'process', 'processes')} stand in one file",
            "it looks like several ranks in one; numbers are joined within a process only",
            "analyse the file of each rank by itself",
        )
    if trace.rank is None:
        yield Finding(
            "no_rank",
            "info",
            1,
            "the file does not say which rank it is of",
            "none for one file; ranks can then be told by their file names only",
            "initialise torch.distributed before the profiler starts",
        )


def _first(events: pl.DataFrame) -> Place | None:
    if events.is_empty():
        return None
    row = events.row(0, named=True)
    return Place(event=row["event"], name=row["name"])
