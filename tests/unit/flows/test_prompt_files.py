"""A flow's own templates: what is read, what is refused, and what a run depends on."""

from pathlib import Path
from typing import Any

import pytest

from signoff.documents.source_file import SourceFile
from signoff.errors import InvalidWorkflow, UsageError
from signoff.flows.compile import frozen_source
from signoff.flows.compile_file import compile_file
from signoff.flows.prompt_files import write_templates
from signoff.flows.state import FlowState
from signoff.flows.steps.critic import review_prompt
from signoff.notation import CompileContext
from signoff.review.template import REQUIRED

FLOW = """
goal: Write about the sea.
constraints: {inline: {clear: It is clear.}}
workflow: [{step: generate}, {step: critique}, {step: adjudicate}]
"""
CRITIC = "Check {{artifact}} by {{constraints}}.\n"


def flow_in(folder: Path, prompts: str = "own") -> Any:
    """Returns the flow in a folder below the project, next to its templates."""
    file = folder / "flows/flow.yaml"
    file.parent.mkdir(exist_ok=True)
    file.write_text(f"{FLOW}prompts: {prompts}\n" if prompts else FLOW)
    workflow = compile_file(SourceFile(file), CompileContext(folder))
    handler: Any = workflow.steps["generate"].handler
    return handler.flow


def template(folder: Path, name: str, text: str) -> None:
    file = folder / "flows/own" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text.encode())


def test_a_template_next_to_the_flow_replaces_the_built_in_one(tmp_path: Path) -> None:
    """Users can read and change exactly what is sent."""
    template(tmp_path, "critic.md", CRITIC.replace("\n", "\r\n"))
    template(tmp_path, "notes.txt", "not a template")

    flow = flow_in(tmp_path)
    prompt = review_prompt(
        flow, FlowState({"artifact": "The sea."}), "claude", [(flow.constraints[0], "")]
    )

    assert prompt.startswith("Check <<<ARTIFACT ")
    assert prompt.endswith("- clear (HIGH): It is clear..\n")
    assert prompt.system is not None
    assert prompt.system.startswith("You are a critic.")


def test_a_users_template_identifies_the_request_and_a_built_in_one_does_not(
    tmp_path: Path,
) -> None:
    """A release may reword its own prompts; a user who changes theirs asks something else."""
    template(tmp_path, "critic.md", CRITIC)
    template(tmp_path, "judge.md", "{{artifact}} {{critiques}}\n")
    own, plain = flow_in(tmp_path), flow_in(tmp_path, prompts="")
    state = FlowState({"artifact": "The sea."})

    with_own = review_prompt(own, state, "claude", [(own.constraints[0], "")]).material
    without = review_prompt(plain, state, "claude", [(plain.constraints[0], "")]).material

    assert with_own == {**without, "templates": {"critic": CRITIC}}


def test_templates_are_stored_with_the_run(tmp_path: Path) -> None:
    """A template that changes later is a changed definition, as with constraints."""
    template(tmp_path, "critic.md", CRITIC)

    own, plain = frozen_source(flow_in(tmp_path)), frozen_source(flow_in(tmp_path, prompts=""))

    assert own["prompts"] == {"critic": CRITIC}
    assert own["flow"]["prompts"] == "own"
    assert plain["prompts"] == {}
    assert plain["flow"]["prompts"] is None


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("critics.md", CRITIC, "critics.md: is not the name of a template (valid: author.md, "),
        (
            "critic.md",
            CRITIC + "{{artefact}}",
            "critic.md:2: unknown placeholder {{artefact}} (did you mean {{artifact}}? ",
        ),
        ("critic.md", "{{rules}}", "critic.md: {{artifact}} is missing"),
        ("critic.md", " \n", "critic.md: is empty"),
        ("critic.md", CRITIC + "x" * 100_001, "critic.md: has more than 100,000 characters"),
    ],
)
def test_mistakes_are_reported_with_their_file(
    name: str, text: str, expected: str, tmp_path: Path
) -> None:
    """They would otherwise show up in the middle of a run that costs money."""
    template(tmp_path, name, text)

    with pytest.raises(InvalidWorkflow) as error:
        flow_in(tmp_path)

    assert expected in str(error.value)


@pytest.mark.parametrize("folder", ["missing", "flow.yaml", "empty"])
def test_a_folder_without_templates_is_a_mistake(folder: str, tmp_path: Path) -> None:
    """The user believes that their words are sent."""
    (tmp_path / "empty").mkdir()

    with pytest.raises(InvalidWorkflow, match=r"flow\.yaml:\d+: .*no (such folder|templates)"):
        flow_in(tmp_path, prompts=folder)


def test_the_built_in_templates_can_be_copied_but_never_over_others(tmp_path: Path) -> None:
    """A second call must not overwrite what the user has written meanwhile."""
    files = write_templates(tmp_path / "flows/own")
    flow = flow_in(tmp_path)

    with pytest.raises(UsageError, match=r"already there: .*critic\.md"):
        write_templates(tmp_path / "flows/own")

    assert {file.stem for file in files} == set(REQUIRED)
    assert set(flow.prompts) == set(REQUIRED)
