import subprocess
import sys
from pathlib import Path

import pytest

from tests.nested_pytest import ONLY_SIGNOFF

FLOW = """
from signoff import Approval, Outcome, StepDef, Workflow


async def write(ctx):
    draft = await ctx.ask("writer", "Write a slogan.")
    answer = await ctx.wait(Approval("Ship it?", draft.text))
    return Outcome.OK, {"slogan": draft.text, "shipped": answer.approved}


WORKFLOW = Workflow("slogan", StepDef("write", handler=write, next={Outcome.OK: None}))
"""

TESTS = '''
from flow import WORKFLOW


class Expensive:
    """Simulates a real agent."""

    async def ask(self, request, call):
        from signoff import Reply

        open("bill", "a").write("$")
        return Reply("Recorded.")


def test_with_a_script(signoff_project, scripted_agent):
    scripted_agent.on("slogan", "Good coffee.")

    waiting = signoff_project.run(WORKFLOW, writer=scripted_agent)
    signoff_project.answer(True)
    result = signoff_project.resume(WORKFLOW)

    assert waiting.status == "waiting"
    assert result.state == {"slogan": "Good coffee.", "shipped": True}
    assert signoff_project.inbox == []


def test_with_a_cassette(signoff_project, cassette):
    waiting = signoff_project.run(WORKFLOW, writer=cassette.wrap("writer", Expensive()))

    assert waiting.status == "waiting", waiting.reason
    assert signoff_project.inbox[0].prompt == "Ship it?"
'''


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "flow.py").write_text(FLOW)
    (tmp_path / "test_flow.py").write_text(TESTS)
    return tmp_path


def run(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Runs the tests of a project that uses signoff."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:asyncio"]
    return subprocess.run(
        [*command, *ONLY_SIGNOFF, *options],
        cwd=folder,
        env={"PATH": "", "PYTHONPATH": str(folder), "HOME": str(folder)},
        capture_output=True,
        text=True,
    )


def test_workflows_are_tested_offline_with_the_fixtures(folder: Path) -> None:
    """Recorded once with the real agent, replayed in every later run of the tests."""
    missing = run(folder)
    recorded = run(folder, "--signoff-cassettes=record")
    replayed = run(folder, "-W", "error")

    assert "1 failed, 1 passed" in missing.stdout, missing.stdout + missing.stderr
    assert "nothing is recorded" in missing.stdout
    assert "2 passed" in recorded.stdout, recorded.stdout
    assert "2 passed" in replayed.stdout, replayed.stdout
    assert (folder / "bill").read_text() == "$"
    tape = folder / "cassettes" / "test_flow" / "test_with_a_cassette.yaml"
    assert "Recorded." in tape.read_text()
