"""Communication without concurrent computation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.critical_path.changes import Drop, Scale
from longpole.remedies.late_rank import is_late
from longpole.remedies.model import Found, Remedy
from longpole.wording import duration

if TYPE_CHECKING:
    from collections.abc import Iterator

    from longpole.remedies.facts import Facts

__all__ = ["REMEDY"]

# At least half of the exposed communication can start earlier or send fewer bytes.
_CAREFUL: Final = 0.5


def _find(facts: Facts) -> Iterator[Found]:
    works = [work for work in facts.kernels if work.kind == "communication"]
    if not works or is_late(facts):
        return
    total_ns = round(facts.per_window(sum(work.duration_ns for work in works)))
    yield Found(
        careful=[Scale(by=_CAREFUL, kind="communication")],
        hopeful=[Drop(kind="communication")],
        advice="Start communication earlier, or send fewer bytes",
        evidence=f"it takes {duration(total_ns)} a {facts.parts['unit']}",
        events=facts.longest(works),
    )


REMEDY: Final = Remedy(
    id="communication_overlap",
    side="communication",
    effort="configuration",
    needs="kernels that communicate",
    seen_by="communication on the critical path",
    change="half of its time; at most, all of it",
    not_when="other work hides it, or it mostly waits (see `late_rank`)",
    find=_find,
)
