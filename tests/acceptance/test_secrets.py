"""Secrets in the environment are not stored in the project."""

import sys

import pytest

from tests.acceptance.cli_project import CliProject

KEY = "zq-4711-very-secret"

FLOW = """
from signoff import Outcome, StepDef, Workflow


async def work(ctx):
    reply = await ctx.ask("leaky", "Write.")
    found = await ctx.ask("checker", "", artifact="text")
    echoed = await ctx.command(["sh", "-c", "echo $MY_API_KEY"], pass_env=["MY_API_KEY"])
    ctx.progress(echoed.stdout)
    await ctx.write("final/output.txt", reply.text + found.text + echoed.stdout)
    return Outcome.OK, {}


WORKFLOW = Workflow("leak", StepDef("work", handler=work, next={Outcome.OK: None}))
"""

SETTINGS = f"""
agents:
  leaky:
    kind: command
    argv: [{sys.executable}, -c, "import os; print('key:', os.environ['NAMED_IN_SETTINGS'])"]
    pass_env: [NAMED_IN_SETTINGS]
  other: {{kind: openai, key_env: NAMED_IN_SETTINGS, model: m}}
  checker:
    kind: check
    argv: [sh, -c, "echo a.md:1: $MY_API_KEY; exit 1"]
    pass_env: [MY_API_KEY]
"""


@pytest.fixture
def leaking_project(project: CliProject) -> CliProject:
    project.write("flow.py", FLOW)
    project.signoff("init")
    project.write(".signoff/config.yaml", SETTINGS)
    project.environment |= {"MY_API_KEY": KEY, "NAMED_IN_SETTINGS": "plainwords"}
    return project


def test_secrets_that_agents_or_programs_print_are_not_stored(leaking_project: CliProject) -> None:
    """Users copy runs, show them to colleagues and attach them to bug reports."""
    done = leaking_project.signoff("run", "flow.py", "--name", "one", "-v")
    logs = leaking_project.signoff("logs", "one")

    assert done.returncode == 0, done.stderr
    output = (leaking_project.folder / ".signoff/runs/one/final/output.txt").read_text()
    assert "key: [hidden: NAMED_IN_SETTINGS]" in output
    assert output.count("[hidden: MY_API_KEY]") >= 2
    files = [path for path in (leaking_project.folder / ".signoff").rglob("*") if path.is_file()]
    stored = b"".join(path.read_bytes() for path in files)
    for secret in (KEY, "plainwords"):
        assert secret.encode() not in stored
        assert secret not in done.stdout + done.stderr + logs.stdout
