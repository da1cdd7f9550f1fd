"""`longpole view`: show a report in the browser, with a link to the trace in Perfetto."""

from __future__ import annotations

import sys
import tempfile
import webbrowser
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from longpole.cli.answer import exit_codes
from longpole.cli.answer.usage import usage_errors
from longpole.cli.ask.options import Options, page_options
from longpole.cli.ask.traces import named_traces, trace_argument
from longpole.cli.ask.windows import choice_options

if TYPE_CHECKING:
    from longpole.cli.answer.page_server import Server
    from longpole.cli.answer.report import Choice

__all__ = ["view"]


@click.command()
@trace_argument
@click.option(
    "--port", type=click.IntRange(0, 65_535), default=0, help="Port.  [default: a free one]"
)
@click.option("--no-browser", is_flag=True, help="Print the address; do not open a browser.")
@choice_options
@page_options
def view(*, trace: str, port: int, no_browser: bool, options: Options, choice: Choice) -> int:
    """Show a report in the browser, with a link to the trace in Perfetto.

    Serves the page of `longpole report` on 127.0.0.1 until you press Ctrl-C. The address works
    once. The link to Perfetto loads the trace and its critical path from the same server.

    \b
    Examples:
      longpole view trace.json.gz
      ssh -L 8000:127.0.0.1:8000 host longpole view trace.json.gz --port 8000 --no-browser
    """
    from longpole.cli.answer.page_server import Server

    with Server(port) as server:
        _fill(server, trace, options, choice)
        sys.stderr.write(f"{server.opening_address}  (works once; Ctrl-C ends)\n")
        if not no_browser:
            webbrowser.open(server.opening_address)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            return exit_codes.OK
    return exit_codes.OK


def _fill(server: Server, path: str, options: Options, choice: Choice) -> None:
    """Create the page and the archive to serve."""
    from longpole.cli.answer.page_server import perfetto_link
    from longpole.cli.answer.report import report_page
    from longpole.report.page import page_text

    [(name, trace), *_] = named_traces([path], options, args="default")
    with usage_errors():
        page = report_page([(name, trace)], choice)
        window = choice.window(trace)
    if window is not None and name != "-":
        with tempfile.TemporaryDirectory() as folder:
            archive = Path(folder, "trace.zip")
            choice.path(trace, window).to_perfetto(archive, beside=name)
            server.archive = archive.read_bytes()
        link = ("Open the trace with its critical path in Perfetto", perfetto_link(server))
        page = replace(page, links=(link,))
    server.page = page_text(page).encode()
