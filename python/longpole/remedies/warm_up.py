"""Work of the first use that was recorded with the steps: kernels that are loaded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.critical_path.changes import Drop
from longpole.remedies.model import Found, Remedy
from longpole.wording import count, duration, short_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from longpole.remedies.facts import Facts

__all__ = ["REMEDY"]

_WIDEST: Final = 60


def _find(facts: Facts) -> Iterator[Found]:
    calls = facts.calls("load_module")
    total_ns = sum(call.duration_ns for call in calls)
    if not calls or not facts.is_worth(total_ns):
        return
    longest = facts.longest(calls)
    step = f" and {facts.options.step}" if facts.parts["unit"] == "trace" else ""
    yield Found(
        careful=[Drop(kind="runtime", events=[call.event for call in calls])],
        advice=f"Record a later step, with {facts.options.schedule}{step}",
        evidence=(
            f"{count(len(calls), 'call')} such as {short_name(facts.name(longest[0]), _WIDEST)} "
            f"{'loads' if len(calls) == 1 else 'load'} kernels on their first use, in "
            f"{duration(total_ns)}"
        ),
        events=longest,
    )


REMEDY: Final = Remedy(
    id="warm_up",
    side="host",
    effort="one_line",
    needs="runtime calls",
    seen_by="calls that load kernels or modules",
    change="the calls",
    not_when="nothing is loaded in the steps",
    find=_find,
)
