"""What can be done, in at most three lines: what to do, what that saves, and where to look."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.recording import options_of
from longpole.verdict.advice import MOSTLY_UNNAMED, mostly_stopped
from longpole.verdict.gains import Gains, n_words
from longpole.verdict.missing import WIDEST_NAME
from longpole.wording import count, duration, short_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from longpole.verdict.parts import RemedyKind, RemedyParts, VerdictParts

__all__ = ["actions"]

_MOST: Final = 3

# A part is worth naming from here.
_LEAST_PART: Final = 0.02

# A place that waits gains less than this where the next one waits for the same work.
_LEAST_ALONE: Final = 0.01

# Beyond this gain, less other work remains than what could be hidden beside it.
_MOST_HIDDEN: Final = 0.5

# From this share of their time on, collectives are said to wait.
_MOSTLY_WAITING: Final = 0.5

# One name, or one event, that has so much of the time is what to look at.
_MOST_OF_HOST: Final = 0.4

# The host takes 5 to 50 us to launch a GPU activity; where it takes so long, it does other things.
_LONG_FOR_A_LAUNCH_NS: Final = 300_000

# What a long runtime API call does, and what to do about it; the blanks are those of `Options`.
_LAUNCHES: Final = frozenset({"launch", "graph_launch"})
_SETS_UP: Final = "If it sets something up, record a later step, with {schedule}."
_CREATES_CONTEXT: Final = (
    "Nothing used the GPU before, so it creates the context: set-up. Record a later step, with "
    "{schedule}."
)
_ONCE: Final = "It comes again in every {unit}: do it once, before the loop."
# Calls that are no set-up where they come again and again.
_RECURS: Final = {
    "load_module": _ONCE,
    "launch": "It comes again in every {unit}, so it is not the first launch of a kernel.",
    "graph_launch": "It comes again in every {unit}, so it is not the first launch of a graph.",
    "other": _ONCE,
    "": _ONCE,
}
_LONG_CALLS: Final = {
    "allocate": "Allocate before the loop and keep the memory.",
    "stream_ordered_allocate": "Allocate before the loop and keep the memory.",
    "free": "It waits for the GPU and gives memory back: keep the memory ({memory}).",
    "load_module": "It loads kernels on their first use: record a later step, with {schedule}.",
    "unload_module": "It unloads kernels or ends the context: do that after the loop.",
    "launch": "The first launch of a kernel loads it: record a later step, with {schedule}.",
    "graph_launch": "The first launch of a graph uploads it: record a later step, with {schedule}.",
    "other": _SETS_UP,
}


def actions(parts: VerdictParts, most_words: int) -> list[str]:
    """Say what can be done about what the verdict names, the first first, in so many words.

    Examples
    --------
    >>> from longpole.testing import TraceBuilder
    >>> trace = TraceBuilder().launch("gemm", call=(0, 10), work=(10, 100)).read()
    >>> trace.verdict().actions
    ('Kernels twice as fast: saves up to 45 % (event 1).',)
    """
    if parts["status"] not in {"ok", "balanced"} or mostly_stopped(parts):
        return []
    found = _Actions(parts)
    lines = [*found.waits(), *found.work()] if parts["waits_lead"] else found.all()
    helpful = [line for line in dict.fromkeys(lines) if ": saves nothing" not in line]
    first, *others = helpful[:_MOST] or [""]
    kept, left = [first] if first else [], most_words - n_words(first)
    for line in others:
        left -= n_words(line)
        kept += [line] if left >= 0 else []
    return kept


class _Actions:
    """The lines of one verdict."""

    def __init__(self, parts: VerdictParts) -> None:
        self.parts = parts
        self.gains = Gains(parts)
        self.options = options_of(parts["profiler"], is_of_server=parts["is_of_server"])
        self.whole = {row["remedy"]: row for row in parts["remedies"] if row["name"] is None}
        self.named = {kind for kind, row in self.whole.items() if row["named"]}

    def all(self) -> list[str]:
        """List what is named: work first, then waits."""
        return [*self.work(), *self.waits()]

    def work(self) -> Iterator[str]:
        """List what can be done about the named sides."""
        sides = self.parts["sides"]
        if self.parts["nearly_balanced"]:
            sides = ["host", "kernels"]
        for side in sides:
            match side:
                case "host":
                    yield from self.host()
                case "kernels":
                    yield self.kernels()
                case "communication":
                    yield self.overlap()
                case "copies":
                    how = "copy from pinned memory on a stream of its own"
                    yield self.line(*self.fewer_or_beside("Copy less", how, "copies"))

    def line(self, how: str, kind: RemedyKind, beside: str = "") -> str:
        """Say what to do, what it saves and where."""
        row = self.whole.get(kind)
        if row is None:
            return f"{how}."
        return f"{how}: saves {self.gains.of_remedy(row)}{beside}{_where(row)}."

    def fewer_or_beside(
        self, fewer: str, overlap: str, kind: RemedyKind
    ) -> tuple[str, RemedyKind, str]:
        """Say what to do less or beside other work, which saves no more than that work takes."""
        row = self.whole.get(kind)
        if row is None or row["gain"] <= _MOST_HIDDEN:
            return f"{fewer}, or {overlap}", kind, ""
        beside = self.gains.most(max(1.0 - row["gain"], 0.0))
        return fewer, kind, f"; overlap with other work saves {beside}"

    def host(self) -> Iterator[str]:
        """List what can be done on the host, the cheapest first."""
        if "data_loading" in self.named:
            yield self.line(self.loading(), "data_loading", self.loading_function())
        long_call = self.long_call()
        if long_call:
            yield long_call
            return
        if "allocation" in self.named:
            yield self.line(f"Keep the memory ({self.options.memory})", "allocation")
        if "host_work" in self.named or self.parts["nearly_balanced"]:
            yield self.line(self.how_to_shorten_the_host(), "host_work") + self.what_to_record()
        yield from self.function()

    def loading(self) -> str:
        """Say what to do about data loading."""
        match self.parts["loader"]:
            case "workers":
                return f"Use more loader workers or {self.options.prefetch}"
            case "main_thread":
                return f"Give the DataLoader workers ({self.options.workers} > 0)"
            case _:
                return "Load data in worker processes, prefetch, or decode on the GPU"

    def loading_function(self) -> str:
        """Name the function that loading data is longest in, which is no remedy beside it."""
        if self.parts["function"] is None or not self.is_in_loading():
            return ""
        return f", longest in {short_name(self.parts['function'][0], WIDEST_NAME)}"

    def is_in_loading(self) -> bool:
        """Whether an event shows both the function and the loading of data."""
        loading, rows = self.whole.get("data_loading"), self.parts_of("function")
        if loading is None or not loading["named"] or not rows:
            return False
        return not set(loading["events"]).isdisjoint(rows[0]["events"])

    def long_call(self) -> str | None:
        """Name the call that most of the time is in, where no launch can be saved there."""
        if self.parts["busiest"] is None:
            return None
        name, share, n_events, longest, role, occasion = self.parts["busiest"]
        is_one = longest >= _MOST_OF_HOST
        part = longest if is_one else share
        is_known = role in _LONG_CALLS and (is_one or role not in _LAUNCHES)
        if part < _MOST_OF_HOST or not (is_known or (is_one and self.launches_are_sparse())):
            return None
        options = self.options._asdict() | {"unit": self.parts["unit"]}
        if self.parts["unit"] == "trace":
            options["schedule"] += f" and {options['step']}"
        advice = _LONG_CALLS.get(role or "", _SETS_UP)
        if occasion == "recurring":
            advice = _RECURS.get(role or "", advice)
        elif occasion == "first" and role is not None and role not in _LAUNCHES and is_one:
            advice = _CREATES_CONTEXT
        advice = advice.format(**options)
        calls = "One call" if is_one else count(n_events, "call")
        take = f"of {short_name(name, WIDEST_NAME)} {'takes' if is_one else 'take'}"
        return f"{calls} {take} {100 * part:.0f} % of the time. {advice}"

    def how_to_shorten_the_host(self) -> str:
        """Say what removes host work."""
        if self.what_to_record():
            return "Shorten host work"
        if self.parts["unit"] == "trace":
            return "Shorten host work (no iterations are marked, so most may be set-up)"
        busiest = self.parts["busiest"]
        if busiest is None or not self.launches_are_sparse():
            graphs = self.options.graphs
            return f"Use {graphs}" if graphs[:1].isupper() or "." in graphs else f"Try {graphs}"
        if self.function():
            return "Shorten host work (few launches, so graphs gain little)"
        name, share, n_events, *_ = busiest
        where = f"{short_name(name, WIDEST_NAME)} ({100 * share:.0f} %, {count(n_events, 'call')})"
        return f"Shorten host work, longest in {where}"

    def what_to_record(self) -> str:
        """Say what to record where the trace does not tell what most of the host work is."""
        if self.parts["doubt"]["unnamed_host"] <= MOSTLY_UNNAMED:
            return ""
        if self.parts["recorded"]["has_operators"]:
            stack = f"record Python stacks ({self.options.stack})"
            return f" Most of it lies outside operators and calls; {stack}."
        operators = f"record {self.options.operators}"
        return f" Most of it lies outside runtime API calls and may be waiting; {operators}."

    def launches_are_sparse(self) -> bool:
        """Whether the host does much for each GPU activity that it launches."""
        total_ns = self.parts["lengths_ns"][3]
        return total_ns > _LONG_FOR_A_LAUNCH_NS * self.parts["n_launched"]

    def function(self) -> list[str]:
        """Name the function that has most of the host's time."""
        function, rows = self.parts["function"], self.parts_of("function")
        if function is None or not rows or self.is_in_loading():
            return []
        name, part = function
        told = f"Shorten {short_name(name, WIDEST_NAME)} ({100 * part:.0f} % of host time)"
        return [f"{told}: saves {self.gains.of_remedy(rows[0])}{_where(rows[0])}."]

    def parts_of(self, kind: RemedyKind) -> list[RemedyParts]:
        """List the named parts of a remedy."""
        rows = self.parts["remedies"]
        return [row for row in rows if row["remedy"] == kind and row["name"] and row["named"]]

    def kernels(self) -> str:
        """Say what kernels twice as fast give, and which of them gives most."""
        whole = self.whole["kernels"]
        saved = self.gains.percent(whole["gain"])
        told = f"Kernels twice as fast: saves {self.gains.of_remedy(whole)}{self.then_the_host()}"
        parts = [row for row in self.parts_of("kernels") if row["gain"] >= _LEAST_PART][:1]
        alone = [row for row in parts if self.gains.percent(row["gain"]) != saved]
        for row in alone:
            where = _where(whole) if row["events"][:1] != whole["events"][:1] else ""
            name = short_name(row["name"] or "", WIDEST_NAME)
            told += f"{where}, {name} alone {self.gains.percent(row['gain'])}"
        return f"{told}{_where((alone or [whole])[0])}."

    def then_the_host(self) -> str:
        """Say why kernels that take no time would save no more."""
        saved, without = self.whole["kernels"]["gain"], self.gains.sides["kernels"]
        is_all = self.gains.percent(saved) == self.gains.percent(without)
        return ", then host-limited" if is_all and self.parts["nearly_balanced"] else ""

    def overlap(self) -> str:
        """Say what to do about communication."""
        awaited = self.parts["awaited"]
        how, kind, most = self.fewer_or_beside(
            "Send fewer bytes", "start communication earlier", "communication"
        )
        if awaited is None:
            return self.line(how, kind, most)
        waiting, total = duration(awaited["waiting_ns"]), duration(awaited["total_ns"])
        if awaited["waiting_ns"] < _MOSTLY_WAITING * awaited["total_ns"]:
            beside = f" (waiting for other ranks takes {waiting} of {total})"
            return self.line(how, kind, beside + most)
        name, peer_ns = short_name(awaited["name"]), min(awaited["peer_ns"], awaited["waiting_ns"])
        return (
            f"See what makes rank {awaited['peer']} of the group late: collectives wait for "
            f"{waiting} of {total}, of which {duration(peer_ns)} for this rank in {name}."
        )

    def waits(self) -> Iterator[str]:
        """Name the waits whose removal gains much."""
        if "blocking_calls" in self.named:
            yield self.blocking_calls()
        if "stream_waits" in self.named:
            yield self.line("Let streams wait less for each other", "stream_waits")

    def blocking_calls(self) -> str:
        """Name the places that wait for the GPU."""
        whole, sites = self.whole["blocking_calls"], self.parts_of("blocking_calls")
        saved = self.gains.of_remedy(whole)
        if not sites:
            return f"Do not wait for the GPU: saves {saved}{_where(whole)}."
        where = _place(sites[0]["name"] or "")
        alone = self.gains.percent(max(sites[0]["gain"], 0.0))
        together = self.gains.most(max(site["cumulative"] or 0.0 for site in sites))
        enough = {saved, together} if len(sites) > 1 else {saved}
        is_one_enough = f"up to {alone}" in enough
        shown = sites[:1] if is_one_enough else sites
        pinned = any(site["from_pageable"] for site in shown) and self.options.pinned
        how = f" ({pinned})" if pinned else ""
        if is_one_enough:
            return f"Do not wait for the GPU in {where}{how}: saves {together}{_where(sites[0])}."
        if len(sites) > 1:
            more = count(len(sites) - 1, "more place")
            told = f"Do not wait for the GPU in {where} and {more}{how}: saves {together}"
            is_little = max(sites[0]["gain"], 0.0) < _LEAST_ALONE
            first = "but only all together" if is_little else f"the first alone {alone}"
            return f"{told}, {first}{_where(sites[0])}."
        told = f"Do not wait for the GPU{how}: saves {saved}, in {where} alone {alone}"
        return f"{told}{_where(sites[0])}."


def _where(row: RemedyParts) -> str:
    """Give the event that shows a remedy best."""
    return f" (event {row['events'][0]})" if row["events"] else ""


def _place(name: str) -> str:
    """Shorten the frame of a place, and keep the operator."""
    what, separator, frame = name.partition(" in ")
    return f"{what}{separator}{short_name(frame, WIDEST_NAME)}" if frame else what
