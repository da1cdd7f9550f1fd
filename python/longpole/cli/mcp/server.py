"""The server: lists the tools, and answers each question in a separate process."""

from __future__ import annotations

import json
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import anyio
from mcp import types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

from longpole.cli.guide import guide_text
from longpole.cli.mcp.tools import TOOLS, input_schema, output_schema, purpose
from longpole.cli.mcp.workers import Workers

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from longpole.cli.mcp.workers import Limits

__all__ = ["serve", "server_of"]


def serve(folders: Sequence[Path], limits: Limits) -> None:
    """Serve on stdin and stdout until the client disconnects."""
    anyio.run(_serve, Workers(folders, limits))


async def _serve(workers: Workers) -> None:
    server = server_of(workers)
    await workers.start()
    try:
        async with stdio_server() as (reading, writing):
            await server.run(reading, writing, server.create_initialization_options())
    finally:
        with anyio.CancelScope(shield=True):
            await workers.close()


def server_of(workers: Workers) -> Server[Any]:
    """Create the server, whose questions the workers answer."""

    async def list_tools(_context: Any, _params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[_tool(name) for name in TOOLS])

    async def call_tool(_context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        answer = await workers.ask(params.name, params.arguments or {})
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
