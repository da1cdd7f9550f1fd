"""`longpole mcp`: answer questions of agents about the traces of some folders (MCP)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from longpole.errors import MissingDependencyError

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["mcp"]


@click.command()
@click.argument(
    "folders",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    nargs=-1,
    required=True,
    metavar="FOLDER...",
)
def mcp(*, folders: Sequence[Path]) -> int:
    """Let agents ask about the traces in some folders (MCP).

    Runs a server of the Model Context Protocol on stdin and stdout. Every question of longpole
    is a tool. The server reads files in FOLDER and below it, no others, and writes none. Long
    lists are shortened, and each answer about one trace comes with the events that prove it.

    Needs the extra `mcp`: pip install 'longpole[mcp]'.

    \b
    Examples:
      longpole mcp traces/
      claude mcp add longpole -- longpole mcp /data/traces
    """
    try:
        from longpole.cli.mcp.server import serve
    except ImportError as error:
        message = f"the server needs the package mcp ({error})\nhint: pip install 'longpole[mcp]'"
        raise MissingDependencyError(message) from error
    serve(folders)
    return 0
