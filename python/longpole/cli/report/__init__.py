"""`longpole report`: a report about traces as one HTML page, or a picture of one step."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from longpole.cli.answer import exit_codes
from longpole.cli.answer.inputs import name_of, record_of
from longpole.cli.answer.problems import require, usage_errors
from longpole.cli.answer.windows import abstained
from longpole.cli.ask.options import Options, answers, graph_options, output_options
from longpole.cli.ask.traces import named_traces, traces_argument
from longpole.cli.ask.windows import (
    NO_WORK,
    OF_PROGRAM,
    OF_TIME,
    Asked,
    window_options,
)
from longpole.files.writing import new_file
from longpole.report.blocks import Notes, Sentence
from longpole.report.document import Document
from longpole.words.data import Row
from longpole.words.wording import count, duration

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longpole.cli.answer.emit import Answer
    from longpole.cli.report.server import Server
    from longpole.report.sections import Page
    from longpole.trace.trace import Trace

    Named = tuple[str, Trace]

_SCHEMA: Final = "longpole.report/1"

# A file without an ending, such as /dev/stdout, gets a page.
_SUFFIXES: Final = ("", ".html", ".htm", ".svg")


@click.command()
@answers("longpole.cli.report:WrittenReport")
@traces_argument
@output_options(required=False)
@click.option(
    "--open",
    "is_opened",
    is_flag=True,
    help="Show the page in the browser until Ctrl-C, with a link that opens the trace in Perfetto.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    metavar="PORT",
    help="With --open: listen on this port, such as one that ssh forwards, and only print the "
    "address.  [default: a free port]",
)
@window_options(*OF_TIME, OF_PROGRAM)
@graph_options
def report(
    *,
    traces: Sequence[str],
    output: Path | None,
    force: bool,
    is_opened: bool,
    port: int | None,
    options: Options,
    window: Asked,
) -> int:
    """Write a report about traces as one HTML page that opens offline.

    The page has the verdict with figures and bars, a timeline, flame graphs, all tables and
    the diagnostics. For several ranks of one run, it starts with the run as a whole. If FILE
    ends in .svg, write only a picture of the critical path above what devices and threads did.

    With --open, the page is served on 127.0.0.1. Its address works once. The link to Perfetto
    loads the trace and its critical path from the same server.

    \b
    Examples:
      longpole report trace.json.gz -o report.html
      longpole report trace.json.gz -o step.svg --step 3
      longpole report rank*.json.gz -o report.html
      longpole report trace.json.gz --open
      ssh -L 8000:127.0.0.1:8000 host longpole report trace.json.gz --open --port 8000
    """
    from longpole.cli.report.server import Server

    require(output is not None or is_opened, "give -o FILE, or --open to show the page")
    require(port is None or is_opened, "--port needs --open")
    if output is not None:
        require(
            output.suffix.lower() in _SUFFIXES,
            f"--output ends in .html (a page) or .svg (a picture), not {output.suffix!r}",
        )
        if output.suffix == ".svg":
            require(len(traces) == 1, "a picture (.svg) shows one trace; give only one")
            require(not is_opened, "--open shows a page, not a picture (.svg)")
            answer = _picture(traces[0], output, options, window, force=force)
            return options.emit(answer)
    with usage_errors():
        named = named_traces(traces, options, args="default")
        page = _page(named, window)
    if output is not None:
        _write(page, named, output, force=force)
    if not is_opened:
        return options.emit(_written(page, named, output))
    with Server(port or 0) as server:
        _add_trace(server, named, window)
        server.show(page)
        code = options.emit(_written(page, named, output, address=server.opening_address))
        server.serve(opens_browser=port is None)
        return code


def _page(named: Sequence[Named], window: Asked) -> Page:
    from longpole.cli.report.page import report_page

    return report_page(named, window)


def _write(page: Page, named: Sequence[Named], output: Path, *, force: bool) -> None:
    from longpole.report.page import page_text

    inputs = [Path(path) for path, _ in named if path != "-"]
    with new_file(output, force=force, inputs=inputs) as unfinished:
        unfinished.write_text(page_text(page), encoding="utf-8")


def _add_trace(server: Server, named: Sequence[Named], window: Asked) -> None:
    """Serve the only trace for Perfetto, as recorded."""
    if len(named) > 1:
        return
    [(name, trace)] = named
    chosen = window.window(trace)
    if chosen is not None and name != "-":
        server.add_trace(name, window.as_recorded(trace).path)


def _picture(path: str, output: Path, options: Options, window: Asked, *, force: bool) -> Answer:
    """Write a picture of the window, and report its size."""
    from longpole.plot.lanes import lanes
    from longpole.plot.picture import picture

    [(name, trace)] = named_traces([path], options, args="ids")
    with usage_errors():
        chosen = window.window(trace)
    drawn = None if chosen is None else lanes(trace, chosen, window.as_recorded(trace).path)
    if chosen is None or drawn is None:
        return abstained(_SCHEMA, name, trace, NO_WORK, "no_work")
    with new_file(output, force=force, inputs=[Path(name)] if name != "-" else []) as unfinished:
        title = f"{Path(name_of(name)).name}: {chosen.title}, {duration(drawn.length_ns)}"
        unfinished.write_text(picture(drawn, title), encoding="utf-8")
    n_bytes = output.stat().st_size
    found = WrittenReport(output=str(output), address=None, bytes=n_bytes, sections=[])
    document = Document(
        schema=_SCHEMA,
        input={"path": name},
        data=found,
        blocks=lambda: [Sentence(f"{output}: {chosen.title}, {n_bytes / 1e3:.0f} kB")],
        records=lambda: [record_of(found)],
    )
    return document, exit_codes.OK


class WrittenReport(Row):
    """The written report."""

    output: str | None
    """Path of the file; null if the page is only shown."""
    address: str | None
    """Address of the page with `--open`; it works once."""
    bytes: int
    """Size of the page or picture."""
    sections: list[str]
    """Sections of the page; none for a picture."""


def _written(
    page: Page, named: Sequence[Named], output: Path | None, *, address: str | None = None
) -> Answer:
    """Report what was written to which file, or is shown at which address."""
    from longpole.cli.report.page import APART
    from longpole.report.page import page_text

    n_bytes = output.stat().st_size if output else len(page_text(page).encode())
    told = f"{output}: {count(len(page.sections), 'section')}, {n_bytes / 1e6:.1f} MB"
    sections = [section.key for section in page.sections]
    apart = [Notes([APART])] if sections[:1] == ["traces"] else []
    paths = [path for path, _ in named]
    found = WrittenReport(
        output=None if output is None else str(output),
        address=address,
        bytes=n_bytes,
        sections=sections,
    )
    document = Document(
        schema=_SCHEMA,
        input={"path": paths[0], "traces": paths},
        data=found,
        blocks=lambda: [*([Sentence(told)] if output else []), *apart],
        records=lambda: [record_of(found)],
    )
    return document, exit_codes.OK
