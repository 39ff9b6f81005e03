"""An agent kind of another package works like a built-in one once it is installed."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.acceptance.cli_project import CliProject
from tests.installed import install_example
from tests.nested_pytest import ONLY_SIGNOFF

FLOW = """
from signoff import Outcome, StepDef, Workflow


async def greet(ctx):
    return Outcome.OK, {"reply": (await ctx.ask("writer", "hello")).text}


WORKFLOW = Workflow("greet", StepDef("greet", handler=greet, next={Outcome.OK: None}))
"""

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a copy of the example in `source`, installed into `packages`."""
    return install_example("agent_plugin", tmp_path_factory.mktemp("agent_plugin"))


@pytest.fixture
def project(project: CliProject, installed: Path) -> CliProject:
    """A project that sees the installed example."""
    project.environment["PYTHONPATH"] = str(installed / "packages")
    project.write("flow.py", FLOW)
    project.signoff("init")
    return project


def test_a_kind_of_another_package_is_used_by_name(project: CliProject) -> None:
    """Users can add support for a model without waiting for a release of signoff."""
    project.write(".signoff/config.yaml", "agents:\n  writer: {kind: shout, mark: '?'}\n")

    done = project.signoff("run", "flow.py", "--name", "one")
    doctor = project.json("doctor")

    assert done.returncode == 0, done.stdout + done.stderr
    reply = project.folder / ".signoff/runs/one/iterations/1/reply_greet_writer.txt"
    assert reply.read_text().strip() == "HELLO?"
    assert ("writer", "has a voice") in [(c["name"], c["detail"]) for c in doctor["checks"]]


EDITING = """
goal: Write about the sea.
constraints: {inline: {loud: It is loud.}}
max_iterations: 2
workflow:
  - {step: generate, agent: author}
  - {step: critique, agent: critic}
  - {step: adjudicate, agent: policy}
  - {step: refine, agent: editor, mode: edit, loop_to: critique}
"""

QUIET = """
{"overall": "FAIL", "summary": "too quiet", "issues":
 [{"severity": "HIGH", "finding": "It whispers.", "evidence": "The sea is blue."}]}
"""


def test_an_agent_that_declares_it_edits_files_gets_a_file_to_edit(project: CliProject) -> None:
    """Otherwise it would have to write the whole text again for every edit."""
    project.write(
        ".signoff/config.yaml",
        "agents:\n"
        "  author: {kind: scripted, file: author.yaml}\n"
        "  critic: {kind: scripted, file: critic.yaml}\n"
        "  editor: {kind: shout}\n",
    )
    project.write("flow.yaml", EDITING)
    project.write("author.yaml", "rules: [{text: The sea is blue.}]\n")
    passes = '{"overall": "PASS", "issues": [], "summary": "fine"}'
    project.write("critic.yaml", f"rules: [{{times: 1, text: '{QUIET}'}}, {{text: '{passes}'}}]\n")

    done = project.signoff("run", "flow.yaml", "--name", "one")
    doctor = {check["name"]: check for check in project.json("doctor")["checks"]}

    assert done.returncode == 0, done.stdout + done.stderr
    final = project.folder / ".signoff/runs/one/final/artifact.md"
    assert final.read_text().strip() == "THE SEA IS BLUE."
    assert doctor["editor"]["capabilities"]["edits_files"] is True


def test_the_examples_own_tests_pass(project: CliProject, installed: Path) -> None:
    """Plug-in authors copy them."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:asyncio",
         *ONLY_SIGNOFF, "tests"],
        cwd=installed / "source",
        env=project.environment,
        capture_output=True,
        text=True,
    )  # fmt: skip

    assert "2 passed" in done.stdout, done.stdout + done.stderr
