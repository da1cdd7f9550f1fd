"""Kernels with the FLOPs and bytes of their operators, and changes of their times."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, Final

from longpole.engine.critical_path.changes import Drop, Replace
from longpole.remedies.model import Form

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from longpole.engine.critical_path.changes import Change
    from longpole.flops import Call, Tensor, Work
    from longpole.remedies.facts import Activity, Facts
    from longpole.remedies.model import How

# Maximum number of shapes shown for an operator.
_SHOWN: Final = 3

# If faster kernels save less than this share, kernels are not examined.
_LEAST_OF_KERNELS: Final = 0.01

_PRODUCTS: Final = ("aten::mm", "aten::bmm", "aten::addmm", "aten::baddbmm")


@dataclass(frozen=True, eq=False)
class Sized:
    """All kernels that one operator launched."""

    facts: Facts
    operator: int
    name: str
    kernels: tuple[Activity, ...]

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
    """List the operators that launched kernels directly; empty if kernels do not limit."""
    return facts.once(_sized_kernels)


def _sized_kernels(facts: Facts) -> list[Sized]:
    if facts.gains_less("kernels", _LEAST_OF_KERNELS, at_most=True):
        return []
    of_operator: dict[int, list[Activity]] = defaultdict(list)
    for kernel in facts.kernels:
        if kernel.operator is not None and kernel.kind == "kernel":
            of_operator[kernel.operator].append(kernel)
    facts.called_each([*of_operator])
    return [Sized(facts, it, facts.name(it), tuple(kernels)) for it, kernels in of_operator.items()]


def in_launch_order(facts: Facts) -> list[list[Sized]]:
    """List the operators with kernels of each thread and window in launch order."""
    return facts.once(_in_launch_order)


def _in_launch_order(facts: Facts) -> list[list[Sized]]:
    lanes: dict[tuple[int, int], list[tuple[int, Sized]]] = defaultdict(list)
    for row in sized_kernels(facts):
        place = facts.place(row.operator)
        lanes[row.kernels[0].window, place.lane].append((place.start_ns, row))
    return [
        [row for _, row in sorted(rows, key=lambda row: (row[0], row[1].operator))]
        for _, rows in sorted(lanes.items())
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
    return [
        Form(
            how=how,
            operators=[max(same, key=lambda row: row.duration_ns).operator],
            events=[event for row in same for event in row.events],
        )
        for _, same in sorted(alike.items())
    ]


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
