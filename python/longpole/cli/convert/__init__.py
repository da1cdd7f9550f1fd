"""`longpole convert`: write traces, parts of them and tables to files for other programs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import click

from longpole.cli.answer.problems import require
from longpole.cli.answer.table import Shown, tables
from longpole.cli.ask.files import OutputPath
from longpole.cli.ask.options import Options, answers, force_option, gather, shared_options
from longpole.cli.ask.pairs import et_option, iteration_option
from longpole.cli.ask.ranks import workers_option
from longpole.cli.ask.traces import traces_argument
from longpole.cli.ask.windows import OF_PATH, Asked, window_options
from longpole.cli.convert.ranks import convert_ranks, traces_in
from longpole.cli.convert.trace import convert_trace
from longpole.cli.convert.written import TABLE_ENDINGS
from longpole.cli.table import where_option
from longpole.tables.catalogue import words_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from longpole.formats.convert.flame import Time

_ENDINGS: Final[dict[str, tuple[str, ...]]] = {
    "table": TABLE_ENDINGS,
    "flame": (".folded", ".speedscope.json"),
    "trace": (".json", ".json.gz"),
    "perfetto": (".perfetto-trace", ".perfetto-trace.gz"),
    "saved": (".longpole",),
    "overlay": (".pftrace", ".zip"),
}
"""Content of a file by suffix; the first match counts."""
_PAIR_ENDINGS: Final = (".json", ".et", *TABLE_ENDINGS)
_PAIR_TABLES: Final = ("nodes", "dependencies", "unlinked", "collectives")
"""Tables of an execution trace with the times of a trace."""


@dataclass(frozen=True, slots=True)
class _Content:
    """The options on what to write."""

    table: str | None
    by: str | None
    where: str | None
    time: Time | None
    counters: bool
    execution: str | None
    iteration: int | None
    no_gaps: bool
    workers: int | None

    def shown(self) -> Shown:
        """Return which table, rows of which kind, and which of them."""
        table = self.table or "events"
        if self.by is not None and self.by not in (kinds := words_of(table)):
            require(bool(kinds), f"{table} has one kind of rows; leave out --by")
            message = f"--by of {table} is one of {', '.join(kinds)}, not {self.by!r}"
            raise click.UsageError(message)
        return Shown(table, self.where, None, by=self.by)

    def check(self, allowed: Sequence[str], what: str, window: Asked | None = None) -> None:
        """Raise for options, or a window, that have no effect for this content."""
        given = {
            "--table": self.table is not None,
            "--by": self.by is not None,
            "--where": self.where is not None,
            "--time": self.time is not None,
            "--counters": self.counters,
            "--iteration": self.iteration is not None,
            "--no-gaps": self.no_gaps,
            "--workers": self.workers is not None,
        }
        wrong = [name for name, is_given in given.items() if is_given and name not in allowed]
        if window is not None and window.is_any:
            wrong.append("a window")
        require(not wrong, f"{' and '.join(wrong)} has no meaning for {what}")


@click.command()
@answers(
    "longpole.cli.convert.written:Converted",
    "longpole.cli.convert.ranks:ConvertedRanks",
    "longpole.cli.convert.pair:ConvertedGraphs",
)
@traces_argument
@click.option(
    "-o",
    "--output",
    required=True,
    type=OutputPath(is_path=True, is_either=True),
    help="File to write; its ending sets the format, as listed above.",
)
@force_option
@gather(
    "content",
    {
        "table": click.option(
            "--table",
            type=click.Choice((*tables(), *_PAIR_TABLES)),
            metavar="NAME",
            help="Table to write; `longpole table TRACE` lists the names.  [default: events; with "
            "--et: nodes]",
        ),
        "by": click.option(
            "--by",
            metavar="KIND",
            help="Kind of rows of the table; `longpole table NAME --help` lists them.",
        ),
        "where": where_option,
        "time": click.option(
            "--time",
            type=click.Choice(("host", "device", "path")),
            help="Time that a flame graph shows: of threads, devices or the critical path."
            "  [default: host]",
        ),
        "counters": click.option(
            "--counters",
            is_flag=True,
            help="Add tracks with queue lengths and copy bandwidths to the critical path.",
        ),
        "execution": et_option,
        "iteration": iteration_option,
        "no_gaps": click.option(
            "--no-gaps", is_flag=True, help="Leave out the time between operators."
        ),
        "workers": workers_option,
    },
    _Content,
)
@window_options(*OF_PATH)
@shared_options
def convert(
    *,
    traces: Sequence[str],
    output: Path,
    force: bool,
    content: _Content,
    window: Asked,
    options: Options,
) -> int:
    """Write traces, parts of them and tables to files for other programs.

    The ending of the file sets the format.

    \b
      .parquet .arrow .csv .jsonl  one table: all events, or another table with --table
      .json .json.gz               a trace: the events of a window and what its critical path
                                   needs; without a window, all that could be read
      .perfetto-trace .perfetto-trace.gz
                                   the same as a trace of Perfetto; of several ranks (several
                                   traces, a folder or a quoted pattern), all on one clock with
                                   the critical path across them
      .longpole                    all tables, for longpole to open again without parsing
      .folded .speedscope.json     a flame graph of the time that --time names
      .pftrace .zip                the critical path for ui.perfetto.dev, alone or with the trace,
                                   which Perfetto opens as one timeline

    With --et, the times of TRACE are added to the execution trace of the same run. The exit code
    is 3 if the files do not belong together, and 4 if a replay differs from the measured time.

    \b
      .json                        ET+: the execution trace with times and dependencies
      .et                          a Chakra graph, which simulators read
      a folder                     the Chakra graphs of several ranks, and their process groups
      .parquet .arrow .csv .jsonl  a table: nodes, dependencies, unlinked or collectives

    \b
    Examples:
      longpole convert trace.json.gz -o events.parquet
      longpole convert trace.json.gz --table kernels --step 3 -o kernels.csv
      longpole convert trace.json.gz --step 3 -o step3.json.gz
      longpole convert damaged.json -o whole.json.gz
      longpole convert rank0_ascend_pt -o rank0.perfetto-trace
      longpole convert rank*.json.gz -o run.perfetto-trace
      longpole convert trace.json.gz -o trace.longpole
      longpole convert trace.json.gz --time device -o device.folded
      longpole convert trace.json.gz --step 3 --counters -o both.zip
      longpole convert --et et.json kineto.json -o et_plus.json
      longpole convert --et et.json kineto.json -o rank.0.et
      longpole convert --et "et*.json" "kineto*.json" -o graphs/
    """
    if content.execution is not None:
        return _pair(traces, output, content, window, options, force=force)
    found = traces_in(traces)
    if len(found) > 1:
        return _ranks(traces, output, content, window, options, force=force)
    form = _form_of(output)
    allowed, what = {
        "table": (("--table", "--by", "--where"), "a table"),
        "flame": (("--time",), "a flame graph"),
        "saved": ((), "all tables"),
        "overlay": (("--counters",), "the critical path"),
    }.get(form, ((), "a trace"))
    content.check(allowed, what, window if form == "saved" else None)
    is_of_trace = content.table not in _PAIR_TABLES
    require(is_of_trace, f"--table {content.table} needs the execution trace, with --et")
    shown = content.shown()
    time, counters = content.time or "host", content.counters
    return convert_trace(
        found[0],
        output,
        form,
        window,
        shown,
        time=time,
        counters=counters,
        force=force,
        options=options,
    )


def _form_of(output: Path) -> str:
    """Return the content for a file's suffix; raise for an unknown one."""
    for form, endings in _ENDINGS.items():
        if output.name.endswith(endings):
            return form
    if output.suffix == ".et":
        message = "a Chakra graph needs the execution trace of the same run, with --et"
    else:
        known = ", ".join(ending for endings in _ENDINGS.values() for ending in endings)
        message = f"--output ends in {known}, not {output.suffix or output.name!r}"
    raise click.UsageError(message)


