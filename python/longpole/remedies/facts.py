"""The facts that remedies use: what the program did in the windows of a verdict, as rows.

If there are many windows that take about the same time, the facts are those of a few of them.
The core answers from its graph; nothing here needs polars. Times are in ns, events are rows of
`Trace.events`, windows are counted from 0.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from contextlib import suppress
from functools import cached_property, lru_cache
from itertools import count
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from longpole._core import is_own_frame
from longpole.devices.peaks import Peaks, peaks_of
from longpole.engine.critical_path.changes import Drop
from longpole.engine.windows import noun_of
from longpole.flops.inputs import INPUT_ARGUMENTS, input_columns
from longpole.remedies.captured import FIRST
from longpole.remedies.gains import values_of
from longpole.remedies.recorded import (
    Activity,
    DeviceWait,
    Named,
    OnThread,
    Place,
    Recorded,
    ThreadGap,
    activity,
)
from longpole.remedies.spans import Gone, Spans

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from longpole._core import Facts as CoreFacts
    from longpole.engine.critical_path.changes import Change, TimeRange
    from longpole.flops import Call, Work
    from longpole.remedies.captured import CapturedKernels, CapturedOperator, Run
    from longpole.remedies.parts import VerdictParts
    from longpole.remedies.sides import Side
    from longpole.words.recording import Options

# A thread with a smaller share of the kernel launches does not count as a launching thread.
_LEAST_LAUNCHED: Final = 0.05

# Number of kernels from which the launching threads are determined.
_SAMPLED: Final = 10_000

# Changes that remove the work of a side.
_HOST: Final = tuple(Drop(kind=it) for it in ("operator", "runtime", "host_gap", "data_loading"))
_KERNELS: Final = (Drop(kind="kernel"),)

Built = TypeVar("Built")


class _InWindow(Protocol):
    """A row of a window."""

    @property
    def window(self) -> int: ...


InWindow = TypeVar("InWindow", bound=_InWindow)

Query = str | tuple[str, ...]
"""A kind of query: a word, or the roles of calls."""

# The arguments of an operator with the types, strides and values of its inputs.
_INPUTS: Final = ("Input type", "Input Strides", "Concrete Inputs")

# Direction of a memcpy in its name: `Memcpy HtoD` of Kineto, `MemcpyH2D` of XLA, `M2D` of Level
# Zero, where M is the memory of the host, and `CopyHostToDevice` of ROCm.
_DIRECTION: Final = re.compile(
    r"([HMD])(?:to|2)([HMD])(?![a-z])|(?i:(host|device)_?to_?(host|device))"
)

# Share of a window that some Python function takes, if stacks are recorded.
_LONG_FUNCTION: Final = 0.01

# The first call that needs the GPU creates a context if it takes this share of the windows, or this
# time and does not copy or wait.
_MUCH: Final = 0.4
_LEAST_CONTEXT_NS: Final = 50_000_000


class Facts:
    """The facts about the windows of a verdict, or about those that represent them."""

    def __init__(
        self,
        core: CoreFacts,
        parts: VerdictParts,
        options: Options,
        devices: Mapping[int, Mapping[str, Any]] = MappingProxyType({}),
        ends: Callable[[], Iterable[Facts]] = tuple,
        *,
        captures: Callable[[], CapturedKernels | None] = lambda: None,
        gone: Gone | None = None,
    ) -> None:
        self.core = core
        self.parts = parts
        """Results of the core for the verdict: sides, gains, the data loader."""
        self.options = options
        """Names of options in the trace's profiler, for advice."""
        self.gone = gone or Gone()
        """What earlier changes removed: no query returns it."""
        self._devices = devices
        self._ends = ends
        self._captures = captures
        self._of_roles: dict[tuple[str, ...], list[OnThread]] = {}
        self._once: dict[Callable[[Facts], Any], tuple[Any, frozenset[Query]]] = {}
        self._asked: set[Query] = set()
        self._changes: tuple[Change, ...] = ()
        self._is_open = False
        self._recorded = Recorded(core)
        self._calls: dict[int, tuple[Call, Work | None] | None] = {}
        self._alike: dict[tuple[str, ...], tuple[Call, Work | None]] = {}

    def without(self, gone: Gone, changes: Sequence[Change], *, is_open: bool = False) -> Facts:
        """Return the facts after changes, without what is gone then.

        If they are open, every side may gain enough then.
        """
        known = self.core, self.parts, self.options, self._devices, self._ends
        left = Facts(*known, captures=lambda: self.captured, gone=gone)
        left._recorded, left._calls, left._alike = self._recorded, self._calls, self._alike
        left._changes, left._is_open = (*self._changes, *changes), is_open
        return left

    def gains_less(self, side: Side, least: float, *, at_most: bool = False) -> bool:
        """Whether removing a side gains less than a share, or `at_most` its upper bound does.

        After changes, it is what the side gains then.
        """
        if self._is_open:
            return False
        if self._changes:
            is_less = self._gains_then[side] < least
        else:
            gain = self.parts["gains"][side]
            is_less = (gain.high if at_most else gain.value) < least
        if is_less:
            self._asked.add("gains")
        return is_less

    @property
    def mean_then_ns(self) -> float:
        """Mean duration of a window after the changes; without any, as recorded."""
        if not self._changes:
            return self.mean_ns
        self._asked.add("gains")
        return self.mean_ns * (1.0 - self._gain_so_far)

    @cached_property
    def _gain_so_far(self) -> float:
        """How much shorter the windows become by the changes."""
        [gain] = values_of(self.core, [self._changes])
        return gain

    @cached_property
    def _gains_then(self) -> dict[Side, float]:
        """How much shorter the windows become without host or kernels, after the changes."""
        sides: dict[Side, tuple[Drop, ...]] = {"host": _HOST, "kernels": _KERNELS}
        sets = [self._changes, *((*self._changes, *removed) for removed in sides.values())]
        before, *values = values_of(self.core, sets)
        left = max(1.0 - before, 1e-9)
        return {side: (it - before) / left for side, it in zip(sides, values, strict=True)}

    def asked_by(self, find: Callable[[Facts], Iterable[Built]]) -> tuple[list[Built], set[Query]]:
        """Return what a search finds, and the queries on which it depends."""
        before, self._asked = self._asked, set()
        try:
            return [*find(self)], self._asked
        finally:
            self._asked = before

    def has_lost(self, query: Query, before: Facts) -> bool:
        """Whether a query returns less than it did before changes."""
        lost = self.gone.events - before.gone.events
        match query:
            case "gains":
                return True
            case "threads" | "gaps":
                return self.gone.spans.total_ns > before.gone.spans.total_ns
            case "kernels" | "copies" | "launched":
                works = (*before.kernels, *before.copies)
                return any(work.event in lost for work in works)
            case "waits":
                return any(wait.call.event in lost for wait in before.waits)
            case _:
                return any(call.event in lost for call in before.calls(*query))

    @cached_property
    def windows(self) -> list[tuple[int, int]]:
        """Start and end of each window."""
        return self.core.windows

    @cached_property
    def numbers(self) -> tuple[int, ...]:
        """The numbers of the windows; empty if they have none."""
        return tuple(self.core.numbers)

    def ends(self) -> Iterator[Facts]:
        """Yield the facts if a step takes the least and the most time that was measured.

        They are computed anew each time, to keep one graph at a time. Nothing is yielded for a time
        range, which would contain something else.
        """
        if self.parts["unit"] != "time_range":
            yield from (end for end in self._ends() if end.numbers == self.numbers)

    @property
    def unit(self) -> str:
        """Noun for a window in sentences."""
        return noun_of(self.parts["unit"])

    @property
    def processor(self) -> str:
        """Noun for a device in advice."""
        return "NPU" if self.options.vendor == "Huawei" else "GPU"

    @property
    def is_of_torch(self) -> bool:
        """Whether the trace shows that the program uses torch, whose functions advice may name."""
        is_shown = self.parts["recorded"]["has_operators"] or self.captured is not None
        return self.parts["profiler"].startswith("torch") and is_shown

    @property
    def each(self) -> str:
        """`a step`, as in "4 calls a step", or `in the trace` of the only window."""
        is_one = self.n_windows == 1 and self.unit != "step"
        return f"in the {self.unit}" if is_one else f"a {self.unit}"

    @property
    def in_each(self) -> str:
        """`in every step`, or `in the step` if it is the only one."""
        return f"in {'the' if self.n_windows == 1 else 'every'} {self.unit}"

    @property
    def each_one(self) -> str:
        """`each step` as a subject, or `the window` if it is the only one and no step."""
        is_one = self.n_windows == 1 and self.unit != "step"
        return f"{'the' if is_one else 'each'} {self.unit}"

    @property
    def n_windows(self) -> int:
        """Number of windows."""
        return len(self.windows)

    @cached_property
    def mean_ns(self) -> float:
        """Mean duration of a window."""
        return sum(end_ns - start_ns for start_ns, end_ns in self.windows) / self.n_windows

    def within_ns(self, rows: Iterable[OnThread | ThreadGap]) -> int:
        """Return the total time of events or gaps before the end of the last window.

        The last of them may go on after it, which matters in a window between two times.
        """
        last_ns = max((end_ns for _, end_ns in self.windows), default=0)
        return sum(max(min(row.end_ns, last_ns) - row.start_ns, 0) for row in rows)

    def once(self, build: Callable[[Facts], Built]) -> Built:
        """Return the result of a function of the facts, cached for all remedies."""
        if build not in self._once:
            before, self._asked = self._asked, set()
            made = build(self)
            self._once[build] = (made, frozenset(self._asked))
            self._asked = before
        built, asked = self._once[build]
        self._asked |= asked
        found: Built = built
        return found

    def _on_threads(self, kinds: Sequence[str], least_ns: int, *prefixes: str) -> list[OnThread]:
        self._asked.add("threads")
        return self._left(self._recorded.on_threads((*kinds,), least_ns, prefixes))

    def _left(self, rows: list[OnThread]) -> list[OnThread]:
        """Return the events of threads that are not gone."""
        if not self.gone:
            return [*rows]
        events, spans = self.gone.events, self.gone.spans
        return [
            it
            for it in rows
            if it.event not in events and not spans.has(it.lane, it.start_ns, it.end_ns)
        ]

    def _left_works(self, works: list[Activity]) -> list[Activity]:
        """Return the GPU activities that are not gone."""
        events = self.gone.events
        return [work for work in works if work.event not in events] if events else [*works]

    def per_window(self, number: float) -> float:
        """Return the mean per window of a total over all windows."""
        return number / self.n_windows

    def is_worth(self, time_ns: float, share: float = 0.01) -> bool:
        """Whether a total time is at least a share of all windows."""
        return time_ns >= share * self.mean_ns * self.n_windows

    def annotations(self, *prefixes: str) -> list[OnThread]:
        """List the annotations of threads whose names have one of some prefixes."""
        return self._on_threads(["annotation"], 0, *prefixes)

    def long_events(self, share: float) -> list[OnThread]:
        """List operators, calls, functions and annotations that take a given share of a window."""
        kinds = ["operator", "runtime", "driver", "python", "annotation"]
        return self._on_threads(kinds, round(share * self.mean_ns))

    @cached_property
    def has_stacks(self) -> bool:
        """Whether Python functions are recorded."""
        return bool(self.core.on_threads(["python"], round(_LONG_FUNCTION * self.mean_ns), []))

    def operators(self, *prefixes: str) -> list[OnThread]:
        """List the operators whose names have one of some prefixes."""
        return self._on_threads(["operator"], 0, *prefixes)

    def functions(self, *prefixes: str) -> list[OnThread]:
        """List the Python functions whose names have one of some prefixes."""
        return self._on_threads(["python"], 0, *prefixes)

    def calls(self, *roles: str) -> list[OnThread]:
        """List the runtime API calls with some roles; see `Trace.api_roles`."""
        self._asked.add(roles)
        if roles not in self._of_roles:
            self._of_roles[roles] = self._left(self._recorded.calls(roles))
        return self._of_roles[roles]

    def calls_named(self, *prefixes: str) -> list[OnThread]:
        """List the calls of the runtime or driver whose names have one of some prefixes."""
        return self._on_threads(["runtime", "driver"], 0, *prefixes)

    def creates_context(self) -> list[int]:
        """Return the call that creates a GPU context, if it takes much of the windows."""
        if self.parts["busiest"] is None:
            return []
        name, _, _, longest, role, is_first_use = self.parts["busiest"]
        is_call = role is not None and role not in {"launch", "graph_launch"}
        least = _MUCH
        if role is not None and not role.endswith(("copy", "synchronize")):
            least = min(_MUCH, _LEAST_CONTEXT_NS / max(self.mean_ns * self.n_windows, 1))
        if not is_call or not is_first_use or longest < least:
            return []
        rows = self.long_events(least / 2)
        return self.longest((row for row in rows if self.name(row.event) == name), 1)

    @property
    def kernels(self) -> list[Activity]:
        """The kernels of the windows, including communication kernels."""
        return self.once(_kernels)

    def long_kernels(self, least_ns: int) -> list[Activity]:
        """List the kernels of the windows that take at least `least_ns`."""
        self._asked.add("kernels")
        return self._left_works(self._recorded.activities("kernel", least_ns))

    @property
    def copies(self) -> list[Activity]:
        """The memcpys of the windows."""
        return self.once(_copies)

    @property
    def uploads(self) -> list[Activity]:
        """The memcpys from the host to a GPU."""
        return self.once(_uploads)

    @property
    def downloads(self) -> list[Activity]:
        """The memcpys from a GPU to the host."""
        return self.once(_downloads)

    def direction(self, copy: int) -> str | None:
        """Return the direction of a memcpy, such as `HtoD`, if its name contains it."""
        return _direction(self.name(copy))

    @property
    def waits(self) -> list[DeviceWait]:
        """The calls of the windows that waited for a GPU."""
        return self.once(_waits)

    @cached_property
    def host_pace_ns(self) -> int | None:
        """The least time that the host took for a step, without its waits for a GPU.

        None if the windows contain that time themselves, or if they are not steps.
        """
        return self.core.host_pace_ns()

    def gaps(self, least_ns: int) -> list[ThreadGap]:
        """List gaps of threads of at least `least_ns` without an open operator or call."""
        self._asked.add("gaps")
        gaps, spans = self._recorded.gaps(least_ns), self.gone.spans
        return [gap for gap in gaps if not spans.has(*gap.time_range)] if spans else [*gaps]

    def launched_in(self, time_ranges: Sequence[TimeRange]) -> list[Activity]:
        """List the GPU activities launched in some time spans of threads."""
        self._asked.add("launched")
        return self._left_works([*map(activity, self.core.launched_in(list(time_ranges)))])

    def in_launch_order(self, works: Iterable[Activity]) -> list[list[Activity]]:
        """Return GPU activities in launch order, those of each thread and window together."""
        lanes: dict[tuple[int, int], list[tuple[int, Activity]]] = defaultdict(list)
        for work in works:
            if work.call is not None:
                place = self.place(work.call)
                lanes[place.lane, work.window].append((place.start_ns, work))
        return [
            [work for _, work in sorted(rows, key=lambda row: (row[0], row[1].event))]
            for _, rows in sorted(lanes.items())
        ]

    def names_in(self, time_ranges: Sequence[TimeRange]) -> list[Named]:
        """List the events that begin in some time spans of threads, by name."""
        return [Named(*row) for row in self.core.names_in(list(time_ranges))]

    @cached_property
    def captured(self) -> CapturedKernels | None:
        """The kernels of CUDA graphs whose capture is known; None if there are none."""
        return self._captures() if self.core.calls(["graph_launch"]) else None

    def operator_of(self, kernel: Activity) -> int | None:
        """Return the innermost operator that launched a kernel, or captured it in a graph.

        An operator that captured it has a number but no place: it did not run in the windows.
        """
        captured = self.captured
        found = None if captured is None else captured.of_kernel.get(kernel.event)
        return kernel.operator if found is None else found

    def outermost_of(self, kernel: Activity) -> str:
        """Return the outermost operator that launched or captured a kernel; empty without one."""
        operator = self.operator_of(kernel)
        if operator is None or self.run(operator) is None:
            return self.name(kernel.outermost)
        return [name for _, kind, name in self.around(operator) if kind == "operator"][-1]

    def uncaptured(self) -> list[Activity]:
        """List the kernels of graphs whose operators are unknown."""
        launches = {call.event for call in self.calls("graph_launch")}
        works = (work for work in self.kernels if work.call in launches) if launches else ()
        return [work for work in works if self.operator_of(work) is None]

    def run(self, operator: int) -> Run | None:
        """Return the captured operator of a number, and its launch; None for an event."""
        return None if self.captured is None else self.captured.run(operator)

    def _captured_operator(self, operator: int) -> CapturedOperator | None:
        run = self.run(operator) if operator >= FIRST else None
        return None if run is None else run.operator

    def name(self, event: int | None) -> str:
        """Return the name of an event or a captured operator; empty without one."""
        if event is None:
            return ""
        captured = self._captured_operator(event) if event >= FIRST else None
        return self._recorded.names[event] if captured is None else captured.name

    def named(self, *names: str) -> Iterator[int]:
        """Yield all events of some names in the trace, also outside the windows; this is slow."""
        with suppress(ValueError):  # no such event
            for event in count():
                if self.core.name(event) in names:
                    yield event

    def place(self, event: int) -> Place:
        """Return the thread and time of an event."""
        return self._recorded.places[event]

    def around(self, event: int) -> list[tuple[int, str, str]]:
        """List an event and those that enclose it, innermost first: event, kind and name.

        Those of a captured operator are events of the trace that contains the capture.
        """
        operator = self._captured_operator(event)
        if operator is None or self.captured is None:
            return self.core.around(event)
        return [*self.captured.names_around(operator)]

    @staticmethod
    def is_own(function: str) -> bool:
        """Whether a function belongs to the program, not to a library."""
        return is_own_frame(function)

    def enclosing_operator(self, event: int) -> int | None:
        """Return the innermost operator around an event."""
        rows = self.around(event)
        return next((row for row, kind, _ in rows if kind == "operator" and row != event), None)

    def own_frame(self, event: int) -> str | None:
        """Return the innermost function of the program around an event; None without stacks."""
        frames = (name for _, kind, name in self.around(event) if kind == "python")
        return next((name for name in frames if is_own_frame(name)), None)

    def number(self, event: int, key: str) -> int | None:
        """Return a numeric argument of an event."""
        return self.core.number(event, key)

    def text(self, event: int, key: str) -> str | None:
        """Return a string argument of an event, or one of the inputs of a captured operator."""
        captured = self._captured_operator(event)
        return self.core.text(event, key) if captured is None else captured.texts.get(key)

    @cached_property
    def peaks(self) -> Peaks | None:
        """The published peaks of the device; None if unknown, or if devices differ."""
        known: list[Peaks | None] = []
        for properties in self._devices.values():
            peaks = peaks_of(properties.get("name"), properties.get("totalGlobalMem"))
            if peaks not in known:
                known.append(peaks)
        return known[0] if len(known) == 1 else None

    @cached_property
    def device_name(self) -> str | None:
        """The name of the devices; None if unknown, or if they differ."""
        names = {it.get("name") for it in self._devices.values()}
        [name, *others] = names or {None}
        return name if isinstance(name, str) and not others else None

    @cached_property
    def n_processors(self) -> int | None:
        """Number of multiprocessors of the devices; None if unknown, or if they differ."""
        numbers = {it.get("numSms") for it in self._devices.values()}
        [number, *others] = numbers or {None}
        return number if isinstance(number, int) and not others else None

    def called(self, operator: int | None) -> Call | None:
        """Return an operator with its inputs; None without recorded shapes."""
        both = self._both(operator)
        return None if both is None else both[0]

    def called_each(self, operators: Sequence[int]) -> list[Call | None]:
        """Return operators with their inputs, as `called` does; this is faster for many."""
        known = self._calls
        for operator in (it for it in operators if it >= FIRST):
            self._both(operator)
        unread = [operator for operator in operators if operator not in known]
        places = self.core.alike(unread, INPUT_ARGUMENTS)
        for operator, place in zip(unread, places, strict=True):
            first = unread[place]
            if first not in known:
                known[first] = self._read(first)
            known[operator] = known[first]
        found = map(known.__getitem__, operators)
        return [None if both is None else both[0] for both in found]

    def work(self, operator: int | None) -> Work | None:
        """Return the FLOPs and bytes of an operator; None if unknown."""
        both = self._both(operator)
        return None if both is None else both[1]

    def _both(self, operator: int | None) -> tuple[Call, Work | None] | None:
        """Return a call and its work, parsed once per operator."""
        if operator is None:
            return None
        if operator not in self._calls:
            self._calls[operator] = self._read(operator)
        return self._calls[operator]

    def _read(self, operator: int) -> tuple[Call, Work | None] | None:
        """Parse a call and its work, computed once for equal strings."""
        dims = self.text(operator, "Input Dims") or self.text(operator, "Input dims")
        if not dims:
            return None
        others = (self.text(operator, key) or "" for key in _INPUTS)
        key = (self.name(operator), dims, *others)
        if key not in self._alike:
            from longpole.flops import call_of, work_of

            name, *texts = key
            call = call_of(name, *input_columns(*texts))
            self._alike[key] = (call, work_of(call))
        return self._alike[key]

    @cached_property
    def launch_lanes(self) -> frozenset[int]:
        """The launching threads: those with at least a twentieth of the kernels."""
        # A sample of the kernels shows the launching threads as well as all kernels.
        step = 1 + len(self.kernels) // _SAMPLED
        calls = (work.call for work in self.kernels[::step] if work.call is not None)
        lanes = Counter(self.place(call).lane for call in calls)
        least = _LEAST_LAUNCHED * sum(lanes.values())
        return frozenset(lane for lane, number in lanes.items() if number >= least)

    def is_alone(self, gap: ThreadGap) -> bool:
        """Whether no other thread launches work during a gap, which would make it a handoff."""
        others = [(lane, gap.start_ns, gap.end_ns) for lane in self.launch_lanes - {gap.lane}]
        return not self.launched_in(others)

    @cached_property
    def shown(self) -> int:
        """The index of the window that answers show; -1 if the facts do not include it."""
        numbers, shown = self.parts["numbers"], self.parts["shown"]
        if not numbers:
            return shown
        return self.numbers.index(numbers[shown]) if numbers[shown] in self.numbers else -1

    def longest(self, activities: Iterable[Activity | OnThread], most: int = 8) -> list[int]:
        """Return the longest events of the shown window, longest first, then those of others."""
        ranked = sorted(activities, key=lambda row: (-row.duration_ns, row.event))
        return [row.event for row in self.shown_first(ranked)[:most]]

    def in_shown(self, works: Sequence[Activity]) -> tuple[int, int]:
        """Return number and total time of activities in the shown window, as its tables have them.

        If it has none of them, these are means.
        """
        shown = [row.duration_ns for row in works if row.window == self.shown]
        if shown:
            return len(shown), sum(shown)
        total_ns = self.per_window(sum(row.duration_ns for row in works))
        return max(round(self.per_window(len(works))), 1), round(total_ns)

    def told_ns(self, rows: Iterable[OnThread | ThreadGap | Activity]) -> int:
        """Return the time in which any of these rows runs in the window whose length is told.

        It is never longer than that. If the window has none of them, or answers tell the mean
        length, it is their share of all windows, of the length that is told.
        """
        of_window: dict[int, list[OnThread | ThreadGap | Activity]] = defaultdict(list)
        for row in rows:
            of_window[row.window].append(row)
        taken_ns = {window: self.taken_ns(of_one) for window, of_one in of_window.items()}
        length_ns, _, _, total_ns = self.parts["lengths_ns"]
        if self.parts["usual"] is not None and self.parts["usual"][2]:
            length_ns = round(total_ns / self.parts["n_windows"])
        elif self.shown in taken_ns:
            return taken_ns[self.shown]
        return round(sum(taken_ns.values()) / max(self.mean_ns * self.n_windows, 1) * length_ns)

    def taken_ns(self, rows: Iterable[OnThread | ThreadGap | Activity]) -> int:
        """Return the time in which any of these rows runs, until the end of their windows."""
        return Spans(
            (0, row.start_ns, min(row.start_ns + row.duration_ns, self.windows[row.window][1]))
            for row in rows
        ).total_ns

    def event_at(self, gap: ThreadGap) -> int | None:
        """Return what follows a gap, or what precedes it if the other begins in another window."""
        _, end_ns = self.windows[gap.window]
        is_other = gap.after is None or self.place(gap.after).start_ns >= end_ns
        return gap.before if is_other and gap.before is not None else gap.after

    def shown_first(self, rows: Iterable[InWindow]) -> list[InWindow]:
        """Return rows in their original order, but with those of the shown window first."""
        return sorted(rows, key=lambda row: row.window != self.shown)


