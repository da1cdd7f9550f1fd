"""`longpole check`: list the problems of a trace, and their effect on the answers."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Final

import click

from longpole.cli.answer import exit_codes
from longpole.cli.answer.inputs import describe, name_of
from longpole.cli.answer.mindspore import profile_answers, traces_and_profiles
from longpole.cli.answer.problems import require
from longpole.cli.ask.options import Options, answers, shared_options
from longpole.cli.ask.pairs import et_option, iteration_option
from longpole.cli.ask.traces import answer_each, traces_argument, traces_of
from longpole.engine.recording_cost import RecordingCost, cost_blocks
from longpole.report.blocks import Entry, Headline, Sentence
from longpole.report.document import Document, Warned
from longpole.tables.check import check as find_problems
from longpole.tables.findings import SEVERITIES, Finding, Severity
from longpole.tables.program_notes import ProgramNote, program_notes
from longpole.words.data import Row
from longpole.words.wording import count, short_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longpole.cli.answer.emit import Answer
    from longpole.report.blocks import Block, Style
    from longpole.report.document import Record
    from longpole.tables.companions import Companions
    from longpole.trace.trace import Trace

_SCHEMA: Final = "longpole.check/1"
_STYLES: Final[dict[str, Style]] = {
    "data_loss": "bad",
    "altered": "bad",
    "warning": "warn",
    "info": "dim",
}
_NOUNS: Final = {
    "data_loss": ("loss", "losses"),
    "altered": ("alteration", None),
    "warning": ("warning", None),
    "info": ("note", None),
}
_FAILING: Final = ("data_loss", "altered")


@click.command()
@answers("longpole.cli.check:Checked", "longpole.cli.answer.linked:Linked")
@traces_argument
@click.option("--strict", is_flag=True, help="Exit with 1 if there are warnings.")
@et_option
@iteration_option
@shared_options
def check(
    *,
    traces: Sequence[str],
    strict: bool,
    execution: str | None,
    iteration: int | None,
    options: Options,
) -> int:
    """List the problems of a trace, and their effect on the answers.

    Habits and settings of the program that cost time have a section of their own. The exit code
    is 1 if there is a problem of severity `altered` or `data_loss`, and 0 if there are only
    warnings and notes. Several traces, or those of a folder, are also compared with each other.

    With --et, the answer is how the execution trace was linked to the trace of the same run, what
    was not linked, and how well the dependencies explain the measured time. The exit code is 3 if
    the files do not belong together, and 4 if a replay differs from the measured time.

    \b
    Examples:
      longpole check trace.json.gz
      longpole check rank*.json.gz --strict --format jsonl
      longpole check --et et.json kineto.json
    """
    from longpole.engine.arguments import ARGUMENTS
    from longpole.tables.companions import Companions

    if execution is not None:
        require(len(traces) == 1, "with --et, give the one trace of the same run")
        require(not strict, "--strict has no meaning with --et")
        return options.emit(_pair_answer(execution, traces[0], iteration, options))
    require(iteration is None, "--iteration needs the execution trace, with --et")
    answer = partial(check_answer, strict=strict, companions=Companions())
    read, profiles = traces_and_profiles(traces, several=True)
    return answer_each(
        traces_of(read),
        options,
        _SCHEMA,
        answer,
        arguments=ARGUMENTS,
        then=lambda: profile_answers(profiles, options.attempt, of_problems=True, strict=strict),
    )


def _pair_answer(execution: str, kineto: str, iteration: int | None, options: Options) -> Answer:
    """Report how an execution trace was linked to a trace."""
    from longpole.cli.answer.linked import linked_answer
    from longpole.formats.convert.execution_trace import link_execution_trace
    from longpole.formats.read import read_trace

    trace = read_trace(kineto, vocabulary=options.vocabulary)
    linked = link_execution_trace(execution, trace, iteration=iteration)
    return linked_answer(_SCHEMA, execution, kineto, linked)


class Checked(Row):
    """The problems of a trace."""

    counts: dict[Severity, int]
    """Number of kinds of findings by severity."""
    findings: list[Finding]
    program: list[ProgramNote]
    """Habits and settings of the program that cost time; not problems of the trace."""
    recording_cost: RecordingCost


def check_answer(
    path: str,
    trace: Trace,
    *,
    strict: bool,
    companions: Companions | None = None,
    cost: RecordingCost | None = None,
) -> Answer:
    """List the problems of a trace, alone and with earlier ones, and notes on the program.

    `cost` is what recording cost, if another part of the answer knows it.
    """
    findings = find_problems(trace)
    if companions is not None:
        beside = companions.check(path, trace)
        findings = tuple(
            sorted([*beside, *findings], key=lambda each: SEVERITIES.index(each.severity))
        )
    counts = Counter[str](finding.severity for finding in findings)
    notes = program_notes(trace)
    cost = trace.recording_cost() if cost is None else cost
    failing = (*_FAILING, "warning") if strict else _FAILING
    has_failed = any(counts[severity] for severity in failing)
    document = Document(
        schema=_SCHEMA,
        input=describe(path, trace),
        status="partial" if trace.status == "recovered" else "ok",
        scope={"rank": trace.rank},
        warnings=[_warned(finding) for finding in findings if finding.severity != "info"],
        data=Checked(
            counts={severity: counts[severity] for severity in SEVERITIES},
            findings=list(findings),
            program=list(notes),
            recording_cost=cost,
        ),
        blocks=lambda: [
            *_blocks(path, findings, counts),
            *_program(notes),
            *_cost(trace, cost),
        ],
        records=lambda: [_record(path, finding) for finding in findings],
    )
    return document, exit_codes.FINDINGS if has_failed else exit_codes.OK


def _program(notes: Sequence[ProgramNote]) -> list[Block]:
    """Show the habits and settings of the program in a separate section."""
    if not notes:
        return []
    entries = [_note_entry(note) for note in notes]
    return [Sentence("About the program, not the trace:"), *entries]


def _note_entry(note: ProgramNote) -> Entry:
    is_several = note["count"] > 1
    times = f"  {note['count']:,} ×" if is_several else ""  # noqa: RUF001
    first = f"{'first ' if is_several else ''}event {note['event']:,}"
    told = f"{note['sentence'][:1].upper()}{note['sentence'][1:]}, {first}."
    return Entry("program", "warn", note["code"] + times, [told, f"Hint: {note['advice']}."])


def _cost(trace: Trace, cost: RecordingCost) -> list[Block]:
    """Show the recording overhead; empty unless torch.profiler recorded events of threads."""
    is_known = cost["status"] != "unknown" or trace.core.profiler.startswith("torch")
    return cost_blocks(cost) if is_known else []


def _warned(finding: Finding) -> Warned:
    return Warned(finding.code, finding.count, finding.sentence, finding.effect, finding.hint)


def _blocks(path: str, findings: Sequence[Finding], counts: Counter[str]) -> list[Block]:
    found = [count(counts[kind], *nouns) for kind, nouns in _NOUNS.items() if counts[kind]]
    headline = f"{name_of(path)}: {', '.join(found) or 'no problems found'}"
    return [Headline(headline), *map(_entry, findings)]


def _entry(finding: Finding) -> Entry:
    times = f"  {finding.count:,} ×" if finding.count > 1 else ""  # noqa: RUF001
    sentence = finding.sentence[:1].upper() + finding.sentence[1:]
    sentences = [f"{sentence}{_first(finding)}.", f"Effect: {finding.effect}."]
    sentences += [f"Hint: {finding.hint}."] if finding.hint else []
    return Entry(finding.severity, _STYLES[finding.severity], finding.code + times, sentences)


def _first(finding: Finding) -> str:
    """Return where it was first found, as the end of a sentence."""
    place = finding.first
    if place is None:
        return ""
    which = "first " if finding.count > 1 else ""
    if place.event is None:
        return f", {which}at byte {place.offset:,}"
    return f", {which}event {place.event:,} ({short_name(place.name, 40)})"


def _record(path: str, finding: Finding) -> Record:
    place = finding.first
    return {
        "path": path,
        "severity": finding.severity,
        "code": finding.code,
        "count": finding.count,
        "sentence": finding.sentence,
        "effect": finding.effect,
        "hint": finding.hint,
        "first_offset": None if place is None else place.offset,
        "first_event": None if place is None else place.event,
    }
