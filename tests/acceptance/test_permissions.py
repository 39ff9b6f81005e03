"""Tests that only the owner can read the files of a run."""

import shlex
import stat
import subprocess

import pytest

from tests.acceptance.cli_project import PROGRAM, CliProject
from tests.patience import PATIENCE_SECONDS

FLOW = """
from signoff import Outcome, Question, StepDef, Workflow

async def work(ctx):
    await ctx.write("deep/er/draft.md", "the draft")
    await ctx.wait(Question("Continue?"))
    return Outcome.OK, {}

WORKFLOW = Workflow("asks", StepDef("only", handler=work, next={Outcome.OK: None}))
"""
SHARED = {".gitignore", "config.yaml", "constraints", "flows"}
"""What is committed with the project; the rest is data of runs."""


@pytest.mark.parametrize("umask", ["000", "077"])
def test_only_the_owner_can_read_run_files_with_any_umask(project: CliProject, umask: str) -> None:
    """The files contain prompts and replies, and a server may have any umask."""
    project.write("flow.py", FLOW)
    program = shlex.quote(PROGRAM)
    command = f"umask {umask}; exec {program} run flow.py --name one --events events.jsonl"

    done = subprocess.run(
        ["sh", "-c", command],
        cwd=project.folder,
        env=project.environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
    )

    assert done.returncode == 10, done.stderr
    home = project.folder / ".signoff"
    stored = [path for path in home.rglob("*") if not path.is_symlink()]
    wrong = {
        path.name: oct(mode)
        for path in (*stored, project.folder / "events.jsonl")
        if path.relative_to(project.folder).parts[-1] not in SHARED
        and (mode := stat.S_IMODE(path.stat().st_mode)) != (0o700 if path.is_dir() else 0o600)
    }
    assert wrong == {}
    open_to_others = [path for path in stored if stat.S_IMODE(path.stat().st_mode) & 0o022]
    assert open_to_others == []
