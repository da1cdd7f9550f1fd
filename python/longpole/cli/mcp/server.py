"""The server: lists the tools, and answers each question in a separate process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from importlib.metadata import version
from io import TextIOWrapper
from typing import TYPE_CHECKING, Any, Final

import anyio
from anyio import CapacityLimiter
from mcp import types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

from longpole.cli.guide import guide_text
from longpole.cli.mcp.bounds import MOST_BYTES
from longpole.cli.mcp.messages import readable
from longpole.cli.mcp.tools import TOOLS, input_schema, output_schema, purpose, refused

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence
    from pathlib import Path
    from typing import IO

    from anyio.abc import ByteReceiveStream, Process

_COMMAND: Final = (sys.executable, "-P", "-m", "longpole.cli.mcp.worker")
_MOST_AT_ONCE: Final = 4
_MOST_TOLD: Final = 4_000
_INTERNAL: Final = "internal error (please report)"
_OUT_OF_MEMORY: Final = (b"memory allocation of", b"MemoryError", b"out of memory")
"""What a process writes when it gets no memory."""
_MOST_READ: Final = 8 * MOST_BYTES  # escapes lengthen JSON in other alphabets


def serve(folders: Sequence[Path], limits: Limits) -> None:
    """Serve on stdin and stdout until the client disconnects."""
    anyio.run(_serve, Workers(folders, limits))


async def _serve(workers: Workers) -> None:
    server = server_of(workers)
    await workers.start()
    try:
        async with stdio_server(_Lines()) as (reading, writing):
            await server.run(reading, writing, server.create_initialization_options())
    finally:
        with anyio.CancelScope(shield=True):
            await workers.close()


class _Lines:
    """The messages on stdin, as the protocol's parser can read them."""

    async def __aiter__(self) -> AsyncIterator[str]:
        text = TextIOWrapper(sys.stdin.buffer, encoding="utf-8", errors="replace")
        async for line in anyio.wrap_file(text):
            yield readable(line)


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


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one tool call."""

    time_s: float = 120
    memory_gb: float = 8


@dataclass(frozen=True, slots=True)
class _Worker:
    """A process that answers one question, and what it writes to stderr."""

    process: Process
    told: IO[bytes]

    @classmethod
    async def started(cls) -> _Worker:
        pipe, told = subprocess.PIPE, _unnamed_file()
        return cls(await anyio.open_process(_COMMAND, stdin=pipe, stdout=pipe, stderr=told), told)

    async def end(self) -> None:
        if self.process.returncode is None:
            self.process.kill()
        await self.process.aclose()
        self.told.close()

    async def end_of(self) -> tuple[int, bytes]:
        """Wait for the process to end; return its exit code, and the start and end of its messages.

        The message of Rust precedes its backtrace, that of Python follows it.
        """
        code = await self.process.wait()
        size = self.told.seek(0, 2)
        self.told.seek(0)
        told = self.told.read(_MOST_TOLD)
        self.told.seek(max(size - _MOST_TOLD, 0))
        return code, told + self.told.read()


def _unnamed_file() -> IO[bytes]:
    """Open a temporary file; on Linux it is in memory, so that nothing is written to a disk."""
    if sys.platform == "linux":
        return os.fdopen(os.memfd_create("stderr"), "w+b")
    return tempfile.TemporaryFile()


class Workers:
    """The processes that answer questions about some folders."""

    def __init__(self, folders: Sequence[Path], limits: Limits) -> None:
        # Resolved once: a link that later replaces a folder is not followed.
        self._folders = [str(folder.resolve()) for folder in folders]
        self._limits = limits
        self._at_once = CapacityLimiter(_MOST_AT_ONCE)
        self._waiting: list[_Worker] = []

    async def start(self) -> None:
        """Start a process in advance."""
        if not self._waiting:
            self._waiting.append(await _Worker.started())

    async def close(self) -> None:
        """End the idle processes."""
        while self._waiting:
            await self._waiting.pop().end()

    async def ask(self, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Ask one question; errors are returned as answers."""
        async with self._at_once:
            worker = self._waiting.pop() if self._waiting else await _Worker.started()
            try:
                with anyio.fail_after(self._limits.time_s):
                    return await self._answer(worker, name, arguments)
            except TimeoutError:
                message = f"the question took longer than {self._limits.time_s:g} s and was ended"
                hint = "ask about one step, or start the server with a longer --timeout"
                return refused("time_limit", message, hint)
            finally:
                with anyio.CancelScope(shield=True):
                    await worker.end()
                    await self.start()

    async def _answer(
        self, worker: _Worker, name: str, arguments: Mapping[str, Any]
    ) -> dict[str, Any]:
        process = worker.process
        question = {
            "name": name,
            "arguments": arguments,
            "folders": self._folders,
            "time_limit_s": self._limits.time_s,
            "memory_limit_gb": self._limits.memory_gb,
        }
        assert process.stdin is not None  # noqa: S101 - the process was opened with pipes
        assert process.stdout is not None  # noqa: S101
        try:
            await process.stdin.send(json.dumps(question).encode() + b"\n")
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            return self._ended(*await worker.end_of())
        line = await _line(process.stdout)
        if not line.endswith(b"\n"):
            return self._ended(*await worker.end_of())
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _ended(self, code: int, told: bytes) -> dict[str, Any]:
        """Return the error for a process that did not answer."""
        how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        ended = f"the process that worked on the question ended with {how}"
        if any(words in told for words in _OUT_OF_MEMORY):
            message = f"{ended}: it needed more memory than it may have or the machine has"
            hint = (
                f"the limit is {self._limits.memory_gb:g} GB: ask about one step, or start the "
                "server with a larger --memory-limit"
            )
            return refused("memory_limit", message, hint)
        # The system kills processes when memory is short, but so can anybody.
        is_killed = how == "SIGKILL"
        hint = "if the machine ran out of memory, ask about one step" if is_killed else _INTERNAL
        return refused("ended", ended, hint)


async def _line(stream: ByteReceiveStream) -> bytes:
    line = b""
    while not line.endswith(b"\n") and len(line) <= _MOST_READ:
        try:
            line += await stream.receive()
        except anyio.EndOfStream:
            break
    return line
