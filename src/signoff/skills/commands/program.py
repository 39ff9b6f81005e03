"""`signoff skill step` for a module that runs as a program of its own."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from signoff.cli.entry import run_command
from signoff.core.workflow import Workflow
from signoff.errors import SignoffError
from signoff.skills.commands.command_text import PROGRAM
from signoff.skills.commands.project import context_here
from signoff.skills.discovery import find_source


def run_step(workflow: Workflow, target: str, file: Path, arguments: Sequence[str]) -> int:
    """Shows a step of a skill by its name, or by `target` if the name does not lead to `file`."""
    # Sub-agents are told to run the module, and start at its first step.
    step = [] if _names_step(arguments) else ["--step", "1"]
    found_by = workflow.name if _is_found(workflow.name, file) else target
    return run_command([*PROGRAM[1:], found_by, *step, *arguments])


def _names_step(arguments: Sequence[str]) -> bool:
    return any(
        each in ("--step", "-h", "--help") or each.startswith("--step=") for each in arguments
    )


def _is_found(name: str, file: Path) -> bool:
    with suppress(SignoffError):
        return find_source(name, context_here()).path.resolve() == file
    return False
