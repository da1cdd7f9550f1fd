"""`longpole bench compare`: what became faster or slower."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

import click

from longpole.bench.compare.comparison import Verdict
from longpole.cli import exit_codes
from longpole.cli.options import Options, shared_options
from longpole.cli.output import Document, Warned, emit, markdown_cell, markdown_table
from longpole.cli.shares import parse_share
from longpole.cli.terminal import Column, Terminal
from longpole.wording import duration, escape, share

if TYPE_CHECKING:
    from collections.abc import Iterator

    from longpole.bench.compare.comparison import Comparison, Difference
    from longpole.cli.output import Record

__all__ = ["compare", "described", "plain_difference"]

_SCHEMA: Final = "longpole.bench.compare/1"
_CODES: Final = {
    Verdict.SLOWER: exit_codes.FINDINGS,
    Verdict.INCONCLUSIVE: exit_codes.INCONCLUSIVE,
    Verdict.FASTER: exit_codes.OK,
    Verdict.SAME: exit_codes.OK,
}
_COLUMNS: Final = (
    Column("verdict", "left"),
    Column("key", "left", has_names=True),
    Column("change"),
    Column("interval"),
    Column("base"),
    Column("new"),
    Column("runs"),
    Column("measured", "left"),
)


@click.command()
@click.argument("base")
@click.argument("new", required=False)
@click.option("--base-key", metavar="KEY", help="Compare this key of BASE...")
@click.option("--new-key", metavar="KEY", help="...with this one of NEW, or of BASE without NEW.")
@click.option(
    "--gate",
    type=parse_share,
    metavar="SHARE",
    default="3%",
    show_default=True,
    help="The smallest change that matters, as 3% or 0.03.",
)
@click.option(
    "--confidence",
    type=parse_share,
    metavar="SHARE",
    default="95%",
    show_default=True,
    help="How sure all verdicts together have to be.",
)
@shared_options
def compare(
    *,
    base: str,
    new: str | None,
    base_key: str | None,
    new_key: str | None,
    gate: float,
    confidence: float,
    options: Options,
) -> int:
    """Say what became faster or slower from BASE to NEW.

    Each is a file of results, or the name of a baseline. Keys of the same name are compared;
    with --base-key and --new-key two keys of different names, also of one file. Exits with 1
    where anything became slower, with 4 where nothing did but something could not be told,
    and with 0 otherwise.

    \b
    Examples:
      longpole bench compare base.jsonl new.jsonl
      longpole bench compare main new.jsonl --gate 2% --format md
      longpole bench compare times.jsonl --base-key kernels:old --new-key kernels:new
    """
    from longpole.bench import compare as compare_measurements

    if not confidence:
        message = "a confidence of 0 says nothing"
        raise click.UsageError(message)
    if new is None and not (base_key and new_key):
        message = "give NEW, or --base-key and --new-key"
        raise click.UsageError(message)
    comparison = compare_measurements(
        base, new or base, gate, confidence=confidence, base_key=base_key, new_key=new_key
    )
    inputs = {"base": base, "new": new or base}
    title = f"{base_key or base} to {new_key or new}"
    document = _document(title, inputs, comparison)
    return emit([document], options.form, Terminal.of(sys.stdout, options.color))


def _document(title: str, inputs: dict[str, str], comparison: Comparison) -> Document:
    verdict = comparison.verdict
    return Document(
        schema=_SCHEMA,
        input=inputs,
        status="abstained" if verdict is Verdict.INCONCLUSIVE else "ok",
        scope={"gate": comparison.gate, "confidence": comparison.confidence},
        warnings=[
            Warned("doubt", 1, said, "verdicts may rest on it") for said in _doubts(comparison)
        ],
        data={
            "verdict": verdict,
            "differences": [plain_difference(each) for each in comparison.differences],
        },
        exit_code=_CODES[verdict],
        text=lambda terminal: _text(title, comparison, terminal),
        markdown=lambda: _markdown(title, comparison),
        records=lambda: [_record(each) for each in comparison.differences],
    )


def _text(title: str, comparison: Comparison, terminal: Terminal) -> str:
    lines = [terminal.styled(f"{escape(title)}: {_counts(comparison)}", "bold"), ""]
    return "\n".join([*lines, *described(comparison, terminal)]).rstrip() + "\n"


def described(comparison: Comparison, terminal: Terminal) -> list[str]:
    """Give the table of differences, with what is open and doubtful below it."""
    lines = terminal.table(_COLUMNS, [_cells(each) for each in comparison.differences])
    notes = [*_open_questions(comparison), *_doubts(comparison)]
    return [
        *lines,
        "",
        *(line for note in notes for line in terminal.paragraph(escape(note), "  ")),
    ]


def _markdown(title: str, comparison: Comparison) -> str:
    lines = [f"### {markdown_cell(title)}: {_counts(comparison)}", ""]
    lines += markdown_table(
        [column.title for column in _COLUMNS],
        [_cells(each) for each in comparison.differences],
        [column.align for column in _COLUMNS],
    )
    notes = [*_open_questions(comparison), *_doubts(comparison)]
    lines += ["", *(f"- {markdown_cell(note)}" for note in notes)]
    return "\n".join(lines).rstrip() + "\n"


def _counts(comparison: Comparison) -> str:
    found = [difference.verdict for difference in comparison.differences]
    counts = ", ".join(f"{found.count(each)} {each}" for each in Verdict if each in found)
    terms = f"gate {share(comparison.gate)}, confidence {share(comparison.confidence)}"
    return f"{counts or 'nothing to compare'} ({terms})"


def _cells(difference: Difference) -> list[str]:
    medians = [
        duration(round(side.median_ns)) if side else "-"
        for side in (difference.base, difference.new)
    ]
    change, interval = "-", "-"
    if difference.change is not None and difference.interval is not None:
        change = _signed(difference.change)
        interval = " to ".join(map(_signed, difference.interval))
    measured = difference.design
    if measured == "separate":
        measured = "alternating" if difference.is_interleaved else "apart"
    n_runs = str(difference.n_runs)
    return [difference.verdict, difference.key, change, interval, *medians, n_runs, measured]


def _signed(change: float) -> str:
    return f"{100 * change:+.1f} %"


def _open_questions(comparison: Comparison) -> Iterator[str]:
    for difference in comparison.differences:
        if difference.verdict is Verdict.INCONCLUSIVE:
            yield f"{difference.key}: {difference.reason}"


def _doubts(comparison: Comparison) -> Iterator[str]:
    yield from comparison.warnings
    for difference in comparison.differences:
        yield from (f"{difference.key}: {warning}" for warning in difference.warnings)


def plain_difference(difference: Difference) -> dict[str, Any]:
    """Give all that is known of a key, intervals by their ends."""
    fields = asdict(difference)
    if difference.interval is not None:
        fields["interval"] = difference.interval._asdict()
    return fields


def _record(difference: Difference) -> Record:
    low, high = difference.interval or (None, None)
    base, new = difference.base, difference.new
    return {
        "key": difference.key,
        "verdict": difference.verdict,
        "reason": difference.reason,
        "change_share": difference.change,
        "change_low_share": low,
        "change_high_share": high,
        "p_value": difference.p_value,
        "base_median_ns": None if base is None else base.median_ns,
        "new_median_ns": None if new is None else new.median_ns,
        "base_runs": 0 if base is None else base.n_runs,
        "new_runs": 0 if new is None else new.n_runs,
        "design": difference.design,
        "smallest_change_share": difference.smallest_change,
    }
