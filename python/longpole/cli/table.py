"""`longpole table`: one of the tables behind the answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from longpole.cli.frames import markdown_of, records_of, text_of
from longpole.cli.options import Options, shared_options
from longpole.cli.output import Document
from longpole.cli.traces import answer_each, title
from longpole.cli.windows import Window, abstained, known_of, window_options

if TYPE_CHECKING:
    from collections.abc import Callable

    import polars as pl

    from longpole.critical_path import CriticalPath
    from longpole.trace import Trace

__all__ = ["table"]

_SCHEMA: Final = "longpole.table/1"
_TABLES: Final[dict[str, Callable[[CriticalPath, Trace], pl.DataFrame]]] = {
    "sync": lambda path, trace: _timed(path.sync_dependencies, trace),
    "segments": lambda path, _: path.segments,
    "slack": lambda path, trace: _named(path.slack, trace),
    "violations": lambda path, _: path.violations,
}


def _timed(waits: pl.DataFrame, trace: Trace) -> pl.DataFrame:
    """Give waits with the time of what waited, in the order in which it began."""
    times = trace.events.select("start_ns", "duration_ns", target="event")
    return waits.join(times, on="target").sort("start_ns", "target", "source")


def _named(slack: pl.DataFrame, trace: Trace) -> pl.DataFrame:
    """Give the slack of events with what they are, the least first; what has none stands last."""
    import polars as pl

    names = trace.events.select("event", "kind", "name", "start_ns", "duration_ns")
    ordered = slack.join(names, on="event").sort("slack_ns", "event", nulls_last=True)
    return ordered.with_columns(pl.col("kind", "name").cast(pl.String))


@click.command()
@click.argument("trace", metavar="TRACE")
@click.argument("name", type=click.Choice(tuple(_TABLES)), metavar="NAME")
@window_options
@shared_options
def table(*, trace: str, name: str, window: Window, options: Options) -> int:
    """Print one of the tables behind the answers.

    NAME is `sync` (who waited for whom on a device), `segments` (the critical path),
    `slack` (how late each event may end, the least first) or `violations` (edges back in time).

    \b
    Examples:
      longpole table trace.json.gz sync --format csv
      longpole table trace.json.gz slack --step 3 --format jsonl
    """

    def answer(path: str, read: Trace) -> Document:
        found = window.path_of(read)
        if found is None:
            return abstained(_SCHEMA, path, read)
        rows = _TABLES[name](found, read)
        return Document(
            schema=_SCHEMA,
            **known_of(path, read, window, found),
            data={"table": name, "rows": rows.to_dicts()},
            text=lambda terminal: "\n".join(
                [
                    terminal.styled(f"{title(path)}: {name}, {window.name}", "bold"),
                    *text_of(rows, terminal),
                    "",
                ]
            ),
            markdown=lambda: "\n".join([*markdown_of(rows), ""]),
            records=lambda: records_of(path, rows),
            columns=("path", *rows.columns),
        )

    return answer_each([trace], options, _SCHEMA, answer)
