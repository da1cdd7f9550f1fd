"""A report: what is found about traces, as the sections of one page."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from longpole.analyses.lanes import lanes, not_drawn
from longpole.analyses.questions import answer_blocks, questions
from longpole.analyses.summary import summary
from longpole.cli.answer import exit_codes
from longpole.cli.answer.check import check_answer
from longpole.cli.answer.inputs import name_of
from longpole.cli.answer.rank_sections import rank_sections
from longpole.cli.answer.summary import time_blocks
from longpole.critical_path.explain import path_blocks
from longpole.errors import LongpoleError
from longpole.plot.draw import plotly_script
from longpole.plot.figures import figure_of, sides_figure, step_figure
from longpole.report.blocks import Column, Headline, Notes, Sentence, Table
from longpole.report.document import Document
from longpole.report.page import Page, Section
from longpole.verdict.blocks import verdict_blocks
from longpole.windows import choose_window
from longpole.wording import count, duration

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from longpole.analyses.diff import Diff
    from longpole.analyses.summary import Summary
    from longpole.cli.answer.emit import Answer
    from longpole.critical_path.path import CriticalPath
    from longpole.report.blocks import Block, Cell
    from longpole.report.page import Part
    from longpole.trace import Trace
    from longpole.verdict import Verdict
    from longpole.windows import Window

    Named = tuple[str, Trace]

__all__ = ["LIMITS", "REPORT", "Choice", "diff_page", "facts_of", "report_page", "written"]

REPORT: Final = "longpole.report/1"
_TOP: Final = 15

LIMITS: Final = (
    "Gains are upper bounds: nothing new is assumed to appear where something is removed.",
    "Gains overlap and are never to be added.",
    "Recording takes time itself, on the host above all: stacks and shapes make operators longer.",
    "Without `cuda_sync` records, who waited for whom is inferred where the trace allows it.",
    "One rank cannot tell whether others were late: time in communication may be waiting for them.",
)
"""What nobody should conclude from a report."""

_NOTHING: Final = "The trace has no event of a known kind with a duration"
_MOST_WORK: Final = 60
_WORK: Final = {
    "kind": Column("kind"),
    "name": Column("name", "name"),
    "base_counts": Column("base count", "count"),
    "new_counts": Column("new count", "count"),
    "base_total_duration_ns": Column("base", "duration"),
    "new_total_duration_ns": Column("new", "duration"),
    "diff_duration_ns": Column("difference", "duration"),
    "counts_change_categories": Column("count"),
}
_OVERVIEW: Final = (
    Column("trace", "name"),
    Column("rank", "number"),
    Column("window"),
    Column("length", "duration"),
    Column("held up by"),
)


@dataclass(frozen=True, slots=True)
class Choice:
    """Which window to report on."""

    step: int | None = None
    whole: bool = False
    step_name: str | None = None

    def window(self, trace: Trace) -> Window | None:
        """Choose the window; None where nothing has a duration."""
        found = choose_window(trace, self.step, whole=self.whole, step_name=self.step_name)
        return found if found is not None and found.duration_ns else None

    def path(self, trace: Trace, window: Window) -> CriticalPath:
        """Give the critical path of the window."""
        is_whole = window.kind == "trace"
        return trace.critical_path(window.step, whole=is_whole, step_name=self.step_name)

    def verdict(self, trace: Trace) -> Verdict:
        """Give the verdict."""
        return trace.verdict(self.step, whole=self.whole, step_name=self.step_name)

    def summary(self, trace: Trace) -> Summary | None:
        """Give the summary, which holds the verdict; None where nothing has a duration."""
        return summary(trace, step=self.step, whole=self.whole, step_name=self.step_name, top=_TOP)


def report_page(traces: Sequence[Named], choice: Choice) -> Page:
    """Report on traces, one after the other."""
    sections: list[Section] = []
    if len(traces) > 1:
        sections.append(_overview(traces, choice))
        sections += rank_sections(traces, step_name=choice.step_name)
    for number, (path, trace) in enumerate(traces):
        about = _About(path, trace, choice, number if len(traces) > 1 else None)
        sections += about.sections()
    sections.append(Section("limits", "Known limits", [Notes(LIMITS)]))
    title = _short(traces[0][0]) if len(traces) == 1 else count(len(traces), "trace")
    facts = [fact for path, trace in traces for fact in facts_of(path, trace)]
    return Page(f"longpole: {title}", facts, sections, plotly_script())


def diff_page(base: Sequence[Named], new: Sequence[Named], *, step_name: str | None) -> Page:
    """Report on what changed from one side to another."""
    from longpole.analyses.diff import diff

    sides = [[trace for _, trace in side] for side in (base, new)]
    found = diff(*sides, step_name=step_name)
    # The first block is the sentence, which stands alone.
    _, *rest = found.blocks(_TOP)
    path = [(row.kind, row.base_ns, row.new_ns) for row in found.path if row.change_ns]
    figure = [sides_figure(path, "The critical path of a step by kind")] if path else []
    sections = [
        Section("verdict", "Verdict", [Sentence(found.sentence)]),
        Section("changes", "What changed", [*rest, *figure]),
        Section("table", "All work by name", _all_work(found), is_folded=True),
        Section("limits", "Known limits", [Notes(LIMITS)]),
    ]
    facts = [fact for path, trace in (*base, *new) for fact in facts_of(path, trace)]
    title = f"{_short(base[0][0])} -> {_short(new[0][0])}"
    return Page(f"longpole: {title}", facts, sections, plotly_script())


def written(page: Page, paths: Sequence[str], output: Path) -> Answer:
    """Say what was written where."""
    n_bytes = output.stat().st_size
    notes = [] if page.plotly else ["Figures are left out: pip install 'longpole[report]'."]
    told = f"{output}: {count(len(page.sections), 'section')}, {n_bytes / 1e6:.1f} MB"
    data = {
        "output": str(output),
        "bytes": n_bytes,
        "sections": [section.key for section in page.sections],
        "has_figures": page.plotly is not None,
    }
    document = Document(
        schema=REPORT,
        input={"path": paths[0], "traces": list(paths)},
        data=data,
        blocks=lambda: [Sentence(told), *([Notes(notes)] if notes else [])],
        records=lambda: [{"output": str(output), "bytes": n_bytes}],
    )
    return document, exit_codes.OK


def _all_work(found: Diff) -> list[Part]:
    """List the work of both sides by name, the greatest change first."""
    records = found.records()
    rows = [[row[name] for name in _WORK] for row in records[:_MOST_WORK]]
    more = len(records) - len(rows)
    table = Table(tuple(_WORK.values()), rows)
    return [table, *([Notes([f"{count(more, 'more name')}."])] if more else [])]


def _short(path: str) -> str:
    return name_of(path if path == "-" else Path(path).name)


def facts_of(path: str, trace: Trace) -> Iterator[str]:
    """Say what was read."""
    facts = [name_of(path), f"{trace.n_events:,} events", trace.format]
    if trace.rank is not None:
        facts.append(f"rank {trace.rank}" + (f" of {trace.world_size}" if trace.world_size else ""))
    names = [str(name) for name in trace.devices["name"].drop_nulls().unique().sort()]
    yield ", ".join([*facts, *names])
    if trace.status == "recovered":
        yield "The file is damaged; what is whole was read. See the diagnostics."


def _overview(traces: Sequence[Named], choice: Choice) -> Section:
    """Show the traces side by side."""
    rows: list[list[Cell]] = []
    for path, trace in traces:
        window = choice.window(trace)
        if window is None:
            rows.append([_short(path), trace.rank, None, None, _NOTHING])
            continue
        verdict = choice.verdict(trace)
        sides = ", ".join(verdict.sides) or verdict.status.replace("_", " ")
        rows.append([_short(path), trace.rank, window.name, window.duration_ns, sides])
    return Section("overview", "Overview", [Table(_OVERVIEW, rows)])


@dataclass(frozen=True, slots=True)
class _About:
    """What the page says about one trace."""

    path: str
    trace: Trace
    choice: Choice
    number: int | None
    """Among several traces."""

    def section(
        self, key: str, title: str, parts: Sequence[Part], *, is_folded: bool = False
    ) -> Section:
        """Make a section; among several traces its title names this one."""
        short = key.removeprefix("question-").replace("-", " ").capitalize()
        if self.number is None:
            return Section(key, title, parts, is_folded, short)
        name = _short(self.path)
        key = f"trace-{self.number}-{key}"
        return Section(key, f"{name}: {title}", parts, is_folded, f"{name}: {short}")

    def sections(self) -> Iterator[Section]:
        """Give all sections."""
        window, found = self.choice.window(self.trace), self.choice.summary(self.trace)
        if window is None or found is None:
            yield self.section("verdict", "Verdict", [Sentence(f"{_NOTHING}.")])
            yield self.diagnostics()
            return
        path = self.choice.path(self.trace, window)
        yield self.section("verdict", "Verdict", verdict_blocks(found.verdict))
        yield self.timeline(window, path)
        yield self.critical_path(path)
        steps = step_figure(self.trace)
        if steps is not None:
            yield self.section("steps", "Steps", [steps])
        yield self.section("summary", "Where the time went", time_blocks(self.trace, found))
        yield from self.questions(window)
        yield self.diagnostics()

    def timeline(self, window: Window, path: CriticalPath) -> Section:
        """Draw what ran."""
        parts: list[Part] = []
        drawn = lanes(self.trace, window, path)
        if drawn is not None:
            picture, n_left_out = drawn
            parts.append(picture)
            if n_left_out:
                parts.append(Notes([not_drawn(n_left_out)]))
        title = f"{window.name}, {duration(window.duration_ns)} ({window.reason})"
        return self.section(
            "timeline", "Timeline", [Sentence(f"{title[0].upper()}{title[1:]}."), *parts]
        )

    def critical_path(self, path: CriticalPath) -> Section:
        """Show what decided when the window was over."""
        return self.section("path", "Critical path", path_blocks(path, _TOP))

    def questions(self, window: Window) -> Iterator[Section]:
        """Answer every question there is, with a figure where there is one to draw."""
        unanswered: list[str] = []
        for name, asks in questions().items():
            blocks = self.answer(name, window)
            if all(isinstance(block, Sentence) for block in blocks):
                told = " ".join(block.text for block in blocks if isinstance(block, Sentence))
                unanswered.append(f"{asks}: {told[:1].lower()}{told[1:]}")
                continue
            figure = figure_of(blocks, asks)
            parts = [*([figure] if figure else []), *blocks]
            yield self.section(f"question-{name.replace('_', '-')}", asks, parts, is_folded=True)
        if unanswered:
            title = "What this trace does not answer"
            yield self.section("unanswered", title, [Notes(unanswered)], is_folded=True)

    def answer(self, name: str, window: Window) -> Sequence[Block]:
        """Answer a question; one that cannot be answered does not keep the others from it."""
        try:
            return answer_blocks(name, self.trace, window)
        except (LongpoleError, ValueError) as error:
            return [Sentence(f"This could not be answered: {error}.")]

    def diagnostics(self) -> Section:
        """List what is wrong with the trace."""
        document, _ = check_answer(self.path, self.trace, strict=False)
        blocks = [each for each in document.blocks() if not isinstance(each, Headline)]
        return self.section(
            "diagnostics", "Diagnostics", blocks or [Sentence("No problems found.")]
        )
