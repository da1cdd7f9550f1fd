"""A report as one page that opens offline: sections of blocks, swim lanes and figures.

Everything is inlined, and the page may load nothing: its content security policy names the two
scripts it holds by their digests. Texts from traces stand in escaped HTML or in JSON whose `<`
is escaped, so that no name can become markup or script.
"""

from __future__ import annotations

import base64
import hashlib
import json
from dataclasses import dataclass, field
from html import escape as escape_html
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final, Union

from longpole.report.html import html
from longpole.wording import escape

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from longpole.report.blocks import Block

__all__ = ["Figure", "Lanes", "Page", "Part", "Section", "page_text"]

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
</header>
<nav aria-label="Sections">{links}</nav>
<main>
{sections}
</main>
{data}
{scripts}
</body>
</html>
"""

_LANES: Final = """<div>
<p class="legend" aria-hidden="true">{legend}</p>
<div class="tools">
<button type="button" data-do="previous">Previous segment</button>
<button type="button" data-do="next">Next segment</button>
<button type="button" data-do="in" aria-label="Zoom in">+</button>
<button type="button" data-do="out" aria-label="Zoom out">&minus;</button>
<button type="button" data-do="left" aria-label="Earlier">&larr;</button>
<button type="button" data-do="right" aria-label="Later">&rarr;</button>
<button type="button" data-do="all">Whole window</button>
</div>
<div class="lanes" data-from="{key}">
<canvas tabindex="0" role="img" aria-label="{label}"></canvas>
<div class="tip" hidden></div>
</div>
<p class="told dim" aria-live="polite">{hint}</p>
{longest}
</div>"""

_FIGURE_HEIGHT: Final = 340

_HINT: Final = (
    "Drag to move, Ctrl and the wheel or a double click to zoom; by keyboard: arrows, +, -, 0, "
    "n and p for the next and the previous segment of the path."
)


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure of plotly, as plain values."""

    data: Sequence[Mapping[str, Any]]
    layout: Mapping[str, Any]
    label: str


@dataclass(frozen=True, slots=True)
class Lanes:
    """Swim lanes of one window: what ran where, the critical path first."""

    length_ns: int
    names: Sequence[str]
    kinds: Sequence[str]
    colors: Mapping[str, str]
    """The colour of each kind, as the style sheet names it."""
    rows: Sequence[Mapping[str, Any]]
    """`label`, `is_inner`, `starts` (each from the one before), `lengths`, `names`, `kinds`."""
    label: str
    longest: Sequence[tuple[int, str]] = ()
    """Segments of the path to show at a click: place in the first row, and words."""

    @property
    def legend(self) -> list[tuple[str, str]]:
        """Give each colour once, with what it stands for."""
        told: dict[str, list[str]] = {}
        for kind in self.kinds:
            told.setdefault(self.colors.get(kind, "annotation"), []).append(kind)
        return [(color, ", ".join(kinds)) for color, kinds in told.items()]


Part = Union["Block", Figure, Lanes]
"""What a section consists of."""


@dataclass(frozen=True, slots=True)
class Section:
    """One question and its answer."""

    key: str
    """Names the section in links; letters, digits and dashes."""
    title: str
    parts: Sequence[Part]
    is_folded: bool = False
    """Whether it is shown by its title until it is opened."""
    short: str | None = None
    """What links to it say; by default the title."""


@dataclass(frozen=True, slots=True)
class Page:
    """A whole report."""

    title: str
    facts: Sequence[str]
    sections: Sequence[Section]
    plotly: str | None = None
    """The script of plotly; figures are left out without it."""
    links: Sequence[tuple[str, str]] = ()
    """Words and addresses, below the facts."""
    data: dict[str, str] = field(default_factory=dict)


