"""Time in which the GPU is idle and the launching thread runs no recorded operator or call.

A few long gaps in a step are work of the program, such as a loop in Python, text for a log, or a
file. With Python stacks, the function is known.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Final

from longpole.engine.critical_path.changes import Drop, RemoveWait
from longpole.remedies.eager_dispatch import dispatched
from longpole.remedies.model import Found, Remedy
from longpole.remedies.modules import is_of_profiler
from longpole.remedies.profiler_work import without_profiler_work
from longpole.remedies.recorded import Named
from longpole.remedies.round_trip import trips
from longpole.remedies.spans import Spans
from longpole.words.wording import count, duration, short_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from longpole.engine.critical_path.changes import TimeRange
    from longpole.remedies.facts import Facts
    from longpole.remedies.recorded import ThreadGap

# Shorter gaps, in ns and as a share of a window, are only the interpreter between two operators.
# The last value is the minimum share of the windows for all gaps of a place together. Setting
# gradients to None and entering the model, which every training loop does, takes less.
_LEAST_NS: Final = 50_000
_LEAST_SHARE: Final = 0.01
_LEAST_OF_ALL: Final = 0.05

# Minimum idle share of the GPU in a gap, and maximum number of gaps in a window.
_IDLE: Final = 0.5
_MOST_PER_WINDOW: Final = 40

# A function that runs for this share of the gaps is reported as their cause.
_MOST_OF_GAPS: Final = 0.6

# A function that runs longer than this share of a step is the step itself.
_MOST_OF_STEP: Final = 0.9
_WIDEST: Final = 60
_STEP: Final = "ProfilerStep#"
_BATCH: Final = "the next batch"
_LOADER: Final = "enumerate(DataLoader)"


def _find(facts: Facts) -> Iterator[Found]:
    least_ns = max(_LEAST_NS, round(_LEAST_SHARE * facts.mean_ns))
    spans = sorted((it.wait.call.lane, it.start_ns, it.end_ns) for it in facts.once(trips))
    eager = sorted(facts.once(dispatched))
    of_place: dict[str, list[ThreadGap]] = defaultdict(list)
    for gap in _outside_loaders(facts, least_ns):
        is_idle = gap.idle_ns >= _IDLE * gap.duration_ns
        is_of_program = gap.lane in facts.launch_lanes and not gap.is_loading
        is_of_others = _is_in(spans, gap) or _is_in(eager, gap)
        if is_of_program and is_idle and not is_of_others and facts.is_alone(gap):
            of_place[facts.name(gap.before)] += _in_steps(facts, gap)
    for gaps in sorted(of_place.values(), key=lambda gaps: -_total_ns(gaps)):
        is_usual = facts.n_windows <= len({gap.window for gap in gaps}) * 2
        are_few = facts.per_window(len(gaps)) <= _MOST_PER_WINDOW
        is_worth = facts.is_worth(_total_ns(gaps), _LEAST_OF_ALL)
        left = without_profiler_work(facts, gaps) if is_usual and are_few and is_worth else []
        if left and facts.is_worth(_total_ns(left), _LEAST_OF_ALL):
            found = _found(facts, left)
            if not is_of_profiler(found.name or ""):
                yield found


def _outside_loaders(facts: Facts, least_ns: int) -> Iterator[ThreadGap]:
    """Yield gaps, and the parts of others before and after a data loader."""
    gaps = facts.gaps(least_ns)
    if not any(gap.is_loading for gap in gaps):
        yield from gaps
        return
    loading = facts.annotations(_LOADER)
    spans = Spans(row.time_range for row in loading)
    of_start = {(row.lane, row.start_ns): row.event for row in loading}
    of_end = {(row.lane, row.end_ns): row.event for row in loading}
    for gap in gaps:
        parts = [*spans.rest_of(gap.time_range)] if gap.is_loading else []
        if not gap.is_loading or parts == [gap.time_range]:
            yield gap
            continue
        for lane, start_ns, end_ns in parts:
            if end_ns - start_ns >= least_ns:
                yield gap._replace(
                    start_ns=start_ns,
                    end_ns=end_ns,
                    idle_ns=max(gap.idle_ns - (gap.duration_ns - (end_ns - start_ns)), 0),
                    before=of_end.get((lane, start_ns), gap.before),
                    after=of_start.get((lane, end_ns), gap.after),
                    is_loading=False,
                )


def _in_steps(facts: Facts, gap: ThreadGap) -> list[ThreadGap]:
    """Return the parts of a gap inside steps; outside of these, the profiler itself works."""
    before, after = _step_of(facts, gap.before), _step_of(facts, gap.after)
    if before == after:
        return [gap]
    end_ns = gap.start_ns if before is None else facts.place(before).end_ns
    start_ns = gap.end_ns if after is None else facts.place(after).start_ns
    end_ns, start_ns = max(end_ns, gap.start_ns), min(start_ns, gap.end_ns)
    if start_ns <= end_ns:
        return [gap]
    parts = gap._replace(end_ns=end_ns), gap._replace(start_ns=start_ns)
    return [part for part in parts if part.duration_ns]


def _step_of(facts: Facts, event: int | None) -> int | None:
    """Return the annotation of the profiler's step around an event."""
    around = [] if event is None else facts.around(event)
    return next((row for row, _, name in around if name.startswith(_STEP)), None)


