"""A report: the results about traces, as the sections of one page."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from longpole.analyses.questions import answer_blocks, question, questions
from longpole.analyses.summary import summary
from longpole.cli.answer import exit_codes
from longpole.cli.answer.check import check_answer
from longpole.cli.answer.diff_sections import diff_sections
from longpole.cli.answer.facts import facts_of, names_of
from longpole.cli.answer.named_events import linked
from longpole.cli.answer.overview import overview
from longpole.cli.answer.rank_sections import rank_sections
from longpole.cli.answer.summary import time_blocks
from longpole.critical_path.explain import path_blocks
from longpole.data import Row
from longpole.errors import LongpoleError
from longpole.plot.flame_lanes import HOW_TO_READ, TITLES, flame_lanes
from longpole.plot.lanes import lanes
from longpole.report.blocks import Chart, Column, Headline, Notes, Sentence, Table
from longpole.report.document import Document
from longpole.report.sections import Page, Section
from longpole.windows import choose_window
from longpole.wording import count, duration

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from longpole.analyses.summary import Summary
    from longpole.cli.answer.emit import Answer
    from longpole.critical_path.path import CriticalPath
    from longpole.remedies.parts import Side
    from longpole.report.blocks import Block
    from longpole.report.sections import Part
    from longpole.trace import Trace
    from longpole.verdict import Verdict
    from longpole.windows import Window

    Named = tuple[str, Trace]

__all__ = ["LIMITS", "REPORT", "Choice", "diff_page", "report_page", "written"]

REPORT: Final = "longpole.report/1"
_TOP: Final = 15

# Maximum rows of each table, for one trace and for several.
_MOST_ROWS: Final = 100
_MOST_ROWS_OF_SEVERAL: Final = 20
_MOST_TRACES: Final = 16

_RELEVANT: Final[dict[Side, tuple[str, ...]]] = {
    "kernels": ("kernels", "roofline"),
    "host": ("launch_summary", "idle_time"),
    "communication": ("communication", "overlap"),
    "copies": ("copy_summary", "overlap"),
}
"""Tables with more detail about what limits a program."""

LIMITS: Final = (
    "Gains are upper bounds: they assume that a change causes no new work.",
    "Gains overlap, so they must not be added up.",
    "What the profiler added to the host is an estimate; of several ranks, it is not taken off.",
    "Without `cuda_sync` records, waits between calls and streams are inferred if possible.",
    "One rank cannot tell whether others were late: time in communication may be waiting for them.",
)
"""What a report does not show."""

_LIMITS: Final = Section("limits", "Known limits", [Notes(LIMITS)], is_folded=True)
_NOTHING: Final = "The trace has no event of a known kind with a duration"
_REST: Final = (
    Column("trace", "name"),
    Column("rank", "number"),
    Column("window"),
    Column("length", "duration"),
    Column("verdict"),
)


@dataclass(frozen=True, slots=True)
class Choice:
    """The window to report on."""

    step: int | None = None
    whole: bool = False
    step_name: str | None = None

    def window(self, trace: Trace) -> Window | None:
        """Choose the window; None if nothing has a duration."""
        found = choose_window(trace, self.step, whole=self.whole, step_name=self.step_name)
        return found if found is not None and found.duration_ns else None

    def path(self, trace: Trace, window: Window) -> CriticalPath:
        """Return the critical path of the window."""
        is_whole = window.kind == "trace"
        return trace.critical_path(window.step, whole=is_whole, step_name=self.step_name)

    def verdict(self, trace: Trace) -> Verdict:
        """Return the verdict."""
        return trace.verdict(self.step, whole=self.whole, step_name=self.step_name)

    def summary(self, trace: Trace) -> Summary | None:
        """Return the summary, which contains the verdict; None if nothing has a duration."""
        return summary(trace, step=self.step, whole=self.whole, step_name=self.step_name, top=_TOP)


class WrittenReport(Row):
    """The written report."""

    output: str
    """Path of the file."""
    bytes: int
    sections: list[str]


def report_page(traces: Sequence[Named], choice: Choice) -> Page:
    """Report on a trace, or on several: first together, then on each."""
    names, facts = names_of(traces), facts_of(traces)
    if len(traces) == 1:
        sections = [*_About(*traces[0], choice).sections(), _LIMITS]
        return Page(f"longpole: {names[0]}", facts, sections)
    together, ranks = rank_sections(traces, step_name=choice.step_name)
    sections = [*together, _each(traces, names, ranks, choice), _LIMITS]
    return Page(f"longpole: {count(len(traces), 'trace')}", facts, sections)


def diff_page(base: Sequence[Named], new: Sequence[Named], *, step_name: str | None) -> Page:
    """Report what changed between two sides."""
    from longpole.analyses.diff import diff

    sides = [[trace for _, trace in side] for side in (base, new)]
    found = diff(*sides, step_name=step_name)
    sections = diff_sections(found, *sides, top=_TOP, step_name=step_name)
    names = names_of([*base, *new])
    title = f"longpole: {names[0]} → {names[len(base)]}"
    return Page(title, facts_of([*base, *new]), [*sections, _LIMITS])


def written(page: Page, paths: Sequence[str], output: Path) -> Answer:
    """Report what was written to which file."""
    n_bytes = output.stat().st_size
    told = f"{output}: {count(len(page.sections), 'section')}, {n_bytes / 1e6:.1f} MB"
    document = Document(
        schema=REPORT,
        input={"path": paths[0], "traces": list(paths)},
        data=WrittenReport(
            output=str(output), bytes=n_bytes, sections=[section.key for section in page.sections]
        ),
        blocks=lambda: [Sentence(told)],
        records=lambda: [{"output": str(output), "bytes": n_bytes}],
    )
    return document, exit_codes.OK


def _each(
    traces: Sequence[Named], names: Sequence[str], ranks: Sequence[int], choice: Choice
) -> Section:
    """Return a section for each trace, awaited ranks first, and a list of the rest."""
    place = {trace.rank: number for number, (_, trace) in enumerate(traces)}
    order = [place[rank] for rank in ranks] or list(range(len(traces)))
    parts: list[Part] = [_folded(traces[at], names[at], at, choice) for at in order[:_MOST_TRACES]]
    rest = order[_MOST_TRACES:]
    if rest:
        rows = [(names[at], *_found(traces[at][1], choice)) for at in rest]
        left = f"{count(len(rest), 'more trace')}: `longpole report TRACE` shows one in full."
        parts += [Sentence(left), Table(_REST, rows)]
    return Section("traces", "Ranks" if ranks else "Traces", parts)


def _folded(named: Named, name: str, number: int, choice: Choice) -> Section:
    """Return the collapsed section of one of several traces."""
    path, trace = named
    key = f"trace-{number}"
    sections = list(_About(path, trace, choice, f"{key}-", _MOST_ROWS_OF_SEVERAL).sections())
    _, window, length_ns, found = _found(trace, choice)
    facts = [window, duration(length_ns)] if length_ns else []
    title, of = (name, []) if trace.rank is None else (f"Rank {trace.rank}", [name])
    return Section(key, title, sections, is_folded=True, note=", ".join([*of, *facts, found]))


def _found(trace: Trace, choice: Choice) -> tuple[int | None, str, int | None, str]:
    """Return the rank, the window, its length, and what limits it."""
    window = choice.window(trace)
    if window is None:
        return trace.rank, "", None, _NOTHING
    verdict = choice.verdict(trace)
    held_up = f"limited by {', '.join(verdict.sides)}"
    told = held_up if verdict.sides else verdict.status.replace("_", " ")
    return trace.rank, window.name, window.duration_ns, told


@dataclass(frozen=True, slots=True)
class _About:
    """The part of the page about one trace."""

    path: str
    trace: Trace
    choice: Choice
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
        window, found = self.choice.window(self.trace), self.choice.summary(self.trace)
        if window is None or found is None:
            nothing = self.section("verdict", "Verdict", [Sentence(f"{_NOTHING}.")])
            return [nothing, self.diagnostics()]
        sections = list(self.of_window(window, found))
        return linked(sections, self.trace, window, self.before)

    def of_window(self, window: Window, found: Summary) -> Iterator[Section]:
        """Yield the sections about a window, the answer first."""
        path = self.choice.path(self.trace, window)
        yield self.verdict(window, found, path)
        yield self.timeline(window, path)
        yield self.section("path", "Critical path", self.path_parts(path))
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
            mfu=self.figures("mfu", window),
            roofline=self.figures("roofline", window),
            memory=self.figures("memory"),
            key=f"{self.before}more-remedies",
        )
        return self.section("verdict", "Verdict", parts)

    def figures(self, name: str, window: Window | None = None) -> Any:
        """Answer a question whose figure is shown on a tile; None if it cannot be answered."""
        try:
            return question(name)(self.trace, window)
        except (LongpoleError, ValueError):
            return None

    def timeline(self, window: Window, path: CriticalPath) -> Section:
        """Draw what ran; the longest names of the path are listed below it."""
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
        unanswered: list[str] = []
        asked = questions()
        for name in dict.fromkeys([*relevant, *asked]):
            asks = asked[name]
            blocks = self.answer(name, window)
            if all(isinstance(block, Sentence) for block in blocks):
                told = " ".join(block.text for block in blocks if isinstance(block, Sentence))
                unanswered.append(f"{asks}: {told[:1].lower()}{told[1:]}")
                continue
            key = f"question-{name.replace('_', '-')}"
            is_open = name in relevant
            section = self.section(
                key, name, blocks, is_folded=True, note=asks, is_open=is_open and not self.before
            )
            answers.append(section)
        if unanswered:
            title = "What this trace does not answer"
            answers.append(self.section("unanswered", title, [Notes(unanswered)], is_folded=True))
        return self.section("tables", "Tables", answers)

    def answer(self, name: str, window: Window) -> Sequence[Block]:
        """Answer a question; an error does not affect the other questions."""
        try:
            return answer_blocks(name, self.trace, window, most=self.most_rows)
        except (LongpoleError, ValueError) as error:
            return [Sentence(f"This question could not be answered: {error}.")]

    def diagnostics(self) -> Section:
        """List the problems of the trace."""
        document, _ = check_answer(self.path, self.trace, strict=False)
        blocks = [each for each in document.blocks() if not isinstance(each, Headline)]
        blocks = blocks or [Sentence("No problems found.")]
        return self.section("diagnostics", "Diagnostics", blocks)
