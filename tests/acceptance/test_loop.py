"""The configuration of the fixed loop: reviewers, what blocks, when a human is asked."""

import json
from typing import Any

import pytest

from tests.acceptance.desk import (
    DRAFT,
    FINAL,
    Desk,
    Rule,
    finds,
    issue,
    mends,
    passes,
    rules,
    writes,
)

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
RANGED = """
constraints:
  routing:
    default_agents: [gemini]
    rules:
      - {match: "security*", agents: [claude, codex]}
    priority_routing:
      - {range: [2, 3], agents: [codex]}
      - {range: [3, 4], agents: [claude]}
"""


def questions(desk: Desk) -> list[str]:
    """Returns the question ids of the pending requests of a run."""
    asked = desk.load("hitl/questions.json")["questions"]
    return [each["id"] for group in asked for each in group["questions"]]


def answer(desk: Desk, question: str, text: str) -> int:
    """Answers with a file and resumes the run."""
    answers = {"answers": [{"question_id": question, "answer": text}]}
    desk.write(".signoff/runs/one/hitl/answers.json", json.dumps(answers))
    done = desk.here("resume", "one")
    assert "hitl/answers.json" not in desk.names, done.err
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
        (
            RANGED,
            {
                *(("security_web", "claude"), ("security_web", "codex")),
                *(("tone", "codex"), ("style", "codex"), ("facts", "gemini")),
            },
        ),
    ],
    ids=["nobody says", "rules", "priorities"],
)
def test_every_routed_agent_reviews_every_constraint(
    desk: Desk, routing: str, expected: set[tuple[str, str]]
) -> None:
    """The constraint's own agents come first, then rules, then priorities, then the default."""
    desk.flow(f"max_iterations: 2\n{routing}")
    desk.constraints("security_web", "tone", "style", "facts", facts="agents: [gemini]\n")
    desk.play(writes(FINAL), passes(), rules("APPROVED"))

    done = desk.run()

    assert done.code == 0, done.err
    read = [each for each in desk.asked("constraint", "agent") if each[0]]
    assert set(read) == expected
    assert len(read) == len(expected)
    for constraint, agent in expected:
        assert f"iterations/1/critiques/{constraint}-{agent}.json" in desk.names


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
def test_an_approval_is_valid_only_under_its_policy(
    desk: Desk, policy: str, severity: str, code: int
) -> None:
    """A lenient judge must not override the configured policy."""
    desk.flow(
        "max_iterations: 1\n"
        f"adjudication: {{approval: {{policy: {policy}}}, escalation: {{triggers: []}}}}\n"
        "constraints: {routing: {default_agents: [claude]}}\n"
    )
    desk.constraints("clear")
    desk.play(writes(), finds("clear", issue(severity)), rules("APPROVED"), mends())

    done = desk.run()

    assert done.code == code, done.err
    judged = desk.read("iterations/1/adjudication_adjudicate.yaml")
    assert ("is not valid" in judged) is (code == 11)


LOOP = "constraints: {routing: {default_agents: [claude]}}\n"


def test_the_iteration_limit_asks_a_human_who_may_grant_more(desk: Desk) -> None:
    """`max_iterations` among the triggers turns an end into a question."""
    desk.flow(f"max_iterations: 1\n{LOOP}")
    desk.constraints("clear")
    desk.play(
        writes(),
        finds("clear", issue(), contains=DRAFT),
        passes(),
        rules("REWRITE", bill="Mend it.", contains=DRAFT),
        rules("APPROVED"),
        mends(),
    )

    stopped = desk.run()
    asked, artifact = questions(desk), desk.read("final/artifact.md")
    code = answer(desk, "max_iterations", "continue")

    assert (stopped.code, asked, artifact) == (10, ["max_iterations"], DRAFT)
    assert code == 0
    assert desk.read("final/artifact.md") == FINAL


def test_a_human_may_stop_at_the_iteration_limit(desk: Desk) -> None:
    """The run was not approved, and its exit code must not claim that."""
    desk.flow(f"max_iterations: 1\n{LOOP}")
    desk.constraints("clear")
    desk.play(writes(), finds("clear", issue()), rules("REWRITE", bill="Mend it."), mends())
    desk.run()

    code = answer(desk, "max_iterations", "stop")

    assert code == 14
    assert "It is wrong." in desk.read("final/status.md")


def stubborn(desk: Desk, *issues: dict[str, Any], decisions: tuple[Rule, ...] = ()) -> None:
    """Scripts a critic that reports the same finding after every fix."""
    desk.constraints("clear")
    desk.play(
        writes("The see is wide and deep and old and cold.\n"),
        finds("clear", *issues),
        rules("REWRITE", *decisions, bill="Mend it."),
        mends("wide", "broad", times=1),
        mends("deep", "profound", times=1),
        mends("old", "aged", times=1),
        mends("cold", "chilly"),
    )


