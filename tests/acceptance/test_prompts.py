"""`signoff prompts`: what is sent, and templates of one's own."""

import pytest

from tests.acceptance.flow_project import (
    DRAFT,
    FINAL,
    FlowProject,
    author_writes,
    critic_finds,
    critics_pass,
    editor_replaces,
    issue,
    judge_decides,
)

FLOW = """
max_iterations: 2
workflow:
  - {step: generate, name: draft}
  - {step: critique, name: review}
  - {step: adjudicate, name: judge}
  - {step: refine, name: fix, loop_to: review}
adjudication: {instructions: Judge fairly.}
"""


@pytest.fixture
def project(flow_project: FlowProject) -> FlowProject:
    flow_project.write_flow(FLOW)
    flow_project.constraints("clear")
    flow_project.script(
        author_writes(),
        critic_finds("clear", issue("HIGH", finding="Misspelt."), contains=DRAFT),
        critics_pass(),
        judge_decides("REWRITE", bill="Fix it.", contains=DRAFT),
        judge_decides("APPROVED"),
        editor_replaces(),
    )
    return flow_project


def test_the_prompts_of_a_run_are_those_that_were_sent(project: FlowProject) -> None:
    """Each file of the run directory has one prompt, with the system prompt above it."""
    done = project.run()
    assert done.code == 0, done.err

    shown = project.call("prompts", "--run", "one", "--json")
    plain = project.call("prompts", "--run", "one", "judge")

    assert shown.code == 0, shown.err
    folder = project.run_dir / "iterations"
    files = [file.read_text() for file in sorted(folder.rglob("prompt_*.txt"))]
    assert [each["step"] for each in shown.json] == ["draft", "review", "judge", "fix"]
    for each in shown.json:
        assert any(each["prompt"] in text and each["system"] in text for text in files), each
    assert FINAL in plain.out
    assert "You are the judge of a review." in plain.out


def test_a_copied_template_can_be_changed_and_is_sent(project: FlowProject) -> None:
    """Users can read and change exactly what is sent."""
    wrote = project.call("prompts", "--write", "own")
    folder = project.folder / "own"
    for file in folder.glob("*.md"):
        if file.name != "fixer.md":
            file.unlink()
    (folder / "fixer.md").write_text(
        "The artifact is the file {{filename}}. {{bill_of_work}} Be quick.\n"
    )
    project.write_flow(FLOW + "prompts: own\n")

    done = project.run()
    shown = project.call("prompts", "--run", "one", "fix")
    (folder / "fixer.md").write_text("Fix {{filename}} by {{bill}}.\n")
    refused = project.call("validate", "flow.yaml")

    assert "wrote own/critic.md" in wrote.out
    assert done.code == 0, done.err
    assert "Be quick." in shown.out
    assert refused.code == 2
    assert "fixer.md: unknown placeholder {{bill}} (valid: approved, bill_of_work" in refused.out


def test_a_flow_or_a_run_has_to_be_named(project: FlowProject) -> None:
    """A message that says what is missing, not a traceback."""
    nothing = project.call("prompts")
    both = project.call("prompts", "flow.yaml", "fix", "--run", "one")
    wrong = project.call("prompts", "flow.yaml", "judges")

    assert [each.code for each in (nothing, both, wrong)] == [2, 2, 2]
    assert "name a flow" in nothing.err
    assert "unknown step 'judges'; valid names: judge, draft, review, fix" in wrong.err
