"""Rules that every skill of the library follows, whoever wrote it."""

import importlib
import itertools
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from signoff.core.args import Param
from signoff.core.outcome import Outcome
from signoff.core.step import StepDef
from signoff.core.workflow import Workflow
from signoff.skills import library
from tests.tables import table

NAMES = sorted(
    module.name for module in pkgutil.iter_modules(library.__path__) if module.name[0] != "_"
)
SKILLS: dict[str, Workflow] = {
    name: importlib.import_module(f"signoff.skills.library.{name}").WORKFLOW for name in NAMES
}
MOST_COMMANDS = 80
DOCS = Path(__file__).parents[3] / "docs"

every_skill = table("skill", SKILLS)
every_step = table(
    ("skill", "step"),
    {
        f"{skill.name}, {step.id}": (skill, step)
        for skill in SKILLS.values()
        for step in skill.steps.values()
    },
)


def test_a_skill_is_found_by_the_name_of_its_module() -> None:
    """A command imports only the skill that it is about."""
    assert {name: skill.name.replace("-", "_") for name, skill in SKILLS.items()} == {
        name: name for name in NAMES
    }


@every_skill
def test_a_skill_states_when_to_use_it_and_when_not(skill: Workflow) -> None:
    """Agents choose a skill by its description alone."""
    text = " ".join(skill.description.split()).lower()

    assert "use it " in text
    assert "not use it " in text
    # Claude Code shows its model about 2,700 characters of all descriptions together, and only the
    # names of the skills after that.
    assert len(text) <= 210


@every_skill
def test_a_skill_has_enough_steps_to_guide_and_few_enough_to_finish(skill: Workflow) -> None:
    """One long step is forgotten halfway; twenty are not worth their commands."""
    assert 5 <= skill.total_steps <= 14


@every_step
def test_a_step_has_a_title_and_real_instructions(skill: Workflow, step: StepDef) -> None:
    """An agent that sees only this step must know what to do."""
    text = "\n\n".join(step.actions)

    assert step.title
    assert len(text) > 80
    assert all(text == text.strip() and text for text in step.actions)


@every_step
def test_instructions_explain_every_parameter_and_choice(skill: Workflow, step: StepDef) -> None:
    """An agent cannot report what it has not been asked for."""
    text = "\n\n".join(step.actions)
    reported = {n: param for n, param in skill.params[step.id].items() if n != "iteration"}
    words = [*reported, *(c for param in reported.values() for c in param.arg.choices or ())]

    assert [word for word in words if f"`{word}`" not in text] == []


@every_skill
def test_a_skill_starts_without_parameters(skill: Workflow) -> None:
    """Its first command is the same for every task."""
    skill.run(skill.entry_point)

    assert [name for name, param in skill.declared_params.items() if param.required] == []


@every_step
def test_a_repeated_step_ends_in_its_last_round(skill: Workflow, step: StepDef) -> None:
    """Whatever an agent reports, it is not asked for the same work forever."""
    if Outcome.ITERATE not in step.next:
        return

    params = skill.params[step.id]
    last = {"iteration": last_value(params["iteration"])}
    outcomes = {skill.run(step.id, {**values, **last}).outcome for values in combinations(params)}

    assert outcomes
    assert Outcome.ITERATE not in outcomes


@every_skill
def test_the_last_choices_lead_to_the_last_step(skill: Workflow) -> None:
    """An agent that finishes everything reaches the end, and soon."""
    steps = [*itertools.islice(followed(skill), MOST_COMMANDS + 1)]

    assert len(steps) <= MOST_COMMANDS
    assert steps[-1] == [*skill.steps][-1]


@every_skill
def test_a_report_is_only_about_its_own_step(skill: Workflow) -> None:
    """Two steps that share a report would end the second before its work is done."""
    own = [
        name
        for step in skill.steps.values()
        if Outcome.ITERATE in step.next
        for name in skill.params[step.id]
        if name != "iteration"
    ]

    assert len(own) == len(set(own))


@every_skill
def test_the_docs_list_every_step_in_order(skill: Workflow) -> None:
    """Users choose a skill by what it will have them do."""
    text = "".join(path.read_text() for path in sorted(DOCS.glob("skills*.md")))
    section = text.partition(f"### {skill.name}\n")[2].partition("\n### ")[0]

    assert re.findall(r"^\d+\. `(\w+)`", section, re.MULTILINE) == [*skill.steps]


def followed(skill: Workflow) -> Iterator[str]:
    """Yields the steps that an agent sees when it fills in the last choice everywhere."""
    step: str | None = skill.entry_point
    params: dict[str, Any] = {}
    while step is not None:
        yield step
        output = skill.run(step, params)
        command = output.next_commands[Outcome.OK] if output.dispatch else output.next_command
        step = command.step if command else None
        if command:
            filled = {name: last_value(param) for name, param in command.open.items()}
            params = {**command.params, **filled}


def last_value(param: Param) -> Any:
    domain = param.domain()
    return [*domain][-1] if domain is not None else "word"


def combinations(params: Any) -> Iterator[dict[str, Any]]:
    """Yields every combination of the choices of a step, with a word for an open text."""
    values = {name: [*(param.domain() or ["word"])] for name, param in params.items()}
    for each in itertools.product(*values.values()):
        yield dict(zip(values, each, strict=True))
