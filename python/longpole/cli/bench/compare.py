"""`longpole bench compare`: report what is faster, slower or the same in two runs."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

import click

from longpole.bench.compare.comparison import Verdict
from longpole.cli.answer import exit_codes
from longpole.cli.answer.emit import emit
from longpole.cli.ask.options import Options, shared_options
from longpole.cli.ask.shares import parse_share
from longpole.report.blocks import Column, Headline, Notes, Table
from longpole.report.document import Document, Warned
from longpole.report.terminal import Terminal
from longpole.wording import share

if TYPE_CHECKING:
    from collections.abc import Iterator

    from longpole.bench.compare.comparison import Comparison, Difference
    from longpole.cli.answer.emit import Answer
    from longpole.report.blocks import Block, Cell
    from longpole.report.document import Record

__all__ = ["compare"]

_SCHEMA: Final = "longpole.bench.compare/1"
_CODES: Final = {
    Verdict.SLOWER: exit_codes.FINDINGS,
    Verdict.INCONCLUSIVE: exit_codes.INCONCLUSIVE,
    Verdict.FASTER: exit_codes.OK,
    Verdict.SAME: exit_codes.OK,
}
_COLUMNS: Final = (
    Column("verdict"),
    Column("key", "name"),
    Column("change", "change"),
    Column("interval", "number"),
    Column("base", "duration"),
    Column("new", "duration"),
)


@click.command()
@click.argument("base")
@click.argument("new")
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
    help="How sure a verdict has to be.",
)
@shared_options
def compare(*, base: str, new: str, gate: float, confidence: float, options: Options) -> int:
    """Say what became faster or slower from BASE to NEW.

    Each is a file of results, or the name of a baseline. Exits with 1 where anything became
    slower, with 4 where nothing did but something could not be told, and with 0 otherwise.

    \b
    Examples:
      longpole bench compare base.jsonl new.jsonl
      longpole bench compare main new.jsonl --gate 2% --format md
    """
    from longpole.bench import compare as compare_measurements

    if not confidence:
        message = "a confidence of 0 says nothing"
        raise click.UsageError(message)
    comparison = compare_measurements(base, new, gate, confidence=confidence)
    answer = _answer(f"{base} to {new}", {"base": base, "new": new}, comparison)
    return emit([answer], options.form, Terminal.of(sys.stdout, options.color))


def _answer(title: str, inputs: dict[str, str], comparison: Comparison) -> Answer:
    verdict = comparison.verdict
    document = Document(
        schema=_SCHEMA,
        input=inputs,
        status="abstained" if verdict is Verdict.INCONCLUSIVE else "ok",
        scope={"gate": comparison.gate, "confidence": comparison.confidence},
        warnings=[
            Warned("uncertain", 1, said, "verdicts may rest on it")
            for said in _warnings(comparison)
        ],
        data={
            "verdict": verdict,
            "differences": [_plain(each) for each in comparison.differences],
        },
        blocks=lambda: _blocks(title, comparison),
        records=lambda: [_record(each) for each in comparison.differences],
    )
    return document, _CODES[verdict]


def _blocks(title: str, comparison: Comparison) -> list[Block]:
    notes = [*_open_questions(comparison), *_warnings(comparison)]
    return [
        Headline(f"{title}: {_counts(comparison)}"),
        Table(_COLUMNS, [_cells(each) for each in comparison.differences]),
        *([Notes(notes)] if notes else []),
    ]


def _counts(comparison: Comparison) -> str:
    found = [difference.verdict for difference in comparison.differences]
    counts = ", ".join(f"{found.count(each)} {each}" for each in Verdict if each in found)
    terms = f"gate {share(comparison.gate)}, confidence {share(comparison.confidence)}"
    return f"{counts or 'nothing to compare'} ({terms})"


def _cells(difference: Difference) -> tuple[Cell, ...]:
    base, new = (side.median_ns if side else None for side in (difference.base, difference.new))
    interval = None
    if difference.interval is not None:
        interval = " to ".join(f"{100 * end:+.1f} %" for end in difference.interval)
    return difference.verdict, difference.key, difference.change, interval, base, new


def _open_questions(comparison: Comparison) -> Iterator[str]:
    for difference in comparison.differences:
        if difference.verdict is Verdict.INCONCLUSIVE:
            yield f"{difference.key}: {difference.reason}"


def _warnings(comparison: Comparison) -> Iterator[str]:
    yield from comparison.warnings
    for difference in comparison.differences:
        yield from (f"{difference.key}: {warning}" for warning in difference.warnings)


def _plain(difference: Difference) -> dict[str, Any]:
    """Give all that is known of a key, intervals by their ends."""
    fields = asdict(difference)
    for side in filter(None, (fields["base"], fields["new"])):
        side["interval_ns"] = side["interval_ns"]._asdict()
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
        "base_samples": 0 if base is None else base.n_samples,
        "new_samples": 0 if new is None else new.n_samples,
    }