def page_text(page: Page) -> str:
    """Write a report.

    Examples
    --------
    >>> from longpole.report.blocks import Sentence
    >>> text = page_text(Page("<b>", [], [Section("one", "One", [Sentence("a < b")])]))
    >>> "<p>a &lt; b</p>" in text, "<title>&lt;b&gt;</title>" in text
    (True, True)
    """
    has_figures = any(isinstance(part, Figure) for each in page.sections for part in each.parts)
    plotly = [page.plotly] if page.plotly is not None and has_figures else []
    scripts = [*plotly, _asset("page.js")]
    shown = [section for section in page.sections if _has_parts(page, section)]
    sections = "\n".join(_section(page, section) for section in shown)
    data = "\n".join(
        f'<script type="application/json" id="{key}">{text}</script>'
        for key, text in page.data.items()
    )
    return _PAGE.format(
        policy=_policy(scripts),
        title=_inert(page.title),
        css=_asset("page.css"),
        facts="\n".join([*(f"<p>{_inert(fact)}</p>" for fact in page.facts), *_outside(page)]),
        links="".join(map(_link, shown)),
        sections=sections,
        data=data,
        scripts="\n".join(f"<script>{script}</script>" for script in scripts),
    )


def _outside(page: Page) -> Iterable[str]:
    for words, address in page.links:
        attributes = f'href="{escape_html(address)}" rel="noreferrer noopener" target="_blank"'
        yield f"<p><a {attributes}>{_inert(words)}</a></p>"


def _link(section: Section) -> str:
    return f'<a href="#{section.key}">{_inert(section.short or section.title)}</a>'


def _policy(scripts: Iterable[str]) -> str:
    """Allow these scripts and the style of the page, and nothing from anywhere."""
    digests = (hashlib.sha256(script.encode()).digest() for script in scripts)
    allowed = " ".join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )


def _has_parts(page: Page, section: Section) -> bool:
    """Tell whether anything of a section is shown: figures need plotly."""
    return page.plotly is not None or any(not isinstance(part, Figure) for part in section.parts)


def _section(page: Page, section: Section) -> str:
    body = "\n".join(_parts(page, section))
    if section.is_folded:
        body = f"<details><summary>{_inert(section.title)}</summary>\n{body}\n</details>"
        return f'<section id="{section.key}" class="folded">{body}</section>'
    return f'<section id="{section.key}">\n<h2>{_inert(section.title)}</h2>\n{body}\n</section>'


def _parts(page: Page, section: Section) -> Iterable[str]:
    for part in section.parts:
        if isinstance(part, Lanes):
            yield _lanes(page, section, part)
        elif isinstance(part, Figure):
            if page.plotly is not None:
                yield _figure(page, section, part)
        else:
            yield html([part])


def _lanes(page: Page, section: Section, lanes: Lanes) -> str:
    key = _kept(
        page,
        section,
        {
            "length_ns": lanes.length_ns,
            "names": lanes.names,
            "kinds": lanes.kinds,
            "colors": lanes.colors,
            "rows": lanes.rows,
        },
    )
    legend = "".join(
        f'<span><i style="background: var(--{color})"></i>{_inert(told)}</span>'
        for color, told in lanes.legend
    )
    buttons = "".join(
        f'<button type="button" data-lanes="{key}" data-segment="{at}">{_inert(told)}</button>'
        for at, told in lanes.longest
    )
    longest = f'<div class="tools"><span>Longest segments:</span>{buttons}</div>'
    return _LANES.format(
        legend=legend,
        key=key,
        label=_inert(lanes.label),
        hint=_inert(_HINT),
        longest=longest if buttons else "",
    )


def _figure(page: Page, section: Section, figure: Figure) -> str:
    key = _kept(page, section, {"data": figure.data, "layout": figure.layout})
    label = _inert(figure.label)
    height = figure.layout.get("height", _FIGURE_HEIGHT)
    style = f'style="height: {height}px"'
    return f'<div class="figure" {style} role="img" aria-label="{label}" data-from="{key}"></div>'


def _kept(page: Page, section: Section, value: object) -> str:
    """Keep data for the scripts; give its name."""
    key = f"{section.key}-data-{len(page.data)}"
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    page.data[key] = text.replace("<", "\\u003c").replace("\u2028", "\\u2028")
    return key


def _asset(name: str) -> str:
    return files("longpole.report").joinpath("assets", name).read_text(encoding="utf-8")


def _inert(text: str) -> str:
    return escape_html(escape(text))
