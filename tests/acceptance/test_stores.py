"""The same commands on a file and on a PostgreSQL server print the same."""

import json
import re
from typing import Any

from tests.acceptance.cli_project import CliProject
from tests.stubs.postgres import PostgresServer

FLOW = """
from signoff import Approval, Outcome, Question, StepDef, Workflow


async def draft(ctx):
    name = (await ctx.command(["printf", "Ann"], key="name")).stdout
    choice = await ctx.wait(Question("Which?", options=["long", "short"]))
    return Outcome.OK, {"text": name * (3 if choice.value == "long" else 1)}


async def publish(ctx):
    await ctx.wait(Approval("Publish?", ctx.step_state["text"]))
    return Outcome.OK, {}


WORKFLOW = Workflow(
    "letter",
    StepDef("draft", handler=draft, next={Outcome.OK: "publish"}),
    StepDef("publish", handler=publish, next={Outcome.OK: None}),
)
"""

COMMANDS = [
    ["run", "flow.py", "--name", "one", "--json"],
    ["run", "flow.py", "--name", "one", "--json"],
    ["inbox", "--json"],
    ["answer", "1", "short", "--json"],
    ["runs", "--json"],
    ["resume", "one", "--json"],
    ["show", "one", "--json"],
    ["logs", "one", "--json"],
    ["reject", "one", "--why", "too short", "--resume", "--json"],
    ["show", "one", "--json"],
    ["export", "json", "one"],
    ["runs", "--delete", "one", "--yes", "--json"],
    ["runs", "--json"],
    ["show", "one", "--json"],
]

CODES = [10, 2, 0, 0, 0, 10, 0, 0, 0, 0, 0, 0, 0, 2]

CHANGING = re.compile(
    r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[.\d]*(?:Z|\+00:00| UTC)?|\d{10}\.\d+"
    # Events share a commit if they happen within the same moment.
    r'|(?<="seq": )\d+|(?<="pid": )\d+|(?<="born": ")\d*'
    r'|(?<=seconds": )[\d.]+|\b\d+\.\d+(?:e-\d+)?\b|\b[0-9a-f]{12,64}\b'
)


def test_every_command_prints_the_same_on_both_stores(
    project: CliProject, postgres: PostgresServer
) -> None:
    """Scripts that work on a laptop must work for the team."""
    project.write("flow.py", FLOW)

    on_file = _outputs(project, "file", "signoff.db")
    on_server = _outputs(project, "server", postgres.new_schema())

    assert [code for _, code, _ in on_file] == CODES
    assert on_server == on_file


def _outputs(project: CliProject, home: str, database: str) -> list[tuple[str, int, str]]:
    variables = {"SIGNOFF_HOME": str(project.folder / home / ".signoff"),
                 "SIGNOFF_DATABASE": database}  # fmt: skip
    project.signoff("init", **variables)
    found = []
    for command in COMMANDS:
        done = project.signoff(*command, **variables)
        out = done.stdout.replace(f"/{home}/", "/home/")
        found.append((" ".join(command), done.returncode, _stable(out)))
    return found


def _stable(text: str) -> Any:
    """Returns output without times, and without digests of folders."""
    stable = CHANGING.sub("0", text)
    try:
        return json.loads(stable)
    except ValueError:
        return stable
