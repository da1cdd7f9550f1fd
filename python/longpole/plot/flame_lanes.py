"""Draws a flame graph as lanes: each frame is below its caller, as wide as its time."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from longpole.formats.convert.flame import frames
from longpole.plot.layout import Layout, not_drawn
from longpole.words.wording import duration, share, short_name

if TYPE_CHECKING:
    from collections.abc import Iterable

    from longpole.engine.critical_path.path import CriticalPath
    from longpole.engine.windows import Window
    from longpole.formats.convert.flame import Frame, Time
    from longpole.plot.layout import Span
    from longpole.report.lanes import Lanes
    from longpole.trace.trace import Trace

TITLES: Final[dict[Time, str]] = {
    "path": "Critical path by the code on it",
    "device": "GPU time by the code that launched it",
    "host": "Host time by what ran on the threads",
}
"""Title of each flame graph, by the time that it shows."""

HOW_TO_READ: Final = (
    "A frame stands below its caller and is as wide as its time. Frames that take nearly all of "
    "their caller's time share its box, which names the innermost first."
)

# A frame that is narrower than this fraction of the graph is not drawn.
_NARROWEST: Final = 1 / 1_000
_ALMOST_ALL: Final = 0.95
_MOST_ROWS: Final = 40
_WIDEST: Final = 60
_MOST_TOLD: Final = 3


@dataclass(slots=True)
class _Frame:
    name: str
    start_ns: int
    length_ns: int = 0
    callees: list[_Frame] = field(default_factory=list)


def flame_lanes(
    trace: Trace, window: Window, time: Time, path: CriticalPath | None = None
) -> Lanes | None:
    """Lay out the flame graph of a window; None if the window has no time of this kind.

    `path` is the critical path of the window, if already known.
    """
    root = _tree(frames(trace, window, time=time, path=path))
    if not root.length_ns:
        return None
    rows, n_left_out = _rows(root, time)
    layout = Layout()
    for number, row in enumerate(rows):
        layout.add("", row, is_inner=number > 0)
    label = f"{TITLES[time]}: {duration(root.length_ns)} in {window.name}."
    why = f"narrower than {share(_NARROWEST)} of the graph or below {_MOST_ROWS} others"
    notes = not_drawn(n_left_out, "frame", why)
    return layout.lanes(label, root.length_ns, notes=notes, is_flame=True)


def _tree(found: Iterable[Frame]) -> _Frame:
    """Build a tree from frames, each of which follows its caller."""
    root = _Frame("", 0)
    opened = [root]
    now_ns = 0
    for depth, name, ns in (*found, (0, "", 0)):
        for frame in opened[depth + 1 :]:
            frame.length_ns = now_ns - frame.start_ns
        frame = _Frame(name, now_ns)
        opened[depth].callees.append(frame)
        opened[depth + 1 :] = [frame]
        now_ns += ns
    root.length_ns = now_ns
    return root


def _rows(root: _Frame, time: Time) -> tuple[list[list[Span]], int]:
    """Assign frames to rows by their depth; count those that are too narrow or too deep."""
    rows: list[list[Span]] = []
    n_left_out = 0
    pending = [(frame, 0) for frame in root.callees]
    least_ns = root.length_ns * _NARROWEST
    while pending:
        frame, depth = pending.pop()
        if frame.length_ns < least_ns or depth >= _MOST_ROWS:
            n_left_out += frame.length_ns > 0
            continue
        chain = _chain(frame)
        kind = _kind(chain[-1], time)
        rows += [[] for _ in range(depth + 1 - len(rows))]
        rows[depth].append((frame.start_ns, frame.length_ns, kind, _name(chain, time)))
        pending += [(callee, depth + 1) for callee in chain[-1].callees]
    return [sorted(row) for row in rows], n_left_out


def _chain(frame: _Frame) -> list[_Frame]:
    """Follow the callees that take nearly all of the time of their caller."""
    chain = [frame]
    while callees := chain[-1].callees:
        largest = max(callees, key=lambda callee: callee.length_ns)
        if largest.length_ns < _ALMOST_ALL * frame.length_ns:
            break
        chain.append(largest)
    return chain


def _name(chain: list[_Frame], time: Time) -> str:
    """Return the names of the frames in one box, innermost first; path kinds show as colours."""
    is_segment = time == "path" and not chain[-1].callees
    frames = chain[:-1] if is_segment and len(chain) > 1 else chain
    names = [short_name(frame.name, _WIDEST) for frame in reversed(frames)]
    if len(names) > _MOST_TOLD:
        names = [*names[: _MOST_TOLD - 1], "…", names[-1]]
    return " ← ".join(names)


def _kind(frame: _Frame, time: Time) -> str:
    """Return the kind of a frame, which determines its colour; `frame` if it has callees."""
    if frame.callees or time == "host":
        return "frame"
    return "kernel" if time == "device" else frame.name.strip("[]").replace("_", " ")
