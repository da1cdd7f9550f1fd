"""`longpole path`: show the critical path: what determines how long a step takes."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

import click

from longpole.answer import Verdict
from longpole.cli.answer.inputs import name_of
from longpole.cli.answer.windows import exit_code_of, known_of
from longpole.cli.ask.options import Options, answers, shared_options, top_option
from longpole.cli.ask.traces import answer_each, traces_argument
from longpole.cli.ask.windows import OF_PATH, OF_PROGRAM, Asked, window_options
from longpole.engine.recording_cost import timing_blocks
from longpole.report.blocks import Headline, Sentence
from longpole.report.document import Document
from longpole.report.paths import KindTotal, NameTotal, path_blocks
from longpole.tables.path_order import PathRow, in_order, sections_table
from longpole.words.data import Row, plain
from longpole.words.wording import duration

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from longpole.cli.answer.emit import Answer
    from longpole.cli.answer.windows import Found
    from longpole.engine.critical_path import CriticalPath
    from longpole.report.blocks import Block
    from longpole.report.document import Record
    from longpole.trace.trace import Trace

_SCHEMA: Final = "longpole.path/1"


@click.command()
@answers("longpole.cli.path:PathData")
@traces_argument
@window_options(*OF_PATH, OF_PROGRAM)
@click.option(
    "--in-order",
    is_flag=True,
    help="Show the operators on the path in time order: the longest, and those between them.",
)
@top_option(10)
@shared_options
def path(
    *,
    traces: Sequence[str],
    window: Asked,
    in_order: bool,
    top: int,
    options: Options,
) -> int:
    """Show the critical path: what determines how long a step takes.

    The segments of the path cover the window without gaps. With `--format csv`, each segment is
    a row; with `--in-order`, consecutive segments of an operator share a row. The exit code is 4
    if the trace does not show what limits the window, as for `longpole summary`.

    \b
    Examples:
      longpole path trace.json.gz --step 3
      longpole path trace.json.gz --in-order --top 20
      longpole path trace.json.gz --format csv > path.csv
    """
    from longpole.engine.arguments import ARGUMENTS

    return answer_each(
        traces,
        options,
        _SCHEMA,
        partial(_answer, top=top, is_in_order=in_order),
        window=window,
        about="path",
        arguments=ARGUMENTS,
    )


class PathData(Row):
    """What is on the critical path of a window."""

    length_ns: int
    inferred_ns: int
    unexplained_ns: int
    kinds: list[KindTotal]
    names: list[NameTotal]
    counts: dict[str, int]
    """Number of corrections and omissions in the graph, by kind."""
    in_order: list[PathRow] | None
    """The operators in time order, with `--in-order`."""
    verdict: Verdict


def _answer(name: str, trace: Trace, found: Found, *, top: int, is_in_order: bool) -> Answer:
    """Show a path: the time of each kind and name, or its order; in CSV each segment."""
    path = found.path
    sections = in_order(path, trace) if is_in_order else None
    shown = path.name_totals[:top]
    verdict = found.verdict
    document = Document(
        schema=_SCHEMA,
        **known_of(name, trace, found, verdict),
        data=PathData(
            length_ns=path.length_ns,
            inferred_ns=path.inferred_ns,
            unexplained_ns=path.unexplained_ns,
            kinds=path.kind_totals,
            names=shown,
            counts=dict(sorted(path.counts.items())),
            in_order=sections,
            verdict=verdict,
        ),
        truncated={"names": {"shown": len(shown), "total": len(path.name_totals)}},
        blocks=lambda: [
            Headline(f"{name_of(name)}: critical path, {found.title}"),
            Sentence(verdict.sentence),
            *(path_blocks(path, top) if sections is None else _order(path, sections, top)),
            *timing_blocks(found.answer.recording_cost),
        ],
        records=lambda: (
            _segments(name, path)
            if sections is None
            else [{"path": name, **plain(row)} for row in sections]
        ),
    )
    return document, exit_code_of(verdict)


def _order(path: CriticalPath, sections: Sequence[PathRow], top: int) -> list[Block]:
    total = f"Total {duration(path.length_ns)} {path.times}, in time order:"
    return [Sentence(total), sections_table(sections, top)]


def _segments(name: str, path: CriticalPath) -> Iterable[Record]:
    from longpole.cli.answer.inputs import records_of

    return records_of(name, path.segments)
