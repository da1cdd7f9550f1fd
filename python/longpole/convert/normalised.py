"""Writes a trace that every viewer shows unchanged: exact numbers and properly nested slices.

Some profilers write timestamps as strings or with more digits than a double holds, flow ids above
2^53, and slices that partly overlap on one track. Viewers then shift slices by hundreds of
nanoseconds, draw them below the wrong parent, or drop them.
"""

from __future__ import annotations

import gzip
import json
import math
from collections import defaultdict
from decimal import Decimal
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from longpole.convert.repaired import repair
from longpole.errors import TraceError
from longpole.files import new_file

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator
    from typing import TextIO

Track: TypeAlias = tuple[int, int]
"""A process id and a thread id."""

__all__ = ["normalise"]

_PIECE: Final = 1 << 20
_NS_PER_US: Final = 1000
_MOST_TRIED: Final = 8
"""Number of additional tracks tried for a slice, latest first; bounded for speed."""

_FIRST_ADDED: Final = 1 << 30
"""First thread id of added tracks: Linux numbers its threads below 2^22."""

_MOST_DIGITS: Final = 640
"""The smallest digit limit that Python accepts for integer conversion."""

_FLOWS: Final = frozenset("stf")
_WITH_IDS: Final = _FLOWS | frozenset("bneSTpFNOD")


def normalise(
    source: str | os.PathLike[str], output: str | os.PathLike[str], *, force: bool = False
) -> int:
    """Write the readable part of a trace so that every viewer shows it unchanged.

    Timestamps are microseconds since the first event, exact to the nanosecond in a double;
    `baseTimeNanoseconds` is their origin, so that `base_time_ns` and `start_ns` add up to the times
    of the source. Processes, threads and ids become numbers; ids of flows and asynchronous events
    are counted from 1. A slice that partly overlaps another slice on its track moves to an
    additional track, with the flows that begin or end at it.

    Source, output and errors are as for `repair`, on which this function is based.

    Examples
    --------
    >>> from longpole import read_trace
    >>> event = '{"ph":"X","name":"a","pid":"7","tid":1,"ts":"1736408883732241.564","dur":2}'
    >>> with TemporaryDirectory() as folder:
    ...     source, output = Path(folder, "in.json"), Path(folder, "out.json")
    ...     _ = source.write_text(f"[{event}]")
    ...     n_written = normalise(source, output)
    ...     trace = read_trace(output)
    >>> n_written, trace.base_time_ns, trace.events["start_ns"].item()
    (1, 1736408883732241000, 564)
    """
    path, target = Path(source), Path(output)
    with (
        new_file(target, force=force, inputs=[path]) as unfinished,
        TemporaryDirectory(dir=target.parent, prefix=f".{target.name}.") as folder,
    ):
        sound = Path(folder, "sound.json")
        repair(path, sound)
        opened: Any = gzip.open if target.suffix == ".gz" else open
        with opened(unfinished, "wt", encoding="utf-8", newline="\n") as file:
            try:
                return _write(sound, file)
            except RecursionError:
                message = f"{path}: a value in the header of the trace is nested too deep"
                error = TraceError(message)
                error.code, error.hint = "limit_reached", None
                error.path, error.offset = str(path), 0
                raise error from None


class _Slice(NamedTuple):
    start_ns: int
    end_ns: int
    place: int


def _write(sound: Path, file: TextIO) -> int:
    """Write the events of a valid document again, with its header fields."""
    names = _Numbers()
    first_ns, lanes = _lanes(sound, names)
    header: dict[str, Any] = {}
    ids = _Ids()
    file.write('{"traceEvents":[')
    n_written = 0
    for event in _events(sound, header):
        moved = lanes.thread_of(n_written, event, names)
        text = _normalised(event, names, ids, moved, first_ns)
        file.write(f"{',' if n_written else ''}\n{text}")
        n_written += 1
    for text in lanes.named():
        file.write(f"{',' if n_written else ''}\n{text}")
        n_written += 1
    base_ns = header.get("baseTimeNanoseconds")
    header["baseTimeNanoseconds"] = first_ns + (base_ns if isinstance(base_ns, int) else 0)
    fields = (f"{json.dumps(name)}:{json.dumps(header[name], default=_number)}" for name in header)
    file.writelines(["\n],\n", ",\n".join(fields), "}\n"])
    return n_written


