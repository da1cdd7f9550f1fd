"""Builds the page of a report: the answers about traces."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from longpole.cli.answer.overview import overview
from longpole.cli.answer.pages import facts_of, known_limits, names_of
from longpole.cli.answer.serving import serving_blocks
from longpole.cli.answer.windows import caveats
from longpole.cli.check import check_answer
from longpole.cli.ranks import rank_sections
from longpole.cli.summary import time_blocks
from longpole.errors import LongpoleError
from longpole.plot.flame_lanes import HOW_TO_READ, TITLES, flame_lanes
from longpole.plot.lanes import lanes
from longpole.report.blocks import Chart, Column, Headline, Notes, Sentence, Table, Value, tabulated
from longpole.report.lanes import EventLinks
from longpole.report.paths import path_blocks
from longpole.report.sections import Page, Section, events_in
from longpole.tables.catalogue import PATH_TABLES, question, views_of
from longpole.tables.check import why_empty
from longpole.tables.questions import questions
from longpole.tables.summary import summary_of
from longpole.tables.table_blocks import answer_blocks
from longpole.tables.window_warnings import window_warnings
from longpole.words.wording import count, duration, operator_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from longpole.answer import Verdict
    from longpole.cli.ask.windows import Asked
    from longpole.engine.critical_path.path import CriticalPath
    from longpole.engine.windows import Window
    from longpole.remedies.sides import Side
    from longpole.report.blocks import Block
    from longpole.report.sections import Part
    from longpole.tables.summary import Summary
    from longpole.trace.trace import Trace

    Named = tuple[str, Trace]

_TOP: Final = 15
# Maximum rows of each table, for one trace and for several.
_MOST_ROWS: Final = 100
_MOST_ROWS_OF_SEVERAL: Final = 20
_MOST_TRACES: Final = 16
_RELEVANT: Final[dict[Side, tuple[str, ...]]] = {
    "kernels": ("kernels", "roofline"),
    "host": ("idle by host", "idle"),
    "communication": ("communication", "breakdown"),
    "copies": ("copies", "breakdown"),
    "waits": ("gaps",),
}
"""Tables with more detail about what limits a program."""
APART: Final = (
    "These traces are not ranks of one run, or share no collectives, so each is shown alone. "
    "`longpole diff BASE NEW --format html` compares two runs."
)
"""What a report of several traces says if nothing joins them."""
_REST: Final = (
    Column("trace", "name"),
    Column("rank", "number"),
    Column("window"),
    Column("length", "duration"),
    Column("verdict"),
)
# Maximum number of events with links.
_MOST: Final = 1_000
_COLUMNS: Final[dict[Column, Value]] = {
    Column("event", "row_of_event"): "event",
    Column("kind"): "kind",
    Column("name", "name"): "name",
    Column("from", "duration"): "from_ns",
    Column("duration", "duration"): "duration_ns",
    Column("where", "name"): "where",
    Column("launched by", "name"): "launched_by",
}


def report_page(traces: Sequence[Named], asked: Asked) -> Page:
    """Report on a trace, or on several: first together, then on each."""
    names, facts = names_of(traces), facts_of(traces)
    if len(traces) == 1:
        sections = [*_About(*traces[0], asked).sections(), known_limits()]
        return Page(f"longpole: {names[0]}", facts, sections)
    together, ranks = rank_sections(traces, step_name=asked.step_name)
    sections = [*together, _each(traces, names, ranks, asked), known_limits()]
    return Page(f"longpole: {count(len(traces), 'trace')}", facts, sections)


def _each(
    traces: Sequence[Named], names: Sequence[str], ranks: Sequence[int], asked: Asked
) -> Section:
    """Return a section for each trace, awaited ranks first, and a list of the others."""
    place = {trace.rank: number for number, (_, trace) in enumerate(traces)}
    order = [place[rank] for rank in ranks] or list(range(len(traces)))
    parts: list[Part] = [] if ranks else [Sentence(APART)]
    parts += [_folded(traces[at], names[at], at, asked) for at in order[:_MOST_TRACES]]
    rest = order[_MOST_TRACES:]
    if rest:
        rows = [(names[at], *_found(traces[at][1], asked)) for at in rest]
        left = f"{count(len(rest), 'more trace')}: `longpole report TRACE` shows one in full."
        parts += [Sentence(left), Table(_REST, rows)]
    return Section("traces", "Ranks" if ranks else "Traces", parts)


def _folded(named: Named, name: str, number: int, asked: Asked) -> Section:
    """Return the collapsed section of one of several traces."""
    path, trace = named
    key = f"trace-{number}"
    sections = list(_About(path, trace, asked, f"{key}-", _MOST_ROWS_OF_SEVERAL).sections())
    _, window, length_ns, found = _found(trace, asked)
    facts = [window, duration(length_ns)] if length_ns else []
    title, of = (name, []) if trace.rank is None else (f"Rank {trace.rank}", [name])
    return Section(key, title, sections, is_folded=True, note=", ".join([*of, *facts, found]))


def _found(trace: Trace, asked: Asked) -> tuple[int | None, str, int | None, str]:
    """Return the rank, the window, its length, and what limits it."""
    window = asked.window(trace)
    if window is None:
        return trace.rank, "", None, why_empty(trace)
    verdict = asked.of(trace).verdict
    what, _ = verdict.limited_by or (None, "")
    told = f"limited by {what}" if what else verdict.status.replace("_", " ")
    return trace.rank, window.name, window.duration_ns, told


@dataclass(frozen=True, slots=True)
class _About:
    """The part of the page about one trace."""

    path: str
    trace: Trace
    asked: Asked
    before: str = ""
    """Prefix of its section keys, if the page is about several traces."""
    most_rows: int = _MOST_ROWS

    def section(
        self,
        key: str,
        title: str,
        parts: Sequence[Part],
        *,
        is_folded: bool = False,
        note: str = "",
        is_open: bool = False,
    ) -> Section:
        """Create a section."""
        return Section(f"{self.before}{key}", title, parts, is_folded, note, is_open)

    def sections(self) -> list[Section]:
        """Return all sections, with links from the events they name."""
        window = self.asked.window(self.trace)
        found = summary_of(self.trace, self.asked.of(self.trace), _TOP)
        if window is None or found is None:
            why = why_empty(self.trace)
            told = Sentence(f"{why[0].upper()}{why[1:]}.")
            nothing = self.section("verdict", "Verdict", [told])
            return [nothing, self.diagnostics()]
        sections = list(self.of_window(window, found))
        return _linked(sections, self.trace, window, self.before)

    def of_window(self, window: Window, found: Summary) -> Iterator[Section]:
        """Yield the sections about a window, the answer first."""
        path = self.asked.as_recorded(self.trace).path
        yield self.verdict(window, found, path)
        yield self.timeline(window, path)
        yield self.section("path", "Critical path", self.path_parts(path))
        if found.serving is not None:
            yield self.section("serving", "Iterations", serving_blocks(found.serving))
        where = self.time(found)
        if where:
            yield self.section("time", "Where the time went", where)
        yield self.tables(window, found.verdict)
        yield from self.flame_graphs(window, path)
        yield self.diagnostics()

    def verdict(self, window: Window, found: Summary, path: CriticalPath) -> Section:
        """Show the answer: figures, where the time went, and what to change."""
        parts = overview(
            self.trace,
            found,
            path,
            answer=self.asked.of(self.trace),
            mfu=self.figures("roofline", window, by="type"),
            roofline=self.figures("roofline", window),
            memory=self.figures("memory"),
            prefix=self.before,
            step_name=self.asked.step_name,
        )
        warnings = window_warnings(self.trace, path, window.name, self.asked.data_load)
        parts = [*parts, *caveats(found.verdict, warnings)]
        return self.section("verdict", "Verdict", parts)

    def figures(self, name: str, window: Window | None = None, **options: str) -> Any:
        """Answer a question whose figure is shown on a tile; None if it cannot be answered."""
        try:
            return question(name)(self.trace, window, **options)
        except (LongpoleError, ValueError):
            return None

    def timeline(self, window: Window, path: CriticalPath) -> Section:
        """Draw what ran in the window; the longest names of the path are listed below."""
        drawn = lanes(self.trace, window, path)
        return self.section("timeline", "Timeline", [replace(drawn, longest=())] if drawn else [])

    def path_parts(self, path: CriticalPath) -> list[Part]:
        """Show the names on the path and its uncertainty; its kinds are in the verdict."""
        _, *blocks = path_blocks(path, _TOP)
        return [block for block in blocks if not isinstance(block, Chart)]

    def time(self, found: Summary) -> list[Part]:
        """Show where the time went."""
        return list(time_blocks(self.trace, found))

    def flame_graphs(self, window: Window, path: CriticalPath) -> Iterator[Section]:
        """Yield flame graphs of host and device time by code; the first is expanded."""
        drawn = {time: flame_lanes(self.trace, window, time, path) for time in TITLES}
        found = [(time, graph) for time, graph in drawn.items() if graph is not None]
        graphs = [
            self.section(f"flame-{time}", TITLES[time], [graph], is_folded=number > 0)
            for number, (time, graph) in enumerate(found)
        ]
        if graphs:
            yield self.section("flame", "Flame graphs", [Sentence(HOW_TO_READ), *graphs])

    def tables(self, window: Window, verdict: Verdict) -> Section:
        """Show the answer to every question; list those that the trace does not answer.

        Questions about what limits the program come first and are expanded.
        """
        relevant = [name for side in verdict.sides for name in _RELEVANT[side]]
        answers: list[Part] = []
        unanswered: dict[str, list[str]] = {}
        asked, views = questions(), _views()
        for title in dict.fromkeys([*relevant, *views]):
            name, by = views[title]
            blocks = self.answer(name, window, by)
            if all(isinstance(block, Sentence) for block in blocks):
                told = " ".join(block.text for block in blocks if isinstance(block, Sentence))
                unanswered.setdefault(told, []).append(title)
                continue
            key = f"question-{re.sub('[^a-z]', '-', title)}"
            is_open = title in relevant and not self.before
            section = self.section(
                key, title, blocks, is_folded=True, note=asked[name], is_open=is_open
            )
            answers.append(section)
        if unanswered:
            heading = "What this trace does not answer"
            reasons = [f"{', '.join(names)}: {told}" for told, names in unanswered.items()]
            answers.append(self.section("unanswered", heading, [Notes(reasons)], is_folded=True))
        return self.section("tables", "Tables", answers)

    def answer(self, name: str, window: Window, by: str | None) -> Sequence[Block]:
        """Answer a question; an error does not affect the other questions."""
        try:
            return answer_blocks(name, self.trace, window, by, most=self.most_rows)
        except (LongpoleError, ValueError) as error:
            return [Sentence(f"This question could not be answered: {error}.")]
        except Exception as error:  # noqa: BLE001 (a fault of one table is a note there)
            told = f"internal error (please report): {type(error).__name__}: {error}"
            return [Sentence(f"This question could not be answered: {told}.")]

    def diagnostics(self) -> Section:
        """List the problems of the trace."""
        cost = self.asked.of(self.trace).recording_cost
        document, _ = check_answer(self.path, self.trace, strict=False, cost=cost)
        blocks = [each for each in document.blocks() if not isinstance(each, Headline)]
        blocks = blocks or [Sentence("No problems found.")]
        return self.section("diagnostics", "Diagnostics", blocks)


def _views() -> dict[str, tuple[str, str | None]]:
    """Return each table and kind of rows by its title; the critical path has a section itself."""
    names = [name for name in questions() if name not in PATH_TABLES]
    return {
        f"{name} by {by}" if number else name: (name, by)
        for name in names
        for number, by in enumerate(views_of(name))
    }


def _linked(
    sections: Sequence[Section], trace: Trace, window: Window, prefix: str = ""
) -> list[Section]:
    """Link the events named in sections to a last section, which has a row for each.

    `prefix` is the prefix of the section keys.
    """
    named = dict.fromkeys(events_in(sections))
    events = [event for event in named if 0 <= event < trace.events.height]
    rows = _rows(trace, events[:_MOST], window)
    if not rows:
        return list(sections)
    links = EventLinks(prefix, frozenset(events[:_MOST]))
    parts: list[Part] = [tabulated(rows, _COLUMNS)]
    if len(events) > _MOST:
        parts.append(Notes([f"{count(len(events) - _MOST, 'more event')} not listed."]))
    note = "all events that this page names, with times from the start of the window"
    last = Section(f"{prefix}events", "Events", parts, is_folded=True, note=note)
    return [replace(section, links=links) for section in [*sections, last]]


def _rows(trace: Trace, events: Sequence[int], window: Window) -> list[dict[str, Any]]:
    """Return the known data of some events, in their order in the trace."""
    import polars as pl

    chosen = sorted(events)
    lanes = dict(trace.lanes.select("lane", "label").iter_rows())
    launched = trace.core.operators_of(chosen)
    columns = ("kind", "name", "start_ns", "duration_ns", "lane", "device", "stream")
    found = trace.events.select(pl.col(*columns).gather(chosen)).iter_rows(named=True)
    return [
        {
            "event": event,
            "kind": str(row["kind"]).replace("_", " "),
            "name": row["name"],
            "from_ns": None if row["start_ns"] is None else row["start_ns"] - window.start_ns,
            "duration_ns": row["duration_ns"],
            "where": _where(row, lanes),
            "launched_by": operator_name(*operator[1:]) if operator else None,
        }
        for event, row, operator in zip(chosen, found, launched, strict=True)
    ]


def _where(row: dict[str, Any], lanes: dict[int, str | None]) -> str | None:
    if row["stream"] is not None:
        return f"device {row['device']}, stream {row['stream']}"
    return lanes.get(row["lane"])
