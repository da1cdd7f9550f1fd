"""`longpole ranks`: show which rank makes the others wait, why, and how much a fix saves."""

from __future__ import annotations

import shlex
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import takewhile
from typing import TYPE_CHECKING, Any, Final

import click

from longpole.cli.answer import exit_codes
from longpole.cli.answer.inputs import warnings_of_ranks
from longpole.cli.answer.overview import tiles
from longpole.cli.answer.problems import require
from longpole.cli.ask.options import Options, answer_options, answers, top_option
from longpole.cli.ask.ranks import answer_ranks, reading_options, sources_argument
from longpole.cli.ask.windows import Asked, step_option, step_time_option, window_options
from longpole.errors import LongpoleError
from longpole.files.opening import is_pipe
from longpole.jobs.findings import finding_notes, listed
from longpole.report.blocks import Headline, Notes, Sentence
from longpole.report.document import DATA_FORMATS, Abstention, Document
from longpole.report.overview import Interval, Intervals, Stack
from longpole.report.sections import Section
from longpole.words.data import plain
from longpole.words.wording import count, duration, escape, share

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from longpole.cli.answer.emit import Answer
    from longpole.jobs.dump_set import DumpSet
    from longpole.jobs.dumps import Dumps
    from longpole.jobs.late_ranks import RankRemedy
    from longpole.jobs.ranks import Ranks
    from longpole.jobs.trace_set import TraceSet
    from longpole.report.blocks import Block
    from longpole.report.overview import Tiles
    from longpole.report.sections import Part
    from longpole.trace.trace import Trace

_RANKS: Final = "longpole.ranks/1"
_LOSSES: Final = (
    *("unreadable rank", "duplicate rank", "unknown rank", "files disagree", "other recording"),
    "damaged trace",
)
_TWO: Final = 2
_DUMPS: Final = "longpole.dumps/1"
_LOSSES_OF_DUMPS: Final = ("unreadable rank", "duplicate rank", "damaged rank")


@click.command()
@answers("longpole.jobs.ranks:RanksData")
@sources_argument
@step_option("the whole run")
@window_options("chosen")
@top_option(8)
@step_time_option("estimated from each trace")
@reading_options
@answer_options
def ranks(
    *,
    sources: Sequence[str],
    step: int | None,
    window: Asked,
    top: int,
    step_time_ns: int | None,
    reading: dict[str, Any],
    options: Options,
) -> int:
    """Show which rank makes the others wait, why, and how much a fix saves.

    SOURCES are a directory, a glob pattern, or the traces of the ranks. longpole aligns their
    clocks, matches their collectives, and finds one critical path across all ranks.

    SOURCES can also be flight recorder dumps of PyTorch as JSON. The answer is then which
    collective hangs, which ranks have not called it, and which ranks wait in it.

    \b
    Examples:
      longpole ranks traces/
      longpole ranks traces/ --window step:3 --json
      longpole ranks dumps/
    """
    asked = replace(window, step=step) if step is not None else window
    has_part = asked.between is None and asked.question.annotation is None
    require(has_part, "ranks have steps in common: give --window step:N or all")
    for source in sources:
        require(not is_pipe(source), f"{source} is a pipe; ranks are read twice, so give files")
    if _are_dumps(sources):
        require(step_time_ns is None, "--step-time applies to traces, not to dumps")
        return _answer_dumps(sources, options, _DUMPS, partial(_dumps_answer, sources))
    answer = partial(_ranks_answer, sources, step=asked.step, top=top, step_time_ns=step_time_ns)
    return answer_ranks(sources, options, _RANKS, answer, reading)