def _normalised(
    event: dict[str, Any], names: _Numbers, ids: _Ids, thread: int | None, first_ns: int
) -> str:
    phase = _phase(event)
    shown = {key: value for key, value in event.items() if key not in ("ts", "dur")}
    for key in ("pid", "tid"):
        if key in shown:
            shown[key] = names.number(shown[key])
    if thread is not None:
        shown["tid"] = thread
    if phase in _WITH_IDS:
        for key in ("id", "bind_id"):
            if key in shown:
                shown[key] = ids.number((phase in _FLOWS, str(event.get("cat")), str(shown[key])))
    text = json.dumps(shown, default=_number, ensure_ascii=False, separators=(",", ":"))
    start_ns, duration_ns = _ns(event.get("ts")), _ns(event.get("dur"))
    times = "" if duration_ns is None else f',"dur":{_microseconds(duration_ns)}'
    if start_ns is not None and phase != "M":
        times = f',"ts":{_microseconds(start_ns - first_ns)}{times}'
    return f"{text[:-1]}{times}}}" if shown else f"{{{times[1:]}}}"


class _Numbers:
    """Numbers processes and threads; non-numeric names get numbers above all others."""

    def __init__(self) -> None:
        self._texts: dict[str, int] = {}

    def number(self, value: Any) -> int:
        """Return the number of a process or thread."""
        if isinstance(value, int):
            return value
        text = str(value)
        digits = text.removeprefix("-")
        if digits.isascii() and digits.isdigit() and len(digits) < len(str(1 << 62)):
            return int(text)
        return self._texts.setdefault(text, (1 << 31) + len(self._texts))


