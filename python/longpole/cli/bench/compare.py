"""`longpole bench compare` and `baseline`: what is faster, slower or the same in two runs."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

import click

from longpole.bench.comparison.differences import (
    Difference,
    Verdict,
    comparison_blocks,
    warnings_of,
)
from longpole.cli.answer import exit_codes
from longpole.cli.answer.problems import require, usage_errors
from longpole.cli.ask.numbers import gate_option, parse_share
from longpole.cli.ask.options import Options, answer_options, answers, force_option
from longpole.report.blocks import Headline
from longpole.report.document import Abstention, Document, Warned
from longpole.words.data import Row
from longpole.words.wording import escape, share

if TYPE_CHECKING:
    from longpole.bench.comparison.compare import Comparison
    from longpole.cli.answer.emit import Answer
    from longpole.report.blocks import Block
    from longpole.report.document import Record

__all__ = ["baseline", "compare"]

_SCHEMA: Final = "longpole.bench.compare/1"
_CODES: Final = {
    Verdict.SLOWER: exit_codes.FINDINGS,
    Verdict.INCONCLUSIVE: exit_codes.INCONCLUSIVE,
    Verdict.FASTER: exit_codes.OK,
    Verdict.SAME: exit_codes.OK,
}


class Compared(Row):
    """The result of a comparison."""

    verdict: Verdict
    """Most severe verdict of all keys."""
    differences: list[Difference]


@click.command()
@answers("longpole.cli.bench.compare:Compared")
@click.argument("base")
@click.argument("new", required=False)
@click.option("--base-key", metavar="KEY", help="Key of BASE to compare.")
@click.option(
    "--new-key", metavar="KEY", help="Key of NEW to compare with, or of BASE if NEW is not given."
)
@gate_option
@click.option(
    "--confidence",
    type=parse_share,
    metavar="SHARE",
    default="95%",
    show_default=True,
    help="Confidence level for all verdicts together.",
)
@answer_options
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
    """Show what became faster or slower from BASE to NEW.

    BASE and NEW are results files, names of baselines, or output of benchmark tools that
    `longpole bench extract` reads; there, operations are keys. Keys of the same name are compared;
    --base-key and --new-key compare two keys of different names, also in one file. The exit
    code is 1 if any key became slower, 4 if none did but at least one is inconclusive, and
    0 otherwise.

    \b
    Examples:
      longpole bench compare base.jsonl new.jsonl
      longpole bench compare main new.jsonl --gate 2% --format md
      longpole bench compare hyperfine-old.json hyperfine-new.json
      longpole bench compare times.jsonl --base-key kernels:old --new-key kernels:new
    """
    from longpole.bench import compare as compare_measurements

    require(confidence, "--confidence must be above 0")
    require(new is not None or (base_key and new_key), "give NEW, or --base-key and --new-key")
    comparison = compare_measurements(
        base, new or base, gate, confidence=confidence, base_key=base_key, new_key=new_key
    )
    title = f"{base_key or base} to {new_key or new}"
    answer = _answer(title, {"base": base, "new": new or base}, comparison)
    return options.emit(answer)


def _answer(title: str, inputs: dict[str, str], comparison: Comparison) -> Answer:
    verdict = comparison.verdict
    document = Document(
        schema=_SCHEMA,
        input=inputs,
        status="abstained" if verdict is Verdict.INCONCLUSIVE else "ok",
        abstains_because=[Abstention("noise")] if verdict is Verdict.INCONCLUSIVE else [],
        scope={"gate": comparison.gate, "confidence": comparison.confidence},
        warnings=[
            Warned("uncertain", 1, said, "verdicts may depend on it")
            for said in warnings_of(comparison)
        ],
        data=Compared(verdict=verdict, differences=list(comparison.differences)),
        blocks=lambda: _blocks(title, comparison),
        records=lambda: [_record(each) for each in comparison.differences],
    )
    return document, _CODES[verdict]


def _blocks(title: str, comparison: Comparison) -> list[Block]:
    return [Headline(f"{title}: {_counts(comparison)}"), *comparison_blocks(comparison)]


def _counts(comparison: Comparison) -> str:
    found = [difference.verdict for difference in comparison.differences]
    counts = ", ".join(f"{found.count(each)} {each}" for each in Verdict if each in found)
    terms = f"gate {share(comparison.gate)}, confidence {share(comparison.confidence)}"
    return f"{counts or 'nothing to compare'} ({terms})"


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


@click.command()
@click.argument("name")
@click.argument("results")
@force_option
def baseline(*, name: str, results: str, force: bool) -> int:
    """Save the file RESULTS as the baseline NAME, to compare later results with.

    Baselines are in .longpole/baselines, or in the folder that LONGPOLE_BASELINES names.

    \b
    Example:
      longpole bench baseline main results.jsonl
    """
    from longpole.bench import save_baseline
    from longpole.bench.records.baselines import baseline_path

    with usage_errors():
        require(
            force or not baseline_path(name).exists(),
            f"the baseline {name} already exists; -f replaces it",
        )
        path = save_baseline(name, results, overwrite=force)
    sys.stderr.write(f"kept as {escape(str(path))}\n")
    return exit_codes.OK
