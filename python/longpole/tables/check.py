"""Lists problems of a trace and their effect on an analysis."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from longpole.engine.recording_cost import timings_of
from longpole.files.damage import has_offset, missing_bytes, source_losses
from longpole.formats.profiles import other_timeline
from longpole.tables.findings import (
    IMPOSSIBLE_TIMES,
    KINDS,
    READING_HINTS,
    SEVERITIES,
    Finding,
    Place,
)
from longpole.trace.sweeps import activities, event_warnings, launches_without_work
from longpole.words.recording import options_for
from longpole.words.wording import clock_error, count, duration, duration_range, escape, share

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from longpole.trace.trace import Trace

_LARGE_SHIFT_NS = 20_000
_MOST_SHOWN = 8
_FEWEST_ALIKE = 3
"""Minimum number of steps of similar length that form a group rather than exceptions."""
_TWICE = 2
_SPAN_OF_PROFILER = "PyTorch Profiler"
_OF_PLUGIN = frozenset({"GROUP", "COLL", "P2P", "PROXY", "NET", "GROUP_API", "COLL_API", "P2P_API"})
"""Categories that the example plugin of NCCL's profiler interface writes."""


def check(trace: Trace) -> tuple[Finding, ...]:
    """List the problems of a trace, most severe first.

    Findings from reading have the byte where they first occurred, findings about events the first
    event. `data_loss` and `altered`: the tables differ from the file. `warning`: a result may be
    wrong, with the reason. `info`: worth knowing.

    Examples
    --------
    >>> from longpole.testing import TraceBuilder
    >>> builder = TraceBuilder().launch("gemm", call=(0, 1), work=(2, 8))
    >>> trace = builder.kernel("orphan", (10, 20), correlation=9).read()
    >>> [finding.code for finding in check(trace) if finding.severity == "warning"]
    ['unlinked_device_work']
    """
    # A damaged file may have lost what is missing, so recording it is not suggested.
    hint = _hint if trace.damage is None else lambda *_: None
    of_events = [replace(found, hint=hint(trace, found)) for found in _of_events(trace)]
    findings = [*_of_reading(trace), *_messages(trace), *_of_files(trace), *of_events]
    return tuple(sorted(findings, key=lambda finding: SEVERITIES.index(finding.severity)))


def why_empty(trace: Trace) -> str:
    """Return why a trace without a window has nothing to analyse: what it lacks, and what it has.

    Examples
    --------
    >>> from longpole.testing import TraceBuilder
    >>> why_empty(TraceBuilder().annotation("range", (0, 9)).read())
    'the trace has 1 annotation, but no operator, call or GPU activity with a duration'
    """
    import polars as pl

    is_range = (pl.col("kind") == "annotation") & pl.col("duration_ns").is_not_null()
    n_ranges = trace.events.filter(is_range).height
    has = f"{count(n_ranges, 'annotation')}, but " if n_ranges else ""
    return f"the trace has {has}no operator, call or GPU activity with a duration"


def only_annotations(trace: Trace) -> bool:
    """Whether annotations are all that a trace has, such as the NVTX ranges of a CPU program."""
    counts = trace.warning_counts
    kinds = ("operators", "device_work", "counter_ranges", "processes_with_calls")
    if trace.window is None or any(counts[kind] for kind in kinds):
        return False
    import polars as pl

    return trace.events.filter(pl.col("kind").cast(pl.String) == "python").is_empty()


def caught_nothing(trace: Trace) -> Finding | None:
    """Return the finding of a recording in which the profiler ran and saw no work, else None."""
    counts = trace.warning_counts
    if counts["operators"] or counts["device_work"] or counts["counter_ranges"]:
        return None
    import polars as pl

    name = pl.col("name").cast(pl.String)
    is_span = (pl.col("kind") == "span") & name.str.starts_with(_SPAN_OF_PROFILER)
    longest_ns = trace.events.filter(is_span)["duration_ns"].drop_nulls().max()
    is_host = pl.col("kind").cast(pl.String).is_in(["python", "annotation"])
    if longest_ns is None or not trace.events.filter(is_host).is_empty():
        return None
    return finding("caught_nothing", time=duration(int(str(longest_ns))))


