"""Common parts of every answer about a window: its documents, warnings and exit codes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from longpole.cli.answer import exit_codes
from longpole.cli.answer.inputs import describe, name_of, warnings_of
from longpole.report.blocks import Headline, Notes, Sentence, Table
from longpole.report.document import DATA_FORMATS, Abstention, Document, Warned
from longpole.tables.check import check
from longpole.tables.findings import IMPOSSIBLE_TIMES, KINDS
from longpole.words.wording import count, duration

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

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
# Codes of events of a device that may be activities.
_UNKNOWN_TASKS: Final = frozenset({"unknown_task_type", "unknown_device_line"})
# Codes of records without a valid time.
_UNTIMED: Final = frozenset({"zero_timestamp", "negative_duration"})
# Codes of warnings about the gains and shares of a verdict.
_OF_VERDICT: Final = frozenset(
    {
        *("earlier_work", "much_unexplained", "unknown_device_tasks", "untimed_records"),
        *("overlapping_device_work", "lost_device_work", *IMPOSSIBLE_TIMES),
    }
)
# Larger overlaps of activities on one stream, as a share of the window, mean wrong records.
_MUCH_OVERLAP: Final = 0.1
# If less of the work was launched before the recording, no relevant gain changes.
_MUCH_EARLIER: Final = 0.01
# A recording loses some activities at its end; if this share of all is lost, that is a warning.
_MUCH_LOST: Final = 0.1


@dataclass(frozen=True, slots=True)
class Found:
    """A window with its name, and its path, which may end at another time."""

    answer: TraceAnswer
    window: Window
    name: str
    path: CriticalPath
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
    told = [warned for warned in warnings if warned.code in _OF_VERDICT]
    sentences = [f"{it.message[:1].upper()}{it.message[1:]}: {it.effect}." for it in told]
    return [Notes(sentences)] if sentences else []


def window_warnings(
    trace: Trace, path: CriticalPath, window_name: str, data_load: str | None
) -> Iterator[Warned]:
    """Yield the warnings about the path of a window."""
    window_name = "the whole trace" if window_name == "whole trace" else window_name
    n_works = trace.warning_counts["device_work"]
    n_launches = len(trace.core.launches_without_work())
    if n_launches > _MUCH_LOST * (n_launches + n_works) and n_works:
        yield Warned(
            code="lost_device_work",
            count=n_launches,
            message=(
                f"{n_launches:,} calls launched GPU activities that are not in the trace, which "
                f"has {count(n_works, 'activity', 'activities')}"
            ),
            effect="the device is busier than the answer says, at least in a part of the trace",
            hint="see `longpole check`",
        )
    elif n_launches and not n_works:
        yield Warned(
            code="no_device_work",
            count=n_launches,
            message="calls launched GPU activities, and the trace has none of them",
            effect="the answer is about the host only",
            hint="see `longpole check`",
        )
    n_earlier, earlier_ns = trace.core.earlier_work(*path.window)
    if earlier_ns > _MUCH_EARLIER * path.length_ns:
        yield Warned(
            code="earlier_work",
            count=n_earlier,
            message=(
                f"{count(n_earlier, 'GPU activity', 'GPU activities')} "
                f"({duration(earlier_ns)} of {window_name}) "
                f"{'was' if n_earlier == 1 else 'were'} most likely launched before recording "
                f"began and {'belongs' if n_earlier == 1 else 'belong'} to earlier work"
            ),
            effect="shares and gains include this time",
        )
    yield from _impossible(trace, path.length_ns)
    yield from _untimed(trace)
    n_unknown = sum(
        row["count"] for row in trace.core.diagnostics().to_dicts() if row["code"] in _UNKNOWN_TASKS
    )
    if n_unknown:
        yield Warned(
            code="unknown_device_tasks",
            count=n_unknown,
            message=(
                f"{count(n_unknown, 'task')} of the device "
                f"{'has an' if n_unknown == 1 else 'have'} unknown "
                f"{'type' if n_unknown == 1 else 'types'} and "
                f"{'does' if n_unknown == 1 else 'do'} not count as GPU activities"
            ),
            effect="the device may be busier, and the host limit less, than the answer says",
        )
    if path.status == "inconclusive":
        yield Warned(
            code="much_unexplained",
            count=1,
            message=f"more than a tenth of the path of {window_name} is unexplained",
            effect="shares of its kinds and names may be too small",
        )
    if data_load is not None and not _finds_name(trace, data_load):
        yield Warned(
            code="pattern_without_effect",
            count=1,
            message=f"no function or annotation matches --data-load {data_load!r}",
            effect="nothing counts as data loading",
        )


def _untimed(trace: Trace) -> Iterator[Warned]:
    """Yield the warning about records without a valid time, which no figure includes."""
    counts = {row["code"]: row["count"] for row in trace.core.diagnostics().to_dicts()}
    n_records = sum(counts.get(code, 0) for code in _UNTIMED)
    if n_records:
        yield Warned(
            code="untimed_records",
            count=n_records,
            message=(
                f"{count(n_records, 'record')} {'has' if n_records == 1 else 'have'} the time 0 or "
                f"{'ends' if n_records == 1 else 'end'} before the start, and "
                f"{'counts' if n_records == 1 else 'count'} in no figure"
            ),
            effect="that time may seem to be host time",
            hint="see `longpole check`",
        )


def _impossible(trace: Trace, length_ns: int) -> Iterator[Warned]:
    """Yield the warning about GPU activities with impossible times."""
    for code, category, n_events, _, _, longest_ns in trace.core.event_warnings():
        if code == "overlapping_device_work" and longest_ns > _MUCH_OVERLAP * length_ns:
            yield Warned(
                code=code,
                count=n_events,
                message=(
                    f"{count(n_events, 'GPU activity', 'GPU activities')} of category {category} "
                    f"{'overlaps' if n_events == 1 else 'overlap'} an earlier one of "
                    f"{'its' if n_events == 1 else 'their'} stream by up to {duration(longest_ns)}"
                ),
                effect="a stream runs one at a time, so recorded durations are most likely wrong",
            )
        if code in IMPOSSIBLE_TIMES:
            _, sentence, effect, hint = KINDS[code]
            yield Warned(
                code=code,
                count=n_events,
                message=sentence.format(longest=duration(longest_ns)),
                effect=effect,
                hint=hint,
            )


def _finds_name(trace: Trace, pattern: str) -> bool:
    import polars as pl

    may_load = pl.col("kind").cast(pl.String).is_in(["python", "annotation"])
    names = trace.events.filter(may_load).select(pl.col("name").cast(pl.String).unique())
    return names.filter(pl.col("name").str.contains(pattern)).height > 0
