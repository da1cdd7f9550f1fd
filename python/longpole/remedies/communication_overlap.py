"""Communication without concurrent computation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.critical_path.changes import Scale
from longpole.remedies.late_rank import is_late
from longpole.remedies.model import Found, Remedy
from longpole.wording import duration

if TYPE_CHECKING:
    from collections.abc import Iterator

    from longpole.remedies.facts import Facts

__all__ = ["REMEDY"]

# Lower bound: half of the time that other kernels can hide is hidden (upper bound: all of it). Of
# the rest, this share remains, as with half of the bytes.
_CAREFUL: Final = 0.5
_STAYS: Final = 0.5


def _find(facts: Facts) -> Iterator[Found]:
    works = [work for work in facts.kernels if work.kind == "communication"]
    if not works or is_late(facts):
        return
    total_ns = sum(work.duration_ns for work in works)
    others_ns = sum(work.duration_ns for work in facts.kernels) - total_ns
    hidden = min(others_ns / max(total_ns, 1), 1.0)
    yield Found(
        careful=[Scale(by=1 - _CAREFUL * hidden, kind="communication")],
        hopeful=[Scale(by=_STAYS * (1 - hidden), kind="communication")],
        advice="Start communication earlier, or send fewer bytes",
        evidence=(
            f"it takes {duration(round(facts.per_window(total_ns)))} {facts.each}, "
            "with the wait for other ranks (`longpole ranks` of all traces tells it apart)"
        ),
        events=facts.longest(works),
    )


REMEDY: Final = Remedy(
    id="communication_overlap",
    side="communication",
    effort="configuration",
    needs="kernels that communicate",
    seen_by="communication on the critical path",
    change="half of the time that other kernels can hide, which is no longer than all of them "
    "take; at most, all of that time, and half of the rest, as with half of the bytes",
    not_when="other work hides it, or it mostly waits (see `late_rank`)",
    find=_find,
)
