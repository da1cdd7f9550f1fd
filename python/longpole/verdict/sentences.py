"""A verdict in words: one sentence for the cause, one for what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.recording import OPTIONS
from longpole.verdict.advice import MOSTLY_UNNAMED, ends_in_time, mostly_stopped
from longpole.verdict.beside import ONE_RANK, beside, much_left
from longpole.verdict.missing import (
    WIDEST_NAME,
    inconclusive,
    no_device,
    stopped,
    window,
)
from longpole.wording import count, duration, short_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longpole.verdict.parts import RemedyParts, VerdictParts

__all__ = ["sentence"]

# Gains that rest on inference are given in whole tens.
_MUCH_INFERRED: Final = 0.2

# A part is worth naming from here.
_LEAST_PART: Final = 0.02

# From this share of their time on, collectives are said to wait.
_MOSTLY_WAITING: Final = 0.5

_HIDE_IT: Final = (
    "Hide it behind computing: start it earlier, change the bucket size, send fewer bytes."
)

# One name, or one event, that has so much of the time is what to look at.
_MOST_OF_HOST: Final = 0.4

# The host takes 5 to 50 us to launch a GPU activity; where it takes so long, it does other things.
_LONG_FOR_A_LAUNCH_NS: Final = 300_000

_NOUNS: Final = {
    "kernels": "the kernels",
    "host": "the host",
    "communication": "communication",
    "copies": "memory copies",
}


def sentence(parts: VerdictParts) -> str:
    """Say what holds the program up, and what can be done about it.

    Examples
    --------
    >>> from longpole.testing import TraceBuilder
    >>> trace = TraceBuilder().launch("gemm", call=(0, 10), work=(10, 100)).read()
    >>> print(trace.verdict())
    The trace takes 100 µs; the kernels hold it up: up to 90 % shorter without them. Twice as \
