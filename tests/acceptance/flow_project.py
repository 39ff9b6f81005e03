"""A project with programs called claude, codex and gemini in it, and words for what they answer."""

from __future__ import annotations

import json
import os
import shlex
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from signoff.cli import main
from tests.acceptance.conftest import Site
from tests.patience import whole_lines

AGENTS = ("claude", "codex", "gemini")
PLAYER = Path(__file__).parents[1] / "stubs/headless/play.py"
FLOWS = Path(__file__).parents[1] / "fixtures/flows"
DRAFT, FINAL = "The see is wide.\n", "The sea is wide.\n"

Rule = dict[str, Any]


@dataclass(frozen=True)
class Done:
    """How a command ended, and what it said."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """What it said with --json."""
        return json.loads(self.out)


class Desk(Site):
    """A project whose agents are stand-ins first on PATH; commands run in this very process."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__(folder)
        bin_ = folder / "bin"
        bin_.mkdir()
        for name in AGENTS:
            words = [sys.executable, "-IS", str(PLAYER), str(folder), name]
            (bin_ / name).write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n')
            (bin_ / name).chmod(0o755)
        self.environment["PATH"] = f"{bin_}:{os.defpath}"
        monkeypatch.chdir(folder)
        for name in ("PATH", "HOME"):
            monkeypatch.setenv(name, self.environment[name])
        for name in ("SIGNOFF_HOME", "XDG_CONFIG_HOME"):
            monkeypatch.delenv(name, raising=False)
        self.write("goal.yaml", "goal: Write about the sea.\n")
        self.write("play/play.json", "[]")

    def play(self, *rules: Rule) -> None:
        """Says what the programs answer from now on: the first rule that fits."""
        for used in (self.folder / "play").glob("*.[0-9]*"):
            used.unlink()
        self.write("play/play.json", json.dumps(rules))

    def constraints(self, *names: str, folder: str = ".signoff/constraints", **keys: str) -> None:
        """Writes constraints, the first the most important; keys are further lines by id."""
        for priority, name in enumerate(names, start=1):
            text = f"id: {name}\npriority: {priority}\nsummary: Mind {name}.\n"
            text += f"rules:\n  - {{id: {name}-rule, text: 'Be good at {name}.'}}\n"
            self.write(f"{folder}/{name}.yaml", text + keys.get(name, ""))

    def flow(self, text: str) -> None:
        """Writes the flow file."""
        self.write("flow.yaml", text)

    def example(self, name: str) -> None:
        """Takes one of the documented flows, word for word."""
        self.flow((FLOWS / f"{name}.yaml").read_text())

    def here(self, *arguments: str) -> Done:
        """Runs a command in this process."""
        out, err = StringIO(), StringIO()
        with redirect_stdout(out), redirect_stderr(err):
            code = main(arguments)
        return Done(code, out.getvalue(), err.getvalue())

    def run(self, *more: str) -> Done:
        """Starts the run `one` of the flow."""
        return self.here("run", "flow.yaml", "--goal", "goal.yaml", "--name", "one", *more)

    @property
    def calls(self) -> list[dict[str, Any]]:
        """Every call the programs were given, in the order they began."""
        return [json.loads(line) for line in whole_lines(self.folder / "calls.jsonl")]

    def asked(self, *keys: str) -> list[Any]:
        """Returns some facts of each call."""
        facts = [tuple(call[key] for key in keys) for call in self.calls]
        return [fact[0] if len(keys) == 1 else fact for fact in facts]

    @property
    def place(self) -> Path:
        """The run directory."""
        return self.folder / ".signoff/runs/one"

    def read(self, name: str) -> str:
        """Returns a file of the run directory."""
        return (self.place / name).read_text()

    def load(self, name: str) -> Any:
        """Returns a JSON file of the run directory."""
        return json.loads(self.read(name))

    @property
    def thread(self) -> list[dict[str, Any]]:
        """The lines of the run's log."""
        return [json.loads(line) for line in self.read("thread.jsonl").splitlines()]

    @property
    def names(self) -> set[str]:
        """Every file of the run directory."""
        files = (path for path in self.place.rglob("*") if path.is_file())
        return {path.relative_to(self.place).as_posix() for path in files}


def writes(text: str = DRAFT, **when: Any) -> Rule:
    """Says what the author writes."""
    return {"step": "generate", "text": text, **when}


def passes(constraint: str | None = None, **when: Any) -> Rule:
    """Says that critics find nothing."""
    named = {"constraint": constraint} if constraint else {}
    return {"step": "critique", "text": said_pass(), **named, **when}


def finds(constraint: str, *issues: dict[str, Any], **when: Any) -> Rule:
    """Says what the critic of a constraint finds."""
    said = json.dumps({"overall": "FAIL", "issues": list(issues), "summary": "not yet"})
    return {"step": "critique", "constraint": constraint, "text": said, **when}


def issue(severity: str = "HIGH", evidence: str = "The see", **more: Any) -> dict[str, Any]:
    """Returns one issue as a critic states it."""
    return {"severity": severity, "finding": "It is wrong.", "evidence": evidence, **more}


def said_pass() -> str:
    """Returns a critique without findings."""
    return json.dumps({"overall": "PASS", "issues": [], "summary": "fine"})


def rules(status: str, *decisions: dict[str, Any], bill: str = "", **when: Any) -> Rule:
    """Says what the judge decides."""
    return {"step": "adjudicate", "text": verdict(status, *decisions, bill=bill), **when}


def verdict(status: str, *decisions: dict[str, Any], bill: str = "") -> str:
    """Returns a judge's answer."""
    judged = json.dumps({"status": status, "decisions": list(decisions)})
    return f"=== ADJUDICATION ===\n{judged}\n=== BILL_OF_WORK ===\n{bill}\n"


def mends(find: str = "see", put: str = "sea", **when: Any) -> Rule:
    """Says how the file is edited."""
    return {"step": "refine", "edits": True, "edit": [[find, put]], "text": "Done.", **when}
