"""Collectives that mostly wait for another rank."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.engine.critical_path.changes import Scale
from longpole.remedies.model import Found, Remedy
from longpole.words.wording import duration, short_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from longpole.remedies.facts import Facts

# Minimum share of waiting in the time of collectives for them to be reported.
_MOSTLY_WAITING: Final = 0.5


def is_late(facts: Facts) -> bool:
    """Whether collectives mostly wait for another rank."""
    awaited = facts.parts["awaited"]
    return awaited is not None and (awaited["waiting_ns"] >= _MOSTLY_WAITING * awaited["total_ns"])


def _find(facts: Facts) -> Iterator[Found]:
    awaited = facts.parts["awaited"]
    works = [work for work in facts.kernels if work.kind == "communication"]
    if not works or awaited is None or not is_late(facts):
        return
    total_ns = max(awaited["total_ns"], 1)
    peer_ns = min(awaited["peer_ns"], awaited["waiting_ns"])
    yield Found(
        careful=[Scale(by=1 - peer_ns / total_ns, kind="communication")],
        hopeful=[Scale(by=1 - awaited["waiting_ns"] / total_ns, kind="communication")],
        advice=f"See what makes rank {awaited['peer']} of the group late",
        evidence=(
            f"collectives wait for {duration(awaited['waiting_ns'])} of "
            f"{duration(awaited['total_ns'])}, of which {duration(peer_ns)} for this rank in "
            f"{short_name(awaited['name'])}"
        ),
        events=facts.longest(works),
    )


REMEDY: Final = Remedy(
    id="late_rank",
    side="communication",
    effort="code",
    needs="tasks of collectives, as profilers of Ascend record them; else traces of all ranks "
    "(`longpole ranks`)",
    seen_by="collectives that wait for other ranks for at least half of their time",
    change="the wait for the rank that is awaited longest in one collective; at most, all "
    "waiting of collectives",
    not_when="collectives mostly transfer, or the trace does not show for whom they wait",
    depends_on_ranks=True,
    is_measured=False,
    find=_find,
)
