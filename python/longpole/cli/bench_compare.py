"""`longpole bench compare`: what became faster or slower."""

from __future__ import annotations

import json
from dataclasses import asdict
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Final

import click

from longpole.bench.compare import Verdict
from longpole.cli import exit_codes
from longpole.cli.durations import duration_text
from longpole.cli.shares import change_text, share, share_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from longpole.bench.compare import Comparison, Difference

__all__ = ["compare"]

SCHEMA: Final = "longpole.bench.comparison/1"

_CODES: Final = {
    Verdict.SLOWER: exit_codes.FINDINGS,
    Verdict.INCONCLUSIVE: exit_codes.INCONCLUSIVE,
    Verdict.FASTER: exit_codes.OK,
    Verdict.SAME: exit_codes.OK,
}


@click.command
@click.argument("base")
@click.argument("new")
@click.option(
    "--gate",
    type=share,
    metavar="SHARE",
    default="3%",
    show_default=True,
    help="The smallest change that matters, as 3% or 0.03.",
)
@click.option(
    "--confidence",
    type=share,
    metavar="SHARE",
    default="95%",
    show_default=True,
    help="How sure a verdict has to be.",
)
@click.option(
    "--format",
    "layout",
    type=click.Choice(["text", "json", "md"]),
    default="text",
    show_default=True,
    help="How to write the result.",
)
def compare(base: str, new: str, *, gate: float, confidence: float, layout: str) -> int:
    """Say what became faster or slower from BASE to NEW.

    Each is a file of results, or the name of a baseline. The exit code is 1 where anything
    became slower, 4 where nothing did but something could not be told, and 0 otherwise.

    Example: longpole bench compare main new.jsonl --gate 2%
    """
    from longpole.bench.compare import compare as compare_measurements
    from longpole.errors import LongpoleError

    if not 0 < confidence < 1:
        message = "a confidence lies between 0 and 100 %"
        raise click.UsageError(message)
    try:
        comparison = compare_measurements(base, new, gate, confidence=confidence)
    except (LongpoleError, OSError) as error:
        click.echo(f"error: {error}", err=True)
        return exit_codes.UNREADABLE
    click.echo(_LAYOUTS[layout](comparison, (base, new)))
    return _CODES[comparison.verdict]


def _as_text(comparison: Comparison, _: tuple[str, str]) -> str:
    rows = [_cells(difference) for difference in comparison.differences]
    lines = [*_aligned(rows), _verdict_line(comparison)]
    lines += (f"warning: {warning}" for warning in _all_warnings(comparison))
    return "\n".join(_printable(line) for line in lines)


def _as_markdown(comparison: Comparison, _: tuple[str, str]) -> str:
    header = ("verdict", "key", "change", "interval", "base", "new", "why")
    rows = [header, ("---",) * len(header), *map(_cells, comparison.differences)]
    lines = [f"| {' | '.join(_escaped(cell) for cell in row)} |" for row in rows]
    lines += ["", _verdict_line(comparison)]
    lines += (f"- {_escaped(warning)}" for warning in _all_warnings(comparison))
    return "\n".join(lines)


def _as_json(comparison: Comparison, inputs: tuple[str, str]) -> str:
    envelope = {
        "schema": SCHEMA,
        "tool": {"name": "longpole", "version": version("longpole")},
        "inputs": dict(zip(("base", "new"), inputs, strict=True)),
        "scope": {"gate": comparison.gate, "confidence": comparison.confidence},
        "status": comparison.verdict,
        "warnings": comparison.warnings,
        "data": [_row(difference) for difference in comparison.differences],
        "truncated": False,
    }
    return json.dumps(envelope, indent=2)


_LAYOUTS: Final = {"text": _as_text, "json": _as_json, "md": _as_markdown}


def _row(difference: Difference) -> dict[str, Any]:
    """Give one key with all that is known of it, intervals by their ends."""
    row = asdict(difference)
    for summary in (row["base"], row["new"]):
        if summary is not None:
            summary["interval_ns"] = summary["interval_ns"]._asdict()
    if difference.interval is not None:
        row["interval"] = difference.interval._asdict()
    return row


def _cells(difference: Difference) -> tuple[str, ...]:
    medians = [
        duration_text(summary.median_ns) if summary else "-"
        for summary in (difference.base, difference.new)
    ]
    change, interval = "-", "-"
    if difference.change is not None and difference.interval is not None:
        change = change_text(difference.change)
        interval = " to ".join(map(change_text, difference.interval))
    return (difference.verdict, difference.key, change, interval, *medians, difference.reason)


def _aligned(rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        yield "  ".join(cells).rstrip()


def _verdict_line(comparison: Comparison) -> str:
    found = [difference.verdict for difference in comparison.differences]
    counts = ", ".join(f"{found.count(each)} {each}" for each in Verdict if each in found)
    gate, confidence = share_text(comparison.gate), share_text(comparison.confidence)
    return f"{counts or 'nothing to compare'} (gate {gate}, confidence {confidence})"


def _all_warnings(comparison: Comparison) -> Iterator[str]:
    yield from comparison.warnings
    for difference in comparison.differences:
        yield from (f"{difference.key}: {warning}" for warning in difference.warnings)


def _escaped(text: str) -> str:
    return _printable(text).replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;")


def _printable(text: Iterable[str]) -> str:
    """Keep keys, which come from a file, from steering the terminal."""
    return "".join(sign if sign.isprintable() else ascii(sign)[1:-1] for sign in text)
