"""How much of the matrix products of a trace is tuned, as answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.analyses.execution_coverage import ExecutionCoverageRow
from longpole.analyses.gemm_coverage import GemmCoverageRow
from longpole.cli.answer import exit_codes
from longpole.cli.answer.tunableop import MOST_ROWS, by_operations, rows_answer, wildcard_note
from longpole.wording import count, duration, share

if TYPE_CHECKING:
    import polars as pl

    from longpole.analyses.execution_coverage import ExecutionCoverage
    from longpole.analyses.gemm_coverage import GemmCoverage
    from longpole.cli.answer.emit import Answer

__all__ = ["execution_coverage_answer", "gemm_coverage_answer"]

_KINDS: Final = {
    "unknown": "unknown: the shapes were not recorded, or the signature cannot be derived",
    "same_size": "same_size: a row has that size, but strides were not recorded",
    "not_tunable": "not_tunable: torch runs the operator without asking TunableOp",
}


def gemm_coverage_answer(results: str, found: GemmCoverage) -> Answer:
    """Report how much of a trace is tuned; exit code 1 if some is not, 4 without GEMMs."""
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
        "coverage",
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
        notes.append(wildcard_note(f"{share(wildcard)} of the time in GEMMs is"))
    notes += _kinds_in(found.rows)
    if found.path_status != "ok":
        notes.append(f"the critical path is {found.path_status}: its shares are not reliable")
    return notes


def execution_coverage_answer(results: str, found: ExecutionCoverage) -> Answer:
    """Report how many products of an execution trace are tuned; exit code 1 or 4 as above."""
    is_whole = found.n_tuned_calls == found.n_calls
    code = exit_codes.OK if is_whole else exit_codes.FINDINGS
    return by_operations(
        results,
        (found.n_tuned_calls, f"{count(found.n_calls, 'call')} of GEMMs"),
        found.share_of_flops,
        found,
        ExecutionCoverageRow,
        *("match", "name", "parameters", "solution", "calls", "share_of_flops"),
        notes=[*_wildcards(found), *_kinds_in(found.rows)],
        exit_code=code if found.n_calls else exit_codes.INCONCLUSIVE,
    )


def _wildcards(found: ExecutionCoverage) -> list[str]:
    part = found.wildcard_share_of_flops
    return [wildcard_note(f"{share(part)} of the flops is")] if part else []


def _kinds_in(rows: pl.DataFrame) -> list[str]:
    """Explain the kinds that occur in the rows."""
    kinds = set(rows["match"])
    return [text for kind, text in _KINDS.items() if kind in kinds]
