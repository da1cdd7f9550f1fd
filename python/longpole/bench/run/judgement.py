"""The meaning of a job's end: an outcome, and a sentence that explains it.

Exit status and signal decide. Text on stderr only explains, and never turns a success into a
failure; it is read only after a failure, to distinguish a lost device from a faulty job.
"""

from __future__ import annotations

import errno
import re
import signal
from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from longpole.bench.records.record import Outcome

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longpole.bench.records.record import Measurement
    from longpole.bench.run.guard import Ending
    from longpole.bench.run.output import Found, Output

__all__ = ["Judgement", "judge", "launch_can_pass", "spread_of_repeats"]

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
    """An outcome and its reason. `device_trouble` says what makes the device unusable."""

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
    """Whether starting the same job again may work in a few seconds."""
    return ending.refused is not None and ending.refused[0] in PASSING_ERRORS


def spread_of_repeats(results: Sequence[Measurement]) -> dict[str, float]:
    """Return the spread of each result's repeats, as a fraction of the fastest."""
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
    outcome = Outcome.TIMEOUT if ending.stopped == "limit" else Outcome.CANCELLED
    by = "SIGKILL, because it ignored SIGTERM" if ending.forced else "SIGTERM"
    message = f"timed out after {ending.seconds or 0:.1f} s; ended by {by}"
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
    """Return the last words of the output, usually the reason."""
    return (output.stderr.telling_line() or output.stdout.telling_line())[-QUOTED_CHARACTERS:]


def _join(message: str, said: str) -> str:
    return f"{message}: {said}" if said else message