fast, all kernels save up to 45 %, gemm alone 45 %.
    """
    words = _Words(parts)
    match parts["status"]:
        case "no_device":
            told = no_device(parts)
        case "inconclusive":
            told = inconclusive(parts)
        case "balanced":
            told = words.balanced()
        case _:
            told = words.named()
    return " ".join(told)


class _Words:
    """The sentences of one verdict."""

    def __init__(self, parts: VerdictParts) -> None:
        self.parts = parts
        self.gains = dict(parts["gains"])
        self.options = OPTIONS[parts["profiler"]]

    def remedy(self, kind: str) -> RemedyParts | None:
        """Give the remedy as a whole."""
        whole = (row for row in self.parts["remedies"] if row["remedy"] == kind)
        return next((row for row in whole if row["name"] is None), None)

    def named_parts(self, kind: str) -> list[RemedyParts]:
        """List the named parts of a remedy."""
        rows = self.parts["remedies"]
        return [row for row in rows if row["remedy"] == kind and row["name"] and row["named"]]

    def percent(self, gain: float) -> str:
        """Write a gain as a whole per cent, or as whole tens where it is inferred."""
        if gain <= 0:
            return "nothing"
        if self.parts["doubt"]["inferred"] > _MUCH_INFERRED:
            return f"about {max(round(10 * gain), 1)}0 %"
        return f"{100 * gain:.0f} %" if gain >= 0.005 else "less than 1 %"  # noqa: PLR2004

    def gain_of(self, kind: str) -> float:
        """Give the gain of a remedy as a whole."""
        remedy = self.remedy(kind)
        return 0.0 if remedy is None else max(remedy["gain"], 0.0)

    def window(self) -> str:
        """Say how long the window takes."""
        return window(self.parts)

    def named(self) -> list[str]:
        """Say what holds the program up."""
        parts = self.parts
        if parts["waits_lead"]:
            told = [f"{self.window()}.", *self.waits()]
        elif parts["nearly_balanced"]:
            told = [self.nearly_balanced(), *self.waits()]
        elif len(parts["sides"]) > 1:
            told = [self.two_sides(), *self.remedies(), *self.waits()]
        else:
            told = [*_SIDES[parts["sides"][0]](self), *self.waits()]
        return [*told, *self.function(), *beside(parts, self.percent), *self.rest(), *self.usual()]

    def two_sides(self) -> str:
        """Name two sides that gain alike."""
        one, two = self.parts["sides"][:2]
        gains = [f"{_NOUNS[side]} (up to {self.percent(self.gains[side])})" for side in (one, two)]
        return f"{self.window()}; {gains[0]} and {gains[1]} hold it up alike."

    def nearly_balanced(self) -> str:
        """Say that only both sides together gain much."""
        host, kernels = self.percent(self.gains["host"]), self.percent(self.gains["kernels"])
        both = self.percent(self.parts["kernels_and_host"])
        return (
            f"{self.window()}; host and device take almost equally long: up to {host} shorter "
            f"without the host's work, {kernels} without the kernels, {both} without both. "
            f"Shorten both: {self.options.graphs} for the host, faster kernels for the device."
        )

    def kernels(self) -> list[str]:
        """Name the kernels."""
        gain = self.percent(self.gains["kernels"])
        return [
            f"{self.window()}; the kernels hold it up: up to {gain} shorter without them.",
            *self.kernel_families(),
        ]

    def kernel_families(self) -> list[str]:
        """Say what kernels twice as fast give, and which of them gives most."""
        told = f"Twice as fast, all kernels save up to {self.percent(self.gain_of('kernels'))}"
        parts = [row for row in self.named_parts("kernels") if row["gain"] >= _LEAST_PART]
        for row in parts[:1]:
            name = short_name(row["name"], WIDEST_NAME)
            told += f", {name} alone {self.percent(row['gain'])}"
        return [f"{told}."]

    def host(self) -> list[str]:
        """Name the host, and its cheap remedies before the others."""
        if mostly_stopped(self.parts):
            told = f"{self.window()}; the host holds it up, but {stopped(self.parts)}."
            return [told, f"Record {ends_in_time(self.parts)}."]
        return [f"{self.window()}; the host holds it up.", *self.remedies()]

    def remedies(self) -> list[str]:
        """Say what can be done about the named sides."""
        told = []
        for side in self.parts["sides"]:
            if side == "host":
                told += self.host_remedies()
            elif side == "kernels":
                told += self.kernel_families()
            elif side == "communication":
                told += self.overlap()
            else:
                told += self.pinned()
        return told

    def host_remedies(self) -> list[str]:
        """Say what can be done on the host."""
        named = {row["remedy"] for row in self.parts["remedies"] if row["named"]}
        told = []
        if "data_loading" in named:
            told.append(self.data_loading())
        if "allocation" in named:
            told.append(self.allocation())
        if "host_work" in named:
            told.append(self.host_work(is_alone=not told))
        return told

    def data_loading(self) -> str:
        """Say what to do about data loading."""
        gain = f"Up to {self.percent(self.gain_of('data_loading'))} of it is"
        match self.parts["loader"]:
            case "workers":
                return (
                    f"{gain} the main thread waiting for the loader's workers: use more workers, "
                    "a larger prefetch_factor or cheaper transforms."
                )
            case "main_thread":
                return (
                    f"{gain} data loading on the main thread: give the DataLoader workers "
                    f"({self.options.workers} > 0)."
                )
            case _:
                return (
                    f"{gain} data loading: move it to worker processes, prefetch, or decode on "
                    "the GPU."
                )

    def allocation(self) -> str:
        """Say what to do about allocations."""
        gain = self.percent(self.gain_of("allocation"))
        return (
            f"Up to {gain} of it is memory that is allocated and freed in every step: keep it "
            "(expandable_segments:True, no empty_cache() in the loop)."
        )

    def host_work(self, *, is_alone: bool) -> str:
        """Say what to do about operators, Python and launches."""
        gain = self.percent(self.gain_of("host_work"))
        if is_alone:
            told = f"It is up to {gain} shorter if operators, Python and launches take no time"
            return f"{told}; {self.how_to_shorten_the_host()}."
        return (
            f"Operators, Python and launches: up to {gain} ({self.options.graphs}); these gains do "
            "not add up."
        )

    def how_to_shorten_the_host(self) -> str:
        """Say what removes host work, or why the trace does not tell."""
        if self.parts["doubt"]["unnamed_host"] > MOSTLY_UNNAMED:
            stack = self.options.stack
            return f"most of that lies outside operators and calls: record {stack} to see what runs"
        name, share, n_events, longest = self.parts["busiest"] or ("", 0.0, 0, 0.0)
        where = short_name(name, WIDEST_NAME)
        if longest >= _MOST_OF_HOST and self.launches_are_sparse():
            how = self.options.schedule
            if self.parts["unit"] == "trace":
                how += f" and {self.options.step}"
            return (
                f"{100 * longest:.0f} % is one call of {where}: if it sets something up, record a "
                f"later step, with {how}"
            )
        if self.parts["unit"] == "trace":
            return "the trace marks no iterations, so that set-up may be most of it"
        if self.launches_are_sparse() and name:
            graphs = self.options.graphs.partition(" or ")[0]
            return (
                f"few GPU activities are launched meanwhile, so that {graphs} gain little; the "
                f"host is longest in {where} ({100 * share:.0f} %, {count(n_events, 'call')})"
            )
        return f"most of that can be removed with {self.options.graphs}"

    def launches_are_sparse(self) -> bool:
        """Whether the host does much for each GPU activity that it launches."""
        total_ns = self.parts["lengths_ns"][3]
        return total_ns > _LONG_FOR_A_LAUNCH_NS * self.parts["n_launched"]

    def communication(self) -> list[str]:
        """Name communication."""
        gain = self.percent(self.gains["communication"])
        told = f"{self.window()}; communication holds it up: up to {gain} shorter without it."
        return [told, *self.overlap()]

    def overlap(self) -> list[str]:
        """Say what to do about communication."""
        awaited = self.parts["awaited"]
        if awaited is None:
            return [_HIDE_IT, ONE_RANK]
        waiting, total = duration(awaited["waiting_ns"]), duration(awaited["total_ns"])
        if awaited["waiting_ns"] < _MOSTLY_WAITING * awaited["total_ns"]:
            return [_HIDE_IT, f"Waiting for other ranks is {waiting} of {total} in collectives."]
        name = short_name(awaited["name"])
        return [
            (
                f"Waiting for other ranks is {waiting} of {total} in collectives: longest for "
                f"rank {awaited['peer']} of the group, {duration(awaited['peer_ns'])} in {name}. "
                "See what keeps that rank; fewer bytes gain little."
            )
        ]

    def copies(self) -> list[str]:
        """Name copies."""
        gain = self.percent(self.gains["copies"])
        told = f"{self.window()}; memory copies hold it up: up to {gain} shorter without them."
        return [told, *self.pinned()]

    def pinned(self) -> list[str]:
        """Say what to do about copies."""
        return ["Pinned memory and a stream of their own let copies run beside the kernels."]

    def waits(self) -> list[str]:
        """Name the waits whose removal gains much."""
        rows = [row for row in self.parts["remedies"] if row["named"] and row["name"] is None]
        kinds = {row["remedy"] for row in rows}
        told = []
        if "blocking_calls" in kinds:
            told += [self.blocking_calls(), *self.pinned_memory()]
        if "stream_waits" in kinds:
            gain = self.percent(self.gain_of("stream_waits"))
            told.append(f"Streams wait for each other: up to {gain} shorter without these waits.")
        return told

    def blocking_calls(self) -> str:
        """Name the places that wait for the GPU."""
        gain = self.percent(self.gain_of("blocking_calls"))
        sites = self.named_parts("blocking_calls")
        if not sites:
            return f"Calls that wait for the GPU: up to {gain} shorter if they do not wait."
        where = _place(sites[0]["name"] or "")
        alone = self.percent(max(sites[0]["gain"], 0.0))
        if len(sites) == 1 and alone == gain:
            return f"Not waiting for the GPU in {where} saves up to {gain}."
        if len(sites) == 1:
            return f"Never waiting for the GPU saves up to {gain}, in {where} alone {alone}."
        more = count(len(sites) - 1, "more place")
        together = self.percent(max(site["cumulative"] or 0.0 for site in sites))
        return (
            f"Not waiting for the GPU in {where} and {more} saves up to {together} together; the "
            f"first alone saves {alone}."
        )

    def pinned_memory(self) -> list[str]:
        """Say what lets a copy not wait."""
        sites = self.named_parts("blocking_calls")
        if not any(site["from_pageable"] for site in sites):
            return []
        told = "Copies from pageable memory wait for the GPU: with pin_memory=True and"
        return [f"{told} non_blocking=True they do not."]

    def function(self) -> list[str]:
        """Name the function that has most of the host's time."""
        function = self.parts["function"]
        if function is None or not self.named_parts("function"):
            return []
        name, part = function
        return [f"{100 * part:.0f} % of the host's time is in {short_name(name, WIDEST_NAME)}."]

    def rest(self) -> list[str]:
        """Admit that much is left that the trace does not explain."""
        return ["The trace does not show what holds up the rest."] if much_left(self.parts) else []

    def usual(self) -> list[str]:
        """Say what the median step alone says, if that is something else."""
        usual = self.parts["usual"]
        if usual is None:
            return []
        sides, remedies, gain = usual
        shown_ns, _, _, total_ns = self.parts["lengths_ns"]
        mean_ns = total_ns // self.parts["n_windows"]
        what = " and ".join(_NOUNS[side] for side in sides) or "nothing by itself"
        held = f"is held up by {what}"
        if sides:
            held += f" (up to {self.percent(gain)})"
        if "data_loading" in remedies[:1]:
            held += ", data loading first"
        told = f"The median step alone, {duration(shown_ns)}, {held}"
        outliers = len(self.parts["outliers"])
        if outliers:
            told += (
                f"; {outliers} of {self.parts['n_windows']} steps take more than 1.5 times as "
                f"long, and the mean is {duration(mean_ns)}"
            )
        return [f"{told}."]

    def balanced(self) -> list[str]:
        """Say that nothing gains much by itself."""
        sides = [f"{_NOUNS[side]} {self.percent(gain)}" for side, gain in self._best_two()]
        both = self.percent(self.parts["kernels_and_host"])
        told = f"{self.window()}; nothing recorded gains 5 % by itself ({', '.join(sides)}; "
        return [f"{told}kernels and host together {both}).", *self.waits(), *self.usual()]

    def _best_two(self) -> Sequence[tuple[str, float]]:
        return sorted(self.gains.items(), key=lambda row: -row[1])[:2]


def _place(name: str) -> str:
    """Shorten the frame of a place, and keep the operator."""
    what, separator, frame = name.partition(" in ")
    return f"{what}{separator}{short_name(frame, WIDEST_NAME)}" if frame else what


_SIDES: Final = {
    "kernels": _Words.kernels,
    "host": _Words.host,
    "communication": _Words.communication,
    "copies": _Words.copies,
}
