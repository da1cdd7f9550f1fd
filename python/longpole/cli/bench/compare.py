"""`longpole bench compare`: what is faster in another run, or the best results of one."""

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
from longpole.cli.ask.options import (
    Options,
    answer_options,
    answers,
    force_option,
    top_option,
)
from longpole.cli.bench.results import MOST_RECORDS, results_answer
from longpole.cli.table import where_option
from longpole.report.blocks import Headline
from longpole.report.document import Abstention, Document, Warned
from longpole.words.data import Row
from longpole.words.wording import escape, share

if TYPE_CHECKING:
    from longpole.bench.comparison.differences import Comparison
    from longpole.cli.answer.emit import Answer
    from longpole.report.blocks import Block
    from longpole.report.document import Record

_SCHEMA: Final = "longpole.bench.compare/1"
_SIDES: Final = 2


class Compared(Row):
    """The result of a comparison."""

    verdict: Verdict
    """Most severe verdict of all keys."""
    differences: list[Difference]


@click.command()
@answers("longpole.cli.bench.compare:Compared", "longpole.cli.bench.results:Results")
@click.argument("base")
@click.argument("new", required=False)
@click.option(
    "--key",
    "keys",
    multiple=True,
    metavar="KEY",
    help="Key to compare. Given twice, the key of BASE and that of NEW, or of BASE without NEW.",
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
@click.option(
    "--by",
    metavar="key|tag=NAME|job|attempt",
    default="key",
    show_default=True,
    help="Rows for one file: the best result of each key or value of a tag, or the outcome of each"
    " job or attempt.",
)
@where_option
@top_option(MOST_RECORDS)
@click.option("--save", metavar="NAME", help="Save NEW, or one file, as the baseline NAME.")
@force_option
@answer_options
def compare(
    *,
    base: str,
    new: str | None,
    keys: tuple[str, ...],
    gate: float,
    confidence: float,
    by: str,
    where: str | None,
    top: int,
    save: str | None,
    force: bool,
    options: Options,
) -> int:
    """Show what became faster or slower from BASE to NEW, or the results of one file.

    BASE and NEW are results files, names of baselines, or output of benchmark tools that
    `longpole bench extract` reads; there, operations are keys. Keys of the same name are compared;
    --key given twice compares two keys of different names, also in one file. The exit code is
    1 if any key is slower by more than the gate, with its whole interval, 4 if none is but the
    data leaves it open for one, and 0 otherwise.

    Without NEW and --key, show the fastest result of each key, or with --by job the outcome of
    each job. Only successful runs are chosen; times that are zero, negative, infinite or NaN
    are ignored. The exit code is 4 if there is nothing to choose from. --where selects jobs by
    the columns of --format csv, and by the named groups of a regex= format in their best result.

    Baselines are in .longpole/baselines, or in the folder that LONGPOLE_BASELINES names.

    \b
    Examples:
      longpole bench compare base.jsonl new.jsonl
      longpole bench compare main new.jsonl --gate 2% --format md
      longpole bench compare hyperfine-old.json hyperfine-new.json
      longpole bench compare times.jsonl --key kernels:old --key kernels:new
      longpole bench compare jobs.results.jsonl --by job --where "outcome = 'timeout'"
      longpole bench compare results.jsonl --save main
    """
    from longpole.bench import compare as compare_measurements

    require(confidence, "--confidence must be above 0")
    require(len(keys) <= _SIDES, "--key is given at most twice: for BASE and for NEW")
    require(len(keys) != 1 or new, "give NEW, or --key twice to compare two keys of one file")
    is_one = new is None and not keys
    require(is_one or (by == "key" and where is None), "--by and --where are for one file")
    if save:
        _save(save, new or base, force=force)
    if is_one:
        return options.emit(results_answer(base, by=by, where=where, top=top))
    base_key, new_key = (keys[0], keys[-1]) if keys else (None, None)
    comparison = compare_measurements(
        base, new or base, gate, confidence=confidence, base_key=base_key, new_key=new_key
    )
    title = f"{base_key or base} to {new_key or new}"
    answer = _answer(title, {"base": base, "new": new or base}, comparison)
    return options.emit(answer)


def _answer(title: str, inputs: dict[str, str], comparison: Comparison) -> Answer:
    verdict = comparison.verdict
    code = _code(comparison)
    is_open = code == exit_codes.INCONCLUSIVE
    document = Document(
        schema=_SCHEMA,
        input=inputs,
        status="abstained" if is_open else "ok",
        abstains_because=[Abstention("noise")] if is_open else [],
        scope={"gate": comparison.gate, "confidence": comparison.confidence},
        warnings=[
            Warned("uncertain", 1, said, "verdicts may depend on it")
            for said in warnings_of(comparison)
        ],
        data=Compared(verdict=verdict, differences=list(comparison.differences)),
        blocks=lambda: _blocks(title, comparison),
        records=lambda: [_record(each) for each in comparison.differences],
    )
    return document, code


def _code(comparison: Comparison) -> int:
    """Return 1 if a key is slower by more than the gate, 4 if that is open for one, else 0."""
    beyond = {each.is_beyond(comparison.gate) for each in comparison.differences}
    if True in beyond:
        return exit_codes.FINDINGS
    is_open = None in beyond or comparison.verdict is Verdict.INCONCLUSIVE
    return exit_codes.INCONCLUSIVE if is_open else exit_codes.OK


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


def _save(name: str, results: str, *, force: bool) -> None:
    """Save a results file as a baseline."""
    from longpole.bench import save_baseline
    from longpole.bench.records.baselines import baseline_path

    with usage_errors():
        require(
            force or not baseline_path(name).exists(),
            f"the baseline {name} already exists; -f replaces it",
        )
        path = save_baseline(name, results, overwrite=force)
    sys.stderr.write(f"kept as {escape(str(path))}\n")
