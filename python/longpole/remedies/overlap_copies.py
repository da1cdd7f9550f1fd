"""Copies between host and GPU, or on the GPU, without concurrent computation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.engine.critical_path.changes import Scale
from longpole.remedies.model import Found, Remedy
from longpole.words.wording import count, duration

if TYPE_CHECKING:
    from collections.abc import Iterator

    from longpole.remedies.facts import Facts

# Lower bound of the fraction that is hidden of the time that other GPU work can hide.
_CAREFUL: Final = 0.75


def _find(facts: Facts) -> Iterator[Found]:
    between = [row for row in facts.copies if facts.direction(row.event) != "DtoD"]
    copies = [row for row in between if not any(facts.core.pageable_ends(row.event))]
    total_ns = sum(row.duration_ns for row in copies)
    if not copies or not facts.is_worth(total_ns):
        return
    events = [row.event for row in copies]
    kernels_ns = sum(row.duration_ns for row in facts.kernels)
    hidden = min(kernels_ns / total_ns, 1.0)
    n_copies, shown_ns = facts.in_shown(copies)
    yield Found(
        careful=[Scale(by=1 - _CAREFUL * hidden, kind="copy", events=events)],
        hopeful=[Scale(by=1 - hidden, kind="copy", events=events)],
        advice="Copy concurrently with other work on a separate stream, or copy less",
        evidence=(
            f"{count(n_copies, 'copy', 'copies')} {facts.each} "
            f"{'takes' if n_copies == 1 else 'take'} {duration(shown_ns)}"
        ),
        events=facts.longest(copies),
    )


REMEDY: Final = Remedy(
    id="overlap_copies",
    side="copies",
    effort="code",
    needs="memcpys",
    seen_by="copies between pinned memory and the GPU on the critical path",
    change="three quarters of the time that kernels can hide, which is no longer than all kernels "
    "take; at most, all of that time",
    not_when="the memory is pageable (see `pinned_copies`), or other work hides the copies",
    hides="copy",
    find=_find,
)
