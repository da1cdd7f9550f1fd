"""What a window waits for most, in one sentence, with the rows that prove it.

Every instant of the busiest device belongs to one part: a kernel computes, communication
or a copy runs with no kernel beside it, the host has yet to launch the next work, or that
work is launched and has not begun. The answer is the largest part.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

import polars as pl

from longpole.analyses.busiest_lane import busiest_lane
from longpole.analyses.by_name import NameTime, by_name
from longpole.analyses.doing import Doing, HotSpot, doing
from longpole.wording import count, duration, share, short_name

if TYPE_CHECKING:
    from collections.abc import Callable

    from longpole.analyses.device_times import DeviceTime
    from longpole.trace import Trace
    from longpole.windows import Window

__all__ = ["Answer", "Evidence", "WaitsFor", "waits_for"]

WaitsFor = Literal["kernels", "communication", "copies", "host", "launched_work", "cpu", "unknown"]

_N_ROWS = 4
_IS_FRAME = re.compile(r"\(\d+\): ")


@dataclass(frozen=True, slots=True)
class Evidence(NameTime):
    """Events that prove a sentence."""

    what: str


@dataclass(frozen=True, slots=True)
class Answer:
    """What a window waits for most."""

    waits_for: WaitsFor
    device: int | None
    duration_ns: int
    share: float
    """Of the window."""
    sentence: str
    evidence: tuple[Evidence, ...]


@dataclass(frozen=True, slots=True)
class _Question:
    """A device in a window, and the time of the part that is to be put into words."""

    trace: Trace
    window: Window
    device: DeviceTime
    time_ns: int

    @property
    def share(self) -> float:
        return _part(self.time_ns, self.window.duration_ns)

    @property
    def subject(self) -> str:
        number = self.device.device
        return "The device" if number is None else f"Device {number}"

    @property
    def portion(self) -> str:
        """Such as `46.8 % of the step (567 ms of 1.21 s)`."""
        times = f"{duration(self.time_ns)} of {duration(self.window.duration_ns)}"
        return f"{share(self.share)} of the {self.window.noun} ({times})"


def waits_for(trace: Trace, window: Window, devices: tuple[DeviceTime, ...]) -> Answer:
    """Say what a window waits for most."""
    device = _main_device(devices)
    if device is None:
        return _cpu(trace, window, has_devices=bool(devices))
    parts = _parts(device)
    largest = max(parts, key=lambda part: parts[part])
    question = _Question(trace, window, device, parts[largest])
    sentence, evidence = _WORDS[largest](question)
    number = device.device
    return Answer(largest, number, question.time_ns, question.share, sentence, tuple(evidence))


def _main_device(devices: tuple[DeviceTime, ...]) -> DeviceTime | None:
    """Choose the device that an answer is about: the busiest, the first of equals."""
    busy = [device for device in devices if device.whole.busy_ns]
    return max(busy, key=lambda device: device.whole.busy_ns, default=None)


def _parts(device: DeviceTime) -> dict[WaitsFor, int]:
    whole, idle = device.whole, device.idle
    return {
        "kernels": whole.compute_ns,
        "communication": whole.communication_ns,
        "copies": whole.copy_ns,
        "host": (idle.host_ns or 0) + idle.after_last_ns,
        "launched_work": idle.launched_ns or 0,
        "unknown": idle.unlinked_ns,
    }


def _kernels(question: _Question) -> tuple[str, list[Evidence]]:
    rows = _work(question, "compute", "holds the device")
    longest = rows[0]
    part = share(_part(longest.duration_ns, question.window.duration_ns))
    return (
        f"{question.subject} computes {question.portion}: the {question.window.noun} waits for "
        f"its kernels, most of all {short_name(longest.name)} ({part}, "
        f"{count(longest.count, 'kernel')})."
    ), rows


def _communication(question: _Question) -> tuple[str, list[Evidence]]:
    rows = _work(question, "communication", "communicates")
    return (
        f"{question.subject} communicates with nothing computing beside it {question.portion}, "
        f"most of all {short_name(rows[0].name)} ({duration(rows[0].duration_ns)})."
    ), rows


def _copies(question: _Question) -> tuple[str, list[Evidence]]:
    rows = _work(question, "copy", "moves or fills memory")
    return (
        f"{question.subject} moves memory with no kernel beside it {question.portion}, most of "
        f"all {short_name(rows[0].name)} ({duration(rows[0].duration_ns)})."
    ), rows


def _launched_work(question: _Question) -> tuple[str, list[Evidence]]:
    gaps = _gaps(question).with_columns(waits_ns=_gap_after_call())
    return (
        f"{question.subject} has work that is launched and has not begun {question.portion}: "
        "the calls that launched it had returned before."
    ), _ended_by(question, gaps)


def _unknown(question: _Question) -> tuple[str, list[Evidence]]:
    unlinked = pl.col("next").is_not_null() & pl.col("host_ns").is_null()
    gaps = _gaps(question).filter(unlinked).with_columns(waits_ns="duration_ns")
    return (
        f"{question.subject} is idle {question.portion} and the trace does not say why: the "
        "work behind the gaps is not linked to the calls that launched it."
    ), _ended_by(question, gaps)


def _host(question: _Question) -> tuple[str, list[Evidence]]:
    gaps = _gaps(question).with_columns(waits_ns="host_ns")
    did = doing(question.trace, _host_spans(question, gaps))
    thread = "launching thread"
    rows = _done(did, thread)
    spot = _spot(did, thread, did.total_ns)
    sentence = f"{question.subject} waits for the host {question.portion}; {spot}."
    if _is_unseen(did) and not _has_python(question.trace):
        sentence += " Python between operators is recorded with `with_stack=True`."
    return sentence, rows + _ended_by(question, gaps.filter(pl.col("waits_ns") > 0))[:1]


def _cpu(trace: Trace, window: Window, *, has_devices: bool) -> Answer:
    lane = busiest_lane(trace, window)
    did = doing(trace, lane)
    where = "runs on a device in it" if has_devices else "that runs on a device is recorded"
    if (trace.events["kind"] == "counter_range").any():
        where += " but counters, which have no times of their own"
    thread = "busiest thread"
    length = f"{duration(did.recorded_ns)} of {duration(window.duration_ns)}"
    portion = _part(did.recorded_ns, window.duration_ns)
    sentence = (
        f"Nothing {where}: the {window.noun} is all host. Its {thread} is at work "
        f"{share(portion)} of it ({length}); {_spot(did, thread, did.recorded_ns)}."
    )
    rows = _done(did, thread)
    return Answer("cpu", None, did.recorded_ns, portion, sentence, tuple(rows))


_WORDS: Final[dict[WaitsFor, Callable[[_Question], tuple[str, list[Evidence]]]]] = {
    "kernels": _kernels,
    "communication": _communication,
    "copies": _copies,
    "host": _host,
    "launched_work": _launched_work,
    "unknown": _unknown,
}


def _work(question: _Question, work_class: str, what: str) -> list[Evidence]:
    """Rank the work of one class on the device."""
    work = question.trace.launches.filter(pl.col("work_class") == work_class).select("event")
    events = question.trace.events.join(work, on="event").filter(
        pl.col("device").eq_missing(question.device.device)
    )
    return _evidence(by_name(question.window.clip(events), "inside_ns"), what)


def _gaps(question: _Question) -> pl.DataFrame:
    gaps = question.trace.gaps(question.window.start_ns, question.window.end_ns)
    return gaps.filter(pl.col("device").eq_missing(question.device.device))


def _gap_after_call() -> pl.Expr:
    return pl.col("duration_ns") - pl.col("host_ns")


def _host_spans(question: _Question, gaps: pl.DataFrame) -> pl.DataFrame:
    """List where to look: the thread of each call until it returned, then the one of most calls."""
    calls = question.trace.events.select(call="event", lane="lane")
    before_calls = gaps.filter(pl.col("waits_ns") > 0).join(calls, on="call")
    spans = before_calls.select("lane", "start_ns", end_ns=pl.col("start_ns") + pl.col("waits_ns"))
    last = gaps.filter(pl.col("next").is_null())
    if last.is_empty():
        return spans
    end_ns = pl.col("start_ns") + pl.col("duration_ns")
    tail = last.select("start_ns", end_ns=end_ns).join(_launching_lane(question), how="cross")
    return pl.concat([spans, tail.select(spans.columns)])


def _launching_lane(question: _Question) -> pl.DataFrame:
    """Find the thread of most calls that launched work on the device."""
    is_here = pl.col("device").eq_missing(question.device.device)
    work = question.window.clip(question.trace.events.filter(is_here)).select("event")
    lanes = question.trace.events.select("lane", call="event")
    calls = question.trace.launches.join(work, on="event").join(lanes, on="call")
    if calls.is_empty():
        return busiest_lane(question.trace, question.window).select("lane")
    return (
        calls.group_by("lane")
        .len()
        .sort("len", "lane", descending=[True, False])
        .select("lane")
        .head(1)
    )


def _ended_by(question: _Question, gaps: pl.DataFrame) -> list[Evidence]:
    """Group gaps by the work that ended them."""
    names = question.trace.events.select(event="event", name="name")
    ends = gaps.select("waits_ns", event="next").join(names, on="event")
    return _evidence(by_name(ends, "waits_ns"), "gaps before")


def _done(did: Doing, thread: str) -> list[Evidence]:
    """List the spot and what owns most of the time."""
    if did.spot is None:
        return _evidence(did.owners, f"{thread} in")
    spot = {field: getattr(did.spot, field) for field in NameTime.__slots__}
    others = did.owners.filter(pl.col("name").ne_missing(pl.lit(did.spot.name)))
    return [
        Evidence(**spot, what=f"{thread} in"),
        *_evidence(others, "self time of")[: _N_ROWS - 1],
    ]


def _evidence(ranked: pl.DataFrame, what: str) -> list[Evidence]:
    return [Evidence(**row, what=what) for row in ranked.head(_N_ROWS).iter_rows(named=True)]


def _spot(did: Doing, thread: str, of_ns: int) -> str:
    """Say what a thread did most, as a share of `of_ns`."""
    if _is_unseen(did):
        part = share(_part(did.total_ns - did.recorded_ns, did.total_ns))
        return f"for {part} of that nothing is recorded on the {thread}"
    if did.spot is None:
        most = did.owners.row(0, named=True)
        named = f"{short_name(most['name'])} ({share(_part(most['duration_ns'], of_ns))})"
        return f"the {thread} does many things then, most of all {named}"
    part = share(_part(did.spot.duration_ns, of_ns))
    return f"{part} of that the {thread} is in {short_name(did.spot.name)}{_caller(did.spot)}"


def _caller(spot: HotSpot) -> str:
    """Name the line of Python around a spot, where the trace knows it."""
    frames = [name for name in (*spot.callers, spot.name) if name and _IS_FRAME.search(name)]
    return f", called from {short_name(frames[-1])}" if frames and frames[-1] != spot.name else ""


def _is_unseen(did: Doing) -> bool:
    return 2 * did.recorded_ns < did.total_ns or did.owners.is_empty()


def _has_python(trace: Trace) -> bool:
    return bool((trace.events["kind"] == "python").any())


def _part(part: int, whole: int) -> float:
    return part / whole if whole else 0.0
