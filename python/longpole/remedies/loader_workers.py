"""Batches that are loaded on the thread that launches work."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.engine.critical_path.changes import Drop, Scale
from longpole.remedies.model import Found, Remedy
from longpole.words.wording import duration, short_name, whole_percent

if TYPE_CHECKING:
    from collections.abc import Iterator

    from longpole.engine.critical_path.changes import TimeRange
    from longpole.remedies.facts import Facts
    from longpole.remedies.recorded import Named

# Number of workers that the lower bound of the gain assumes. They load batches while the step runs,
# so the step waits only for the time that the rest of it does not cover.
_FEWEST_WORKERS: Final = 4

# Fraction of the loading time that remains on the main thread, which receives the batch.
_RECEIVING: Final = 0.05

# A function is named if it has at least this share of the loading time.
_MOST: Final = 0.5


def _find(facts: Facts) -> Iterator[Found]:
    if facts.parts["loader"] in {None, "workers"}:
        return
    gaps = [gap for gap in facts.gaps(1_000) if gap.is_loading]
    loading = facts.annotations("enumerate(DataLoader)")
    total_ns = facts.within_ns(loading or gaps)
    options = facts.options
    match facts.parts["loader"]:
        case "main_thread":
            advice = f"Give the DataLoader workers (`{options.workers}` > 0)"
        case _:
            advice = "Load data in worker processes, prefetch, or decode on the GPU"
    mean_ns = round(facts.per_window(total_ns))
    told = duration(facts.told_ns(loading or gaps))
    kept = 1 / _FEWEST_WORKERS
    if facts.parts["loader"] == "main_thread":
        rest_ns = max(facts.mean_then_ns - mean_ns, 0.0)
        kept = max(kept - rest_ns / max(mean_ns, 1), _RECEIVING)
    yield Found(
        careful=[Scale(by=kept, kind="data_loading")],
        hopeful=[Drop(kind="data_loading")],
        advice=advice,
        evidence=(
            f"{facts.each_one} makes or awaits a batch for {told}"
            f"{_where(facts, [row.time_range for row in loading or gaps], total_ns)}"
        ),
        events=facts.longest(loading)
        or [gap.after for gap in facts.shown_first(gaps)[:8] if gap.after is not None],
    )


def _where(facts: Facts, time_ranges: list[TimeRange], total_ns: int) -> str:
    """Return the innermost function with most of the time, or how to record functions."""
    frames = [row for row in facts.names_in(time_ranges) if row.kind == "python"]
    if not frames:
        stack = facts.options.stack
        return f" (record Python stacks to name the function: {stack})" if stack else ""
    long = [row for row in frames if row.total_ns >= _MOST * total_ns]
    own = max((row for row in long if facts.is_own(row.name)), key=_depth, default=None)
    if own is None:
        return ""
    inner = max((row for row in long if row.name.startswith("<built-in")), key=_depth, default=own)
    named = own if inner.depth <= own.depth else inner
    called = f", called by {short_name(own.name)}" if named is not own else ""
    share = whole_percent(min(named.total_ns / max(total_ns, 1), 1.0))
    return f", {share} of it in {short_name(named.name)}{called}"


def _depth(row: Named) -> int:
    return row.depth


REMEDY: Final = Remedy(
    id="loader_workers",
    side="host",
    effort="one_line",
    needs="Python functions or annotations of the data loader",
    seen_by="loading data on the thread that launches work",
    change="a batch comes from 4 workers that load while the step runs, and the main thread spends "
    "5 % of the loading time on receiving it; at most, it takes no time",
    not_when="no data is loaded on the path, or workers load it (see `loader_prefetch`)",
    shortens=("data_loading",),
    leaves=0.05,
    replaces_name=("_SingleProcessDataLoaderIter", "_MultiProcessingDataLoaderIter"),
    find=_find,
)
