"""A store of another package works like a built-in one once it is installed."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.acceptance.cli_project import CliProject
from tests.installed import ROOT, install_example
from tests.nested_pytest import ONLY_SIGNOFF
from tests.patience import PATIENCE_SECONDS

FLOW = """
from signoff import Approval, Outcome, StepDef, Workflow


async def publish(ctx):
    await ctx.wait(Approval("Publish?"))
    return Outcome.OK, {}


WORKFLOW = Workflow("letter", StepDef("publish", handler=publish, next={Outcome.OK: None}))
"""

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a copy of the example in `source`, installed into `packages`."""
    return install_example("store_plugin", tmp_path_factory.mktemp("store_plugin"))


def test_a_store_of_another_package_is_used_by_its_url(
    project: CliProject, installed: Path
) -> None:
    """A company with a database of its own need not wait for a release of signoff."""
    # The settings name the store.
    project.environment.pop("SIGNOFF_DATABASE", None)
    project.environment["PYTHONPATH"] = str(installed / "packages")
    project.write("flow.py", FLOW)
    project.signoff("init")
    project.write(".signoff/config.yaml", "database: audited:///runs.db\n")

    project.signoff("run", "flow.py", "--name", "one")
    done = project.signoff("approve", "one", "--resume")

    assert done.returncode == 0, done.stdout + done.stderr
    (line,) = (project.folder / "answers.jsonl").read_text().splitlines()
    assert (json.loads(line)["run"], json.loads(line)["request"]) == ("one", "Publish?")
    assert (project.folder / "runs.db").exists()
    assert not (project.folder / ".signoff" / "signoff.db").exists()


def test_the_example_passes_the_suite_for_stores(installed: Path) -> None:
    """Authors of stores start from its test; all of it would take too long here."""
    some = "first_commit or answer"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *ONLY_SIGNOFF,
         "tests", "-k", some],
        cwd=installed / "source",
        env={**os.environ, "PYTHONPATH": f"{installed / 'packages'}{os.pathsep}{ROOT}"},
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
    )  # fmt: skip

    assert done.returncode == 0, done.stdout
    assert " passed" in done.stdout
