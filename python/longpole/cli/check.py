"""`longpole check`: what is wrong with a trace, and what that costs an analysis."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

import click

from longpole.cli import exit_codes
from longpole.cli.options import Options, shared_options, traces_argument
from longpole.cli.output import Document, Warned
from longpole.cli.traces import answer_each, describe, title
from longpole.wording import count, escape

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longpole.analyses.check import Finding
    from longpole.cli.output import Record
    from longpole.cli.terminal import Terminal
    from longpole.trace import Trace

__all__ = ["check"]

_SCHEMA: Final = "longpole.check/1"
_STYLES: Final = {"data_loss": "bad", "altered": "bad", "warning": "warn", "info": "dim"}
_NOUNS: Final = {
    "data_loss": ("loss", "losses"),
    "altered": ("alteration", None),
    "warning": ("warning", None),
    "info": ("note", None),
}


@click.command()
@traces_argument
@click.option("--strict", is_flag=True, help="Exit with 1 on warnings too.")
@shared_options
def check(*, traces: Sequence[str], strict: bool, options: Options) -> int:
    """Say what is wrong with a trace, and what that costs an analysis.

    Exits with 1 where something of the file was altered to be readable or is lost
    (severity `altered` or `data_loss`), with 0 where there are only doubts or notes.

    \b
    Examples:
      longpole check trace.json.gz
      longpole check rank*.json.gz --strict --format jsonl
    """

    def answer(path: str, trace: Trace) -> Document:
        return _document(path, trace, strict=strict)

    return answer_each(traces, options, _SCHEMA, answer)


def _document(path: str, trace: Trace, *, strict: bool) -> Document:
    from longpole.analyses.check import check as find

    findings = find(trace)
    counts = Counter[str](finding.severity for finding in findings)
    failing = ("data_loss", "altered", "warning") if strict else ("data_loss", "altered")
    has_failed = any(counts[severity] for severity in failing)
    return Document(
        schema=_SCHEMA,
        input=describe(path, trace),
        status="partial" if trace.status == "recovered" else "ok",
        scope={"rank": trace.rank},
        warnings=[_warned(finding) for finding in findings if finding.severity != "info"],
        data=_data(findings, counts),
        exit_code=exit_codes.FINDINGS if has_failed else exit_codes.OK,
        text=lambda terminal: _text(path, findings, terminal),
        markdown=lambda: _markdown(path, findings),
        records=lambda: [_record(path, finding) for finding in findings],
    )


def _data(findings: Sequence[Finding], counts: Counter[str]) -> dict[str, Any]:
    return {
        "counts": {severity: counts[severity] for severity in _NOUNS},
        "findings": [finding.to_dict() for finding in findings],
    }


def _warned(finding: Finding) -> Warned:
    return Warned(finding.code, finding.count, finding.sentence, finding.effect, finding.hint)


def _text(path: str, findings: Sequence[Finding], terminal: Terminal) -> str:
    lines = [terminal.styled(f"{title(path)}: {_verdict(findings)}", "bold")]
    for finding in findings:
        lines += ["", *_finding_text(finding, terminal)]
    return "\n".join(lines) + "\n"


def _finding_text(finding: Finding, terminal: Terminal) -> list[str]:
    head = f"{terminal.styled(finding.severity, _STYLES[finding.severity])}  {finding.code}"
    times = f"  {finding.count:,} ×" if finding.count > 1 else ""  # noqa: RUF001
    lines = [f"  {head}{times}"]
    said = [f"{_capital(finding.sentence)}{_first(finding)}.", f"Effect: {finding.effect}."]
    said += [f"Hint: {finding.hint}."] if finding.hint else []
    for sentence in said:
        lines += terminal.paragraph(escape(sentence), "    ")
    return lines


def _verdict(findings: Sequence[Finding]) -> str:
    counts = Counter[str](finding.severity for finding in findings)
    found = [
        count(counts[severity], *nouns) for severity, nouns in _NOUNS.items() if counts[severity]
    ]
    return ", ".join(found) or "nothing to say against it"


def _first(finding: Finding) -> str:
    """Say where it was found first, as the end of a sentence."""
    from longpole.wording import short_name

    place = finding.first
    if place is None:
        return ""
    which = "first " if finding.count > 1 else ""
    if place.event is None:
        return f", {which}at byte {place.offset:,}"
    return f", {which}event {place.event:,} ({short_name(place.name, 40)})"


def _capital(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]


def _markdown(path: str, findings: Sequence[Finding]) -> str:
    from longpole.cli.output import markdown_table

    titles = ("severity", "code", "count", "what", "effect", "hint")
    rows = [
        (
            finding.severity,
            finding.code,
            count(finding.count),
            finding.sentence + _first(finding),
            finding.effect,
            finding.hint or "",
        )
        for finding in findings
    ]
    lines = [f"### {escape(path)}: {_verdict(findings)}"]
    lines += ["", *markdown_table(titles, rows)] if rows else []
    return "\n".join(lines) + "\n"


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
