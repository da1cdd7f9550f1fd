"""Data loader workers that the launching thread waits for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.engine.critical_path.changes import Drop, Scale
from longpole.remedies.model import Found, Remedy
from longpole.words.wording import duration

if TYPE_CHECKING:
    from collections.abc import Iterator

    from longpole.remedies.facts import Facts

# Fraction of the wait that remains with four times as many workers.
_CAREFUL: Final = 0.25


def _find(facts: Facts) -> Iterator[Found]:
    if facts.parts["loader"] != "workers":
        return
    loading = facts.annotations("enumerate(DataLoader)")
    gaps = [gap for gap in facts.gaps(1_000) if gap.is_loading]
    waited_ns = facts.told_ns(loading or gaps)
    yield Found(
        careful=[Scale(by=_CAREFUL, kind="data_loading")],
        hopeful=[Drop(kind="data_loading")],
        advice=f"Use more loader workers or {facts.options.prefetch}",
        evidence=f"{facts.each_one} waits for the workers for {duration(waited_ns)}",
        events=facts.longest(loading)
        or [gap.after for gap in facts.shown_first(gaps)[:8] if gap.after is not None],
    )


REMEDY: Final = Remedy(
    id="loader_prefetch",
    side="host",
    effort="configuration",
    needs="Python functions or annotations of the data loader",
    seen_by="waiting for the workers of a data loader on the thread that launches work",
    change="three quarters of the wait, as with four times as many workers; at most, all",
    not_when="batches are ready, or are made on the launching thread (see `loader_workers`)",
    shortens=("data_loading",),
    find=_find,
)
