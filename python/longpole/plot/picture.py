"""Draws swim lanes as an SVG picture: the critical path above the devices and threads."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Final
from xml.sax.saxutils import escape as xml_escape

from longpole.plot.draw import COLORS
from longpole.words.wording import duration, escape, short_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from longpole.report.lanes import Lane, Lanes

_WIDTH: Final = 900
_LEFT: Final = 180
_RIGHT: Final = 30
_TOP: Final = 44
_BAR: Final = 22
_LINE: Final = 30
_TICKS: Final = 5
_MOST_LANES: Final = 8
_LONGEST_LABEL: Final = 24
_LONGEST_TITLE: Final = 110
_LEAST: Final = 0.35
"""A bar narrower than this many pixels is merged with the previous one."""


def picture(drawn: Lanes, title: str) -> str:
    """Draw the critical path and one lane for each stream and thread, at most eight, as SVG.

    Of nested events, the outermost level with more than a few events is drawn.
    """
    rows = _chosen(drawn.rows)
    height = _TOP + _LINE * len(rows) + 56
    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" '
            f'width="{_WIDTH}" height="{height}" font-family="sans-serif" font-size="12">'
        ),
        f'<rect width="{_WIDTH}" height="{height}" fill="#ffffff"/>',
        f"<title>{_text(title)}</title>",
        (f'<text x="{_RIGHT}" y="24" font-size="14" fill="#222222">{_text(_fitted(title))}</text>'),
        *_axis(drawn.length_ns, len(rows)),
        *(part for at, row in enumerate(rows) for part in _lane(at, row, drawn)),
        *_legend(drawn, height - 14),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _fitted(title: str) -> str:
    """Shorten a title in the middle, so that the file and the time are kept."""
    if len(title) <= _LONGEST_TITLE:
        return title
    half = (_LONGEST_TITLE - 1) // 2
    return f"{title[:half]}…{title[-half:]}"


def _color(name: str) -> str:
    return COLORS.get(name, COLORS["bar"])


def _text(text: str) -> str:
    return xml_escape(escape(text))


def _chosen(rows: Sequence[Lane]) -> list[Lane]:
    """Return a lane for each label: the outermost one with more than a few events."""
    chosen: list[Lane] = []
    starts = [at for at, row in enumerate(rows) if not row["is_inner"]]
    for first, after in zip(starts, [*starts[1:], len(rows)], strict=True):
        levels = rows[first:after]
        telling = (row for row in levels if len(row["starts"]) > _TICKS)
        chosen.append({**next(telling, levels[0]), "label": levels[0]["label"]})
    return chosen[:_MOST_LANES]


def _axis(length_ns: int, n_lanes: int) -> Iterator[str]:
    bottom = _TOP + _LINE * n_lanes
    for tick in range(_TICKS + 1):
        x = _LEFT + (_WIDTH - _LEFT - _RIGHT) * tick / _TICKS
        told = duration(length_ns * tick // _TICKS) if tick else "0"
        yield f'<path d="M{x:.0f} {_TOP - 6}V{bottom}" stroke="#e4e4e4"/>'
        yield (
            f'<text x="{x:.0f}" y="{bottom + 14}" fill="#666666" text-anchor="middle">'
            f"{_text(told)}</text>"
        )


def _lane(at: int, row: Lane, drawn: Lanes) -> Iterator[str]:
    y = _TOP + _LINE * at
    label = _text(short_name(row["label"], _LONGEST_LABEL))
    yield f'<text x="{_LEFT - 10}" y="{y + 16}" fill="#222222" text-anchor="end">{label}</text>'
    for color, bars in groupby(sorted(_bars(row, drawn)), key=lambda bar: bar[0]):
        path = "".join(
            f"M{_LEFT + begin:.1f} {y}h{(width := max(end - begin, _LEAST)):.1f}"
            f"v{_BAR}h-{width:.1f}z"
            for _, begin, end in bars
        )
        yield f'<path fill="{_color(color)}" d="{path}"/>'


def _bars(row: Lane, drawn: Lanes) -> list[tuple[str, float, float]]:
    """Return the bars of a lane: colour, start and end in pixels."""
    scale = (_WIDTH - _LEFT - _RIGHT) / max(drawn.length_ns, 1)
    bars: list[tuple[str, float, float]] = []
    start = 0
    for step, length, kind in zip(row["starts"], row["lengths"], row["kinds"], strict=True):
        start += step
        color, begin, end = drawn.colors[kind], start * scale, (start + length) * scale
        if bars and begin - bars[-1][2] < _LEAST and (bars[-1][0] == color or end - begin < _LEAST):
            bars[-1] = (bars[-1][0], bars[-1][1], max(end, bars[-1][2]))
        else:
            bars.append((color, begin, end))
    return bars


def _legend(drawn: Lanes, y: int) -> Iterator[str]:
    x = _RIGHT
    for color, words in drawn.legend:
        yield f'<rect x="{x}" y="{y - 10}" width="11" height="11" fill="{_color(color)}"/>'
        yield f'<text x="{x + 16}" y="{y}" fill="#444444">{_text(words)}</text>'
        x += 36 + 7 * len(words)
