"""A client that starts `signoff mcp` and speaks JSON-RPC with it, line by line.

Every line that the server prints has to be a message of the protocol; anything else fails.
"""

from __future__ import annotations

import json
import subprocess
from types import TracebackType
from typing import Any, Self

from tests.acceptance.cli_project import PROGRAM, CliProject
from tests.patience import PATIENCE_SECONDS


class McpClient:
    """A client of the 2025 protocol, with a handshake."""

    def __init__(self, project: CliProject, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [PROGRAM, "mcp", *arguments],
            cwd=project.folder,
            env=project.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._number = 0
        info = {"name": "test", "version": "1"}
        hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": info}
        self.server = self.request("initialize", hello)
        self._send({"method": "notifications/initialized"})

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill()

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Returns the structured answer of a tool."""
        result = self.request("tools/call", {"name": tool, "arguments": arguments})
        assert not result.get("isError"), result
        return dict(result["structuredContent"])

    def begin(self, tool: str, **arguments: Any) -> None:
        """Calls a tool without waiting for the answer."""
        self._ask("tools/call", {"name": tool, "arguments": arguments})

    def request(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Returns the result of a request."""
        number = self._ask(method, params)
        assert self.process.stdout is not None
        for line in self.process.stdout:
            message = json.loads(line)
            assert message["jsonrpc"] == "2.0"
            if message.get("id") == number:
                return dict(message["result"])
        raise AssertionError(f"the server has ended: {self.process.communicate()[1]}")

    def hang_up(self) -> int:
        """Closes the connection as a client that ends does; returns the exit code."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.stdin = None
        self.process.communicate(timeout=PATIENCE_SECONDS)
        return self.process.returncode

    def kill(self) -> None:
        """Kills the server at once."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()

    def _ask(self, method: str, params: dict[str, Any]) -> int:
        self._number += 1
        self._send({"id": self._number, "method": method, "params": params})
        return self._number

    def _send(self, message: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self.process.stdin.flush()