def test_a_finding_pursued_three_times_in_a_row_asks_a_human(desk: Desk) -> None:
    """Thrashing costs a round each time, and models do not notice."""
    desk.flow(f"max_iterations: 9\n{LOOP}")
    stubborn(desk, issue())

    done = desk.run()

    assert (done.code, questions(desk)) == (10, ["thrashing"])
    assert desk.asked("step").count("adjudicate") == 3


def test_contradictory_critical_findings_ask_a_human(desk: Desk) -> None:
    """No rewrite satisfies two critics who want opposite things."""
    desk.flow(f"max_iterations: 9\n{LOOP}")
    both = (
        issue("CRITICAL", id="clear-001"),
        issue("CRITICAL", "wide", id="clear-002", finding="Too wide."),
    )
    stubborn(
        desk,
        *both,
        decisions=({"issue_id": "clear-001", "competing_constraint": "short"},),
    )

    done = desk.run()

    assert (done.code, questions(desk)) == (10, ["conflict"])


def test_a_flow_that_does_not_improve_ends_with_the_evidence(desk: Desk) -> None:
    """Exit code 13 comes early; ten more rounds would cost ten times as much."""
    desk.flow(
        "max_iterations: 20\n"
        "convergence: {plateau: 2, action: stop}\n"
        "workflow:\n"
        "  - {step: generate}\n"
        "  - {step: critique, name: review}\n"
        "  - {step: adjudicate, agent: policy}\n"
        "  - {step: refine, loop_to: review}\n"
    )
    stubborn(desk, issue())

    done = desk.run()

    assert done.code == 13, done.err
    assert desk.asked("step").count("critique") == 3
    assert "plateau" in desk.read("final/status.md")
    assert desk.here("show", "one", "--json").json["exit_code"] == 13


@pytest.mark.parametrize(
    ("edit", "why"),
    [([], "changed nothing"), ([["see", "sea " * 40]], "changed the size by")],
    ids=["unchanged", "grown"],
)
def test_an_implausible_edit_is_sent_back_and_then_shown_to_a_human(
    desk: Desk, edit: list[list[str]], why: str
) -> None:
    """An agent that changed nothing, or everything, must not be trusted."""
    desk.flow(f"max_iterations: 2\n{LOOP}")
    desk.constraints("clear")
    desk.play(
        writes(),
        finds("clear", issue(), contains=DRAFT),
        passes(),
        rules("REWRITE", bill="Mend it.", contains=DRAFT),
        rules("APPROVED"),
        {"step": "refine", "edits": True, "edit": edit, "text": "Done."},
    )

    done = desk.run()

    assert (done.code, questions(desk)) == (10, ["validation_failed"])
    assert desk.asked("step").count("refine") == 3
    assert why in desk.read("iterations/1/prompt_refine_claude_2.txt")


@pytest.mark.parametrize("choice", ["edit by hand", "regenerate", "accept"])
def test_a_human_decides_about_an_implausible_edit(desk: Desk, choice: str) -> None:
    """There are three options, and each leads to a text that is reviewed again."""
    desk.flow(f"max_iterations: 2\nphases: {{refine: {{validation_retries: 0}}}}\n{LOOP}")
    desk.constraints("clear")
    grown = f"{'The sea. ' * 9}\n"
    desk.play(
        writes(FINAL, contains="<<<BILL_OF_WORK"),
        writes(),
        finds("clear", issue(), contains=DRAFT),
        passes(),
        rules("REWRITE", bill="Mend it.", contains=DRAFT),
        rules("APPROVED"),
        mends("The see is wide.", grown.strip()),
    )
    desk.run()

    code = answer(desk, "validation_failed", choice)
    if choice == "edit by hand":
        code = desk.here("answer", "one", FINAL, "--resume").code

    assert code == 0
    expected = grown.strip() if choice == "accept" else FINAL.strip()
    assert desk.read("final/artifact.md").strip() == expected
    assert desk.asked("step")[-1] == "adjudicate"


def test_the_settings_of_the_judge_reach_it(desk: Desk) -> None:
    """Tensions and instructions must not be ignored."""
    desk.flow(
        f"max_iterations: 2\n{LOOP}"
        "adjudication:\n"
        "  tensions:\n"
        "    - {axis: short vs whole, guidance: Lean to short., winner_on_conflict: short}\n"
        "  instructions: Dismiss matters of taste.\n"
        "output: {dir: out, filename: sea.md}\n"
    )
    desk.constraints("clear")
    desk.play(writes(FINAL), passes(), rules("APPROVED"))

    done = desk.run()

    asked = desk.read("iterations/1/prompt_adjudicate_claude.txt")
    assert done.code == 0, done.err
    assert "short vs whole: Lean to short. (in conflict, short wins)" in asked
    assert "Dismiss matters of taste." in asked
    assert desk.read("out/sea.md") == FINAL
