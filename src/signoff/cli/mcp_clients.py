"""How coding agents get to know the MCP server: a line, or an entry of their settings."""

from __future__ import annotations

import json
import shlex
import shutil
import sys
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from signoff.errors import UsageError

NAME = "signoff"
"""What the server is called in the settings of clients."""

CALL_SECONDS = 120
"""How long a client may wait for a call; `wait` takes 50 seconds by default."""


@dataclass(frozen=True)
class McpClient:
    """A coding agent that can use the server."""

    name: str
    line: str
    """The vendor's own command that adds a server, up to the server's command."""
    path: Path
    """Its settings file in a project."""
    merge: Callable[[str, str, Sequence[str]], str]
    """Returns the text of that file with the server's entry; the other entries stay."""

    def command(self, server: Sequence[str]) -> str:
        """Returns the line that adds the server."""
        return f"{self.line} {shlex.join(server)}"

    def merged(self, text: str, server: Sequence[str]) -> str:
        """Returns the settings file with the entry; raises `UsageError` if it cannot be read."""
        try:
            return self.merge(text, NAME, server)
        except ValueError as error:
            raise UsageError(
                f"cannot read {self.path}: {error}; fix it, or add the server yourself: "
                f"{self.command(server)}"
            ) from error


def server_command() -> list[str]:
    """Returns the command that starts the server: by name if clients find it, else by its path."""
    found = shutil.which(NAME)
    same = found is not None and Path(found).parent == Path(sys.executable).parent
    return [NAME, "mcp"] if same else [sys.executable, "-P", "-m", NAME, "mcp"]


def _merge_json(text: str, name: str, server: Sequence[str], **more: Any) -> str:
    settings = json.loads(text) if text.strip() else {}
    servers = settings.setdefault("mcpServers", {}) if isinstance(settings, dict) else None
    if not isinstance(servers, dict):
        raise ValueError("mcpServers is not a mapping")  # noqa: TRY004  # reported with the others
    servers[name] = {"command": server[0], "args": list(server[1:]), **more}
    return json.dumps(settings, indent=2, ensure_ascii=False) + "\n"


def _merge_claude(text: str, name: str, server: Sequence[str]) -> str:
    return _merge_json(text, name, server, type="stdio")


def _merge_gemini(text: str, name: str, server: Sequence[str]) -> str:
    return _merge_json(text, name, server, timeout=CALL_SECONDS * 1000)


def _merge_codex(text: str, name: str, server: Sequence[str]) -> str:
    if name in tomllib.loads(text).get("mcp_servers", {}):
        return text
    # JSON strings and lists of them are TOML as well.
    entry = (
        f"[mcp_servers.{name}]\ncommand = {json.dumps(server[0])}\n"
        f"args = {json.dumps(list(server[1:]))}\ntool_timeout_sec = {CALL_SECONDS}\n"
    )
    return f"{text.rstrip()}\n\n{entry}".lstrip()


CLIENTS = {
    each.name: each
    for each in (
        McpClient("claude", f"claude mcp add {NAME} --", Path(".mcp.json"), _merge_claude),
        McpClient("codex", f"codex mcp add {NAME} --", Path(".codex/config.toml"), _merge_codex),
        McpClient("gemini", f"gemini mcp add {NAME}", Path(".gemini/settings.json"), _merge_gemini),
    )
}
