"""The entries by which coding agents find the server."""

import json
import tomllib

import pytest

from signoff.core.errors import UsageError
from signoff.surfaces.cli.commands.mcp import CLIENTS, McpClient, server_command

SERVER = ["signoff", "mcp"]


@pytest.mark.parametrize("name", ["claude", "gemini"])
def test_an_entry_is_added_to_json_settings(name: str) -> None:
    """What the user has there stays."""
    before = {"theme": "dark", "mcpServers": {"other": {"command": "other"}}}

    after = json.loads(CLIENTS[name].merged(json.dumps(before), SERVER))

    assert after["theme"] == "dark"
    assert after["mcpServers"]["other"] == {"command": "other"}
    assert after["mcpServers"]["signoff"]["command"] == "signoff"
    assert after["mcpServers"]["signoff"]["args"] == ["mcp"]


def test_an_entry_is_added_to_toml_settings() -> None:
    """Comments stay too, because the entry is appended."""
    before = '# mine\nmodel = "gpt-5.5"\n\n[mcp_servers.other]\ncommand = "other"\n'

    text = CLIENTS["codex"].merged(before, ["/a b/python", "-m", "signoff", "mcp"])

    after = tomllib.loads(text)
    assert text.startswith("# mine\n")
    assert after["model"] == "gpt-5.5"
    assert after["mcp_servers"]["other"] == {"command": "other"}
    assert after["mcp_servers"]["signoff"]["command"] == "/a b/python"
    assert after["mcp_servers"]["signoff"]["args"] == ["-m", "signoff", "mcp"]


@pytest.mark.parametrize("client", CLIENTS.values(), ids=lambda each: each.name)
@pytest.mark.parametrize("text", ["{", "[1, 2", '{"mcpServers": []}'])
def test_a_file_that_cannot_be_read_is_left_alone(client: McpClient, text: str) -> None:
    """The user learns what to type instead."""
    with pytest.raises(UsageError, match=r"cannot read .*mcp add signoff"):
        client.merged(text, SERVER)


def test_the_command_works_without_a_search_path() -> None:
    """A client may be started outside of the environment that signoff is in."""
    command = server_command()

    assert command[-1] == "mcp"
    assert command[0] == "signoff" or command[1:4] == ["-P", "-m", "signoff"]
