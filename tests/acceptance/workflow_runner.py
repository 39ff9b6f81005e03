"""Runs the steps of a GitHub workflow on this machine: what the runner does, as far as we use it.

`run:` steps of the workflow and of our composite action are executed by the shell that the runner
would use, with its files and variables. Actions of others are replaced by functions, which get
their inputs with all expressions evaluated.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

ACTION = Path(__file__).parents[2]
OURS = "OWNER/signoff@"
_EXPRESSION = re.compile(r"\$\{\{(.*?)\}\}")

Inputs = Mapping[str, str]


@dataclass
class WorkflowRun:
    """One job of a workflow, step by step."""

    workspace: Path
    temp: Path
    contexts: dict[str, Any]
    """The `github` and `secrets` contexts; `steps` is added."""
    environment: Mapping[str, str]
    """The variables of the machine."""
    actions: Mapping[str, Callable[[Inputs], None]]
    """What stands for the actions of others, by name without a version."""
    replaced: Mapping[str, Callable[[], None]] = field(default_factory=dict)
    """What stands for steps of our action, by name."""
    printed: str = ""
    failed: bool = False

    def run(self, job: Mapping[str, Any]) -> WorkflowRun:
        """Runs all steps of a job; the later ones of a failed job only if they ask for it."""
        self.temp.mkdir(parents=True)
        self._steps(job["steps"], self.contexts, job.get("env") or {})
        return self

    @property
    def summary(self) -> str:
        """The summary of the job."""
        return self._file("summary").read_text()

    def outputs(self, step: str) -> dict[str, str]:
        """Returns the outputs of a step of the workflow."""
        found: dict[str, str] = self.contexts["steps"][step]["outputs"]
        return found

    def _steps(self, steps: list[Any], contexts: dict[str, Any], env: Mapping[str, Any]) -> None:
        contexts["steps"] = {}
        for step in steps:
            wanted = _evaluate(step.get("if", "success()"), contexts, failed=self.failed)
            if not wanted:
                continue
            variables = {**env, **(step.get("env") or {})}
            variables = {k: _filled(v, contexts) for k, v in variables.items()}
            outputs = self._step(step, contexts, variables)
            contexts["steps"][step.get("id")] = {"outputs": outputs}

    def _step(
        self, step: Mapping[str, Any], contexts: dict[str, Any], env: Mapping[str, str]
    ) -> dict[str, str]:
        if step.get("name") in self.replaced:
            self.replaced[step["name"]]()
            return {}
        if "run" in step:
            return self._shell(_filled(step["run"], contexts), env)
        inputs = {k: _filled(v, contexts) for k, v in (step.get("with") or {}).items()}
        if step["uses"].startswith(OURS):
            return self._action(inputs, env)
        self.actions[step["uses"].partition("@")[0]](inputs)
        return {}

    def _action(self, inputs: Inputs, env: Mapping[str, str]) -> dict[str, str]:
        action = YAML(typ="safe").load((ACTION / "action.yml").read_text())
        assert inputs.keys() <= action["inputs"].keys()
        contexts = {**self.contexts}
        contexts["github"] = {**self.contexts["github"], "action_path": str(ACTION)}
        contexts["inputs"] = {
            name: inputs.get(name, _filled(each["default"], contexts))
            for name, each in action["inputs"].items()
        }
        self._steps(action["runs"]["steps"], contexts, env)
        return {k: _filled(each["value"], contexts) for k, each in action["outputs"].items()}

    def _shell(self, script: str, env: Mapping[str, str]) -> dict[str, str]:
        files = {
            "GITHUB_OUTPUT": self._file("output"),
            "GITHUB_STEP_SUMMARY": self._file("summary"),
        }
        self._file("output").write_text("")
        self._file("summary").touch()
        given = {name: str(path) for name, path in files.items()}
        given |= {"RUNNER_TEMP": str(self.temp), "CI": "true", "GITHUB_ACTIONS": "true"}
        (self.temp / "step.sh").write_text(script)
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(self.temp / "step.sh")],
            cwd=self.workspace,
            env={**self.environment, **given, **env},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.printed += done.stdout
        self.failed = self.failed or done.returncode != 0
        lines = self._file("output").read_text().splitlines()
        return dict(line.split("=", 1) for line in lines)

    def _file(self, name: str) -> Path:
        return self.temp / f"runner-{name}"


def link_program(temp: Path, program: str) -> None:
    """Installs this signoff where the action does."""
    programs = temp / "signoff/bin"
    programs.mkdir(parents=True)
    (programs / "signoff").symlink_to(program)


def machine(home: Path, **variables: str) -> dict[str, str]:
    """Returns the variables of a fresh machine."""
    kept = {k: v for k, v in os.environ.items() if k.startswith(("PIP_", "UV_", "SSL_"))}
    return {**kept, "PATH": os.defpath, "HOME": str(home), "LANG": "C.UTF-8", **variables}


def _filled(text: Any, contexts: Mapping[str, Any]) -> str:
    """Returns a value with its expressions evaluated."""
    if not isinstance(text, str):
        return str(text)
    return _EXPRESSION.sub(lambda found: str(_evaluate(found[1], contexts) or ""), text)


def _evaluate(expression: str, contexts: Mapping[str, Any], *, failed: bool = False) -> Any:
    """Returns the value of an expression made of names, texts, calls, `!=`, `&&` and `||`."""
    values: Any = ""
    for part in expression.split("||"):
        values = True
        for term in part.split("&&"):
            values = _term(term.strip(), contexts, failed=failed)
            if not values:
                break
        if values:
            return values
    return values


def _term(term: str, contexts: Mapping[str, Any], *, failed: bool) -> Any:
    if "!=" in term:
        left, right = (_term(each.strip(), contexts, failed=failed) for each in term.split("!="))
        return left != right
    if term.startswith("'"):
        return term.strip("'")
    if term in ("always()", "success()"):
        return term == "always()" or not failed
    value: Any = contexts
    for name in term.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return "" if value is None else value
