"""`signoff prompts`: what is sent, and templates of one's own."""

import re

import pytest

from tests.acceptance.flow_project import (
    DRAFT,
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
"""

CLAUDE = "constraints: {routing: {default_agents: [claude]}}\n"


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


def sent_files(project: FlowProject, number: int) -> list[str]:
    """Returns the prompts of a round as the run directory shows them."""
    folder = project.run_dir / "iterations" / str(number)
    return sorted(file.read_text() for file in folder.rglob("prompt_*.txt"))


def test_the_prompts_of_a_run_are_those_that_were_sent(flow_project: FlowProject) -> None:
    """Combined reviews, confirmations and retries included; nothing that no agent got."""
    project = flow_project
    project.write_flow(f"{FLOW}{CLAUDE}rereview: changed\nverify: {{agent: codex}}\n")
    project.constraints("clear", "short")
    project.script(
        author_writes(),
        critic_finds("clear", issue("HIGH"), contains=DRAFT),
        critic_finds("short", issue("MEDIUM"), contains=DRAFT),
        {"step": "verify", "text": '{"reason": "It is.", "confirmed": true}'},
        critics_pass(),
        judge_decides("REWRITE", bill="Fix it."),
        editor_replaces(),
    )
    done = project.run()
    assert done.code == 0, done.err

    rounds = [project.call("prompts", "--run", "one", "--round", n, "--json") for n in ("1", "2")]
    latest = project.call("prompts", "--run", "one", "--json")
    plain = project.call("prompts", "--run", "one", "review")

    for number, shown in enumerate(rounds, start=1):
        sent = [f"[system]\n{each['system']}\n\n[prompt]\n{each['prompt']}" for each in shown.json]
        assert sorted(sent) == sent_files(project, number)
    assert [(each["step"], each["round"]) for each in latest.json] == [
        ("draft", 1),
        ("judge", 1),
        ("fix", 1),
        ("review", 2),
    ], "the judge had nothing to decide in round 2"
    assert "===== review, round 2, claude: Review against 'clear' and 'short': prompt" in plain.out
    assert "Review the artifact against clear and short now." in plain.out
    assert "(sent with a JSON schema for the answer" in plain.out
    confirmed = [each for each in rounds[0].json if each["agents"] == ["codex"]]
    assert [each["about"]["title"] for each in confirmed] == ["Confirm clear-001 of claude"]
    critiques = "iterations/1/critiques"
    assert f"{critiques}/prompt_verify_clear-001-claude_codex.txt" in project.names
    assert f"{critiques}/reply_verify_clear-001-claude_codex.txt" in project.names


def test_a_judge_is_told_once_what_held_its_approval_back(flow_project: FlowProject) -> None:
    """It would otherwise approve round after round, and never learn why nothing happens."""
    project = flow_project
    project.write_flow(FLOW.replace("max_iterations: 2", "max_iterations: 3") + CLAUDE)
    project.constraints("clear")
    project.script(
        author_writes(),
        critic_finds("clear", issue("HIGH"), contains=DRAFT),
        critic_finds("clear", issue("MEDIUM", evidence="wide")),
        judge_decides("APPROVED", contains=DRAFT),
        judge_decides("REWRITE", bill="Fix it."),
        editor_replaces(times=1),
        editor_replaces("wide", "wide and cold"),
    )
    project.run()
    findings = project.call("policy", "explain", "one", "--json").json
    (finding,) = [each["id"] for each in findings if each["severity"] == "HIGH"]

    prompts = [
        project.call("prompts", "--run", "one", "--round", number, "judge") for number in "123"
    ]

    told = f"did not count, because these findings of KNOWN blocked it: {finding} (HIGH)."
    assert [told in each.out for each in prompts] == [False, True, False]


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
    unknown = "own/fixer.md:1: unknown placeholder {{bill}} (did you mean {{bill_of_work}}? valid: "
    assert unknown in refused.out


def test_a_flow_or_a_run_has_to_be_named(project: FlowProject) -> None:
    """A message that says what is missing, not a traceback."""
    nothing = project.call("prompts")
    both = project.call("prompts", "flow.yaml", "fix", "--run", "one")
    wrong = project.call("prompts", "flow.yaml", "judges")
    round_of_nothing = project.call("prompts", "flow.yaml", "--round", "1")
    project.run()
    later = project.call("prompts", "--run", "one", "--round", "9")

    assert later.code == 2
    assert re.search(r"run 'one' has \d rounds?, so there is no round 9", later.err)
    assert [each.code for each in (nothing, both, wrong, round_of_nothing)] == [2, 2, 2, 2]
    assert "name a flow" in nothing.err
    assert "name a flow, a run (--run, with --round)" in round_of_nothing.err
    assert "unknown step 'judges'; valid names: judge, draft, review, fix" in wrong.err
