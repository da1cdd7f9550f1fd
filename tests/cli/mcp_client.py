"""A small client of the Model Context Protocol: one message of JSON-RPC a line, over pipes."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


class Client:
    """A running `longpole mcp`, and the answers that it has sent so far, in their order."""

    def __init__(self, folder: Path, *options: str) -> None:
        command = [sys.executable, "-m", "longpole", "mcp", *options, str(folder)]
        self.server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.answers: dict[int, dict[str, Any]] = {}
        self._last = 0

    def __enter__(self) -> Self:
        about = {"name": "test", "version": "1"}
        asked = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": about}
        self.wait(self.send("initialize", asked))
        self._write({"method": "notifications/initialized"})
        return self

    def __exit__(self, *_: object) -> None:
        assert self.server.stdin is not None
        assert self.server.stdout is not None
        try:
            self.server.stdin.close()
            self.server.wait(timeout=60)
        finally:
            self.server.kill()
            self.server.wait()
            self.server.stdout.close()

    def ask(self, tool: str, arguments: Mapping[str, Any]) -> int:
        """Ask without waiting; return the number of the question."""
        return self.send("tools/call", {"name": tool, "arguments": arguments})

    def answer(self, tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Ask, and wait for the answer."""
        number = self.ask(tool, arguments)
        self.wait(number)
        return self.answers[number]

    def answer_text(self, tool: str, arguments: str) -> dict[str, Any]:
        """Ask with arguments as text, which may be JSON that no encoder writes; wait."""
        assert self.server.stdin is not None
        self._last += 1
        params = f'{{"name": "{tool}", "arguments": {arguments}}}'
        message = (
            f'{{"jsonrpc": "2.0", "id": {self._last}, "method": "tools/call", "params": {params}}}'
        )
        self.server.stdin.write(message.encode() + b"\n")
        self.server.stdin.flush()
        self.wait(self._last)
        return self.answers[self._last]

    def send(self, method: str, params: Mapping[str, Any]) -> int:
        self._last += 1
        self._write({"id": self._last, "method": method, "params": params})
        return self._last

    def wait(self, *numbers: int) -> None:
        """Read until these questions are answered."""
        assert self.server.stdout is not None
        while not self.answers.keys() >= set(numbers):
            line = self.server.stdout.readline()
            assert line, "the server has ended"
            message = json.loads(line)
            if "id" in message:
                assert "error" not in message, message
                result = message["result"]
                self.answers[message["id"]] = result.get("structuredContent", result)

    def _write(self, message: Mapping[str, Any]) -> None:
        assert self.server.stdin is not None
        self.server.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self.server.stdin.flush()
