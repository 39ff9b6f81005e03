"""What a run sends is in its directory, and templates of one's own."""

import pytest

from tests.acceptance import flow_project as play
from tests.acceptance.flow_project import DRAFT, FlowProject

FLOW = """
max_iterations: 2
workflow:
  - {step: generate, name: draft}
  - {step: critique, name: review}
  - {step: adjudicate, name: judge}
  - {step: refine, name: fix, loop_to: review}
"""

CLAUDE = "constraints: {routing: {default_agents: [claude]}}\n"


@pytest.fixture
def project(flow_project: FlowProject) -> FlowProject:
    flow_project.write_flow(FLOW)
    flow_project.constraints("clear")
    flow_project.script(
        play.author_writes(),
        play.critic_finds("clear", play.issue("HIGH", finding="Misspelt."), contains=DRAFT),
        play.critics_pass(),
        play.judge_decides("REWRITE", bill="Fix it.", contains=DRAFT),
        play.judge_decides("APPROVED"),
        play.editor_replaces(),
    )
    return flow_project


def test_the_prompts_of_a_run_are_those_that_were_sent(flow_project: FlowProject) -> None:
    """Combined reviews, confirmations and retries included; nothing that no agent got."""
    project = flow_project
    project.write_flow(f"{FLOW}{CLAUDE}rereview: changed\nverify: {{agent: codex}}\n")
    project.constraints("clear", "short")
    project.script(
        play.author_writes(),
        play.critic_finds("clear", play.issue("HIGH"), contains=DRAFT),
        play.critic_finds("short", play.issue("MEDIUM"), contains=DRAFT),
        {"step": "verify", "text": '{"reason": "It is.", "confirmed": true}'},
        play.critics_pass(),
        play.judge_decides("REWRITE", bill="Fix it."),
        play.editor_replaces(),
    )
    done = project.run()
    assert done.code == 0, done.err

    events = project.call("export", "json", "one").json["events"]
    sent = [each["payload"] for each in events if each.get("kind") == "ask" and "payload" in each]
    assert len(sent) == len(project.calls) == 7
    assert sorted(f"[system]\n{each['system']}\n\n[prompt]\n{each['prompt']}" for each in sent) == (
        sorted(project.sent_prompts())
    )
    (review,) = project.sent_prompts(step="clear-short")
    assert "Review the artifact against clear and short now." in review
    assert project.sent_prompts(step="adjudicate", number="2") == [], "nothing had to be decided"
    critiques = "iterations/1/critiques"
    assert f"{critiques}/prompt_verify_clear-001-claude_codex.txt" in project.names
    assert f"{critiques}/reply_verify_clear-001-claude_codex.txt" in project.names


def test_a_copied_template_can_be_changed_and_is_sent(project: FlowProject) -> None:
    """Users can read and change exactly what is sent."""
    wrote = project.call("init", "--templates", "own")
    folder = project.folder / "own"
    for file in folder.glob("*.md"):
        if file.name != "fixer.md":
            file.unlink()
    (folder / "fixer.md").write_text(
        "The artifact is the file {{filename}}. {{bill_of_work}} Be quick.\n"
    )
    project.write_flow(FLOW + "prompts: own\n")

    done = project.run()
    (shown,) = project.sent_prompts(step="refine")
    again = project.call("init", "--templates", "own")
    (folder / "fixer.md").write_text("Fix {{filename}} by {{bill}}.\n")
    refused = project.call("validate", "flow.yaml")

    assert "created own/critic.md" in wrote.out
    assert done.code == 0, done.err
    assert "Be quick." in shown
    assert refused.code == again.code == 2
    assert "already there: own/fixer.md" in again.err
    unknown = "own/fixer.md:1: unknown variable 'bill' (valid: "
    assert unknown in refused.out
