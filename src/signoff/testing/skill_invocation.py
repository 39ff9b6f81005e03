"""Runs one input of a skill as its users do: the real command, in a process of its own."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from signoff.core.step_output import NextCommand
from signoff.core.workflow import Workflow
from signoff.discovery import NAME, assigns_workflow
from signoff.errors import SignoffError
from signoff.skills.commands.command_text import SkillPlace, command_text
from signoff.skills.commands.project import context_here
from signoff.skills.discovery import find_source
from signoff.skills.stateless import STATE_DIR, step_at

_WORD = re.compile(r"(?!(?:true|false|null|NaN|Infinity)$)[A-Za-z_][\w-]*", re.ASCII)
"""A text that cannot be taken for another JSON value when its quotes are left out."""


def case_id(workflow: Workflow, params: Mapping[str, Any]) -> str:
    """Returns a name for an input, for `pytest.mark.parametrize`; no other input has it."""
    values = [
        f"{name}={_value_id(params[name])}"
        for name in sorted(params)
        if name not in ("step", "total_steps")
    ]
    return "-".join([workflow.name, str(params["step"]), *values])


def run_skill_invocation(workflow: Workflow, params: Mapping[str, Any]) -> int:
    """Runs `signoff skill step` with an input in the current folder; returns its exit code.

    A skill that keeps state gets a new state directory, which is removed afterwards. Error
    messages are printed on stderr.
    """
    with _prepared(workflow, params) as given:
        command = NextCommand(workflow.name, "", params["step"], given)
        words = shlex.split(command_text(command, SkillPlace(_target(workflow))))
        # -P: a folder called `signoff` in the current one must not be taken for the program.
        done = subprocess.run(
            [sys.executable, "-P", "-m", *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            check=False,
        )
    return done.returncode


def _value_id(value: Any) -> str:
    if isinstance(value, str) and _WORD.fullmatch(value):
        return str(value)
    return json.dumps(value, default=repr)


@contextmanager
def _prepared(workflow: Workflow, params: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Adds what the first step prepares for the others, and removes it at the end."""
    given = {
        name: value
        for name, value in params.items()
        if value is not None and name not in ("step", "total_steps")
    }
    added: Mapping[str, Any] = {}
    # Parameters that do not fit are left to the command, which refuses them.
    with suppress(SignoffError):
        if workflow.prepare is not None:
            values = workflow.bind_at(step_at(workflow, params["step"]).id, given)
            added = workflow.prepare(values)
    try:
        yield {**given, **added}
    finally:
        if STATE_DIR in added:
            shutil.rmtree(added[STATE_DIR], ignore_errors=True)


def _target(workflow: Workflow) -> str:
    """Returns how the command finds a workflow: by its name, else by its file."""
    with suppress(SignoffError):
        if find_source(workflow.name, context_here()).load() is workflow:
            return workflow.name
    modules = [each for each in list(sys.modules.values()) if vars(each).get(NAME) is workflow]
    files = [Path(each.__file__) for each in modules if each.__file__]
    # A module that only imports it from another one does not count.
    own = [str(file) for file in files if assigns_workflow(file.read_text("utf-8"))]
    return own[0] if own else workflow.name
