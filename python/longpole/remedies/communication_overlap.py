"""Communication without concurrent computation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.engine.critical_path.changes import Scale
from longpole.remedies.late_rank import is_late
from longpole.remedies.message_bytes import time_of_bytes
from longpole.remedies.model import Found, Remedy
from longpole.words.wording import duration

if TYPE_CHECKING:
    from collections.abc import Iterator

    from longpole.engine.critical_path.changes import Change
    from longpole.remedies.facts import Facts
    from longpole.remedies.message_bytes import OfBytes
    from longpole.remedies.recorded import Activity

# Lower bound: half of the time that other kernels can hide is hidden (upper bound: all of it).
_CAREFUL: Final = 0.5

# Share of the time that remains with half of the bytes.
_OF_HALF: Final = 0.5


def _find(facts: Facts) -> Iterator[Found]:
    works = [work for work in facts.kernels if work.kind == "communication"]
    if not works or is_late(facts):
        return
    others = [work for work in facts.kernels if work.kind != "communication"]
    total_ns, others_ns = (sum(work.duration_ns for work in rows) for rows in (works, others))
    hidden = min(others_ns / max(total_ns, 1), 1.0)
    hides = "all" if others_ns >= total_ns else duration(facts.told_ns(others))
    takes = f"it takes {duration(facts.told_ns(works))} {facts.each}"
    yield Found(
        careful=[Scale(by=1 - _CAREFUL * hidden, kind="communication")],
        hopeful=[Scale(by=1 - hidden, kind="communication")],
        advice=f"Start communication earlier, while kernels run{_stream(facts, works, others)}",
        evidence=(
            f"{takes}, with the wait for other ranks (`longpole ranks` of all traces tells it "
            f"apart), and other kernels can hide {hides} of it"
        ),
        events=facts.longest(works),
    )
    of_bytes = time_of_bytes(facts, works)
    unknown = f"{takes}, and how much of that depends on the bytes is not recorded"
    yield Found(
        careful=[],
        hopeful=_with_half(works, of_bytes),
        advice="Send half of the bytes, in a smaller type or less often",
        evidence=unknown if of_bytes is None else of_bytes.evidence,
        name="half of the bytes",
        events=facts.longest(works),
    )


def _with_half(works: list[Activity], of_bytes: OfBytes | None) -> list[Change]:
    """Return the changes by which half of the bytes take half of the time that depends on them."""
    if of_bytes is None:
        return [Scale(by=_OF_HALF, kind="communication")]
    left = {it.event: it.duration_ns - (1 - _OF_HALF) * of_bytes.times_ns[it.event] for it in works}
    return [
        Scale(by=time_ns / max(work.duration_ns, 1), kind="communication", events=[work.event])
        for work, time_ns in zip(works, left.values(), strict=True)
    ]


def _stream(facts: Facts, works: list[Activity], others: list[Activity]) -> str:
    """Return that a stream of its own is needed, if communication shares that of the kernels."""
    of_others = {work.lane for work in others}
    time_ns = sum(work.duration_ns for work in works if work.lane in of_others)
    return ", on a stream of its own" if facts.is_worth(max(time_ns, 1)) else ""


REMEDY: Final = Remedy(
    id="communication_overlap",
    side="communication",
    effort="configuration",
    needs="kernels that communicate",
    seen_by="communication on the critical path",
    change="half of the time that other kernels can hide; at most, all of that time; with half of "
    "the bytes, at most half of what depends on them, by the sizes that are recorded",
    not_when="other work hides it, or it mostly waits (see `late_rank`)",
    # The one program that was measured gained nothing: 4 to 9 % were predicted.
    is_upper_bound=True,
    is_refuted=True,
    hides="communication",
    depends_on_ranks=True,
    find=_find,
)
