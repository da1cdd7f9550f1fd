"""A verdict in words: one sentence for the cause, one for what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.recording import options_of
from longpole.verdict.advice import MOSTLY_UNNAMED, ends_in_time, mostly_stopped
from longpole.verdict.beside import ONE_RANK, beside
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

_HIDE_IT: Final = "Start communication earlier or send fewer bytes."
_PIN_IT: Final = "Pinned memory and a stream of their own let copies run beside the kernels."

# Host and kernels hide one another where either gains less than this, and both together so many
# times as much.
_LITTLE: Final = 0.25
_HIDDEN: Final = 3.0

# One name, or one event, that has so much of the time is what to look at.
_MOST_OF_HOST: Final = 0.4

# The host takes 5 to 50 us to launch a GPU activity; where it takes so long, it does other things.
_LONG_FOR_A_LAUNCH_NS: Final = 300_000

# What a long runtime API call does, and what to do about it; the blanks are those of `Options`.
_LAUNCHES: Final = frozenset({"launch", "graph_launch"})
_SETS_UP: Final = "If it sets something up, record a later step, with {schedule}."
_LONG_CALLS: Final = {
    "allocate": "Allocate before the loop and keep the memory.",
    "stream_ordered_allocate": "Allocate before the loop and keep the memory.",
    "free": "It waits for the GPU and gives memory back: keep the memory ({memory}).",
    "load_module": "It loads kernels on their first use: record a later step, with {schedule}.",
    "launch": "The first launch of a kernel loads it: record a later step, with {schedule}.",
    "graph_launch": "The first launch of a graph uploads it: record a later step, with {schedule}.",
    "other": _SETS_UP,
}

_NOUNS: Final = {
    "kernels": "the kernels",
    "host": "the host",
    "communication": "communication",
    "copies": "memory copies",
}
_HOLD: Final = {
    "kernels": ("the kernels hold", "them"),
    "communication": ("communication holds", "it"),
    "copies": ("memory copies hold", "them"),
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
        self.options = options_of(parts["profiler"], is_of_server=parts["is_of_server"])

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

    def most(self, gain: float) -> str:
        """Write a gain as the upper bound that it is."""
        percent = self.percent(gain)
        return percent if percent.startswith(("nothing", "less")) else f"up to {percent}"

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
            held_up = self.host() if parts["sides"] == ["host"] else self.device()
            told = [*held_up, *self.hidden(), *self.waits()]
        return [*told, *self.function(), *beside(parts, self.most), *self.usual()]

    def two_sides(self) -> str:
        """Name two sides that gain alike."""
        one, two = self.parts["sides"][:2]
        gains = [f"{_NOUNS[side]} ({self.most(self.gains[side])})" for side in (one, two)]
        return f"{self.window()}; {gains[0]} and {gains[1]} hold it up alike."

    def nearly_balanced(self) -> str:
        """Say that only both sides together gain much."""
        host, kernels = self.percent(self.gains["host"]), self.percent(self.gains["kernels"])
        both = self.percent(self.parts["kernels_and_host"])
        return (
            f"{self.window()}; host and device take almost equally long: up to {host} shorter "
            f"without host work, {kernels} without kernels, {both} without both. "
            f"Shorten both: {self.options.graphs}, and faster kernels."
        )

    def hidden(self) -> list[str]:
        """Say where host and kernels hide one another: either takes the place of the other."""
        both = self.parts["kernels_and_host"]
        best = max(self.gains["host"], self.gains["kernels"])
        is_theirs = self.parts["sides"][0] in {"host", "kernels"}
        if not is_theirs or both < _HIDDEN * best or best >= _LITTLE:
            return []
        told = f"Without host and kernels together, {self.most(both)}: either alone gains little"
        return [f"{told}, since the other takes its place."]

    def device(self) -> list[str]:
        """Name a side of the device."""
        side = self.parts["sides"][0]
        hold, them = _HOLD[side]
        gain = self.most(self.gains[side])
        told = f"{self.window()}; {hold} it up: {gain} shorter without {them}."
        return [told, *self.remedies()]

    def kernel_families(self) -> list[str]:
        """Say what kernels twice as fast give, and which of them gives most."""
        told = f"Twice as fast, all kernels save {self.most(self.gain_of('kernels'))}"
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
        first, *others = self.host_remedies()
        lead = f"{self.window()}; the host holds it up"
        return [f"{lead}: {first}" if first[0].islower() else f"{lead}. {first}", *others]

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
                told.append(_PIN_IT)
        return told

    def host_remedies(self) -> list[str]:
        """Say what can be done on the host."""
        named = {row["remedy"] for row in self.parts["remedies"] if row["named"]}
        told = [self.data_loading()] if "data_loading" in named else []
        long_call = self.long_call()
        if long_call:
            return [*told, long_call]
        if "allocation" in named:
            told.append(self.allocation())
        if "host_work" in named:
            told.append(self.host_work(overlaps=bool(told)))
        return told

    def long_call(self) -> str | None:
        """Name the call that most of the time is in, where no launch can be saved there."""
        name, share, n_events, longest, role = self.parts["busiest"] or ("", 0.0, 0, 0.0, None)
        is_one = longest >= _MOST_OF_HOST
        part, calls = (longest, "one call") if is_one else (share, count(n_events, "call"))
        is_known = role in _LONG_CALLS and (is_one or role not in _LAUNCHES)
        if part < _MOST_OF_HOST or not (is_known or (is_one and self.launches_are_sparse())):
            return None
        options = self.options._asdict()
        if self.parts["unit"] == "trace":
            options["schedule"] += f" and {options['step']}"
        advice = _LONG_CALLS.get(role or "", _SETS_UP).format(**options)
        return f"{100 * part:.0f} % is {calls} of {short_name(name, WIDEST_NAME)}. {advice}"

    def data_loading(self) -> str:
        """Say what to do about data loading."""
        gain = f"Up to {self.percent(self.gain_of('data_loading'))} of it is"
        match self.parts["loader"]:
            case "workers":
                return (
                    f"{gain} the main thread waiting for the loader's workers: use more workers, "
                    f"{self.options.prefetch} or cheaper transforms."
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
        memory = self.options.memory
        return f"Up to {gain} of it is allocating and freeing: keep the memory ({memory})."

    def host_work(self, *, overlaps: bool) -> str:
        """Say what to do about operators, Python and launches."""
        gain = self.most(self.gain_of("host_work"))
        if overlaps:
            graphs = "" if self.launches_are_sparse() else f"; {self.options.graphs}"
            return f"Operators, Python and launches: {gain} (gains overlap{graphs})."
        how = self.how_to_shorten_the_host()
        if len(self.parts["sides"]) > 1:
            return f"On the host, {how}."
        return f"{gain} shorter without operators, Python and launches; {how}."

    def how_to_shorten_the_host(self) -> str:
        """Say what removes host work, or why the trace does not tell."""
        if self.parts["doubt"]["unnamed_host"] > MOSTLY_UNNAMED:
            stack = self.options.stack
            return f"most of that lies outside operators and calls: record {stack} to see what runs"
        if self.parts["unit"] == "trace":
            return "the trace marks no iterations, so that set-up may be most of it"
        busiest = self.parts["busiest"]
        if busiest is None or not self.launches_are_sparse():
            return f"{self.options.graphs} can remove most of that"
        few = "few GPU activities are launched, so graphs gain little"
        name, share, n_events, *_ = busiest
        where = f"{short_name(name, WIDEST_NAME)} ({100 * share:.0f} %, {count(n_events, 'call')})"
        return few if self.function() else f"{few}; the host is longest in {where}"

    def launches_are_sparse(self) -> bool:
        """Whether the host does much for each GPU activity that it launches."""
        total_ns = self.parts["lengths_ns"][3]
        return total_ns > _LONG_FOR_A_LAUNCH_NS * self.parts["n_launched"]

    def overlap(self) -> list[str]:
        """Say what to do about communication."""
        awaited = self.parts["awaited"]
        if awaited is None:
            return [_HIDE_IT, ONE_RANK]
        waiting, total = duration(awaited["waiting_ns"]), duration(awaited["total_ns"])
        if awaited["waiting_ns"] < _MOSTLY_WAITING * awaited["total_ns"]:
            return [_HIDE_IT, f"Waiting for other ranks is {waiting} of {total} in collectives."]
        name, peer_ns = short_name(awaited["name"]), min(awaited["peer_ns"], awaited["waiting_ns"])
        return [
            (
                f"Waiting for other ranks is {waiting} of {total} in collectives: longest for "
                f"rank {awaited['peer']} of the group, {duration(peer_ns)} in {name}. "
                "See what keeps that rank; fewer bytes gain little."
            )
        ]

    def waits(self) -> list[str]:
        """Name the waits whose removal gains much."""
        rows = [row for row in self.parts["remedies"] if row["named"] and row["name"] is None]
        kinds = {row["remedy"] for row in rows}
        told = [self.blocking_calls()] if "blocking_calls" in kinds else []
        if "stream_waits" in kinds:
            gain = self.most(self.gain_of("stream_waits"))
            told.append(f"Without waits between streams: {gain}.")
        return told

    def blocking_calls(self) -> str:
        """Name the places that wait for the GPU."""
        gain = self.most(self.gain_of("blocking_calls"))
        sites = self.named_parts("blocking_calls")
        if not sites:
            return f"Not waiting for the GPU saves {gain}."
        where = _place(sites[0]["name"] or "")
        alone = self.percent(max(sites[0]["gain"], 0.0))
        pinned = any(site["from_pageable"] for site in sites) and self.options.pinned
        how = f" ({pinned})" if pinned else ""
        if len(sites) == 1 and f"up to {alone}" == gain:
            return f"Not waiting for the GPU in {where} saves {gain}{how}."
        if len(sites) == 1:
            return f"Never waiting for the GPU saves {gain}, in {where} alone {alone}{how}."
        more = count(len(sites) - 1, "more place")
        together = self.most(max(site["cumulative"] or 0.0 for site in sites))
        return (
            f"Not waiting for the GPU in {where} and {more} saves {together}{how}, in the first "
            f"alone {alone}."
        )

    def function(self) -> list[str]:
        """Name the function that has most of the host's time."""
        function = self.parts["function"]
        if function is None or not self.named_parts("function"):
            return []
        name, part = function
        return [f"{100 * part:.0f} % of the host's time is in {short_name(name, WIDEST_NAME)}."]

    def usual(self) -> list[str]:
        """Say what the median step alone says, if that is something else."""
        usual = self.parts["usual"]
        if usual is None:
            return []
        sides, remedies, gain = usual
        shown_ns = self.parts["lengths_ns"][0]
        what = " and ".join(_NOUNS[side] for side in sides) or "nothing by itself"
        held = f"{what} ({self.most(gain)})" if sides else what
        if "data_loading" in remedies[:1]:
            held += ", data loading first"
        told = f"The median step ({duration(shown_ns)}) is held up by {held}"
        outliers = len(self.parts["outliers"])
        if outliers:
            told += f"; {outliers} of {self.parts['n_windows']} take over 1.5 times as long"
        return [f"{told}."]

    def balanced(self) -> list[str]:
        """Say that nothing gains much by itself."""
        sides = [f"{_NOUNS[side]} {self.percent(gain)}" for side, gain in self._best_two()]
        told = f"{self.window()}; nothing recorded gains 5 % by itself ({', '.join(sides)})."
        both = self.percent(self.parts["kernels_and_host"])
        hidden = f"Without host and kernels together it is up to {both} shorter."
        return [told, hidden, *self.waits(), *self.usual()]

    def _best_two(self) -> Sequence[tuple[str, float]]:
        return sorted(self.gains.items(), key=lambda row: -row[1])[:2]


def _place(name: str) -> str:
    """Shorten the frame of a place, and keep the operator."""
    what, separator, frame = name.partition(" in ")
    return f"{what}{separator}{short_name(frame, WIDEST_NAME)}" if frame else what
