"""A quality-review gate, followed by a calling agent that only does what is printed."""

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.cli_project import CliProject

SKILL = """
from signoff.skills import Outcome, StepDef, Workflow
from signoff.skills.qr import QRGate
from signoff.skills.state import STATE_DIR, state_directory

WORKFLOW = Workflow(
    "gated",
    StepDef("write", "Write", ["Write the plan."], next={Outcome.OK: "gate"}),
    StepDef("gate", "Review", ["Review the plan."], QRGate(phase="plan-design"),
            {Outcome.OK: None, Outcome.FAIL: "write"}),
    inputs=[STATE_DIR],
    prepare=state_directory("gated", {}),
)
"""
ITEMS = [
    {"id": "it's a", "check": "each step can be tested", "severity": "MUST", "group_id": "x y"},
    {"id": "b", "check": "risks are named", "severity": "SHOULD"},
]


@pytest.fixture
def gated(project: CliProject) -> CliProject:
    project.write("gated.py", SKILL)
    return project


def script(project: CliProject, text: str) -> str:
    """Runs the command of a reviewer that is in a text; returns what it prints."""
    (command,) = re.findall(r"signoff (skill script signoff\.skills\.quality_review .*)", text)
    done = project.signoff(*shlex.split(command))
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def review(project: CliProject, text: str, findings: dict[str, str]) -> dict[str, str]:
    """Does what a reviewer is told, with these findings; returns its verdict."""
    page = script(project, text)
    if page.startswith("# Split"):
        (path,) = re.findall(r"^Write (.*) with this content:$", page, re.MULTILINE)
        Path(path).write_text(json.dumps({"items": ITEMS}))
        return {"status": "pass", "notes": ""}
    passes, fails = re.findall(r"^  signoff (skill qr .*)$", page, re.MULTILINE)
    items = [json.loads(line) for line in page.splitlines() if line.startswith("{")]
    for item in items:
        template = fails if item["id"] in findings else passes
        words = shlex.split(template.replace(" ID ", f" {item.get('quoted_id', item['id'])} "))
        if item["id"] in findings:
            words[-1] = findings[item["id"]]
        assert project.signoff(*words).returncode == 0
    failed = any(item["id"] in findings for item in items)
    return {"status": "fail" if failed else "pass", "notes": ""}


def test_a_calling_agent_takes_a_run_through_its_gate(gated: CliProject) -> None:
    """What failed is redone, and the verdict comes from the records."""
    started = gated.signoff("run", "gated.py", "--pull", "--name", "run")
    assert started.returncode == 10, started.stderr
    findings = [{"it's a": "step 3 cannot\nbe tested"}, {}]
    handed_out: list[list[str]] = []
    while work := gated.json("next", "run")["work"]:
        handed_out.append([each["step"] for each in work])
        for each in work:
            done: Any = "written"
            if each["step"] == "gate":
                done = json.dumps(review(gated, each["prompt"], findings[0]))
            submitted = gated.signoff(
                "submit", "run", "--item", str(each["number"]), "--result", done
            )
            assert "accepted" in submitted.stdout, submitted.stderr
        if len(work) == 2:
            findings.pop(0)

    assert handed_out == [["write"], ["gate"], ["gate", "gate"], ["write"], ["gate"]]
    state = json.loads((gated.folder / ".signoff/runs/run/state.json").read_text())
    assert state["status"] == "completed"
    assert state["state"]["gate"]["status"] == "pass"
