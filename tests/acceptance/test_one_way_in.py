"""The README's table of where to start, and the help that leads to the general commands."""

import re
import shlex
from pathlib import Path

import pytest

from tests.acceptance.cli_project import CliProject
from tests.acceptance.doc_blocks import sections
from tests.stubs.pair_server import MODEL, script, served

README = Path(__file__).parents[2] / "README.md"
ROWS = re.findall(r"^\| ([^|]+) \| `(signoff [^`]+)`", README.read_text("utf-8"), re.MULTILINE)
REVIEWER = "version: 1\nagents: {claude: {kind: scripted, file: critic.yaml}}\n"
CRITIC = "version: 1\nrules: [{step: review, json: {overall: PASS, issues: []}}]\n"
GENERAL = {"pair": ["run"], "profile": ["run", "approve"], "skill": ["run", "next", "submit"]}


def test_the_table_has_a_row_for_everything_users_have() -> None:
    """Readers choose by what they have, not by the name of a notation."""
    assert [row.partition(":")[0] for row, _ in ROWS] == [
        "a sentence",
        "a file, a folder or a branch to review",
        "a text or code to write by rules",
        "steps to be proved",
        "code to generate gate by gate",
        "a procedure for a coding agent",
        "anything else",
    ]


@pytest.mark.parametrize(("row", "command"), ROWS, ids=[row for row, _ in ROWS])
def test_the_command_of_each_row_works(project: CliProject, row: str, command: str) -> None:
    """A new user copies it into an empty folder."""
    for section in sections(README):
        for block in section.blocks:
            if block.file and block.file in command:
                project.write(block.file, block.text)

    project.write("README.md", "# A project\n")
    project.write(".signoff/config.yaml", REVIEWER)
    project.write("critic.yaml", CRITIC)

    with served() as server:
        server.answer = script(("Save Our Seas", "SHIP IT!"))
        environment = {"OLLAMA_BASE_URL": server.url, "OLLAMA_MODEL_NAME": MODEL}
        done = project.signoff(*shlex.split(command)[1:], **environment)

    waits = command.startswith("signoff run")
    assert done.returncode == (10 if waits else 0), done.stderr
    if "init" in command:
        assert "next: signoff run" in done.stderr


@pytest.mark.parametrize("name", list(GENERAL))
def test_the_first_line_of_help_names_the_general_commands(project: CliProject, name: str) -> None:
    """Shortcuts must not look like another product."""
    text = project.signoff(name, "--help").stdout
    first = text.partition("\n\n")[2].partition("\n\n")[0]
    (listed,) = [
        line
        for line in project.signoff("--help").stdout.splitlines()
        if line.strip().startswith(name)
    ]

    assert [word for word in GENERAL[name] if f"`{word}`" not in first] == []
    assert "shortcut" in listed
