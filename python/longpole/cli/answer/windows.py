"""Common parts of every answer about a window: its documents, warnings and exit codes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from longpole.cli.answer import exit_codes
from longpole.cli.answer.inputs import describe, name_of, warnings_of
from longpole.report.blocks import Headline, Notes, Sentence, Table
from longpole.report.document import DATA_FORMATS, Abstention, Document, Warned
from longpole.tables.check import check
from longpole.tables.window_warnings import OF_VERDICT, window_warnings

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from longpole.answer import Verdict
    from longpole.answer.answer import Answer as TraceAnswer
    from longpole.cli.answer.emit import Answer
    from longpole.engine.critical_path import CriticalPath
    from longpole.engine.windows import Window
    from longpole.report.blocks import Block
    from longpole.report.document import AbstentionCode, Record
    from longpole.tables.findings import Finding
    from longpole.trace.trace import Trace

# Findings of `check` that explain why nothing can be measured.
_REASONS: Final = frozenset(
    {
        *("no_timed_events", "profiler_message", "unknown_categories", "caught_nothing"),
        *("asynchronous_only", "collectives_of_plugin"),
    }
)


@dataclass(frozen=True, slots=True)
class Found:
    """A window as recorded, with its critical path, which may end at another time."""

    answer: TraceAnswer
    """The answer about the program without the profiler."""
    window: Window
    name: str
    path: CriticalPath
    """The critical path: as recorded, or that on which gains are computed."""
    span: tuple[int, int]
    """Start and end as recorded."""
    is_part: bool
    """Whether it is not the whole trace."""

    @property
    def verdict(self) -> Verdict:
        """What limits the program, and what to do about it."""
        return self.answer.verdict

    @property
    def step(self) -> int | None:
        """Number of the step."""
        return self.window.step

    @property
    def reason(self) -> str:
        """Why the window was chosen."""
        return self.window.reason

    @property
    def title(self) -> str:
        """The window as a phrase, with the part of the reason that affects the answer."""
        clause = self.window.clause
        return f"{self.name} ({clause})" if clause else self.name


def known_of(path: str, trace: Trace, found: Found, verdict: Verdict) -> dict[str, Any]:
    """Return the fields of every document about a window."""
    warnings = [
        *warnings_of(trace),
        *window_warnings(trace, found.path, found.name, found.answer.question.data_load),
    ]
    return {
        **known_of_trace(path, trace),
        "warnings": warnings,
        "status": "partial" if warnings or exit_code_of(verdict) else "ok",
        "abstains_because": abstentions(verdict, found.name),
        "scope": _scope(trace, found, found.span),
    }


def known_of_window(path: str, trace: Trace, window: Window | None) -> dict[str, Any]:
    """Return the fields of every document about a window's time, or about a trace without one."""
    known = known_of_trace(path, trace)
    if window is None:
        return known
    return {**known, "scope": _scope(trace, window, (window.start_ns, window.end_ns))}


def known_of_trace(path: str, trace: Trace) -> dict[str, Any]:
    """Return the fields of every document about a trace."""
    return {
        "input": describe(path, trace),
        "warnings": warnings_of(trace),
        "forms_with_warnings": DATA_FORMATS,
        "status": "partial" if trace.status == "recovered" else "ok",
    }


def _scope(trace: Trace, about: Found | Window, times: tuple[int, int]) -> dict[str, Any]:
    return {
        "rank": trace.rank,
        "step": about.step,
        "window_ns": list(times),
        "reason": about.reason,
        "window": about.name,
    }


def abstentions(verdict: Verdict, window: str) -> list[Abstention]:
    """Return the reasons why a window has no verdict; empty if it has one."""
    return [Abstention(verdict.cause, window)] if verdict.cause else []


def exit_code_of(verdict: Verdict) -> int:
    """Return the exit code, which shows whether the verdict is inconclusive."""
    is_open = verdict.status == "inconclusive"
    return exit_codes.INCONCLUSIVE if is_open else exit_codes.OK


def code_of(records: Sequence[Record], blocks: Sequence[Block]) -> int:
    """Return the exit code: whether an answer has any row."""
    has_rows = records or any(isinstance(block, Table) and block.rows for block in blocks)
    return exit_codes.OK if has_rows else exit_codes.INCONCLUSIVE


def abstained(
    schema: str, path: str, trace: Trace, reason: str, code: AbstentionCode = "no_work"
) -> Answer:
    """Answer that there is nothing to measure, with the reason."""
    document = Document(
        schema=schema,
        **(known_of_trace(path, trace) | {"status": "abstained"}),
        abstains_because=[Abstention(code)],
        blocks=lambda: [
            Headline(f"{name_of(path)}: {reason}"),
            *([Sentence(trace.damage.sentence)] if trace.damage else []),
            *(_reasons(trace) if code == "no_work" else []),
        ],
    )
    return document, exit_codes.INCONCLUSIVE


def _reasons(trace: Trace) -> list[Block]:
    """Describe the profiler's messages, events of unknown kinds, and what to record."""
    told = [found for found in check(trace) if found.code in _REASONS]
    return [Sentence(text) for found in told if (text := _told(found))]


def _told(found: Finding) -> str:
    """Return the sentence and the hint; without the sentence if it is the headline."""
    is_headline = found.code in {"no_timed_events", "caught_nothing"}
    texts = [found.hint] if is_headline else [found.sentence, found.hint]
    return " ".join(f"{text[:1].upper()}{text[1:]}." for text in texts if text)


def caveats(verdict: Verdict, warnings: Iterable[Warned]) -> list[Block]:
    """Show the warnings about a verdict; without a verdict, its sentence already has them."""
    if exit_code_of(verdict):
        return []
    told = [warned for warned in warnings if warned.code in OF_VERDICT]
    sentences = [f"{it.message[:1].upper()}{it.message[1:]}: {it.effect}." for it in told]
    return [Notes(sentences)] if sentences else []
