"""The sections of a page about several ranks of one run."""

from __future__ import annotations

from itertools import takewhile
from typing import TYPE_CHECKING

from longpole.analyses.ranks import Ranks, path_sums
from longpole.cli.answer.overview import tiles
from longpole.critical_path.explain import MEANINGS
from longpole.plot.rank_lanes import rank_lanes
from longpole.report.blocks import Bar, Sentence
from longpole.report.colors import color_of
from longpole.report.overview import Interval, Intervals, Stack
from longpole.report.sections import Section
from longpole.traces.joining import join_traces
from longpole.traces.wording import listed
from longpole.wording import count, duration, share, short_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from longpole.report.overview import Tiles
    from longpole.report.sections import Part
    from longpole.trace import Trace
    from longpole.traces.late_ranks import RankRemedy

__all__ = ["rank_sections", "sections_of_ranks"]


def rank_sections(
    traces: Sequence[tuple[str, Trace]], *, step_name: str | None
) -> tuple[list[Section], list[int]]:
    """Show which rank the others wait for; return the sections and the ranks, that one first.

    Both are empty if the traces are not ranks of one run.
    """
    numbers = [trace.rank for _, trace in traces]
    if None in numbers or len(set(numbers)) < len(traces):
        return [], []
    joined = join_traces(traces, step_name=step_name)
    if joined.calls.is_empty():
        return [], []
    found = Ranks(joined, None, joined.path())
    return sections_of_ranks(found), [int(str(row["rank"])) for row in found.records()]


def sections_of_ranks(found: Ranks) -> list[Section]:
    """Show which rank the others wait for, where the time of the run went, and the calls."""
    blocks = found.blocks()
    said = takewhile(lambda block: isinstance(block, Sentence), blocks)
    told = [block.text for block in said if isinstance(block, Sentence)]
    rest = blocks[len(told) :]
    if found.path.is_empty() or not told:
        return [Section("verdict", "Verdict", blocks)]
    return [
        Section("verdict", "Verdict", list(_first(found, told))),
        Section("calls", "Waiting and calls", rest),
    ]


def _first(found: Ranks, told: Sequence[str]) -> Iterator[Part]:
    """Return the first screen: the answer, its figures, the path, late ranks and the timeline."""
    headline, *more = told
    late = found.set.late_ranks()
    yield Sentence(headline)
    yield _tiles(found)
    yield _path_stack(found)
    if late:
        yield Intervals(
            [
                Interval(
                    _change(remedy), 0.0, remedy.gain_share, f"at most {share(remedy.gain_share)}"
                )
                for remedy in late
            ]
        )
    sentences = {remedy.sentence for remedy in late}
    yield from (Sentence(text) for text in more if text not in sentences)
    drawn = rank_lanes(found.set, found.path, found.step)
    if drawn is not None:
        yield drawn


def _change(remedy: RankRemedy) -> str:
    what = f", mostly {short_name(remedy.name)}" if remedy.name else ""
    times = f"{duration(remedy.own_ns)} instead of {duration(remedy.median_ns)}"
    return f"Make rank {remedy.rank} as fast as the median rank ({remedy.cause}{what}): {times}."


def _tiles(found: Ranks) -> Tiles:
    """Return the known figures of the run."""
    joined, path = found.set, found.path
    late = next(iter(joined.late_ranks()), None)
    waiting = None if found.is_inconclusive else found.wait_share
    what = "Run" if found.step is None else f"Step {found.step}"
    of = f" of {joined.world_size}" if joined.world_size else ""
    n_groups = count(joined.calls["group"].n_unique(), "group")
    return tiles(
        [
            (what, duration(int(path["duration_ns"].sum())), f"{count(len(joined), 'rank')}{of}"),
            (
                "Late rank",
                None if late is None else f"rank {late.rank}",
                "" if late is None else f"{late.cause}; saves at most {duration(late.gain_ns)}",
            ),
            (
                "Waiting in collectives",
                None if waiting is None else share(waiting),
                "of their time; the rest is transfer",
            ),
            ("Collectives", count(joined.calls.height), f"in {n_groups}"),
            ("On the critical path", listed(path["rank"].unique().sort().to_list()), ""),
        ]
    )


def _path_stack(found: Ranks) -> Stack:
    """Divide the critical path across ranks by rank and kind."""
    length_ns = int(found.path["duration_ns"].sum())
    has_several = found.path["rank"].n_unique() > 1
    rows = [
        (f"rank {rank}: {words}" if has_several else words, color_of(kind), duration_ns)
        for rank, kind, duration_ns in path_sums(found.path)
        for words in [MEANINGS.get(kind, kind.replace("_", " "))]
    ]
    rest_ns = length_ns - sum(duration_ns for *_, duration_ns in rows)
    rows += [("other", "wait", rest_ns)] if rest_ns else []
    bars = [
        Bar(duration_ns / length_ns, duration(duration_ns), label, color)
        for label, color, duration_ns in rows
    ]
    return Stack(f"Critical path across ranks, {duration(length_ns)}", bars)
