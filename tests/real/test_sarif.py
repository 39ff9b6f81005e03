"""SARIF checked by the schema of its standard and by Microsoft's validator.

Both are in one package: the validator knows what readers need, and ships the schema.
"""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from signoff.views.exports.reviews import sarif
from signoff.views.exports.run_record import ExportOptions
from tests.unit.review.flow.harness import fails, issue, rules
from tests.unit.views.exports.test_reviews_sarif import CALM, WIDE, review
from tests.unit.views.pages.test_report import HOSTILE

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


def schema_errors(text: str) -> list[str]:
    """Returns what the schema of SARIF 2.1.0 does not allow."""
    schema = json.loads(Path(str(PROGRAM)).resolve().with_name("sarif-2.1.0.json").read_text())
    assert "SARIF) Version 2.1.0" in schema["title"]
    check = jsonschema.validators.validator_for(schema)
    check.check_schema(schema)
    return [each.message for each in check(schema).iter_errors(json.loads(text))]


@pytest.fixture
async def log(tmp_path: Path) -> str:
    """A log with everything an export can have: a suppression, hostile and wide text."""
    issues: list[Any] = [
        issue("Too loud", evidence="loud sea", rule_id="clear-rule", edit=CALM, confidence=0.9),
        issue("No fish", "MEDIUM", rule_id="clear-rule"),
        issue(HOSTILE, "LOW", "here", rule_id=HOSTILE, suggested_fix=HOSTILE),
    ]
    judged = rules("REWRITE", {"issue_id": "clear-002", "status": "dismissed", "rationale": "Art."})
    made = await review(tmp_path, [WIDE, fails(*issues), judged], max_iterations=1)
    text = "".join(sarif(made, ExportOptions()))
    assert all(f'"{part}"' in text for part in ("suppressions", "baselineState"))
    return text


def test_the_schema_and_the_validator_have_no_errors_and_no_warnings(
    log: str, tmp_path: Path
) -> None:
    """A log that a reader refuses is worse than none."""
    assert schema_errors(log) == []
    assert problems(log, tmp_path) == []


@pytest.mark.parametrize(
    ("valid", "invalid"),
    [('"level": "error"', '"level": "loud"'), ('"baselineState": "new"', '"novelty": "new"')],
)
def test_a_log_that_is_not_valid_is_noticed(log: str, valid: str, invalid: str) -> None:
    """The validator accepts some of what the schema does not allow, such as unknown levels."""
    text = log.replace(valid, invalid)

    assert text != log
    assert schema_errors(text) != []


def test_a_log_without_what_readers_need_is_noticed(tmp_path: Path) -> None:
    """A validator that accepts everything would prove nothing."""
    run = {"tool": {"driver": {"name": "x"}}, "results": [], "columnKind": "utf16CodeUnits"}
    schema = "https://json.schemastore.org/sarif-2.1.0.json"
    text = json.dumps({"$schema": schema, "version": "2.1.0", "runs": [run]})

    assert problems(text, tmp_path) != []
