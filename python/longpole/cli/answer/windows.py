"""Common parts of every answer about a window."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from longpole.analyses.check import check
from longpole.cli.answer import exit_codes
from longpole.cli.answer.inputs import describe, name_of, warnings_of
from longpole.cli.answer.warnings import window_warnings
from longpole.report.blocks import Headline, Sentence, Table
from longpole.report.document import DATA_FORMATS, Abstention, Document

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from longpole.analyses.findings import Finding
    from longpole.cli.answer.emit import Answer
    from longpole.critical_path import CriticalPath
    from longpole.report.blocks import Block
    from longpole.report.document import AbstentionCode, Record
    from longpole.trace import Trace
    from longpole.verdict import Verdict
    from longpole.windows import Window

__all__ = [
    "ABOVE_ALL",
    "Found",
    "abstained",
    "abstentions",
    "code_of",
    "exit_code_of",
    "known_of",
    "known_of_trace",
    "known_of_window",
]

# Findings of `check` that explain why nothing can be measured.
_REASONS: Final = frozenset({"profiler_message", "unknown_categories"})

ABOVE_ALL: Final = "Shares above 100 % are sums over several devices, threads or streams."


@dataclass(frozen=True, slots=True)
class Found:
    """A window with its name, the reason for its choice, and its path."""

    name: str
    step: int | None
    reason: str
    clause: str
    """Part of the reason that affects the answer; usually empty."""
    path: CriticalPath
    data_load: str | None
    step_name: str | None
    verdict: Callable[[], Verdict]

    @property
    def title(self) -> str:
        """The window as a phrase, with that clause."""
        return f"{self.name} ({self.clause})" if self.clause else self.name


def known_of(path: str, trace: Trace, found: Found, verdict: Verdict) -> dict[str, Any]:
    """Return the fields of every document about a window."""
    warnings = [
        *warnings_of(trace),
        *window_warnings(trace, found.path, found.name, found.data_load),
    ]
    return {
        **known_of_trace(path, trace),
        "warnings": warnings,
        "status": "partial" if warnings or exit_code_of(verdict) else "ok",
        "abstains_because": abstentions(verdict, found.name),
        "scope": _scope(trace, found, found.path.window),
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
    """Return why a window has no verdict, if so."""
    return [Abstention(verdict.cause, window)] if verdict.cause else []


def exit_code_of(verdict: Verdict) -> int:
    """Return the exit code: whether an answer is too uncertain for a verdict."""
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
    """Describe the profiler's messages about its recording, and events of unknown kinds."""
    told = [found for found in check(trace) if found.code in _REASONS]
    return [Sentence(_told(found)) for found in told]


def _told(found: Finding) -> str:
    hint = f" {found.hint[:1].upper()}{found.hint[1:]}." if found.hint else ""
    return f"{found.sentence[:1].upper()}{found.sentence[1:]}.{hint}"
