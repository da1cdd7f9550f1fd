"""Writes a report as one page that opens offline: sections of blocks and swim lanes.

Everything is inlined, and the page may load nothing: its content security policy identifies the one
script by its digest. Texts from traces are in escaped HTML or in JSON whose `<` is escaped, so that
no name can become markup or script.
"""

from __future__ import annotations

import base64
import hashlib
import json
from html import escape as escape_html
from importlib.resources import files
from typing import TYPE_CHECKING, Final

from longpole.report.html import html, inert
from longpole.report.lanes import Lanes
from longpole.report.overview import Columns, Intervals, Stack, Tiles
from longpole.report.overview_html import overview_html
from longpole.report.sections import Section

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longpole.report.lanes import EventLinks
    from longpole.report.sections import Page, Part

_PAGE: Final = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>{title}</title>
<style>
{css}
</style>
</head>
<body>
<header>
<h1>{title}</h1>
{facts}
<noscript><p>Timelines, flame graphs and the search need JavaScript.</p></noscript>
</header>
{nav}
<main>
{sections}
</main>
<script>{script}</script>
</body>
</html>
"""

_NAV: Final = """<nav aria-label="Sections">{links}<span id="search" hidden>
<input type="search" placeholder="Search the tables" aria-label="Search the tables">
<button type="button" id="unfold">Unfold all</button>
</span><div id="found" aria-live="polite" hidden></div></nav>"""

_LANES: Final = """<div class="panel">
<p class="dim">{label}</p>
<p class="legend" aria-hidden="true">{legend}</p>
<div class="lanes"><canvas tabindex="0" role="img" aria-label="{label}"></canvas>
<div class="tip" hidden></div>
<script type="application/json">{data}</script></div>
<div class="tools">{buttons}</div>
<p class="told dim" aria-live="polite">{hint}</p>
{longest}{notes}</div>"""

_WALK: Final = (("previous", "Previous segment"), ("next", "Next segment"))
_MOVE: Final = (
    ("in", "+"),
    ("out", "&minus;"),
    ("left", "&larr;"),
    ("right", "&rarr;"),
    ("all", "Show all"),
)
_HINT: Final = "Drag to move; Ctrl and the wheel, a double click, or + and - to zoom; 0 shows all."
_HINT_OF_PATH: Final = f"{_HINT} n and p walk along the critical path."
_HINT_OF_FLAME: Final = f"Click a frame to zoom to it. {_HINT}"


def page_text(page: Page) -> str:
    """Return a report as HTML.

    Examples
    --------
    >>> from longpole.report.blocks import Sentence
    >>> from longpole.report.sections import Page, Section
    >>> text = page_text(Page("<b>", [], [Section("one", "One", [Sentence("a < b")])]))
    >>> "<p>a &lt; b</p>" in text, "<title>&lt;b&gt;</title>" in text
    (True, True)
    """
    script = _asset("page.js")
    return _PAGE.format(
        policy=_policy(script),
        title=inert(page.title),
        css=_asset("page.css"),
        facts="\n".join([*(f"<p>{inert(fact)}</p>" for fact in page.facts), *_links(page)]),
        nav=_nav(page.sections),
        sections="\n".join(_section(section, 2) for section in page.sections),
        script=script,
    )


def _policy(script: str) -> str:
    """Return a policy that allows this script and the style of the page, and no other source."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )


def _links(page: Page) -> list[str]:
    """Write links to pages outside the report."""
    attributes = 'rel="noreferrer noopener" target="_blank"'
    return [
        f'<p><a href="{escape_html(address)}" {attributes}>{inert(words)}</a></p>'
        for words, address in page.links
    ]


def _nav(sections: Sequence[Section]) -> str:
    named = [section for section in sections if section.title]
    links = [f'<a href="#{section.key}">{inert(section.title)}</a>' for section in named]
    return _NAV.format(links="".join(links)) if links else ""


def _section(section: Section, level: int, links: EventLinks | None = None) -> str:
    """Write a section and its subsections: collapsed, below a title, or without a title."""
    within = level if section.is_folded else level + 1
    links = section.links or links
    body = "\n".join(_part(part, within, links) for part in section.parts)
    title = inert(section.title)
    if section.is_folded:
        note = f' <span class="dim">{inert(section.note)}</span>' if section.note else ""
        is_open = " open" if section.is_open else ""
        body = f"<details{is_open}><summary>{title}{note}</summary>\n{body}\n</details>"
    elif title:
        body = f"<h{level}>{title}</h{level}>\n{body}"
    return f'<section id="{section.key}">{body}</section>'


def _part(part: Part, level: int, links: EventLinks | None) -> str:
    match part:
        case Section():
            return _section(part, level, links)
        case Lanes():
            return _lanes(part)
        case Tiles() | Stack() | Columns() | Intervals():
            return overview_html(part, links)
        case _:
            return html([part], links)


def _lanes(lanes: Lanes) -> str:
    """Write the data that the script draws on a canvas, with the buttons to zoom and move it."""
    colors = (
        f'<span><i style="background: var(--{color})"></i>{inert(words)}</span>'
        for color, words in lanes.legend
    )
    buttons = (*_WALK, *_MOVE) if lanes.has_path else _MOVE
    names = ("length_ns", "names", "kinds", "colors", "rows", "is_flame")
    hint = _HINT_OF_PATH if lanes.has_path else _HINT_OF_FLAME if lanes.is_flame else _HINT
    return _LANES.format(
        label=inert(lanes.label),
        legend="".join(colors),
        data=_json({name: getattr(lanes, name) for name in names}),
        buttons="".join(
            f'<button type="button" data-do="{do}">{text}</button>' for do, text in buttons
        ),
        hint=inert(hint),
        longest=_longest(lanes),
        notes="".join(f'<p class="dim">{inert(note)}</p>' for note in lanes.notes),
    )


def _longest(lanes: Lanes) -> str:
    items = "".join(
        f'<li><button type="button" data-row="{each.row}" data-segment="{each.place}">'
        f"{inert(each.words)}</button></li>"
        for each in lanes.longest
    )
    title = "The critical path by name, with the longest segment of each"
    return f'<p class="dim">{title}:</p><ol class="longest">{items}</ol>' if items else ""


def _json(value: object) -> str:
    """Write data for the script so that no string in it can end the element."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c")


def _asset(name: str) -> str:
    return files("longpole.report").joinpath("assets", name).read_text(encoding="utf-8")
