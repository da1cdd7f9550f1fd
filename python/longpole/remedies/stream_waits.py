"""Streams that wait for each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.critical_path.changes import RemoveWait
from longpole.remedies.model import Found, Remedy

if TYPE_CHECKING:
    from collections.abc import Iterator

    from longpole.remedies.facts import Facts

__all__ = ["REMEDY"]


def _find(facts: Facts) -> Iterator[Found]:
    if facts.calls("stream_wait"):
        yield Found(
            careful=[RemoveWait(kind="event_wait")],
            advice="Let streams wait less for each other",
            events=[call.event for call in facts.calls("stream_wait")[:8]],
        )


REMEDY: Final = Remedy(
    id="stream_waits",
    side="kernels",
    effort="code",
    needs="waits between streams; see the options of the profiler",
    seen_by="GPU activities that begin after a wait for another stream",
    change="the waits; that the data is needed is not considered",
    not_when="streams do not wait for each other",
    is_upper_bound=True,
    find=_find,
)