class _Ids:
    """Numbers the ids of flows and asynchronous events from 1 within each category."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[bool, str, str], int] = {}

    def number(self, key: tuple[bool, str, str]) -> int:
        """Return the number of an id, given whether it is of a flow, its category, and its text."""
        return self._numbers.setdefault(key, len(self._numbers) + 1)


class _Lanes:
    """Assigns additional tracks to slices that would partly overlap."""

    def __init__(self) -> None:
        self._threads: dict[int, int] = {}
        self._starts: dict[tuple[int, int, int], int] = {}
        self._of: dict[Track, list[int]] = defaultdict(list)
        self._named: dict[Track, str] = {}
        self._free = _FIRST_ADDED

    def place(self, track: Track, slices: list[_Slice]) -> None:
        """Place the slices of a track so that any two nest or are disjoint, on few tracks."""
        ends: list[list[int]] = [[]]
        kept_starts = set()
        for each in sorted(slices, key=lambda it: (it.start_ns, -it.end_ns, it.place)):
            lane = self._lane_of(ends, each)
            ends[lane].append(each.end_ns)
            if lane == 0:
                kept_starts.add(each.start_ns)
                continue
            of = self._of[track]
            if len(of) < lane:
                self._free += 1
                of.append(self._free)
            self._threads[each.place] = of[lane - 1]
            self._starts.setdefault((*track, each.start_ns), of[lane - 1])
        for start_ns in kept_starts:
            self._starts.pop((*track, start_ns), None)

    @staticmethod
    def _lane_of(ends: list[list[int]], each: _Slice) -> int:
        last = range(max(1, len(ends) - _MOST_TRIED), len(ends))
        for lane in chain([0], last):
            open_ends = ends[lane]
            while open_ends and open_ends[-1] <= each.start_ns:
                open_ends.pop()
            if not open_ends or open_ends[-1] >= each.end_ns:
                return lane
        ends.append([])
        return len(ends) - 1

    def thread_of(self, place: int, event: dict[str, Any], names: _Numbers) -> int | None:
        """Return the track that an event moves to; None if it stays."""
        phase = _phase(event)
        if phase == "X":
            return self._threads.get(place)
        if phase not in _FLOWS and phase != "M":
            return None
        track = (names.number(event.get("pid", 0)), names.number(event.get("tid", 0)))
        if phase == "M":
            if event.get("name") == "thread_name" and isinstance(event.get("args"), dict):
                self._named[track] = str(event["args"].get("name", ""))
            return None
        start_ns = _ns(event.get("ts"))
        return None if start_ns is None else self._starts.get((*track, start_ns))

    def named(self) -> Iterator[str]:
        """Yield the name events of the added tracks."""
        for track, threads in self._of.items():
            name = self._named.get(track, str(track[1]))
            for number, thread in enumerate(threads, start=2):
                args = {"name": f"{name} ({number})"}
                place = {"ph": "M", "name": "thread_name", "pid": track[0], "tid": thread}
                yield json.dumps(place | {"args": args}, separators=(",", ":"))


def _lanes(sound: Path, names: _Numbers) -> tuple[int, _Lanes]:
    """Find the start of the trace, in whole microseconds, and the slices that must move."""
    slices: dict[Track, list[_Slice]] = defaultdict(list)
    first_ns: int | None = None
    for place, event in enumerate(_events(sound, {})):
        start_ns, duration_ns = _ns(event.get("ts")), _ns(event.get("dur"))
        if start_ns is None or event.get("ph") == "M":
            continue
        first_ns = start_ns if first_ns is None else min(first_ns, start_ns)
        if event.get("ph") == "X" and duration_ns is not None:
            track = (names.number(event.get("pid", 0)), names.number(event.get("tid", 0)))
            slices[track].append(_Slice(start_ns, start_ns + max(duration_ns, 0), place))
    lanes = _Lanes()
    for track, of_track in slices.items():
        lanes.place(track, of_track)
    return (first_ns or 0) // _NS_PER_US * _NS_PER_US, lanes


def _phase(event: dict[str, Any]) -> str:
    """Return the phase of an event; empty if it is not a string."""
    phase = event.get("ph")
    return phase if isinstance(phase, str) else ""


def _integer(digits: str) -> int | Decimal:
    """Return an integer; as a Decimal if it has more digits than Python converts."""
    return int(digits) if len(digits) <= _MOST_DIGITS else Decimal(digits)


def _number(value: Decimal) -> float | str:
    """Return a number for JSON; as a string if a double cannot hold it."""
    number = float(value)
    return number if math.isfinite(number) else str(value)


def _ns(value: Any) -> int | None:
    """Return a timestamp in microseconds, a number or a string, in ns; None if invalid."""
    try:
        number: Decimal = Decimal(value.strip() if isinstance(value, str) else value)
        time_ns: int = round(number * _NS_PER_US)
    except (ArithmeticError, TypeError, ValueError):
        return None
    return time_ns


def _microseconds(time_ns: int) -> str:
    """Format nanoseconds as microseconds.

    Examples
    --------
    >>> _microseconds(1_500), _microseconds(-20), _microseconds(3_000)
    ('1.5', '-0.02', '3')
    """
    whole, rest = divmod(abs(time_ns), _NS_PER_US)
    digits = f"{whole}.{rest:03}".rstrip("0").rstrip(".")
    return f"-{digits}" if time_ns < 0 else digits


def _events(sound: Path, header: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the events of a valid document one by one, then set `header` to its other fields."""
    decoder = json.JSONDecoder(parse_float=Decimal, parse_int=_integer)
    with sound.open(encoding="utf-8", newline="") as file:
        text = file.read(_PIECE)
        at = text.index("[") + 1
        while True:
            found, text, at = _next(decoder, file, text, at)
            if found is None:
                break
            yield found
        text = text[at:] + file.read()
    rest = text.lstrip()[1:].lstrip().removeprefix(",")
    if rest.endswith("}\n"):
        header |= decoder.decode("{" + rest)


def _next(
    decoder: json.JSONDecoder, file: TextIO, text: str, at: int
) -> tuple[dict[str, Any] | None, str, int]:
    """Decode the next event, None at the end; also return the text and the position after it."""
    while True:
        while at < len(text) and text[at] in " \t\r\n,":
            at += 1
        if text[at : at + 1] == "]":
            return None, text, at
        try:
            found, end = decoder.raw_decode(text, at)
        except ValueError:
            found, end = None, len(text)
        if isinstance(found, dict) and end < len(text):
            return found, text, end
        more = file.read(max(_PIECE, len(text) - at))
        if not more:
            message = "the written trace is not valid JSON"
            raise AssertionError(message)
        text, at = text[at:] + more, 0
