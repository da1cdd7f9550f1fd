"""Writes tiles, stacked bars, columns and intervals of gains as HTML."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.report.html import inert, prose
from longpole.report.overview import Columns, Intervals, Stack, Tiles
from longpole.words.wording import share

if TYPE_CHECKING:
    from longpole.report.blocks import Bar
    from longpole.report.lanes import EventLinks
    from longpole.report.overview import Interval, Tile

# With more columns, there is no space for the length of each below it.
_MOST_WITH_AMOUNTS: Final = 8

# If a part is smaller in every column, only its tooltip has its name.
_LEAST_NAMED: Final = 0.01

# In a narrower part of a bar, there is no space for its number.
_NARROWEST: Final = 0.015
_AXIS: Final = (
    "Share of the time that each change saves, from 0 to 100 %: solid is the least, hatched up to "
    "the most. Gains overlap and do not add up."
)


def overview_html(part: Tiles | Stack | Columns | Intervals, links: EventLinks | None) -> str:
    """Write a part of the overview."""
    match part:
        case Tiles():
            return _tiles(part)
        case Stack():
            return _stack(part)
        case Columns():
            return _columns(part)
        case Intervals():
            return _intervals(part, links)


def _tiles(tiles: Tiles) -> str:
    """Write tiles as a list."""
    return f'<ul class="tiles">{"".join(map(_tile, tiles.tiles))}</ul>'


def _tile(tile: Tile) -> str:
    notes = "".join(f'<span class="dim">{inert(note)}</span>' for note in tile.notes)
    return (
        f'<li><span class="label">{inert(tile.label)}</span>'
        f"<strong>{inert(tile.value)}</strong>{notes}</li>"
    )


def _stack(stack: Stack) -> str:
    """Write a bar, then its parts with numbers, so that it can be read without its colours."""
    parts = "".join(_part(number, bar) for number, bar in enumerate(stack.bars, 1))
    keys = "".join(map(_key, stack.bars))
    return (
        f'<div class="stack"><p>{inert(stack.label)}</p>'
        f'<div class="whole" aria-hidden="true" style="--length: {stack.length:.4f}">{parts}</div>'
        f'<ol class="key">{keys}</ol></div>'
    )


def _part(number: int, bar: Bar) -> str:
    words = (
        f"<strong>{number}</strong> {inert(_short(bar))} {inert(bar.amount)}"
        if bar.share >= _NARROWEST
        else ""
    )
    return (
        f'<span style="{_style(bar)}; --share: {bar.share:.5f}" '
        f'title="{inert(f"{bar.label}: {bar.amount}, {share(bar.share)}")}">{words}</span>'
    )


def _key(bar: Bar) -> str:
    return (
        f'<li><i style="{_style(bar)}"></i>{inert(bar.label)} '
        f"<span><strong>{inert(share(bar.share))}</strong> {inert(bar.amount)}</span></li>"
    )


def _columns(columns: Columns) -> str:
    """Write columns as a list, followed by a legend of the colours of their parts."""
    has_amounts = len(columns.columns) <= _MOST_WITH_AMOUNTS
    items = "".join(
        _column(column, is_chosen=column.label == columns.chosen, has_amount=has_amounts)
        for column in columns.columns
    )
    bars = [bar for column in columns.columns for bar in column.bars]
    parts = {_short(bar): bar for bar in bars if bar.share >= _LEAST_NAMED}
    keys = "".join(
        f'<li><i style="{_style(bar)}"></i>{inert(words)}</li>' for words, bar in parts.items()
    )
    notes = "".join(f'<p class="dim">{inert(note)}</p>' for note in columns.notes)
    return (
        f'<div class="stack"><p>{inert(columns.label)}</p><ol class="columns">{items}</ol>'
        f'<ul class="key">{keys}</ul>{notes}</div>'
    )


def _column(column: Stack, *, is_chosen: bool, has_amount: bool) -> str:
    parts = "".join(
        f'<i style="{_style(bar)}; --share: {bar.share:.5f}"></i>' for bar in column.bars
    )
    shares = ", ".join(f"{_short(bar)} {share(bar.share)}" for bar in column.bars)
    words = inert(f"{column.label}, {column.amount}: {shares}")
    tag = "strong" if is_chosen else "span"
    amount = f'<span class="dim">{inert(column.amount)}</span>' if has_amount else ""
    return (
        f'<li title="{words}"><div style="--length: {column.length:.4f}" role="img" '
        f'aria-label="{words}">{parts}</div><{tag}>{inert(column.label)}</{tag}>{amount}</li>'
    )


def _short(bar: Bar) -> str:
    """Return the meaning of a part without the remark in brackets."""
    return bar.label.partition(" (")[0]


def _style(bar: Bar) -> str:
    return f"--color: var(--{bar.color})"


def _intervals(intervals: Intervals, links: EventLinks | None) -> str:
    """Write gains as a list, each with a bar that links to the event that is the best example."""
    rows = "".join(_interval(row, links) for row in intervals.rows)
    return f'<ol class="gains">{rows}</ol><p class="dim">{_AXIS}</p>'


def _interval(row: Interval, links: EventLinks | None) -> str:
    low, high = (min(max(gain, 0.0), 1.0) for gain in (row.low, row.high))
    style = f"--low: {low:.4f}; --high: {high:.4f}"
    is_shown = links is not None and row.event in links.events
    title = ' title="Show it in the timeline"' if is_shown else ""
    bar = f'<span class="range" style="{style}"{title}></span>'
    place = ""
    if links and row.event is not None and is_shown:
        bar = (
            links.link(row.event, bar)
            if row.time_range is None
            else _shown(row.time_range, bar, links)
        )
        place = f" {links.link(row.event, f'event {row.event}')}"
    return (
        f'<li><span class="what">{prose(row.text, links)}</span>{bar}'
        f'<span class="saves"><strong>{inert(row.words)}</strong>{place}</span></li>'
    )


def _shown(time_range: tuple[int, int], words: str, links: EventLinks) -> str:
    """Return HTML text as a link to a part of the timeline."""
    start_ns, length_ns = time_range
    place = f'href="#{links.prefix}timeline" data-from="{start_ns}" data-length="{length_ns}"'
    return f"<a {place}>{words}</a>"
