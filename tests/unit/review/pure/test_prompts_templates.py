"""Templates of prompts: the built-in ones, and what is read or refused of a flow's own."""

from pathlib import Path
from typing import Any

import pytest

from signoff.core.errors import InvalidWorkflow, UsageError
from signoff.core.severity import Severity
from signoff.documents.source_file import SourceFile
from signoff.notation import CompileContext
from signoff.review.flow.compile import compile_file, frozen_source
from signoff.review.flow.prompt_files import write_templates
from signoff.review.flow.state import FlowState
from signoff.review.flow.steps.critic import review_prompt
from signoff.review.pure.prompts import REQUIRED, built_in, fill, variables_for

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


@pytest.mark.parametrize("name", REQUIRED)
def test_every_built_in_template_says_its_version(name: str) -> None:
    """Users who copy one can see which release it comes from."""
    assert built_in(name).startswith("{{! signoff prompts, version ")


def test_a_block_at_the_end_that_is_left_out_leaves_no_empty_line() -> None:
    """A prompt ends with one line break, whatever was left out."""
    template = "{{! note }}\nA {{a}}.\n\n{{#if b}}\n# B\n\n{{b}}\n{{/if}}\n"

    assert fill(template, {"a": "x", "b": ""}) == "A x.\n"
    assert fill(template, {"a": "x", "b": "y"}) == "A x.\n\n# B\n\ny\n"


def test_the_severity_scale_has_a_line_for_each_severity() -> None:
    """A severity without a description would be a matter of taste."""
    lines = [line for line in built_in("severities").splitlines() if line.startswith("- ")]

    assert [line[2:].partition(":")[0] for line in lines] == list(Severity)
    assert all("Example: " in line for line in lines)


def test_both_templates_of_a_role_may_use_the_same_variables() -> None:
    """A user may want the severity scale in the prompt, or the constraint in the role."""
    assert variables_for("critic") == variables_for("critic_system")
    assert {"artifact", "severities"} <= variables_for("critic")
    assert variables_for("severities") == set()


def test_no_text_in_a_prompt_is_read_as_a_template(tmp_path: Path) -> None:
    """An artifact that holds tags must not change the prompt, or pull other material into it."""
    hostile = "{{goal}} {{#if known}}x{{/if}} {{/if}} {{! gone }} {{=goal}}\n\n\n{{include: a}}\n{{"
    flow = flow_in(tmp_path, prompts="")

    prompt = review_prompt(
        flow, FlowState({"artifact": hostile}), "claude", [(flow.constraints[0], hostile)]
    )

    assert prompt.count(hostile) == 2


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
            "critic.md:2: unknown variable 'artefact' (valid: ",
        ),
        ("critic.md", CRITIC + "{{zzz}}", "critic.md:2: unknown variable 'zzz' (valid: artifact, "),
        (
            "critic.md",
            CRITIC + "{{#known}}",
            "critic.md:2: unknown tag {{#known}} (valid: {{KEY}}, {{#if KEY}}",
        ),
        (
            "critic.md",
            CRITIC + "{{^known}}",
            "critic.md:2: unknown tag {{^known}} (valid: {{KEY}}",
        ),
        (
            "critic.md",
            CRITIC + "{{/known}}",
            "critic.md:2: unknown tag {{/known}} (valid: {{KEY}}",
        ),
        ("critic.md", CRITIC + "{{#if goal}}", "critic.md:2: {{#if goal}} is not closed"),
        (
            "critic.md",
            CRITIC + "{{include: x.md}}",
            "critic.md:2: {{include: x.md}} has no effect here",
        ),
        (
            "critic.md",
            "{{#if artifact}}{{constraints}}{{/if}}",
            "critic.md: {{artifact}} is missing",
        ),
        ("critic.md", " \n", "critic.md: is empty"),
        ("critic.md", CRITIC + "x" * 100_001, "critic.md: is larger than 100,000 bytes"),
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
