"""An agent of another package: installed, it is as good as a built-in one."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.acceptance.conftest import Site

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "agent_plugin"

FLOW = """
from signoff import Outcome, StepDef, Workflow


async def greet(ctx):
    return Outcome.OK, {"said": (await ctx.ask("writer", "hello")).text}


WORKFLOW = Workflow("greet", StepDef("greet", handler=greet, next={Outcome.OK: None}))
"""

pytestmark = pytest.mark.slow


@pytest.fixture
def site(site: Site, tmp_path: Path) -> Site:
    """A project beside which the example package is installed, for it alone."""
    source, packages = tmp_path / "source", tmp_path / "packages"
    shutil.copytree(EXAMPLE, source)
    constraints = str(ROOT / "constraints" / "dev.txt")
    install("--target", str(packages), "--build-constraints", constraints, str(source))
    site.environment["PYTHONPATH"] = str(packages)
    site.write("flow.py", FLOW)
    site.signoff("init")
    return site


def install(*arguments: str) -> None:
    """Installs from uv's cache, and over the network only what the cache does not hold."""
    command = [sys.executable, "-m", "uv", "pip", "install", "--no-deps", *arguments]
    cached = subprocess.run([*command, "--offline"], capture_output=True)
    if cached.returncode != 0:
        fetched = subprocess.run(command, capture_output=True, text=True)
        assert fetched.returncode == 0, fetched.stderr


def test_a_kind_of_another_package_is_used_by_name(site: Site) -> None:
    """Nobody should have to wait for us to support their model."""
    site.write(".signoff/config.yaml", "agents:\n  writer: {kind: shout, mark: '?'}\n")

    done = site.signoff("run", "flow.py", "--name", "one")
    doctor = site.json("doctor")

    assert done.returncode == 0, done.stdout + done.stderr
    reply = site.folder / ".signoff/runs/one/iterations/1/reply_greet_writer.txt"
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


def test_an_agent_that_declares_it_edits_files_gets_a_file_to_edit(site: Site) -> None:
    """It was only ever asked to write the whole text again, whatever it could do."""
    site.write(
        ".signoff/config.yaml",
        "agents:\n"
        "  author: {kind: scripted, file: author.yaml}\n"
        "  critic: {kind: scripted, file: critic.yaml}\n"
        "  editor: {kind: shout}\n",
    )
    site.write("flow.yaml", EDITING)
    site.write("author.yaml", "rules: [{text: The sea is blue.}]\n")
    passes = '{"overall": "PASS", "issues": [], "summary": "fine"}'
    site.write("critic.yaml", f"rules: [{{times: 1, text: '{QUIET}'}}, {{text: '{passes}'}}]\n")

    done = site.signoff("run", "flow.yaml", "--name", "one")
    doctor = {check["name"]: check for check in site.json("doctor")["checks"]}

    assert done.returncode == 0, done.stdout + done.stderr
    final = site.folder / ".signoff/runs/one/final/artifact.md"
    assert final.read_text().strip() == "THE SEA IS BLUE."
    assert doctor["editor"]["capabilities"]["edits_files"] is True


def test_a_wrong_option_of_it_is_told_with_its_name(site: Site) -> None:
    """The mistake is in the settings, and that is where the message points."""
    site.write(".signoff/config.yaml", "agents:\n  writer: {kind: shout, marck: '?'}\n")

    done = site.signoff("run", "flow.py", "--name", "one")

    assert done.returncode == 1
    assert "agents.writer" in done.stdout
    assert "marck" in done.stdout


def test_the_examples_own_tests_pass(site: Site) -> None:
    """Its readers copy them."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:asyncio",
         "tests"],
        cwd=site.folder / "source",
        env=site.environment,
        capture_output=True,
        text=True,
    )  # fmt: skip

    assert "2 passed" in done.stdout, done.stdout + done.stderr
