"""The best candidate of a search, and those tied with it, as an answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.bench.tune.replay import Simulation
from longpole.bench.tune.search import Tuning
from longpole.cli.answer import exit_codes
from longpole.report.blocks import Column, Headline, Notes, Sentence, Table, tabulated
from longpole.report.document import Abstention, Document, Warned
from longpole.wording import count, duration, share

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from longpole.bench.tune.finals import Finalist
    from longpole.cli.answer.emit import Answer
    from longpole.report.blocks import Block, Cell, Value

__all__ = ["TuneData", "simulation_answer", "tuning_answer"]

_SCHEMA: Final = "longpole.tune/1"
_SHOWN_FAILURES: Final = 5
_STRATEGIES: Final[dict[Column, Value]] = {
    Column("strategy", "name"): "strategy",
    Column("found", "number"): lambda row: f"{row.n_found} of {row.n_searches}",
    Column("worse than the best", "share"): "regret",
    Column("at most", "share"): "worst_regret",
    Column("runs", "count"): lambda row: round(row.n_runs),
    Column("measuring", "share"): "measuring_share",
}

TuneData = Tuning | Simulation
_COLUMNS: Final = (
    Column("candidate", "name"),
    Column("value", "number"),
    Column("worse by", "change"),
    Column("interval", "number"),
    Column("runs", "number"),
    Column("verdict"),
)


def tuning_answer(
    task: str, results: str, found: Tuning, warnings: Sequence[Warned] = ()
) -> Answer:
    """Report the winner; exit code 4 without one."""
    document = Document(
        schema=_SCHEMA,
        input={"task": task, "results": results},
        status="ok" if found.winner else "abstained",
        abstains_because=[] if found.winner else [Abstention("no_result")],
        scope={"gate": found.gate, "confidence": found.confidence},
        warnings=warnings,
        data=found,
        blocks=lambda: list(_blocks(task, results, found)),
        records=lambda: [
            {"label": each.label, "outcome": each.outcome, "value": each.value, "runs": each.n_runs}
            for each in found.candidates
        ],
        columns=("label", "outcome", "value", "runs"),
    )
    return document, exit_codes.OK if found.winner else exit_codes.INCONCLUSIVE


def simulation_answer(results: str, found: Simulation) -> Answer:
    """Compare strategies on recorded runs."""
    document = Document(
        schema=_SCHEMA,
        input={"results": results},
        scope={"gate": found.gate},
        data=found,
        blocks=lambda: [
            Headline(
                f"{results}: {count(found.n_candidates, 'candidate')}, {found.n_failed} of them "
                f"failed; the best is {found.best}"
            ),
            Sentence(
                "Each search draws from the recorded runs. `found` counts choices that are worse "
                f"than the best by no more than {share(found.gate)}; `measuring` is the share of "
                "the time that running every candidate in full takes."
            ),
            tabulated(found.strategies, _STRATEGIES),
            Notes(["the choice is the best after screening, without finals"]),
        ],
        records=lambda: [each.to_dict() for each in found.strategies],
    )
    return document, exit_codes.OK


def _blocks(task: str, results: str, found: Tuning) -> Iterator[Block]:
    yield Headline(f"{task}: {_headline(found)}")
    if found.winner is not None:
        yield Sentence(_tied(found))
        yield Table(_COLUMNS, [_cells(found, each) for each in found.finalists])
    yield Notes([*_notes(found), f"results: {results}"])


def _headline(found: Tuning) -> str:
    winner = found.winner
    if winner is None:
        return (
            "no finalist worked when they were measured in turns"
            if found.outcomes.get("ok")
            else "no candidate worked"
        )
    said = f"{winner.label}: {_value(found, winner.value)}"
    if winner.is_baseline:
        return f"{said}, which is the baseline"
    if found.baseline is None or found.speedup is None:
        return f"{said}; the baseline failed"
    how = "fast" if found.metric == "time" else "good"
    said += f", {found.speedup:.2f} times as {how} as the baseline"
    ends = found.speedup_interval
    if ends is None:
        return f"{said} (too few runs for an interval)"
    return f"{said} ({ends.low:.2f} to {ends.high:.2f})"


def _tied(found: Tuning) -> str:
    """Describe the candidates tied with the winner."""
    if len(found.finalists) == 1:
        return "No other candidate was left to compare it with."
    if not found.tied:
        return f"It is better than every other finalist, with {share(found.confidence)} confidence."
    labels = "; ".join(each.label for each in found.tied)
    return f"It is tied with {count(len(found.tied), 'other finalist')}: {labels}."


def _cells(found: Tuning, each: Finalist) -> tuple[Cell, ...]:
    ends = each.worse_interval
    interval = None if ends is None else " to ".join(f"{100 * end:+.1f} %" for end in ends)
    verdict = "winner" if each is found.winner else "tied" if each.is_tied else "worse"
    verdict += ", baseline" if each.is_baseline else ""
    value = _value(found, each.value)
    return each.label, value, each.worse_by, interval, each.n_runs, verdict


def _value(found: Tuning, value: float) -> str:
    if found.unit == "ns":
        return duration(round(value))
    return f"{value:.4g} {found.unit}".strip()


def _notes(found: Tuning) -> Iterator[str]:
    if len(found.finalists) > 1:
        yield (
            f"with {share(found.confidence)} confidence, the best finalist is the winner or tied "
            f"with it; tied: not shown to be worse, or by no more than {share(found.gate)}"
        )
    n_tried = len(found.candidates)
    left = "constraints or the search left out the others; " if n_tried < found.n_points else ""
    outcomes = ", ".join(f"{number:,} {name}" for name, number in found.outcomes.items())
    yield (
        f"tried {n_tried:,} of {count(found.n_points, 'combination')} of the parameters "
        f"({found.strategy}); {left}outcomes: {outcomes}"
    )
    times = f"{found.screening_s:.1f} s of screening and {found.finals_s:.1f} s of finals"
    known = f"; {count(found.n_known, 'run')} came from an earlier search" if found.n_known else ""
    yield f"measured for {times}{known}"
    if found.outcomes.get("timeout"):
        yield "`timeout_s` in the table `candidate` of the task gives runs more time"
    failed = [each for each in found.candidates if each.outcome != "ok"]
    for each in failed[:_SHOWN_FAILURES]:
        yield f"{each.label}: {each.outcome}, {each.message}"
    if len(failed) > _SHOWN_FAILURES:
        yield f"{count(len(failed) - _SHOWN_FAILURES, 'more candidate')} failed; see --format json"
