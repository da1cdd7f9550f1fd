"""`longpole path`: what decided when a step was over."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from longpole.cli.frames import markdown_of, records_of
from longpole.cli.options import Options, shared_options, traces_argument
from longpole.cli.output import Document, markdown_cell
from longpole.cli.traces import answer_each, title
from longpole.cli.windows import Window, answer_of, known_of, window_options
from longpole.wording import duration

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longpole.critical_path import CriticalPath
    from longpole.trace import Trace

__all__ = ["path"]

_SCHEMA: Final = "longpole.path/1"


@click.command()
@traces_argument
@window_options
@click.option(
    "--top",
    type=click.IntRange(min=1),
    default=10,
    show_default=True,
    help="How many names to list.",
)
@shared_options
def path(*, traces: Sequence[str], window: Window, top: int, options: Options) -> int:
    """Show the critical path: the chain of work and waiting that decided when it was over.

    Its pieces tile the window to the nanosecond. What was guessed says so. With
    `--format csv` every piece is a row. Exits with 4 where more than a fifth of the
    window is unexplained.

    \b
    Examples:
      longpole path trace.json.gz --step 3
      longpole path trace.json.gz --format csv > path.csv
    """

    def document(name: str, trace: Trace, found: CriticalPath) -> Document:
        return _document(name, trace, window, found, top)

    return answer_each(traces, options, _SCHEMA, answer_of(_SCHEMA, window, document))


def _document(name: str, trace: Trace, window: Window, found: CriticalPath, top: int) -> Document:
    shown = found.by_name.head(top)
    return Document(
        schema=_SCHEMA,
        **known_of(name, trace, window, found),
        data={
            "length_ns": found.length_ns,
            "inferred_ns": found.inferred_ns,
            "unexplained_ns": found.unexplained_ns,
            "kinds": found.by_kind.to_dicts(),
            "names": shown.to_dicts(),
            "counts": dict(sorted(found.counts.items())),
        },
        truncated={"names": {"shown": shown.height, "total": found.by_name.height}},
        text=lambda terminal: (
            terminal.styled(f"{title(name)}: critical path, {window.name}", "bold")
            + f"\n{found.explain(top=top, width=terminal.width)}\n"
        ),
        markdown=lambda: _markdown(name, window, found, top),
        records=lambda: records_of(name, found.segments),
    )


def _markdown(name: str, window: Window, found: CriticalPath, top: int) -> str:
    headline = f"### {markdown_cell(name)}: critical path, {markdown_cell(window.name)}: "
    headline += duration(found.length_ns)
    lines = [headline, "", *markdown_of(found.by_kind)]
    return "\n".join([*lines, "", *markdown_of(found.by_name.head(top))]) + "\n"
