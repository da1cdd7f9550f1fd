"""Every kind of thing that `check` finds: how grave, what it is, what it costs, what to do.

What the reader finds is declared in the core, in the same way; only its hints stand here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

from longpole.data import Data

__all__ = ["KINDS", "READING_HINTS", "SEVERITIES", "Finding", "Kind", "Place", "Severity"]

Severity = Literal["info", "warning", "altered", "data_loss"]

SEVERITIES: Final[tuple[Severity, ...]] = ("data_loss", "altered", "warning", "info")
"""From the gravest."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where something was found first: a byte of the uncompressed file, or an event."""

    offset: int | None = None
    event: int | None = None
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Finding(Data):
    """One kind of thing that is wrong, or good to know, with how often it was found."""

    code: str
    severity: Severity
    count: int
    sentence: str
    effect: str
    hint: str | None = None
    first: Place | None = None


class Kind(NamedTuple):
    """What all findings of one code have in common; sentence and hint may have blanks.

    The blanks of a hint are those of `longpole.recording.Options`.
    """

    severity: Severity
    sentence: str
    effect: str
    hint: str | None = None


KINDS: Final = {
    "no_timed_events": Kind(
        "warning",
        "no timed event: nothing of a known kind has a time and a duration",
        "there is nothing to analyse",
        "record at least one step between the start and the stop of the profiler",
    ),
    "no_device_work": Kind(
        "info",
        "no work on a device is recorded",
        "analyses see the CPU side only",
        "to see a device, record with {device}",
    ),
    "only_counter_ranges": Kind(
        "info",
        "kernels are recorded as counter ranges only, without individual durations",
        "analyses see the CPU side and the counters",
        "record once more without counters for the timeline",
    ),
    "no_correlations": Kind(
        "warning",
        "no work on a device has a correlation number",
        "nothing says which call launched what: no launch delays, no launch-bound share",
        "record with a newer profiler; External ids name the operators where there are any",
    ),
    "zero_correlations": Kind(
        "warning",
        "every correlation number of work on a device is 0",
        "nothing says which call launched what: no launch delays, no launch-bound share",
        "the file was rewritten or the profiler's driver does not number launches; record again",
    ),
    "narrowed_correlations": Kind(
        "warning",
        "work whose correlation number is the lower 32 bits of that of a call",
        "it is not linked to that call: a cut number may belong to several",
        "keep 64 bits in what rewrites the file; record again with a newer profiler",
    ),
    "narrowed_external_ids": Kind(
        "warning",
        "work whose External id is the lower 32 bits of that of an operator",
        "it is not given to that operator: a cut number may belong to several",
        "keep 64 bits in what rewrites the file; record again with a newer profiler",
    ),
    "reused_external_ids": Kind(
        "warning",
        "operators with an External id that an earlier operator has, too",
        "work that only an External id gives to an operator may be given to none",
        "it looks like several recordings in one file",
    ),
    "unlinked_device_work": Kind(
        "warning",
        "work on a device whose launching call is not in the trace ({share} of it)",
        "its launch delay, its operator and its step are unknown",
        "record from before the first launch, with the CPU activity on",
    ),
    "launches_without_work": Kind(
        "warning",
        "launch calls whose kernel is not in the trace",
        "the device looks less busy than it was, unless a graph was being captured",
        "keep the profiler on until the device is done ({synchronize})",
    ),
    "ambiguous_correlations": Kind(
        "warning",
        "work with a correlation number that several calls have",
        "the nearest call before the work is taken for its launch",
    ),
    "linked_by_external_id": Kind(
        "info",
        "work that is linked to its operator by External id only",
        "its operator is a guess, its launching call is unknown",
    ),
    "no_synchronization_records": Kind(
        "info",
        "no record says who waited for whom on the device",
        "waits must be inferred from blocking calls",
        "record with {waits}",
    ),
    "crossing_events": Kind(
        "warning",
        "events of {category} that overlap another of their thread by a part: they begin "
        "inside and end outside",
        "they count as beside each other; who called whom is a guess there",
    ),
    "overlapping_device_work": Kind(
        "warning",
        "events of {category} that begin before earlier work of their stream has ended (they "
        "overlap by up to {longest})",
        "busy time counts the overlap once; times of single kernels may be too long",
        "normal with programmatic dependent launch; else the profiler's times are in doubt",
    ),
    "nested_by_rounding": Kind(
        "info",
        "events that end up to 1 µs behind the one that encloses them",
        "none; it is taken for rounding",
    ),
    "work_before_its_call": Kind(
        "warning",
        "work that begins before the call that launched it, by up to {longest}",
        "the clocks of host and device disagree by at least that much",
        "times are kept as recorded; compare host and device times with care",
    ),
    "clock_shift": Kind(
        "warning",
        "the clock of {device} is {shift} {side} the host's",
        "the critical path moves the stamps of that device; tables and other analyses keep them",
        "compare times of host and device with care",
    ),
    "no_steps": Kind(
        "info",
        "the trace marks no steps (no annotation is a `ProfilerStep`)",
        "analyses are about annotations or GPU activities that repeat, else about the whole trace",
        "give the profiler a schedule and mark the steps with {step}",
    ),
    "no_external_ids": Kind(
        "info",
        "no operator has an External id",
        "device work without a launching call cannot be given to its operator",
    ),
    "several_processes": Kind(
        "warning",
        "calls of several processes stand in one file",
        "it looks like several ranks in one; numbers are joined within a process only",
        "analyse the file of each rank by itself",
    ),
    "repeated_rank": Kind(
        "warning",
        "the file is of rank {rank}, as {other} is",
        "one of them is not of this run, or is a copy: ranks cannot be told apart",
        "give one file a rank",
    ),
    "clocks_far_apart": Kind(
        "warning",
        "nothing of the file is at the time of {other}, another rank of the run: they are "
        "{apart} apart",
        "they are of different runs, or their clocks disagree: times do not compare",
        "record all ranks at once, on machines with synchronised clocks",
    ),
    "no_rank": Kind(
        "info",
        "the file does not say which rank it is of",
        "none for one file; ranks can then be told by their file names only",
        "{rank}",
    ),
}

READING_HINTS: Final = {
    "truncated": "the program ended, or the disk was full, while the trace was written",
    "missing_end": "the program ended while the trace was written",
    "gzip_truncated": "copy the file again; the profiler may have been stopped while it wrote",
    "gzip_corrupt": "copy the file again",
    "gzip_checksum": "copy the file again",
    "limit_reached": "raise max_bytes or max_events",
    "unmatched_begin": "these ranges were still open when the profiler stopped",
    "zero_timestamp": "newer drivers and profilers lose fewer times; record again",
}
