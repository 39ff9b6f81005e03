"""`signoff mcp`, and how coding agents get to know the server: an entry of their settings."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import socket
import sys
import tomllib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import click

from signoff.app.settings.home import find_home
from signoff.app.settings.settings import load_settings
from signoff.app.settings.trust import check_trust
from signoff.core.errors import ConfigError, UsageError
from signoff.runtime.extras import install_command
from signoff.surfaces.cli import options as cli

if TYPE_CHECKING:
    from signoff.surfaces.cli.output import Output


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
    merge: Callable[[str, Sequence[str]], str]
    """Returns the text of that file with the server's entry; the other entries stay."""

    def command(self, server: Sequence[str]) -> str:
        """Returns the line that adds the server."""
        return f"{self.line} {shlex.join(server)}"

    def merged(self, text: str, server: Sequence[str]) -> str:
        """Returns the settings file with the entry; raises `UsageError` if it cannot be read."""
        try:
            return self.merge(text, server)
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


def _merge_json(text: str, server: Sequence[str], **more: Any) -> str:
    settings = json.loads(text) if text.strip() else {}
    servers = settings.setdefault("mcpServers", {}) if isinstance(settings, dict) else None
    if not isinstance(servers, dict):
        raise ValueError("mcpServers is not a mapping")  # noqa: TRY004  # reported with the others
    servers[NAME] = {"command": server[0], "args": list(server[1:]), **more}
    return json.dumps(settings, indent=2, ensure_ascii=False) + "\n"


_merge_claude = partial(_merge_json, type="stdio")
_merge_gemini = partial(_merge_json, timeout=CALL_SECONDS * 1000)


def _merge_codex(text: str, server: Sequence[str]) -> str:
    if NAME in tomllib.loads(text).get("mcp_servers", {}):
        return text
    # JSON strings and lists of them are TOML as well.
    entry = (
        f"[mcp_servers.{NAME}]\ncommand = {json.dumps(server[0])}\n"
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


ANSWERS_WITHIN_SECONDS = 0.5


@click.group(cls=cli.Group, invoke_without_command=True)
@click.option("--wait", "wait_seconds", type=click.FloatRange(1, 600), default=50.0,
              show_default=True, metavar="SECONDS",
              help="How long a call may wait; less than the client's own limit.")  # fmt: skip
@click.option("--page", metavar="URL",
              help="The address of the web page, if it is not served on this machine.")  # fmt: skip
@cli.debug_option
@click.pass_context
def command(ctx: click.Context, wait_seconds: float, page: str | None) -> None:
    """Serve this project to coding agents, as an MCP server.

    Speaks MCP on standard input and output; coding agents start it themselves. They can start
    reviews, follow them, answer what a workflow opens to agents and do handed-out work. They can
    ask you for a sign-off, but nothing that they send approves anything.

    Examples:
      signoff mcp install claude
      signoff mcp install codex --print
      claude mcp add signoff -- signoff mcp
    """
    if ctx.invoked_subcommand is not None:
        return
    try:
        from signoff.surfaces.mcp.access import ServerOptions
        from signoff.surfaces.mcp.server import serve_stdio
    except ImportError as error:
        if not (error.name or "").partition(".")[0].startswith("mcp"):
            raise
        raise ConfigError(
            f"the MCP server needs the extra 'mcp'; install it: {install_command('mcp')}"
        ) from error
    cwd, environment = Path.cwd(), dict(os.environ)
    if (home := find_home(cwd, environment)) is not None:
        check_trust(home, load_settings(home, environment), "flows")
    serve_stdio(
        ServerOptions(
            cwd, environment, wait_seconds, page=lambda: page or local_page(cwd, environment)
        )
    )


def local_page(cwd: Path, environment: Mapping[str, str]) -> str:
    """Returns the address of the project's web page on this machine; empty if none answers."""
    from signoff.surfaces.web.access import Access

    home = find_home(cwd, environment)
    if home is None or not (home.path / "web").is_dir():
        return ""
    access = Access.of(home)
    address = access.address()
    access.close()
    found = urlsplit(address)
    with (
        suppress(OSError),
        socket.create_connection((found.hostname or "", found.port or 0), ANSWERS_WITHIN_SECONDS),
    ):
        return address
    return ""


@cli.command("install", group=command)
@click.argument("client", type=click.Choice(list(CLIENTS)))
@click.option("--print", "only_print", is_flag=True, help="Print the entry instead of writing it.")
def install(client: str, only_print: bool, out: Output) -> None:
    """Add the server to the settings of a coding agent.

    It goes into the settings of this project; other entries of the file stay as they are.

    Examples:
      signoff mcp install claude
      signoff mcp install gemini --print
    """
    chosen, server = CLIENTS[client], server_command()
    text = chosen.path.read_text("utf-8") if chosen.path.is_file() else ""
    merged = chosen.merged(text, server)
    if only_print:
        line = chosen.command(server)
        document = {"command": line, "file": str(chosen.path), "text": merged}
        out.show(document, f"add it with: {line}", f"or write this to {chosen.path}:\n\n{merged}")
        return
    if merged != text:
        chosen.path.parent.mkdir(exist_ok=True)
        chosen.path.write_text(merged, "utf-8")
    what = "wrote" if merged != text else "nothing to change in"
    out.show({"file": str(chosen.path), "changed": merged != text}, f"{what} {chosen.path}")
