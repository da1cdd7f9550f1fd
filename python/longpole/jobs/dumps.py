"""Analyses dumps of a hang: which call is incomplete, and which ranks lack it or wait in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from longpole.jobs.dump_set import DumpSet, OpenCall
from longpole.jobs.findings import RankFinding, finding_notes, has_or_have, listed
from longpole.report.blocks import Column, Sentence, Table, Value, tabulated
from longpole.words.data import Data, Row
from longpole.words.wording import escape

if TYPE_CHECKING:
    from longpole.report.blocks import Block
    from longpole.report.document import Record

_MOST_CALLS: Final = 8
_MOST_PLACES: Final = 6
_DISAGREE: Final = ("other operation", "other size", "other data type")


class DumpsData(Row):
    """Results from the dumps of a run."""

    n_ranks: int
    n_calls: int
    open_calls: tuple[OpenCall, ...]
    findings: tuple[RankFinding, ...]


@dataclass(frozen=True, slots=True)
class Dumps(Data):
    """The answer about the dumps of a run."""

    set: DumpSet

    @property
    def is_inconclusive(self) -> bool:
        """Whether no call is open, or only ranks without a dump are late."""
        calls = self.set.open_calls
        return not calls or not any(it.waits_for or self._disagreement(it) for it in calls)

    def __data__(self) -> DumpsData:
        return DumpsData(
            n_ranks=len(self.set),
            n_calls=self.set.calls.height,
            open_calls=self.set.open_calls,
            findings=self.set.findings,
        )

    def records(self) -> list[Record]:
        """Return a row for each rank and call in the dumps."""
        return self.set.members.to_dicts()

    def blocks(self) -> list[Block]:
        """Show which call hangs and which ranks it waits for, then the open calls."""
        calls = self.set.open_calls
        if not calls:
            told: list[Block] = [Sentence("All calls in the dumps are complete on all ranks.")]
            return [*told, *finding_notes(self.set.findings)]
        roots = [call for call in calls if call.is_root] or list(calls)
        told = [Sentence(text) for call in roots[:_MOST_CALLS] for text in self._about(call)]
        table = [self._table(calls)] if len(calls) > 1 else []
        return [*told, *table, *finding_notes(self.set.findings)]

    def _about(self, call: OpenCall) -> list[str]:
        name = escape(f"{call.operation} (call {call.sequence} of group {call.group})")
        said = [f"{self._state(call, name)} {self._what_next(call)}"]
        if call.last_complete is not None:
            said.append(f"Up to call {call.last_complete} of this group, all is complete.")
        late = set(call.waits_for) or {it.rank for it in call.places}
        places = [it for it in call.places if it.rank in late]
        said += [f"Rank {it.rank}: {escape(it.place)}." for it in places[:_MOST_PLACES]]
        return said

    def _state(self, call: OpenCall, name: str) -> str:
        waiting = call.started or call.scheduled
        if call.missing:
            late = f"{listed(call.missing)} {has_or_have(call.missing)} not called it"
            return f"{_who_waits(waiting)} in {name}; {late}."
        if call.scheduled and call.started:
            return (
                f"{_who_waits(waiting)} in {name}; {listed(call.scheduled)} called it, and it "
                "has not started there."
            )
        if call.completed:
            return f"{name} is complete on {listed(call.completed)} and not on {listed(waiting)}."
        if call.started:
            return f"All ranks with a dump are in {name}, and it does not end."
        return f"All ranks with a dump called {name}, and it has started on none."

    def _what_next(self, call: OpenCall) -> str:
        differs = self._disagreement(call)
        if differs:
            return f"They disagree: {escape(differs)}. Fix that first."
        if call.missing:
            return (
                "Look at what they do instead: they may be late, have taken another way, or died."
            )
        if call.scheduled and call.started:
            return "An earlier kernel or call on their streams blocks it."
        if call.absent:
            return f"Get the dumps of {listed(call.absent)}: they may not have called it."
        if call.scheduled and not call.started:
            return "Look at what runs before it on the GPUs."
        return "Look at the network, and at the log of the library (NCCL_DEBUG=INFO)."

    def _disagreement(self, call: OpenCall) -> str | None:
        found = (
            it.message
            for it in self.set.findings
            if it.kind in _DISAGREE and (it.group, it.sequence) == (call.group, call.sequence)
        )
        return next(found, None)

    def _table(self, calls: tuple[OpenCall, ...]) -> Table:
        columns: dict[Column, Value] = {
            Column("group", "name"): lambda it: escape(it.group),
            Column("call"): lambda it: str(it.sequence),
            Column("operation"): "operation",
            Column("missing"): lambda it: _short(it.missing),
            Column("not started"): lambda it: _short(it.scheduled),
            Column("waiting"): lambda it: _short(it.started),
            Column("complete"): lambda it: _short(it.completed),
        }
        return tabulated(calls[:_MOST_CALLS], columns)


def dumps(found: DumpSet) -> Dumps:
    """Find the incomplete call of a run, the ranks that lack it, and those that wait.

    Parameters
    ----------
    found
        From `read_dumps`.

    Examples
    --------
    >>> dumps(read_dumps("/tmp/dumps")).set.open_calls  # doctest: +SKIP
    """
    return Dumps(found)


def _short(ranks: tuple[int, ...]) -> str | None:
    return listed(ranks).partition(" ")[2] if ranks else None


def _who_waits(ranks: tuple[int, ...]) -> str:
    if not ranks:
        return "No rank waits"
    who = listed(ranks)
    return f"{who[:1].upper()}{who[1:]} {'waits' if len(ranks) == 1 else 'wait'}"
