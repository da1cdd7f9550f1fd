"""How much of a trace, or of recorded GEMMs, is tuned."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from longpole.cli.answer import exit_codes
from longpole.cli.answer.problems import require
from longpole.errors import ResultsError, TraceError
from longpole.words.wording import count, duration, share

if TYPE_CHECKING:
    import polars as pl

    from longpole.bench.tunableop import Coverage
    from longpole.cli.answer.emit import Answer
    from longpole.cli.ask.options import Options
    from longpole.tables.execution_coverage import ExecutionCoverage
    from longpole.tables.gemm_coverage import GemmCoverage
    from longpole.trace.trace import Trace

from longpole.cli.tunableop.rows import MOST_ROWS, rows_answer

_OTHER_KIND = "other_kind_of_file"
_KINDS: Final = {
    "unknown": "unknown: the shapes were not recorded, or the signature cannot be derived",
    "same_size": "same_size: a row has that size, but strides were not recorded",
    "not_tunable": "not_tunable: torch runs the operator without asking TunableOp",
}


def coverage_answer(
    subject: str, results: str, options: Options, step: int | None, execution: str | None
) -> Answer:
    """Answer how much of recorded GEMMs (.csv), a trace or an execution trace is tuned."""
    from longpole import read_trace

    if subject.endswith(".csv"):
        require(step is None and execution is None, "--step and --et are for a trace and RESULTS")
        return _of_recorded(subject, results)
    try:
        trace = read_trace(subject, vocabulary=options.vocabulary, threads=options.threads)
    except TraceError as error:
        if error.code != _OTHER_KIND or execution is not None or step is not None:
            raise
        return _of_execution(subject, results)
    return _of_trace(subject, trace, results, step, execution)


def _of_recorded(subject: str, results: str) -> Answer:
    from longpole.bench import tunableop

    return _coverage_answer(results, tunableop.coverage(subject, results))


def _of_execution(subject: str, results: str) -> Answer:
    from longpole.formats.convert.execution_trace import read_execution_trace
    from longpole.tables.execution_coverage import execution_coverage

    found = execution_coverage(read_execution_trace(subject), results)
    return execution_coverage_answer(results, found)


def _of_trace(
    subject: str, trace: Trace, results: str, step: int | None, execution: str | None
) -> Answer:
    from longpole.tables.gemm_coverage import gemm_coverage

    found = gemm_coverage(trace, results, step=step, execution=execution)
    if found is None:
        message = f"{subject} has no event with a duration"
        raise ResultsError(message)
    return gemm_coverage_answer(results, found)


def gemm_coverage_answer(results: str, found: GemmCoverage) -> Answer:
    """Report how much of a trace is tuned; exit code 1 if some is not, 4 without GEMMs."""
    from longpole.tables.gemm_coverage import GemmCoverageRow

    if found.share_of_gemm_time is None:
        headline = "no matrix product launched a kernel in this window"
    else:
        headline = (
            f"{share(found.share_of_gemm_time)} of {duration(found.gemm_ns)} in GEMMs is tuned; "
            f"tuned GEMMs are {share(found.share_of_path or 0)} of the critical path, "
            f"all GEMMs {share(found.gemm_path_ns / max(found.path_length_ns, 1))}"
        )
    notes = [f"window: {found.window.title}", *_notes_on(found)]
    code = exit_codes.INCONCLUSIVE if found.rows.is_empty() else exit_codes.FINDINGS
    return rows_answer(
        "show",
        results,
        headline,
        found,
        GemmCoverageRow,
        *("match", "name", "parameters", "solution", "calls", "kernel_ns", "path_ns"),
        notes=notes,
        most=MOST_ROWS,
        exit_code=exit_codes.OK if found.gemm_ns and found.tuned_ns == found.gemm_ns else code,
    )


def _notes_on(found: GemmCoverage) -> list[str]:
    notes = ["no tuning of a GEMM can gain more than its time on the path (path_ns)"]
    if wildcard := found.wildcard_share_of_gemm_time:
        notes.append(_wildcard_note(f"{share(wildcard)} of the time in GEMMs is"))
    notes += _kinds_in(found.rows)
    if found.path_status != "ok":
        notes.append(f"the critical path is {found.path_status}: its shares are not reliable")
    return notes


def execution_coverage_answer(results: str, found: ExecutionCoverage) -> Answer:
    """Report how many products of an execution trace are tuned; exit code 1 or 4 as above."""
    from longpole.tables.execution_coverage import ExecutionCoverageRow

    is_whole = found.n_tuned_calls == found.n_calls
    code = exit_codes.OK if is_whole else exit_codes.FINDINGS
    return _by_operations(
        results,
        (found.n_tuned_calls, f"{count(found.n_calls, 'call')} of GEMMs"),
        found.share_of_flops,
        found,
        ExecutionCoverageRow,
        *("match", "name", "parameters", "solution", "calls", "share_of_flops"),
        notes=[*_wildcards_of_calls(found), *_kinds_in(found.rows)],
        exit_code=code if found.n_calls else exit_codes.INCONCLUSIVE,
    )


def _wildcards_of_calls(found: ExecutionCoverage) -> list[str]:
    part = found.wildcard_share_of_flops
    return [_wildcard_note(f"{share(part)} of the flops is")] if part else []


def _kinds_in(rows: pl.DataFrame) -> list[str]:
    """Explain the kinds that occur in the rows."""
    kinds = set(rows["match"])
    return [text for kind, text in _KINDS.items() if kind in kinds]


def _coverage_answer(results: str, found: Coverage) -> Answer:
    """Report which recorded GEMMs are tuned; exit code 1 if some are not."""
    from longpole.bench.tunableop.coverage import CoverageRow
    from longpole.cli.tunableop.data import RecordedCoverage

    return _by_operations(
        results,
        (found.n_tuned, count(found.n_gemms, "GEMM")),
        found.share_of_flops,
        RecordedCoverage(
            n_gemms=found.n_gemms,
            n_tuned=found.n_tuned,
            n_wildcard=found.n_wildcard,
            wildcard_share=found.wildcard_share_of_flops,
            share=found.share_of_flops,
            rows=found.rows,
        ),
        CoverageRow,
        *("match", "operator", "parameters", "solution", "share_of_flops"),
        notes=_wildcards(found),
        exit_code=exit_codes.OK if found.n_tuned == found.n_gemms else exit_codes.FINDINGS,
    )


def _wildcards(found: Coverage) -> list[str]:
    """Return when torch uses the wildcard rows; empty if none matches."""
    if not found.n_wildcard:
        return []
    part = found.wildcard_share_of_flops
    flops = "" if part is None else f" ({share(part)} of the flops)"
    return [_wildcard_note(f"{count(found.n_wildcard, 'more GEMM')}{flops}")]


def _wildcard_note(what: str) -> str:
    """Return a note on when torch uses rows with wildcards."""
    return (
        f"{what} matched only by a row with wildcards, which torch uses from 2.15 on with "
        "PYTORCH_TUNABLEOP_WILDCARD_FALLBACK=1 and PYTORCH_TUNABLEOP_TUNING=0"
    )


def _by_operations(
    results: str,
    tuned: tuple[int, str],
    share_of_flops: float | None,
    data: Any,
    row: type,
    *shown: str,
    **others: Any,
) -> Answer:
    """Report how much is tuned if there are no times: the number of GEMMs, and of FLOPs."""
    flops = "" if share_of_flops is None else f", {share(share_of_flops)} of the flops"
    headline = f"{tuned[0]} of {tuned[1]} tuned{flops}"
    return rows_answer("show", results, headline, data, row, *shown, most=MOST_ROWS, **others)
