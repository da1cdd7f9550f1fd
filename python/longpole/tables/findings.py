"""All findings of `check`: severity, what happened, the effect, and what to do.

Findings of the reader are declared in the core, in the same form; only their hints are here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

from longpole.engine.recording_cost import SPEED_CHANGED
from longpole.words.data import Data

Severity = Literal["info", "warning", "altered", "data_loss"]

SEVERITIES: Final[tuple[Severity, ...]] = ("data_loss", "altered", "warning", "info")
"""All severities, most severe first."""


@dataclass(frozen=True, slots=True)
class Place:
    """The first occurrence of a finding: a byte of the uncompressed file, or an event."""

    offset: int | None = None
    event: int | None = None
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Finding(Data):
    """A kind of problem or note, with the number of occurrences."""

    code: str
    severity: Severity
    count: int
    sentence: str
    effect: str
    hint: str | None = None
    first: Place | None = None


class Kind(NamedTuple):
    """The properties that all findings of one code share; texts may have placeholders.

    The placeholders of a hint are those of `longpole.words.recording.Options`.
    """

    severity: Severity
    sentence: str
    effect: str
    hint: str | None = None


KINDS: Final = {
    "no_timed_events": Kind(
        "warning",
        "no timed work: {why}",
        "there is nothing to analyse",
        "record at least one step of the process that uses the GPU, with {device}",
    ),
    "caught_nothing": Kind(
        "warning",
        "the profiler ran for {time} and recorded no operator and no GPU activity",
        "there is nothing to analyse",
        "start the profiler in the process and in the thread that do the work, around at least one "
        "step, with {device}",
    ),
    "asynchronous_only": Kind(
        "warning",
        "the file has {n_parts} parts of asynchronous events ({names}) and no other timed events",
        "longpole reads them as they are; they have no thread and no device",
        "Perfetto shows them (https://ui.perfetto.dev); for an analysis, record the same run with "
        "{device}",
    ),
    "collectives_of_plugin": Kind(
        "warning",
        "the file has {n_parts} parts of asynchronous events of NCCL's profiler plugin ({names})",
        "they are times of the host in NCCL, without kernels and without the program",
        "Perfetto shows them (https://ui.perfetto.dev); for an analysis, record the same run with "
        "{device}",
    ),
    "unknown_categories": Kind(
        "warning",
        "events of categories that longpole does not know: {categories}",
        "they count in no figure",
        "map them to kinds of events with --vocabulary FILE: docs/formats.md, Custom names",
    ),
    "profiler_message": Kind(
        "warning",
        'the profiler reports "{text}"',
        "records may be missing",
    ),
    "speed_changed": Kind(
        "warning",
        SPEED_CHANGED,
        "the time of a step is uncertain, and so is a comparison with another trace",
        "record again while nothing else uses the machine",
    ),
    "no_device_work": Kind(
        "info",
        "the trace has no GPU activity",
        "the analysis covers the CPU only",
        "to see a device, record with {device}",
    ),
    "only_counter_ranges": Kind(
        "info",
        "the trace has counter ranges instead of kernels with durations",
        "the analysis covers the CPU and the counters",
        "record again without counters to get the kernels",
    ),
    "unmatched_counters": Kind(
        "warning",
        "{told}",
        "the operators of these counters are unknown",
        "record again, or count each kernel (profiler_measure_per_kernel=True)",
    ),
    "no_correlations": Kind(
        "warning",
        "no GPU activity has a correlation id",
        "launches cannot be linked to activities: launch delays and launch waits are unknown",
        "record with a newer profiler; external ids still give operators, if there are any",
    ),
    "zero_correlations": Kind(
        "warning",
        "the correlation id of every GPU activity is 0",
        "launches cannot be linked to activities: launch delays and launch waits are unknown",
        "the file was rewritten, or the driver does not number launches; record again",
    ),
    "narrowed_correlations": Kind(
        "warning",
        "GPU activities whose correlation id is the lower 32 bits of the id of a call",
        "they are not linked to the call, because several calls can have the same lower 32 bits",
        "keep 64-bit ids in programs that rewrite the file, or record with a newer profiler",
    ),
    "narrowed_external_ids": Kind(
        "warning",
        "GPU activities whose external id is the lower 32 bits of the id of an operator",
        "they are not linked to the operator, because several can have the same lower 32 bits",
        "keep 64-bit ids in programs that rewrite the file, or record with a newer profiler",
    ),
    "reused_external_ids": Kind(
        "warning",
        "operators with the external id of an earlier operator",
        "GPU activities that only have an external id may stay without an operator",
        "the file may contain several recordings",
    ),
    "unlinked_device_work": Kind(
        "warning",
        "GPU activities whose launch is not in the trace ({share} of all in the trace)",
        "their launch delay, operator and step are unknown",
        "record from before the first launch, with the calls of the host",
    ),
    "no_host_calls": Kind(
        "warning",
        "GPU activities, but the trace has no runtime API call of the host",
        "their launch delay, operator and step are unknown",
        "record the runtime API calls of the host, too, with {calls}",
    ),
    "launches_without_work": Kind(
        "warning",
        "launches of kernels and CUDA graphs whose activities are not in the trace",
        "the device may be busier than the trace shows, unless they are among the activities "
        "without a launch",
        "stop the profiler after the device has finished ({synchronize})",
    ),
    "launches_before_recording": Kind(
        "warning",
        "launches at the start of the recording whose activities are not in the trace",
        "the device may be busier at the start than the trace shows: the profiler records its "
        "activities later than the calls",
        "record {schedule}, and analyse a later step",
    ),
    "ambiguous_correlations": Kind(
        "warning",
        "GPU activities whose correlation id belongs to several calls",
        "the nearest call before the activity is used as its launch",
    ),
    "linked_by_external_id": Kind(
        "info",
        "GPU activities that only an external id links to their operator",
        "their operator is inferred and their launch is unknown",
    ),
    "no_synchronization_records": Kind(
        "info",
        "the trace has no synchronization records",
        "waits for the device are inferred from blocking calls",
        "record with {waits}",
    ),
    "crossing_events": Kind(
        "warning",
        "events of {category} that overlap another event of their thread: they start inside it and "
        "end after it",
        "the events count as siblings; which of them called the other is unknown",
    ),
    "overlapping_device_work": Kind(
        "warning",
        "events of {category} that start before an earlier activity of their stream ends (they "
        "overlap by up to {longest})",
        "busy time counts the overlap once; the durations of single kernels may be too long",
        "normal with programmatic dependent launch; otherwise the recorded times may be wrong",
    ),
    "nested_by_rounding": Kind(
        "info",
        "events that end up to 1 µs after the event that encloses them",
        "none; the difference is treated as rounding",
    ),
    "work_before_its_call": Kind(
        "warning",
        "GPU activities that start before their launch, by up to {longest}",
        "the clocks of host and device differ by at least that much",
        "compare times of host and device with care; they are kept as recorded",
    ),
    "long_before_launch": Kind(
        "warning",
        "GPU activities that start up to {longest} before their launch, though others of their "
        "device start just after theirs",
        "the clocks do not explain that, so the recorded times or correlation ids are wrong: "
        "figures of the device depend on them",
        "record again, with a newer driver and profiler",
    ),
    "out_of_stream_order": Kind(
        "warning",
        "GPU activities that start after the end of work which was launched later on their stream, "
        "by up to {longest}",
        "a stream runs its work in order, so the recorded times or streams are wrong: figures of "
        "the device depend on them",
        "record again; if graphs are replayed, with a newer profiler",
    ),
    "late_on_idle_device": Kind(
        "warning",
        "replays of graphs that start up to {longest} after their launch, though the device was "
        "idle and their stream had more replays waiting",
        "their recorded times are most likely too late: launch delays, idle times and rates rest "
        "on them",
        "record again; if graphs are replayed, with a newer profiler",
    ),
    "dependencies_back_in_time": Kind(
        "info",
        "dependencies of the critical path would go back in time, by at most {longest}",
        "the path leaves them out and follows another cause; `CriticalPath.violations` lists them",
    ),
    "clock_shift": Kind(
        "warning",
        "the clock of {device} is {shift}",
        "the critical path shifts the timestamps of the device; tables keep them as recorded",
        "compare times of host and device with care",
    ),
    "clock_jump": Kind(
        "warning",
        "jumps of the clock of {device}: at first {shifts}",
        "the critical path shifts the timestamps of the device; tables keep them as recorded",
        "compare times of host and device with care",
    ),
    "no_steps": Kind(
        "info",
        "the trace has no `ProfilerStep` annotation",
        "the answers are about repeated annotations or GPU activities, else about the whole trace",
        "give the profiler a schedule and mark the steps with {step}",
    ),
    "steps_of_two_lengths": Kind(
        "info",
        "steps that take {others}, unlike the {n_usual} steps that take {usual}",
        "what an answer says of the step of median length does not hold for them",
        "choose one of them with --step; the table `steps` lists them",
    ),
    "no_external_ids": Kind(
        "info",
        "no operator has an external id",
        "GPU activities whose launch is missing cannot be linked to their operator",
    ),
    "several_processes": Kind(
        "warning",
        "the file contains runtime API calls of several processes",
        "the file may contain several ranks; ids are matched within each process only",
        "record one file for each rank",
    ),
    "repeated_rank": Kind(
        "warning",
        "the file and {other} both have rank {rank}",
        "one of them is a copy or belongs to another run: the ranks are ambiguous",
        "pass one file for each rank",
    ),
    "clocks_far_apart": Kind(
        "warning",
        "the file does not overlap in time with {other}, another rank of the run: they are "
        "{apart} apart",
        "they belong to different runs or their clocks differ: their times cannot be compared",
        "record all ranks in one run, on machines with synchronised clocks",
    ),
    "several_files": Kind(
        "info",
        "the trace was read from several files: {files}",
        "byte offsets count the bytes of all of them, in this order",
    ),
    "other_timeline": Kind(
        "info",
        "the profiler wrote another timeline of this run, {other}, with at most a million events",
        "none: this file holds all events",
    ),
    "limited_timeline": Kind(
        "info",
        "the profiler wrote another timeline of this run, {other}, which holds all events",
        "this file holds at most a million events; the last ones may be missing",
        "read the other file",
    ),
    "one_of_ranks": Kind(
        "info",
        "the file is rank {rank} of {size}",
        "waits for the other ranks are part of communication",
        "`longpole ranks` reads the files of all ranks, and says which are missing",
    ),
    "no_rank": Kind(
        "info",
        "the file does not name its rank",
        "none for one file; the rank is taken from the file name",
        "{rank}",
    ),
}

IMPOSSIBLE_TIMES: Final = ("long_before_launch", "out_of_stream_order", "late_on_idle_device")
"""Codes for GPU activities whose recorded times are impossible."""

READING_HINTS: Final = {
    "truncated": "the program ended, or the disk was full, while the trace was written",
    "missing_end": "the program ended while the trace was written",
    "compression_truncated": "copy the file again; the profiler may not have ended",
    "compression_corrupt": "copy the file again",
    "compression_checksum": "copy the file again",
    "damaged_table": "export or copy the file again; `PRAGMA integrity_check` names the damage",
    "damaged_page": "export or copy the file again; `PRAGMA integrity_check` names the damage",
    "damaged_text": "export or copy the file again",
    "missing_rows": "export the report again",
    "no_write_ahead_log": "close the program that writes the database before you copy the file",
    "whole_graph": "record with `nsys profile --cuda-graph-trace=node`",
    "limit_reached": "raise max_bytes or max_events",
    "unmatched_begin": "these ranges were still open when the profiler stopped",
    "far_timestamp": "record again; the profiler wrote 0, or another clock, for some times",
    "zero_timestamp": "record again {no_counters}: if counters were requested and could not be "
    "read, times are 0; read counters in a run of their own, with the right to (root, or the "
    "driver's setting); newer drivers and profilers also lose fewer timestamps",
}