def _ranks_answer(
    sources: Sequence[str],
    traces: TraceSet,
    *,
    step: int | None,
    top: int,
    step_time_ns: int | None = None,
) -> Answer:
    """Return which rank the others wait for, as a document."""
    from longpole.jobs.ranks import ranks as analyse

    found = analyse(traces, step, top=top, step_time_ns=step_time_ns)
    window_ns = traces.window(step)
    path = ", ".join(sources)
    part = "whole run" if step is None else f"step {step}"
    losses = [finding for finding in traces.findings if finding.kind in _LOSSES]
    document = Document(
        schema=_RANKS,
        input=_input(path, traces),
        warnings=warnings_of_ranks(losses),
        forms_with_warnings=(*DATA_FORMATS, "text"),
        status="abstained" if found.is_inconclusive else ("partial" if losses else "ok"),
        scope={"rank": None, "step": step, "window_ns": list(window_ns), "reason": part},
        abstains_because=[Abstention(code) for code in found.unknown_because],
        data=found,
        blocks=lambda: [
            Headline(
                f"{escape(path)}: {_who(traces)}, {part}, {_length(window_ns)}"
                if step is None
                else f"{escape(path)}: {_who(traces)}, whole run; the path is that of {part}, "
                f"{_length(window_ns)}"
            ),
            *found.blocks(),
        ],
        sections=lambda: _sections(found),
        records=lambda: [{"path": path, **plain(record)} for record in found.records()],
    )
    return document, exit_codes.INCONCLUSIVE if found.is_inconclusive else exit_codes.OK


def _input(path: str, traces: TraceSet) -> dict[str, Any]:
    return {
        "path": path,
        "format": None,
        "compression": None,
        "bytes": int(traces.ranks["bytes"].sum()),
        "events": int(traces.ranks["events"].sum()),
        "rank": None,
        "world_size": traces.world_size,
    }


def _who(traces: TraceSet) -> str:
    """Return how many ranks were read, out of how many."""
    of_all = f" of {traces.world_size}" if (traces.world_size or 0) > len(traces) else ""
    return f"{count(len(traces), 'rank')}{of_all} ({listed(traces.rank_numbers).partition(' ')[2]})"


def _length(window_ns: tuple[int, int]) -> str:
    start_ns, end_ns = window_ns
    return duration(end_ns - start_ns)


def together(
    paths: Sequence[str], ranks: Sequence[int | None], read: Callable[[list[str]], TraceSet]
) -> Iterator[Answer]:
    """Yield which rank the others wait for if all traces are ranks of one run.

    For two other traces, yield the command that compares them. `ranks` has the rank of each trace
    that could be read.
    """
    if len(ranks) < len(paths) or any(map(is_pipe, paths)):
        return
    quoted = " ".join(map(shlex.quote, paths))
    if None not in ranks and len(set(ranks)) == len(paths):
        with suppress(LongpoleError):
            yield _of_run(read([*paths]), f"longpole ranks {quoted}"), exit_codes.OK
    elif len(paths) == _TWO:
        note = Notes([f"To compare the two: `longpole diff {quoted}`."])
        yield Document(schema=_RANKS, input={}, blocks=lambda: [note]), exit_codes.OK


def _of_run(joined: TraceSet, command: str) -> Document:
    from longpole.jobs.ranks import Ranks

    told = Ranks(joined, None, joined.calls.clear()).verdict()
    blocks: list[Block] = [
        Headline(f"{_who(joined)} together"),
        *map(Sentence, told or ["No collectives connect them."]),
        Notes([f"More: `{command}`."]),
    ]
    return Document(schema=_RANKS, input={}, blocks=lambda: blocks)


def rank_sections(
    traces: Sequence[tuple[str, Trace]], *, step_name: str | None
) -> tuple[list[Section], list[int]]:
    """Show which rank the others wait for; return the sections and the ranks, that one first.

    Both are empty if the traces are not ranks of one run.
    """
    from longpole.jobs.joining import join_traces
    from longpole.jobs.ranks import Ranks

    numbers = [trace.rank for _, trace in traces]
    if None in numbers or len(set(numbers)) < len(traces):
        return [], []
    joined = join_traces(traces, step_name=step_name)
    if joined.calls.is_empty():
        return [], []
    found = Ranks(joined, None, joined.path())
    return _sections(found), [int(str(row["rank"])) for row in found.records()]


def _sections(found: Ranks) -> list[Section]:
    """Show which rank the others wait for, where the time of the run went, and the calls."""
    blocks = found.blocks()
    said = takewhile(lambda block: isinstance(block, Sentence), blocks)
    told = [block.text for block in said if isinstance(block, Sentence)]
    rest: list[Part] = [*found.tables(), *finding_notes(found.set.findings)]
    if found.path.is_empty() or not told:
        return [Section("verdict", "Verdict", blocks)]
    return [
        Section("verdict", "Verdict", list(_first(found, told))),
        Section("calls", "Waiting and calls", rest),
    ]


