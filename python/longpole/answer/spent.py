"""Reports what takes most of the time if no remedy fits: by operator or function."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from longpole.answer.advice import MOSTLY_UNNAMED, limiting
from longpole.remedies.limits import sides_of
from longpole.words.wording import count, duration, escape, share, short_name, whole_percent

if TYPE_CHECKING:
    from collections.abc import Iterator

    from longpole.remedies.facts import Facts
    from longpole.remedies.recorded import Activity, OnThread

# A name with less of the time is not reported.
_LEAST: Final = 0.1
_WIDEST: Final = 60

# Annotations that are tried, those with most time; the answer names one that is a part of the trace
# with at least this share of the kernel time.
_MOST_ANNOTATIONS: Final = 20
_MOST_OF_TRACE: Final = 0.5
_LEAST_WORK: Final = 0.2

# A call that takes at least this share of the total time is reported, because it may be a first
# use.
_MOST_OF_IT: Final = 0.5

# Part of the time of an event that is at least on the critical path, which tells which event it is.
_NEARLY: Final = 0.9

# The second name is reported too if it has at least this share of the time of the first.
_ALIKE: Final = 0.75


def spent_on(facts: Facts) -> Iterator[str]:
    """Yield the operators or functions that take most of the limiting side's time."""
    [side, *_] = sides_of(facts.parts["limit"]) or [None]
    if side == "host":
        yield from _host(facts)
    elif side == "kernels":
        yield from _kernels(facts)
    elif side == "copies":
        yield from _copies(facts)
    elif side == "communication":
        yield from _communication(facts)


def _host(facts: Facts) -> Iterator[str]:
    function = facts.parts["function"]
    if function is not None:
        name, part = function
        yield f"{short_name(name, _WIDEST)} has {whole_percent(part)} of the host time."
        return
    if facts.parts["busiest"] is not None:
        name, part, n_events, longest, *_ = facts.parts["busiest"]
        rest = _of_rest(facts)
        part *= rest
        if part >= _LEAST:
            calls = _calls(facts, n_events)
            if n_events > 1 and longest * rest >= _MOST_OF_IT * part:
                takes = f"one of which takes {whole_percent(longest * rest)}"
                calls = f"{count(n_events, 'call')}, {takes}"
                calls += _which(facts, name, longest)
            yield f"{short_name(name, _WIDEST)} takes {whole_percent(part)} of the time ({calls})."


def _of_rest(facts: Facts) -> float:
    """Return the factor from a share of all windows to one without the gaps left out."""
    if not facts.parts["gaps"]:
        return 1.0
    return facts.mean_ns * facts.n_windows / _total_ns(facts)


def _which(facts: Facts, name: str, share: float) -> str:
    """Return the event that takes a share of all windows."""
    long_ns = share * facts.mean_ns * facts.n_windows
    rows = facts.long_events(_NEARLY * share * facts.n_windows)
    named = [row for row in rows if facts.name(row.event) == name]
    if not named:
        return ""
    one = min(named, key=lambda row: (abs(row.duration_ns - long_ns), row.event))
    return f": event {one.event}"


def _calls(facts: Facts, n_events: int) -> str:
    n_windows = facts.parts["n_windows"]
    each = f" {facts.each}" if n_windows > 1 else ""
    return f"{count(max(round(n_events / n_windows), 1), 'call')}{each}"


def lacks_operators(facts: Facts, *, is_explained: bool) -> bool:
    """Whether remedies lack the operators of kernels or their shapes, which most of them need."""
    lacking = (_capture_to_record, _shapes_to_record)
    return any(told for find in lacking for told in find(facts, is_explained=is_explained))


def what_to_record(facts: Facts, *, is_explained: bool) -> list[str]:
    """Return what to record or to analyse if the trace does not show what most time is spent on.

    If a remedy saves most of that, the lines of Python that call operators are not needed.
    """
    host = _host_to_record(facts, is_explained=is_explained)
    return [
        *_inner_annotation(facts),
        *_part_to_analyse(facts),
        *_capture_to_record(facts, is_explained=is_explained),
        *_shapes_to_record(facts, is_explained=is_explained),
        *host,
    ]


def _inner_annotation(facts: Facts) -> Iterator[str]:
    """Yield that the window of an annotation encloses others of its name."""
    if facts.parts["unit"] != "annotation":
        return
    rows = sorted(facts.annotations(), key=lambda row: (row.start_ns, -row.end_ns))
    own = [row for row in rows if row.start_ns == facts.windows[0][0]]
    if not own:
        return
    name = facts.name(own[0].event)
    inner = [it for it in rows if own[0].start_ns < it.start_ns and it.end_ns <= own[0].end_ns]
    n_alike = sum(facts.name(row.event) == name for row in inner)
    if n_alike:
        others = count(n_alike, "other")
        yield f"The annotation encloses {others} of its name; choose one with `--window NAME#N`."


