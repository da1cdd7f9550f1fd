"""The server: lists the tools and calls them, one at a time."""

from __future__ import annotations

import json
from functools import partial
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import anyio
from anyio import CapacityLimiter, to_thread
from mcp import types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

from longpole.cli.guide import guide_text
from longpole.cli.mcp.bounds import visible
from longpole.cli.mcp.tools import TOOLS, call, input_schema, output_schema, purpose

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

__all__ = ["serve", "server_of"]


def serve(folders: Sequence[Path]) -> None:
    """Answer on stdin and stdout until the client leaves."""
    anyio.run(_serve, server_of(folders))


async def _serve(server: Server[Any]) -> None:
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())


def server_of(folders: Sequence[Path]) -> Server[Any]:
    """Make the server of some folders."""
    one_at_a_time = CapacityLimiter(1)  # a command writes to the stdout of the process

    async def list_tools(_context: Any, _params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[_tool(name) for name in TOOLS])

    async def call_tool(_context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        ask = partial(call, params.name, params.arguments or {}, folders)
        answer = visible(await to_thread.run_sync(ask, limiter=one_at_a_time))
        text = types.TextContent(type="text", text=json.dumps(answer, ensure_ascii=False))
        failed = answer["status"] == "error"
        return types.CallToolResult(content=[text], structured_content=answer, is_error=failed)

    return Server(
        "longpole",
        version=version("longpole"),
        instructions=guide_text(),
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


def _tool(name: str) -> types.Tool:
    return types.Tool(
        name=name,
        description=purpose(name),
        input_schema=input_schema(name),
        output_schema=output_schema(name),
        annotations=types.ToolAnnotations(read_only_hint=True, open_world_hint=False),
    )