def _asynchronous(trace: Trace) -> Iterator[Finding]:
    """Describe asynchronous events, if there is nothing else."""
    import polars as pl

    parts = trace.asynchronous
    if parts.is_empty():
        return
    categories = set(parts["category"].cast(pl.String).drop_nulls().to_list())
    names = parts["name"].cast(pl.String).drop_nulls().unique(maintain_order=True).to_list()
    shown = ", ".join(escape(name) for name in names[:_MOST_SHOWN])
    is_of_plugin = bool(categories) and categories <= _OF_PLUGIN
    code = "collectives_of_plugin" if is_of_plugin else "asynchronous_only"
    told = shown + (" and others" if len(names) > _MOST_SHOWN else "")
    yield finding(code, n_parts=f"{parts.height:,}", names=told or "without names")


def _hint(trace: Trace, found: Finding) -> str | None:
    """Return a hint with the options of the profiler, or None if it has no such option."""
    options = options_for(trace.core)
    if found.code == "no_steps" and trace.core.is_of_server:
        return f"record {options.schedule}"
    return _filled(found.hint, trace)


def _filled(hint: str | None, trace: Trace) -> str | None:
    """Fill the placeholders of a hint; None if the profiler has no such option."""
    named = options_for(trace.core)._asdict()
    if not hint or any(f"{{{name}}}" in hint for name in named if not named[name]):
        return None
    return hint.format(**named)


def _of_reading(trace: Trace) -> Iterator[Finding]:
    source = source_losses(trace.metadata)
    counts = source.counts if source else {}
    for row in trace.core.diagnostics().to_dicts():
        is_of_source = counts.get(row["code"]) == row["count"]
        before = "in the file before conversion: " if is_of_source else ""
        yield Finding(
            code=row["code"],
            severity=row["severity"],
            count=row["count"],
            sentence=before
            + row["sentence"]
            + missing_bytes(row)
            + (_unread(trace) if row["code"] == "unread_table" else ""),
            effect=row["effect"],
            hint=_filled(READING_HINTS.get(row["code"]), trace),
            first=Place(offset=row["first_offset"])
            if has_offset(row["code"], trace.format) and row["code"] not in counts
            else None,
        )


def _messages(trace: Trace) -> Iterator[Finding]:
    """Yield the profiler's own messages about its recording."""
    for text in _texts(trace.metadata.get("profiler_messages")):
        yield finding("profiler_message", text=escape(text.rstrip(".")))


def _unread(trace: Trace) -> str:
    """List the tables of the file that are not read, if the reader knows them."""
    names = ", ".join(escape(name) for name in _texts(trace.metadata.get("unread_tables")))
    return f": {names}" if names else ""


def _texts(value: object) -> list[str]:
    """Return the texts of a list; a file may hold any value under the name of a field."""
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []


def _of_files(trace: Trace) -> Iterator[Finding]:
    """List the files of a trace in several files, and another timeline of the same run."""
    files = trace.metadata.get("files") if trace.format == "rocprofv3-csv" else None
    listed = files if isinstance(files, list) else []
    names = _texts([file.get("name") for file in listed if isinstance(file, dict)])
    if len(names) > 1:
        yield finding("several_files", len(names), files=", ".join(map(escape, names)))
    other = None if trace.path is None else other_timeline(trace.path)
    if other is not None:
        is_whole = other.suffix != ".pb"
        code = "other_timeline" if is_whole else "limited_timeline"
        yield finding(code, other=escape(other.name))


def _unknown_categories(trace: Trace) -> Iterator[Finding]:
    """List the categories of timed events without a kind, most frequent first."""
    import polars as pl

    is_unknown = pl.col("kind").cast(pl.String) == "other"
    events = trace.events.filter(is_unknown & pl.col("duration_ns").is_not_null())
    counts = events.select(pl.col("category").cast(pl.String)).drop_nulls().to_series()
    rows = counts.value_counts().sort(["count", "category"], descending=[True, False])
    if rows.height:
        shown = [f"{escape(name)} ({n_events:,})" for name, n_events in rows.rows()[:_MOST_SHOWN]]
        rest = rows.height - len(shown)
        told = ", ".join(shown) + (f" and {rest} more" if rest else "")
        yield finding("unknown_categories", int(rows["count"].sum()), categories=told)


class _EventWarning(NamedTuple):
    """A warning about events, as reported by the core."""

    code: str
    category: str | None
    n_events: int
    event: int
    name: str | None
    longest_ns: int

    def found(self, **blanks: str) -> Finding:
        """Return the warning as a finding."""
        first = Place(event=self.event, name=self.name)
        return finding(self.code, self.n_events, first, **blanks)


