"""Reasons why a trace has no verdict, and what to record to get one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from longpole.engine.windows import noun_of
from longpole.remedies.limits import NoDevice, NotShown, Waits, sides_of
from longpole.words.recording import options_of
from longpole.words.wording import whole_percent

if TYPE_CHECKING:
    from longpole.remedies.parts import RecordedParts, VerdictParts
    from longpole.remedies.sides import Fact, Side
    from longpole.words.recording import Options

# What the trace lacks and what to record; placeholders are those of `Options`.
_SCHEDULE: Final = "with {schedule}, so that the launches before the window are known"
_CAUSES: Final = {
    "unlinked": (
        "of the GPU activities are not linked to the call that launched them",
        "{launches}",
    ),
    "remaining": (
        "of the time remains even if all recorded work takes no time",
        "all threads and devices of the program{and_waits}",
    ),
    "polling": (
        "of the path is a thread that asks again and again whether the GPU is done",
        "both sides of the wait with {ranges}; the profiler does not record such waits",
    ),
    "host_waits": (
        "of the time a thread is outside runtime API calls, at work or waiting for another thread",
        "{operators} to tell the two apart",
    ),
    "graph_gap": (
        "of the path is a gap inside a {graph}",
        "the capture of the graph too{and_waits}",
    ),
    "unexplained": ("of the path is idle time without a recorded cause", "{with_waits}"),
    "unrecorded": ("of the path is a wait for work that was not recorded", _SCHEDULE),
    "before_first_event": ("of the path lies before its first event", _SCHEDULE),
    "after_last_event": ("of the path lies after the last recorded event", _SCHEDULE),
    "sync_return": (
        "of the path is calls that wait for GPU work launched before recording began",
        _SCHEDULE,
    ),
}
_SHARE_OF: Final = {
    "unlinked": "unlinked",
    "remaining": "floor",
    "polling": "polling",
    "host_waits": "host_waits",
}

# Why a bound of a gain is far from the gain, and what to record.
_OPEN: Final[dict[Fact, tuple[str, str]]] = {
    "unexplained_time": ("idle time has no recorded cause", "Record {with_waits}"),
    "missing_activities": ("launched work is not recorded", f"Record {_SCHEDULE}"),
    "late_launches": ("launches are missing", f"Record {_SCHEDULE}"),
    "busy_stream": ("launches are missing", f"Record {_SCHEDULE}"),
    "recording_cost": (
        "what recording cost is uncertain",
        "Give the time of a step without the profiler (--step-time)",
    ),
}

LEAST_GAIN: Final = 0.05
"""Minimum gain of a side that limits a program."""

# If more of the host time has no recorded event, the function is unknown.
MOSTLY_UNNAMED: Final = 0.5

MOST_OPEN: Final = 0.4
"""An interval of a gain that is wider than this share of the step is not a verdict."""

# If more of the window lies after the end of the recording, that is reported first.
_MUCH_STOPPED: Final = 0.4

# If the GPU is busy for at least this share of the window, it counts as busy all the time.
_BUSY: Final = 0.9

# If threads and devices are active for less than this, events were removed from the trace.
_LITTLE_RECORDED: Final = 0.1


def why(parts: VerdictParts) -> str:
    """Return why a trace is inconclusive, with the share of the window."""
    code = str(parts["cause"])
    if code == "unlinked" and parts["recorded"]["n_unlinked"]:
        return _unlinked(parts["recorded"], parts["n_earlier"])
    options = options_of(parts["profiler"], is_of_server=parts["is_of_server"])
    share = parts["uncertainty"][_SHARE_OF.get(code, "unknown")]
    return f"{whole_percent(share)} {_CAUSES[code][0].format(graph=options.graph)}"


def _unlinked(recorded: RecordedParts, n_earlier: int) -> str:
    """Count the GPU activities of the shown window without a launch, as its table does."""
    n_activities, n_unlinked = recorded["n_activities"], recorded["n_unlinked"]
    if n_unlinked == n_activities:
        return "no GPU activity is linked to the call that launched it"
    if n_earlier == n_unlinked:
        return (
            f"{n_unlinked:,} of {n_activities:,} GPU activities were most likely launched before "
            "recording began"
        )
    return (
        f"{n_unlinked:,} of {n_activities:,} GPU activities are not linked to the call that "
        "launched them"
    )


def options_in(parts: VerdictParts) -> Options:
    """Return the options to advise for the profiler of a trace.

    If operators are missing on some threads, these include the option to record all threads. What
    the trace was recorded with is left out.
    """
    options = options_of(parts["profiler"], is_of_server=parts["is_of_server"])
    given: dict[str, Any] = dict.fromkeys(parts["in_use"], "")
    options = options._replace(**given)
    if parts["recorded"]["n_silent_threads"] and options.all_threads:
        return options._replace(operators=options.all_threads)
    return options


def advice(parts: VerdictParts) -> tuple[str, str | None]:
    """Return why this window was chosen or why there is no verdict, and what to record."""
    reason = parts["reason"]
    options = options_in(parts)
    if isinstance(parts["limit"], NotShown):
        record = _CAUSES[parts["limit"].reason][1].format(**_blanks(options))
        if 2 * parts["n_earlier"] > parts["recorded"]["n_unlinked"]:
            record = _SCHEDULE.format(schedule=options.schedule)
        if parts["limit"].reason == "unlinked" and _is_nearly_empty(parts):
            record = "the whole program, if this trace was cut or sampled"
        return f"{why(parts)} ({reason})", record
    return reason, _better(parts, options)


def narrowing(parts: VerdictParts, fact: Fact) -> tuple[str, str] | None:
    """Return why a gain is open, and what narrows it; None if nothing is missing."""
    if fact not in _OPEN:
        return None
    reason, advice = _OPEN[fact]
    return reason, advice.format(**_blanks(options_in(parts)))


def _blanks(options: Options) -> dict[str, str]:
    """Return the options as placeholders, with phrases for recording which call waits."""
    waits = options.waits and f"with {options.waits}"
    with_waits = waits or _SCHEDULE.format(schedule=options.schedule)
    and_waits = waits and f", {waits}"
    return {**options._asdict(), "with_waits": with_waits, "and_waits": and_waits}


def mostly_stopped(parts: VerdictParts) -> bool:
    """Whether most of the shown window is after the end of the recording, with an idle GPU.

    If the GPU is busy nearly all the time, host work that was not recorded cannot limit the window.
    """
    recorded = parts["recorded"]
    is_after_end = recorded["stopped_ns"] > _MUCH_STOPPED * parts["lengths_ns"][0]
    return is_after_end and recorded["device"] < _BUSY


def limiting(parts: VerdictParts) -> tuple[Side, ...]:
    """Return the sides that limit a program; after waits, the work that gains much as well."""
    if not isinstance(parts["limit"], Waits):
        return sides_of(parts["limit"])
    work = [side for side in parts["gains"] if side != "waits"]
    return ("waits", *(side for side in work if parts["gains"][side].value >= LEAST_GAIN))


def ends_in_time(parts: VerdictParts) -> str:
    """Return what to record if the profiler stopped too early."""
    step = options_of(parts["profiler"], is_of_server=parts["is_of_server"]).step
    noun = noun_of(parts["unit"])
    article = "an" if noun == "annotation" else "a"
    return f"{article} {noun} that ends before the profiler stops ({step})"


def _is_nearly_empty(parts: VerdictParts) -> bool:
    recorded = parts["recorded"]
    return recorded["device"] + recorded["host"] < _LITTLE_RECORDED


def _device(parts: VerdictParts, options: Options) -> str:
    """Return the option that records GPU activities, by the evidence that they are missing."""
    if parts["recorded"]["n_counter_ranges"]:
        return f"once more {options.no_counters}"
    if parts["recorded"]["n_launching"]:
        return (
            f"again, with {options.synchronize} before the profiler stops and no other profiler "
            "at work"
        )
    return f"with {options.device}"


def _better(parts: VerdictParts, options: Options) -> str | None:
    """Return which recording would contain more than this one."""
    sides = limiting(parts)
    if isinstance(parts["limit"], NoDevice):
        return None if parts["runs_elsewhere"] else _device(parts, options)
    if mostly_stopped(parts):
        return ends_in_time(parts)
    if parts["unit"] in {"trace", "repetition"}:
        return f"with {options.step}, or name the annotation of an iteration with --step-name"
    if "host" in sides and parts["uncertainty"]["unnamed_host"] > MOSTLY_UNNAMED:
        recorded = parts["recorded"]
        if recorded["n_silent_threads"] or not recorded["has_operators"]:
            return f"{options.operators} to name host work"
        if options.stack:
            stacks = f"Python stacks ({options.stack}) to name the function"
            return f"{stacks}; record without them for the time"
    is_open = parts["uncertainty"]["rest"] > parts["uncertainty"]["unknown"] and "host" not in sides
    return f"with {options.waits}" if is_open and options.waits else None
