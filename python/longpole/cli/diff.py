"""`longpole diff`: show what changed between two runs, and whether it matters."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from longpole.cli.answer import exit_codes
from longpole.cli.answer.inputs import name_of, warnings_of
from longpole.cli.answer.overview import tiles
from longpole.cli.answer.pages import facts_of, known_limits
from longpole.cli.answer.problems import require, usage_errors
from longpole.cli.ask.numbers import COUNT, parse_share
from longpole.cli.ask.options import Options, answers, shared_options
from longpole.cli.ask.traces import named_traces
from longpole.cli.ask.windows import (
    Asked,
    step_option,
    step_time_option,
    window_options,
)
from longpole.engine.arguments import ARGUMENTS
from longpole.report.blocks import Bar, Column, Headline, Notes, Sentence, color_of, tabulated
from longpole.report.document import DATA_FORMATS, Abstention, Document
from longpole.report.overview import Stack
from longpole.report.sections import Section
from longpole.words.path_kinds import MEANINGS
from longpole.words.wording import count, duration, memory_size, number

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from longpole.cli.answer.emit import Answer
    from longpole.diffs import Diff
    from longpole.report.document import AbstentionCode
    from longpole.report.overview import Tiles
    from longpole.report.sections import Part
    from longpole.trace.trace import Trace

_SCHEMA: Final = "longpole.diff/1"
# Arguments by which calls of several ranks are joined.
_OF_COLLECTIVES: Final = (
    *("Collective name", "In msg nelems", "Out msg nelems", "dtype", "Group size", "Seq"),
    *("Process Group Name", "Process Group Ranks", "Global rank start", "Global rank stride"),
    *("Rank", "Src Rank", "Dst Rank", "Comms Id"),
)
_ARGS: Final = (*ARGUMENTS, *_OF_COLLECTIVES, "Total Allocated", "Device Id")
"""The arguments of events that are compared."""
_GATE: Final = 0.03
_TWO: Final = 2
Named = tuple[str, "Trace"]
_ON_PAGE: Final = 15
"""Number of changes that a page lists by default."""
_MOST_WORK: Final = 200
_LEAST: Final = 0.01
_ABSTENTIONS: Final[dict[str, AbstentionCode]] = {
    "cost": "profiler_cost",
    "machine": "host_alone",
}
"""Codes of what leaves a comparison open; all else is noise."""
_WORK: Final = {
    Column("kind"): "kind",
    Column("name", "name"): "name",
    Column("base count", "count"): "base_counts",
    Column("new count", "count"): "new_counts",
    Column("base", "duration"): "base_total_duration_ns",
    Column("new", "duration"): "new_total_duration_ns",
    Column("difference", "duration"): "diff_duration_ns",
    Column("count"): "counts_change_categories",
}


@click.command()
@answers("longpole.diffs:Diff")
@click.argument("base", type=click.Path(readable=False), metavar="BASE")
@click.argument("new", type=click.Path(readable=False), required=False, metavar="[NEW]")
@step_option("all steps", "steps", multiple=True)
@click.option(
    "--gate",
    type=parse_share,
    metavar="SHARE",
    help="Smallest change that matters, such as 3% or 0.03; exit with 1 if there is a regression.  "
    "[default: 3%, without an effect on the exit code]",
)
@window_options("chosen", "step_name", "data_load")
@step_time_option(name="step_times_ns", multiple=True)
@click.option(
    "--same-program",
    "is_same_program",
    is_flag=True,
    help="Compare the steps even if little work corresponds: both sides do the same work.",
)
@click.option(
    "--top",
    type=COUNT,
    metavar="N",
    help="Number of rows to list in each table.  [default: one screen]",
)
@shared_options
def diff(
    *,
    base: str,
    new: str | None,
    steps: Sequence[int],
    gate: float | None,
    step_times_ns: tuple[int, int] | tuple[()],
    is_same_program: bool,
    top: int | None,
    options: Options,
    window: Asked,
) -> int:
    """Show what changed between BASE and NEW, and whether it matters.

    BASE and NEW are traces, directories, or quoted glob patterns, several separated by commas.
    Traces of different ranks are one run; traces of the same rank are several runs. Steps are
    compared by length; operators and kernels are matched by stack, shape and name. With --step,
    one step of BASE is compared with the other steps of its run, or with the second --step. With
    --window, only this part of both sides is compared. The first --step-time is for BASE, the
    second for NEW. With `--format html`, the answer is a page with all tables and a timeline of
    both sides.

    The exit code is 4 if the comparison is inconclusive and, with --gate, 1 if there is a
    regression.

    \b
    Examples:
      longpole diff before.json.gz after.json.gz
      longpole diff main/ branch/ --gate 3% --format md
      longpole diff before.json.gz after.json.gz --format html > diff.html
      longpole diff one.json.gz,two.json.gz after/
      longpole diff before.json.gz after.json.gz --window forward#1
      longpole diff before.json.gz after.json.gz --step-time 43ms --step-time 38ms
      longpole diff trace.json.gz --step 37
      longpole diff trace.json.gz --step 37 --step 12
    """
    require((new is None) != (not steps), "give NEW, or --step for a step of BASE")
    require(len(steps) <= _TWO, "--step is one step, or two to compare")
    step, other = (*steps, None, None)[:_TWO]
    require(step is None or not step_times_ns, "--step-time compares two runs; leave out --step")
    require(len(step_times_ns) in {0, _TWO}, "give --step-time twice: for BASE, and then for NEW")
    is_part = window.step is not None or window.chosen is not None
    require(step is None or not is_part, "--step and --window exclude each other")
    require(
        step is None or not is_same_program, "--same-program is about two runs, not about steps"
    )
    old = named_traces(_paths(base), options, args=_ARGS)
    if step is not None:
        shown: dict[str, Any] = {"gate": gate, "top": top}
        answer = _step_answer(old, step, other, window=window, **shown)
    else:
        now = named_traces(_paths(str(new)), options, args=_ARGS)
        answer = _diff_answer(
            old,
            now,
            gate=gate,
            top=top,
            window=window,
            step_times_ns=step_times_ns or (None, None),
            is_same_program=is_same_program,
        )
    return options.emit(answer)


def _paths(side: str) -> list[str]:
    """Return the paths of a side, which commas separate unless it is one path with commas."""
    return [side] if "," not in side or Path(side).exists() else side.split(",")


def _diff_answer(
    base: Sequence[Named],
    new: Sequence[Named],
    *,
    gate: float | None,
    top: int | None,
    window: Asked,
    step_times_ns: tuple[int | None, int | None] = (None, None),
    is_same_program: bool = False,
) -> Answer:
    """Compare two sides of named traces."""
    from longpole.diffs import diff as compare

    sides = [[trace for _, trace in side] for side in (base, new)]
    old, now = sides
    with usage_errors():
        found = compare(
            old,
            now,
            gate=_GATE if gate is None else gate,
            step_times_ns=step_times_ns,
            is_same_program=is_same_program,
            **window.question.parts,
        )
    names = [_name(side) for side in (base, new)]
    page = _page(found, top)
    return _answer(" -> ".join(names), [*base, *new], found, page, gate=gate, top=top)


def _step_answer(
    traces: Sequence[Named],
    step: int,
    against: int | None,
    *,
    gate: float | None,
    top: int | None,
    window: Asked,
) -> Answer:
    """Compare one step of a trace with the others."""
    from longpole.diffs import diff_steps

    require(len(traces) == 1, "--step compares steps of one trace")
    share = _GATE if gate is None else gate
    with usage_errors():
        trace = traces[0][1]
        found = diff_steps(
            trace,
            step,
            against,
            gate=share,
            step_name=window.step_name,
            data_load=window.data_load,
        )
    other = "the other steps" if against is None else f"step {against}"
    title = f"{_name(traces)}: step {step} against {other}"
    page = _page(found, top)
    return _answer(title, traces, found, page, gate=gate, top=top)


def _page(found: Diff, top: int | None) -> Callable[[], Sequence[Section]]:
    return lambda: [*_sections(found, top=top or _ON_PAGE), known_limits()]


def _answer(
    title: str,
    traces: Sequence[Named],
    found: Diff,
    page: Callable[[], Sequence[Section]],
    *,
    gate: float | None,
    top: int | None,
) -> Answer:
    document = Document(
        schema=_SCHEMA,
        input={"path": title, "traces": [path for path, _ in traces]},
        status="abstained" if _exit_code(found, gate) == exit_codes.INCONCLUSIVE else "ok",
        abstains_because=_abstentions(found),
        scope={"gate": found.gate},
        warnings=[warned for _, trace in traces for warned in warnings_of(trace)],
        forms_with_warnings=DATA_FORMATS,
        data=found,
        blocks=lambda: [Headline(title), *found.blocks(top)],
        sections=page,
        facts=lambda: [title, *facts_of(traces)],
        records=found.records,
    )
    return document, _exit_code(found, gate)


def _abstentions(found: Diff) -> list[Abstention]:
    if found.verdict != "inconclusive":
        return []
    if any(it.is_grave for it in (*found.base.damage, *found.new.damage)):
        return [Abstention("damaged")]
    if not found.is_one_program:
        return [Abstention("unrelated")]
    return [Abstention(_ABSTENTIONS.get(found.open_by or "noise", "noise"))]


def _exit_code(found: Diff, gate: float | None) -> int:
    if found.verdict == "inconclusive":
        return exit_codes.INCONCLUSIVE
    is_worse = gate is not None and found.verdict == "regression"
    return exit_codes.FINDINGS if is_worse else exit_codes.OK


def _name(side: Sequence[Named]) -> str:
    """Return the name of a side: its trace, or the directory of its traces."""
    paths = [path for path, _ in side]
    if len(paths) == 1:
        return name_of(paths[0])
    folders = {str(Path(path).parent) for path in paths}
    return f"{name_of(folders.pop())}/ ({len(paths)} traces)" if len(folders) == 1 else paths[0]


def _sections(found: Diff, *, top: int) -> list[Section]:
    """Show the verdict, what changed, a step of each side, and all work by name."""
    from longpole.plot.diff_lanes import diff_lanes

    _, *rest = found.blocks(top)
    headline, *more = _sentences(found)
    drawn = diff_lanes(found)
    return [
        Section("verdict", "Verdict", [headline, *_figures(found), *more]),
        Section("changes", "What changed", rest),
        *([Section("steps", "A step of each side", drawn)] if drawn else []),
        Section("table", "All work by name", _all_work(found), is_folded=True),
    ]


def _sentences(found: Diff) -> list[Sentence]:
    """Split the answer: how much changed is the headline; what changed comes after the figures."""
    first, stop, more = found.sentence.partition(". ")
    return [Sentence(f"{first}."), Sentence(more)] if stop else [Sentence(first)]


def _figures(found: Diff) -> list[Part]:
    """Return the figures of both sides and their critical paths as bars on one scale."""
    if found.is_lost:
        return []
    return [_tiles(found), *(_path_stacks(found) if found.is_one_program else [])]


def _tiles(found: Diff) -> Tiles:
    from longpole.diffs.sentences import mean_of, numbers, percent

    base, new = found.base, found.new
    memory = (base.peak_memory_bytes, new.peak_memory_bytes)
    limits = [side.verdict.limited_by for side in (base, new)]
    counts = {row.what: f"{number(row.base)} → {number(row.new)}" for row in found.counts}
    lengths = [duration(round(side.mean_ns)) for side in (base, new)]
    steps = " and ".join(map(numbers, (base, new)))
    return tiles(
        [
            (f"{mean_of(found)}{base.unit}".capitalize(), " → ".join(lengths), steps),
            ("Change", None if found.change is None else percent(found.change), _interval(found)),
            ("Limited by", " → ".join(dict.fromkeys(it[0] for it in limits if it)) or None, ""),
            (
                "Launches",
                counts.get("launches") if found.is_one_program else None,
                f"in a {base.unit}",
            ),
            (
                "Memory peak",
                None
                if None in memory
                else " → ".join(dict.fromkeys(memory_size(it) for it in memory if it)),
                "allocated on a device",
            ),
        ]
    )


def _interval(found: Diff) -> str:
    from longpole.diffs.sentences import percent

    if found.interval is None:
        return ""
    low, high = map(percent, found.interval)
    return f"between {low} and {high}"


def _path_stacks(found: Diff) -> list[Stack]:
    """Divide the mean critical path of each side by kind, with the same kinds on both sides."""
    sides = {
        "base": [(row.kind, row.base_ns) for row in found.path],
        "new": [(row.kind, row.new_ns) for row in found.path],
    }
    lengths = {name: sum(time_ns for _, time_ns in rows) for name, rows in sides.items()}
    if min(lengths.values()) <= 0:
        return []
    longest_ns = max(lengths.values())
    shown = {
        kind
        for name, rows in sides.items()
        for kind, time_ns in rows
        if time_ns >= _LEAST * lengths[name]
    }
    return [
        Stack(
            f"Critical path of {name}, {duration(round(lengths[name]))} in the mean",
            _bars([row for row in rows if row[0] in shown], lengths[name]),
            lengths[name] / longest_ns,
        )
        for name, rows in sides.items()
    ]


def _bars(rows: Sequence[tuple[str, float]], length_ns: float) -> list[Bar]:
    """Return the parts of a path of a given length; kinds that are not in the rows are combined."""
    bars = [
        Bar(
            time_ns / length_ns,
            duration(round(time_ns)),
            f"{MEANINGS.get(kind, kind)} ({kind})",
            color_of(kind),
        )
        for kind, time_ns in rows
    ]
    rest_ns = length_ns - sum(time_ns for _, time_ns in rows)
    if round(rest_ns) > 0:
        bars.append(Bar(rest_ns / length_ns, duration(round(rest_ns)), "all other kinds", "wait"))
    return bars


def _all_work(found: Diff) -> list[Part]:
    """List the work of both sides by name, largest change first."""
    records = found.records()
    table = tabulated(records[:_MOST_WORK], _WORK)
    more = len(records) - len(table.rows)
    return [table, *([Notes([f"{count(more, 'more name')}."])] if more else [])]