def _of_events(trace: Trace) -> Iterator[Finding]:
    if trace.window is None or only_annotations(trace):
        asynchronous = [*_asynchronous(trace)]
        if not asynchronous:
            yield caught_nothing(trace) or finding("no_timed_events", why=why_empty(trace))
        yield from asynchronous
        yield from _unknown_categories(trace)
        return
    counts = trace.warning_counts
    warnings = [_EventWarning(*row) for row in event_warnings(trace)]
    if counts["device_work"]:
        yield from _links(trace, counts, warnings)
    else:
        code = "only_counter_ranges" if counts["counter_ranges"] else "no_device_work"
        yield caught_nothing(trace) or finding(code)
    if counts["counter_ranges"]:
        yield from _counters(trace, counts["counter_ranges"])
    yield from _overlaps(counts, warnings)
    yield from _clocks(trace, warnings)
    yield from _marks(trace, warnings)
    yield from _ranks(trace)
    drift_ns = timings_of(trace.core.header).drift_ns
    if drift_ns is not None:
        before, after = map(duration, drift_ns)
        yield finding("speed_changed", before=before, after=after)


def _counters(trace: Trace, n_ranges: int) -> Iterator[Finding]:
    """Report counted ranges whose kernels are not known."""
    from longpole.tables.counters import unmatched_counters

    told = unmatched_counters(trace)
    if told is not None:
        yield finding("unmatched_counters", n_ranges, told=told)


def _links(
    trace: Trace, counts: Mapping[str, int], warnings: Sequence[_EventWarning]
) -> Iterator[Finding]:
    n_work = counts["device_work"]
    for warning in _of_code("unlinked_device_work", warnings):
        if _of_code("zero_correlations", warnings):
            yield warning._replace(code="zero_correlations").found()
        elif counts["device_work_without_correlation"] == n_work:
            yield warning._replace(code="no_correlations").found()
        elif not counts["processes_with_calls"]:
            yield warning._replace(code="no_host_calls").found()
        else:
            yield warning.found(share=share(warning.n_events / n_work))
    codes = ("narrowed_correlations", "narrowed_external_ids", "launches_without_work")
    for code in codes:
        for warning in _of_code(code, warnings):
            is_start = code == "launches_without_work" and _are_at_the_start(trace)
            yield warning._replace(code="launches_before_recording" if is_start else code).found()
    if counts["ambiguous_correlations"]:
        yield finding("ambiguous_correlations", counts["ambiguous_correlations"])
    if counts["device_work_linked_by_external_id"]:
        yield finding("linked_by_external_id", counts["device_work_linked_by_external_id"])
    if not counts["synchronization_records"]:
        yield finding("no_synchronization_records")


def _are_at_the_start(trace: Trace) -> bool:
    """Whether all launches without their activity precede the first launch with one."""
    lost = launches_without_work(trace)
    linked = activities(trace)["call"].drop_nulls()
    if not lost or linked.is_empty():
        return False
    starts = trace.events["start_ns"]
    return bool(max(starts.gather(lost).to_list()) < min(starts.gather(linked).to_list()))


def _overlaps(counts: Mapping[str, int], warnings: Sequence[_EventWarning]) -> Iterator[Finding]:
    for code in ("crossing_events", "overlapping_device_work"):
        for warning in _of_code(code, warnings):
            longest = duration(warning.longest_ns)
            yield warning.found(category=warning.category or "uncategorised", longest=longest)
    if counts["nested_by_rounding"]:
        yield finding("nested_by_rounding", counts["nested_by_rounding"])


def _of_code(code: str, warnings: Sequence[_EventWarning]) -> list[_EventWarning]:
    return [warning for warning in warnings if warning.code == code]


def _clocks(trace: Trace, warnings: Sequence[_EventWarning]) -> Iterator[Finding]:
    for warning in _of_code("work_before_its_call", warnings):
        yield warning.found(longest=duration(warning.longest_ns))
    for code in IMPOSSIBLE_TIMES:
        for warning in _of_code(code, warnings):
            yield warning.found(longest=duration(warning.longest_ns))
    if not trace.warning_counts["device_work"]:
        return
    violations, clock_shifts = trace.core.clock_contradictions()
    yield from _violations(trace, violations.to_dicts())
    yield from _shifted_clocks(trace, clock_shifts)