def _part_to_analyse(facts: Facts) -> Iterator[str]:
    """Yield which annotation to analyse in a trace without steps: the one with the busiest GPU."""
    if facts.parts["unit"] != "trace":
        return
    total_ns = sum(work.duration_ns for work in facts.kernels)
    of_name: dict[str, list[OnThread]] = defaultdict(list)
    for row in facts.annotations():
        of_name[facts.name(row.event)].append(row)
    best: tuple[float, str, float, float] | None = None
    longest = sorted(of_name, key=lambda name: (-sum(it.duration_ns for it in of_name[name]), name))
    for name in longest[:_MOST_ANNOTATIONS]:
        rows = of_name[name]
        time_ns = sum(row.duration_ns for row in rows)
        works = facts.launched_in([it.time_range for it in rows])
        kernels = {work.event: work.duration_ns for work in works if work.kind == "kernel"}
        work_ns = sum(kernels.values())
        of_time, of_work = time_ns / facts.mean_ns, work_ns / max(total_ns, 1)
        is_part = of_time <= _MOST_OF_TRACE and of_work >= _LEAST_WORK and time_ns > 0
        if is_part and (best is None or work_ns / time_ns > best[0]):
            best = (work_ns / time_ns, name, of_work, of_time)
    if best is not None:
        _, name, of_work, of_time = best
        yield (
            f"{escape(name)} has {whole_percent(of_work)} of the kernel time in "
            f"{share(of_time)} of the trace; `--window` with this name analyses it alone."
        )


def _capture_to_record(facts: Facts, *, is_explained: bool) -> Iterator[str]:
    """Yield that the operators of a graph are unknown, if most of what limits is in one."""
    is_of_torch = facts.parts["profiler"].startswith("torch")  # others record no operators of it
    if is_explained or not is_of_torch or "kernels" not in limiting(facts.parts):
        return
    unknown_ns = sum(work.duration_ns for work in facts.uncaptured())
    total_ns = sum(work.duration_ns for work in facts.kernels)
    if unknown_ns >= max(_LEAST * total_ns, 1):
        yield (
            f"Graphs run {share(unknown_ns / total_ns)} of the kernel time without a known "
            "capture, so remedies do not see their operators (--capture-trace)."
        )


def _shapes_to_record(facts: Facts, *, is_explained: bool) -> Iterator[str]:
    """Yield that operators have no shapes, if kernels limit and none of their operators has."""
    shapes = facts.options.shapes
    if is_explained or not shapes or "kernels" not in limiting(facts.parts):
        return
    operators = {it for work in facts.kernels if (it := facts.operator_of(work)) is not None}
    if operators and all(call is None for call in facts.called_each([*operators])):
        yield f"Input shapes, which most remedies of kernels need, are not recorded ({shapes})."


def _host_to_record(facts: Facts, *, is_explained: bool) -> Iterator[str]:
    parts = facts.parts
    if "host" not in limiting(parts):
        return
    recorded = parts["recorded"]
    is_named = parts["uncertainty"]["unnamed_host"] <= MOSTLY_UNNAMED
    stacks = f"Python stacks ({facts.options.stack})"
    if is_named:
        is_of_one = parts["busiest"] is not None and parts["busiest"][1] >= _MOST_OF_IT
        is_unknown = not is_of_one and parts["loader"] is None and not facts.has_stacks
        is_known = not facts.options.stack or is_explained
        if recorded["has_operators"] and is_unknown and not is_known:
            yield f"Which lines of Python call the operators is not recorded; record {stacks}."
    elif recorded["has_operators"] and not recorded["n_silent_threads"]:
        if facts.options.stack:
            yield f"Most host time is outside operators and calls; record {stacks}."
    else:
        operators = f"record {facts.options.operators}"
        yield f"Most host time is outside runtime API calls and may be waiting; {operators}."


def _kernels(facts: Facts) -> Iterator[str]:
    of_name: dict[str, list[Activity]] = defaultdict(list)
    for work in facts.kernels:
        of_name[facts.outermost_of(work) or facts.name(work.event)].append(work)
    yield from _longest(facts, of_name, "kernel", "kernels")


def _copies(facts: Facts) -> Iterator[str]:
    of_name: dict[str, list[Activity]] = defaultdict(list)
    for work in facts.copies:
        of_name[facts.name(work.event)].append(work)
    yield from _longest(facts, of_name, "copy", "copies")


def _communication(facts: Facts) -> Iterator[str]:
    of_name: dict[str, list[Activity]] = defaultdict(list)
    for work in facts.kernels:
        if work.kind == "communication":
            of_name[facts.name(work.event)].append(work)
    yield from _longest(facts, of_name, "collective", "collectives")


def _longest(
    facts: Facts, of_name: dict[str, list[Activity]], one: str, several: str
) -> Iterator[str]:
    """Yield the name with most time, if it has enough; concurrent work takes at most all of it."""
    if not of_name:
        return
    time_ns = {name: sum(work.duration_ns for work in works) for name, works in of_name.items()}
    ranked = sorted(time_ns, key=lambda name: -time_ns[name])
    name, works = ranked[0], of_name[ranked[0]]
    total_ns = _total_ns(facts)
    part = time_ns[name] / total_ns
    if part >= _LEAST:
        n_works = max(round(facts.per_window(len(works))), 1)
        taken = f"{whole_percent(part)} of the time"
        if part > 1:
            n_works, shown_ns = facts.in_shown(works)
            taken = f"{duration(shown_ns)}, several at a time"
        number = count(n_works, one, several)
        each = f" {facts.each}" if facts.n_windows > 1 else ""
        also = [
            f", and {short_name(other, _WIDEST)} {whole_percent(time_ns[other] / total_ns)}"
            for other in ranked[1:2]
            if total_ns >= time_ns[other] >= _ALIKE * time_ns[name]
        ]
        yield (
            f"{short_name(name, _WIDEST)} takes {taken} ({number}{each}; longest: event "
            f"{facts.longest(works)[0]}){''.join(also)}."
        )


def _total_ns(facts: Facts) -> float:
    """Return the time that the verdict is about: all windows, without the gaps it leaves out."""
    if facts.parts["gaps"]:
        return max(facts.parts["lengths_ns"][3], 1)
    return facts.mean_ns * facts.n_windows
