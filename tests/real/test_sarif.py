"""SARIF checked by Microsoft's validator, which knows the schema and what readers need."""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from signoff.exports.run_record import ExportOptions
from signoff.exports.sarif import sarif
from tests.unit.exports.test_sarif import CALM, WIDE, review
from tests.unit.flows.harness import fails, issue, rules
from tests.unit.pages.test_report import HOSTILE

ROOT = Path(__file__).parents[2]
TOOL = ROOT / ".agents-env/linters/node_modules/@microsoft/sarif-multitool-linux/Sarif.Multitool"
PROGRAM = str(TOOL) if TOOL.exists() else shutil.which("Sarif.Multitool")

pytestmark = [
    pytest.mark.real,
    pytest.mark.slow,
    pytest.mark.skipif(PROGRAM is None, reason="no sarif-multitool (npm); run: make agents"),
]


def problems(text: str, folder: Path) -> list[str]:
    """Returns the errors and warnings of the validator."""
    (folder / "log.sarif").write_text(text)
    options = ["--output", "checked.sarif", "--log", "ForceOverwrite", "--level", "Error;Warning"]
    done = subprocess.run(
        [str(PROGRAM), "validate", "log.sarif", *options],
        cwd=folder,
        env={**os.environ, "DOTNET_SYSTEM_GLOBALIZATION_INVARIANT": "1"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (run,) = json.loads((folder / "checked.sarif").read_text())["runs"]
    return [f"{each['ruleId']}: {each['message']}" for each in run.get("results", ())]


async def test_the_validator_has_no_errors_and_no_warnings(tmp_path: Path) -> None:
    """A log that a reader refuses is worse than none."""
    issues: list[Any] = [
        issue("Too loud", evidence="loud sea", rule_id="clear-rule", edit=CALM, confidence=0.9),
        issue("No fish", "MEDIUM", rule_id="clear-rule"),
        issue(HOSTILE, "LOW", "here", rule_id=HOSTILE, suggested_fix=HOSTILE),
    ]
    judged = rules("REWRITE", {"issue_id": "clear-002", "status": "dismissed", "rationale": "Art."})
    made = await review(tmp_path, [WIDE, fails(*issues), judged], max_iterations=1)
    text = "".join(sarif(made, ExportOptions()))

    assert problems(text, tmp_path) == []


def test_a_log_without_what_readers_need_is_noticed(tmp_path: Path) -> None:
    """A validator that accepts everything would prove nothing."""
    run = {"tool": {"driver": {"name": "x"}}, "results": [], "columnKind": "utf16CodeUnits"}
    schema = "https://json.schemastore.org/sarif-2.1.0.json"
    text = json.dumps({"$schema": schema, "version": "2.1.0", "runs": [run]})

    assert problems(text, tmp_path) != []