def _shifted_clocks(
    trace: Trace, shifts: Sequence[tuple[int | None, int | None, int]]
) -> Iterator[Finding]:
    of_device: dict[int | None, list[tuple[int | None, int]]] = {}
    for device, from_ns, shift_ns in shifts:
        of_device.setdefault(device, []).append((from_ns, shift_ns))
    for device, own in of_device.items():
        name = "a device" if device is None else f"device {device}"
        (_, first_ns), *jumps = own
        if jumps:
            told = ", ".join([clock_error(first_ns), *_told_jumps(trace, jumps)])
            yield finding("clock_jump", len(jumps), device=name, shifts=told)
        elif abs(first_ns) > _LARGE_SHIFT_NS:
            yield finding("clock_shift", device=name, shift=clock_error(first_ns))


def _told_jumps(trace: Trace, jumps: Sequence[tuple[int | None, int]]) -> Iterator[str]:
    begin_ns: int = min(trace.events["start_ns"].drop_nulls().to_list())
    for from_ns, shift_ns in jumps[:_MOST_SHOWN]:
        yield f"from {duration((from_ns or 0) - begin_ns)} on {clock_error(shift_ns)}"
    if len(jumps) > _MOST_SHOWN:
        yield f"and {count(len(jumps) - _MOST_SHOWN, 'more jump')}"


def _violations(trace: Trace, rows: Sequence[Mapping[str, Any]]) -> Iterator[Finding]:
    """Yield the finding about dependencies that the path leaves out."""
    if not rows:
        return
    worst = max(rows, key=lambda row: row["back_ns"])
    event = worst["event"]
    name = None if event is None else trace.core.events(["name"]).to_dicts()[event]["name"]
    place = None if event is None else Place(event=event, name=name)
    longest = duration(worst["back_ns"])
    yield finding("dependencies_back_in_time", len(rows), place, longest=longest)


def _marks(trace: Trace, warnings: Sequence[_EventWarning]) -> Iterator[Finding]:
    steps = trace.core.steps(None).to_dicts()
    if not steps:
        yield finding("no_steps")
    if not trace.core.is_of_server:  # answers about a server cover one kind only
        yield from _two_lengths(trace, steps)
    for warning in _of_code("reused_external_ids", warnings):
        yield warning.found()
    counts = trace.warning_counts
    if counts["operators"] and not counts["operators_with_external_id"]:
        yield finding("no_external_ids", counts["operators"])


def _two_lengths(trace: Trace, steps: Sequence[Mapping[str, Any]]) -> Iterator[Finding]:
    """Find steps whose length differs from that of the step of median length.

    As in the choice of that step, only complete steps that follow another step count.
    """
    numbers = {step["step"] for step in steps}
    follow = [step for step in steps if step["complete"] and step["step"] - 1 in numbers]
    by_length = sorted(follow, key=_length_ns)
    lengths_ns = [_length_ns(step) for step in by_length]
    places = range(_FEWEST_ALIKE, len(by_length) - _FEWEST_ALIKE + 1)
    gaps = [at for at in places if lengths_ns[at] >= _TWICE * lengths_ns[at - 1] > 0]
    if len(gaps) != 1:
        return
    _, _, ((start_ns, end_ns), _), _ = trace.scope()
    usual, others = by_length[: gaps[0]], by_length[gaps[0] :]
    if end_ns - start_ns >= _length_ns(others[0]):
        usual, others = others, usual
    first = min(others, key=lambda step: step["start_ns"])
    yield finding(
        "steps_of_two_lengths",
        len(others),
        Place(event=first["event"], name=first["name"]),
        others=_lengths(others),
        n_usual=f"{len(usual):,}",
        usual=_lengths(usual),
    )


def _length_ns(step: Mapping[str, Any]) -> int:
    length_ns: int = step["window_end_ns"] - step["window_start_ns"]
    return length_ns


def _lengths(steps: Sequence[Mapping[str, Any]]) -> str:
    """Describe the lengths of steps, which are sorted by length."""
    return duration_range(_length_ns(steps[0]), _length_ns(steps[-1]))


def _ranks(trace: Trace) -> Iterator[Finding]:
    n_processes = trace.warning_counts["processes_with_calls"]
    if n_processes > 1:
        yield finding("several_processes", n_processes)
    if trace.rank is None and len(trace.core.collectives()):
        yield finding("no_rank")
    if trace.rank is not None and (trace.world_size or 1) > 1:
        yield finding("one_of_ranks", rank=str(trace.rank), size=f"{trace.world_size:,}")


def finding(code: str, count: int = 1, first: Place | None = None, **blanks: str) -> Finding:
    """Return a finding of a known code, with its count and first place."""
    severity, sentence, effect, hint = KINDS[code]
    return Finding(code, severity, count, sentence.format(**blanks), effect, hint, first)