def _ranks(
    traces: Sequence[str],
    output: Path,
    content: _Content,
    window: Asked,
    options: Options,
    *,
    force: bool,
) -> int:
    """Write several ranks as one trace."""
    is_perfetto = output.name.endswith(_ENDINGS["perfetto"])
    require(is_perfetto, "several ranks are written as one .perfetto-trace; for others, name one")
    what = "several ranks"
    content.check(("--workers",), what, replace(window, step_name=None))
    return convert_ranks(
        traces,
        output,
        force=force,
        step_name=window.step_name,
        workers=content.workers,
        options=options,
    )


def _pair(
    traces: Sequence[str],
    output: Path,
    content: _Content,
    window: Asked,
    options: Options,
    *,
    force: bool,
) -> int:
    """Write an execution trace with the times of a trace."""
    from longpole.cli.convert.pair import convert_pair

    is_folder = not output.suffix or output.is_dir()
    is_table = output.name.endswith(TABLE_ENDINGS)
    is_known = is_folder or output.name.endswith(_PAIR_ENDINGS)
    require(is_known, f"with --et, --output is a folder or ends in {', '.join(_PAIR_ENDINGS)}")
    allowed = (() if is_folder else ("--iteration",), ("--table",) if is_table else ("--no-gaps",))
    content.check((*allowed[0], *allowed[1]), "this file of an execution trace", window)
    is_of_pair = content.table in (None, *_PAIR_TABLES)
    require(is_of_pair, f"with --et, --table is one of {', '.join(_PAIR_TABLES)}")
    assert content.execution is not None  # noqa: S101 (checked by the caller)
    return convert_pair(
        content.execution,
        traces,
        output,
        table=content.table or "nodes",
        iteration=content.iteration,
        gaps=not content.no_gaps,
        force=force,
        options=options,
    )
