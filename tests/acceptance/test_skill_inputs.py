"""Every input of every skill of the library, and every command that it prints.

All inputs run through the entry point of the program in this process. A few of them, or all with
`make inputs`, also run as processes of their own.
"""

import os
import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from signoff.core.workflow import Workflow
from signoff.skills import discover_workflows
from signoff.testing import case_id, generate_test_inputs, run_skill_invocation
from tests.acceptance.cli_project import CliProject

SKILLS = discover_workflows()
SAMPLES = {
    "deepthink": {"angles": [["cost"], ["the operator", "$(touch hacked)"]]},
    "codebase-analysis": {"areas": [["core"], ["a, b", "c"]]},
}
"""Values for the open parameters of the library."""
TASKS = [None, "fix it; $(touch hacked) `touch hacked` 'x\ny' <z> --step 2"]

PLACEHOLDER = re.compile(r"<(?:.*\|)?(.*)>")


def inputs_of(skill: Workflow) -> list[dict[str, Any]]:
    return list(generate_test_inputs(skill, {"task": TASKS, **SAMPLES.get(skill.name, {})}))


def processes() -> Iterator[Any]:
    """Yields the inputs that run as processes of their own: one for each skill, or all."""
    for skill in SKILLS.values():
        inputs = inputs_of(skill)
        chosen = inputs if os.environ.get("EVERY_INPUT") else inputs[len(inputs) // 2 :][:1]
        for params in chosen:
            yield pytest.param(skill, params, id=case_id(skill, params))


@pytest.fixture
def inside(project: CliProject, monkeypatch: pytest.MonkeyPatch) -> CliProject:
    """A project that the test's own process is in."""
    project.enter(monkeypatch)
    # Importing a skill puts its folder on the path, and one of them holds a `signoff.py`.
    monkeypatch.setattr(sys, "path", list(sys.path))
    return project


def words(skill: Workflow, params: dict[str, Any], state: list[str]) -> list[str]:
    given = [
        word
        for name, value in params.items()
        if value is not None and name != "total_steps"
        for word in (f"--{name}", ",".join(value) if isinstance(value, list) else str(value))
    ]
    return ["skill", "step", skill.name, *given, *state]


def state_of(skill: Workflow, project: CliProject) -> list[str]:
    """Returns the option with the state directory that the first step creates, if it does."""
    first = project.call("skill", "step", skill.name, "--step", "1", "--json")
    assert first.code == 0, first.err
    command = shlex.split(first.json["next_command"])
    return command[command.index("--state-dir") :][:2] if "--state-dir" in command else []


def printed_by(project: CliProject, arguments: list[str]) -> list[str]:
    """Runs a step and returns the commands that it prints."""
    result = project.call(*arguments, "--json")
    assert (result.code, result.err) == (0, ""), arguments
    step = result.json
    commands = [step["next_command"], *step["next_commands"].values()]
    return [command for command in commands if command is not None]


@pytest.mark.parametrize("skill", SKILLS.values(), ids=SKILLS)
def test_every_input_works_and_so_does_every_command_that_it_prints(
    skill: Workflow, inside: CliProject
) -> None:
    """An agent that follows printed commands must never meet an error."""
    state, printed = state_of(skill, inside), set[str]()

    for params in inputs_of(skill):
        printed.update(printed_by(inside, words(skill, params, state)))

    assert len(printed) >= skill.total_steps - 1
    for command in printed:
        program, *arguments = shlex.split(command)
        assert program == "signoff"
        filled = [PLACEHOLDER.sub(r"\1", word) if word[0] == "<" else word for word in arguments]
        printed_by(inside, filled)
    assert not (inside.folder / "hacked").exists()


@pytest.mark.parametrize(("skill", "params"), list(processes()))
def test_an_input_works_as_a_process_of_its_own(
    skill: Workflow, params: dict[str, Any], inside: CliProject
) -> None:
    """That is how agents call it."""
    assert run_skill_invocation(skill, params) == 0

    assert list(inside.folder.rglob(f"{skill.name}-*")) == []


OWN = """
from typing import Annotated
from signoff.skills import STATE_DIR, Arg, Outcome, StepDef, Workflow, state_directory

def pick(ctx, topic: str, size: Annotated[int, Arg(min=1, max=2)] = 1):
    return Outcome.OK, {}

WORKFLOW = Workflow(
    "own",
    StepDef("start", "Start", ["Begin."], next={Outcome.OK: "pick"}),
    StepDef("pick", "Pick", ["Pick one."], pick, {Outcome.OK: None}),
    inputs=[STATE_DIR], prepare=state_directory("own", {"notes.md": ""}),
)
"""
TOPICS = {"topic": ["two words", "-x", "$(touch hacked)", "a\nb"]}


def own_skill(file: Path) -> Workflow:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(OWN)
    return discover_workflows(file.parent)["own"]


@pytest.mark.parametrize("place", [".signoff/skills/own.py", "elsewhere/signoff.py"])
def test_the_inputs_of_a_skill_of_ones_own_run_wherever_it_is(
    place: str, inside: CliProject
) -> None:
    """It is tested before it is put where it will be found by its name."""
    skill = own_skill(inside.folder / place)
    chosen = [
        params for params in generate_test_inputs(skill, TOPICS) if params.get("size", 1) == 1
    ]

    assert [run_skill_invocation(skill, params) for params in chosen] == [0] * 5
    assert list(inside.folder.rglob("hacked")) == []
    assert list(inside.folder.rglob("own-*")) == []
