"""Much data that every step copies to the GPU at the rate of the link, as offloaded weights."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.engine.critical_path.changes import Scale
from longpole.remedies.model import Found, Remedy
from longpole.words.wording import count, duration, memory_size

if TYPE_CHECKING:
    from collections.abc import Iterator

    from longpole.remedies.facts import Facts

# Batches are smaller: bytes of a window, and of a copy that counts.
_LEAST_BYTES: Final = 1 << 29
_LEAST_OF_COPY: Final = 1 << 20

# A copy at this rate, in bytes per ns, is limited by the link and not by the memory of the host.
_LINK_RATE: Final = 10.0

# Without the data that stays on the GPU, or with half of the bytes.
_OF_HALF: Final = 0.5


def _find(facts: Facts) -> Iterator[Found]:
    sizes = {it: facts.number(it.event, "bytes") or 0 for it in facts.uploads}
    copies = [it for it, n_bytes in sizes.items() if n_bytes >= _LEAST_OF_COPY]
    total_ns = sum(it.duration_ns for it in copies)
    n_bytes = sum(sizes[it] for it in copies)
    is_usual = len({it.window for it in copies}) == facts.n_windows
    if not copies or not is_usual or not facts.is_worth(total_ns):
        return
    rate = n_bytes / max(total_ns, 1)
    if facts.per_window(n_bytes) < _LEAST_BYTES or rate < _LINK_RATE:
        return
    events = [it.event for it in copies]
    shown = [it for it in copies if it.window == max(facts.shown, 0)]
    loaded = memory_size(sum(sizes[it] for it in shown))
    yield Found(
        careful=[Scale(by=_OF_HALF, kind="copy", events=events)],
        hopeful=[Scale(by=0.0, kind="copy", events=events)],
        advice=(
            "Keep on the GPU what is the same in every step, such as weights, or copy it in fewer "
            "bytes (8 bit instead of 16)"
        ),
        evidence=(
            f"{count(len(shown), 'copy', 'copies')} {facts.each} load {loaded} at {rate:.0f} GB/s, "
            f"about the rate of the link, in {duration(facts.taken_ns(shown))}"
        ),
        events=facts.longest(copies),
    )


REMEDY: Final = Remedy(
    id="repeated_uploads",
    side="copies",
    effort="code",
    needs="memcpys with their bytes",
    seen_by="copies of 1 MiB or more to the GPU, of 512 MiB or more in every step, at 10 GB/s or "
    "more",
    change="half of their time; at most, all of it",
    not_when="a step copies less, as a batch does, or more slowly (see `pinned_copies`); whether "
    "the data changes from step to step is not recorded",
    is_upper_bound=True,
    find=_find,
)
