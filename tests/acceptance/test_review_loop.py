"""The review loop: which agent reviews what, what blocks, and when a human decides."""

import json
import re
from typing import Any

import pytest

from tests.acceptance import flow_project as play
from tests.acceptance.flow_project import DRAFT, FINAL, FlowProject, Rule

ROUTED = """
constraints:
  routing:
    default_agents: [gemini]
    rules:
      - {match: "security*", agents: [claude, codex]}
      - {match: "*", agents: [codex]}
    priority_routing:
      - {range: [1, 2], agents: [claude]}
"""


def answer(flow_project: FlowProject, question: str, text: str) -> int:
    """Answers with a file and resumes the run."""
    answers = {"answers": [{"question_id": question, "answer": text}]}
    flow_project.write(".signoff/runs/one/hitl/answers.json", json.dumps(answers))
    done = flow_project.call("resume", "one")
    assert "hitl/answers.json" not in flow_project.names, done.err
    return done.code


@pytest.mark.parametrize(
    ("routing", "expected"),
    [
        (
            "",
            {
                (name, agent)
                for name in ("security_web", "tone", "style", "facts")
                for agent in ("claude", "codex", "gemini")
            }
            - {("facts", "claude"), ("facts", "codex")},
        ),
        (
            ROUTED,
            {
                *(("security_web", "claude"), ("security_web", "codex")),
                *(("tone", "codex"), ("style", "codex"), ("facts", "gemini")),
            },
        ),
    ],
    ids=["default", "rules"],
)
def test_every_routed_agent_reads_every_constraint(
    flow_project: FlowProject, routing: str, expected: set[tuple[str, str]]
) -> None:
    """The constraint's own agents win, then routing rules, priorities and the default."""
    flow_project.write_flow(f"max_iterations: 2\n{routing}")
    flow_project.constraints("security_web", "tone", "style", "facts", facts="agents: [gemini]\n")
    flow_project.script(
        play.author_writes(FINAL), play.critics_pass(), play.judge_decides("APPROVED")
    )

    done = flow_project.run()

    assert done.code == 0, done.err
    read = [each for each in flow_project.call_fields("constraint", "agent") if each[0]]
    assert set(read) == expected
    assert len(read) == len(expected)
    for constraint, agent in expected:
        assert f"iterations/1/critiques/{constraint}-{agent}.json" in flow_project.names


@pytest.mark.parametrize(
    ("policy", "severity", "code"),
    [
        ("no_critical", "CRITICAL", 11),
        ("no_critical", "HIGH", 0),
        ("no_critical_or_high", "HIGH", 11),
        ("no_critical_or_high", "MEDIUM", 0),
        ("all_resolved", "LOW", 11),
    ],
)
def test_an_approval_that_violates_the_policy_is_not_valid(
    flow_project: FlowProject, policy: str, severity: str, code: int
) -> None:
    """A judge that approves everything must not override the policy."""
    flow_project.write_flow(
        "max_iterations: 1\n"
        f"adjudication: {{approval: {{policy: {policy}}}, escalation: {{triggers: []}}}}\n"
        "constraints: {routing: {default_agents: [claude]}}\n"
    )
    flow_project.constraints("clear")
    flow_project.script(
        play.author_writes(),
        play.critic_finds("clear", play.issue(severity)),
        play.judge_decides("APPROVED"),
        play.editor_replaces(),
    )

    done = flow_project.run()

    assert done.code == code, done.err
    judged = flow_project.read("iterations/1/adjudication_adjudicate.yaml")
    assert ("cannot pass" in judged) is (code == 11)


LOOP = "constraints: {routing: {default_agents: [claude]}}\n"


