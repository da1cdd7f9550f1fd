"""Disagreements between the files of a run and missing data, and phrases for ranks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from longpole.report.blocks import Notes
from longpole.words.wording import count, escape

if TYPE_CHECKING:
    from collections.abc import Container, Sequence

    from longpole.jobs.reading import ReadRank

NOT_A_TRACE: Final = "not a trace"
_MOST_SHOWN: Final = 8
_WHY_UNMATCHED: Final = (
    "calls that cannot be matched have no sequence number (recent versions of PyTorch record it); "
    "their ends agree closely enough with no similar call of another rank, or with several"
)


@dataclass(frozen=True, slots=True)
class RankFinding:
    """A disagreement between the files of a run, or something they lack."""

    kind: str
    message: str
    ranks: tuple[int, ...] = ()
    """The ranks that lack something or differ."""
    others: tuple[int, ...] = ()
    """The ranks on the other side."""
    group: str | None = None
    sequence: int | None = None
    count: int = 1
    values: tuple[str, ...] = ()
    """The value of each of `ranks`, then of `others`."""


def in_order(read: Sequence[ReadRank]) -> tuple[list[ReadRank], list[RankFinding]]:
    """Sort the ranks; report unreadable files and duplicate ranks.

    A file that is not a trace counts as a rank only if its name contains a number that no trace
    has.
    """
    kept: dict[int, ReadRank] = {}
    unnumbered: list[ReadRank] = []
    findings = []
    named_ranks = {rank.source.named_rank for rank in read if rank.reduced is not None} | {None}
    for rank in read:
        if rank.reduced is None:
            findings.append(_unread(rank, named_ranks))
            continue
        if rank.damage is not None:
            findings.append(_damaged(rank))
        number, named = rank.reduced.rank, rank.source.named_rank
        if number is not None and named is not None and number != named:
            message = f"{rank.source.path} contains rank {number}, but its name says {named}"
            findings.append(RankFinding("files disagree", message, (number,)))
        if number is None:
            unnumbered.append(rank)
        elif number in kept:
            message = f"rank {number} has several files; {rank.source.path} is ignored"
            findings.append(RankFinding("duplicate rank", message, (number,)))
        else:
            kept[number] = rank
    if unnumbered and kept:
        for rank in unnumbered:
            message = f"{rank.source.path} does not contain its rank and is ignored"
            findings.append(RankFinding("unknown rank", message))
        unnumbered = []
    ordered = [kept[number] for number in sorted(kept)] or unnumbered
    return ordered, findings


def _damaged(rank: ReadRank) -> RankFinding:
    path, sentence = rank.source.path, "" if rank.damage is None else rank.damage.sentence
    ranks = () if rank.rank is None else (rank.rank,)
    return RankFinding("damaged trace", f"{path}: {sentence}", ranks)


def _unread(rank: ReadRank, named_ranks: Container[int | None]) -> RankFinding:
    path, named = rank.source.path, rank.source.named_rank
    if rank.is_trace or named not in named_ranks:
        problem = str(rank.problem).removeprefix(f"{path}: ")
        left_out = "" if named is None else f", so rank {named} is left out"
        return RankFinding("unreadable rank", f"{path} cannot be read{left_out}: {problem}")
    return RankFinding(NOT_A_TRACE, f"{path} is not a trace: it has no `traceEvents`")


def disagreement(
    row: tuple[Any, ...], numbers: Sequence[int], *, may_lie_outside: bool = True
) -> RankFinding:
    """Describe what ranks disagree about; a missing call may lie outside the recording."""
    kind, group, sequence, n_calls, ranks, others, values, _, is_at_edge = row
    these = tuple(numbers[place] for place in ranks)
    those = tuple(numbers[place] for place in others)
    where = f"group {group}, " if group else ""
    which = where + (f"call {sequence}" if sequence is not None else "a call")
    if kind == "missing call":
        message = f"{which} ({values[0]}) is missing on {listed(these)}"
        if n_calls > 1:
            message += f", as are the {n_calls - 1} after it"
        if is_at_edge and may_lie_outside:
            message += "; it may be outside the recording there"
    elif kind == "ambiguous alignment":
        message = f"{where}several alignments fit the calls of {listed((*these, *those))}"
    elif kind == "unmatched call":
        message = f"{where}{count(n_calls, 'call')} of {listed(these)} cannot be matched"
    else:
        said = ", ".join(dict.fromkeys(values))
        message = f"{which}: {kind} on {listed(these)} ({said})"
    return RankFinding(kind, message, these, those, group, sequence, n_calls, tuple(values))


def finding_notes(findings: Sequence[RankFinding]) -> list[Notes]:
    """Return the first findings as notes, and the number of further ones."""
    notes = [escape(finding.message) for finding in findings[:_MOST_SHOWN]]
    if len(findings) > len(notes):
        notes.append(f"and {count(len(findings) - len(notes), 'finding')} more: see --json")
    if any(finding.kind == "unmatched call" for finding in findings):
        notes.append(_WHY_UNMATCHED)
    return [Notes(notes)] if notes else []


def listed(ranks: Sequence[int]) -> str:
    """Return ranks as a phrase.

    Examples
    --------
    >>> listed([3]), listed([1, 0]), listed([0, 2]), listed([0, 1, 34]), listed([0, 1, 2, 6])
    ('rank 3', 'ranks 0 and 1', 'ranks 0 and 2', 'ranks 0, 1, 34', 'ranks 0-2, 6')
    """
    runs: list[list[int]] = []
    for rank in sorted(set(ranks)):
        if runs and rank == runs[-1][-1] + 1:
            runs[-1].append(rank)
        else:
            runs.append([rank])
    words = [
        word
        for run in runs
        for word in ([f"{run[0]}-{run[-1]}"] if len(run) > 2 else map(str, run))  # noqa: PLR2004
    ]
    n_ranks = len(set(ranks))
    joined = (" and " if n_ranks == 2 else ", ").join(words)  # noqa: PLR2004
    return f"{'rank' if n_ranks == 1 else 'ranks'} {joined}"


def has_or_have(ranks: Sequence[int]) -> str:
    """Return `has` or `have`, to agree with the number of ranks."""
    return "has" if len(ranks) == 1 else "have"
