"""A git repository with scripted critics, for the commands that review files."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.cli_project import CliProject, CommandResult
from tests.acceptance.forked_program import ForkedProgram

SETTINGS = "version: 1\nagents:\n  claude: {kind: scripted, file: .signoff/script.json}\n"
PASS = {"json": {"overall": "PASS", "issues": []}}


class ReviewProject(CliProject):
    """A repository with two pages; `script` sets what critics answer, `review` runs the command."""

    def __init__(
        self, folder: Path, server: ForkedProgram, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        super().__init__(folder, server)
        self.environment["PATH"] = os.defpath
        self.enter(monkeypatch)
        monkeypatch.delenv("CI", raising=False)
        self.write("docs/a.md", "The server uses port 80.\n\nIt always works.\n")
        self.write("docs/b.md", "It always works.\n")
        self.write(".signoff/config.yaml", SETTINGS)
        self.write(".signoff/.gitignore", "runs/\nsignoff.db*\nscript.json\n")
        self.write(
            ".signoff/constraints/tone.yaml",
            "rules:\n  - {id: sure, text: Promise nothing that cannot be kept.}\n",
        )
        self.script()
        self.git("init", "-q", "-b", "main")
        self.commit("first")

    def git(self, *arguments: str) -> str:
        """Runs git in the project."""
        identity = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
        return subprocess.run(
            ["git", *identity, *arguments],
            cwd=self.folder,
            check=True,
            capture_output=True,
            text=True,
        ).stdout

    def commit(self, message: str) -> None:
        """Commits everything."""
        self.git("add", "-A")
        self.git("commit", "-q", "-m", message)

    def script(self, *rules: dict[str, Any]) -> None:
        """Sets what the agents answer; a critic that no rule is about finds nothing."""
        content = {
            "version": 1,
            "rules": [*rules, {"step": "review", **PASS}, {"step": "judge", **PASS}],
        }
        self.write(".signoff/script.json", json.dumps(content))

    def review(self, *arguments: str) -> CommandResult:
        """Runs a review named `one` unless it has another name."""
        name = () if "--name" in arguments or "--dry-run" in arguments else ("--name", "one")
        return self.call("review", *arguments, *name)

    def read(self, name: str) -> str:
        """Returns a file of the project."""
        return (self.folder / name).read_text()


def finds(*issues: dict[str, Any], **when: Any) -> dict[str, Any]:
    """A critic of the constraint `tone` reports these issues."""
    return {
        "step": "review",
        "key": "tone",
        "json": {"overall": "FAIL", "issues": list(issues)},
        **when,
    }


def issue(path: str, evidence: str = "It always works.", **more: Any) -> dict[str, Any]:
    """Returns an issue with HIGH severity."""
    return {
        "path": path,
        "evidence": evidence,
        "finding": "Too sure.",
        "rule_id": "sure",
        "severity": "HIGH",
        **more,
    }
