"""Kernels with the FLOPs and bytes of their operators, and changes of their times."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, Final

from longpole.engine.critical_path.changes import Drop, Replace
from longpole.remedies.model import Form
from longpole.words.kernel_names import kernel_label

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from longpole.engine.critical_path.changes import Change, TimeRange
    from longpole.flops import Call, Tensor, Work
    from longpole.remedies.facts import Facts
    from longpole.remedies.model import How
    from longpole.remedies.recorded import Activity

# Maximum number of shapes shown for an operator.
_SHOWN: Final = 3

# If faster kernels save less than this share, kernels are not examined.
_LEAST_OF_KERNELS: Final = 0.01

_PRODUCTS: Final = ("aten::mm", "aten::bmm", "aten::addmm", "aten::baddbmm")


@dataclass(frozen=True, eq=False)
class Sized:
    """All kernels of an operator that one launch ran, or one kernel of a graph not captured."""

    facts: Facts
    operator: int
    """The operator; the kernel itself of a graph whose capture is unknown."""
    name: str
    kernels: tuple[Activity, ...]

    @property
    def time_ranges(self) -> list[TimeRange]:
        """When it ran on its thread; empty if it ran only while a graph was captured."""
        if self.facts.run(self.operator) is not None:
            return []
        return [self.facts.place(self.operator).time_range]

    @cached_property
    def turn(self) -> tuple[int, int, int]:
        """Its thread, when it was launched, and when it was captured before."""
        run = self.facts.run(self.operator)
        place = self.facts.place(self.operator if run is None else run.launch)
        return place.lane, place.start_ns, 0 if run is None else run.operator.start_ns

    @property
    def end(self) -> tuple[int, int, int]:
        """When it ended, as `turn` says when it began."""
        run = self.facts.run(self.operator)
        if run is None:
            lane, _, end_ns = self.facts.place(self.operator).time_range
            return lane, end_ns, 0
        return *self.turn[:2], run.operator.end_ns

    def was_captured_in(self, prefix: str) -> bool:
        """Whether an event of some name enclosed it while a graph was captured."""
        is_captured = self.facts.run(self.operator) is not None
        around = self.facts.around(self.operator) if is_captured else ()
        return any(name.startswith(prefix) for _, _, name in around)

    @cached_property
    def call(self) -> Call | None:
        """The operator with its inputs; None without recorded shapes."""
        return self.facts.called(self.operator)

    @cached_property
    def work(self) -> Work | None:
        """Its FLOPs and bytes; None if unknown."""
        return self.facts.work(self.operator)

    @cached_property
    def duration_ns(self) -> int:
        """Total duration of the kernels."""
        return sum(kernel.duration_ns for kernel in self.kernels)

    @cached_property
    def event(self) -> int:
        """The longest kernel."""
        return max(self.kernels, key=lambda kernel: (kernel.duration_ns, -kernel.event)).event

    @property
    def events(self) -> list[int]:
        """The kernels."""
        return [kernel.event for kernel in self.kernels]

    @cached_property
    def n_elements(self) -> int:
        """The number of elements of the largest input."""
        return max((tensor.numel for tensor in self.tensors), default=0)

    @cached_property
    def tensors(self) -> list[Tensor]:
        """The tensors among the inputs."""
        return [] if self.call is None else self.call.all_tensors()


def sized_kernels(facts: Facts) -> list[Sized]:
    """List the operators that launched or captured kernels; empty if kernels do not limit."""
    return facts.once(_sized_kernels)


def _sized_kernels(facts: Facts) -> list[Sized]:
    if facts.gains_less("kernels", _LEAST_OF_KERNELS, at_most=True):
        return []
    of_operator: dict[int, list[Activity]] = defaultdict(list)
    for kernel in facts.kernels:
        operator = facts.operator_of(kernel) if kernel.kind == "kernel" else None
        if operator is not None:
            of_operator[operator].append(kernel)
    facts.called_each([*of_operator])
    return [Sized(facts, it, facts.name(it), tuple(kernels)) for it, kernels in of_operator.items()]


def kernels_of_graphs(facts: Facts) -> list[Sized]:
    """List the kernels without a known operator, such as those of graphs; as for operators."""
    return facts.once(_kernels_of_graphs)


def _kernels_of_graphs(facts: Facts) -> list[Sized]:
    if facts.gains_less("kernels", _LEAST_OF_KERNELS, at_most=True):
        return []
    known = {event for row in sized_kernels(facts) for event in row.events}
    return [
        Sized(facts, it.event, kernel_label(facts.name(it.event)) or facts.name(it.event), (it,))
        for it in facts.kernels
        if it.event not in known and it.operator is None and it.kind == "kernel"
    ]


def in_launch_order(facts: Facts) -> list[list[Sized]]:
    """List the operators with kernels of each thread and window in launch order."""
    return facts.once(_in_launch_order)


def _in_launch_order(facts: Facts) -> list[list[Sized]]:
    lanes: dict[tuple[int, int], list[Sized]] = defaultdict(list)
    for row in sized_kernels(facts):
        lanes[row.kernels[0].window, row.turn[0]].append(row)
    return [
        sorted(rows, key=lambda row: (row.turn, row.operator)) for _, rows in sorted(lanes.items())
    ]


def is_product(row: Sized) -> bool:
    """Whether an operator is a matrix product."""
    return row.name in _PRODUCTS


def sizes_of(row: Sized) -> set[int]:
    """Return the numbers of elements of the inputs, and of a product's result."""
    if row.call is None:
        return set()
    known = row.facts.once(_known_sizes)
    if id(row.call) not in known:
        known[id(row.call)] = _sizes(row.call)
    return known[id(row.call)]


