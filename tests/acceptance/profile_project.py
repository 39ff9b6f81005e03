"""A project with a small profile, and the replies of scripted agents for its sessions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.cli_project import CliProject, CommandResult
from tests.acceptance.forked_program import ForkedProgram

PROFILE = '''
from signoff.profiles import (
    ProcessingResult, WorkflowProfile, WorkflowStatus, WriteOp, WritePlan,
)

DONE = WorkflowStatus.SUCCESS


class Note(WorkflowProfile):
    @classmethod
    def get_metadata(cls):
        return {
            "name": "note",
            "description": "a note",
            "context_schema": {
                "topic": {"type": "string", "required": True},
                "lines": {"type": "int", "default": 3},
                "tone": {"type": "string", "choices": ["dry", "warm"], "default": "dry"},
            },
        }

    def get_standards_config(self, context):
        return {}

    def generate_planning_prompt(self, context):
        return f"Plan {context['lines']} {context['tone']} lines about {context['topic']}."

    def generate_generation_prompt(self, context):
        return "Write it.\\n\\n{{PLAN}}"

    def generate_review_prompt(self, context):
        return "Review it.\\n\\n{{CODE}}"

    def generate_revision_prompt(self, context):
        return "Fix it.\\n\\n{{REVIEW}}\\n\\n{{CODE}}"

    def process_planning_response(self, content):
        return ProcessingResult(status=DONE)

    def process_generation_response(self, content):
        writes = [WriteOp(path=line.split()[1], content="text\\n")
                  for line in content.splitlines() if line.startswith("file ")]
        return ProcessingResult(status=DONE, write_plan=WritePlan(writes=writes))

    def process_review_response(self, content):
        return ProcessingResult(status=DONE)

    def process_revision_response(self, content):
        return self.process_generation_response(content)


def register(cli_group):
    @cli_group.command("topics")
    def topics():
        """Lists topics."""
        print("the sea, the sky")

    return Note
'''

CODE = "file note.md\n"


def review(verdict: str, issues: int = 0) -> str:
    """Returns a review with its verdict."""
    counts = f"issues_total: {issues}\nissues_critical: 0\nmissing_inputs: 0\n"
    return f"A review.\n\n@@@REVIEW_META\nverdict: {verdict}\n{counts}@@@\n"


PASS, FAIL = review("PASS"), review("FAIL", 1)


class ProfileProject(CliProject):
    """Runs `signoff profile` in the test's own process, in a project with the profile `note`."""

    def __init__(
        self, folder: Path, server: ForkedProgram, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        super().__init__(folder, server)
        self.enter(monkeypatch)
        self.write(".signoff/profiles/note.py", PROFILE)

    def profile(self, *arguments: str) -> CommandResult:
        """Runs a command of the group."""
        return self.call("profile", *arguments)

    def init(self, *more: str) -> CommandResult:
        """Starts the session `one`."""
        return self.profile("init", "note", "-c", "topic=the sea", "--name", "one", *more)

    def status(self, *more: str) -> dict[str, Any]:
        """Returns the state of a session, the latest one by default, as programs read it."""
        run = json.loads(self.profile("status", *more, "--json").out)["run"]
        values: dict[str, Any] = json.loads(
            (self.folder / f".signoff/runs/{run}/state.json").read_text()
        )
        return values

    @property
    def request(self) -> dict[str, Any]:
        """What the latest session waits for."""
        values: dict[str, Any] = json.loads(self.profile("status", "--json").out)["inbox"][0]
        return values

    @property
    def position(self) -> tuple[str, str | None, str, int]:
        """The phase, stage, status and iteration of the latest session."""
        now = self.status()
        return now["phase"], now["stage"], now["status"], now["current_iteration"]

    def session_file(self, name: str) -> Path:
        """Returns a file of the session `one`."""
        return self.folder / ".signoff/runs/one" / name

    def settings(self, profiles: str, **scripts: list[tuple[str, str]]) -> None:
        """Writes the settings, and an agent for each script of `(step, reply)` pairs."""
        agents = "".join(f"  {name}: {{kind: scripted, file: {name}.yaml}}\n" for name in scripts)
        self.write(".signoff/config.yaml", f"agents:\n{agents}profiles:\n{profiles}")
        for name, replies in scripts.items():
            rules = [
                {"step": step, "text": text, **({"times": 1} if last > 0 else {})}
                for step, text, last in _with_repeats(replies)
            ]
            self.write(f"{name}.yaml", json.dumps({"version": 1, "rules": rules}))


def _with_repeats(replies: list[tuple[str, str]]) -> list[tuple[str, str, int]]:
    """Returns each reply with how many more replies of its step follow."""
    steps = [step for step, _ in replies]
    return [(step, text, steps[n + 1 :].count(step)) for n, (step, text) in enumerate(replies)]
