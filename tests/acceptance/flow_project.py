"""A project with stubs of the programs claude, codex and gemini, and functions that script them.

The first rule that matches a call answers it. The functions at the end return such rules:
`author_writes`, `critics_pass`, `critic_finds`, `judge_decides` and `editor_replaces`.
"""

from __future__ import annotations

import json
import marshal
import os
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.cli_project import CliProject, CommandResult
from tests.acceptance.forked_program import ForkedProgram
from tests.patience import whole_lines

AGENTS = ("claude", "codex", "gemini")
STUBS = Path(__file__).parents[1] / "stubs/headless"
# Imported, because Python compiles the main file of a program at every start.
STUB_CODE = "import sys; sys.path.append(sys.argv.pop(1)); import play; play.main()"
READINESS = """#!/bin/sh
for argument; do
    case $argument in
        --version) echo 9.9.9; exit;;
        status) echo '{"loggedIn": true}'; exit;;
    esac
done
"""
"""What is asked before a run, about each program; a shell answers sooner than Python."""
FLOWS = Path(__file__).parents[1] / "fixtures/flows"
DRAFT, FINAL = "The see is wide.\n", "The sea is wide.\n"

Rule = dict[str, Any]


class FlowProject(CliProject):
    """A project with stub agents first on PATH; `call` runs commands in the test's own process."""

    def __init__(
        self, folder: Path, server: ForkedProgram, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        super().__init__(folder, server)
        programs = folder / "bin"
        programs.mkdir()
        for name in AGENTS:
            stub = [sys.executable, "-ISc", STUB_CODE, str(STUBS), str(folder), name]
            (programs / name).write_text(f'{READINESS}exec {shlex.join(stub)} "$@"\n')
            (programs / name).chmod(0o755)
        self.environment["PATH"] = f"{programs}:{os.defpath}"
        # Nothing starts if an agent is not logged in, and the stub of gemini has no login.
        self.environment["GEMINI_API_KEY"] = "key-of-the-gemini-stub"
        monkeypatch.setenv("GEMINI_API_KEY", self.environment["GEMINI_API_KEY"])
        self.enter(monkeypatch)
        self.write("goal.yaml", "goal: Write about the sea.\n")
        self.script()

    def script(self, *rules: Rule) -> None:
        """Sets the rules by which the agents answer from now on."""
        for used in (self.folder / "play").glob("*.[0-9]*"):
            used.unlink()
        self.write("play/rules", "").write_bytes(marshal.dumps(rules))

    def constraints(self, *names: str, folder: str = ".signoff/constraints", **keys: str) -> None:
        """Writes constraints, highest priority first; `keys` adds lines to some of them."""
        for priority, name in enumerate(names, start=1):
            text = f"id: {name}\npriority: {priority}\nsummary: Mind {name}.\n"
            text += f"rules:\n  - {{id: {name}-rule, text: 'Be good at {name}.'}}\n"
            self.write(f"{folder}/{name}.yaml", text + keys.get(name, ""))

    def write_flow(self, text: str) -> None:
        """Writes the flow file."""
        self.write("flow.yaml", text)

    def copy_flow(self, name: str) -> None:
        """Uses one of the documented flows, unchanged."""
        self.write_flow((FLOWS / f"{name}.yaml").read_text())

    def run(self, *more: str) -> CommandResult:
        """Starts the run `one` of the flow."""
        return self.call("run", "flow.yaml", "--goal", "goal.yaml", "--name", "one", *more)

    @property
    def calls(self) -> list[dict[str, Any]]:
        """Every call of an agent, in the order in which they started."""
        return [json.loads(line) for line in whole_lines(self.folder / "calls.jsonl")]

    def call_fields(self, *keys: str) -> list[Any]:
        """Returns one or more fields of each call."""
        rows = [tuple(call[key] for key in keys) for call in self.calls]
        return [row[0] if len(keys) == 1 else row for row in rows]

    @property
    def run_dir(self) -> Path:
        """The run directory."""
        return self.folder / ".signoff/runs/one"

    def read(self, name: str) -> str:
        """Returns a file of the run directory."""
        return (self.run_dir / name).read_text()

    def load(self, name: str) -> Any:
        """Returns a JSON file of the run directory."""
        return json.loads(self.read(name))

    @property
    def thread(self) -> list[dict[str, Any]]:
        """The lines of the run's log."""
        return [json.loads(line) for line in self.read("thread.jsonl").splitlines()]

    @property
    def asked(self) -> list[str]:
        """The ids of the questions that wait for a human."""
        if "hitl/questions.json" not in self.names:
            return []
        groups = self.load("hitl/questions.json")["questions"]
        return [each["id"] for group in groups for each in group["questions"]]

    @property
    def names(self) -> set[str]:
        """Every file of the run directory."""
        files = (path for path in self.run_dir.rglob("*") if path.is_file())
        return {path.relative_to(self.run_dir).as_posix() for path in files}


def author_writes(text: str = DRAFT, **when: Any) -> Rule:
    """The author writes this text."""
    return {"step": "generate", "text": text, **when}


def critics_pass(constraint: str | None = None, **when: Any) -> Rule:
    """Every critic, or the one of this constraint, finds nothing."""
    only = {"constraint": constraint} if constraint else {}
    return {"step": "critique", "text": passing_critique(), **only, **when}


def critic_finds(constraint: str, *issues: dict[str, Any], **when: Any) -> Rule:
    """The critic of a constraint finds these issues."""
    critique = json.dumps({"overall": "FAIL", "issues": list(issues), "summary": "not yet"})
    return {"step": "critique", "constraint": constraint, "text": critique, **when}


def issue(severity: str = "HIGH", evidence: str = "The see", **more: Any) -> dict[str, Any]:
    """Returns an issue as a critic reports it."""
    return {"severity": severity, "finding": "It is wrong.", "evidence": evidence, **more}


def passing_critique() -> str:
    """Returns a critique without findings."""
    return json.dumps({"overall": "PASS", "issues": [], "summary": "fine"})


def judge_decides(status: str, *decisions: dict[str, Any], bill: str = "", **when: Any) -> Rule:
    """The judge decides this."""
    return {"step": "adjudicate", "text": judge_reply(status, *decisions, bill=bill), **when}


def judge_reply(status: str, *decisions: dict[str, Any], bill: str = "") -> str:
    """Returns the reply of a judge."""
    decision = json.dumps({"status": status, "decisions": list(decisions)})
    return f"=== ADJUDICATION ===\n{decision}\n=== BILL_OF_WORK ===\n{bill}\n"


def editor_replaces(find: str = "see", put: str = "sea", **when: Any) -> Rule:
    """The editing agent replaces this text in the file."""
    return {"step": "refine", "edits": True, "edit": [[find, put]], "text": "Done.", **when}