def test_each_entry_of_the_log_is_one_line(flow_project: FlowProject) -> None:
    """The question at the limit lists findings; each of them would look like an entry."""
    flow_project.write_flow(f"max_iterations: 1\n{LOOP}")
    flow_project.constraints("clear")
    flow_project.script(
        play.author_writes(),
        play.critic_finds("clear", play.issue(), play.issue(evidence="wide", finding="Too wide.")),
        play.judge_decides("REWRITE", bill="Fix it."),
        play.editor_replaces(),
    )
    flow_project.run()

    lines = flow_project.call("logs", "one").out.splitlines()

    assert all(re.match(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d ", line) for line in lines), lines
    (question,) = [line for line in lines if "a human has to decide" in line]
    assert "It is wrong." in question
    assert "Too wide." in question


def script_same_findings(
    flow_project: FlowProject, *issues: dict[str, Any], decisions: tuple[Rule, ...] = ()
) -> None:
    """Scripts a critic that reports the same issues after every fix."""
    flow_project.constraints("clear")
    flow_project.script(
        play.author_writes("The see is wide and deep and old and cold.\n"),
        play.critic_finds("clear", *issues),
        play.judge_decides("REWRITE", *decisions, bill="Fix it."),
        play.editor_replaces("wide", "broad", times=1),
        play.editor_replaces("deep", "profound", times=1),
        play.editor_replaces("old", "aged", times=1),
        play.editor_replaces("cold", "chilly"),
    )


def test_a_finding_pursued_three_times_in_a_row_is_escalated(flow_project: FlowProject) -> None:
    """Models do not notice that they repeat themselves, and each iteration costs money."""
    flow_project.write_flow(f"max_iterations: 9\n{LOOP}")
    script_same_findings(flow_project, play.issue())

    done = flow_project.run()

    assert (done.code, flow_project.asked) == (10, ["thrashing"])
    assert flow_project.call_fields("step").count("adjudicate") == 3


def test_conflicting_critical_findings_are_escalated(flow_project: FlowProject) -> None:
    """No edit can satisfy two critics that want opposite things."""
    flow_project.write_flow(f"max_iterations: 9\n{LOOP}")
    both = (
        play.issue("CRITICAL", id="clear-001"),
        play.issue("CRITICAL", "wide", id="clear-002", finding="Too wide."),
    )
    script_same_findings(
        flow_project, *both, decisions=({"issue_id": "clear-001", "competing_constraint": "short"},)
    )

    done = flow_project.run()

    assert (done.code, flow_project.asked) == (10, ["conflict"])


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        ("nothing", "changed nothing"),
        ("grown", "changed the size by"),
        ("deleted", "changed nothing"),
        ("emptied", "changed nothing"),
        ("blanked", "changed nothing"),
        ("folder", "changed nothing"),
        ("link", "by a link"),
        ("spaced", "changed nothing but spaces"),
        ("ended", "changed nothing"),
        ("crlf", "changed nothing but spaces or line endings"),
    ],
)
def test_a_fixer_that_damages_its_file_is_told_once_and_then_a_human_decides(
    flow_project: FlowProject, damage: str, why: str
) -> None:
    """The previous artifact is never lost, whatever an agent does to its copy."""
    draft = "The see is wide.\nIt is deep.\n"
    flow_project.write_flow(
        f"max_iterations: 1\nphases: {{refine: {{validation_retries: 1}}}}\n{LOOP}"
    )
    flow_project.constraints("clear")
    flow_project.script(
        play.author_writes(draft),
        play.critic_finds("clear", play.issue()),
        play.judge_decides("REWRITE", bill="Fix it."),
        {"step": "refine", "edits": True, "damage": damage, "text": "Done."},
    )

    done = flow_project.run()

    assert (done.code, flow_project.asked) == (10, ["validation_failed"]), done.err
    assert flow_project.call_fields("step").count("refine") == 2
    assert why in flow_project.read("iterations/1/prompt_refine_claude_2.txt")
    assert flow_project.read("iterations/1/artifact.md") == draft
    assert flow_project.call("show", "one", "--json").code == 0


@pytest.mark.parametrize("choice", ["edit by hand", "regenerate", "accept"])
def test_a_human_decides_about_an_implausible_edit(flow_project: FlowProject, choice: str) -> None:
    """After each of the three decisions, the text is reviewed again."""
    flow_project.write_flow(
        f"max_iterations: 2\nphases: {{refine: {{validation_retries: 0}}}}\n{LOOP}"
    )
    flow_project.constraints("clear")
    grown = f"{'The sea. ' * 9}\n"
    flow_project.script(
        play.author_writes(FINAL, contains="<<<BILL_OF_WORK"),
        play.author_writes(),
        play.critic_finds("clear", play.issue(), contains=DRAFT),
        play.critics_pass(),
        play.judge_decides("REWRITE", bill="Fix it.", contains=DRAFT),
        play.judge_decides("APPROVED"),
        play.editor_replaces("The see is wide.", grown.strip()),
    )
    flow_project.run()

    code = answer(flow_project, "validation_failed", choice)
    if choice == "edit by hand":
        code = flow_project.call("answer", "one", FINAL, "--resume").code

    assert code == 0
    expected = grown.strip() if choice == "accept" else FINAL.strip()
    assert flow_project.read("final/artifact.md").strip() == expected
    assert flow_project.call_fields("step")[-1] == "critique"


def test_tensions_and_instructions_reach_the_judge(flow_project: FlowProject) -> None:
    """Settings that are accepted but not used would be worse than an error."""
    flow_project.write_flow(
        f"max_iterations: 2\n{LOOP}"
        "adjudication:\n"
        "  tensions:\n"
        "    - {axis: short vs whole, guidance: Lean to short., winner_on_conflict: short}\n"
        "  instructions: Dismiss matters of taste.\n"
        "output: {dir: out, filename: sea.md}\n"
    )
    flow_project.constraints("clear")
    flow_project.script(
        play.author_writes(FINAL), play.critics_pass(), play.judge_decides("APPROVED")
    )

    done = flow_project.run()

    asked = flow_project.read("iterations/1/prompt_adjudicate_claude.txt")
    assert done.code == 0, done.err
    assert "short vs whole: Lean to short. (in conflict, short wins)" in asked
    assert "Dismiss matters of taste." in asked
    assert flow_project.read("out/sea.md") == FINAL
