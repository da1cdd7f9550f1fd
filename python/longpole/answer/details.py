"""What a trace shows of the limiting work: how fast kernels are, and which code owns the time."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final, NamedTuple

from longpole.devices.peaks import precision_of
from longpole.remedies.limits import sides_of
from longpole.remedies.rooflines import sized_kernels
from longpole.words.kernel_names import kernel_label
from longpole.words.wording import short_name, whole_percent

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from longpole.devices.peaks import Peaks
    from longpole.remedies.facts import Facts
    from longpole.remedies.rooflines import Sized

# Minimum part of the kernel time with a formula, and of what one line of code owns.
_LEAST_KNOWN: Final = 0.5
_LEAST_OWNED: Final = 0.25
_NEARLY_ALL: Final = 0.99

# Kernels whose stacks are read, the longest ones.
_MOST_KERNELS: Final = 2_000

_WIDEST: Final = 60


class Reach(NamedTuple):
    """The least possible time of kernels by the peaks of their device, over their time."""

    of_roof: float
    known: float
    """Part of the kernel time with a formula and a peak."""
    longest: str
    """The name that takes the most kernel time."""
    of_longest: float
    """Their part of the kernel time."""
    longest_of_roof: float | None
    """What they reach; None if that is not known."""


def details(facts: Facts, said: str) -> tuple[str, ...]:
    """Return how far kernels are from the limit of the device, and the code that owns the time.

    Code that is named in what was said already is left out.
    """
    owners = (told for name, told in _owner(facts) if name not in said)
    return (*_speed(facts), *owners)


def _speed(facts: Facts) -> Iterator[str]:
    found = reach_of(facts) if "kernels" in sides_of(facts.parts["limit"]) else None
    if found is None:
        return
    known = "" if found.known >= _NEARLY_ALL else f" (known for {whole_percent(found.known)} of it)"
    longest = f"{found.longest}, {whole_percent(found.of_longest)} of the time"
    if found.longest_of_roof is not None:
        longest += f", {whole_percent(found.longest_of_roof)}"
    yield f"Kernels reach {whole_percent(found.of_roof)} of the device's limit{known}; {longest}."


def reach_of(facts: Facts) -> Reach | None:
    """Return how close the kernels of the shown window come to the roofline; None if unknown."""
    peaks = facts.peaks
    if peaks is None:
        return None
    kernels = [it for it in facts.kernels if it.window == facts.shown and it.kind == "kernel"]
    total_ns = sum(it.duration_ns for it in kernels)
    of_name: dict[str, int] = defaultdict(int)
    for it in kernels:
        of_name[facts.name(it.event)] += it.duration_ns
    roofs = _roofs(facts, peaks)
    known_ns = sum(row.duration_ns for row in roofs)
    if not total_ns or known_ns < _LEAST_KNOWN * total_ns:
        return None
    longest = max(of_name, key=lambda name: of_name[name])
    rows = [row for row in roofs if facts.name(row.event) == longest]
    own_ns = sum(row.duration_ns for row in rows)
    return Reach(
        of_roof=min(sum(roofs.values()) / known_ns, 1.0),
        known=min(known_ns / total_ns, 1.0),
        longest=kernel_label(longest) or short_name(longest, _WIDEST),
        of_longest=of_name[longest] / total_ns,
        longest_of_roof=sum(roofs[row] for row in rows) / own_ns if own_ns else None,
    )


def _roofs(facts: Facts, peaks: Peaks) -> Mapping[Sized, float]:
    """Return the least possible time of the operators of the shown window, where it is known."""
    found = {}
    for row in sized_kernels(facts):
        if row.kernels[0].window == facts.shown:
            roof_ns = _roof_ns(peaks, row)
            if roof_ns is not None:
                found[row] = roof_ns
    return found


def _roof_ns(peaks: Peaks, row: Sized) -> float | None:
    work = row.work
    if work is None:
        return None
    is_matrix = work.is_matrix
    precision = precision_of(work.dtype, row.facts.name(row.event), is_matrix=is_matrix)
    found = peaks.roof_ns(work.flops, work.n_bytes, precision, is_matrix=is_matrix)
    return None if found is None else found[1]


def _owner(facts: Facts) -> Iterator[tuple[str, str]]:
    """Yield the function that owns most of the limiting time, if it is recorded, and a sentence."""
    sides = sides_of(facts.parts["limit"])
    function = facts.parts["function"]
    if function is not None and "host" in sides:
        name, part = short_name(function[0], _WIDEST), whole_percent(function[1])
        yield name, f"{name} has {part} of the host time."
    elif "kernels" in sides and facts.has_stacks:
        yield from _launching(facts)


def _launching(facts: Facts) -> Iterator[tuple[str, str]]:
    kernels = [it for it in facts.kernels if it.window == facts.shown and it.call is not None]
    kernels.sort(key=lambda it: -it.duration_ns)
    total_ns = sum(it.duration_ns for it in kernels)
    of_function: dict[str, int] = defaultdict(int)
    for it in kernels[:_MOST_KERNELS]:
        function = facts.own_frame(it.call or 0)
        if function is not None:
            of_function[function] += it.duration_ns
    if of_function:
        name = max(of_function, key=lambda one: of_function[one])
        part = of_function[name] / max(total_ns, 1)
        if part >= _LEAST_OWNED:
            name = short_name(name, _WIDEST)
            yield name, f"{name} launches {whole_percent(part)} of the kernel time."
