"""Commands start without what they do not need. Benchmark W6 measures how long that takes."""

import subprocess
import sys
from collections.abc import Collection
from pathlib import Path

import pytest

FLOW = """\
goal: A slogan for a coffee shop, one short sentence.
constraints:
  inline:
    short: It has at most eight words.
workflow:
  - {step: generate, name: draft}
  - {step: critique, name: review}
  - {step: adjudicate, name: judge, agent: policy}
  - {step: refine, name: fix, mode: apply, loop_to: review}
"""

WAITING = 10

NEVER = {
    *("cel", "http", "json_repair", "jsonschema", "multiprocessing", "psutil", "rapidfuzz"),
    *("rich", "sqlglot", "signoff.agents.http", "signoff.app.settings.config_schema"),
    *("signoff.contracts.compile", "signoff.contracts.guarded_db"),
    *("fastapi", "starlette", "uvicorn", "signoff.surfaces.mcp", "signoff.surfaces.web"),
}
"""What a flow without sources needs only once its agents have answered, or not at all."""

ENGINE = {"asyncio", "signoff.runtime.engine", "ssl", "subprocess"}
"""What drives runs."""

COMPILER = {
    *("email", "importlib.metadata", "pydantic", "ruamel.yaml"),
    *("signoff.core.workflow", "signoff.review.flow.model"),
}
"""What reads definitions."""

IMPORT = "import sys; from signoff import Outcome, StepDef, Workflow, run"
COMMAND = "import sys; from signoff.surfaces.cli import main; code = main(sys.argv[2:])"
CHECK = "sys.exit(', '.join(sys.modules.keys() & set(sys.argv[1].split())))"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with a flow and a run of it that waits at its first agent call."""
    folder = tmp_path_factory.mktemp("project")
    (folder / "slogan.yaml").write_text(FLOW)
    pull = [sys.executable, "-m", "signoff", "run", "slogan.yaml", "--pull", "--name", "first"]
    subprocess.run([*pull[:3], "init"], cwd=folder, check=True, capture_output=True)
    done = subprocess.run(pull, cwd=folder, capture_output=True, text=True)
    assert done.returncode == WAITING, done.stderr
    return folder


@pytest.mark.parametrize(
    ("arguments", "unneeded"),
    [
        ("runs", NEVER | ENGINE | COMPILER | {"signoff.flows"}),
        ("show first", NEVER | ENGINE | COMPILER),
        # prometheus-client brings a server of its own, with these three.
        ("metrics", (NEVER | ENGINE | COMPILER | {"opentelemetry"}) - {"email", "http", "ssl"}),
        ("export otel first", NEVER | ENGINE | COMPILER | {"opentelemetry"}),
        ("mcp install claude --print", NEVER | ENGINE | COMPILER | {"mcp", "sqlite3"}),
        ("run slogan.yaml --pull --quiet", NEVER),
    ],
)
def test_a_command_imports_nothing_that_it_does_not_need(
    project: Path, arguments: str, unneeded: Collection[str]
) -> None:
    """People wait for every command; one careless import can double that time."""
    program = f"{COMMAND}; assert code in (0, {WAITING}); {CHECK}"
    assert imported(program, project, unneeded, arguments.split()) == ""


def test_a_file_that_defines_workflows_does_not_wait_for_the_engine(tmp_path: Path) -> None:
    """Such files import `run` for their own main program; the command line only reads them."""
    unneeded = NEVER | ENGINE | COMPILER - {"signoff.core.workflow"} | {"logging", "sqlite3"}

    assert imported(f"{IMPORT}; {CHECK}", tmp_path, unneeded) == ""


def test_imports_are_noticed(project: Path) -> None:
    """A check that finds nothing would let every import pass."""
    assert imported(f"{COMMAND}; {CHECK}", project, {"click"}, ["runs"]) == "click"


def imported(
    program: str, folder: Path, unneeded: Collection[str], arguments: Collection[str] = ()
) -> str:
    """Returns which of some modules a program has imported when it ends."""
    command = [sys.executable, "-c", program, " ".join(unneeded), *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    lines = [line for line in done.stderr.splitlines() if not line.startswith("warning: ")]
    return "\n".join(lines)
