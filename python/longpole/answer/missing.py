"""Sentences that hold even if a trace lacks much of its data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.answer.advice import advice, mostly_stopped, options_in, why
from longpole.answer.gains import MOST_WORDS, n_words
from longpole.answer.served import described
from longpole.engine.recording_cost import is_told, range_of, unused_timings
from longpole.engine.windows import noun_of
from longpole.remedies.gains import WORTH_SAYING
from longpole.words.wording import count, duration, duration_range, short_name, whole_percent

if TYPE_CHECKING:
    from longpole.engine.recording_cost import RecordingCost
    from longpole.remedies.parts import GapParts, VerdictParts

WIDEST_NAME: Final = 60

# Windows whose lengths differ by less count as equally long.
_ALIKE: Final = 1.02

# How the length without the recording cost was obtained, as text before and after it.
_HOW: Final = {
    "estimated": ("about ", ""),
    "measured": ("", ", as measured"),
    "given": ("", ", as given"),
}

# A device that is busy for less of a gap counts as idle.
_HARDLY_BUSY: Final = 0.01

# A device that is busy for this share of the window leaves little for anything else to save.
_MOSTLY_BUSY: Final = 0.8

# From this share of the time on, CPU collectives are mentioned.
_MUCH_COLLECTIVE: Final = 0.1


def window(parts: VerdictParts) -> str:
    """Return the length of the window; of several that of the median one, which answers show.

    If something else limits the median one, it is the mean length, to which gains refer.
    """
    length_ns, _, _, total_ns = parts["lengths_ns"]
    if is_unusual(parts):
        told = _noun(parts, "mean"), total_ns // parts["n_windows"], [_others(parts)]
    else:
        told = _noun(parts, usual_of(parts)), length_ns, _known_of(parts)
    noun, taken_ns, known = told
    noun = f"{_without(parts['gaps'])}{noun[0].lower()}{noun[1:]}" if parts["gaps"] else noun
    computed = ", recomputed" if parts["gaps"] else ""
    clause = f" ({'; '.join(filter(None, known))})" if any(known) else ""
    return f"{noun} takes {_taken(parts, taken_ns)}{computed}{clause}"


def told_ns(parts: VerdictParts) -> int:
    """Return the length of the window that the sentence tells."""
    length_ns, _, _, total_ns = parts["lengths_ns"]
    return total_ns // parts["n_windows"] if is_unusual(parts) else length_ns


def usual_of(parts: VerdictParts) -> str:
    """Return which of several windows is shown: the median, or the shorter of two unlike ones."""
    _, min_ns, max_ns, _ = parts["lengths_ns"]
    is_of_two = parts["n_windows"] == 2 and max_ns > _ALIKE * min_ns  # noqa: PLR2004 - of two
    return "shorter" if is_of_two else "median"


def _noun(parts: VerdictParts, which: str) -> str:
    """Return the window as the subject of a sentence; of several, `which` says whose length."""
    n_windows, unit = parts["n_windows"], noun_of(parts["unit"])
    if parts["range_ns"] is not None and parts["unit"] != "time_range":
        within = f"The range of {duration(parts['range_ns'])} contains"
        if n_windows == 1:
            number = f", {parts['numbers'][0]}," if unit == "step" else ""
            return f"{within} one whole {unit}{number} which"
        return f"{within} {count(n_windows, f'whole {unit}')}, of which the {which} one"
    if n_windows == 1:
        return f"The {_step(parts, unit)}"
    if which == "shorter":
        return f"The shorter of 2 {unit}s"
    return f"The {which} {_step(parts, unit)}"


def _step(parts: VerdictParts, unit: str) -> str:
    """Return the noun for a step, which tells those of a server apart."""
    return unit if parts["served"] is None else described(parts["served"])


def is_unusual(parts: VerdictParts) -> bool:
    """Whether something else limits the median window than all windows together."""
    return parts["usual"] is not None and parts["usual"][2]


def _taken(parts: VerdictParts, length_ns: int) -> str:
    """Return a length, with how it is known if the cost of recording was removed."""
    cost = parts["recording_cost"]
    if cost is None or not is_told(cost):
        return duration(length_ns)
    about, how = _HOW.get(cost["status"], ("", ""))
    return f"{about}{duration(length_ns)} without the profiler{how if _is_of(parts, cost) else ''}"


def _known_of(parts: VerdictParts) -> list[str]:
    """Return what is known about the median length: its range, and the length as recorded."""
    _, min_ns, max_ns, _ = parts["lengths_ns"]
    cost, longest = parts["recording_cost"], _longest(parts)
    if cost is not None and is_told(cost):
        return [*(range_of(cost) if _is_of(parts, cost) else _recorded(parts)), longest]
    spread = duration_range(min_ns, max_ns) if max_ns > _ALIKE * min_ns and not longest else ""
    return [spread, longest, *_timed(parts, cost)]


def _recorded(parts: VerdictParts) -> list[str]:
    """Return the length of a chosen window as recorded, if no gap is left out of it."""
    if parts["recorded_ns"] is None or parts["gaps"]:
        return []
    return [f"{duration(parts['recorded_ns'])} recorded"]


def _timed(parts: VerdictParts, cost: RecordingCost | None) -> list[str]:
    """Return the timed steps, unless the answer is about one step of several."""
    is_of_all = parts["unit"] == "step" and parts["n_windows"] > 1
    is_usual = cost is not None and (is_of_all or _is_of(parts, cost))
    return unused_timings(cost) if cost is not None and is_usual else []


def step_range_ns(parts: VerdictParts) -> tuple[int, int] | None:
    """Return the least and most time of the window without the profiler, if known for it."""
    cost = parts["recording_cost"]
    if cost is None or not _is_of(parts, cost):
        return None
    least_ns, most_ns = cost["least_step_ns"], cost["most_step_ns"]
    return None if least_ns is None or most_ns is None else (least_ns, most_ns)


def _is_of(parts: VerdictParts, cost: RecordingCost) -> bool:
    """Whether the cost was estimated for this window."""
    return cost["step_ns"] == parts["lengths_ns"][0] and not parts["gaps"]


def _longest(parts: VerdictParts) -> str:
    """Report windows that take much longer than the median one."""
    n_outliers = len(parts["outliers"])
    if not n_outliers or parts["n_windows"] == 1:
        return ""
    take = "takes" if n_outliers == 1 else "take up to"
    return f"{n_outliers} of {parts['n_windows']:,} {take} {duration(parts['lengths_ns'][2])}"


def _others(parts: VerdictParts) -> str:
    _, min_ns, max_ns, _ = parts["lengths_ns"]
    return f"{parts['n_windows']:,} from {duration_range(min_ns, max_ns)}"


def _without(gaps: list[GapParts]) -> str:
    """Describe the gaps that the answer leaves out, and what happened around the longest."""
    first, *others = gaps
    if others:
        total = duration(sum(gap["duration_ns"] for gap in gaps))
        lead = f"{count(len(gaps), 'gap')} of {total} together, the longest {_where(first)}"
    else:
        lead = f"one gap of {duration(first['duration_ns'])} {_where(first)}"
    return f"Without {lead}, {_around(first)}, "


def _where(gap: GapParts) -> str:
    name = short_name(gap["before"], WIDEST_NAME // 2)
    return f"before {name}" if gap["is_activity"] else f"in {name}"


def _around(gap: GapParts) -> str:
    """Describe what host and device did in a gap, and what it probably is."""
    name, waits = gap["host"] or ("", False)
    host = f"the host {'waits' if waits else 'is'} in {short_name(name, WIDEST_NAME // 2)}"
    is_named = name and gap["is_activity"]
    device = (
        "no device is busy"
        if gap["busy_ns"] < _HARDLY_BUSY * gap["duration_ns"]
        else f"a device is busy for {duration(gap['busy_ns'])}"
    )
    around = f"in which {host} and {device}" if is_named else f"in which {device}"
    if not gap["is_first"]:
        return around
    # Set-up blocks the host in a call that does not wait for the device as such.
    if not name:
        idle = "in which the trace shows no GPU activity"
        return f"{idle} (likely work launched before it begins, or set-up on first use)"
    if gap["follows_wait"]:
        return f"{around} (likely for work launched before the recording began)"
    if waits:
        return f"{around} (likely for earlier work, or set-up on first use)"
    return f"{around} (likely set-up on first use)"


def stopped(parts: VerdictParts) -> str:
    """Report that the profiler stopped long before the window ended."""
    stopped_ns = parts["recorded"]["stopped_ns"]
    return (
        f"the profiler stopped {duration(stopped_ns)} before the {noun_of(parts['unit'])} ended, "
        "and nothing is recorded of that time"
    )


def no_device(parts: VerdictParts) -> list[str]:
    """Describe a program, or a window of it, without recorded GPU activities."""
    if parts["runs_elsewhere"]:
        why = "no GPU activity runs in it, so there is nothing to compare the host with"
        return [f"{window(parts)}; {why}.", *_host(parts)]
    first = f"{window(parts)}; no GPU activity is recorded{_although(parts)}."
    told = [f"{stopped(parts).capitalize()}."] if mostly_stopped(parts) else []
    _, record = advice(parts)
    is_certain = parts["recorded"]["n_launching"] > 0
    last = f"{'Record' if is_certain else 'If the program uses a GPU, record'} {record}."
    return _within(first, [*told, *_host(parts)], last)


def _within(first: str, between: list[str], last: str) -> list[str]:
    """Drop the last sentences in between if all together have too many words."""
    while between and sum(map(n_words, (first, *between, last))) > MOST_WORDS:
        between = between[:-1]
    return [first, *between, last]


def _although(parts: VerdictParts) -> str:
    """Report the evidence that GPU activities are missing rather than absent."""
    recorded = parts["recorded"]
    if recorded["n_counter_ranges"]:
        kernels = count(recorded["n_counter_ranges"], "kernel")
        return f", only performance counters of {kernels}, which make launches slow"
    if recorded["n_launching"]:
        return f", though {count(recorded['n_launching'], 'call')} launched kernels"
    return ""


def _host(parts: VerdictParts) -> list[str]:
    """Describe the host: its collectives, its main work, and unnamed time."""
    told = []
    collectives = parts["recorded"]["host_collectives"]
    if collectives is not None and collectives[1] >= _MUCH_COLLECTIVE:
        name, share = collectives
        told.append(
            f"Collectives on the CPU ({short_name(name, WIDEST_NAME)}) are in progress for "
            f"{whole_percent(share)} of the time: compare all ranks to see who is late."
        )
    busiest, unnamed = parts["busiest"], parts["uncertainty"]["unnamed_host"]
    stack = options_in(parts).stack
    shows = f"; {stack} shows the functions" if stack else ""
    if busiest is None and not parts["recorded"]["host"]:
        told.append(f"No operator or call is recorded{shows}.")
        return told
    name, share, *_ = busiest or ("", 0.0)
    if share < unnamed:
        told.append(
            f"The host is outside operators and calls for {whole_percent(unnamed)} of the time"
            f"{shows}."
        )
    if share >= min(unnamed, WORTH_SAYING):
        where = short_name(name, WIDEST_NAME)
        told.append(f"The host is busy in {where} for {whole_percent(share)} of the time.")
    return told


def inconclusive(parts: VerdictParts) -> list[str]:
    """Explain why the trace is inconclusive, what it contains, and what to record."""
    _, record = advice(parts)
    first = f"{window(parts)}; the trace does not show what limits it: {why(parts)}."
    return _within(first, _certain(parts), f"Record {record}.")


def _certain(parts: VerdictParts) -> list[str]:
    """Return what is certain although the limit is unknown: how much the GPU work leaves to save.

    A window is never shorter than the work of a device, unless that is shortened or overlaps.
    """
    recorded = parts["recorded"]
    busy = min(sum(share for _, share in recorded["busy"]), 1.0)
    if busy >= _MOSTLY_BUSY:
        told = (
            f"It is certain that GPU activities fill {whole_percent(busy)} of the time: nothing "
            f"saves more than {whole_percent(1 - busy)} unless it shortens or overlaps them."
        )
        return [told]
    if parts["cause"] != "unlinked":
        return []
    fill, host = (whole_percent(recorded[which]) for which in ("device", "host"))
    return [f"GPU activities fill {fill} of the time, operators and calls {host}."]
