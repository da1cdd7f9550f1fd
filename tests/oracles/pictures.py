"""Draw the picture of README.md: the critical path of a recording, above what ran meanwhile."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final
from xml.sax.saxutils import escape

import longpole
from longpole.plot.draw import _COLORS
from longpole.plot.lanes import lanes
from longpole.wording import duration

if TYPE_CHECKING:
    from collections.abc import Iterator

    from longpole.report.lanes import Lane, Lanes

__all__ = ["path_picture"]

_RECORDING: Final = Path(__file__).parents[1] / "recordings/decode.before.json.gz"
_WIDTH: Final = 900
_LEFT: Final = 150
_TOP: Final = 44
_BAR: Final = 22
_LINE: Final = 30
_TICKS: Final = 5
_N_LANES: Final = 3
_LABELS: Final = ("critical path", "GPU, stream 7", "host, main thread")
_LEAST: Final = 0.35
"""A bar narrower than this many pixels is drawn as part of the one before."""


def path_picture() -> str:
    """Draw the critical path of a step, the GPU and the operators on the host, as SVG."""
    trace = longpole.read_trace(_RECORDING)
    window = longpole.choose_window(trace)
    assert window is not None
    path = trace.critical_path(between=(window.start_ns, window.end_ns))
    drawn = lanes(trace, window, path)
    assert drawn is not None
    host = next(row for row in drawn.rows[2:] if len(row["starts"]) > _TICKS)
    rows = [*drawn.rows[: _N_LANES - 1], host]
    height = _TOP + _LINE * _N_LANES + 56
    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" '
            f'width="{_WIDTH}" height="{height}" font-family="sans-serif" font-size="12">'
        ),
        f'<rect width="{_WIDTH}" height="{height}" fill="#ffffff"/>',
        (
            f'<text x="{_LEFT}" y="24" font-size="14" fill="#222222">One step of a decoding loop, '
            f"{duration(drawn.length_ns)}: host and GPU take turns</text>"
        ),
        *_axis(drawn.length_ns),
        *(part for at, row in enumerate(rows) for part in _lane(at, row, drawn)),
        *_legend(drawn, height - 14),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _axis(length_ns: int) -> Iterator[str]:
    bottom = _TOP + _LINE * _N_LANES
    for tick in range(_TICKS + 1):
        x = _LEFT + (_WIDTH - _LEFT - 30) * tick / _TICKS
        shown = duration(length_ns * tick // _TICKS) if tick else "0"
        yield f'<path d="M{x:.0f} {_TOP - 6}V{bottom}" stroke="#e4e4e4"/>'
        yield (
            f'<text x="{x:.0f}" y="{bottom + 14}" fill="#666666" text-anchor="middle">'
            f"{escape(shown)}</text>"
        )


def _lane(at: int, row: Lane, drawn: Lanes) -> Iterator[str]:
    y = _TOP + _LINE * at
    yield (
        f'<text x="{_LEFT - 10}" y="{y + 16}" fill="#222222" text-anchor="end">{_LABELS[at]}</text>'
    )
    for color, path in _bars(row, drawn, y).items():
        yield f'<path fill="{_COLORS[color]}" d="{path}"/>'


def _bars(row: Lane, drawn: Lanes, y: int) -> dict[str, str]:
    """Return the bars of a lane by colour, as one path each."""
    scale = (_WIDTH - _LEFT - 30) / drawn.length_ns
    bars: list[tuple[str, float, float]] = []
    start = 0
    for step, length, kind in zip(row["starts"], row["lengths"], row["kinds"], strict=True):
        start += step
        color, begin, end = drawn.colors[kind], start * scale, (start + length) * scale
        if bars and begin - bars[-1][2] < _LEAST and (bars[-1][0] == color or end - begin < _LEAST):
            bars[-1] = (bars[-1][0], bars[-1][1], max(end, bars[-1][2]))
        else:
            bars.append((color, begin, end))
    paths: dict[str, str] = {}
    for color, begin, end in bars:
        width = max(end - begin, _LEAST)
        paths[color] = (
            paths.get(color, "") + f"M{_LEFT + begin:.1f} {y}h{width:.1f}v{_BAR}h-{width:.1f}z"
        )
    return paths


def _legend(drawn: Lanes, y: int) -> Iterator[str]:
    x = _LEFT
    for color, words in drawn.legend:
        if color == "annotation":
            continue
        yield f'<rect x="{x}" y="{y - 10}" width="11" height="11" fill="{_COLORS[color]}"/>'
        yield f'<text x="{x + 16}" y="{y}" fill="#444444">{escape(words)}</text>'
        x += 36 + 7 * len(words)
