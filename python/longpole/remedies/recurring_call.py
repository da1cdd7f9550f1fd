"""One call or function that takes much of every step, and launches nothing."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Final

from longpole.engine.critical_path.changes import Drop
from longpole.remedies.compile_overhead import COMPILING, DYNAMO
from longpole.remedies.interpreter_lock import VIEWS
from longpole.remedies.model import Found, Remedy
from longpole.remedies.modules import is_of_profiler
from longpole.remedies.profiler_work import without_profiler_work
from longpole.remedies.start_up import MAKERS, captures
from longpole.words.wording import count, duration, short_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from longpole.engine.critical_path.changes import TimeRange
    from longpole.remedies.facts import Facts
    from longpole.remedies.recorded import OnThread

# Minimum share of the time of a window that the call takes, minimum share of the windows that
# contain it, and its minimum duration; every program has shorter calls.
_LEAST_SHARE: Final = 0.03
_USUAL: Final = 0.6
_LEAST_NS: Final = 50_000

# Times of a call in two windows differ by at most this factor if they are alike.
_ALIKE: Final = 3

# A function that runs for a larger share of a window is the loop itself.
_MOST_SHARE: Final = 0.9

# Names that other remedies cover, and names of functions that only enclose the program.
_OTHERS: Final = (
    *COMPILING,
    "enumerate(DataLoader)",
    "Optimizer.",
    "ProfilerStep#",
    "<built-in function next>",
)
_NAMED: Final = (*VIEWS, DYNAMO)

# Operators that compute nothing: if one takes long, its thread was stopped.
_NO_WORK: Final = ("aten::empty", "aten::detach", "aten::set_")

_WIDEST: Final = 60

# Operators within which XLA runs a compiled program: what they contain is its own.
_OF_XLA: Final = ("PjitFunction(", "PjRt", "PJRT_")

# Roles of launches, and of the other calls that other remedies cover.
_LAUNCHES: Final = ("launch", "graph_launch")
_OTHER_CALLS: Final = (
    "copy",
    "blocking_copy",
    "allocate",
    "free",
    "stream_synchronize",
    "event_synchronize",
    "device_synchronize",
    "load_module",
)

# Maximum number of names examined, those with most time first.
_MOST_NAMES: Final = 4


def _find(facts: Facts) -> Iterator[Found]:
    waits = {wait.call.event for wait in facts.waits}
    known = {call.event for call in facts.calls(*_OTHER_CALLS)} | facts.once(_launches)
    of_name: dict[str, list[OnThread]] = defaultdict(list)
    for row in facts.long_events(_LEAST_SHARE):
        if row.lane in facts.launch_lanes and row.event not in waits and row.event not in known:
            of_name[facts.name(row.event)].append(row)
    best: list[tuple[int, str, list[OnThread]]] = []
    for name, rows in of_name.items():
        total_ns = sum(row.duration_ns for row in rows)
        if _is_loading(facts, rows[0].event) or _is_of_xla(facts, rows[0].event):
            continue
        n_alike, alike_ns = _alike(rows)
        is_usual = n_alike >= _USUAL * facts.n_windows and 2 * alike_ns >= total_ns
        is_function = facts.place(rows[0].event).kind in {"python", "annotation"}
        is_short = facts.per_window(total_ns) < _LEAST_NS
        is_all = is_function and total_ns > _MOST_SHARE * facts.mean_ns * facts.n_windows
        if not is_usual or is_short or is_all or _is_of_others(name):
            continue
        if (name in MAKERS and facts.n_windows == 1) or _is_in_capture(facts, rows[0]):
            continue
        time_ranges = [row.time_range for row in rows]
        if not _launches_or_loads(facts, time_ranges) and not _waits(facts, time_ranges):
            best.append((total_ns, name, rows))
    known.clear()
    said = False
    for _, name, rows in sorted(best, key=lambda it: (-it[0], it[1]))[:_MOST_NAMES]:
        # Of nested functions, the outermost that launches nothing has the whole time.
        is_part = known & {event for event, _, _ in facts.around(rows[0].event)}
        if is_part or len(without_profiler_work(facts, rows)) < len(rows):
            continue
        known.update(row.event for row in rows)
        note, said = ("", True) if said else (_set_up(facts), True)
        n_calls = max(round(facts.per_window(len(rows))), 1)
        yield Found(
            careful=[Drop(time_ranges=[row.time_range for row in rows])],
            advice=f"{_advice(facts, rows[0].event, name)}{note}",
            evidence=(
                f"{count(n_calls, 'call')} {facts.in_each} "
                f"{'takes' if n_calls == 1 else 'take'} {duration(facts.told_ns(rows))} and "
                f"{'launches' if n_calls == 1 else 'launch'} nothing"
            ),
            name=name,
            events=facts.longest(rows),
        )


def _is_of_others(name: str) -> bool:
    """Whether other remedies cover a call, or nothing in it can be changed."""
    return name.startswith((*_OTHERS, *_NO_WORK)) or name in _NAMED or is_of_profiler(name)


def _alike(rows: list[OnThread]) -> tuple[int, int]:
    """Return the number of windows in which the call takes about its usual time, and that time."""
    from statistics import median

    of_window: Counter[int] = Counter()
    for row in rows:
        of_window[row.window] += row.duration_ns
    usual_ns = median(of_window.values())
    alike = [ns for ns in of_window.values() if usual_ns <= _ALIKE * ns <= _ALIKE**2 * usual_ns]
    return len(alike), sum(alike)


def _advice(facts: Facts, event: int, name: str) -> str:
    if facts.place(event).kind == "operator" and name.startswith("aten::"):
        return f"Compute {name} on the GPU, less often, or elsewhere"
    return f"Call {short_name(name, _WIDEST)} less often, or elsewhere"


def _is_loading(facts: Facts, event: int) -> bool:
    return any("dataloader" in name.lower() for _, _, name in facts.around(event))


def _is_of_xla(facts: Facts, event: int) -> bool:
    """Whether an operator is the runtime's own, which the program does not call."""
    _, *outer = facts.around(event)
    return any(kind == "operator" and name.startswith(_OF_XLA) for _, kind, name in outer)