def _is_in(spans: list[TimeRange], gap: ThreadGap) -> bool:
    """Whether a gap lies in one of some sorted spans that do not overlap."""
    place = bisect_right(spans, (gap.lane, gap.start_ns, gap.end_ns)) - 1
    if place < 0:
        return False
    lane, _, end_ns = spans[place]
    return lane == gap.lane and gap.end_ns <= end_ns


def _total_ns(gaps: list[ThreadGap]) -> int:
    return sum(gap.duration_ns for gap in gaps)


def _found(facts: Facts, gaps: list[ThreadGap]) -> Found:
    time_ranges = [gap.time_range for gap in gaps]
    before = {gap.before for gap in gaps if gap.before is not None}
    waits = [wait.call.event for wait in facts.waits if before & {wait.call.event, wait.operator}]
    # If the code uses a value that was read, the time of reading it is saved as well.
    reading = sorted(
        {
            wait.operator
            for wait in facts.waits
            if wait.operator is not None and wait.operator in before
        }
    )
    function = _function(facts, gaps)
    between = _between(facts, gaps)
    n_gaps = max(round(facts.per_window(len({(gap.lane, gap.before) for gap in gaps}))), 1)
    return Found(
        careful=[Drop(time_ranges=time_ranges)],
        hopeful=[
            Drop(time_ranges=time_ranges),
            RemoveWait(events=waits),
            *([Drop(events=reading)] if reading else []),
        ],
        advice=(
            f"Shorten {short_name(function[0], _WIDEST)}, or do it outside the loop"
            if function
            else f"Shorten what the host does {between}"
        ),
        evidence=(
            f"it takes {duration(facts.told_ns(gaps))} {facts.each} in {count(n_gaps, 'gap')} "
            "while the GPU waits"
        ),
        name=function[0] if function else between,
        events=[function[1]]
        if function
        else [*filter(None, map(facts.event_at, facts.shown_first(gaps)[:8]))],
    )


def _between(facts: Facts, gaps: list[ThreadGap]) -> str:
    """Return what gaps lie between, by what follows most of their time."""
    total_ns: Counter[str] = Counter()
    for gap in gaps:
        total_ns[facts.name(gap.after)] += gap.duration_ns
    [(after, _)] = total_ns.most_common(1)
    longest = max(
        (gap for gap in gaps if facts.name(gap.after) == after), key=lambda gap: gap.duration_ns
    )
    first = _in_words(facts.name(longest.before)) or f"the start of the {facts.unit}"
    last = _in_words(facts.name(longest.after)) or f"the end of the {facts.unit}"
    steps = [_step_of(facts, event) for event in (longest.before, longest.after)]
    is_across = None not in steps and steps[0] != steps[1] and last != _BATCH
    return f"between {first} and {last}{' of the next step' if is_across else ''}"


def _in_words(name: str) -> str:
    if not name:
        return ""
    return _BATCH if name.startswith(_LOADER) else short_name(name, _WIDEST)


def _function(facts: Facts, gaps: list[ThreadGap]) -> tuple[str, int] | None:
    """Return the innermost function with most of the time of the gaps, if stacks are recorded.

    A function of the program is preferred to one of a library.
    """
    total_ns = _total_ns(gaps)
    most = [row for row in _functions(facts, gaps) if row.total_ns >= _MOST_OF_GAPS * total_ns]
    innermost = max(most, key=lambda row: (facts.is_own(row.name), row.depth), default=None)
    if innermost is None:
        return None
    shown = _functions(facts, [gap for gap in gaps if gap.window == facts.shown])
    firsts = [row.first for row in shown if row.name == innermost.name]
    return innermost.name, next(iter(firsts), innermost.first)


def _functions(facts: Facts, gaps: list[ThreadGap]) -> list[Named]:
    """List the functions that run in gaps, except those of the step."""
    begun = facts.names_in([gap.time_range for gap in gaps])
    rows = (row for row in begun if row.kind == "python" and not _is_step(facts, row.first))
    return [*_around(facts, gaps), *rows]


def _is_step(facts: Facts, function: int) -> bool:
    """Whether a function runs for most of a step, as the step or the model does."""
    place = facts.place(function)
    return place.end_ns - place.start_ns > _MOST_OF_STEP * facts.mean_ns


def _around(facts: Facts, gaps: list[ThreadGap]) -> list[Named]:
    """List the functions that are running when gaps begin, except those of the step."""
    found: dict[str, Named] = {}
    for gap in gaps:
        frames = [] if gap.before is None else facts.around(gap.before)
        for depth, (event, kind, name) in enumerate(reversed(frames)):
            place = facts.place(event)
            is_inside = kind == "python" and place.end_ns > gap.start_ns
            if is_inside and not _is_step(facts, event):
                inside_ns = min(place.end_ns, gap.end_ns) - gap.start_ns
                row = found.get(name, Named(name, kind, 0, 0, event, depth))
                n_events, total_ns = row.n_events + 1, row.total_ns + inside_ns
                found[name] = row._replace(n_events=n_events, total_ns=total_ns)
    return [*found.values()]


REMEDY: Final = Remedy(
    id="python_between_operators",
    side="host",
    effort="code",
    needs="operators and runtime calls; Python stacks name the function",
    seen_by="a few long gaps a step in which the launching thread runs nothing and the GPU idles",
    change="the gaps inside steps, and at most the operator that waits before each",
    not_when="the time is that of loading data, of a round trip, or of many short gaps",
    removes_code=True,
    shortens=("host_gap", "data_loading"),
    find=_find,
)