def _kernels(facts: Facts) -> list[Activity]:
    return facts.long_kernels(0)


def _copies(facts: Facts) -> list[Activity]:
    facts._asked.add("copies")  # noqa: SLF001 - a query of the facts themselves
    return facts._left_works(facts._recorded.activities("copy", 0))  # noqa: SLF001


def _uploads(facts: Facts) -> list[Activity]:
    return [row for row in facts.copies if facts.direction(row.event) == "HtoD"]


def _downloads(facts: Facts) -> list[Activity]:
    return [row for row in facts.copies if facts.direction(row.event) == "DtoH"]


def _waits(facts: Facts) -> list[DeviceWait]:
    facts._asked.add("waits")  # noqa: SLF001 - a query of the facts themselves
    rows = facts.core.waits()
    waits = [DeviceWait(OnThread(*call), operator, work) for call, operator, work in rows]
    left = {call.event for call in facts._left([wait.call for wait in waits])}  # noqa: SLF001
    return [wait for wait in waits if wait.call.event in left]


@lru_cache(1024)
def _direction(name: str) -> str | None:
    found = _DIRECTION.search(name)
    if found is None:
        return None
    sides = (part[0].upper() for part in found.groups() if part)
    return "to".join("D" if side == "D" else "H" for side in sides)