def _launches_or_loads(facts: Facts, time_ranges: list[TimeRange]) -> bool:
    """Whether the time includes launches, captured launches, or data loading."""
    if facts.launched_in(time_ranges):
        return True
    launches = facts.once(_launches)
    return any(
        row.first in launches or row.name.startswith("enumerate(DataLoader)")
        for row in facts.names_in(time_ranges)
    )


def _launches(facts: Facts) -> frozenset[int]:
    # Other remedies query these roles as well.
    return frozenset(call.event for role in _LAUNCHES for call in facts.calls(role))


def _is_in_capture(facts: Facts, row: OnThread) -> bool:
    return any(
        it.lane == row.lane and it.start_ns <= row.start_ns and row.end_ns <= it.end_ns
        for it in facts.once(captures)
    )


def _set_up(facts: Facts) -> str:
    """Return a note that a call may be set-up, if one step alone is recorded."""
    if facts.n_windows > 1:
        return ""
    return f" (if it sets something up, record a later step, with {facts.options.schedule})"


def _waits(facts: Facts, time_ranges: list[TimeRange]) -> bool:
    spans = sorted((start_ns, end_ns) for _, start_ns, end_ns in time_ranges)
    return any(
        start_ns <= wait.call.start_ns < end_ns
        for wait in facts.waits
        for start_ns, end_ns in spans
    )


REMEDY: Final = Remedy(
    id="recurring_call",
    side="host",
    effort="code",
    needs="runtime calls, operators or Python functions",
    seen_by="a call or function that takes much of every step and launches nothing",
    change="the call",
    not_when="it is in few steps only, or launches work",
    removes_code=True,
    find=_find,
)
