"""A project with a small review flow and scripted agents, and a client of its MCP server.

The client is the SDK's own, connected in memory. No worker process is started: `drive` does what
a worker would do.
"""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from mcp import Client
from mcp_types import CallToolResult

from signoff.app.runs.start import resume
from signoff.app.settings.home import init_home
from signoff.app.settings.project import Project, open_project
from signoff.runtime.result import RunResult
from signoff.surfaces.mcp.access import ServerOptions
from signoff.surfaces.mcp.server import SignoffServer

ERAS = ("legacy", "2026-07-28")
"""Clients with a handshake, and stateless ones."""

FLOW = """
name: notice
goal: A notice about our tea, one sentence.
constraints:
  inline: {legal: It promises no cure.}
workflow:
  - {step: generate, name: draft}
  - {step: critique, name: review}
  - {step: adjudicate, name: judge, agent: policy}
  - {step: refine, name: fix, mode: rewrite, loop_to: review}
  - {step: sign_off, name: approval}
"""
QUESTION_FLOW = """
name: notice
goal: A notice about our tea, one sentence.
default_behavior: {critical: escalate}
adjudication: {escalation: {answerable_by: agent}}
constraints:
  inline: {legal: It promises no cure.}
workflow:
  - {step: generate, name: draft}
  - {step: critique, name: review}
  - {step: adjudicate, name: judge, agent: policy}
  - {step: refine, name: fix, mode: rewrite, loop_to: review}
"""
"""A flow that lets agents answer its questions about findings."""
SCRIPT = """
version: 1
rules:
  - {step: draft, text: Our tea cures colds.}
  - step: review
    times: 1
    json:
      overall: FAIL
      issues: [{severity: CRITICAL, finding: A promised cure., evidence: cures colds}]
  - {step: fix, text: Our tea warms you.}
  - {step: review, json: {overall: PASS, issues: []}}
"""
CONFIG = """
version: 1
agents:
  claude: {kind: scripted, file: script.yaml}
"""


class ReviewServer:
    """The project, and clients of its server."""

    def __init__(self, folder: Path) -> None:
        """Creates the project; the test's working directory has to be `folder`."""
        self.folder = folder
        self.environment = {"XDG_CONFIG_HOME": str(folder / "none"), "PATH": os.environ["PATH"]}
        self.workers = 0
        """How often the server made sure that there is a worker."""
        self.options = ServerOptions(
            folder, self.environment, wait_seconds=1e-9, start_worker=self._count
        )
        init_home(folder, self.environment)
        self.write(".signoff/config.yaml", CONFIG)
        self.write(".signoff/flows/notice.yaml", FLOW)
        self.write("script.yaml", SCRIPT)

    def write(self, path: str, text: str) -> None:
        (self.folder / path).write_text(text)

    def project(self) -> Project:
        return open_project(self.folder, self.environment)

    async def drive(self, run: str) -> RunResult:
        """Drives a run to its end or its next wait, as a worker does."""
        with self.project() as project:
            return await resume(project, run)

    @asynccontextmanager
    async def client(self, era: str = ERAS[0], **options: Any) -> AsyncIterator[ToolClient]:
        """Connects a client; `options` are those of the SDK's client or of the server."""
        own = {name: options.pop(name) for name in ("page", "wait_seconds") if name in options}
        server = SignoffServer(replace(self.options, **own))
        async with Client(server, mode=era, **options) as client:
            yield ToolClient(client)

    def _count(self, _project: Project) -> None:
        self.workers += 1


class ToolClient:
    """Calls tools, and counts what that costs an agent."""

    def __init__(self, client: Client) -> None:
        self.sdk = client
        self.calls = 0
        self.characters = 0

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Returns the structured answer of a tool; raises `AssertionError` for an error."""
        result = await self.result(tool, arguments)
        assert not result.is_error, result.content
        assert result.structured_content is not None
        return dict(result.structured_content)

    async def error(self, tool: str, **arguments: Any) -> str:
        """Returns the message of a tool that refuses."""
        result = await self.result(tool, arguments)
        assert result.is_error, result.structured_content
        return str(result.content[0].text)  # type: ignore[union-attr]

    async def result(self, tool: str, arguments: Mapping[str, Any]) -> CallToolResult:
        result = await self.sdk.call_tool(tool, dict(arguments))
        self.calls += 1
        sent = json.dumps({"name": tool, "arguments": arguments})
        self.characters += len(sent) + sum(len(each.model_dump_json()) for each in result.content)
        return result
