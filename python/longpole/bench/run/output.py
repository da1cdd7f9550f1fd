"""The output of a job, and how its outcome is determined.

Output is counted and searched for results while it arrives; only its end is kept. Exit status and
signal decide the outcome. Text on stderr only explains, and never turns a success into a failure;
it is read only after a failure, to distinguish a lost device from a faulty job.
"""

from __future__ import annotations

import errno
import re
import signal
from collections import defaultdict
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Final

from longpole.bench.extraction import PATTERN_FORMAT, Extractor, without_point
from longpole.bench.records.record import Measurement, Omitted, Outcome, is_duration_ns

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from longpole.bench.extraction import Extraction, MeasuredRow, OmittedRows
    from longpole.bench.run.guard import Ending, Stream

NO_RESULTS: Final = "none"
TAIL_BYTES: Final = 64 << 10

KEPT_RESULTS: Final = 10_000
"""Maximum number of results kept per job; further ones are summarised by name."""

SPEAKS_OF_ERROR: Final = re.compile(r"error|fail|fatal|exception|what\(\)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Found:
    """The results in an output, in printed order, and the number of rows that are not results.

    `omitted` summarises the rows that were not kept, and `fastest_omitted` has the fastest of each
    name among them.
    """

    results: tuple[Measurement, ...] = ()
    unparsed: int = 0
    omitted: tuple[Omitted, ...] = ()
    fastest_omitted: tuple[Measurement, ...] = ()


class Tail:
    """The length of a stream of bytes, and its last 64 KiB."""

    def __init__(self) -> None:
        self.n_bytes = 0
        self._kept = bytearray()

    def feed(self, chunk: bytes) -> None:
        """Process the next chunk."""
        self.n_bytes += len(chunk)
        self._kept += chunk[-TAIL_BYTES:]
        if len(self._kept) > 2 * TAIL_BYTES:
            del self._kept[:-TAIL_BYTES]

    def text(self, n_bytes: int = TAIL_BYTES) -> str:
        """Return the end as text; invalid UTF-8 is replaced."""
        return bytes(self._kept[-n_bytes:]).decode("utf-8", "replace")

    def telling_line(self) -> str:
        """Return the last line that mentions an error, else the last non-blank line."""
        lines = [line.strip() for line in reversed(self.text().splitlines())]
        return next(filter(SPEAKS_OF_ERROR.search, lines), next(filter(None, lines), ""))


class Output:
    """Both output streams of a job. Results are extracted from standard output.

    Parameters
    ----------
    format_name
        As `Job.format`.
    """

    def __init__(self, format_name: str) -> None:
        self.stdout = Tail()
        self.stderr = Tail()
        self._extractor = None if format_name == NO_RESULTS else _extractor(format_name)

    def take(self, stream: Stream, chunk: bytes) -> None:
        """Process output of the job."""
        if stream == "stderr":
            self.stderr.feed(chunk)
            return
        self.stdout.feed(chunk)
        if self._extractor is not None:
            self._extractor.feed(chunk)

    def finish(self, *, died: bool) -> Found:
        """Return the results. If the job died, an incomplete last line is not a result."""
        if self._extractor is None:
            return Found()
        return _found(self._extractor.finish(died=died))


@cache
def check_format(name: str) -> None:
    """Raise for an invalid format.

    Raises
    ------
    ValueError
        The name is unknown, or the pattern is invalid.
    """
    if name != NO_RESULTS:
        _extractor(name)


def _extractor(format_name: str) -> Extractor:
    return Extractor(format_name, max_rows=KEPT_RESULTS)


def _found(extraction: Extraction) -> Found:
    rows = extraction.measurements
    named = _named_values(extraction)
    results = tuple(
        _measurement(row, named.get(number)) for number, row in enumerate(rows) if _is_result(row)
    )
    n_rejected = sum(extraction.rejected_counts.values())
    n_unusable = sum(each.n_rows - each.n_selectable for each in extraction.omitted)
    fastest = (each.fastest for each in extraction.omitted)
    return Found(
        results=results,
        unparsed=len(rows) - len(results) + n_rejected + n_unusable,
        omitted=tuple(map(_summed_up, extraction.omitted)),
        fastest_omitted=tuple(_measurement(row) for row in fastest if row and _is_result(row)),
    )


def _is_result(row: MeasuredRow) -> bool:
    return row.is_selectable and is_duration_ns(row.time_ns)


def _named_values(extraction: Extraction) -> dict[int, dict[str, str]]:
    """Return the groups of a `regex=` pattern that are not part of a result, by row."""
    named: dict[int, dict[str, str]] = {}
    if not any(row.format == PATTERN_FORMAT for row in extraction.measurements):
        return named
    for number, name, value in extraction.fields.iter_rows():
        named.setdefault(number, {})[str(name)] = str(value)
    return named


def _measurement(row: MeasuredRow, named: Mapping[str, str] | None = None) -> Measurement:
    original = {"time": row.printed_time, "unit": row.printed_unit, "format": row.format}
    original = {**(named or {}), **original}
    time_ns = without_point(row.time_ns) or 0
    return Measurement(row.operation or "", time_ns, row.workspace_bytes, original)


def _summed_up(rows: OmittedRows) -> Omitted:
    fastest_ns = rows.fastest.time_ns if rows.fastest else None
    ends_ns = map(without_point, (fastest_ns, rows.last_ns))
    return Omitted(rows.operation or "", rows.n_rows, *ends_ns)


# Messages of drivers and runtimes for a failing device.
DEVICE_TROUBLE: Final = re.compile(
    r"no CUDA-capable device|no ROCm-capable device|fallen off the bus|GPU is lost"
    r"|cudaErrorDevicesUnavailable|devices are busy or unavailable|hipErrorNoDevice"
    r"|cudaErrorNoDevice|uncorrectable ECC error|Unable to determine the device handle"
    r"|cudaErrorSystemNotReady|hardware failure on the device|GPU has been reset",
    re.IGNORECASE,
)
# System errors that may disappear in a few seconds, unlike a missing or non-executable file.
PASSING_ERRORS: Final = frozenset(
    {
        errno.EAGAIN,
        errno.EBUSY,
        errno.EIO,
        errno.EMFILE,
        errno.ENFILE,
        errno.ENOMEM,
        errno.ESTALE,
        errno.ETXTBSY,
    }
)
UNSTABLE_SHARE: Final = 0.10
QUOTED_CHARACTERS: Final = 300


@dataclass(frozen=True, slots=True)
class Judgement:
    """An outcome and its reason. `device_trouble` is the reason why the device is unusable."""

    outcome: Outcome
    message: str = ""
    device_trouble: str | None = None
    unstable: bool = False


def judge(ending: Ending, output: Output, found: Found, *, expects_result: bool) -> Judgement:
    """Return the outcome of a job from its end."""
    judgement = _judge(ending, output, found, expects_result=expects_result)
    if n_omitted := sum(each.count for each in found.omitted):
        said = f"{n_omitted:,} rows beyond the first {len(found.results):,} are summed up"
        message = f"{judgement.message}; {said}" if judgement.message else said
        return replace(judgement, message=message)
    return judgement


def _judge(ending: Ending, output: Output, found: Found, *, expects_result: bool) -> Judgement:
    if ending.refused is not None:
        return Judgement(Outcome.NOT_STARTED, f"not started: {ending.refused[1]}")
    if ending.stopped is not None:
        return _judge_stopped(ending)
    if ending.signal is not None or ending.exit_code:
        return _judge_failed(ending, output)
    if expects_result and not (found.results or found.fastest_omitted):
        return Judgement(Outcome.NO_RESULT, _nothing_found(output, found))
    return _judge_success(ending, found)


def launch_can_pass(ending: Ending) -> bool:
    """Whether starting the same job again may succeed in a few seconds."""
    return ending.refused is not None and ending.refused[0] in PASSING_ERRORS


def spread_of_repeats(results: Sequence[Measurement]) -> dict[str, float]:
    """Return the spread of the repeats of each result, as a fraction of the fastest."""
    times_ns: defaultdict[str, list[float]] = defaultdict(list)
    for result in results:
        times_ns[result.name].append(result.time_ns)
    return {name: max(times) / min(times) - 1 for name, times in times_ns.items() if len(times) > 1}


def signal_name(number: int) -> str:
    """Return the name of a signal."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _judge_stopped(ending: Ending) -> Judgement:
    is_late = ending.stopped == "limit"
    outcome = Outcome.TIMEOUT if is_late else Outcome.CANCELLED
    by = "SIGKILL, because it ignored SIGTERM" if ending.forced else "SIGTERM"
    after = f"timed out after {ending.limit_s:g} s" if is_late else "cancelled"
    message = f"{after}; ended by {by}"
    if not ending.unkillable:
        return Judgement(outcome, message)
    trouble = f"stuck in the kernel: SIGKILL does not end it: {', '.join(ending.unkillable)}"
    return Judgement(outcome, f"{message}; {trouble}", trouble)


def _judge_failed(ending: Ending, output: Output) -> Judgement:
    said = _quote(output)
    trouble = DEVICE_TROUBLE.search(output.stderr.text() + output.stdout.text())
    if trouble:
        return Judgement(Outcome.DEVICE_ERROR, said or trouble[0], said or trouble[0])
    if ending.signal is None:
        return Judgement(Outcome.NONZERO, _join(f"exit status {ending.exit_code}", said))
    message = f"ended by {signal_name(ending.signal)}"
    if ending.signal == signal.SIGKILL:
        message += " from outside, perhaps by the out-of-memory killer (see dmesg)"
    return Judgement(Outcome.SIGNAL, _join(message, said))


def _judge_success(ending: Ending, found: Found) -> Judgement:
    spreads = spread_of_repeats(found.results)
    notes = [
        f"unstable: repeats of {name} differ by {share:.0%}"
        for name, share in spreads.items()
        if share > UNSTABLE_SHARE
    ]
    unstable = bool(notes)
    if ending.strays:
        notes.append(f"left processes running, killed: {', '.join(ending.strays)}")
    if found.unparsed:
        notes.append(f"{found.unparsed} rows are not results")
    trouble = f"cannot be killed: {', '.join(ending.unkillable)}" if ending.unkillable else None
    return Judgement(Outcome.OK, "; ".join(notes), trouble, unstable)


def _nothing_found(output: Output, found: Found) -> str:
    if found.unparsed:
        return f"no result: {found.unparsed} rows are not results"
    return _join(f"no result in {output.stdout.n_bytes:,} bytes of output", _quote(output))


def _quote(output: Output) -> str:
    """Return the end of the output, which usually contains the reason."""
    return (output.stderr.telling_line() or output.stdout.telling_line())[-QUOTED_CHARACTERS:]


def _join(message: str, said: str) -> str:
    return f"{message}: {said}" if said else message
