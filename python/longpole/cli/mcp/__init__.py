"""`longpole mcp`: answer questions of agents about the traces of some folders (MCP)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from longpole.cli.ask.numbers import GIGABYTES, timeout_option
from longpole.errors import MissingDependencyError

if TYPE_CHECKING:
    from collections.abc import Sequence


@click.command()
@click.argument(
    "folders",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    nargs=-1,
    required=True,
    metavar="FOLDER...",
)
@timeout_option("a question", 120)
@click.option(
    "--memory-limit",
    type=GIGABYTES,
    default=8,
    show_default=True,
    metavar="GB",
    help="Maximum memory for one question (enforced on Linux).",
)
def mcp(*, folders: Sequence[Path], timeout_s: float, memory_limit: float) -> int:
    """Answer agents' questions about the traces in some folders (MCP).

    This is a server of the Model Context Protocol on stdin and stdout. Every question of longpole
    is a tool. The server reads files in FOLDER and below it, no others, and writes none. Each
    question runs in a process of its own, with limits of time and memory. Long lists are
    shortened, and each answer about one trace comes with the events that prove it.

    The server needs the extra `mcp`: pip install 'longpole[mcp]'.

    \b
    Examples:
      longpole mcp traces/
      claude mcp add longpole -- longpole mcp /data/traces
    """
    try:
        from longpole.cli.mcp.server import Limits, serve
    except ImportError as error:
        message = f"the server needs the package mcp ({error})\nhint: pip install 'longpole[mcp]'"
        raise MissingDependencyError(message) from error
    serve(folders, Limits(timeout_s, memory_limit))
    return 0