def _first(found: Ranks, told: Sequence[str]) -> Iterator[Part]:
    """Return the overview: the answer, its figures, the path, late ranks and the timeline."""
    from longpole.jobs.rank_tables import path_bars
    from longpole.plot.rank_lanes import rank_lanes

    headline, *more = told
    late = found.late_ranks
    yield Sentence(headline)
    yield _tiles(found)
    length_ns = int(found.path["duration_ns"].sum())
    yield Stack(f"Critical path across ranks, {duration(length_ns)}", path_bars(found.path))
    if late:
        yield Intervals(
            [
                Interval(
                    _change(remedy), 0.0, remedy.gain_share, f"at most {share(remedy.gain_share)}"
                )
                for remedy in late
            ]
        )
    yield from map(Sentence, more)
    drawn = rank_lanes(found.set, found.path, found.step)
    if drawn is not None:
        yield drawn


def _change(remedy: RankRemedy) -> str:
    change = f"Make rank {remedy.rank} as fast as {remedy.compared_with} ({remedy.what})"
    if remedy.own_ns is None or remedy.median_ns is None:
        return f"{change}."
    return f"{change}: {duration(remedy.own_ns)} instead of {duration(remedy.median_ns)}."


def _tiles(found: Ranks) -> Tiles:
    """Return the known figures of the run."""
    from longpole.jobs.rank_tables import groups_in_words

    joined, path = found.set, found.path
    late = next(iter(found.late_ranks), None)
    waiting = None if found.is_inconclusive else found.wait_share
    what = "Run" if found.step is None else f"Step {found.step}"
    of_all = f" of {joined.world_size}" if (joined.world_size or 0) > len(joined) else ""
    n_ranks = count(len(joined), "rank")
    return tiles(
        [
            (
                what,
                duration(int(path["duration_ns"].sum())),
                f"{n_ranks}{of_all}",
            ),
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
            ("Collectives", count(joined.calls.height), groups_in_words(joined.calls)),
            ("On the critical path", listed(path["rank"].unique().sort().to_list()), ""),
        ]
    )


def _dumps_answer(sources: Sequence[str], found: DumpSet) -> Answer:
    """Report which call hangs and which ranks it waits for."""
    from longpole.jobs.dumps import dumps

    answer = dumps(found)
    losses = [finding for finding in found.findings if finding.kind in _LOSSES_OF_DUMPS]
    path = ", ".join(sources)
    who = f"{count(len(found), 'dump')} of {listed(found.rank_numbers)}"
    document = Document(
        schema=_DUMPS,
        input={"path": path, "format": "flight recorder"},
        warnings=warnings_of_ranks(losses),
        forms_with_warnings=(*DATA_FORMATS, "text"),
        status="abstained" if answer.is_inconclusive else ("partial" if losses else "ok"),
        abstains_because=_abstentions(found, answer),
        data=answer,
        blocks=lambda: [
            Headline(f"{escape(path)}: {who}, {count(found.calls.height, 'call')}"),
            *answer.blocks(),
        ],
        records=lambda: [{"path": path, **record} for record in answer.records()],
    )
    return document, exit_codes.INCONCLUSIVE if answer.is_inconclusive else exit_codes.OK


def _abstentions(found: DumpSet, answer: Dumps) -> list[Abstention]:
    if not answer.is_inconclusive:
        return []
    return [Abstention("missing_ranks" if found.open_calls else "no_calls")]


def _are_dumps(sources: Sequence[str]) -> bool:
    """Whether the inputs are dumps: some files are, or a directory has dumps but no traces."""
    from longpole.jobs.dump_set import dump_paths
    from longpole.jobs.sources import find_sources

    try:
        dumps = set(dump_paths(sources))
    except (LongpoleError, OSError):
        return False
    try:
        traces = {it.path for it in find_sources(sources)}
    except LongpoleError:
        return bool(dumps)
    return bool(traces) and traces <= dumps


def _answer_dumps(
    sources: Sequence[str], options: Options, schema: str, answer: Callable[[DumpSet], Answer]
) -> int:
    """Write the result of `answer` for the dumps; return the exit code."""
    from longpole.jobs.dump_set import read_dumps

    path = ", ".join(sources)
    return options.emit(options.attempt(schema, path, lambda: answer(read_dumps(list(sources)))))