def _known_sizes(_facts: Facts) -> dict[int, set[int]]:
    """Return where the sizes of calls are kept, by identity: operators that are alike share one."""
    return {}


def _sizes(call: Call) -> set[int]:
    found = {tensor.numel for tensor in call.all_tensors()}
    if call.name in _PRODUCTS:
        first = 1 if call.name in {"aten::addmm", "aten::baddbmm"} else 0
        left, right = call.tensor(first), call.tensor(first + 1)
        if left is not None and right is not None and left.shape and right.shape:
            found.add(prod(left.shape[:-1]) * right.shape[-1])
    return found


def replaced(times: Mapping[int, float]) -> list[Change]:
    """Return changes that set kernels to given times, one change per time."""
    of_time: dict[int, list[int]] = defaultdict(list)
    for event, time_ns in times.items():
        of_time[round(time_ns)].append(event)
    gone = sorted(of_time.pop(0, []))
    changes: list[Change] = [
        Replace(time_ns=time_ns, events=sorted(events))
        for time_ns, events in sorted(of_time.items())
    ]
    return [*changes, Drop(kind="kernel", events=gone)] if gone else changes


def most_often(rows: Iterable[Sized]) -> Sized:
    """Return the longest call of the operator and shape with most total time."""
    together: dict[tuple[str, str], list[Sized]] = defaultdict(list)
    for row in rows:
        together[row.name, in_shape(row)].append(row)
    of_most = max(together.values(), key=lambda rows: sum(row.duration_ns for row in rows))
    return max(of_most, key=lambda row: row.duration_ns)


def forms_of(rows: Iterable[Sized], how: How) -> list[Form]:
    """Return the operators with recorded shapes that a script can time, grouped by shape."""
    alike: dict[tuple[str, str], list[Sized]] = defaultdict(list)
    for row in rows:
        if row.call is not None:
            alike[row.name, str([tensor.shape for tensor in row.tensors])].append(row)
    forms = []
    for _, same in sorted(alike.items()):
        longest = max(same, key=lambda row: row.duration_ns)
        forms += form_of(how, [longest], [event for row in same for event in row.events])
    return forms


def form_of(how: How, rows: Sequence[Sized], events: Sequence[int]) -> list[Form]:
    """Return operators that a script can time; none if different traces contain them."""
    runs = [row.facts.run(row.operator) for row in rows]
    sources = {0 if run is None else run.operator.source for run in runs}
    operators = [
        row.operator if run is None else run.operator.event
        for row, run in zip(rows, runs, strict=True)
    ]
    if len(sources) > 1:
        return []
    return [Form(how=how, operators=operators, events=events, source=sources.pop())]


def in_shape(row: Sized) -> str:
    """Return an operator with the shapes of its tensors, as in `aten::mm [8, 16] [16, 4]`."""
    return _words(row.name, row.call)


def in_words(facts: Facts, operator: int) -> str:
    """Return an operator with the shapes of its tensors, if recorded."""
    return _words(facts.name(operator), facts.called(operator))


def _words(name: str, call: Call | None) -> str:
    tensors = [] if call is None else call.all_tensors()
    shapes = [str(list(it.shape)) for it in tensors if it.shape]
    return " ".join([name, *shapes[:_SHOWN]])
