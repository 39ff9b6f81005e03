"""The vendors' coding agents drive a review through MCP, with stubs of their models.

Each starts a review, waits for it, shows what it found and asks for a sign-off, which a human then
gives on the command line. The stub of the model decides which tools are called, and sees what the
program sends back.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.cli_project import CliProject
from tests.acceptance.forked_program import ForkedProgram
from tests.patience import PATIENCE_SECONDS
from tests.real.vendors import KEY, Vendor
from tests.stubs.vendors.server import Turn, UseTool, UseTools, VendorStub
from tests.unit.surfaces.mcp.review_server import CONFIG, FLOW, SCRIPT

pytestmark = [pytest.mark.real, pytest.mark.slow]

Serve = Callable[[Turn], VendorStub]

TOOL_NAMES = {"claude": "mcp__signoff__{}", "codex": "mcp__signoff.{}", "gemini": "mcp_signoff_{}"}
"""What each program calls a tool of the server."""
SEARCH = UseTool("tool_search", {"query": "signoff start wait show request_signoff review"})
"""Codex offers the tools of a server only after the model has searched for them."""


@pytest.fixture
def project(
    tmp_path: Path, home: Path, command_server: ForkedProgram, vendor: Vendor
) -> Iterator[CliProject]:
    """A project that the vendor's program trusts, with the server in its settings."""
    folder = tmp_path / "work"
    folder.mkdir()
    with closing(CliProject(folder, command_server)) as project:
        project.environment |= {"HOME": str(home), "PATH": f"{os.defpath}:{os.environ['PATH']}"}
        assert project.signoff("init").returncode == 0
        project.write(".signoff/config.yaml", CONFIG)
        project.write(".signoff/flows/notice.yaml", FLOW)
        project.write("script.yaml", SCRIPT)
        assert project.signoff("mcp", "install", vendor.name).returncode == 0
        _trust(home, folder)
        yield project


@pytest.fixture(scope="session")
def command_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ForkedProgram]:
    environment = {"PATH": os.defpath, "LANG": "C.UTF-8", "SIGNOFF_TRUST": "1"}
    with closing(ForkedProgram(tmp_path_factory.mktemp("commands"), environment)) as server:
        yield server


def test_an_agent_drives_a_review_and_gets_a_sign_off(
    vendor: Vendor, serve: Serve, project: CliProject
) -> None:
    """From the vendor's own program to the human and back, with nothing approved on the way."""
    first = converse(
        vendor,
        serve,
        project,
        ("start", {"workflow": "notice", "name": "one"}),
        ("wait", {"run": "one", "cursor": 0, "seconds": 50}),
        ("show", {"run": "one", "part": "diff"}),
        ("request_signoff", {"request": 1}),
        ("answer", {"request": 1, "value": "approve", "digest": "0" * 12}),
    )
    pending = project.json("inbox", "one")
    signed = project.signoff("approve", "1")
    second = converse(vendor, serve, project, ("wait", {"run": "one", "cursor": 1000}))

    assert "wait(run=" in first
    assert "Sign off this result?" in first
    assert "+Our tea warms you." in first
    assert "signoff inbox 1" in first
    assert "only a human can answer" in first
    assert [each["state"] for each in pending] == ["open"]
    assert signed.returncode == 0, signed.stderr
    assert '"completed"' in second or "completed" in second


def converse(
    vendor: Vendor, serve: Serve, project: CliProject, *calls: tuple[str, dict[str, Any]]
) -> str:
    """Lets the program call these tools; returns what its model got in the end."""
    name = TOOL_NAMES[vendor.name]
    tools = [UseTool(name.format(tool), arguments) for tool, arguments in calls]
    search = [SEARCH] if vendor.name == "codex" else []
    stub = serve(UseTools((*search, *tools)))
    ended = subprocess.run(
        _command(vendor, stub.url),
        cwd=project.folder,
        env=project.environment | _variables(vendor, stub.url),
        input="Review the notice.",
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
    )
    heard = [each for each in stub.heard if stub.wants(each)]
    assert ended.returncode == 0, ended.stderr
    assert len(heard) > len(tools), (ended.stdout, ended.stderr)

    # Quotes inside of JSON that is inside of JSON are escaped more than once.
    return json.dumps(heard[-1].body).replace("\\", "")


def _command(vendor: Vendor, url: str) -> list[str]:
    program = str(vendor.program)
    match vendor.name:
        case "claude":
            settings = ["--mcp-config", ".mcp.json", "--strict-mcp-config"]
            allowed = ["--allowedTools", "mcp__signoff", "--setting-sources", "user"]
            return [program, "-p", "--model", vendor.model, *settings, *allowed]
        case "codex":
            fields = {"name": "stub", "base_url": f"{url}/v1", "env_key": "CODEX_API_KEY"}
            provider = ",".join(f'{key}="{value}"' for key, value in fields.items())
            options = {
                "model_provider": '"stub"',
                "model_providers.stub": f'{{{provider},wire_api="responses"}}',
                # Otherwise it begins without servers that take longer than the first request.
                "mcp_servers.signoff.required": "true",
                # It asks its user before a tool that reaches outside, and here is no user.
                "mcp_servers.signoff.default_tools_approval_mode": '"approve"',
                "mcp_servers.signoff.startup_timeout_sec": str(PATIENCE_SECONDS),
            }
            given = [part for key, value in options.items() for part in ("-c", f"{key}={value}")]
            return [program, "exec", "--skip-git-repo-check", "--model", vendor.model, *given, "-"]
        case _:
            approve = ["--approval-mode", "yolo", "--skip-trust"]
            return [program, "--output-format", "json", "--model", vendor.model, *approve]


def _variables(vendor: Vendor, url: str) -> dict[str, str]:
    match vendor.name:
        case "claude":
            return {
                "ANTHROPIC_BASE_URL": url,
                "ANTHROPIC_API_KEY": KEY,
                "DISABLE_AUTOUPDATER": "1",
                "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
                # Offers the tools at once, and waits for servers before the first request.
                "ENABLE_TOOL_SEARCH": "false",
                "MCP_CONNECTION_NONBLOCKING": "false",
                "MCP_TIMEOUT": str(int(PATIENCE_SECONDS * 1000)),
            }
        case "codex":
            return {"CODEX_API_KEY": KEY}
        case _:
            # As the product starts it: the program would otherwise start itself a second time.
            single = {"GEMINI_CLI_NO_RELAUNCH": "true"}
            return {"GOOGLE_GEMINI_BASE_URL": url, "GEMINI_API_KEY": KEY, **single}


def _trust(home: Path, folder: Path) -> None:
    """Lets the programs read the settings of the project, as a user who trusts it does."""
    (home / ".codex").mkdir()
    text = f'[projects.{json.dumps(str(folder))}]\ntrust_level = "trusted"\n'
    (home / ".codex" / "config.toml").write_text(text)
    trusted = {str(folder): "TRUST_FOLDER"}
    (home / ".gemini" / "trustedFolders.json").write_text(json.dumps(trusted))
