"""Keys of the user's shell, on the real command line: nothing of them is left in the project."""

import sys

import pytest

from tests.acceptance.cli_project import CliProject

KEY = "zq-4711-very-secret"

FLOW = """
from signoff import Outcome, StepDef, Workflow


async def work(ctx):
    reply = await ctx.ask("leaky", "Write.")
    found = await ctx.ask("checker", "", artifact="text")
    shown = await ctx.command(["sh", "-c", "echo $MY_API_KEY"], pass_env=["MY_API_KEY"])
    ctx.progress(shown.stdout)
    await ctx.write("final/said.txt", reply.text + found.text + shown.stdout)
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
def leaking(project: CliProject) -> CliProject:
    project.write("flow.py", FLOW)
    project.signoff("init")
    project.write(".signoff/config.yaml", SETTINGS)
    project.environment |= {"MY_API_KEY": KEY, "NAMED_IN_SETTINGS": "plainwords"}
    return project


def test_no_secret_is_left_in_the_project_whatever_agents_and_programs_print(
    leaking: CliProject,
) -> None:
    """Runs are copied, shown to colleagues and attached to bug reports."""
    done = leaking.signoff("run", "flow.py", "--name", "one", "-v")
    logs = leaking.signoff("logs", "one")

    assert done.returncode == 0, done.stderr
    said = (leaking.folder / ".signoff/runs/one/final/said.txt").read_text()
    assert "key: [hidden: NAMED_IN_SETTINGS]" in said
    assert said.count("[hidden: MY_API_KEY]") >= 2
    files = [path for path in (leaking.folder / ".signoff").rglob("*") if path.is_file()]
    kept = b"".join(path.read_bytes() for path in files)
    for secret in (KEY, "plainwords"):
        assert secret.encode() not in kept
        assert secret not in done.stdout + done.stderr + logs.stdout
