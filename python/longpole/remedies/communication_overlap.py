"""Communication that nothing hides."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.critical_path.changes import Drop, Scale
from longpole.remedies.model import Found, Remedy
from longpole.wording import duration, short_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from longpole.remedies.facts import Facts

__all__ = ["REMEDY"]

# Of exposed communication at least half can be started earlier or sent in fewer bytes.
_CAREFUL: Final = 0.5

# From this share of their time on, collectives are said to wait.
_MOSTLY_WAITING: Final = 0.5


def _find(facts: Facts) -> Iterator[Found]:
    works = [work for work in facts.kernels if work.kind == "communication"]
    if not works:
        return
    awaited = facts.parts["awaited"]
    if awaited is not None and awaited["waiting_ns"] >= _MOSTLY_WAITING * awaited["total_ns"]:
        peer_ns = min(awaited["peer_ns"], awaited["waiting_ns"])
        advice = f"See what makes rank {awaited['peer']} of the group late"
        evidence = (
            f"collectives wait for {duration(awaited['waiting_ns'])} of "
            f"{duration(awaited['total_ns'])}, of which {duration(peer_ns)} for this rank in "
            f"{short_name(awaited['name'])}"
        )
    else:
        total_ns = round(facts.per_window(sum(work.duration_ns for work in works)))
        advice = "Start communication earlier, or send fewer bytes"
        evidence = f"it takes {duration(total_ns)} a {facts.parts['unit']}"
    yield Found(
        careful=[Scale(by=_CAREFUL, kind="communication")],
        hopeful=[Drop(kind="communication")],
        advice=advice,
        evidence=evidence,
        events=facts.longest(works),
    )


REMEDY: Final = Remedy(
    id="communication_overlap",
    side="communication",
    effort="configuration",
    needs="kernels that communicate; traces of all ranks tell which one is late",
    seen_by="communication on the critical path",
    change="half of its time; at the most, all of it",
    not_when="other work hides it",
    find=_find,
)
