"""One-time work recorded with the steps: creating a context, loading kernels."""

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

# Loading in this share of several windows is recurring.
_STEADY: Final = 0.6


def _find(facts: Facts) -> Iterator[Found]:
    yield from _context(facts)
    calls = facts.calls("load_module")
    total_ns = sum(call.duration_ns for call in calls)
    if not calls or not facts.is_worth(total_ns):
        return
    longest = facts.longest(calls)
    recurs = len({call.window for call in calls}) >= max(_STEADY * facts.n_windows, 2)
    which = f"{count(len(calls), 'call')} such as {short_name(facts.name(longest[0]), _WIDEST)}"
    load = "loads" if len(calls) == 1 else "load"
    yield Found(
        careful=[Drop(kind="runtime", events=[call.event for call in calls])],
        advice="Load kernels and modules once, before the loop" if recurs else _later(facts),
        evidence=(
            f"{which} {load} them in every {facts.parts['unit']}, {duration(total_ns)} in all"
            if recurs
            else f"{which} {load} kernels on their first use, in {duration(total_ns)}"
        ),
        events=longest,
    )


def _context(facts: Facts) -> Iterator[Found]:
    """Yield the call that creates a GPU context, if it takes much of the time."""
    calls = facts.creates_context()
    if calls:
        name = short_name(facts.name(calls[0]), _WIDEST)
        yield Found(
            careful=[Drop(kind="runtime", events=calls)],
            advice=_later(facts),
            evidence=f"{name} creates the context of the GPU, which nothing used before",
            events=tuple(calls[:1]),
        )


def _later(facts: Facts) -> str:
    step = f" and {facts.options.step}" if facts.parts["unit"] == "trace" else ""
    return f"Record a later step, with {facts.options.schedule}{step}"


REMEDY: Final = Remedy(
    id="warm_up",
    side="host",
    effort="one_line",
    needs="runtime calls",
    seen_by="the first call that needs the GPU, or calls that load kernels or modules",
    change="the calls",
    not_when="nothing is loaded in the steps, and they do not begin with the first use of the GPU",
    find=_find,
)
